# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The optimizers of a training, and which of them make a step together."""

from __future__ import annotations

import weakref
from typing import Any


class Rounds:
    """Tells whether an update is the last one of its step.

    With one optimizer each update is. With several, as in a GAN, a step ends when all have had their turn. If one comes
    again before the others, only those of the last step are waited for from then on.
    """

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []
        self._expected: set[int] = set()
        self._called: set[int] = set()

    def add(self, optimizer: Any) -> None:
        """Note an optimizer that the program has made."""
        self._made.append(weakref.ref(optimizer))

    def optimizers(self) -> list[Any]:
        """Return the optimizers that the program still holds."""
        return [optimizer for made in self._made for optimizer in [made()] if optimizer is not None]

    def parameters(self) -> set[int]:
        """Return the identities of all parameters that they update."""
        return {held for optimizer in self.optimizers() for held in held_by(optimizer)}

    @property
    def has_several(self) -> bool:
        """Whether several optimizers make a step."""
        return len(self._awaited()) > 1

    @property
    def has_begun(self) -> bool:
        """Whether an optimizer has been called in this step."""
        return bool(self._called)

    def was_called(self, optimizer: Any) -> bool:
        """Return whether an optimizer has been called in this step."""
        return id(optimizer) in self._called

    def note(self, optimizer: Any) -> None:
        """Note an update."""
        self._called.add(id(optimizer))

    def ends_with(self, optimizer: Any) -> bool:
        """Return whether the step ends with this update."""
        awaited = self._awaited()
        return id(optimizer) not in awaited or awaited <= self._called

    def train(self, weights: Any) -> bool:
        """Return whether an optimizer holds one of these parameters."""
        return bool(_identities(weights) & self.parameters())

    def repeats(self, weights: Any) -> bool:
        """Return whether these parameters belong to an optimizer that has had its turn in this step."""
        wanted = _identities(weights)
        called = [optimizer for optimizer in self.optimizers() if self.was_called(optimizer)]
        return any(wanted <= held_by(optimizer) for optimizer in called)

    def end(self) -> None:
        """End the step: the next one is expected to have the same optimizers."""
        if self._called:
            self._expected, self._called = self._called, set()

    def _awaited(self) -> set[int]:
        alive = {id(optimizer) for optimizer in self.optimizers()}
        return self._expected & alive or alive


def _identities(weights: Any) -> set[int]:
    return {id(weight) for weight in (weights if isinstance(weights, (list, tuple)) else [weights])}


def held_by(optimizer: Any) -> set[int]:
    """Return the identities of the parameters that an optimizer updates."""
    return {id(parameter) for parameter in getattr(optimizer, "parameters", ())}
