# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The faults of ``probe drill``, and what plants one into a step of a training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.training.events import update_listener
from probe.executor import pynative_executor
from probe.intervention.change import Change
from probe.intervention.values import write
from probe.launch.training_change import TrainingChange
from probe.layers.layer import Layer, layers
from probe.measure.tensor_reader import to_numpy
from probe.process.rank import RankResolver
from probe.pytree import leaves

#: fault -> its sizes, rising; of "frozen" and "transposed" the part of the parameters, the smallest first
SIZES: dict[str, tuple[float, ...]] = {
    "gradient": (2.0, 100.0, 1e4), "nan": (1.0,), "frozen": (0.0, 1.0), "rate": (3.0, 30.0, 300.0),
    "batch": (3.0, 1e3), "transposed": (0.0, 1.0), "rank": (1.0,),
}  # fmt: skip


class Planted(TrainingChange):
    """Plants one fault; the clean run has the fault "clean"."""

    def __init__(self, change: Change) -> None:
        from mindspore import Parameter, Tensor

        self._kind, self._size, self._at = change.fault
        self._step = 0
        self._types = (Tensor, Parameter)
        self._held: dict[int, Any] = {}  # the parameters that are trained
        self._batch: tuple[int, list[Any]] = -1, []  # the step and the values of the last batch
        kind = type(pynative_executor())
        hooks: list[Any] = [Patch(kind, name, around(self._grad)) for name in ("grad", "grad_aux")]
        self._met: list[Layer] = []  # the layers whose updates are seen
        self.hooks = HookGroup(hooks)  # whoever ends the run removes them
        self._meet_layers()
        self.hooks.install()  # before those of the monitor, which sees the fault then

    def end(self) -> int:
        """End the step. If the next one gets the fault, it is recorded, and one more."""
        self._step += 1
        return 2 if self._step == self._at else 0

    def _meet_layers(self) -> None:
        """See the updates of the layers that the program has imported since."""
        for layer in layers():
            if layer not in self._met:
                self._met.append(layer)
                self.hooks.add(update_listener(layer, self._update))

    def parameters(self, parameters: Iterable[Any]) -> None:
        """Take the parameters."""
        self._meet_layers()
        self._held.update(
            (id(parameter), parameter) for parameter in parameters if parameter.requires_grad
        )

    def begin(self, models: Any) -> None:
        """Transpose a weight at the beginning of its step."""
        if self._is_due("transposed"):
            square = [one for one in self._by_size() if one.ndim > 1 and min(one.shape) > 1]
            for one in square[-1:] if self._size else square[:1]:
                array = to_numpy(one)
                write(one, np.ascontiguousarray(array.T).reshape(array.shape))
            self._kind = "clean"  # once

    def batch(self, *values: Any) -> None:
        """Scale the first batch of its step, or give a rank the one of the step before."""
        kind, parameter = self._types
        found = [
            leaf
            for leaf in leaves(values)
            if isinstance(leaf, kind) and not isinstance(leaf, parameter)
        ]
        if not found or self._batch[0] == self._step:
            return
        before = self._batch[1]
        arrays = [to_numpy(tensor).copy() for tensor in found]
        if self._is_due("batch"):
            one = arrays[0]  # the others are labels
            scaled = (
                one * self._size if one.dtype.kind == "f" else (one * self._size) % (one.max() + 1)
            )
            write(found[0], scaled.astype(one.dtype))
        elif self._is_due("rank") and RankResolver().rank() == 1:
            for tensor, array in zip(found, before):
                write(tensor, array)
        self._batch = self._step, arrays

    def _is_due(self, kind: str) -> bool:
        return bool(self._kind == kind and self._step == self._at)

    def _by_size(self) -> list[Any]:
        return sorted(self._held.values(), key=_size)

    def _grad(self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(executor, *args, **kwargs)
        weights = args[2] if len(args) > 2 else None
        if (
            self._kind not in ("gradient", "nan")
            or self._step < self._at
            or not isinstance(weights, (tuple, list))
        ):
            return result
        is_inner = isinstance(result[-1], tuple)
        gradients = list(result[-1] if is_inner else result)
        place = max(range(len(weights)), key=lambda one: _size(weights[one]))
        array = to_numpy(gradients[place]).copy()
        if self._kind == "gradient":
            array *= array.dtype.type(self._size)
        elif self._step == self._at:
            array.reshape(-1)[0] = np.nan
        write(
            gradients[place], array
        )  # in its own memory: nothing is called that a dump would have
        return result

    def _update(
        self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        frozen = []
        if self._kind == "frozen" and self._step >= self._at:
            frozen = self._by_size() if self._size else self._by_size()[:1]
        elif self._is_due("rate"):
            self._raise_rates(optimizer)
            self._kind = "clean"
        before = [(parameter, to_numpy(parameter).copy()) for parameter in frozen]
        result = original(optimizer, *args, **kwargs)
        for parameter, array in before:
            write(parameter, array)
        return result

    def _raise_rates(self, optimizer: Any) -> None:
        """Multiply the learning rates of an optimizer, from this step on."""
        groups = getattr(optimizer, "param_groups", None)
        if groups is None:
            groups = [{"lr": getattr(optimizer, "learning_rate", None)}]
        tensors: dict[int, Any] = {}
        for group in groups:
            if isinstance(group["lr"], float):
                group["lr"] *= self._size
            for leaf in leaves(group["lr"]):
                rate = getattr(leaf, "learning_rate", leaf)  # of a schedule its table
                if isinstance(rate, self._types[0]):
                    tensors[id(rate)] = rate
        for rate in tensors.values():
            write(rate, to_numpy(rate) * np.float32(self._size))


def _size(tensor: Any) -> int:
    """Return the number of elements. An adapter of torch makes a method of the attribute."""
    return math.prod(tensor.shape)
