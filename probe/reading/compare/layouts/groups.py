# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which ranks of two layouts are compared with one another, as a pair of dumps that are read like any others."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.layouts.combine import Combining
from probe.reading.compare.layouts.entries import read_entries, values
from probe.reading.compare.layouts.layout import (
    Layout,
    complete,
    header_layout,
    parse_layout,
    rank_numbers,
)
from probe.reading.compare.layouts.placements import recorded_layout
from probe.reading.compare.layouts.side import Group, Place
from probe.reading.compare.layouts.stages import Renaming, Stages
from probe.reading.dumps.document import Document
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, shortened
from probe.reading.dumps.values import Record, grouped, is_tensor
from probe.store.file_names import Rank

#: the folders of one step
_Ranks = dict[Rank, DumpFolder]
_Folders = tuple[DumpFolder, DumpFolder]
#: pairs of folders, and the labels of those that only one run has
Pairs = tuple[list[_Folders], tuple[list[Any], list[Any]]]


class _Names(NamedTuple):
    """The names of the entries of the stages of one side."""

    renamings: list[Renaming]  # the names of each stage in the whole
    stage_of: dict[str, int] | None  # entry name -> its stage; None where there is one stage

    def stage(self, name: str) -> int | None:
        """Return the pipeline stage of an entry; None where it is in none."""
        return 0 if self.stage_of is None else self.stage_of.get(name)


_ONE_STAGE = _Names([str], None)


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
        self.counts = counts
        self._mapping = mapping
        self._notes = notes
        self._made: dict[int, Document] = {}
        self._names = [_ONE_STAGE, _ONE_STAGE]

    def read(self, side: int) -> Document:
        """Return the document of one side; the other one waits. Raise UsageError when a dump cannot be read."""
        if side not in self._made:
            combining = Combining(self.groups, self._mapping)
            self._made = dict(enumerate(combining.documents()))
            self._made[0].notes[:0] = self._notes
            self._names = [_names(half.stages) for half in combining.sides]
        return self._made.pop(side)

    def stage(self, side: int, name: str) -> int | None:
        """Return the pipeline stage of an entry; None where it is in none."""
        return self._names[side].stage(name)

    def forget(self) -> None:
        """Drop the names of the entries; they are there again after the next ``read``."""
        self._names = [_ONE_STAGE, _ONE_STAGE]

    def records(
        self, side: int, wanted: Iterable[Place]
    ) -> dict[Place, list[tuple[DumpFolder, Record]]]:
        """Return records of tensors on all ranks that share them, with folders; raise UsageError for a broken one."""
        found: dict[Place, list[tuple[DumpFolder, Record]]] = {}
        by_stage = grouped((self.stage(side, place.name), place) for place in wanted)
        for number, stage in enumerate(self.groups[side].stages):
            places = grouped((place.name, place) for place in by_stage.get(number, ()))
            for folder in stage if places else ():
                for name, entry in self._entries_in(folder, side, number, places):
                    leaves = dict(values(entry))
                    for place in places[name]:
                        record = leaves.get(place.place)
                        if is_tensor(record):
                            found.setdefault(place, []).append((folder, record or {}))
        return found

    def entries(self, side: int, name: str) -> list[Any]:
        """Return an entry on all ranks that share its tensors; raise UsageError when a dump cannot be read."""
        number = self.stage(side, name)
        if number is None:
            return []
        found: list[Any] = []
        for folder in self.groups[side].stages[number]:
            found += [entry for _, entry in self._entries_in(folder, side, number, (name,))]
        return found

    def _entries_in(
        self, folder: DumpFolder, side: int, stage: int, wanted: Iterable[str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield entries of a rank, named as in the whole."""
        renamed = self._names[side].renamings[stage]
        for own_name, entry in read_entries(folder, wanted=lambda own: renamed(own) in wanted):
            name = renamed(own_name)
            if name in wanted:
                yield name, entry


def _names(stages: Stages) -> _Names:
    if len(stages.documents) == 1:
        return _ONE_STAGE
    return _Names(stages.renamings, stages.stage_of)


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
    """Return the layouts of two runs; None where none is known."""
    run_a, run_b = runs
    text_a, text_b = given
    is_uneven = len(run_a.ranks) != len(run_b.ranks)
    layout_a = _layout(run_a, text_a, "--layout-a", is_uneven)
    layout_b = _layout(run_b, text_b, "--layout-b", is_uneven)
    if not layout_a and not layout_b:
        return None
    return _completed(run_a, layout_a, "A"), _completed(run_b, layout_b, "B")


def _layout(run: Run, text: str, option: str, is_uneven: bool) -> Layout | None:
    """Return the layout that the user gives, else that of the header, else that of the records; None for none."""
    if text:
        return parse_layout(text, option)
    known = header_layout(run.folders[0]) if run.folders else None
    if not known and is_uneven and len(run.ranks) > 1:
        known = recorded_layout(run.folders[0])
    return parse_layout(known, f"{run.path}: layout") if known else None


def _completed(run: Run, layout: Layout | None, side: str) -> Layout:
    count = len(run.ranks)
    if layout is None and count > 1:
        option = f"--layout-{side.lower()}"
        raise UsageError(say("error.layout_unknown", name=side, count=count, option=option))
    return complete(layout or Layout(), run.ranks, side)


class _Pairing:
    """The pairs of two runs; ``numbers`` are the ranks of each side by their numbers."""

    def __init__(
        self,
        runs: tuple[Run, Run],
        layouts: tuple[Layout, Layout],
        mapping: Mapping[str, str] | None,
    ) -> None:
        self._runs = runs
        self._layouts = layouts
        self._mapping = mapping
        a, b = layouts
        self._tp_equal = a.tp == b.tp
        self._pp_equal = (a.pp, a.vpp) == (b.pp, b.vpp)
        self._dp_equal = a.dp == b.dp
        chunks = max(a.vpp, b.vpp)
        if not self._pp_equal and chunks > 1:
            raise UsageError(say("error.layout_chunks", vpp=chunks))
        self._numbers = [rank_numbers(run.ranks) for run in runs]
        self._notes: list[Sentence] = []
        for side, layout in (("A", a), ("B", b)):
            if layout.dp > 1 and not self._dp_equal:
                first = layout.rank(tp=0, dp=0, pp=0)
                self._notes.append(say("compare.replicas", side=side, count=layout.dp, rank=first))

    def pairs(self, step: str) -> Pairs:
        """Return the pairs and those steps that only one run has."""
        run_a, run_b = self._runs
        is_one_step = _has_one_step(run_a) and _has_one_step(run_b)
        steps_a = _steps(run_a, step, is_one_step)
        steps_b = _steps(run_b, step, is_one_step)
        pairs: list[_Folders] = []
        alone: tuple[list[Any], list[Any]] = ([], [])
        for key in dict.fromkeys([*steps_a, *steps_b]):
            folders_a = steps_a.get(key, {})
            folders_b = steps_b.get(key, {})
            missing_a = self._missing(0, folders_a)
            missing_b = self._missing(1, folders_b)
            if not missing_a and not missing_b:
                pairs += self._of_step(folders_a, folders_b)
                continue
            if missing_b:
                alone[0].append(_alone(folders_a or folders_b, missing_b if folders_b else []))
            if missing_a:
                alone[1].append(_alone(folders_a or folders_b, missing_a if folders_a else []))
        if not pairs:
            shown = {"left": shortened(run_a.steps), "right": shortened(run_b.steps)}
            layout_a, layout_b = map(str, self._layouts)
            raise UsageError(
                say("error.layout_steps", **shown, layout_a=layout_a, layout_b=layout_b)
            )
        return pairs, alone

    def _missing(self, side: int, found: _Ranks) -> list[int]:
        """Return the numbers of the ranks that a step lacks."""
        return [number for number, rank in self._numbers[side].items() if rank not in found]

    def _of_step(self, a: _Ranks, b: _Ranks) -> list[_Folders]:
        layout = self._layouts[0]
        tps = range(layout.tp if self._tp_equal else 1)
        pps = range(layout.pp if self._pp_equal else 1)
        dps = range(layout.dp if self._dp_equal else 1)
        return [self._unit(a, b, tp, pp, dp) for tp, pp, dp in itertools.product(tps, pps, dps)]

    def _unit(self, a: _Ranks, b: _Ranks, tp: int, pp: int, dp: int) -> _Folders:
        group_a = self._group(0, a, tp, pp, dp)
        group_b = self._group(1, b, tp, pp, dp)
        sizes: set[int] = set()
        for layout in self._layouts:
            sizes.update((layout.tp, layout.dp, layout.world))
        counts = sorted(size for size in sizes if size > 1)
        pair = LayoutPair((group_a, group_b), self._mapping, self._notes, counts)
        return _folder(pair, 0), _folder(pair, 1)

    def _group(self, side: int, ranks: _Ranks, tp: int, pp: int, dp: int) -> Group:
        """Return the ranks of a side that make one whole."""
        layout = self._layouts[side]
        tps = [tp] if self._tp_equal else list(range(layout.tp))
        pps = [pp] if self._pp_equal else list(range(layout.pp))
        stages: list[tuple[DumpFolder, ...]] = []
        for own_pp in pps:
            numbers = [layout.rank(tp=own_tp, dp=dp, pp=own_pp) for own_tp in tps]
            own = [self._numbers[side][number] for number in numbers]
            stages.append(tuple(ranks[rank].absolute() for rank in own))
        return Group(tuple(stages))


def _has_one_step(run: Run) -> bool:
    return len({folder.step for folder in run.folders}) == 1


def _steps(run: Run, step: str, is_one_step: bool) -> dict[Any, _Ranks]:
    """Return the folders of each step; where both runs have one step, it is one whatever its number."""
    found: dict[Any, _Ranks] = {}
    for folder in folders(run, step, ""):
        key = (folder.tree, None if is_one_step else folder.step)
        found.setdefault(key, {})[folder.rank] = folder
    return found


def _alone(found: _Ranks, missing: list[int]) -> Sentence:
    """Return how a step is called that is not compared; with the first rank that is missing in it, if one is."""
    number = next(iter(found.values())).step
    step = NOTHING if number is None else say("compare.step", step=number)
    lacks = say("compare.no_rank", rank=missing[0]) if missing else NOTHING
    return say("compare.step_alone", step=step, lacks=lacks)


def _folder(pair: LayoutPair, side: int) -> DumpFolder:
    """Return the folder that stands for the ranks of one side."""
    group = pair.groups[side]
    first = group.stages[0][0]
    return first._replace(rank=_label(group), source=LayoutSource(pair, side))


def _label(group: Group) -> Rank:
    """Return the rank of a group of one, else its ranks as a text: "0-7"."""
    ranks = group.ranks
    first = ranks[0]
    if len(ranks) == 1:
        return first  # type: ignore[no-any-return]  # a dump may have any rank
    if ranks == list(range(first, first + len(ranks))):
        return f"{first}-{ranks[-1]}"
    return ",".join(map(str, ranks))
