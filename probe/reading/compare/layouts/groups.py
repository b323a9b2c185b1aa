# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which ranks of two layouts are compared with one another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.layouts.layout import (
    Layout,
    complete,
    header_layout,
    parse_layout,
    rank_numbers,
)
from probe.reading.compare.layouts.layout_pair import LayoutPair, LayoutSource
from probe.reading.compare.layouts.placements import recorded_layout
from probe.reading.compare.layouts.side import Group
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, shortened
from probe.store.file_names import Rank

#: the folders of one step
_Ranks = dict[Rank, DumpFolder]
_Folders = tuple[DumpFolder, DumpFolder]
#: pairs of folders, and the labels of those that only one run has
Pairs = tuple[list[_Folders], tuple[list[Any], list[Any]]]


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


class _At(NamedTuple):
    """A place along the axes; that of an axis in which the layouts differ is not used, but for ``dp``."""

    tp: int
    pp: int
    dp: int


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
        self._pp_equal = a.pp == b.pp and a.vpp == b.vpp
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
        alone_a: list[Any] = []
        alone_b: list[Any] = []
        for key in {**steps_a, **steps_b}:
            folders_a = steps_a.get(key, {})
            folders_b = steps_b.get(key, {})
            missing_a = self._missing(0, folders_a)
            missing_b = self._missing(1, folders_b)
            if not missing_a and not missing_b:
                pairs += self._of_step(folders_a, folders_b)
                continue
            if missing_b:
                alone_a.append(_alone(folders_a or folders_b, missing_b if folders_b else []))
            if missing_a:
                alone_b.append(_alone(folders_a or folders_b, missing_a if folders_a else []))
        if not pairs:
            layout_a, layout_b = self._layouts
            raise UsageError(
                say(
                    "error.layout_steps",
                    left=shortened(run_a.steps),
                    right=shortened(run_b.steps),
                    layout_a=str(layout_a),
                    layout_b=str(layout_b),
                )
            )
        return pairs, (alone_a, alone_b)

    def _missing(self, side: int, found: _Ranks) -> list[int]:
        """Return the numbers of the ranks that a step lacks."""
        return [number for number, rank in self._numbers[side].items() if rank not in found]

    def _of_step(self, a: _Ranks, b: _Ranks) -> list[_Folders]:
        """Return the pairs of a step: one for each place along the axes in which both layouts are equal."""
        layout, _ = self._layouts
        tps = range(layout.tp if self._tp_equal else 1)
        pps = range(layout.pp if self._pp_equal else 1)
        dps = range(layout.dp if self._dp_equal else 1)
        places = itertools.starmap(_At, itertools.product(tps, pps, dps))
        return [self._unit(a, b, at) for at in places]

    def _unit(self, a: _Ranks, b: _Ranks, at: _At) -> _Folders:
        groups = (self._group(0, a, at), self._group(1, b, at))
        pair = LayoutPair(groups, self._mapping, self._notes, self._counts())
        return _folder(pair, 0), _folder(pair, 1)

    def _counts(self) -> list[int]:
        """Return the numbers of ranks that share something in one of the layouts."""
        sizes: set[int] = set()
        for layout in self._layouts:
            sizes.update((layout.tp, layout.dp, layout.world))
        return sorted(size for size in sizes if size > 1)

    def _group(self, side: int, ranks: _Ranks, at: _At) -> Group:
        """Return the ranks of a side that make one whole."""
        layout = self._layouts[side]
        numbers = self._numbers[side]
        tps = [at.tp] if self._tp_equal else list(range(layout.tp))
        pps = [at.pp] if self._pp_equal else list(range(layout.pp))
        stages: list[tuple[DumpFolder, ...]] = []
        for pp in pps:
            own = [numbers[layout.rank(tp=tp, dp=at.dp, pp=pp)] for tp in tps]
            folders_of_stage = [ranks[rank].absolute() for rank in own]
            stages.append(tuple(folders_of_stage))
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
