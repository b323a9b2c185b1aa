# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.check``: what differs between two runs, or two checkpoints, the most important first."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.reading.check import cells, circumstances, optimizers
from probe.reading.check.batches import BatchCheck
from probe.reading.check.difference import Difference, Importance, listed, only
from probe.reading.check.outside import OutsideCheck, check_outside
from probe.reading.check.parameters import ParameterCheck
from probe.reading.check.snapshot import RunSnapshot, read_snapshots
from probe.reading.dumps import text
from probe.reading.dumps.folders import find_folders
from probe.reading.dumps.run import shortened
from probe.store import file_names
from probe.store.file_names import Rank

#: the most lines of the answer
_LINES = 25
#: the dumps of so many ranks are read
_MOST_RANKS = 8
#: above this part of other values, a change of the structure is taken for their cause
_MANY = 0.5


class RankPair(NamedTuple):
    """The snapshots of one rank, and how their batches compare."""

    a: RunSnapshot
    b: RunSnapshot
    batches: BatchCheck


class Check:
    """The result of a check.

    Attributes:
        differences: what differs, the most important first.
        remarks: what the reader should know besides.
        unknown: the steps and ranks that one side alone has a dump of.

    Example::

        check = probe.check("golden", "mine")
        assert check.ok, check
    """

    def __init__(
        self,
        paths: tuple[str, str],
        differences: Sequence[Difference],
        remarks: Sequence[Sentence],
        agreed: Sentence,
        unknown: Sequence[Sentence] = (),
    ) -> None:
        self.paths = paths
        self.differences = list(differences)
        self.remarks = list(remarks)
        self.unknown = list(unknown)
        self._agreed = agreed

    @property
    def status(self) -> int:
        """The exit status: 1 where something differs, 2 where a part cannot be known, else 0."""
        return 1 if self.differences else 2 * bool(self.unknown)

    @property
    def ok(self) -> bool:
        """Whether nothing differs, and all is known. If not, a test of pytest prints it."""
        if self.status and "PYTEST_CURRENT_TEST" in os.environ:
            print(self)
        return self.status == 0

    def lines(self, language: str = ENGLISH) -> list[str]:
        """Return one line for each difference."""
        return [item.text(language) for item in self.differences]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values of JSON."""
        return {
            "a": self.paths[0],
            "b": self.paths[1],
            "ok": self.status == 0,
            "remarks": list(map(str, self.remarks)),
            "unknown": list(map(str, self.unknown)),
            "differences": [item.to_dict() for item in self.differences],
        }

    def text(self, language: str) -> str:
        """Return the result in at most 25 lines, in a language: "en" or "zh"."""
        path_a, path_b = self.paths
        said = self.lines(language) or [self._agreed.text(language)]
        remarks = [say("check.note", note=remark) for remark in self.remarks[:3]]
        notes = [*self.unknown, *remarks]
        room = _LINES - 2 - len(notes)
        hidden = len(said) - room
        if hidden > 0:
            more = say("check.more_lines", count=hidden + 1)
            said = said[: room - 1]
            said.append(more.text(language))
        head = [text.safe(f"A: {path_a}"), text.safe(f"B: {path_b}")]
        foot = [text.safe(note.text(language)) for note in notes]
        return "\n".join([*head, *said, *foot])

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def __repr__(self) -> str:
        first = f"; first: {self.differences[0]}" if self.differences else ""
        return f"<Check: {len(self.differences)} differences{first}>"


def check(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> Check:
    """Compare the circumstances of two runs, or two checkpoints: what differs, the most important first.

    A, the golden one, and B are paths as ``probe.check`` takes them. Raise UsageError when there is no snapshot, or a
    file cannot be read.
    """
    from probe.reading.check.weights.check import WeightCheck
    from probe.reading.check.weights.kinds import is_checkpoint
    from probe.reading.check.weights.sources import read_weights

    path_a = os.fspath(a)
    path_b = os.fspath(b)
    paths = (path_a, path_b)
    if is_checkpoint(path_a) or is_checkpoint(path_b):
        weights = WeightCheck(read_weights(path_a), read_weights(path_b))
        return Check(paths, list(weights.differences()), weights.remarks, weights.agreed)
    absent = list(_absent(path_a, path_b))
    return check_snapshots(paths, read_snapshots(a), read_snapshots(b), absent, has_dumps=True)


def _absent(a: str, b: str) -> Iterator[Sentence]:
    """Yield the steps, and the ranks of common steps, that one side has a dump of, and the other has not."""
    dumps_a = _dumps_of(a)
    dumps_b = _dumps_of(b)
    has_ranks = len(_ranks(dumps_a)) > 1 or len(_ranks(dumps_b)) > 1
    for side, other, own, others in (("A", "B", dumps_a, dumps_b), ("B", "A", dumps_b, dumps_a)):
        own_steps = _steps(own)
        missing = _steps(others) - own_steps
        if missing:
            shown = shortened(sorted(missing))
            yield say("gap.steps_of_side", side=side, other=other, steps=shown)
        ranks = {str(rank) for step, rank in others - own if step in own_steps}
        if ranks and has_ranks:
            shown = shortened(sorted(ranks))
            yield say("gap.ranks_of_side", side=side, other=other, ranks=shown)


def _steps(dumps: set[tuple[int, Rank]]) -> set[int]:
    return {step for step, _ in dumps}


def _ranks(dumps: set[tuple[int, Rank]]) -> set[Rank]:
    return {rank for _, rank in dumps}


def _dumps_of(path: str) -> set[tuple[int, Rank]]:
    """Return step and rank of the dumps in a folder; none where it has no dump, or is a single step or rank."""
    try:
        folders = find_folders(path) if os.path.isdir(path) else []
    except UsageError:
        return set()
    return {(folder.step, folder.rank) for folder in folders if folder.step is not None}


def check_snapshots(
    paths: tuple[str, str],
    a: list[RunSnapshot],
    b: list[RunSnapshot],
    absent: Sequence[Sentence] = (),
    has_dumps: bool = False,
) -> Check:
    """Compare the snapshots of two runs, rank by rank.

    Args:
        paths: the folders of A and B.
        a: the snapshots of A.
        b: the snapshots of B.
        absent: the gaps of one side.
        has_dumps: whether the dumps beside them are read too, of the first ranks.
    """
    pairs, alone = _paired(a, b)
    # a difference that several ranks have is one
    ranks_of: dict[Difference, list[int | None]] = {}
    unknown = list(absent)
    checks: list[OutsideCheck | None] = []
    for pair in pairs:
        items = differences(pair)
        if has_dumps and len(checks) < _MOST_RANKS:
            checks.append(check_outside(pair.a, pair.b, pair.batches))
            if all(item.importance is not Importance.DATA for item in items):
                before = sum(item.importance <= Importance.DATA for item in items)
                items[before:before] = _outside_items(checks[-1])  # else it may be the same value
            if not items:
                unknown += _outside_gaps(checks[-1])
        for item in items:
            ranks_of.setdefault(item, []).append(pair.a.rank)
    found = list(ranks_of)
    if len(pairs) > 1:
        found = [dataclasses.replace(item, ranks=tuple(own)) for item, own in ranks_of.items()]
    unknown = list(dict.fromkeys(unknown))
    remarks = [*_remarks_on_pairs(pairs), *_unknown_content(a, b)]
    agreed = _agreed(pairs, checks, not unknown)
    return Check(paths, [*found, *alone], remarks, agreed, unknown)


def _outside_items(found: OutsideCheck | None) -> list[Difference]:
    """Return the value from outside that differs, as a difference."""
    if found is None or not found.difference:
        return []
    said = say("check.batch", step=found.step, said=found.difference)
    return [Difference(Importance.DATA, say("check.outside_subject"), said)]


def _outside_gaps(found: OutsideCheck | None) -> list[Sentence]:
    return [] if found is None or not found.unknown else [found.unknown]


def _paired(a: list[RunSnapshot], b: list[RunSnapshot]) -> tuple[list[RankPair], list[Difference]]:
    """Return the snapshots of equal ranks, and the ranks that one side alone has."""
    if len(a) == len(b) == 1:
        return [_pair(a[0], b[0])], []
    of_a = {snapshot.rank: snapshot for snapshot in a}
    of_b = {snapshot.rank: snapshot for snapshot in b}
    pairs = [_pair(snapshot, of_b[rank]) for rank, snapshot in of_a.items() if rank in of_b]
    alone = []
    for side, mine, theirs in (("A", of_a, of_b), ("B", of_b, of_a)):
        names = [str(rank) for rank in mine if rank not in theirs]
        if names:
            said = only(names, side)
            alone.append(Difference(Importance.CIRCUMSTANCES, say("check.which_ranks"), said))
    return pairs, alone


def _pair(a: RunSnapshot, b: RunSnapshot) -> RankPair:
    return RankPair(a, b, BatchCheck(a, b))


def _remarks_on_pairs(pairs: Sequence[RankPair]) -> Iterator[Sentence]:
    """Yield the steps that can be compared if one run goes on from the other, values that calls made, and damage."""
    offers = (optimizers.same_update(pair.a, pair.b) for pair in pairs)
    offer = next((offer for offer in offers if offer), NOTHING)
    if offer:
        yield offer
    for pair in pairs:
        if pair.batches.made:
            yield say("check.made", names=listed(pair.batches.made))
    for pair in pairs:
        yield from (side.damage for side in (pair.a, pair.b) if side.damage)


def _unknown_content(a: list[RunSnapshot], b: list[RunSnapshot]) -> Iterator[Sentence]:
    """Yield the sides without parameters, then those with parameters and without batches."""
    without_batches = []
    for side, run in (("A", a), ("B", b)):
        if not any(snapshot.parameters for snapshot in run):
            yield say("check.no_parameters", side=side)
        elif not any(snapshot.inputs for snapshot in run):
            without_batches.append(side)
    for side in without_batches:
        yield say("check.no_batches", side=side)


def _agreed(
    pairs: Sequence[RankPair], checks: Sequence[OutsideCheck | None], is_whole: bool
) -> Sentence:
    """Return the sentence for no difference; ``is_whole``: no step, rank or value is unknown."""
    if not pairs:
        return say("check.nothing_compared")
    parameters = sum(len(pair.a.parameters) for pair in pairs)
    steps = len(pairs[0].batches.steps)
    has_damage = any(pair.a.damage or pair.b.damage for pair in pairs)
    has_arguments = bool(steps) and all(pair.batches.has_arguments() for pair in pairs)
    known = [found for found in checks if found is not None]
    has_outside = bool(known) and len(known) == len(checks)
    ends = [found.last for found in known if found.last]
    is_compared = has_arguments and has_outside and not ends and len(checks) == len(pairs)
    is_known = is_whole and parameters and is_compared and not has_damage
    if has_outside:
        count = sum(found.agreeing for found in known)
        until = say("check.outside_until", name=ends[0]) if ends else NOTHING
        if not ends and len(checks) < len(pairs):
            until = say("check.outside_ranks", count=len(checks))
        outside = say("check.outside_agrees", count=count, step=known[0].step, until=until)
    else:
        outside = say("check.outside_unknown" if has_arguments else "check.labels_unknown")
    return say(
        "check.same_experiment" if is_known else "check.same_known",
        parameters=parameters,
        batches=say("check.arguments_of" if has_arguments else "check.inputs_of", steps=steps),
        outside=outside,
        file=file_names.RUN,
        ranks=len(pairs),
    )


def differences(pair: RankPair) -> list[Difference]:
    """Return how the runs of a pair differ, the most important first."""
    a = pair.a
    b = pair.b
    parameters = ParameterCheck(a, b)
    values = list(parameters.values())
    structure = [*cells.check_cells(a, b), *parameters.structure()]
    data = list(pair.batches.differences())
    rest = [
        *cells.check_cell_values(a, b),
        *optimizers.check_optimizers(a, b, parameters.matched.renamed),
        *circumstances.check_notes(a, b),
        *circumstances.check_seeds(a, b),
        *circumstances.check_circumstances(a, b),
    ]
    if structure and parameters.share_of_other_values > _MANY:  # no other values could be expected
        return [*structure, *values, *data, *rest]
    return [*values, *data, *structure, *rest]


def first_lines(a: str, b: str, most: int = 2) -> list[Sentence]:
    """Return the first differences of two rank folders that have a snapshot; nothing where one cannot be read.

    If B goes on from a checkpoint of A, the steps that can be compared stand behind them.
    """
    try:
        snapshots_a = read_snapshots(os.path.join(a, file_names.RUN))
        snapshots_b = read_snapshots(os.path.join(b, file_names.RUN))
        found = check_snapshots((a, b), snapshots_a, snapshots_b).differences
    except UsageError:
        return []
    lines = [item.line for item in found[:most]]
    offers = [optimizers.same_update(x, y) for x, y in zip(snapshots_a[:1], snapshots_b)]
    return [*lines, *filter(None, offers)]
