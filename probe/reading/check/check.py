# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.check``: what differs between two runs, or two checkpoints, the most important first."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, clauses, say
from probe.reading.check import difference
from probe.reading.check.difference import Difference, Importance, are_equal, listed, only, pair
from probe.reading.check.parameters import ParameterCheck, is_tensor, values_differ
from probe.reading.check.snapshot import Described, RunSnapshot, read_snapshots
from probe.reading.dumps import text
from probe.reading.dumps.folders import find_folders
from probe.reading.dumps.run import shortened
from probe.reading.dumps.text import shape
from probe.store import file_names
from probe.store.file_names import Rank

#: the most lines of the answer
_LINES = 25
#: above this part of other values, a change of the structure is taken for their cause
_MANY = 0.5


def check_data(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how the batches of two runs differ."""
    steps = sorted({*a.inputs} & {*b.inputs})
    differ = [step for step in steps if _first(a.inputs[step], b.inputs[step])]
    if not differ:
        if not steps and a.inputs and b.inputs:
            said = say(
                "check.no_common_step",
                a_first=min(a.inputs),
                a_last=max(a.inputs),
                b_first=min(b.inputs),
                b_last=max(b.inputs),
            )
            yield _difference(said)
        return
    order = _order(a, b, steps)
    if order:
        yield _difference(say("check.batches_moved", steps=order))
        return
    first = differ[0]
    if len(steps) == 1:
        many = say("check.only_step_recorded")
    elif len(differ) == 1:
        many = say("check.only_step", step=first)
    else:
        many = say("check.steps_differ", count=len(differ), all=len(steps))
    batch = say("check.batch", step=first, said=_first(a.inputs[first], b.inputs[first]))
    yield _difference(clauses(batch, many, _parts(a, b, first)))


def _difference(said: Sentence) -> Difference:
    return Difference(Importance.DATA, say("check.data"), said)


def _first(a: Described, b: Described) -> Sentence:
    """Return how the first value of two batches differs, if one does."""
    for place in {**a, **b}:
        if place not in a or place not in b:
            return say("check.input_only", place=place, side="A" if place in a else "B")
        x = a[place]
        y = b[place]
        if is_tensor(x) and is_tensor(y):
            if x["shape"] != y["shape"]:
                return say(
                    "check.input_shape",
                    place=place,
                    values=pair(shape(x["shape"]), shape(y["shape"])),
                )
            if x.get("dtype") != y.get("dtype"):
                return say(
                    "check.input_dtype", place=place, values=pair(x.get("dtype"), y.get("dtype"))
                )
            if values_differ(x, y):
                same = x.get("sum") is not None and x["sum"] == y.get("sum")
                order = say("check.input_order") if same else NOTHING
                return say(
                    "check.input",
                    place=place,
                    dtype=str(x.get("dtype")),
                    shape=shape(x["shape"]),
                    order=order,
                )
        elif not are_equal(x, y):
            return say("check.input_value", place=place, values=pair(x, y))
    return NOTHING


def _parts(a: RunSnapshot, b: RunSnapshot, step: int) -> Sentence:
    """Return which inputs of a step agree, if some do."""
    places = [place for place in a.inputs[step] if place in b.inputs[step]]
    equal = [
        place
        for place in places
        if not _first({place: a.inputs[step][place]}, {place: b.inputs[step][place]})
    ]
    return say("check.input_agrees", places=listed(equal)) if equal and len(places) > 1 else NOTHING


def _order(a: RunSnapshot, b: RunSnapshot, steps: list[int]) -> Any:
    """Return where the batches of A are in B, if both have the same ones in another order."""
    keys = [{step: _key(run.inputs[step]) for step in steps} for run in (a, b)]
    if Counter(keys[0].values()) != Counter(keys[1].values()):
        left, right = (Counter(map(_key, run.inputs.values())) for run in (a, b))
        shift = _shift(a, b)
        return (
            say("check.step_shift", shift=shift)
            if shift and sum((left & right).values()) > 1
            else NOTHING
        )
    places = {key: step for step, key in keys[1].items()}
    moved = [(step, places[key]) for step, key in keys[0].items() if places[key] != step]
    return listed(say("check.step_moved", step=step, other=other) for step, other in moved)


def _shift(a: RunSnapshot, b: RunSnapshot) -> int:
    """Return by how many steps the batches of B come later, where it is one number for all; else 0."""
    places = {_key(value): step for step, value in b.inputs.items()}
    shifts = Counter(
        places[key] - step
        for step, key in ((s, _key(v)) for s, v in a.inputs.items())
        if key in places
    )
    return next(iter(shifts)) if len(shifts) == 1 else 0


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


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
        said = self.lines(language) or [self._agreed.text(language)]
        notes = [gap.text(language) for gap in self.unknown]
        notes += [say("check.note", note=remark).text(language) for remark in self.remarks[:3]]
        room = _LINES - 2 - len(notes)
        if len(said) > room:
            said = [
                *said[: room - 1],
                say("check.more_lines", count=len(said) - room + 1).text(language),
            ]
        head = [f"A: {self.paths[0]}", f"B: {self.paths[1]}"]
        return "\n".join([*map(text.safe, head), *said, *map(text.safe, notes)])

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
    from probe.reading.check.weights.check import WeightCheck, read_weights
    from probe.reading.check.weights.kinds import is_checkpoint

    path_a = os.fspath(a)
    path_b = os.fspath(b)
    paths = path_a, path_b
    if any(map(is_checkpoint, paths)):
        comparing = WeightCheck(*map(read_weights, paths))
        return Check(paths, list(comparing.differences()), comparing.remarks, comparing.agreed)
    return check_snapshots(
        paths, read_snapshots(a), read_snapshots(b), list(_absent(path_a, path_b))
    )


def _absent(a: str, b: str) -> Iterator[Sentence]:
    """Yield the steps, and the ranks of common steps, that one side has a dump of, and the other has not."""
    of_a, of_b = (_dumps_of(path) for path in (a, b))
    is_several = any(len({rank for _, rank in side}) > 1 for side in (of_a, of_b))
    for side, other, own, others in (("A", "B", of_a, of_b), ("B", "A", of_b, of_a)):
        steps = {step for step, _ in own}
        known = {step for step, _ in others}
        if missing := sorted(known - steps):
            yield say("gap.steps_of_side", side=side, other=other, steps=shortened(missing))
        ranks = sorted({str(rank) for step, rank in others - own if step in steps})
        if ranks and is_several:
            yield say("gap.ranks_of_side", side=side, other=other, ranks=shortened(ranks))


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
) -> Check:
    """Compare the snapshots of two runs, rank by rank; ``absent`` has the gaps of one side."""
    if len(a) == len(b) == 1:
        pairs = [(a[0], b[0])]
        alone: list[Difference] = []
    else:
        of_a, of_b = ({snapshot.rank: snapshot for snapshot in side} for side in (a, b))
        pairs = [(snapshot, of_b[rank]) for rank, snapshot in of_a.items() if rank in of_b]
        rest = [
            [str(rank) for rank in mine if rank not in theirs]
            for mine, theirs in ((of_a, of_b), (of_b, of_a))
        ]
        alone = [
            Difference(Importance.CIRCUMSTANCES, say("check.which_ranks"), only(names, side))
            for side, names in zip("AB", rest)
            if names
        ]
    merged: dict[Difference, list[int | None]] = {}
    for x, y in pairs:
        for item in differences(x, y):
            merged.setdefault(item, []).append(x.rank)
    found = [
        dataclasses.replace(item, ranks=tuple(ranks) if len(pairs) > 1 else ())
        for item, ranks in merged.items()
    ]
    offer = next(filter(None, (difference.same_update(*pair) for pair in pairs)), NOTHING)
    remarks = [
        *([offer] if offer else []),
        *(side.damage for pair in pairs for side in pair if side.damage),
    ]
    known = [
        (side, any(it.parameters for it in run), any(it.inputs for it in run))
        for side, run in zip("AB", (a, b))
    ]
    remarks += [
        say("check.no_parameters", side=side) for side, has_model, _ in known if not has_model
    ]
    remarks += [
        say("check.no_batches", side=side)
        for side, has_model, has_data in known
        if has_model and not has_data
    ]
    return Check(paths, [*found, *alone], remarks, _agreed(pairs, not absent), absent)


def _agreed(pairs: list[tuple[RunSnapshot, RunSnapshot]], is_whole: bool) -> Sentence:
    if not pairs:
        return say("check.nothing_compared")
    parameters = sum(len(x.parameters) for x, _ in pairs)
    steps = len({*pairs[0][0].inputs} & {*pairs[0][1].inputs})
    is_known = (
        is_whole
        and parameters
        and steps
        and not any(side.damage for pair in pairs for side in pair)
    )
    key = "check.same_experiment" if is_known else "check.same_known"
    return say(key, parameters=parameters, steps=steps, file=file_names.RUN, ranks=len(pairs))


def differences(a: RunSnapshot, b: RunSnapshot) -> list[Difference]:
    """Return how two runs differ, the most important first."""
    parameters = ParameterCheck(a, b)
    values = list(parameters.values())
    structure = [*difference.check_cells(a, b), *parameters.structure()]
    data = list(check_data(a, b))
    rest = [
        *difference.check_cell_values(a, b),
        *difference.check_optimizers(a, b, parameters.matched.renamed),
        *difference.check_notes(a, b),
        *difference.check_seeds(a, b),
        *difference.check_circumstances(a, b),
    ]
    if structure and parameters.share_of_other_values > _MANY:  # no other values could be expected
        return [*structure, *values, *data, *rest]
    return [*values, *data, *structure, *rest]


def first_lines(a: str, b: str, most: int = 2) -> list[Sentence]:
    """Return the first differences of two rank folders that have a snapshot; nothing where one cannot be read.

    If B goes on from a checkpoint of A, the steps that can be compared stand behind them.
    """
    try:
        sides = [read_snapshots(os.path.join(folder, file_names.RUN)) for folder in (a, b)]
        found = check_snapshots((a, b), sides[0], sides[1]).differences
    except UsageError:
        return []
    offers = [difference.same_update(x, y) for x, y in zip(*sides)]
    return [*(item.line for item in found[:most]), *filter(None, offers[:1])]
