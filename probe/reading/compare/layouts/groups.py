# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which ranks of two layouts are compared with one another, as a pair of dumps that are read like any others.

A parallel layout tells how many ranks share a tensor, how many stages and replicas there are, and who is who.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.layouts.combine import Combining
from probe.reading.compare.layouts.shards import recorded_layout
from probe.reading.compare.layouts.side import Group, Place, read_entries, values
from probe.reading.dumps.document import Document
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, shortened
from probe.reading.dumps.values import Record, grouped, is_tensor
from probe.store import file_names as files
from probe.store.file_names import Rank

#: pairs of folders, and the labels of those that only one run has
Pairs = tuple[list[tuple[DumpFolder, DumpFolder]], tuple[list[Any], list[Any]]]
_SIZES = ("tp", "pp", "dp", "vpp")
_AXES = ("tp", "dp", "pp")
#: Megatron's order: neighbours in a tensor-parallel group have neighbouring ranks
_ORDER = "tp-cp-ep-dp-pp"
_HEAD = 1 << 16


class LayoutPair:
    """The ranks of A and B that make one whole, read together; ``counts`` are numbers of ranks that share something."""

    def __init__(
        self,
        groups: tuple[Group, Group],
        mapping: Mapping[str, str] | None,
        notes: list[Sentence],
        counts: Sequence[int] = (),
    ) -> None:
        self.groups = groups
        self._mapping = mapping
        self._notes = notes
        self.counts = counts
        self._made: dict[int, Document] = {}
        self._stages: list[Any] = [None, None]

    def read(self, side: int) -> Document:
        """Return the document of one side; the other one waits. Raise UsageError when a dump cannot be read."""
        if side not in self._made:
            combining = Combining(self.groups, self._mapping)
            self._made = dict(enumerate(combining.documents()))
            self._made[0].notes[:0] = self._notes
            known = [half.stages for half in combining.sides]
            self._stages = [
                (it.renamings, it.stage_of) if len(it.documents) > 1 else None for it in known
            ]
        return self._made.pop(side)

    def stage(self, side: int, name: str) -> int | None:
        """Return the pipeline stage of an entry; None where it is in none."""
        return self._stages[side][1].get(name) if self._stages[side] else 0

    def forget(self) -> None:
        """Drop the names of the entries; they are there again after the next ``read``."""
        self._stages = [None, None]

    def records(self, side: int, wanted: Iterable[Place]) -> dict[Place, list[tuple[Any, Record]]]:
        """Return records of tensors on all ranks that share them, with folders; raise UsageError for a broken one."""
        found: dict[Place, list[tuple[Any, Record]]] = {}
        for number, stage in enumerate(self.groups[side].stages):
            renamed = self._stages[side][0][number] if self._stages[side] else str
            own = grouped(item for item in wanted if self.stage(side, item.name) == number)
            for folder in stage if own else ():
                for own_name, entry in read_entries(
                    folder,
                    wanted=lambda name, own=own, new=renamed: new(name) in own,  # type: ignore[misc]  # of defaults
                ):
                    name = renamed(own_name)
                    leaves = dict(values(entry)) if name in own else {}
                    for place in own.get(name, ()):
                        record = leaves.get(place)
                        if is_tensor(record):
                            found.setdefault(Place(name, place), []).append((folder, record or {}))
        return found

    def entries(self, side: int, name: str) -> list[Any]:
        """Return an entry on all ranks that share its tensors; raise UsageError when a dump cannot be read."""
        number = self.stage(side, name)
        renamed = self._stages[side][0][number] if self._stages[side] else str
        stages = self.groups[side].stages
        folders = stages[number] if number is not None else ()
        found = (
            read_entries(folder, wanted=lambda own: renamed(own) == name) for folder in folders
        )
        return [entry for entries in found for _, entry in entries]


class LayoutSource:
    """One side of a ``LayoutPair``: 0 for A, 1 for B."""

    def __init__(self, pair: LayoutPair, side: int) -> None:
        self.pair = pair
        self.side = side

    def read(self, folder: str) -> Document:
        """Read all ranks and put them together."""
        return self.pair.read(self.side)


def layout_pairs(
    run_a: Run,
    run_b: Run,
    given: tuple[str, str],
    step: str = "",
    rank: str = "",
    mapping: Mapping[str, str] | None = None,
    noise: bool = False,
) -> Pairs | None:
    """Return what is compared where two runs have different layouts; None where their ranks are compared one by one.

    ``given`` are the layouts of A and B as the user gives them; "" takes the one in the header. ``noise`` says whether
    there is a second golden run. Raise UsageError when a layout is wrong, or does not fit the ranks.
    """
    layouts = _layouts((run_a, run_b), given)
    if layouts is None or layouts[0] == layouts[1]:
        return None
    if rank:
        raise UsageError(say("error.layout_rank"))
    if noise:
        raise UsageError(say("error.layout_noise"))
    return _Pairing((run_a, run_b), layouts, mapping).pairs(step)


def _layouts(runs: tuple[Run, Run], given: tuple[str, str]) -> tuple[Layout, Layout] | None:
    found: list[Layout | None] = []
    is_uneven = len(runs[0].ranks) != len(runs[1].ranks)
    for run, text, name in zip(runs, given, "ab"):
        header = None if text or not run.folders else header_layout(run.folders[0])
        if not text and not header and is_uneven and len(run.ranks) > 1:
            header = recorded_layout(run.folders[0])
        known = text or header
        found.append(
            parse_layout(known, f"--layout-{name}" if text else f"{run.path}: layout")
            if known
            else None
        )
    if not any(found):
        return None
    made = []
    for run, layout, name in zip(runs, found, "AB"):
        if layout is None and len(run.ranks) > 1:
            raise UsageError(
                say(
                    "error.layout_unknown",
                    name=name,
                    count=len(run.ranks),
                    option=f"--layout-{name.lower()}",
                )
            )
        made.append(complete(layout or Layout(), run.ranks, name))
    return made[0], made[1]


class _Pairing:
    def __init__(self, runs: tuple[Run, Run], layouts: tuple[Layout, Layout], mapping: Any) -> None:
        self._runs = runs
        self._layouts = layouts
        self._mapping = mapping
        a, b = layouts
        self._tp_equal = a.tp == b.tp
        self._pp_equal = (a.pp, a.vpp) == (b.pp, b.vpp)
        if not self._pp_equal and max(a.vpp, b.vpp) > 1:
            raise UsageError(say("error.layout_chunks", vpp=max(a.vpp, b.vpp)))
        self._numbers = [rank_numbers(run.ranks) for run in runs]
        several = [(name, it) for name, it in zip("AB", layouts) if it.dp > 1 and a.dp != b.dp]
        first = {"tp": 0, "dp": 0, "pp": 0}
        self._notes = [
            say("compare.replicas", side=name, count=it.dp, rank=it.rank(**first))
            for name, it in several
        ]

    def pairs(self, step: str) -> Pairs:
        """Return the pairs and those steps that only one run has."""
        one_step = all(len({folder.step for folder in run.folders}) == 1 for run in self._runs)
        steps: list[dict[Any, dict[Rank, DumpFolder]]] = [{}, {}]
        for run, found in zip(self._runs, steps):
            for folder in folders(run, step, ""):
                found.setdefault((folder.tree, None if one_step else folder.step), {})[
                    folder.rank
                ] = folder
        pairs: list[tuple[DumpFolder, DumpFolder]] = []
        alone: tuple[list[Any], list[Any]] = ([], [])
        for key in dict.fromkeys([*steps[0], *steps[1]]):
            pairs_of_side = zip(self._numbers, steps)
            missing = [
                [at for at, rank in own.items() if rank not in of.get(key, {})]
                for own, of in pairs_of_side
            ]
            if not any(missing):
                pairs += self._of_step(steps[0][key], steps[1][key])
                continue
            for side in (0, 1):
                if key in steps[side]:
                    folder = next(iter(steps[side][key].values()))
                    label = (
                        NOTHING if folder.step is None else say("compare.step", step=folder.step)
                    )
                    lacks = (
                        say("compare.no_rank", rank=missing[side][0]) if missing[side] else NOTHING
                    )
                    alone[side].append(say("compare.step_alone", step=label, lacks=lacks))
        if not pairs:
            raise UsageError(
                say(
                    "error.layout_steps",
                    left=shortened(self._runs[0].steps),
                    right=shortened(self._runs[1].steps),
                    layout_a=str(self._layouts[0]),
                    layout_b=str(self._layouts[1]),
                )
            )
        return pairs, alone

    def _of_step(
        self, a: dict[Rank, DumpFolder], b: dict[Rank, DumpFolder]
    ) -> list[tuple[DumpFolder, DumpFolder]]:
        layout = self._layouts[0]
        are_equal = self._tp_equal, self._pp_equal, layout.dp == self._layouts[1].dp
        axes = (range(size if is_equal else 1) for size, is_equal in zip(layout[:3], are_equal))
        return [self._unit((a, b), tp, pp, dp) for tp, pp, dp in itertools.product(*axes)]

    def _unit(self, ranks: tuple[dict[Rank, DumpFolder], ...], tp: int, pp: int, dp: int) -> Any:
        groups = [self._group(side, ranks[side], tp, pp, dp) for side in (0, 1)]
        sizes = {size for it in self._layouts for size in (it.tp, it.dp, it.world) if size > 1}
        pair = LayoutPair((groups[0], groups[1]), self._mapping, self._notes, sorted(sizes))
        firsts = (group.stages[0][0]._replace(rank=_label(group)) for group in groups)
        return tuple(
            folder._replace(source=LayoutSource(pair, side)) for side, folder in enumerate(firsts)
        )

    def _group(self, side: int, ranks: dict[Rank, DumpFolder], tp: int, pp: int, dp: int) -> Group:
        layout = self._layouts[side]
        numbers = self._numbers[side]
        tps = [tp] if self._tp_equal else range(layout.tp)
        pps = [pp] if self._pp_equal else range(layout.pp)
        return Group(
            tuple(
                tuple(ranks[numbers[layout.rank(tp=t, dp=dp, pp=p)]].absolute() for t in tps)
                for p in pps
            )
        )


def _label(group: Group) -> Rank:
    """Return the rank of a group of one, else its ranks as a text: "0-7"."""
    ranks = group.ranks
    if len(ranks) == 1:
        only: Rank = ranks[0]
        return only
    if ranks == list(range(ranks[0], ranks[0] + len(ranks))):
        return f"{ranks[0]}-{ranks[-1]}"
    return ",".join(map(str, ranks))


class Layout(NamedTuple):
    """The sizes of the groups of ranks.

    >>> Layout(tp=2, pp=2, dp=2).rank(tp=1, dp=0, pp=1)
    5
    """

    tp: int = 1  # how many ranks share the tensors of a layer
    pp: int = 1  # the number of pipeline stages
    dp: int = 0  # the number of replicas; 0 means as many as there are ranks for
    vpp: int = 1  # how many chunks of layers a stage holds
    order: tuple[str, ...] = (
        _AXES  # the axes, the one whose neighbours have neighbouring ranks first
    )

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.tp * self.pp * max(self.dp, 1)

    def rank(self, **places: int) -> int:
        """Return the rank at a place: tp=1, dp=0, pp=0."""
        found = 0
        stride = 1
        for axis in self.order:
            found += stride * places[axis]
            stride *= max(getattr(self, axis), 1)
        return found

    def __str__(self) -> str:
        return f"tp={self.tp}, pp={self.pp}, dp={self.dp}" + (
            f", vpp={self.vpp}" if self.vpp > 1 else ""
        )


def parse_layout(given: str | Mapping[str, Any], option: str) -> Layout:
    """Return the layout that a text, or an object of a header, means; raise UsageError when it means none.

    >>> str(parse_layout("tp=8, pp=2", "--layout-a"))
    'tp=8, pp=2, dp=0'
    """
    if isinstance(given, Mapping):
        pairs = [(str(key), str(value)) for key, value in given.items()]
    else:
        pairs = [part.partition("=")[::2] for part in str(given).replace(",", " ").split()]
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UsageError(say("error.layout_twice", option=option, text=key))
        if key == "order":
            found[key] = _order(value, option)
        elif (
            key in _SIZES
            and value.isascii()
            and value.isdigit()
            and 0 < len(value) < 7
            and int(value)
        ):
            found[key] = int(value)
        else:
            raise UsageError(
                say("error.layout", option=option, text=f"{key}={value}" if value else key)
            )
    if not found:
        raise UsageError(say("error.layout", option=option, text=str(given)))
    return Layout(**found)


def _order(text: str, option: str) -> tuple[str, ...]:
    words = text.split("-")
    if (
        sorted({*words, *_AXES}) != sorted({*words})
        or len({*words}) != len(words)
        or {*words} - {*_ORDER.split("-")}
    ):
        raise UsageError(say("error.layout_order", option=option, text=text, order=_ORDER))
    return tuple(word for word in words if word in _AXES)


def complete(layout: Layout, ranks: list[Rank], side: str) -> Layout:
    """Return a layout with the number of replicas that ranks leave; raise UsageError when they do not fit it."""
    numbers = rank_numbers(ranks)
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    if len(numbers) != len(ranks):
        raise UsageError(say("error.layout_folders", side=side, shown=shown))
    one = layout.tp * layout.pp
    if not layout.dp:
        if len(numbers) % one:
            sizes = {"tp": layout.tp, "pp": layout.pp, "product": one}
            raise UsageError(
                say("error.layout_product", side=side, **sizes, count=len(numbers), ranks=shown)
            )
        layout = layout._replace(dp=len(numbers) // one)
    missing = [rank for rank in range(layout.world) if rank not in numbers]
    facts = {
        "side": side,
        "layout": str(layout),
        "count": layout.world,
        "last": layout.world - 1,
        "ranks": shown,
    }
    if missing:
        raise UsageError(say("error.layout_missing", rank=missing[0], **facts))
    if len(numbers) > layout.world:
        raise UsageError(say("error.layout_several", found=len(numbers), **facts))
    return layout


def rank_numbers(ranks: list[Rank]) -> dict[int, Rank]:
    """Return the ranks by their numbers; the only rank of a run is rank 0.

    >>> rank_numbers([None]), rank_numbers([0, 1])
    ({0: None}, {0: 0, 1: 1})
    """
    return (
        {0: ranks[0]}
        if len(ranks) == 1
        else {rank: rank for rank in ranks if isinstance(rank, int)}
    )


def header_layout(folder: DumpFolder) -> str | Mapping[str, Any] | None:
    """Return the layout that the header of a dump names; None where it names none. Its entries are not read."""
    try:
        with open_text(os.path.join(folder.path, files.DUMP)) as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return None
    before, found, _ = head.partition('"data"')
    try:
        header = json.loads(before.rstrip().rstrip(",") + "}") if found else json.loads(head)
    except (ValueError, RecursionError):
        return None
    run = header.get("run") if isinstance(header, dict) else None
    given = run.get("layout") if isinstance(run, dict) else None
    return given if isinstance(given, (str, dict)) and given else None
