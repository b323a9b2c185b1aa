# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Judges one call: golden outputs, outputs of this machine, verdicts. It needs MindSpore and numpy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
from probe.replaying.making import OF_ELEMENTARY, OF_NUMPY, OF_OWN_KERNEL, Maker

_MOVES = OPERATORS["moves"]
_ELEMENTWISE = OPERATORS["elementwise"]
_TAILS = OPERATORS["tails"]
_INDICES = OPERATORS["indices"]
#: operators that have a form in place, and one with the operands exchanged: iadd, radd
_BOTH_FORMS = ("add", "sub", "mul", "pow", "floordiv", "mod", "matmul")
#: outputs that a kernel keeps for its own gradient: each device puts other values there, or leaves them unwritten
RESERVED = {"batchnorm": ("output.3", "output.4")}
#: golden outputs that are more exact than any kernel: an error here excuses no error beyond the ceiling
_EXACT = (OF_NUMPY, OF_ELEMENTARY, OF_OWN_KERNEL)
#: operations that jump where they round, or that depend on the dtype: the ceiling is not for them
_JUMPS = OPERATORS["jumps"]
_SMALL_PART = 2.0**-7
_TAME = 16.0  # inputs as small as these overflow nowhere in single precision
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
        if word in ("truediv", "rtruediv", "itruediv"):
            word = "div"
        elif word[:1] in "ir" and word[1:] in _BOTH_FORMS:
            word = word[1:]
    return word if word in _MOVES else word.rstrip("_").lower()


class _Arrays(NamedTuple):
    """One output as it was made again."""

    golden: Array
    here: Array
    shaken: Array | None


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
        judged: list[Judged] = []
        for number, place, *made in zip(maker.numbers, places, golden, here, shaken):
            golden_item, here_item, shaken_item = made
            if self._expected[number] is None or golden_item is None or here_item is None:
                continue
            if place in reserved:
                continue
            arrays = _Arrays(golden_item[0], here_item[0], shaken_item and shaken_item[0])
            judged.append(self._judged(place, number, arrays, label, is_exact))
        if not judged:
            raise CannotReplayError("replay.no_array")
        verdicts = {item.verdict for item in judged}
        verdict = next(word for word in (WRONG, WORSE, OK) if word in verdicts)
        return ReplayResult(verdict, NOTHING, label, judged)

    def here(self, save: Callable[[Array], str]) -> Made:
        """Return the outputs of the call here, by ``save``, for a process on the CPU, or raise CannotReplayError."""
        outputs, as_list = self._maker.here()
        leaves: list[Any] = []
        for item in outputs:
            if item is None:
                leaves.append(None)
            else:
                array, dtype = item
                leaves.append({"array": save(array), "dtype": dtype, "shape": list(array.shape)})
        notes = [note.to_dict() for note in self._maker.notes]
        return Made(leaves, as_list, self._maker.mixed, notes)

    # -- the verdict ------------------------------------------------------------------------------------------------

    def _judged(self, place: str, number: int, made: _Arrays, label: str, is_exact: bool) -> Judged:
        """Return the verdict on one output, with its remarks."""
        leaf = self._call.expected[number]
        recorded = np.asarray(self._expected[number])
        self.arrays.append((place, recorded, made.golden, made.here))
        operation = self._operation(recorded)
        outcome = self._outcome(leaf, recorded, made, is_exact)
        is_jump = plain_name(self._call.key) in _JUMPS or "rounding_mode" in self._call.kwargs
        is_exactly_known = label in _EXACT if leaf["dtype"] in FORMATS else label == OF_NUMPY
        if is_exactly_known and not is_jump:
            outcome = dataclasses.replace(
                outcome, has_ceiling=True, terms_size=self._terms_size, is_tame=self._is_tame(leaf)
            )
        found = judge(place, outcome, operation)
        if found.verdict != OK and operation.elementwise and self._is_small:
            copies = self._maker.copies(_COPIES)
            if copies is not None:
                errors = np.abs(copies.astype(np.float64) - made.golden)
                worst = np.take_along_axis(copies, errors.argmax(0, keepdims=True), 0)[0]
                found = judge(place, dataclasses.replace(outcome, here=worst), operation)
        notes = [found.said, *self._maker.notes]
        if found.is_kernel:
            notes.append(say("replay.kernel"))
        elif found.roundings_here > _INEXACT and leaf["dtype"] in FORMATS:
            notes.append(say("replay.inexact"))
        return dataclasses.replace(found, said=clauses(*dict.fromkeys(notes)))

    def _operation(self, recorded: Array) -> Operation:
        """Return the facts about the operation that its judge needs."""
        name = plain_name(self._call.key)
        gradients = [array for _, array in self._maker.sens]
        shapes = [array.shape for array in (*self._maker.arrays, *gradients)]
        largest = max((math.prod(shape) for shape in shapes), default=0)
        is_whole = recorded.size >= largest
        is_move = name in _MOVES and not self._maker.sens
        is_elementwise = name in _ELEMENTWISE and is_whole
        return Operation(is_move, is_elementwise, longest_sum(shapes, recorded.shape))

    def _outcome(
        self, leaf: dict[str, Any], recorded: Array, made: _Arrays, is_exact: bool
    ) -> ReplayedOutput:
        """Return an output as it was recorded and made again; ``leaf`` describes the recorded one."""
        name = plain_name(self._call.key)
        dtype = leaf["dtype"]
        kinds = (dtype, self._maker.mixed or dtype)
        coarsest = max(kinds, key=lambda kind: FORMATS.get(kind, (0.0,))[0])
        kind = self._maker.dtype or coarsest
        outcome = ReplayedOutput(recorded, kind, made.golden, made.here, made.shaken, is_exact)
        if dtype not in FORMATS:
            outcome = dataclasses.replace(outcome, dtype=dtype)
            is_other = name in _INDICES and not np.array_equal(recorded, made.here)
            if is_other and self._is_tie(recorded, made.here):
                outcome = dataclasses.replace(outcome, recorded=made.here)
                self._maker.notes.append(say("replay.tie"))
        beside = self._first_given() if name in _TAILS else None
        if beside is not None and beside.shape == recorded.shape:
            outcome = dataclasses.replace(outcome, scale=np.abs(beside.astype(np.float64)) / 4)
        return outcome

    def _first_given(self) -> Array | None:
        """Return the first gradient that arrives, of a forward call its first tensor."""
        for _, array in self._maker.sens:
            return array
        return self._maker.arrays[0] if self._maker.arrays else None

    @property
    def _terms_size(self) -> float:
        """Return the size of terms that may cancel: of a gradient, those that arrive; a small part of an input."""
        gradients = [array for _, array in self._maker.sens]
        sizes = [_greatest(array) for array in gradients or self._maker.arrays]
        size = max(sizes, default=0.0)
        return size if gradients else _SMALL_PART * min(size, _TAME)

    def _is_tame(self, leaf: dict[str, Any]) -> bool:
        """Return whether NaN/Inf of an output cannot come from its inputs, nor from numbers that overflow inside."""
        if leaf["dtype"] not in ("Float32", "BFloat16") or self._maker.mixed or self._maker.dtype:
            return False
        gradients = [array for _, array in self._maker.sens]
        given = [array for array in (*self._maker.arrays, *gradients) if array.size]
        return all(array.dtype.kind in "biu" or np.max(np.abs(array)) <= _TAME for array in given)

    @property
    def _is_small(self) -> bool:
        """Whether it is a forward call of one small tensor of real numbers that was made here."""
        arrays = self._maker.arrays
        is_one = len(arrays) == 1 and arrays[0].dtype.kind == "f" and arrays[0].size < _SMALL
        return is_one and not self._maker.sens and self._call.here is None

    def _is_tie(self, recorded: Array, here: Array) -> bool:
        """Return whether two outputs of indices choose equal elements of the first input."""
        if recorded.shape != here.shape or recorded.dtype.kind not in "iu":
            return False
        if not self._maker.arrays:
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
            if a.ndim != values.ndim or _without(a.shape, axis) != _without(values.shape, axis):
                continue
            if max(a.max(initial=0), b.max(initial=0)) >= values.shape[axis]:
                continue
            chosen_a = np.take_along_axis(values, a, axis)
            chosen_b = np.take_along_axis(values, b, axis)
            if np.array_equal(chosen_a, chosen_b):
                return True
        return False


def _greatest(array: Array) -> float:
    """Return the greatest size of a finite element with a fraction; 0 where there is none."""
    if array.dtype.kind not in "fc":
        return 0.0
    sizes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))


def _without(shape: Sequence[int], axis: int) -> list[int]:
    return [length for place, length in enumerate(shape) if place != axis]


def longest_sum(shapes: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
    """Return the number of terms of the longest sum that an operation of these shapes may make.

    >>> longest_sum([(8, 64), (64, 16)], (8, 16)), longest_sum([(32, 10)], ())
    (64, 320)
    """
    counts = [math.prod(shape) for shape in (*shapes, output)]
    sizes = sorted(count for count in counts if count > 0)
    if not sizes:
        return 1
    out = max(math.prod(output), 1)
    sides = [shape[-1] for shape in shapes if shape]
    of_product = math.sqrt(sizes[-1] * sizes[-2] / out) if len(sizes) > 1 else 1.0
    several = [size for size in sizes if size > 1] or [1]
    least = min(out, several[0])
    of_reduction = several[-1] / least
    return int(max([1, *sides, of_product, of_reduction]))
