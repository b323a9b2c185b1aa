# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The gradients of the model's parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from probe.capture.unnoticed import unnoticed

if TYPE_CHECKING:
    from probe.recorder import Recorder


class ParameterHooks:
    """A hook on every parameter of every recorded Cell, from its first call in a step to the end of the step.

    Such a hook stays through any number of backward passes, so one is enough; it is only called where the training
    asks for that parameter's gradient.
    """

    def __init__(self) -> None:
        self._handles: dict[tuple[str, str], Any] = {}

    def watch(self, recorder: Recorder, key: str, parameters: Mapping[str, Any]) -> None:
        """Record the gradients of a Cell's own parameters under its key."""
        if not recorder.records_backward:
            return
        new = [name for name, p in parameters.items() if p.requires_grad and (key, name) not in self._handles]
        if new:
            with unnoticed():
                for name in new:
                    self._handles[key, name] = parameters[name].register_hook(_hook(recorder, key, name))

    def remove(self) -> None:
        """Take every hook away."""
        handles = list(self._handles.values())
        self._handles.clear()
        with unnoticed(), contextlib.ExitStack() as every:  # one that fails does not keep the others
            for handle in handles:
                every.callback(handle.remove)


def _hook(recorder: Recorder, key: str, name: str) -> Callable[[Any], None]:
    def hook(gradient: Any) -> None:
        recorder.settle()
        try:
            recorder.parameter_gradient(key, name, gradient)
        except Exception as error:
            recorder.trouble("reading a parameter's gradient", error)

    return hook
