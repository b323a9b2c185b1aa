# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads an optimizer of a layer above MindSpore, as torch's: groups of parameters, and a state for each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probe.capture.training.optimizer_values import Numbers, OptimizerValues, ReadNumber
from probe.layers.layer import held_by
from probe.parameter_names import ParameterNames

_STEP = "step"  # the state that counts the updates
_WORD = "global_step"


class GroupedValues(OptimizerValues):
    """The parts of one optimizer that its entry shows; see ``OptimizerValues``."""

    def __init__(self, optimizer: Any, may_run: bool, names: ParameterNames | None = None) -> None:
        from mindspore import Tensor

        self._optimizer = optimizer
        self._tensor = self._parameter = Tensor
        self._on_cpu = may_run
        self._constants = {}
        self._held = held_by(optimizer)
        self.names = names = names or ParameterNames()
        self.parameters = {names.of(parameter): parameter for parameter in self._held}
        self._identities = frozenset(map(id, self._held))

    @property
    def states(self) -> Mapping[str, Any]:  # type: ignore[override]  # the first update makes them
        """The tensors that it keeps for each parameter, such as "exp_avg.fc.weight"."""
        return dict(self._find_states())

    def _find_states(self) -> Iterator[tuple[str, Any]]:
        kept = self._optimizer.state
        for name, parameter in self.parameters.items():
            own = kept.get(parameter) if parameter in kept else None
            for key, value in (own or {}).items():
                if key != _STEP and isinstance(value, self._tensor):
                    yield f"{key}.{name}", value

    def is_of(self, optimizer: Any) -> bool:
        """Return whether these are the values of this optimizer, and it has the same parameters as then."""
        return optimizer is self._optimizer and list(map(id, held_by(optimizer))) == list(
            map(id, self._held)
        )

    def has_own_method(self, number: str) -> bool:
        """Return whether a method of the user's own computes a number: its groups have them all."""
        return False

    def gradients(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradients that enter the update: each parameter holds its own."""
        return (tuple(getattr(parameter, "grad", None) for parameter in self._held),)

    def scalars(self, read: ReadNumber) -> Numbers:
        """Return the numbers of the update that begins now; see ``OptimizerValues``."""
        groups = enumerate(self._optimizer.param_groups, 1)
        each = [self._group(group, read, place) for place, group in groups]
        found: Numbers = {}
        steps = [own[_STEP] for own in self._optimizer.state.values() if _STEP in own]
        if steps:
            self._put(found, _WORD, steps[0], read, 0)
        return self._joined(found, each)
