# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Watches a training with few hooks: on what is differentiated, on gradients of parameters, on updates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from probe.capture.autograd.nodes import preserve_hook_version, remove_hooks
from probe.capture.optimizer_values import OptimizerValues
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.cells import optimizer_kinds
from probe.executor import pynative_executor
from probe.store.error_log import ErrorLog


class Observer(Protocol):
    """Receives what the hooks see. Its methods never raise errors of its own."""

    def differentiated(self, output: Any) -> None:
        """A function or Cell ended whose gradients are computed next."""

    def scaled(self, scale: Any) -> None:
        """A loss scaler has chosen its next scale."""

    def gradients(self, arrived: Sequence[tuple[str, Any]]) -> None:
        """The gradients of these parameters arrived."""

    def before_update(self, name: str, optimizer: OptimizerValues, gradients: Any) -> None:
        """An optimizer begins."""

    def after_update(self, name: str, optimizer: OptimizerValues) -> None:
        """An optimizer has ended."""


class _Here(threading.local):
    """The place of this thread.

    Attributes:
        is_inside: an optimizer is running.
        arrived: the gradients that arrived in the backward that runs, with the parameters' names; None outside of one.
    """

    is_inside = False
    arrived: list[tuple[str, Any]] | None = None


class TrainingHooks:
    """Installs the hooks between start and stop. Hooks on parameters stay until the end of the step.

    Args:
        observer: receives what they see.
        on_cpu: whether the device is the CPU.
        errors: reports errors of the tool.
    """

    def __init__(self, observer: Observer, on_cpu: bool, errors: ErrorLog) -> None:
        self._observer, self._on_cpu, self._errors = observer, on_cpu, errors
        from mindspore.amp import DynamicLossScaler

        executor = type(pynative_executor())
        patches = [Patch(executor, "end_graph", around(self._end_graph)), Patch(executor, "grad", around(self._grad))]
        patches += [Patch(kind, "__call__", around(self._update)) for kind in optimizer_kinds()]
        patches.append(Patch(DynamicLossScaler, "adjust", around(self._adjust)))
        self._patches = HookGroup(patches)
        self._parameters: dict[str, Any] = {}
        self._handles: list[Any] = []
        self._optimizers: dict[int, tuple[str, OptimizerValues]] = {}
        self._here, self._lock = _Here(), threading.Lock()

    def watch(self, parameters: Mapping[str, Any]) -> None:
        """Watch the gradients of these parameters, from the next ``install`` on."""
        self._parameters = dict(parameters)

    def install(self) -> None:
        """Begin to watch."""
        self._patches.install()
        if self._handles:
            return
        with preserve_hook_version():
            for name, parameter in self._parameters.items():
                if parameter.requires_grad:
                    self._handles.append(parameter.register_hook(self._hook(name)))

    def remove(self) -> None:
        """Restore MindSpore. The parameters' hooks stay: a backward may follow."""
        self._patches.remove()

    def end_step(self) -> None:
        """Remove the parameters' hooks too."""
        self._patches.remove()
        handles, self._handles = self._handles, []
        remove_hooks(handles)

    def _hook(self, name: str) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            arrived = self._here.arrived
            if arrived is None:
                self._observer.gradients([(name, gradient)])
            else:
                arrived.append((name, gradient))

        return hook

    def _grad(self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a backward. Its gradients are read together at its end: one by one costs four times as much."""
        before, self._here.arrived = self._here.arrived, []
        try:
            result = original(executor, *args, **kwargs)
            self._observe_arrived()
            return result
        finally:
            self._here.arrived = before

    def _observe_arrived(self) -> None:
        if self._here.arrived:
            arrived, self._here.arrived = self._here.arrived, []
            self._observer.gradients(arrived)

    def _end_graph(self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any) -> Any:
        with self._errors.guard("noting the loss"):
            self._observer.differentiated(args[1])  # behind the function or Cell
        return original(executor, *args, **kwargs)

    def _update(self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if self._here.is_inside:  # an optimizer inside another
            return original(optimizer, *args, **kwargs)
        name, values = "", None
        with self._errors.guard("reading an optimizer", type(optimizer).__name__):
            name, values = self._of(optimizer)
        if values is None:
            return original(optimizer, *args, **kwargs)
        self._here.is_inside = True
        try:
            self._observe_arrived()  # an optimizer inside a backward may change them
            self._observer.before_update(name, values, args[0] if args else ())
            result = original(optimizer, *args, **kwargs)
            self._observer.after_update(name, values)
        finally:
            self._here.is_inside = False
        return result

    def _adjust(self, original: Callable[..., Any], scaler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scaler, *args, **kwargs)
        self._observer.scaled(getattr(scaler, "scale_value", None))
        return result

    def _of(self, optimizer: Any) -> tuple[str, OptimizerValues]:
        with self._lock:  # another thread may meet its first optimizer now
            known = self._optimizers.get(id(optimizer))
            if known is None or not known[1].is_of(optimizer):
                name = f"optimizer{len(self._optimizers) or ''}" if known is None else known[0]
                known = self._optimizers[id(optimizer)] = name, OptimizerValues(optimizer, may_run=self._on_cpu)
            return known
