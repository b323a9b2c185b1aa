# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The four numbers of an array, exact for integers and right for every finite float; and those that users choose."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import operator
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from probe.config.own_statistics import OwnStatistic, own_statistics
from probe.executor import OwnOperations
from probe.measure.one_byte import single
from probe.measure.ranges import FORMATS, HostOperations, Range
from probe.measure.tensor_reader import SINGLE, Array, local_tensor, to_numpy, to_storable

try:
    from isal.isal_zlib import crc32 as _crc32  # the extra "fast": the same bits, many times faster
except ImportError:
    from zlib import crc32 as _crc32
try:
    from numkong import (
        minmax as _ends,  # the extra "fast": one pass, in float64
        moments as _moments,
    )
except ImportError:
    _moments = None  # type: ignore[assignment]  # where the extra is not installed
    _ends = None  # type: ignore[assignment]  # the same

Number = Union[int, float, bool, None]
Numbers = dict[str, Number]
#: the keys of the four numbers
FOUR = ("Max", "Min", "Mean", "Norm")

_maximum = np.maximum.reduce
_minimum = np.minimum.reduce
_add = np.add.reduce
_matmul = np.matmul
#: what the extra is given: no long doubles, no foreign order of bytes
_ORDINARY = (SINGLE, np.dtype(np.float64))
#: up to so many numbers Python is faster than numpy
_PYTHON_MAX_SIZE = 48
#: up to so many numbers adding in float64 is as fast as adding rows in float32
_FLOAT64_MAX_SIZE = 6144
#: numbers that are added in float32, in an order that BLAS chooses: rows of 64 give a Mean that is 2.7e-7 off
_ROW_LENGTH = 32
#: squares that are added in float32, by a kernel with more partial sums: Norm is 1.5e-7 off at worst
_SQUARES_LENGTH = 256
#: above so many numbers, which are in the cache by then, numpy finds the extrema faster than the extra
_NUMPY_ENDS = 24576
#: elements that are read at once: the first of the four reductions brings them into the cache for the others
_CACHE_BLOCK = 262144
#: between these the squares of a float32 row neither overflow nor lose digits to underflow
_LOW = 1e-12
_HIGH = 1e18
#: above this the sum of squares of a float64 array lost nothing to underflow
_LOSSLESS_SQUARE = 1e-280
_LARGEST = float(np.finfo(np.float64).max)
#: a dot with ones is BLAS's fastest sum
_ROW_OF_ONES = np.ones(_ROW_LENGTH, np.float32)
_ONES = np.ones(_FLOAT64_MAX_SIZE)
_log = logging.getLogger("probe")


def statistics(array: Array) -> Numbers:
    """Return Max, Min, Mean and Norm (L2) of an array, and nan_count and inf_count where they are not zero.

    Args:
        array: any shape; bool, integer, float (bfloat16 as ml_dtypes.bfloat16) or complex. Never written to.

    Returns:
        ``{"Max": 3, "Min": 1, "Mean": 2.0, "Norm": 3.7}``. Max and Min of integers are exact. An empty array gives
        None four times; bool has any and all as Max and Min and no Mean and Norm; complex is measured by |x|.

    >>> statistics(np.array([3.0, 4.0], np.float32))
    {'Max': 4.0, 'Min': 3.0, 'Mean': 3.5, 'Norm': 5.0}
    """
    kind = array.dtype.kind
    if kind == "f" and array.size and array.dtype.itemsize > 2:
        return float_statistics(array.ravel(order="K"))
    if array.size == 0 or kind not in "biufcV":
        return dict.fromkeys(FOUR)
    if kind == "b":
        return {"Max": bool(array.any()), "Min": bool(array.all()), "Mean": None, "Norm": None}
    if kind in "iu":
        return _integers(array)
    return float_statistics(as_real(array).ravel(order="K"))


def as_real(array: Array) -> Array:
    """Return an array whose elements numpy can compare: |x| of complex ones, float32 of floats of one or two bytes."""
    dtype = array.dtype
    if dtype.kind == "c":
        return magnitudes(array)
    return single(array) if dtype.itemsize <= 2 and dtype.kind in "fV" else array


def magnitudes(array: Array) -> Array:
    """Return |x| of a complex array, in float64: in float32 it would differ between processors."""
    if array.dtype.itemsize > 8:
        return np.asarray(np.abs(array))
    squares = np.asarray(array.real, np.float64) ** 2
    other = np.asarray(array.imag, np.float64) ** 2
    with np.errstate(all="ignore"):
        found = np.sqrt(np.add(squares, other))
    return np.asarray(np.abs(array), np.float64) if np.isnan(found).any() else np.asarray(found)


def _integers(array: Array) -> Numbers:
    flat = array.ravel(order="K")
    total, square = _in_blocks(_wide, flat)
    return {
        "Max": flat.max().item(),
        "Min": flat.min().item(),
        "Mean": total / flat.size,
        "Norm": math.sqrt(square),
    }


def float_statistics(flat: Array) -> Numbers:
    """Return the same for a flat array of at least one float32 or float64."""
    four = finite_statistics(flat)
    if four is not None:
        return dict(zip(FOUR, four))
    nans = int(np.count_nonzero(np.isnan(flat)))
    infinities = int(np.count_nonzero(np.isinf(flat)))
    numbers: Numbers = dict.fromkeys(FOUR, math.nan)  # with a NaN, all four are NaN
    if not nans:
        with np.errstate(all="ignore"):
            mean = float(_add(flat.astype(np.float64)))
        numbers = dict(zip(FOUR, (float(_maximum(flat)), float(_minimum(flat)), mean, math.inf)))
    counts = {"nan_count": nans, "inf_count": infinities}
    return {**numbers, **{key: count for key, count in counts.items() if count}}


def finite_statistics(flat: Array) -> tuple[float, float, float, float] | None:
    """Return Max, Min, Mean and Norm of such an array, or None where an element is NaN/Inf.

    Norm is within 2e-7 of the truth and Mean within 2e-7 of max(|Max|, |Min|), with any kernel of BLAS. Only short rows
    are added in float32, as the error grows with their length; the rows' results are added in float64.
    """
    size = flat.size
    if _moments is not None and flat.dtype in _ORDINARY and (four := _one_pass(flat)) is not None:
        return four
    if size <= _PYTHON_MAX_SIZE:
        values = flat.tolist()
        try:
            total = math.fsum(values)
            square = math.fsum(map(operator.mul, values, values))
        except (OverflowError, ValueError):  # a partial sum leaves the range, or inf - inf
            square = math.inf
        if _LOSSLESS_SQUARE < square < math.inf or not any(values):
            # a zero has one sign here: which of 0.0 and -0.0 is the largest depends on the processor
            return max(values) + 0.0, min(values) + 0.0, total / size, math.sqrt(square)
    if size <= _CACHE_BLOCK:
        largest, smallest, total, square = _block(flat, size)
    else:
        blocks = [flat[start : start + _CACHE_BLOCK] for start in range(0, size, _CACHE_BLOCK)]
        ends, others, totals, squares = zip(*[_block(block, block.size) for block in blocks])
        # numpy's, as Python's max does not propagate NaN
        largest = float(_maximum(ends))
        smallest = float(_minimum(others))
        total, square = _sums(totals, squares)
    if (
        total - total == 0.0 and _LOSSLESS_SQUARE < square < math.inf
    ):  # also only where all elements are finite
        return largest + 0.0, smallest + 0.0, total / size, math.sqrt(square)
    if largest - largest != 0.0 or smallest - smallest != 0.0:
        return None
    return largest + 0.0, smallest + 0.0, *_scaled(flat, max(largest, -smallest))


def _one_pass(flat: Array) -> tuple[float, float, float, float] | None:
    """Return the same by the extra, which says nothing of zeros and NaN/Inf."""
    if not flat.flags.aligned:
        flat = flat.copy()  # it refuses others
    total, square = _moments(flat)
    if not _LOSSLESS_SQUARE < square < math.inf:
        return None
    if flat.size > _NUMPY_ENDS:
        largest = float(_maximum(flat))
        smallest = float(_minimum(flat))
    else:
        smallest, _, largest, _ = _ends(flat)  # type: ignore[misc]  # None is for NaN alone
    return largest + 0.0, smallest + 0.0, total / flat.size, math.sqrt(square)


def _block(flat: Array, size: int) -> tuple[float, float, float, float]:
    """Max, Min, sum and sum of squares of up to a block; the sums are NaN where an element is NaN/Inf."""
    largest = float(_maximum(flat))
    smallest = float(_minimum(flat))
    magnitude = largest if largest > -smallest else -smallest
    if size > _FLOAT64_MAX_SIZE and _LOW < magnitude < _HIGH and flat.dtype == SINGLE:
        return largest, smallest, *_by_rows(flat, size)
    if largest - largest != 0.0 or smallest - smallest != 0.0:
        return largest, smallest, math.nan, math.nan
    return largest, smallest, *_wide(flat)


def _wide(flat: Array) -> tuple[float, float]:
    """Sum and sum of squares, in float64. A dot that overflows says nothing."""
    wide = flat.astype(np.float64)
    size = wide.size
    total = wide.dot(_ONES[:size]) if size <= _FLOAT64_MAX_SIZE else wide.dot(np.ones(size))
    return float(total), float(wide.dot(wide))


def _by_rows(flat: Array, size: int) -> tuple[float, float]:
    """The same of float32: each row in float32, the rows' results in float64."""
    rest = size % _SQUARES_LENGTH
    whole = flat[: size - rest] if rest else flat
    rows = whole.reshape(-1, 1, _SQUARES_LENGTH)
    total = float(_add(whole.reshape(-1, _ROW_LENGTH).dot(_ROW_OF_ONES), dtype=np.float64))
    square = float(
        _add(_matmul(rows, rows.reshape(-1, _SQUARES_LENGTH, 1)), axis=None, dtype=np.float64)
    )
    if not rest:
        return total, square
    last, last_square = _wide(flat[size - rest :])
    return total + last, square + last_square


def _in_blocks(sums: Callable[[Array], tuple[float, float]], flat: Array) -> tuple[float, float]:
    return _sums(
        *zip(
            *[
                sums(flat[start : start + _CACHE_BLOCK])
                for start in range(0, flat.size, _CACHE_BLOCK)
            ]
        )
    )


def _sums(totals: Sequence[float], squares: Sequence[float]) -> tuple[float, float]:
    """Add the blocks' sums; NaN where one is NaN/Inf."""
    if not all(map(math.isfinite, totals)) or not all(map(math.isfinite, squares)):
        return math.nan, math.nan
    return math.fsum(totals), math.fsum(squares)


def _scaled(flat: Array, magnitude: float) -> tuple[float, float]:
    """Mean and norm of finite data whose plain sums leave the range of float64."""
    if magnitude == 0.0:
        return 0.0, 0.0
    with np.errstate(all="ignore"):
        total, square = _in_blocks(lambda block: _wide(block / magnitude), flat)
    return total / flat.size * magnitude, min(math.sqrt(square) * magnitude, _LARGEST)


def crc32(array: Array) -> str:
    """Return the CRC-32 of the array's bytes in C order, eight hex digits (the field calls it md5).

    >>> crc32(np.zeros(1, np.float32))
    '2144df1c'
    """
    return (
        f"{_crc32(np.ascontiguousarray(array).view(np.uint8).data):08x}"
        if array.size
        else "00000000"
    )


class Statistic(NamedTuple):
    """How one statistic is obtained."""

    key: str  # its key in a record
    #: a range -> numbers, which are on the tensor's device; None for one of the four of ``statistics``
    take: Callable[[Range], list[Any]] | None = None
    finish: Callable[[Sequence[Any], int], Number] = lambda found, size: sum(
        found
    )  # they, and the number of elements
    is_whole: bool = True  # whether they are counts


def _count(*comparison: Any) -> Callable[[Range], list[Any]]:
    return lambda values: values.count(*comparison)


def _share(found: Sequence[int], size: int) -> Number:
    return sum(found) / size if found and size else None


def _exponents(ends: Sequence[float], size: int) -> Number:
    return math.log2(ends[0]) - math.log2(ends[1]) if ends[0] else None


def _error(squares: Sequence[float], size: int) -> Number:
    return (math.sqrt(squares[0] / squares[1]) if squares[1] else 0.0) if size else None


#: by the names that the settings have for them
STATISTICS = {
    "max": Statistic("Max"),
    "min": Statistic("Min"),
    "mean": Statistic("Mean"),
    "avg": Statistic("Mean"),
    "l2norm": Statistic("Norm"),
    "count": Statistic("count", lambda values: [], lambda found, size: size),
    "nan count": Statistic("nan_count", _count("NotEqual")),
    "negative inf count": Statistic("negative_inf_count", _count("Equal", -math.inf)),
    "positive inf count": Statistic("positive_inf_count", _count("Equal", math.inf)),
    "negative zero count": Statistic("negative_zero_count", _count("Less", 0.0)),
    "zero count": Statistic("zero_count", _count("Equal", 0.0)),
    "positive zero count": Statistic("positive_zero_count", _count("Greater", 0.0)),
    "smallest magnitude": Statistic(
        "smallest_magnitude",
        Range.ends,
        lambda ends, size: ends[1] if ends[0] else None,
        is_whole=False,
    ),
    "exponent range": Statistic("exponent_range", Range.ends, _exponents, is_whole=False),
    "zero share": Statistic("zero_share", _count("Equal", 0.0), _share),
    "saturated share": Statistic("saturated_share", Range.saturated, _share),
    **{
        f"{name}:{dtype}": Statistic(
            f"{name.replace(' ', '_')}:{dtype}",
            functools.partial(take, kind=kind),
            finish,
            take is not Range.rounding,
        )
        for dtype, kind in FORMATS.items()
        for name, take, finish in (
            ("underflow", Range.underflow, _share),
            ("overflow", Range.overflow, _share),
            ("rounding error", Range.rounding, _error),
        )
    },
}


class OwnNumbers:
    """Takes the registered statistics among ``names``, which are ``chosen``.

    Each function is given a copy, and random numbers of Python and numpy go on as before it.
    """

    def __init__(self, names: Iterable[str]) -> None:
        wanted = set(names)
        self.chosen = {name: own for name, own in own_statistics().items() if name in wanted}
        self.on_device = all(
            own.device for own in self.chosen.values()
        )  # whether each has a function of a tensor
        self._operations: Any = OwnOperations() if self.chosen else None

    def known(self, array: Array) -> dict[str, Any]:
        """Return the numbers of an array that do not fail."""
        return {name: number for name, number in self.of_array(array).items() if number is not None}

    def of_array(self, array: Array) -> dict[str, Any]:
        """Return the numbers of an array; None for each that fails, and for all of an array without elements."""
        copy = to_storable(array).copy if array.size else None
        return {
            name: self._number(name, own, own.function, copy) for name, own in self.chosen.items()
        }

    def of_tensor(self, tensor: Any) -> dict[str, Any]:
        """Return the same of a tensor on a device, and wait for it. Nothing of the training may be pending."""
        from mindspore.ops.auto_generate import copy_op

        copy = functools.partial(copy_op, local_tensor(tensor))
        return {
            name: self._number(name, own, own.device, copy) for name, own in self.chosen.items()
        }

    def _number(
        self, name: str, own: OwnStatistic, function: Any, copy: Callable[[], Any] | None
    ) -> Any:
        states = (random.getstate(), np.random.get_state())
        found = None
        with contextlib.ExitStack() as stack, np.errstate(all="ignore"):
            stack.push(functools.partial(_end, name, own))
            found = copy and _plain(self._operations.run(lambda: function(copy())))
        random.setstate(states[0])
        np.random.set_state(states[1])
        return found


def _end(name: str, own: OwnStatistic, kind: Any, error: BaseException | None, trace: Any) -> bool:
    """End an error of the user's function, also ``sys.exit``; return whether it was one."""
    is_ended = isinstance(error, (Exception, SystemExit))
    if is_ended and not own.has_failed:
        own.has_failed = True
        told = "the statistic %s failed, its number is null; further failures are not told"
        _log.error(told, name, exc_info=(kind, error, trace))  # type: ignore[arg-type]  # as __exit__ has them
    return is_ended


def _plain(value: Any) -> int | float | bool:
    """Return a number as JSON has it; raise TypeError for what is none."""
    array = np.asarray(to_numpy(local_tensor(value)) if hasattr(value, "asnumpy") else value)
    if array.size != 1 or array.dtype.kind not in "biufV":
        raise TypeError(f"{type(value).__name__} of shape {array.shape} is no number")
    one = array.reshape(-1)[0]
    return float(one) if array.dtype.kind in "fV" else one.item()


class SelectedStatistics:
    """Takes the chosen statistics of an array, by the keys of ``STATISTICS``, and then the user's own.

    >>> SelectedStatistics(["max", "zero count"])(np.array([0.0, 2.0], np.float32))
    {'Max': 2.0, 'zero_count': 1}
    """

    def __init__(self, names: Iterable[str]) -> None:
        wanted = set(names)
        self.table = list(
            {entry.key: entry for name, entry in STATISTICS.items() if name in wanted}.values()
        )
        self._four = any(entry.take is None for entry in self.table)
        self.own = OwnNumbers(wanted)

    def __call__(self, array: Array, dtype: str = "") -> Numbers:
        """Return the chosen statistics of a tensor of this dtype; complex elements are counted by their magnitudes."""
        four = statistics(array) if self._four else {}
        values = Range(HostOperations(), as_real(array), dtype)
        found = {
            it.key: it.finish(it.take(values), array.size) if it.take else four.get(it.key)
            for it in self.table
        }
        return {**found, **self.own.of_array(array)} if self.own.chosen else found
