# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Moves the parameters, or the batch, of a training by one rounding: ``probe run --perturb``.

It changes the training on purpose. The run then shows how far the net itself carries roundings: see docs/reading.md.
"""

from __future__ import annotations

import logging
import weakref
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from probe.measure.shells import local_tensor
from probe.measure.tensor_reader import Array, to_numpy
from probe.pytree import tree_map
from probe.store.error_log import ErrorGuard

_log = logging.getLogger("probe")

PARAMETERS, BATCH = "parameters", "batch"
_PARTS = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}
_FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)


class Wish(NamedTuple):
    """The wish of the user."""

    target: str = ""  # PARAMETERS or BATCH; "" moves nothing
    seed: int = 0  # another seed moves the elements in other directions


NO_WISH = Wish()


def moved(array: Array, generator: np.random.Generator) -> Array:
    """Return a copy with each element one rounding up or down; zeros, NaN/Inf and whole numbers stay.

    >>> given = np.array([1.0, -2.0, 0.0, np.inf], np.float32)
    >>> found = moved(given, np.random.default_rng(1))
    >>> bool((abs(found[:2] / given[:2] - 1) <= 2**-23).all()), int((found != given).sum()), found[2:].tolist()
    (True, 2, [0.0, inf])
    """
    array = np.array(array, copy=True)
    if array.dtype in _PARTS:
        return moved(array.view(_PARTS[array.dtype]), generator).view(array.dtype)
    if array.dtype not in _FLOATS:
        return array
    bits = array.view(f"i{array.dtype.itemsize}")  # one bit more is one rounding away from zero
    steps = generator.integers(0, 2, array.shape, np.int8) * np.int8(2) - np.int8(1)
    is_moved = np.isfinite(array) & (array != 0)
    for turn in (steps, -steps):  # a step to zero or Inf goes the other way
        found = (bits + turn.astype(bits.dtype)).view(array.dtype)
        array = np.where(is_moved, found, array)
        with np.errstate(invalid="ignore"):  # ml_dtypes computes with the bits of a NaN
            is_moved = is_moved & ~(np.isfinite(found) & (found != 0))
    return array


class Perturbation:
    """Moves each tensor of the target once, before its first use. It draws from generators of its own."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self._known: dict[int, weakref.ref[Any]] = {}
        self._moved, self._left = 0, 0

    def header(self) -> dict[str, Any]:
        """Return what the headers of the dump say about it: nothing where nothing is moved."""
        return {"perturbed": self.wish._asdict()} if self.wish.target else {}

    @property
    def moves_batch(self) -> bool:
        """Whether the batch is moved."""
        return self.wish.target == BATCH

    def parameters(self, parameters: Iterable[Any]) -> None:
        """Move parameters. Replicas on all ranks are moved alike: the name chooses the directions."""
        if self.wish.target == PARAMETERS:
            before = self._moved
            for parameter in parameters:
                self._move(parameter, zlib.crc32(parameter.name.encode()))
            if self._moved > before:
                self._tell()

    def batch(self, *values: Any) -> None:
        """Move the tensors in values that are no parameters, in their own memory: gradients still flow through them."""
        from mindspore import Parameter, Tensor

        def move(leaf: Any, _: str) -> Any:
            if isinstance(leaf, Tensor) and not isinstance(leaf, Parameter):
                self._move(leaf, len(self._known))
            return leaf

        if self.moves_batch:
            before = self._moved
            tree_map(move, values, "", Tensor)
            if self._moved > before == 0:
                self._tell()

    def report(self) -> None:
        """Say at the end of the process if nothing was moved."""
        if self.wish.target and not self._moved:
            _log.warning(
                "--perturb %s moved nothing: no tensor with fractions was found%s. This run shows no noise",
                self.wish.target, "; try --perturb parameters" if self.wish.target == BATCH else "",
            )  # fmt: skip

    def _move(self, tensor: Any, number: int) -> None:
        known = self._known.get(id(tensor))
        if known is not None and known() is tensor:
            return
        self._known[id(tensor)] = weakref.ref(tensor)
        with ErrorGuard(self._failed, f"moving {getattr(tensor, 'name', 'a tensor of the batch')}"):
            if getattr(tensor, "has_init", False):
                self._left += 1  # it has no values yet
                return
            self._write(local_tensor(tensor), np.random.default_rng([self.wish.seed, number]))

    def _write(self, tensor: Any, generator: np.random.Generator) -> None:
        from mindspore import Tensor

        array = to_numpy(tensor)
        found = moved(array, generator)
        if array.dtype.kind in "iub" or found.tobytes() == array.tobytes():
            self._left += 1
            return
        is_brain = found.dtype == ml_dtypes.bfloat16
        values = Tensor(found.astype(np.float32) if is_brain else found, tensor.dtype)
        tensor.assign_value(values)
        self._moved += 1

    def _failed(self, operation: str, error: Exception) -> None:
        self._left += 1
        if not self.moves_batch:  # a value that the net has made, as a GAN's image, may not be written
            reason = str(error).split("\n", 1)[0]
            _log.warning("--perturb: %s failed, it stays: %s: %s", operation, type(error).__name__, reason)

    def _tell(self) -> None:
        _log.warning(
            "THIS RUN IS PERTURBED (--perturb %s, seed %d). Tensors moved by one rounding of their dtype: %d; left "
            "alone: %d. Its losses are not those of the training. Give its dump to probe compare --noise",
            self.wish.target, self.wish.seed, self._moved, self._left,
        )  # fmt: skip
