# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Exact distances of tensors whose arrays were written, and the relation of one to the other.

Shards of a fused weight (query, key and value; gate and up) hold a part of each block of the whole. The order is then
that of the blocks. It is found by the numbers: the order that comes nearest.
"""

from __future__ import annotations

import filecmp
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from probe.door import function_of
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.reading.compare.distances.tolerance import APART, Distance, of_dtype
from probe.reading.compare.judging.judge import SAME_BITS
from probe.reading.dumps.values import array_name, grouped
from probe.store import file_names

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: errors over an array that was not written, is cut or does not fit
UNREADABLE = (UsageError, OSError, ValueError, TypeError)
_BLOCK = 131_072
#: sorted numbers that are so much nearer tell that only the order differs
_OTHER_ORDER = 0.1


class Arrays:
    """Looks at the arrays in two rank folders: at "all", or for "differs" at those whose statistics are not equal."""

    def __init__(self, folder_a: str, folder_b: str, which: str = "all", own: str = "") -> None:
        self._folders, self._which, self._own = (folder_a, folder_b), which, own

    def refine(self, a: Any, b: Any, found: Distance) -> Distance:
        """Return the exact distance of two tensors; the given one where an array is missing or cannot be read."""
        if self._which == "differs" and found.rel_l2 == 0.0:
            return found
        paths = self._paths(a, b)
        if paths is None:
            return found
        try:
            is_like = len(paths[0]) == len(paths[1]) == 1 and a.get("dtype") == b.get("dtype")
            if is_like and filecmp.cmp(paths[0][0], paths[1][0], shallow=False):
                return SAME_BITS
            left, right = self.parts(a, b)
            is_whole = len(left) == len(right) == 1
            exact = (
                exact_distance(left[0], right[0])
                if is_whole
                else _of_shards(left, right, a, b, found)
            )
        except UNREADABLE:
            return found
        if not self._own or not is_whole or exact is SAME_BITS or left[0].shape != right[0].shape:
            return exact
        try:
            return exact._replace(
                own=float(function_of(self._own)(_wide(left[0]), _wide(right[0])))
            )
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise UsageError(
                say(
                    "error.distance",
                    text=self._own,
                    kind=type(error).__name__,
                    reason=reason_of(error),
                )
            ) from error

    def turned(self, a: Any, b: Any, found: Distance) -> Distance:
        """Return the exact distance of A's transpose from B; the given one where an array is missing."""
        try:
            (left, *more), (right, *others) = self.parts(a, b)
            is_whole = not more and not others and left.shape == right.shape[::-1]
            return exact_distance(left.T, right) if is_whole else found
        except UNREADABLE:
            return found

    def told(self, look: Callable[[Array, Array], Sentence], a: Any, b: Any) -> Sentence:
        """Return what ``relation`` or ``elements`` tells of two arrays; nothing where one is missing."""
        try:
            left, right = self.parts(a, b)
            return look(left[0], right[0]) if len(left) == len(right) == 1 else NOTHING
        except UNREADABLE:
            return NOTHING

    def parts(self, a: Any, b: Any) -> tuple[list[Array], list[Array]]:
        """Return the arrays of two records, of all ranks; raise UsageError when one was not written, or is broken."""
        paths = self._paths(a, b)
        if paths is None:
            raise UsageError(say("error.unwritten"))
        from probe.reading.dumps.load import load_array  # numpy

        found: list[list[Array]] = []
        for record, files in zip((a, b), paths):
            arrays, stored = (
                [load_array(path, str(record.get("dtype")), True) for path in files],
                record.get("stored"),
            )
            is_grid = isinstance(stored, Stored) and stored.dims
            found.append(
                [joined_grid(dict(zip(stored.parts, arrays)), stored.dims)] if is_grid else arrays
            )
        return found[0], found[1]

    def _paths(self, a: Any, b: Any) -> tuple[list[str], list[str]] | None:
        found = []
        for record, folder in zip((a, b), self._folders):
            name, stored = array_name(record), record.get("stored")
            if not name:
                return None
            several = (
                stored.folders if isinstance(stored, Stored) else ()
            )  # a document may hold anything
            found.append(
                [os.path.join(above, file_names.ARRAYS, name) for above in several or [folder]]
            )
        return found[0], found[1]


def _of_shards(
    a: list[Array], b: list[Array], record_a: Any, record_b: Any, found: Distance
) -> Distance:
    """Return the distance of two tensors, of which at least one has its arrays in shards."""
    import numpy as np

    axis = next(
        side["stored"].axis for side, parts in ((record_a, a), (record_b, b)) if len(parts) > 1
    )
    enough = max(of_dtype(record_a.get("dtype")), of_dtype(record_b.get("dtype")))
    blocks = best_order(a, b, axis, rel_l2, enough)
    left, right = joined(a, axis, blocks), joined(b, axis, blocks)
    exact = exact_distance(left, right)
    if exact.rel_l2 is None or exact.rel_l2 <= enough or left.dtype.kind == "c":
        return exact
    # the order of the blocks in a shard may be unknown: sorted numbers give a lower bound for any order
    least = exact_distance(np.sort(left, axis=None), np.sort(right, axis=None))
    if least.rel_l2 is not None and least.rel_l2 < _OTHER_ORDER * exact.rel_l2:
        return found if least.rel_l2 <= enough else least._replace(exact=False)
    return exact


def rel_l2(a: Array, b: Array) -> float:
    """Return the distance of two arrays as a number; inf where it is not known."""
    apart = exact_distance(a, b).rel_l2
    return math.inf if apart is None else apart


def exact_distance(a: Array, b: Array) -> Distance:
    """Return the distance of two arrays; NaN at the same places is equal.

    >>> import numpy as np
    >>> round(exact_distance(np.array([3.0, 4.0]), np.array([3.0, 4.5])).rel_l2, 4)
    0.0925
    """
    import numpy as np

    if a.size != b.size:
        return APART
    left, right = a.reshape(-1), b.reshape(-1)
    square_a = square_b = square = most = 0.0
    for start in range(0, left.size, _BLOCK):
        x, y = _wide(left[start : start + _BLOCK]), _wide(right[start : start + _BLOCK])
        strange = ~(np.isfinite(x) & np.isfinite(y))
        if strange.any():
            if not np.array_equal(x[strange], y[strange], equal_nan=True):
                return Distance(math.inf, math.inf, True)
            x, y = np.where(strange, 0, x), np.where(strange, 0, y)
        gap = np.abs(x - y)
        most = max(most, float(gap.max(initial=0.0)))
        with np.errstate(over="ignore"):
            square_a += float(np.sum(np.abs(x) ** 2))
            square_b += float(np.sum(np.abs(y) ** 2))
            square += float(np.sum(gap**2))
    if square == 0.0 and most == 0.0:
        return SAME_BITS
    scale = math.sqrt(max(square_a, square_b))
    return Distance(
        math.sqrt(square) / scale if scale and math.isfinite(scale) else math.inf, most, True
    )


def _wide(block: Array) -> Array:
    import numpy as np

    return np.asarray(block).astype(np.complex128 if block.dtype.kind == "c" else np.float64)


def elements(a: Array, b: Array) -> Sentence:
    """Return which elements of B's array differ from A's; nothing where none or all do.

    >>> import numpy as np
    >>> str(elements(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.5], [3.0, 4.0]])))
    '1 of 4 elements differs, first [0, 1]: 2 / 2.5'
    """
    import numpy as np

    if a.shape != b.shape:
        return NOTHING
    x, y = _wide(a).reshape(-1), _wide(b).reshape(-1)
    other = (x != y) & ~(np.isnan(x) & np.isnan(y))
    count = int(np.count_nonzero(other))
    if not 0 < count < x.size:
        return NOTHING
    from probe.reading.check.weights.check import which_elements

    first = int(np.argmax(other))
    return which_elements(count, first, a.shape, (x[first].item(), y[first].item()))


def relation(a: Array, b: Array) -> Sentence:  # noqa: PLR0911 (one line for each relation)
    """Return the relation of B's array to A's.

    >>> import numpy as np
    >>> x = np.arange(6.0).reshape(2, 3)
    >>> [str(relation(x, y)) for y in (x.T, x[::-1], 0.5 * x, x + x**2)]
    ["B is the transpose of A's", 'B has the same rows in another order', "B is A's times 0.5", '']
    """
    import numpy as np

    if a.size != b.size or a.size > 1 << 26 or not a.size:
        return NOTHING
    x, y = _wide(a), _wide(b)
    if x.ndim == 2 and x.T.shape == y.shape and np.array_equal(x.T, y):
        return say("compare.transposed")
    if x.shape == y.shape and np.array_equal(x, -y):
        return say("compare.other_sign")
    if x.dtype.kind != "c" and np.array_equal(np.sort(x, axis=None), np.sort(y, axis=None)):
        is_moved = (
            x.shape == y.shape
            and x.ndim
            and (x.ndim == 1 or sorted(map(bytes, x)) == sorted(map(bytes, y)))
        )
        return say("compare.other_rows") if is_moved else say("compare.other_places")
    scale = float(np.vdot(x, x).real)
    if x.shape != y.shape or not scale or not math.isfinite(scale):
        return NOTHING
    factor = float(np.vdot(x, y).real) / scale
    rest = float(np.linalg.norm(y - factor * x))
    if factor and abs(factor - 1) > 1e-4 and rest <= 1e-5 * abs(factor) * math.sqrt(scale):
        return say("compare.factor", factor=factor)
    return NOTHING


_MOST_ELEMENTS, _MOST_ORDERS = 1 << 24, 64


class Stored(NamedTuple):
    """The places of the arrays of a record that was put together; its "data_name" is their name."""

    folders: tuple[str, ...]  # the rank folders
    axis: int = 0  # the axis along which the arrays are put together
    #: the place of each array in a grid of parts, where the dump tells it; the axis is not used then
    parts: tuple[tuple[int, ...], ...] = ()
    #: for each axis of the grid the dimension of the array, or None where arrays are added
    dims: tuple[int | None, ...] = ()


def joined(parts: Sequence[Array], axis: int, blocks: int = 1) -> Array:
    """Return the shards, in the order of their ranks, as one array; of each of its blocks every shard holds a part.

    >>> import numpy as np
    >>> parts = [np.array([0, 1, 4, 5]), np.array([2, 3, 6, 7])]
    >>> joined(parts, 0).tolist(), joined(parts, 0, 2).tolist()
    ([0, 1, 4, 5, 2, 3, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7])
    """
    import numpy as np

    if len(parts) == 1:
        return parts[0]
    cut = (
        [np.split(part, blocks, axis) for part in parts]
        if blocks > 1
        else [[part] for part in parts]
    )
    return np.concatenate([pieces[block] for block in range(blocks) for pieces in cut], axis)


def joined_grid(arrays: Mapping[tuple[int, ...], Array], dims: Sequence[int | None]) -> Array:
    """Return the array that parts make, by their places in a grid; for ``dims`` see ``Stored``.

    >>> import numpy as np
    >>> parts = {(0, 0): np.array([1]), (0, 1): np.array([2]), (1, 0): np.array([3]), (1, 1): np.array([4])}
    >>> joined_grid(parts, (0, 0)).tolist(), joined_grid(parts, (0, None)).tolist()
    ([1, 2, 3, 4], [3.0, 7.0])
    """
    import numpy as np

    def join(row: list[Array], dim: int | None) -> Array:
        return (
            np.sum([part.astype(np.float64) for part in row], axis=0)
            if dim is None
            else np.concatenate(row, dim)
        )

    return fold_grid(arrays, dims, join)


Part = TypeVar("Part")


def fold_grid(
    parts: Mapping[tuple[int, ...], Part],
    dims: Sequence[int | None],
    join: Callable[[list[Part], int | None], Part],
) -> Part:
    """Return the one that parts make by their places in a grid, the last axis first; ``join`` puts a row together."""
    left = dict(parts)
    for dim in reversed(dims):
        rows = grouped((key[:-1], left[key]) for key in sorted(left))
        left = {key: join(row, dim) for key, row in rows.items()}
    return left[()]


def best_order(
    a: Sequence[Array],
    b: Sequence[Array],
    axis: int,
    apart: Callable[[Array, Array], float],
    enough: float,
) -> int:
    """Return the number of blocks with which the shards of two sides come nearest to one another, or near enough."""
    best, least = 1, apart(joined(a, axis), joined(b, axis))
    lengths = [part.shape[axis] for part in (*a, *b)]
    if sum(part.size for part in a) > _MOST_ELEMENTS:
        return best
    orders = [
        count
        for count in range(2, min(lengths) + 1)
        if not any(length % count for length in lengths)
    ]
    for blocks in orders[:_MOST_ORDERS]:
        if least <= enough:
            break
        found = apart(joined(a, axis, blocks), joined(b, axis, blocks))
        if found < least:
            best, least = blocks, found
    return best


def like_parts(whole: Array, parts: Sequence[Array], axis: int, blocks: int = 1) -> list[Array]:
    """Return the pieces of a whole array that stand where each shard belongs.

    >>> import numpy as np
    >>> parts = [np.zeros(4), np.zeros(4)]
    >>> [piece.tolist() for piece in like_parts(np.arange(8), parts, 0, 2)]
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    import numpy as np

    ends = np.cumsum([part.shape[axis] // blocks for part in parts])
    pieces = [np.split(block, ends[:-1], axis) for block in np.split(whole, blocks, axis)]
    return [np.concatenate([block[place] for block in pieces], axis) for place in range(len(parts))]
