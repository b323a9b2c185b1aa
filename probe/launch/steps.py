# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Cuts a training into steps: calls start, stop and step as the program would."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.launch.models import ModelFinder, Rounds
from probe.launch.perturb import Perturbation

if TYPE_CHECKING:
    from probe.debugger import PrecisionDebugger


class Steps:
    """The steps of a program that has no debugger of its own: it is made when the first step begins.

    A step ``is_due`` to end when the Cell ends that made the update.
    """

    def __init__(
        self,
        new_debugger: Callable[[], PrecisionDebugger],
        models: ModelFinder,
        rounds: Rounds,
        perturbation: Perturbation,
    ) -> None:
        self._new_debugger, self._finder = new_debugger, models
        self._rounds, self.perturbation = rounds, perturbation
        self._debugger: PrecisionDebugger | None = None
        self._models: list[Any] = []
        self._has_called = False
        self.is_open = self.is_due = False

    @property
    def debugger(self) -> PrecisionDebugger:
        """The debugger of this process."""
        if self._debugger is None:
            self._debugger = self._new_debugger()
        return self._debugger

    def begin(self, models: list[Any] | None = None) -> None:
        """Begin a step, unless one is open. Its model is known from earlier steps, or found by ``adopt``.

        Models are given where their calls cannot be seen.
        """
        if self.is_open:
            return
        if models:
            self._models = models
        self.is_open = True
        self._start()

    def adopt(self, model: Any) -> bool:
        """Take a Cell that is about to be called as a model; return whether it is a new one.

        Nothing of it has been recorded: the step's entries so far are those of calls outside of any model.
        """
        if any(model is known for known in self._models):
            self._has_called = True
            return False
        if self._has_called:
            self._models = [*self._models, model]
        else:
            self._models = self._finder.with_partners(model) if not self._models else [model]
        self._has_called = True
        self.debugger.stop()
        self._start()
        return True

    def end(self) -> None:
        """End the step, if one is open."""
        if self.is_open:
            self.is_open = self.is_due = self._has_called = False
            self.debugger.stop()
            self.debugger.step()

    def perturb(self, models: list[Any]) -> None:
        """Move the parameters of models and optimizers that were not moved yet, if the user wants it."""
        for owner in models:
            self.perturbation.parameters(owner.get_parameters())
        for owner in self._rounds.optimizers():
            self.perturbation.parameters(getattr(owner, "parameters", ()))

    def _start(self) -> None:
        from mindspore import nn

        models = self._models
        self.perturb(models)
        self.debugger.start(models[0] if len(models) == 1 else models or nn.Cell())
