# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares one step of one rank and returns its summary: the unit of work of ``probe compare``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.reading.compare.answer.sentences import Describer
from probe.reading.compare.dataflow.carried import Carried
from probe.reading.compare.dataflow.forms_before_fault import FormsBeforeFault
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.reformulation import Form, Reformulations, names_of
from probe.reading.compare.dataflow.rejoined import Rejoined
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.net_noise import NetNoise
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import FAINT, HARD, Slot, Verdict, sharpened
from probe.reading.compare.origins.beside import changes_beside
from probe.reading.compare.origins.casts import Casts
from probe.reading.compare.origins.finder import OriginFinder
from probe.reading.compare.origins.finding import Finding
from probe.reading.compare.origins.harmless import is_harmless
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.compare.origins.unit_summary import (
    Collective,
    UnitCounts,
    UnitOrigins,
    UnitSummary,
)
from probe.reading.compare.pairing.partners import EXACT, NONE
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.document import paused_gc
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, BACKWARD, cell_label
from probe.reading.dumps.folders import DumpFolder, DumpSource
from probe.reading.dumps.values import is_tensor, part_of
from probe.store import file_names

_MOST_ORIGINS = 50
_MOST_NAMES = 50
_MOST_CELLS = 200
#: so few roots within the tolerance explain a difference that has grown, if they are of these kinds: the rest is equal
_FEW = 3
_ROOTS = frozenset(
    (
        Kind.PARAMETER,
        Kind.DATA,
        Kind.OUTSIDE,
        Kind.ARGUMENT,
        Kind.CALLS,
        Kind.OPTIMIZER,
        Kind.WIRING,
    )
)
#: keys of the header's "run" that name the place of a run, not its kind
_PLACES = frozenset(("rank", "tool", "format", "host", "time", "pid"))


def compare_unit(
    folder_a: DumpFolder,
    folder_b: DumpFolder,
    options: Options,
    look: Callable[[JudgedPairs], None] | None = None,
) -> UnitSummary:
    """Compare one step of one rank; ``look`` is called with the comparison before its dumps are dropped."""
    summary = UnitSummary(folder_b.step, folder_b.rank)
    try:
        with paused_gc():
            _compare(summary, Dump(folder_a), Dump(folder_b), options, look)
    except UsageError as error:
        summary.error = reason_of(error)
    except RecursionError:
        summary.error = say("compare.too_deep", a=folder_a.path, b=folder_b.path)
    return summary


def _compare(
    summary: UnitSummary,
    a: Dump,
    b: Dump,
    options: Options,
    look: Callable[[JudgedPairs], None] | None,
) -> None:
    try:
        summary.notes = [*a.document.notes, *b.document.notes]
        summary.header = [*_snapshot_lines(a, b), *header_differences(a, b)]
        comparing = JudgedPairs(a, b, options)
        summary.notes += filter(None, (comparing.levels, comparing.divides))
        kernels = Carried(comparing).judge() if comparing.tolerances.net else []
        comparing.separate(Rejoined(comparing).find() if comparing.tolerances.net else [])
        is_whole = not isinstance(b.folder.source, DumpSource)  # put together of ranks
        settled = _Settled() if is_whole else _settle_forms(comparing)
        summary.notes += [
            say("compare.kernels", kind=kind, calls=n, rel_l2=size) for kind, n, size in kernels
        ]
        summary.counts = _count(comparing)._replace(
            kernels=tuple(kind for kind, *_ in kernels),
            formed=(_formed(comparing, settled.forms, 0), _formed(comparing, settled.forms, 1)),
        )
        summary.origins = _find_origins(summary.counts, comparing, settled)
        if not isinstance(b.folder.source, DumpSource):
            from probe.reading.compare.layouts.blame import with_ranks

            told = [*summary.origins.first, *summary.origins.later]
            summary.origins = summary.origins.changed(with_ranks(told, comparing))
        for path, form in options.rows:
            from probe.reading.compare.answer.export import write_unit

            write_unit(path, form, comparing)
        if look is not None:
            look(comparing)
        comparing.release()
    finally:
        a.release()
        b.release()


def noise_unit(folder_a: DumpFolder, folder_b: DumpFolder, options: Options) -> dict[str, float]:
    """Return how far each tensor of a dump is apart in two golden runs; raise UsageError when one cannot be read."""
    a = Dump(folder_a)
    b = Dump(folder_b)
    try:
        with paused_gc():
            comparing = JudgedPairs(a, b, options)
            is_moved = "'perturbed'" in str((a.header.get("run"), b.header.get("run")))
            flow = comparing.alignment.flows[0]
            found = []
            for pair, slot in comparing.rows():
                if is_tensor(slot.a) and slot.distance.rel_l2 is not None:
                    name = flow.names[pair.a]
                    (*_, api, _, direction) = flow.parts[pair.a]
                    own = (
                        is_moved and slot.verdict == Verdict.NEAR_ZERO
                    )  # such a sum counts by its own size
                    size = (distance(slot.a, slot.b) if own else slot.distance).rel_l2 or 0.0
                    found.append(
                        (
                            f"{name}.{slot.place}",
                            (api, direction, slot.place),
                            slot.a.get("dtype"),
                            size,
                        )
                    )
            comparing.release()
            return (
                NetNoise.of(found) if is_moved else {name: size for name, *_, size in found if size}
            )
    finally:
        a.release()
        b.release()


def _count(comparing: JudgedPairs) -> UnitCounts:
    flow_a, flow_b = comparing.alignment.flows
    only_a = []
    only_b = []
    hows: Counter[str] = Counter()
    verdicts: list[str] = []
    cells: dict[str, tuple[int, float]] = {}
    labels: dict[str | None, str] = {}
    for pair, slots in zip(comparing.pairs, comparing.slots):
        hows[pair.how] += 1
        if pair.b == NONE:
            only_a.append(flow_a.names[pair.a])
        elif pair.a == NONE:
            only_b.append(flow_b.names[pair.b])
        found = [slot.verdict for slot in slots]
        verdicts += found
        if not HARD.isdisjoint(found):
            off = [slot.distance.rel_l2 or 0.0 for slot in slots if slot.is_hard]
            place = (
                flow_b.names[pair.b] if flow_b.parts[pair.b].kind != API else flow_b.cells[pair.b]
            )
            if place not in labels:
                labels[place] = cell_label(place) or place or ""
            cell = labels[place]
            count, so_far = cells.get(cell, (0, 0.0))
            cells[cell] = count + len(off), max(so_far, *off)
    return UnitCounts(
        pairs=dict(hows),
        verdicts={key: count for key, count in Counter(verdicts).items() if key},
        only_a=tuple(only_a[:_MOST_NAMES]),
        only_b=tuple(only_b[:_MOST_NAMES]),
        only=(len(only_a), len(only_b)),
        cells=dict(list(cells.items())[:_MOST_CELLS]),
        rules_used=tuple(comparing.tolerances.used()),
        unmapped=comparing.alignment.vocabulary.unused(comparing.alignment.flows),
    )


class _Settled(NamedTuple):
    """The regions with another form, and the dataflow of the pairs where it is known."""

    forms: Sequence[Form] = ()
    graph: Graph | None = None


def _settle_forms(judged: JudgedPairs) -> _Settled:
    """Find the regions that compute one thing in another form; their pairs are taken apart, or made anew."""
    off = (slot.is_hard for slots in judged.slots for slot in slots)
    if judged.alignment.vocabulary.is_foreign or not any(off):
        return _Settled()
    found = Reformulations(judged)
    forms: Sequence[Form] = ()
    if found.is_settled:
        forms = found.find()
    elif max(found.graph.soft, default=NONE) != NONE:  # without another call there is no other form
        forms = FormsBeforeFault(found).find()
    if not forms:
        return _Settled((), found.graph)
    places_a = [place for form in forms for place in form.places[0]]
    places_b = [place for form in forms for place in form.places[1]]
    judged.pair_anew(frozenset(places_a), frozenset(places_b))
    return _Settled(forms)


def _formed(judged: JudgedPairs, forms: Sequence[Form], side: int) -> int:
    """Return how many calls of a side have no partner as they are in a region with another form."""
    partners = judged.alignment.partners(side)
    return sum(place not in partners for form in forms for place in form.places[side])


def _form_origins(graph: Graph, describer: Describer, forms: Sequence[Form]) -> Iterator[Origin]:
    """Yield the regions with another form, as changes that are told; calls in another order are one change."""
    ordered: list[Form] = []
    for form in forms:
        names_a, names_b = (_alone_calls(graph, form, side) for side in (0, 1))
        if names_a or names_b:
            left, right = (_few(names) for names in (names_a, names_b))
            said = say("compare.other_form", left=left, right=right, **_agreement([form]))
            yield _form_origin(graph, describer, (names_a[:1], names_b[:1]), said)
        else:
            ordered.append(form)
    names_a, names_b = (
        [name for form in ordered for name in names_of(graph, side, form.places[side])]
        for side in (0, 1)
    )
    if names_b:
        said = say("compare.other_order", names=_few(names_b), **_agreement(ordered))
        yield _form_origin(graph, describer, (names_a[:1], names_b[:1]), said)


def _alone_calls(graph: Graph, form: Form, side: int) -> list[str]:
    """Return the calls of a region that have no partner."""
    alone = [place for place in form.places[side] if graph.is_alone(graph.at[side][place])]
    return names_of(graph, side, alone)


def _agreement(forms: Sequence[Form]) -> dict[str, Any]:
    """Return how many values leave regions, and how well they agree."""
    worst = max(form.rel_l2 for form in forms)
    return {"count": sum(form.leaving for form in forms), "size": f"{worst:.1e}"}


def _form_origin(
    graph: Graph, describer: Describer, firsts: tuple[list[str], list[str]], said: Sentence
) -> Origin:
    """Return a change of a region; ``firsts`` has the name of its first call in A and in B, where there is one."""
    found: dict[int, Origin] = {}
    for side, names in enumerate(firsts):
        for name in names:
            flow = graph.alignment.flows[side]
            node = graph.node_of(flow, flow.position[name])
            found[side] = describer.origin(Finding(Kind.FORM, node))
    shown = found[max(found)]
    frame_a, frame_b = (found[side].code.frames[side] if side in found else None for side in (0, 1))
    left, right = (next(iter(names), "") for names in firsts)
    site = shown.site._replace(calls=(left, right))
    code = shown.code._replace(frames=(frame_a, frame_b))
    return replace(shown, site=site, code=code, said=said, is_harmless=True)


def _soft_origin(graph: Graph, describer: Describer, finding: Finding) -> Origin:
    """Return a change as it is told, and whether it is proved to be harmless."""
    source = finding.node if finding.source == NONE else finding.source
    proven = is_harmless(graph, finding.node) and is_harmless(graph, source)
    return replace(describer.origin(finding), is_harmless=proven)


def _few(names: list[str]) -> Sentence:
    if not names:
        return say("compare.none")
    more = say("compare.cut") if len(names) > _FEW else NOTHING
    return say("compare.names", names=say("clauses", parts=names[:_FEW]), more=more)


def _find_origins(counts: UnitCounts, judged: JudgedPairs, settled: _Settled) -> UnitOrigins:
    changed = set(counts.pairs) - {EXACT} or counts.verdicts.keys() & {Verdict.ARGUMENT, *FAINT}
    if not counts.differs and (judged.divides or not changed):
        return UnitOrigins(updates=bool(judged.updates), settled=_is_settled(judged))
    forms = settled.forms
    graph = settled.graph or Graph(judged)
    finder = OriginFinder(graph)
    describer = Describer(graph, judged.arrays)
    casts = Casts(graph)
    findings = casts.beyond(finder.origins())
    exact: tuple[Origin, ...] = ()
    grew = finder.has_grown(findings)
    may_agree_in_bits = not (judged.alignment.vocabulary.is_foreign or judged.tolerances.has_noise)
    if grew and may_agree_in_bits and counts.differs and not FAINT.isdisjoint(counts.verdicts):
        exact = _exact_origins(judged)
    formed = {
        graph.at[side][place] for form in forms for side in (0, 1) for place in form.places[side]
    }
    told = formed.union(finding.node for finding in findings)
    rest = changes_beside(graph, finder.soft(), told)
    first = _origins(describer, findings)
    explains = len(exact) <= _FEW and all(
        origin.kind in _ROOTS and not origin.more for origin in exact
    )
    if exact and grew and (explains or not first):
        first = exact
    elif may_agree_in_bits and (proven := finder.exact()):
        more = [describer.origin(finding) for finding in proven if finding.node not in told]
        first = tuple(sorted([*first, *more[:_MOST_ORIGINS]], key=lambda origin: origin.site.order))
    if not first and counts.differs:
        first = tuple(describer.origin(finding) for finding in finder.first_of_all())
    carriers = tuple(casts.differences()[:_MOST_NAMES])
    if carriers:  # no cast is the origin
        first = tuple(origin for origin in first if not casts.carry(origin.site.order))
    return UnitOrigins(
        first=first,
        later=tuple(describer.origin(finding) for finding in casts.beyond(finder.later())),
        casts=carriers,
        soft=(
            *_form_origins(graph, describer, forms),
            *(_soft_origin(graph, describer, finding) for finding in rest[:_MOST_ORIGINS]),
        ),
        collectives=tuple(_collectives(graph, findings)),
        exact=exact,
        parameters=_parameters(judged) if first else (0, 0),
        updates=bool(judged.updates),
        settled=_is_settled(judged),
        before=_before(judged, first[0].site.order) if first else "",
    )


def _exact_origins(judged: JudgedPairs) -> tuple[Origin, ...]:
    graph = Graph(judged, [sharpened(found) for found in judged.slots])
    return _origins(Describer(graph, judged.arrays), OriginFinder(graph).origins())


def _before(judged: JudgedPairs, order: int) -> str:
    """Return how the values before a node agree: in bits, in numbers, or within the tolerance; "" if some do not."""
    found = {slot.verdict for slots in judged.slots[:order] for slot in slots if _has_tensor(slot)}
    if not HARD.isdisjoint(found):
        return ""
    if not FAINT.isdisjoint(found):
        return Verdict.CLOSE
    return (
        Verdict.NUMBERS_EQUAL
        if Verdict.NUMBERS_EQUAL in found
        else Verdict.BITS
        if Verdict.BITS in found
        else ""
    )


def _has_tensor(slot: Slot) -> bool:
    return is_tensor(slot.a) or is_tensor(slot.b)


def _is_settled(judged: JudgedPairs) -> bool:
    """Return whether the results of all updates are recorded, and agree."""
    updates = [slots for pair, slots in zip(judged.pairs, judged.slots) if pair.a in judged.updates]
    made = [
        [slot.verdict for slot in slots if not slot.is_input and _has_tensor(slot)]
        for slots in updates
    ]
    return bool(made) and all(
        found and HARD.isdisjoint(found) and Verdict.UNKNOWN not in found for found in made
    )


def _parameters(judged: JudgedPairs) -> tuple[int, int]:
    """Return how many parameters there are, and how many of them differ in any bit."""
    given = (
        slots for pair, slots in zip(judged.pairs, judged.slots) if pair.a not in judged.updates
    )  # these: states
    found = [
        slot
        for slots in given
        for slot in slots
        if slot.is_input and slot.place.startswith("parameters.")
    ]
    return len(found), sum(slot.is_hard or slot.is_faint for slot in found)


def _origins(describer: Describer, findings: list[Finding]) -> tuple[Origin, ...]:
    """Return the origins of findings. Of many parameters that differ one stands for all of them."""
    origins = [describer.origin(finding) for finding in findings[: 4 * _MOST_ORIGINS]]
    parameters = [origin for origin in origins if origin.kind == Kind.PARAMETER]
    if len(parameters) > 3:
        first = parameters[0]
        said = say("compare.parameters", count=len(parameters), finding=first.said)
        more = [f"{origin.name}.{origin.place}" for origin in parameters[1:_MOST_NAMES]]
        for_all = replace(first, said=said, more=more)
        origins = [
            for_all if origin is first else origin
            for origin in origins
            if origin.kind != Kind.PARAMETER or origin is first
        ]
    return tuple(origins[:_MOST_ORIGINS])


def _collectives(graph: Graph, findings: list[Finding]) -> list[Collective]:
    """Return the collectives in order, as other ranks have to know them."""
    found = []
    counts = Counter[tuple[str, str]]()
    blamed = {finding.node for finding in findings}
    for node in range(len(graph.pairs)):
        flow, place = graph.shown_flow(node)  # the names of one side, which all ranks have
        parts = flow.parts[place]
        if parts.direction == BACKWARD or not is_collective(parts) or graph.is_container(node):
            continue
        entry = graph.dump(node).data[flow.names[place]]
        ranks = part_of(entry, "group_ranks")
        group = (
            ",".join(map(str, ranks)) if isinstance(ranks, list) else "world"
        )  # where the entry does not say
        counts[group, parts.key] += 1
        inputs_off = any(slot.is_hard for slot in graph.inputs(node))
        sent = inputs_off or graph.tainted[node] or graph.soft[node] != NONE
        found.append(
            Collective(
                (group, parts.key, counts[group, parts.key]),
                sent,
                node in blamed and not inputs_off,
            )
        )
    return found


def _snapshot_lines(a: Dump, b: Dump) -> Sequence[Sentence | str]:
    """Return the first lines of ``probe check``, which is imported only where both runs have a snapshot."""
    path_a = a.folder.path
    path_b = b.folder.path
    if not all(os.path.isfile(os.path.join(path, file_names.RUN)) for path in (path_a, path_b)):
        return []
    from probe.reading.check.check import first_lines

    return first_lines(path_a, path_b)


def header_differences(dump_a: Dump, dump_b: Dump) -> list[Sentence]:
    """Return how the circumstances of two runs differ, as their headers tell them."""
    kinds = [
        (key, dump_a.header.get(key), dump_b.header.get(key))
        for key in ("task", "level", "framework")
    ]
    run_a = dump_a.header.get("run")
    run_b = dump_b.header.get("run")
    if isinstance(run_a, dict) and isinstance(run_b, dict):
        kinds += [
            (key, run_a.get(key), run_b.get(key))
            for key in sorted({*run_a, *run_b} - _PLACES, key=str)
        ]
    return [
        say("compare.header", key=key, left=str(a), right=str(b)) for key, a, b in kinds if a != b
    ]


def part_path(base: str, number: int) -> str:
    """Return the file that the rows of a unit wait in until they are put together.

    >>> part_path("/t/rows", 3)
    '/t/rows.000003'
    """
    return f"{os.fspath(base)}.{number:06d}"
