# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Hooks on tensors: the gradients of the model's parameters, and at level "debug" those of saved values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from probe.capture.autograd.leaf_hooks import Hook, LeafHooks
from probe.capture.autograd.nodes import LEAF, AutogradNodes
from probe.measure.measurer import PendingRecord
from probe.pytree import tree_map
from probe.recording.call import GradientUse
from probe.recording.step_recorder import StepRecorder
from probe.tasks.values import DebugTask


class ParameterHooks:
    """A hook on every parameter of every recorded Cell, until the end of the step; active once the Cell was called.

    One hook serves any number of backward passes. MindSpore calls it only if the training computes that parameter's
    gradient. The hooks of one step are registered again at the begin of the next step, all at once. This is several
    times faster than one by one between a training's operations.
    """

    def __init__(self, micro: Callable[[], str | None]) -> None:
        self._micro = micro  # returns the number of the micro-batch that runs, or None
        self._hooked: dict[tuple[str, str], Any] = {}
        self._registered: dict[
            tuple[str, str, int], Callable[[], Any]
        ] = {}  # in this step, by weak references
        self._hooks = LeafHooks()
        self._called: set[str] = set()
        self._stale = False

    def begin(self, recorder: StepRecorder) -> None:
        """Register the hooks of the last step again, unless they are registered."""
        if not self._hooks:
            self._register(recorder, self._hooked, lasting=True)

    def watch(
        self, recorder: StepRecorder, key: str, parameters: Mapping[str, Any], lasting: bool = True
    ) -> None:
        """Record the gradients of a Cell's own parameters. If not ``lasting``, they are of one forward and not held."""
        self._called.add(key)
        known = self._registered
        new = {
            (key, n): p
            for n, p in parameters.items()
            if known.get((key, n, id(p)), type(None))() is not p
        }
        if new:
            self._register(recorder, new, lasting)

    def _register(
        self, recorder: StepRecorder, parameters: Mapping[tuple[str, str], Any], lasting: bool
    ) -> None:
        if recorder.task.gradients is not GradientUse.NONE:
            self._hooks.register(self._new_hooks(recorder, parameters, lasting))

    def _new_hooks(
        self, recorder: StepRecorder, parameters: Mapping[tuple[str, str], Any], lasting: bool
    ) -> Iterator[tuple[Any, Hook]]:
        for (key, name), parameter in parameters.items():
            if getattr(parameter, "requires_grad", False):
                self._registered[key, name, id(parameter)] = weakref.ref(parameter)
                if lasting:
                    self._hooked[key, name] = parameter
                yield parameter, self._hook(recorder, key, name)

    def remove(self) -> None:
        """Remove every hook."""
        self._called = set()
        self._registered = {}
        try:
            self._hooks.remove()
        finally:
            if self._stale:
                self.forget()

    def forget(self) -> None:
        """Release the parameters: now, or at the end of the step if hooks are registered on them."""
        self._stale = bool(self._hooks)
        if not self._stale:
            self._hooked = {}

    def _hook(self, recorder: StepRecorder, key: str, name: str) -> Callable[[Any], None]:
        # of this step
        called = self._called
        micro = self._micro

        def hook(gradient: Any) -> None:
            if key not in called:
                return
            recorder.queue.synchronize()
            with recorder.guard("reading a parameter's gradient", key=key):
                recorder.parameter_gradient(key, name, gradient, micro())

        return hook


class DebugValueHooks:
    """Records values and their gradients, and inserts nothing into the graph."""

    def __init__(self, nodes: AutogradNodes) -> None:
        self._nodes = nodes
        self._tensor = nodes.tensor
        self._hooks = LeafHooks()

    def save(
        self, recorder: StepRecorder, task: DebugTask, variable: Any, name: str, backward: bool
    ) -> None:
        """Record a value as it is now, and its gradients as soon as they arrive."""
        recorder.queue.synchronize()
        with recorder.guard("saving a value", key=name):
            value_name, gradient_name = task.new_names(name)
            task.record_value(value_name, variable)
            if not backward:
                return

            def update() -> None:
                task.put(gradient_name, gradients)

            def watch(leaf: Any, place: str) -> PendingRecord | None:
                return (
                    self._watch(recorder, task, leaf, place, update)
                    if isinstance(leaf, self._tensor)
                    else None
                )

            gradients = tree_map(watch, variable, gradient_name, self._tensor)
            update()

    def remove(self) -> None:
        """Remove the hooks on leaves of the graph. All others are freed with the graph."""
        self._hooks.remove()

    def _watch(
        self,
        recorder: StepRecorder,
        task: DebugTask,
        tensor: Any,
        place: str,
        update: Callable[[], None],
    ) -> PendingRecord:
        pending = PendingRecord()

        def arrived(gradient: Any) -> None:
            if (
                recorder.closed or pending.record is not None or gradient is None
            ):  # a second pass, or no gradient
                return
            recorder.queue.synchronize()
            with recorder.guard("reading a gradient", key=place):
                pending.record = task.gradient_of(place, gradient)
                update()

        node = tensor._grad_node if self._nodes.works else None
        if node is None:
            return pending
        if node._sequence_nr() == LEAF:
            self._hooks.register([(tensor, arrived)])
        else:
            index = tensor._output_index
            node.register_prehook(lambda go: arrived(go[index]))
        return pending
