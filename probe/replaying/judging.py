# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Judges a recorded output by the golden one, and by the error that the same operation shows here.

It needs numpy alone: the script of a call holds a copy of this module, with ``say`` in English.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from probe.findings.sentence import NOTHING, Sentence, say

Array = np.ndarray[Any, Any]

OK = "ok"
WORSE = "worse than expected"
WRONG = "wrong"
NOT_REPLAYED = "not replayable"
# of repeats
EQUAL = "always equal"
DIFFERS = "differs"
# of a gradient that is beside central differences
KINK = "not differentiable here"
LABEL = "central differences"
#: dtype -> the distance of 1 from the next number, an error that means nothing, the greatest number
FORMATS = {
    "Float16": (2.0**-10, 2.0**-23, 65504.0),
    "BFloat16": (2.0**-7, 2.0**-126, (2.0 - 2.0**-7) * 2.0**127),
    "Float32": (2.0**-23, 2.0**-126, (2.0 - 2.0**-23) * 2.0**127),
    "Float64": (2.0**-52, 2.0**-1022, (2.0 - 2.0**-52) * 2.0**1023),
    "Complex64": (2.0**-23, 2.0**-126, (2.0 - 2.0**-23) * 2.0**127),
    "Complex128": (2.0**-52, 2.0**-1022, (2.0 - 2.0**-52) * 2.0**1023),
}
#: how many roundings of the exact result every kernel may be off
_ROUNDINGS = {"Float16": 4.0, "BFloat16": 4.0}
_ROUNDINGS_OTHERS = 8.0
_TIMES_HERE = 1.5  # an error here of this size is allowed so many times
#: if so many elements are those of this machine, the same kernel has made them: its error excuses no other
_SAME_KERNEL = 0.75
#: beyond this many times the allowed error, and so many roundings of the largest element, an output is wrong
_WRONG_TIMES = 4.0
_WRONG_ROUNDINGS = 32.0
#: beyond so many roundings of an element a kernel is wrong, whatever this machine gives: the least exact right kernels
#: of MindSpore on CPU are 840 off in single precision (tanh), 7 in half precision
CEILINGS = {"Float16": 32.0, "BFloat16": 32.0}
CEILING_OTHERS = 4096.0
_CEILING_CHANGE = (
    16.0  # and beyond so many changes of the golden output after half a rounding of each input
)
_MOST_TERMS = 2**17  # terms of a sum beyond this number raise nothing any more
_EXPONENTS = 80  # exponents of elements that are told apart, from the largest element down
_FEW = 32  # fewer elements with near exponents tell too little about the error


@dataclass(frozen=True)
class Operation:
    """The facts about an operation that its judge needs."""

    moves: bool = False  # whether it only moves values, so that any difference is wrong
    #: whether each element of the output depends on one element of each input
    elementwise: bool = False
    terms: int = 1  # the number of terms of its longest sum, as far as shapes tell


@dataclass(frozen=True)
class ReplayedOutput:
    """One output of a call, as it was recorded and as it was made again."""

    recorded: Array  # the recorded values
    dtype: str  # their dtype, "BFloat16"
    golden: Array  # the golden values
    here: Array  # the values of the same operation in the recorded dtype, on this machine
    #: the golden values for inputs that were changed by half a rounding; None if not made
    shaken: Array | None = None
    is_exact: bool = True  # whether the golden values are more precise than the dtype
    #: roundings of elements that are smaller than these are roundings of these; None where there are none
    scale: Array | None = None
    #: whether the same error here excuses no error beyond the ceiling: the golden values are those of float64
    has_ceiling: bool = False
    terms_size: float = 0.0  # the size of terms inside that may cancel
    is_tame: bool = (
        False  # whether all inputs are finite and small, so that nothing inside overflows
    )


@dataclass(frozen=True)
class Judged:
    """The verdict on one output.

    Attributes:
        place: its place: "output.0".
        verdict: "ok", "worse than expected" or "wrong".
        off: the greatest error of the recorded values, over the greatest golden value. Of integers the share of
            elements that differ.
        here: the same of the values that were made here.
        roundings: ``off`` in roundings of the dtype; of integers the number of elements that differ.
        roundings_here: the same of the values that were made here.
        element: the worst element, as an index; [] where there is none.
        said: a remark, or NOTHING.
        is_kernel: whether this machine gives values beyond the ceiling too: the kernel itself is wrong.
    """

    place: str
    verdict: str
    off: float
    here: float
    roundings: float
    roundings_here: float
    element: list[int]
    said: Sentence = NOTHING
    is_kernel: bool = False

    @property
    def note(self) -> str:
        """The remark in English, or ""."""
        return str(self.said)


def judge(place: str, outcome: ReplayedOutput, operation: Operation) -> Judged:
    """Return the verdict on one output.

    >>> exact = np.array([1.0, 2.0, 3.0])
    >>> near = exact.astype(np.float32)
    >>> judge("output.0", ReplayedOutput(near, "Float32", exact, near), Operation(elementwise=True)).verdict
    'ok'
    >>> judge("output.0", ReplayedOutput(near * 2, "Float32", exact, near), Operation(elementwise=True)).verdict
    'wrong'
    """
    if outcome.recorded.shape != outcome.golden.shape:
        shape = str(list(outcome.recorded.shape))
        shape_here = str(list(outcome.golden.shape))
        note = say("replay.shape", recorded=shape, here=shape_here)
        return Judged(place, WRONG, math.inf, 0.0, math.inf, 0.0, [], note)
    if outcome.dtype not in FORMATS:
        return _judge_exact(place, outcome)
    recorded = _wide(outcome.recorded)
    golden = _wide(outcome.golden)
    here = _wide(outcome.here)
    if recorded.dtype != golden.dtype or golden.dtype != here.dtype:  # complex or not
        return Judged(place, WRONG, math.inf, 0.0, math.inf, 0.0, [], say("replay.complex"))
    if not recorded.size:
        return Judged(place, OK, 0.0, 0.0, 0.0, 0.0, [])
    special = _special(recorded, golden, here, FORMATS[outcome.dtype][2])
    if outcome.is_tame:
        special |= ~np.isfinite(recorded) & (np.abs(golden) <= FORMATS[outcome.dtype][2])
    usual = np.isfinite(recorded) & np.isfinite(golden) & np.isfinite(here)
    if outcome.shaken is not None and outcome.shaken.shape == golden.shape:
        moved = np.abs(_wide(outcome.shaken) - golden)
        change = np.where(usual & np.isfinite(moved), moved, 0.0)
    else:
        change = np.zeros(golden.shape)
    odd_here = special & ~np.isfinite(here)
    parts = [np.where(usual, array, 0.0) for array in (recorded, golden, here)]
    return _judge_numbers(place, outcome, operation, parts, change, special, odd_here)


def _judge_numbers(
    place: str,
    outcome: ReplayedOutput,
    operation: Operation,
    parts: list[Array],
    change: Array,
    special: Array,
    odd_here: Array,
) -> Judged:
    recorded, golden, here = parts
    size = np.abs(golden)
    off = np.abs(recorded - golden)
    own = np.abs(here - golden)
    rounding, tiny, _ = FORMATS[outcome.dtype]
    is_same_kernel = bool(size.size > 3 and np.mean(recorded == here) >= _SAME_KERNEL)
    allowed, allowed_mean = _allowed(outcome, operation, size, own, change, is_same_kernel)
    times = off / np.maximum(allowed, 1e-300)
    worst = int(np.argmax(np.where(special, np.inf, times)))
    greatest = float(np.max(size))
    mean = _root_mean(off)
    is_large = off > _WRONG_ROUNDINGS * rounding * greatest
    far = float(np.max(np.where(is_large, times, 0.0)))
    ceiling = _ceiling(outcome, operation, size, change)
    above = is_large & (off > ceiling)
    is_kernel = bool(np.any(above & (own > ceiling)) or np.any(odd_here))
    if np.any(above) and not np.any(special):
        worst = int(np.argmax(np.where(above, off, 0.0)))
    if (
        np.any(special)
        or np.any(above)
        or far > _WRONG_TIMES
        or (mean > _WRONG_TIMES * allowed_mean and mean > tiny)
        or (operation.moves and np.any(off > 0))
    ):
        verdict = WRONG
    elif np.max(times) > 1 or (mean > allowed_mean and mean > tiny):
        verdict = WORSE
    else:
        verdict = OK
    scale = greatest if greatest > 0 else 1.0
    note = say("replay.special", count=int(np.sum(special))) if special.any() else NOTHING
    relative = float(np.max(off)) / scale
    relative_here = float(np.max(own)) / scale
    return Judged(
        place,
        verdict,
        relative,
        relative_here,
        relative / rounding,
        relative_here / rounding,
        [int(i) for i in np.unravel_index(worst, size.shape)],
        note,
        is_kernel,
    )


def _ceiling(outcome: ReplayedOutput, operation: Operation, size: Array, change: Array) -> Array:
    """Return the error of each element beyond which the kernel is wrong; Inf where there is none."""
    if not outcome.has_ceiling:
        return np.full(size.shape, np.inf)
    roundings = CEILINGS.get(outcome.dtype, CEILING_OTHERS)
    order = 1.0 if operation.elementwise else math.sqrt(min(operation.terms, _MOST_TERMS))
    size = size if outcome.scale is None else np.maximum(size, outcome.scale)
    (around,) = near_maximum(change.reshape(1, -1), size.ravel())
    moved = _CEILING_CHANGE * order * around.reshape(size.shape)
    size = size + outcome.terms_size
    ceiling: Array = (roundings + order) * FORMATS[outcome.dtype][0] * size + moved
    return ceiling


def _allowed(
    outcome: ReplayedOutput,
    operation: Operation,
    size: Array,
    own: Array,
    change: Array,
    is_same_kernel: bool,
) -> tuple[Array, float]:
    """Return the allowed error of each element, and that of the root of the mean square."""
    rounding, tiny, _ = FORMATS[outcome.dtype]
    floor = _ROUNDINGS.get(outcome.dtype, _ROUNDINGS_OTHERS)
    is_half = outcome.dtype in _ROUNDINGS
    if operation.elementwise:
        order = 0.0
    elif is_half:  # it is summed in single precision
        order = 1.0
    else:
        order = math.sqrt(min(operation.terms, _MOST_TERMS))
    if not outcome.is_exact:  # the errors of both sides are unknown
        floor = 4 * floor
        order = 2 * order + 2
    size = size if outcome.scale is None else np.maximum(size, outcome.scale)
    few = 1 if operation.elementwise else _FEW
    around = near_maximum(np.stack([own.ravel(), change.ravel()]), size.ravel(), few)
    own_near, change_near = (item.reshape(size.shape) for item in around)
    own_allowed = own if is_same_kernel else _TIMES_HERE * own_near
    own_mean = (1.0 if is_same_kernel else _TIMES_HERE) * _root_mean(own)
    room = 0.0 if operation.elementwise else 2.0 + 0.5 * order
    allowed = (floor + 0.25 * order) * rounding * size + room * change_near + own_allowed
    mean_change = 0.0 if operation.elementwise else (1.0 + 0.25 * order) * _root_mean(change)
    mean_rounding = 0.25 * (floor + order) * rounding * _root_mean(size)
    allowed_mean = mean_rounding + own_mean + mean_change
    if operation.moves:
        allowed = np.zeros(size.shape)
    return np.maximum(allowed, tiny), max(allowed_mean, tiny)


def near_maximum(values: Array, size: Array, few: int = _FEW) -> Array:
    """Return for each element the greatest of the values at elements of nearly its size.

    Args:
        values: rows of values, one for each element.
        size: the size of each element.
        few: fewer elements tell too little: elements of other sizes are then looked at too.

    >>> near_maximum(np.array([[1.0, 2.0, 9.0]]), np.array([1.0, 1.2, 1e6])).tolist()
    [[9.0, 9.0, 9.0]]
    """
    exponents = np.frexp(size)[1].astype(np.int64)
    top = int(exponents[np.argmax(size)]) if size.size else 0
    bins = np.clip(top - exponents, 0, _EXPONENTS - 1)
    bins[size == 0] = _EXPONENTS - 1
    counts = np.bincount(bins, minlength=_EXPONENTS)
    found = np.empty_like(values)
    around = {
        index: _around(counts, index, min(few, size.size)) for index in np.flatnonzero(counts)
    }
    for row, kept in zip(values, found):
        greatest = np.zeros(_EXPONENTS)
        np.maximum.at(greatest, bins, row)
        spread = np.zeros(_EXPONENTS)
        for index, near in around.items():
            spread[index] = greatest[near].max()
        kept[:] = spread[bins]
    return found


def _around(counts: Array, index: int, least: int) -> slice:
    """Return the bins around one that have so many elements together."""
    reach = 1
    near = slice(max(index - reach, 0), index + reach + 1)
    while counts[near].sum() < least:
        reach += 1
        near = slice(max(index - reach, 0), index + reach + 1)
    return near


def _special(recorded: Array, golden: Array, here: Array, greatest: float) -> Array:
    """Return the elements whose NaN/Inf are wrong: neither the golden ones nor those that were made here."""
    with np.errstate(over="ignore", invalid="ignore"):
        overflown = np.where(np.abs(golden) > greatest, golden * np.inf, golden)
    odd: Array = ~(np.isfinite(recorded) & np.isfinite(overflown) & np.isfinite(here))
    if not np.any(odd):
        return odd
    same = _same(recorded, overflown) | _same(recorded, here)
    both_finite = np.isfinite(recorded) & (np.isfinite(overflown) | np.isfinite(here))
    sure = _same(overflown, here)  # where golden and here do not agree, nobody knows
    odd = odd & ~same & ~both_finite & sure
    return odd


def _same(a: Array, b: Array) -> Array:
    """Return where both are NaN, the same Inf, or finite."""
    both_nan = np.isnan(a) & np.isnan(b)
    same_inf = np.isinf(a) & (a == b)
    both_finite = np.isfinite(a) & np.isfinite(b)
    same: Array = both_nan | same_inf | both_finite
    return same


def _judge_exact(place: str, outcome: ReplayedOutput) -> Judged:
    """Return the verdict on integers or booleans: each element is that of the golden output, or that made here."""
    recorded = outcome.recorded
    here = outcome.here
    wrong = (recorded != here) & (recorded != outcome.golden)
    of_kernel = _of_kernel(outcome)
    is_kernel = bool(np.any(of_kernel & ~wrong))
    wrong |= of_kernel
    count = int(np.sum(wrong))
    count_here = int(np.sum(here != outcome.golden))
    total = max(recorded.size, 1)
    element = [int(i) for i in np.argwhere(wrong)[0]] if count else []
    verdict = WRONG if count else OK
    share = count / total
    share_here = count_here / total
    return Judged(
        place,
        verdict,
        share,
        share_here,
        float(count),
        float(count_here),
        element,
        is_kernel=is_kernel,
    )


def _of_kernel(outcome: ReplayedOutput) -> Array:
    """Return where integers are others than the golden ones, and no rounding of an input explains it."""
    recorded = outcome.recorded
    shaken = outcome.shaken
    if not outcome.has_ceiling or shaken is None or shaken.shape != recorded.shape:
        return np.zeros(recorded.shape, bool)
    differs: Array = (recorded != outcome.golden) & (outcome.golden == shaken)
    return differs


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _root_mean(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
