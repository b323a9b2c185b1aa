# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Sees a training with few patches: what is differentiated, the gradients that a backward returns, updates."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Protocol

from probe.capture.autograd.leaf_hooks import LeafHooks
from probe.capture.method_event import Event, FunctionEvent, Listener
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.training.grouped_values import GroupedValues
from probe.capture.training.optimizer_values import OptimizerValues
from probe.executor import pynative_executor
from probe.layers.layer import Layer, layer_of_optimizer, layers
from probe.parameter_names import ParameterNames
from probe.store.error_log import ErrorLog


def _note(arrived: list[tuple[str, Any]], name: str, gradient: Any) -> None:
    """Note the gradient of a parameter."""
    arrived.append((name, gradient))


@functools.cache
def updates() -> Event:
    """Return the updates of optimizers, those inside of others too."""
    return Event(optimizer_kinds(), "__call__")


@functools.cache
def _updates_of(layer: Layer) -> Event:
    """Return the updates of the optimizers of a layer above MindSpore."""
    return FunctionEvent(lambda: _methods(layer.optimizers, layer.update))


def _methods(kinds: Iterable[type], name: str) -> Iterator[FunctionType]:
    """Yield the methods of this name of some classes and of those derived from them."""
    for kind in kinds:
        own = vars(kind).get(name)
        if isinstance(own, FunctionType):
            yield own
        yield from _methods(type.__subclasses__(kind), name)


def update_listener(layer: Layer, run: Callable[..., Any]) -> Listener:
    """Return what runs ``run(original, optimizer, *args)`` around each update of a layer's optimizers."""
    return Listener(_updates_of(layer) if layer.optimizers else updates(), run)


def update_listeners(run: Callable[..., Any]) -> list[Listener]:
    """Return the same for all layers of this process."""
    return [update_listener(layer, run) for layer in layers()]


def values_of(optimizer: Any, may_run: bool, names: ParameterNames) -> OptimizerValues:
    """Return the values of an optimizer."""
    kind = OptimizerValues if layer_of_optimizer(optimizer) is None else GroupedValues
    return kind(optimizer, may_run, names)


def optimizer_kinds() -> tuple[type, type]:
    """Return the classes that all optimizers of MindSpore are derived from."""
    from mindspore import experimental, nn

    return nn.Optimizer, experimental.optim.Optimizer


class KnownOptimizers:
    """The optimizers that were met, named "optimizer", "optimizer1" and so on.

    An optimizer keeps its name as long as it lives, also when other models are watched.
    """

    def __init__(self, may_run: bool) -> None:
        self._may_run = may_run
        self._lock = threading.Lock()
        self._values: dict[int, OptimizerValues] = {}
        self._called: dict[
            int, tuple[weakref.ref[Any], str]
        ] = {}  # by identity; an optimizer of old models may go
        self._names = ParameterNames()

    def rename(self, names: ParameterNames) -> None:
        """Give parameters other names, as there are other models."""
        self._names = names
        self._values.clear()

    def of(self, optimizer: Any) -> tuple[str, OptimizerValues]:
        """Return the name and the values of an optimizer."""
        with self._lock:  # another thread may meet its first optimizer now
            values = self._values.get(id(optimizer))
            if values is None or not values.is_of(optimizer):
                values = self._values[id(optimizer)] = values_of(
                    optimizer, self._may_run, self._names
                )
            return self._name(optimizer), values

    def _name(self, optimizer: Any) -> str:
        called = self._called.get(id(optimizer))
        if called is None or called[0]() is not optimizer:
            self._called = {
                key: item for key, item in self._called.items() if item[0]() is not None
            }
            taken = {name for _, name in self._called.values()}
            name = next(name for name in _optimizer_names() if name not in taken)
            called = self._called[id(optimizer)] = weakref.ref(optimizer), name
        return called[1]


def _optimizer_names() -> Iterator[str]:
    yield "optimizer"
    yield from (f"optimizer{number}" for number in itertools.count(1))


class Observer(Protocol):
    """Receives what the hooks see. Its methods never raise errors of its own."""

    def differentiated(self, output: Any) -> None:
        """A function or Cell ended whose gradients are computed next."""

    def scaled(self, scale: Any) -> None:
        """A loss scaler has chosen its next scale."""

    def scales(self, scale: Any) -> None:
        """A loss scaler multiplies the loss of the function that runs; ``scale`` may change when it is adjusted."""

    def before_adjust(self) -> None:
        """A loss scaler is about to change its scale."""

    def gradients(self, arrived: Sequence[tuple[str, Any]]) -> None:
        """The gradients of these parameters arrived."""

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """An optimizer begins."""

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """An optimizer has ended."""


class TrainingHooks:
    """Installs the hooks between start and stop. A backward is watched until the end of the step."""

    def __init__(self, observer: Observer, on_cpu: bool, errors: ErrorLog) -> None:
        self._observer = observer
        self._errors = errors
        from mindspore.amp import DynamicLossScaler, StaticLossScaler

        executor = type(pynative_executor())
        patches = [Patch(executor, "end_graph", around(self._end_graph))]
        patches.append(Patch(DynamicLossScaler, "adjust", around(self._adjust)))
        patches += [
            Patch(kind, "scale", around(self._scale))
            for kind in (DynamicLossScaler, StaticLossScaler)
        ]
        self._hooks = HookGroup([*patches, *update_listeners(self._update)])
        self._backward = HookGroup(
            Patch(executor, name, around(self._grad)) for name in ("grad", "grad_aux")
        )
        self._parameters: dict[int, tuple[str, Any]] = {}
        self._optimizers = KnownOptimizers(on_cpu)
        self._here = threading.local()  # is_inside: an optimizer is running

    def watch(self, parameters: Mapping[str, Any], names: ParameterNames | None = None) -> None:
        """Watch the gradients of these parameters; ``names`` has those of the parameters of optimizers."""
        self._optimizers.rename(names or ParameterNames())
        self._parameters = {
            id(parameter): (name, parameter) for name, parameter in parameters.items()
        }

    def install(self) -> None:
        """Begin to watch."""
        self._hooks.install()
        self._backward.install()

    def remove(self) -> None:
        """Restore MindSpore, but for the method that runs a backward: one may follow."""
        self._hooks.remove()

    def end_step(self) -> None:
        """Restore MindSpore."""
        self._hooks.remove()
        self._backward.remove()

    def _grad(self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a backward. Its gradients are those that it returns; a hook on each parameter costs twice as much."""
        arrived: list[tuple[str, Any]] = []
        hooks = LeafHooks()
        weights = args[2] if len(args) > 2 else None  # behind the function and the operation
        with self._errors.guard("watching a backward"):
            if weights is None:  # which parameters the gradients belong to is not told
                hooks.register(self._receivers(arrived))
        try:
            result = original(executor, *args, **kwargs)
        finally:
            with self._errors.guard("removing the hooks"):
                hooks.remove()
        with self._errors.guard("noting the gradients of a backward"):
            if weights is not None:
                arrived += self._returned(weights, result)
        if arrived:
            self._observer.gradients(arrived)
        return result

    def _receivers(
        self, arrived: list[tuple[str, Any]]
    ) -> Iterator[tuple[Any, Callable[[Any], None]]]:
        """Yield each parameter that is watched with a hook, which adds its gradient to those that arrived."""
        for name, parameter in self._parameters.values():
            if parameter.requires_grad:
                yield parameter, functools.partial(_note, arrived, name)

    def _returned(self, weights: Any, result: Any) -> Iterator[tuple[str, Any]]:
        """Yield the gradients of the parameters that are watched. Gradients of inputs stand before them."""
        several = isinstance(weights, (tuple, list))
        inner = (
            result[-1]
            if isinstance(result, tuple) and isinstance(result[-1], tuple) == several
            else result
        )
        for parameter, gradient in zip(weights, inner) if several else [(weights, inner)]:
            name, known = self._parameters.get(id(parameter), ("", None))
            if known is not None and known.requires_grad:
                yield name, gradient

    def _end_graph(
        self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any
    ) -> Any:
        with self._errors.guard("noting the loss"):
            self._observer.differentiated(args[1])  # behind the function or Cell
        return original(executor, *args, **kwargs)

    def _update(
        self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if getattr(self._here, "is_inside", False):  # an optimizer inside another
            return original(optimizer, *args, **kwargs)
        name = ""
        values = None
        with self._errors.guard("reading an optimizer", type(optimizer).__name__):
            name, values = self._optimizers.of(optimizer)
        if values is None:
            return original(optimizer, *args, **kwargs)
        self._here.is_inside = True
        try:
            entered = values.gradients(args)
            self._observer.before_update(name, values, entered[0] if entered else ())
            result = original(optimizer, *args, **kwargs)
            self._observer.after_update(name, values)
        finally:
            self._here.is_inside = False
        return result

    def _adjust(self, original: Callable[..., Any], scaler: Any, *args: Any, **kwargs: Any) -> Any:
        self._observer.before_adjust()
        result = original(scaler, *args, **kwargs)
        self._observer.scaled(getattr(scaler, "scale_value", None))
        return result

    def _scale(self, original: Callable[..., Any], scaler: Any, *args: Any, **kwargs: Any) -> Any:
        self._observer.scales(getattr(scaler, "scale_value", None))
        return original(scaler, *args, **kwargs)
