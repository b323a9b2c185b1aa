# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Sees a training with few patches: what is differentiated, the gradients that a backward returns, updates."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from probe.capture.autograd.nodes import preserve_hook_version, remove_hooks
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.training.optimizer_values import OptimizerValues
from probe.executor import pynative_executor
from probe.store.error_log import ErrorLog


class Listener(NamedTuple):
    """Runs ``run(original, *args, **kwargs)`` around an event, between ``install`` and ``remove``."""

    event: Event
    run: Callable[..., Any]

    def install(self) -> None:
        """Begin to listen."""
        self.event.tell([*self.event.listeners, self])

    def remove(self) -> None:
        """Listen no longer."""
        self.event.tell([other for other in self.event.listeners if other != self])


class Event:
    """A method of MindSpore that runs, seen by one patch while somebody listens.

    The first listener is the outermost. One that comes while the method runs hears of it too, inside of the others:
    `probe run` begins a step with an update, which the dump of this step records.
    """

    def __init__(self, owners: Iterable[type], name: str) -> None:
        self._patches = HookGroup(Patch(owner, name, around(functools.partial(self._run, ()))) for owner in owners)
        self.listeners: list[Listener] = []

    def tell(self, listeners: list[Listener]) -> None:
        """Tell these listeners from now on."""
        self.listeners = listeners
        (self._patches.install if listeners else self._patches.remove)()

    def _run(self, told: tuple[Listener, ...], original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        for listener in self.listeners:
            if listener not in told:
                return listener.run(functools.partial(self._run, (*told, listener), original), *args, **kwargs)
        return original(*args, **kwargs)


@functools.cache
def updates() -> Event:
    """Return the updates of optimizers, those inside of others too."""
    return Event(optimizer_kinds(), "__call__")


def optimizer_kinds() -> tuple[type, type]:
    """Return the classes that all optimizers of MindSpore are derived from."""
    from mindspore import experimental, nn

    return nn.Optimizer, experimental.optim.Optimizer


class KnownOptimizers:
    """The optimizers that were met, named "optimizer", "optimizer1" and so on."""

    def __init__(self, may_run: bool) -> None:
        self._may_run, self._lock = may_run, threading.Lock()
        self._known: dict[int, tuple[str, OptimizerValues]] = {}

    def of(self, optimizer: Any) -> tuple[str, OptimizerValues]:
        """Return the name and the values of an optimizer."""
        with self._lock:  # another thread may meet its first optimizer now
            known = self._known.get(id(optimizer))
            if known is None or not known[1].is_of(optimizer):
                name = f"optimizer{len(self._known) or ''}" if known is None else known[0]
                known = self._known[id(optimizer)] = name, OptimizerValues(optimizer, self._may_run)
            return known


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
        self._observer, self._errors = observer, errors
        from mindspore.amp import DynamicLossScaler, StaticLossScaler

        executor = type(pynative_executor())
        patches = [Patch(executor, "end_graph", around(self._end_graph))]
        patches.append(Patch(DynamicLossScaler, "adjust", around(self._adjust)))
        patches += [Patch(kind, "scale", around(self._scale)) for kind in (DynamicLossScaler, StaticLossScaler)]
        self._hooks = HookGroup([*patches, Listener(updates(), self._update)])
        self._backward = HookGroup(Patch(executor, name, around(self._grad)) for name in ("grad", "grad_aux"))
        self._parameters: dict[int, tuple[str, Any]] = {}
        self._optimizers = KnownOptimizers(on_cpu)
        self._here = threading.local()  # is_inside: an optimizer is running

    def watch(self, parameters: Mapping[str, Any]) -> None:
        """Watch the gradients of these parameters."""
        self._parameters = {id(parameter): (name, parameter) for name, parameter in parameters.items()}

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
        handles: list[Any] = []
        weights = args[2] if len(args) > 2 else None  # behind the function and the operation
        with self._errors.guard("watching a backward"):
            if weights is None:  # which parameters the gradients belong to is not told
                self._register(handles, arrived)
        try:
            result = original(executor, *args, **kwargs)
        finally:
            with self._errors.guard("removing the hooks"):
                remove_hooks(handles)
        with self._errors.guard("noting the gradients of a backward"):
            if weights is not None:
                arrived += self._returned(weights, result)
        if arrived:
            self._observer.gradients(arrived)
        return result

    def _register(self, handles: list[Any], arrived: list[tuple[str, Any]]) -> None:
        with preserve_hook_version():
            for name, parameter in self._parameters.values():
                if parameter.requires_grad:
                    handles.append(
                        parameter.register_hook(lambda gradient, name=name: arrived.append((name, gradient)))
                    )

    def _returned(self, weights: Any, result: Any) -> Iterator[tuple[str, Any]]:
        """Yield the gradients of the parameters that are watched. Gradients of inputs stand before them."""
        several = isinstance(weights, (tuple, list))
        inner = result[-1] if isinstance(result, tuple) and isinstance(result[-1], tuple) == several else result
        for parameter, gradient in zip(weights, inner) if several else [(weights, inner)]:
            name, known = self._parameters.get(id(parameter), ("", None))
            if known is not None and known.requires_grad:
                yield name, gradient

    def _end_graph(self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> Any:
        with self._errors.guard("noting the loss"):
            self._observer.differentiated(args[1])  # behind the function or Cell
        return original(executor, *args, **kwargs)

    def _update(self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self._here, "is_inside", False):  # an optimizer inside another
            return original(optimizer, *args, **kwargs)
        name, values = "", None
        with self._errors.guard("reading an optimizer", type(optimizer).__name__):
            name, values = self._optimizers.of(optimizer)
        if values is None:
            return original(optimizer, *args, **kwargs)
        self._here.is_inside = True
        try:
            self._observer.before_update(name, values, args[0] if args else ())
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
