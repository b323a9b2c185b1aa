# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gradients of operations in float64 of numpy, by the kind of the operation. A script holds a copy.

A function takes all tensors of a call as arrays, and returns its outputs. Each gradient is that of the sum of the
outputs times the gradients that arrive. ValueError is raised where it is not sure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from probe.replaying.judging import Array

#: a forward call: its tensors -> its outputs
Forward = Callable[[Sequence[Array]], Sequence[Array]]
#: outputs, tensors, (number, gradient) of outputs, numbers of the wanted tensors -> their gradients
Gradients = Callable[
    [Forward, Sequence[Array], Sequence[tuple[int, Array]], Sequence[int]], Sequence[Array]
]

_STEP = 1e-4  # of a central difference, over the size of the element
_LEAST_STEP = 1e-6
#: the slopes of both sides, or for two steps, may be so far apart: else there is a kink
_KINK = 0.02
_KINK_OF_GREATEST = 1e-3


def gradients_of_elements(
    outputs: Forward,
    arrays: Sequence[Array],
    sens: Sequence[tuple[int, Array]],
    wanted: Sequence[int],
) -> list[Array]:
    """Return the gradients where each element of the output depends on one element of each tensor."""
    ((_, arriving),) = sens
    return [
        _summed(arriving * _slope(outputs, arrays, number, arriving.shape), arrays[number].shape)
        for number in wanted
    ]


def _slope(outputs: Forward, arrays: Sequence[Array], number: int, shape: tuple[int, ...]) -> Array:
    """Return the derivative of each element of the output, by central differences of two steps."""
    x = arrays[number]
    if x.dtype.kind != "f" or not np.all(np.isfinite(x)):
        raise ValueError("no finite numbers")
    step = np.maximum(_STEP * np.abs(x), _LEAST_STEP)

    def at(times: float) -> Array:
        moved = list(arrays)
        moved[number] = x + times * step
        (found,) = outputs(moved)
        return found

    middle = at(0)
    if middle.shape != shape:
        raise ValueError("another shape")
    wide = np.broadcast_to(step, shape)
    right = (at(1) - middle) / wide
    left = (middle - at(-1)) / wide
    whole = (right + left) / 2
    half = (at(0.5) - at(-0.5)) / wide
    if not np.all(np.isfinite(whole) & np.isfinite(half)):
        raise ValueError("no finite slope")
    greatest = float(np.max(np.abs(half), initial=0.0))
    room = _KINK * np.abs(half) + _KINK_OF_GREATEST * greatest
    if np.any(np.abs(right - left) > room) or np.any(np.abs(whole - half) > room):
        raise ValueError("a kink")
    slope: Array = (4 * half - whole) / 3
    return slope


def _summed(gradient: Array, shape: tuple[int, ...]) -> Array:
    """Return a gradient summed over the axes along which its tensor was repeated."""
    more = gradient.ndim - len(shape)
    axes = [axis for axis in range(gradient.ndim) if axis < more or shape[axis - more] == 1]
    found: Array = gradient.sum(tuple(axes), keepdims=True).reshape(shape)
    return found


def gradients_of_moves(
    outputs: Forward,
    arrays: Sequence[Array],
    sens: Sequence[tuple[int, Array]],
    wanted: Sequence[int],
) -> list[Array]:
    """Return the gradients where the outputs are elements of the tensors: numbers of elements are moved."""
    numbered = list(arrays)
    begins: dict[int, int] = {}
    count = 0
    for place, array in enumerate(arrays):
        if array.dtype.kind == "f":
            begins[place] = count
            numbered[place] = np.arange(count, count + array.size, dtype=float).reshape(array.shape)
            count += array.size
    found = np.zeros(count)
    made = outputs(numbered)
    for number, arriving in sens:
        if made[number].shape != arriving.shape:
            raise ValueError("another shape")
        np.add.at(found, made[number].astype(np.int64), arriving)
    gradients = []
    for place in wanted:
        begin = begins[place]
        size = arrays[place].size
        gradients.append(found[begin : begin + size].reshape(arrays[place].shape))
    return gradients


def gradients_of_matrices(
    outputs: Forward,
    arrays: Sequence[Array],
    sens: Sequence[tuple[int, Array]],
    wanted: Sequence[int],
) -> list[Array]:
    """Return the gradients of a product of two matrices, or of batches of them."""
    left, right = arrays
    ((_, arriving),) = sens
    if min(left.ndim, right.ndim) < 2:
        raise ValueError("a vector")
    both: list[Any] = [arriving @ np.swapaxes(right, -1, -2), np.swapaxes(left, -1, -2) @ arriving]
    return [_summed(both[number], arrays[number].shape) for number in wanted]
