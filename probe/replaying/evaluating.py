# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Judges one call: golden outputs, outputs of this machine, verdicts. It needs MindSpore and numpy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from probe.findings.sentence import NOTHING, clauses, say
from probe.replaying.described import CannotReplayError, Made, ReplayResult
from probe.replaying.functions import OPERATORS
from probe.replaying.judging import (
    FORMATS,
    OK,
    WORSE,
    WRONG,
    Array,
    Judged,
    Operation,
    ReplayedOutput,
    judge,
)
from probe.replaying.making import Maker

_MOVES, _ELEMENTWISE, _TAILS, _INDICES = (
    OPERATORS[kind] for kind in ("moves", "elementwise", "tails", "indices")
)
#: outputs that a kernel keeps for its own gradient: each device puts other values there, or leaves them unwritten
RESERVED = {"batchnorm": ("output.3", "output.4")}
_SMALL = 4096  # tensors of fewer elements are looked at again
_COPIES = 16  # so many copies side by side
_INEXACT = 64.0  # fewer roundings of error here are no remark


def plain_name(key: str) -> str:
    """Return the name of an operation without its module, underscores and the marks of operators.

    >>> plain_name("Tensor.__iadd__"), plain_name("Mint.add_"), plain_name("Primitive.act.GeLU")
    ('add', 'add', 'gelu')
    """
    word = key.rpartition(".")[2]
    if word in ("__getitem__", "T"):
        return word
    if word.startswith("__") and word.endswith("__"):
        word = word[2:-2]
        word = {"truediv": "div", "rtruediv": "div", "itruediv": "div", "matmul": "matmul"}.get(
            word, word
        )
        bare = word[1:]
        word = (
            bare
            if word[:1] in "ir"
            and bare in ("add", "sub", "mul", "pow", "floordiv", "mod", "matmul")
            else word
        )
    return word if word in _MOVES else word.rstrip("_").lower()


class Evaluation:
    """One call in one direction, whose outputs a ``Maker`` makes."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._call = maker.call
        self._expected = [
            maker.load(leaf) if leaf and "array" in leaf else None for leaf in maker.call.expected
        ]
        #: place, recorded, golden values and those made here of each output, after ``judge``
        self.arrays: list[tuple[str, Array, Array, Array]] = []

    def judge(self) -> ReplayResult:
        """Return the result; raise CannotReplayError when it cannot be made again."""
        maker = self._maker
        given = self._call.here
        here, as_list = maker.given(given) if given else maker.here()
        golden, shaken, label, is_exact = maker.golden(here, as_list)
        places = [self._call.places[number] for number in maker.numbers]
        if len(golden) != len(places) or len(here) != len(places):
            raise CannotReplayError("replay.values", here=len(here), recorded=len(places))
        reserved = () if maker.sens else RESERVED.get(plain_name(self._call.key), ())
        judged = [
            self._judged(place, number, outcomes, is_exact)
            for number, (place, *outcomes) in enumerate(zip(places, golden, here, shaken))
            if self._expected[maker.numbers[number]] is not None
            and outcomes[0] is not None
            and outcomes[1] is not None
            if place not in reserved
        ]
        if not judged:
            raise CannotReplayError("replay.no_array")
        verdict = next(
            word for word in (WRONG, WORSE, OK) if any(item.verdict == word for item in judged)
        )
        return ReplayResult(verdict, NOTHING, label, judged)

    def here(self, save: Callable[[Array], str]) -> Made:
        """Return the outputs of the call here, by ``save``, for a process on the CPU, or raise CannotReplayError."""
        found, as_list = self._maker.here()
        leaves = [
            item and {"array": save(item[0]), "dtype": item[1], "shape": list(item[0].shape)}
            for item in found
        ]
        return Made(
            leaves, as_list, self._maker.mixed, [note.to_dict() for note in self._maker.notes]
        )

    # -- the verdict ------------------------------------------------------------------------------------------------

    def _judged(self, place: str, position: int, outcomes: list[Any], is_exact: bool) -> Judged:
        number = self._maker.numbers[position]
        name = plain_name(self._call.key)
        recorded = np.asarray(self._expected[number])
        leaf = self._call.expected[number]
        golden, here, shaken = outcomes
        self.arrays.append((place, recorded, golden[0], here[0]))
        arrays = self._maker.arrays
        shapes = [array.shape for array in arrays] + [array.shape for _, array in self._maker.sens]
        largest = max((math.prod(shape) for shape in shapes), default=0)
        is_whole = recorded.size >= largest
        is_move = name in _MOVES and not self._maker.sens
        is_elementwise = name in _ELEMENTWISE and is_whole
        operation = Operation(is_move, is_elementwise, longest_sum(shapes, recorded.shape))
        kinds = leaf["dtype"], self._maker.mixed or leaf["dtype"]
        kind = self._maker.dtype or max(kinds, key=lambda kind: FORMATS.get(kind, (0.0,))[0])
        outcome = ReplayedOutput(recorded, kind, golden[0], here[0], shaken and shaken[0], is_exact)
        if leaf["dtype"] not in FORMATS:
            outcome = dataclasses.replace(outcome, dtype=leaf["dtype"])
            if (
                name in _INDICES
                and not np.array_equal(recorded, here[0])
                and self._is_tie(recorded, here[0])
            ):
                outcome = dataclasses.replace(outcome, recorded=here[0])
                self._maker.notes.append(say("replay.tie"))
        beside = self._maker.sens[0][1] if self._maker.sens else arrays[0] if arrays else None
        if name in _TAILS and beside is not None and beside.shape == recorded.shape:
            outcome = dataclasses.replace(outcome, scale=np.abs(beside.astype(np.float64)) / 4)
        found = judge(place, outcome, operation)
        if found.verdict != OK and operation.elementwise and self._is_small:
            copies = self._maker.copies(_COPIES)
            if copies is not None:
                errors = np.abs(copies.astype(np.float64) - golden[0])
                worst = np.take_along_axis(copies, errors.argmax(0, keepdims=True), 0)[0]
                found = judge(place, dataclasses.replace(outcome, here=worst), operation)
        notes = [found.said, *self._maker.notes]
        if found.roundings_here > _INEXACT and leaf["dtype"] in FORMATS:
            notes.append(say("replay.inexact"))
        return dataclasses.replace(found, said=clauses(*dict.fromkeys(notes)))

    @property
    def _is_small(self) -> bool:
        """Whether it is a forward call of one small tensor of real numbers that was made here."""
        arrays = self._maker.arrays
        is_one = len(arrays) == 1 and arrays[0].dtype.kind == "f" and arrays[0].size < _SMALL
        return is_one and not self._maker.sens and self._call.here is None

    def _is_tie(self, recorded: Array, here: Array) -> bool:
        """Return whether two outputs of indices choose equal elements of the first input."""
        if (
            recorded.shape != here.shape
            or not self._maker.arrays
            or recorded.dtype.kind not in "iu"
        ):
            return False
        values = self._maker.arrays[0]
        if recorded.size and (recorded.min() < 0 or recorded.max() >= max(values.size, 1)):
            return False
        flat = values.ravel()
        if not self._call.kwargs and recorded.ndim == 0:
            return bool(np.all(flat[recorded] == flat[here]))
        for axis in range(values.ndim):
            a = recorded
            b = here
            if a.ndim == values.ndim - 1:
                a = np.expand_dims(a, axis)
                b = np.expand_dims(b, axis)
            sides = [length for place, length in enumerate(a.shape) if place != axis]
            if a.ndim != values.ndim or sides != [
                n for place, n in enumerate(values.shape) if place != axis
            ]:
                continue
            if max(a.max(initial=0), b.max(initial=0)) >= values.shape[axis]:
                continue
            if np.array_equal(
                np.take_along_axis(values, a, axis), np.take_along_axis(values, b, axis)
            ):
                return True
        return False


def longest_sum(shapes: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
    """Return the number of terms of the longest sum that an operation of these shapes may make.

    >>> longest_sum([(8, 64), (64, 16)], (8, 16)), longest_sum([(32, 10)], ())
    (64, 320)
    """
    sizes = sorted(math.prod(shape) for shape in (*shapes, output) if math.prod(shape) > 0)
    if not sizes:
        return 1
    out = max(math.prod(output), 1)
    sides = [shape[-1] for shape in shapes if shape]
    product = math.sqrt(sizes[-1] * sizes[-2] / out) if len(sizes) > 1 else 1.0
    several = [size for size in sizes if size > 1] or [1]
    least = out if out < several[0] else several[0]
    return int(max([1, *sides, product, several[-1] / least]))
