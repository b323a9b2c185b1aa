# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.check``: what differs between two runs, or two checkpoints, the most important first."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from probe.findings.sentence import ENGLISH, Sentence, say
from probe.reading.check.circumstances import (
    check_cell_values,
    check_cells,
    check_circumstances,
    check_notes,
    check_optimizers,
    check_seeds,
)
from probe.reading.check.data import check_data
from probe.reading.check.difference import Difference, Importance, only
from probe.reading.check.parameters import ParameterCheck
from probe.reading.check.snapshot import RunSnapshot, read_snapshots
from probe.reading.dumps import text

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]

#: the most lines of the answer
_LINES = 25
#: above this part of other values, a change of the structure is taken for their cause
_MANY = 0.5


class Check:
    """The result of a check.

    Attributes:
        differences: what differs, the most important first.
        remarks: what the reader should know besides.

    Example::

        check = probe.check("golden", "mine")
        assert check.ok, check
    """

    def __init__(
        self, paths: tuple[str, str], differences: Sequence[Difference], remarks: Sequence[Sentence], agreed: Sentence
    ) -> None:
        self.paths, self.differences, self.remarks = paths, list(differences), list(remarks)
        self._agreed = agreed

    @property
    def ok(self) -> bool:
        """Whether nothing differs. If something does, a test of pytest prints it."""
        if self.differences and "PYTEST_CURRENT_TEST" in os.environ:
            print(self)
        return not self.differences

    def lines(self, language: str = ENGLISH) -> list[str]:
        """Return one line for each difference."""
        return [item.text(language) for item in self.differences]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values of JSON."""
        return {
            "a": self.paths[0], "b": self.paths[1], "ok": not self.differences,
            "remarks": list(map(str, self.remarks)), "differences": [item.to_dict() for item in self.differences],
        }  # fmt: skip

    def text(self, language: str) -> str:
        """Return the result in at most 25 lines, in a language: "en" or "zh"."""
        said = self.lines(language) or [self._agreed.text(language)]
        notes = [say("check.note", note=remark).text(language) for remark in self.remarks[:3]]
        room = _LINES - 2 - len(notes)
        if len(said) > room:
            said = [*said[: room - 1], say("check.more_lines", count=len(said) - room + 1).text(language)]
        head = [f"A: {self.paths[0]}", f"B: {self.paths[1]}"]
        return "\n".join([*map(text.safe, head), *said, *map(text.safe, notes)])

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def __repr__(self) -> str:
        first = f"; first: {self.differences[0]}" if self.differences else ""
        return f"<Check: {len(self.differences)} differences{first}>"


def check(a: Path, b: Path) -> Check:
    """Compare the circumstances of two runs, or two checkpoints: what differs, the most important first.

    Args:
        a: A, the golden one: a dump_path, a step or rank folder in it, a run.json, or a checkpoint (.ckpt,
            .safetensors, .npz, .pt, .bin).
        b: B, yours.

    Raises:
        UsageError: when there is no snapshot, or a file cannot be read.

    Example::

        assert probe.check("golden", "mine").ok
    """
    from probe.reading.check.weights.check import WeightCheck, read_weights
    from probe.reading.check.weights.kinds import is_checkpoint

    paths = os.fspath(a), os.fspath(b)
    if any(map(is_checkpoint, paths)):
        comparing = WeightCheck(*map(read_weights, paths))
        return Check(paths, list(comparing.differences()), comparing.remarks, comparing.agreed)
    return check_snapshots(paths, read_snapshots(a), read_snapshots(b))


def check_snapshots(paths: tuple[str, str], a: list[RunSnapshot], b: list[RunSnapshot]) -> Check:
    """Compare the snapshots of two runs, rank by rank."""
    if len(a) == len(b) == 1:
        pairs = [(a[0], b[0])]
        alone: list[Difference] = []
    else:
        by_rank = {snapshot.rank: snapshot for snapshot in b}
        pairs = [(snapshot, by_rank[snapshot.rank]) for snapshot in a if snapshot.rank in by_rank]
        ranks = [[snapshot.rank for snapshot in side] for side in (a, b)]
        alone = [
            Difference(Importance.CIRCUMSTANCES, say("check.which_ranks"), only(map(str, rest), side))
            for side, rest in (("A", [r for r in ranks[0] if r not in ranks[1]]),
                               ("B", [r for r in ranks[1] if r not in ranks[0]])) if rest
        ]  # fmt: skip
    merged: dict[Difference, list[int | None]] = {}
    for x, y in pairs:
        for difference in differences(x, y):
            merged.setdefault(difference, []).append(x.rank)
    found = [dataclasses.replace(item, ranks=tuple(ranks) if len(pairs) > 1 else ()) for item, ranks in merged.items()]
    remarks = [side.damage for pair in pairs for side in pair if side.damage]
    remarks += [say("check.no_parameters", side=side) for side, run in zip("AB", (a, b))
                if not any(snapshot.parameters for snapshot in run)]  # fmt: skip
    for side, run in zip("AB", (a, b)):
        has_model, has_batches = any(item.parameters for item in run), any(item.inputs for item in run)
        if has_model and not has_batches:
            remarks.append(say("check.no_batches", side=side))
    return Check(paths, [*found, *alone], remarks, _agreed(pairs))


def _agreed(pairs: list[tuple[RunSnapshot, RunSnapshot]]) -> Sentence:
    if not pairs:
        return say("check.nothing_compared")
    parameters = sum(len(x.parameters) for x, _ in pairs)
    steps = len({*pairs[0][0].inputs} & {*pairs[0][1].inputs})
    is_known = parameters and steps and not any(side.damage for pair in pairs for side in pair)
    key = "check.same_experiment" if is_known else "check.same_known"
    return say(key, parameters=parameters, steps=steps)


def differences(a: RunSnapshot, b: RunSnapshot) -> list[Difference]:
    """Return how two runs differ, the most important first.

    If the structure differs and with it most values, the structure comes first: no other values could be expected.
    """
    parameters = ParameterCheck(a, b)
    values = list(parameters.values())
    structure = [*check_cells(a, b), *parameters.structure()]
    data = list(check_data(a, b))
    rest = [
        *check_cell_values(a, b),
        *check_optimizers(a, b, parameters.renamed),
        *check_notes(a, b),
        *check_seeds(a, b),
        *check_circumstances(a, b),
    ]
    if structure and parameters.share_of_other_values > _MANY:
        return [*structure, *values, *data, *rest]
    return [*values, *data, *structure, *rest]


def first_lines(a: str, b: str, most: int = 2) -> list[Sentence]:
    """Return the first differences of two rank folders that have a snapshot; nothing where one cannot be read."""
    from probe.errors import UsageError
    from probe.store import file_names

    files = [os.path.join(folder, file_names.RUN) for folder in (a, b)]
    try:
        found = check_snapshots((a, b), read_snapshots(files[0]), read_snapshots(files[1])).differences
    except UsageError:
        return []
    return [item.line for item in found[:most]]
