# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Compares one step of one rank, and returns a summary of fixed size: the unit of work of all of ``probe compare``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.reading import entry_name
from probe.reading.compare.align import NONE, Alignment, Pair
from probe.reading.compare.graph import Graph
from probe.reading.compare.judge import HARD, OTHER_BITS, Judge, Refine, Slot
from probe.reading.compare.operands import order_operands
from probe.reading.compare.origins import Finding, Origin, OriginFinder, is_collective
from probe.reading.compare.rewire import Rewiring
from probe.reading.compare.sentences import Describer
from probe.reading.compare.tolerance import Tolerances, of_dtype
from probe.reading.document import paused_gc
from probe.reading.dump import Dump
from probe.reading.entry_name import API, BACKWARD, FORWARD
from probe.reading.flow import Flow
from probe.reading.source import DumpFolder
from probe.reading.values import is_tensor

_MOST_ORIGINS, _MOST_NAMES, _MOST_CELLS, _MOST_WORST = 50, 50, 200, 50
#: how tensors, calls and Cells are counted
Counts = dict[str, int]


class Options(NamedTuple):
    """What a comparison is asked for.

    Attributes:
        mapping: names in A -> names in B.
        rules: (pattern, condition) of the user.
        noise: folder -> tensor -> rel_l2 between two golden runs, by (step, rank) of A.
        factor: by how much tolerances are multiplied.
        arrays: "all", "differs" or "none": which arrays are read.
        rows: (file, form) that the rows of this unit are written to: "csv", "jsonl" or "msprobe".
    """

    mapping: dict[str, str] = {}  # noqa: RUF012
    rules: tuple[tuple[str, str], ...] = ()
    noise: dict[Any, dict[str, float]] = {}  # noqa: RUF012
    factor: float = 1.0
    arrays: str = "all"
    rows: tuple[tuple[str, str], ...] = ()


@dataclass
class Collective:
    """One collective of one rank, as the ranks are linked by it.

    Attributes:
        key: (group, API, how many of these came before).
        sent_off: whether what this rank gave differs, or follows from a difference.
        origin: whether this rank alone would call it an origin.
    """

    key: tuple[str, str, int]
    sent_off: bool
    origin: bool


@dataclass
class UnitSummary:
    """What came of one step of one rank; its size does not grow with the dump's."""

    step_a: int | None
    step: int | None
    rank: Any
    error: str = ""
    notes: list[str] = field(default_factory=list)
    pairs: Counts = field(default_factory=dict)
    verdicts: Counts = field(default_factory=dict)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    only_counts: tuple[int, int] = (0, 0)
    origins: list[Origin] = field(default_factory=list)
    later: list[Origin] = field(default_factory=list)
    soft: list[Origin] = field(default_factory=list)
    cells: dict[str, tuple[int, float]] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)
    rules_used: list[int] = field(default_factory=list)
    header: list[str] = field(default_factory=list)

    @property
    def paired(self) -> int:
        """How many calls have a partner."""
        return sum(count for how, count in self.pairs.items() if how)

    @property
    def differs(self) -> int:
        """How many tensors are off."""
        return sum(self.verdicts.get(verdict, 0) for verdict in HARD)


class Comparing:
    """Compares two dumps of one step and rank.

    Args:
        a: A (golden).
        b: B.
        options: what is asked for.
    """

    def __init__(self, a: Dump, b: Dump, options: Options) -> None:
        self.a, self.b, self._options = a, b, options
        self.tolerances = Tolerances(list(options.rules), options.noise.get((a.step, a.rank)), options.factor)
        self.alignment = Alignment(a, b, options.mapping or None)
        Rewiring(self.alignment, a, b).run()
        order_operands(self.alignment, b, a)
        self.pairs = self.alignment.pairs()
        judge = Judge(self.tolerances, self._refine())
        floors = self._floors()
        self.slots = [self._judged(judge, pair, floors) for pair in self.pairs]

    def _refine(self) -> Refine | None:
        if self._options.arrays == "none" or not (
            self.a.header.get("dump_data_dir") or self.b.header.get("dump_data_dir")
        ):
            return None
        from probe.reading.compare.arrays import Arrays

        return Arrays(self.a.path, self.b.path, self._options.arrays).refine

    def _judged(self, judge: Judge, pair: Pair, floors: tuple[list[float], list[float]] | None) -> list[Slot]:
        flow_a, flow_b = self.alignment.flows
        if NONE in (pair.a, pair.b):
            return []
        name = flow_a.names[pair.a]
        floor = (floors[0][pair.a], floors[1][pair.b]) if floors else (0.0, 0.0)
        entries = self.a.data[name], self.b.data[flow_b.names[pair.b]]
        return judge.follow(judge.slots(name, flow_a.parts[pair.a], *entries, floor))

    def _floors(self) -> tuple[list[float], list[float]] | None:
        """Return for each call the tolerance of the least exact dtype before it; None where all have one dtype."""
        flows = self.alignment.flows
        if len({of_dtype(dtype) for flow in flows for dtype in flow.dtypes} - {0.0}) < 2:
            return None
        return _tolerances(self.a, flows[0]), _tolerances(self.b, flows[1])

    def rows(self) -> Iterator[tuple[Pair, Slot | None]]:
        """Yield every place of every pair; calls without a partner have none."""
        for pair, slots in zip(self.pairs, self.slots):
            if not slots:
                yield pair, None
            for slot in slots:
                yield pair, slot


def _inexact(entry: Any) -> float:
    """Return the tolerance of the least exact dtype in an entry."""
    if not isinstance(entry, dict):
        return 0.0
    most = 0.0
    for part in entry.values():
        for item in part if type(part) is list else part.values() if type(part) is dict else ():
            if is_tensor(item):
                most = max(most, of_dtype(item.get("dtype")))
    return most


def _tolerances(dump: Dump, flow: Flow) -> list[float]:
    own = [_inexact(dump.data[name]) for name in flow.names]
    last_backward = 0.0
    for place, links in enumerate(flow.links):
        if flow.parts[place].direction == FORWARD:
            own[place] = max(own[place], max((own[link.producer] for link in links if link.producer >= 0), default=0.0))
        else:
            forward = flow.forward_of(place)
            last_backward = max(last_backward, own[place], own[forward] if forward is not None else 0.0)
            own[place] = last_backward
    return own


def compare_unit(folder_a: DumpFolder, folder_b: DumpFolder, options: Options) -> UnitSummary:
    """Compare one step of one rank.

    Args:
        folder_a: where A is.
        folder_b: where B is.
        options: what is asked for.
    """
    summary = UnitSummary(folder_a.step, folder_b.step, folder_b.rank)
    try:
        with paused_gc():
            _compare(summary, Dump(folder_a), Dump(folder_b), options)
    except UsageError as error:
        summary.error = str(error)
    except RecursionError:
        summary.error = f"{folder_a.path} or {folder_b.path}: nested too deeply"
    return summary


def _compare(summary: UnitSummary, a: Dump, b: Dump, options: Options) -> None:
    try:
        summary.notes = [*a.notes, *b.notes]
        summary.header = header_differences(a, b)
        comparing = Comparing(a, b, options)
        _count(summary, comparing)
        _find_origins(summary, comparing)
        for path, form in options.rows:
            from probe.reading.compare.export import write_unit

            write_unit(path, form, comparing)
    finally:
        a.release()
        b.release()


def _count(summary: UnitSummary, comparing: Comparing) -> None:
    flow_a, flow_b = comparing.alignment.flows
    only_a, only_b = [], []
    hows: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    cells: dict[str, tuple[int, float]] = {}
    for pair, slots in zip(comparing.pairs, comparing.slots):
        hows[pair.how] += 1
        if pair.b == NONE:
            only_a.append(flow_a.names[pair.a])
        elif pair.a == NONE:
            only_b.append(flow_b.names[pair.b])
        worst, off = 0.0, 0
        for slot in slots:
            verdicts[slot.verdict] += 1
            if slot.verdict in HARD:
                off += 1
                worst = max(worst, slot.distance.rel_l2 or 0.0)
        if off:
            cell = _cell(flow_b, pair.b)
            count, so_far = cells.get(cell, (0, 0.0))
            cells[cell] = count + off, max(so_far, worst)
    summary.pairs, summary.verdicts = dict(hows), {key: count for key, count in verdicts.items() if key}
    summary.only_counts = len(only_a), len(only_b)
    summary.only_a, summary.only_b = only_a[:_MOST_NAMES], only_b[:_MOST_NAMES]
    summary.cells = dict(list(cells.items())[:_MOST_CELLS])
    summary.rules_used = comparing.tolerances.used()


def _cell(flow: Flow, place: int) -> str:
    parts = flow.parts[place]
    if parts.kind == API:
        return entry_name.cell_label(flow.cells[place]) or "outside of Cells"
    return entry_name.cell_label(flow.names[place]) or flow.names[place]


def _find_origins(summary: UnitSummary, comparing: Comparing) -> None:
    changed = any(how not in ("exact",) for how in summary.pairs) or summary.verdicts.keys() & {"argument", OTHER_BITS}
    if not summary.differs and not changed:
        return
    graph = Graph(comparing.alignment, comparing.pairs, comparing.slots, (comparing.a, comparing.b))
    finder, describer = OriginFinder(graph), Describer(graph, comparing.a, comparing.b)
    findings = finder.origins()
    summary.origins = _grouped([describer.origin(finding) for finding in findings[: 4 * _MOST_ORIGINS]])
    summary.later = [describer.origin(finding) for finding in finder.later()]
    blamed = {finding.node for finding in findings}
    rest = [finding for finding in finder.soft() if finding.node not in blamed]
    summary.soft = [describer.origin(finding) for finding in rest[:_MOST_ORIGINS]]
    summary.collectives = _collectives(graph, findings)


def _grouped(origins: list[Origin]) -> list[Origin]:
    """Sum up parameters that differ: one origin stands for all of them where they are many."""
    parameters = [origin for origin in origins if origin.kind == "parameter"]
    if len(parameters) > 3:
        first = parameters[0]
        first.more = [f"{origin.name}.{origin.place}" for origin in parameters[1:_MOST_NAMES]]
        first.sentence = f"{len(parameters)} parameters differ before their first use, the first is {first.sentence}"
        origins = [origin for origin in origins if origin.kind != "parameter" or origin is first]
    return origins[:_MOST_ORIGINS]


def _collectives(graph: Graph, findings: list[Finding]) -> list[Collective]:
    """Return the collectives in order, as other ranks have to know them."""
    found, counts = [], Counter[tuple[str, str]]()
    blamed = {finding.node for finding in findings}
    for node in range(len(graph.pairs)):
        parts = graph.parts(node)
        if parts.direction == BACKWARD or not is_collective(parts) or graph.is_container(node):
            continue
        group = _group(graph, node)
        counts[group, parts.key] += 1
        inputs_off = any(slot.verdict in HARD for slot in graph.slots[node] if slot.is_input)
        soft = graph.soft[node] != NONE
        sent = inputs_off or graph.tainted[node] or soft
        found.append(Collective((group, parts.key, counts[group, parts.key]), sent, node in blamed and not inputs_off))
    return found


def _group(graph: Graph, node: int) -> str:
    """Return the members of a collective's group as a text; "world" where the entry does not say."""
    entry = graph.entry(node)
    ranks = entry.get("group_ranks") if isinstance(entry, dict) else None
    return ",".join(map(str, ranks)) if isinstance(ranks, list) else "world"


#: keys of the header's "run" that say where a run was, not what it was
_PLACES = frozenset(("rank", "tool", "format", "host", "time", "pid"))


def header_differences(a: Dump, b: Dump) -> list[str]:
    """Return how the circumstances of two runs differ, as their headers tell them."""
    kinds = [(key, a.header.get(key), b.header.get(key)) for key in ("task", "level", "framework")]
    run_a, run_b = a.header.get("run"), b.header.get("run")
    if isinstance(run_a, dict) and isinstance(run_b, dict):
        kinds += [(key, run_a.get(key), run_b.get(key)) for key in sorted({*run_a, *run_b} - _PLACES, key=str)]
    return [f"{key}: {left} in A, {right} in B" for key, left, right in kinds if left != right]


def part_path(base: str, number: int) -> str:
    """Return the file that the rows of a unit wait in until they are put together.

    >>> part_path("/t/rows", 3)
    '/t/rows.000003'
    """
    return f"{os.fspath(base)}.{number:06d}"
