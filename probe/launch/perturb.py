# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Moves the parameters, or the batch, of a training by one rounding: ``probe run --perturb``.

It changes the training on purpose. The run then shows how far the net itself carries roundings: see docs/reading.md.
"""

from __future__ import annotations

import logging
import weakref
import zlib
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from probe.config.config_file import ConfigFile
from probe.launch.training_change import TrainingChange
from probe.measure.tensor_reader import Array, local_tensor, to_numpy
from probe.pytree import leaves
from probe.store.error_log import ErrorGuard

_log = logging.getLogger("probe")


def moved(array: Array, generator: np.random.Generator) -> Array:
    """Return a copy with each element one rounding up or down; zeros, NaN/Inf, whole and complex numbers stay.

    >>> given = np.array([1.0, -2.0, 0.0, np.inf], np.float32)
    >>> found = moved(given, np.random.default_rng(1))
    >>> bool((abs(found[:2] / given[:2] - 1) <= 2**-23).all()), int((found != given).sum()), found[2:].tolist()
    (True, 2, [0.0, inf])
    """
    if array.dtype.kind != "f" and array.dtype != ml_dtypes.bfloat16:
        return array
    most = ml_dtypes.finfo(array.dtype).max
    least = ml_dtypes.finfo(array.dtype).smallest_subnormal
    ends = np.where(generator.integers(0, 2, array.shape, np.int8), most, least).astype(array.dtype)
    return np.where(
        np.isfinite(array) & (array != 0), np.nextafter(array, np.copysign(ends, array)), array
    )


class Perturbation(TrainingChange):
    """Moves each tensor of the target once, before its first use. It draws from generators of its own.

    The target is "parameters", "batch", or "" for nothing; the headers of ``source`` tell it. A seed gives directions.
    """

    def __init__(self, target: str, source: ConfigFile, seed: int = 0) -> None:
        self._target = target
        self._seed = seed
        self._known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._seen = 0
        self._moved = 0
        self._has_told = False
        if target:
            source.header["perturbed"] = {"target": target, "seed": seed}

    def parameters(self, parameters: Iterable[Any]) -> None:
        """Move parameters. Replicas on all ranks are moved alike: the name chooses the directions."""
        if self._target == "parameters":
            self._move((parameter, zlib.crc32(parameter.name.encode())) for parameter in parameters)

    def batch(self, *values: Any) -> None:
        """Move the tensors in values that are no parameters, in their own memory: gradients still flow through them."""
        from mindspore import Parameter, Tensor

        if self._target == "batch":
            found = (
                leaf
                for leaf in leaves(values)
                if isinstance(leaf, Tensor) and not isinstance(leaf, Parameter)
            )
            self._move((tensor, self._seen) for tensor in found)

    def _move(self, tensors: Iterable[tuple[Any, int]]) -> None:
        for tensor, number in tensors:
            if self._known.get(id(tensor)) is not tensor:
                self._known[id(tensor)] = tensor
                self._seen += 1
                with ErrorGuard(
                    _log.debug, f"--perturb: {getattr(tensor, 'name', 'an input')} stays: %s"
                ):
                    self._write(local_tensor(tensor), np.random.default_rng([self._seed, number]))
        if self._seen and not self._has_told:
            self._has_told = True
            _log.warning(
                "THIS RUN IS PERTURBED (--perturb=%s): %d of %d tensors so far are moved by one rounding. "
                "Its losses are not those of the training. Give its dump to probe compare --noise",
                *(self._target, self._moved, self._seen),
            )

    def _write(self, tensor: Any, generator: np.random.Generator) -> None:
        from mindspore import Tensor

        if not getattr(tensor, "has_init", False):  # else it has no values yet
            array = to_numpy(tensor)
            found = moved(array, generator)
            if found.tobytes() != array.tobytes():
                values = Tensor(
                    found.astype(np.float32) if found.itemsize == 2 else found, tensor.dtype
                )
                getattr(tensor, "assign_value_cpp", tensor.assign_value)(
                    values
                )  # below the method, which is recorded
                self._moved += 1
