# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts a whole array together from the parts that ranks hold.

Shards of a fused weight (query, key and value; gate and up) hold a part of each block of the whole. The order is then
that of the blocks. It is found by the numbers: the order that comes nearest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from probe.reading.dumps.values import grouped

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: larger arrays are compared in one order alone
_MOST_ELEMENTS = 1 << 24
#: so many orders are tried
_MOST_ORDERS = 64

Part = TypeVar("Part")


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
    if blocks == 1:
        return np.concatenate(parts, axis)
    cut = [np.split(part, blocks, axis) for part in parts]
    pieces: list[Array] = []
    for block in zip(*cut):
        pieces += block
    return np.concatenate(pieces, axis)


def joined_grid(arrays: Mapping[tuple[int, ...], Array], dims: Sequence[int | None]) -> Array:
    """Return the array that parts make, by their places in a grid; for ``dims`` see ``Stored``.

    >>> import numpy as np
    >>> parts = {(0, 0): np.array([1]), (0, 1): np.array([2]), (1, 0): np.array([3]), (1, 1): np.array([4])}
    >>> joined_grid(parts, (0, 0)).tolist(), joined_grid(parts, (0, None)).tolist()
    ([1, 2, 3, 4], [3.0, 7.0])
    """
    import numpy as np

    def join(row: list[Array], dim: int | None) -> Array:
        if dim is None:
            wide: Array = np.sum([part.astype(np.float64) for part in row], axis=0)
            return wide
        return np.concatenate(row, dim)

    return fold_grid(arrays, dims, join)


def fold_grid(
    parts: Mapping[tuple[int, ...], Part],
    dims: Sequence[int | None],
    join: Callable[[list[Part], int | None], Part],
) -> Part:
    """Return the one that parts make by their places in a grid, the last axis first; ``join`` puts a row together."""
    folded = dict(parts)
    for dim in reversed(dims):
        in_order = sorted(folded)
        rows = grouped((place[:-1], folded[place]) for place in in_order)
        folded = {place: join(row, dim) for place, row in rows.items()}
    return folded[()]


def best_order(
    a: Sequence[Array],
    b: Sequence[Array],
    axis: int,
    apart: Callable[[Array, Array], float],
    enough: float,
) -> int:
    """Return the number of blocks with which the shards of two sides come nearest to one another, or near enough."""
    best = 1
    least = apart(joined(a, axis), joined(b, axis))
    if sum(part.size for part in a) > _MOST_ELEMENTS:
        return best
    lengths = [part.shape[axis] for part in (*a, *b)]
    common = math.gcd(*lengths)
    orders = [count for count in range(2, min(lengths) + 1) if common % count == 0]
    for blocks in orders[:_MOST_ORDERS]:
        if least <= enough:
            break
        found = apart(joined(a, axis, blocks), joined(b, axis, blocks))
        if found < least:
            best = blocks
            least = found
    return best


def like_parts(whole: Array, parts: Sequence[Array], axis: int, blocks: int = 1) -> list[Array]:
    """Return the pieces of a whole array that stand where each shard belongs.

    >>> import numpy as np
    >>> parts = [np.zeros(4), np.zeros(4)]
    >>> [piece.tolist() for piece in like_parts(np.arange(8), parts, 0, 2)]
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    import numpy as np

    lengths = [part.shape[axis] // blocks for part in parts]
    ends = np.cumsum(lengths)[:-1]
    whole_blocks = np.split(whole, blocks, axis)
    pieces = (np.split(block, ends, axis) for block in whole_blocks)
    return [np.concatenate(own, axis) for own in zip(*pieces)]
