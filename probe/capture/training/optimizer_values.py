# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads an optimizer: the numbers of its update, its groups, its states. Nothing runs on the device for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from probe.measure.tensor_reader import to_number, to_numpy

#: attributes of all optimizers and Cells that are no number of the update
_NOT_OF_THE_UPDATE = frozenset(
    "training requires_grad is_top_cell has_bprop grad_ops_label dynamic_lr dynamic_weight_decay is_group is_group_lr "
    "is_group_params_ordered exec_weight_decay need_scale param_length use_parallel enable_tuple_broaden params "
    "skip_auto_parallel_compile dynamic_decay_flags reciprocal_scale global_step_increase_tensor increase_tensor "
    "init_learning_rate max_v_group use_fused_opt use_locking use_offload use_lazy dev_num device_ascend beta1_power "
    "beta2_power".split()
)
_HIDDEN = ("_", "learning_rate_group_")  # the beginnings of such names
#: the field's word for a number that some optimizers call otherwise
_WORDS = {
    "lr": "learning_rate", "epsilon": "eps", "nesterov": "use_nesterov", "amsgrad": "use_amsgrad",
    "state_step": "global_step", "step": "global_step",
}  # fmt: skip
_NO_STATES = frozenset(("params", "lrs"))  # lists of parameters that are no states
#: numbers that may change with the step, and may be lists with one item for each parameter
_SCHEDULED = ("learning_rate", "weight_decay")
ReadNumber = Callable[[Any], Any]  # turns a tensor of one element into a number, or into its record


class OptimizerValues:
    """The parts of one optimizer that its entry shows. MindSpore's two kinds of optimizers, and users' subclasses."""

    def __init__(self, optimizer: Any, may_run: bool) -> None:
        from mindspore import Parameter, Tensor

        self._optimizer, self._tensor, self._parameter = optimizer, Tensor, Parameter
        self._may_run = may_run  # whether a schedule of the user's own may run for its number; see ``schedules``
        #: tensors that no update changes, with their numbers
        self._constants: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._held: Sequence[Any] = getattr(optimizer, "parameters", ())
        #: the parameters that it updates, by name, in the order of the gradients
        self.parameters: dict[str, Any] = {parameter.name: parameter for parameter in self._held}
        #: its state for each of them, such as "moments1.fc.weight"
        self.states: dict[str, Any] = dict(self._find_states())
        self._names: dict[tuple[tuple[str, ...], int], list[str]] = {}  # to look at all that it holds takes long

    def is_of(self, optimizer: Any) -> bool:
        """Return whether these are the values of this optimizer, and it has the same parameters as then."""
        return optimizer is self._optimizer and getattr(optimizer, "parameters", ()) is self._held

    def _find_states(self) -> Iterator[tuple[str, Any]]:
        own = set(map(id, self.parameters.values()))
        for name, value in vars(self._optimizer).items():
            is_held = isinstance(value, (tuple, list)) and len(value) == len(own)
            if is_held and not name.startswith("_") and name not in _NO_STATES:
                for parameter, state in zip(self.parameters, value):
                    if isinstance(state, self._parameter) and id(state) not in own:
                        yield f"{name}.{parameter}", state

    def _find_names(self, held: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
        """Return the names of what may be a number: not of arrays, which are most of what an optimizer holds."""
        names = [*held, *(name for name, value in parameters.items() if value.size == 1)]
        names = [name for name in names if not name.startswith(_HIDDEN) and name not in _NOT_OF_THE_UPDATE]
        return self._names.setdefault((tuple(held), len(parameters)), names)

    def scalars(self, read: ReadNumber, used: Mapping[str, Any]) -> dict[str, Any]:
        """Return the numbers of this update.

        They have the field's words. "parameters" has the names in the order of the gradients. If there are groups,
        "groups" has the numbers and names of each.

        Args:
            read: turns a tensor of one element, which updates may change, into a number or into its record.
            used: numbers that the optimizer has computed for this update, such as those of a schedule.
        """
        held, parameters = vars(self._optimizer), self._optimizer._params
        names = self._names.get((tuple(held), len(parameters))) or self._find_names(held, parameters)
        own = {name: parameters[name] if name in parameters else held[name] for name in names}
        groups = getattr(self._optimizer, "param_groups", None)
        found = dict(self._numbers(own, read))
        if isinstance(groups, list) and groups and all(isinstance(group, dict) for group in groups):
            each = [
                {**dict(self._numbers(group, read, i)), "parameters": [parameter.name for parameter in group["params"]]}
                for i, group in enumerate(groups, 1)
            ]
        else:
            found.update(self._numbers(used, read, is_new=True))
            each = self._groups_of_lists(used, read)
        names = list(self.parameters)
        if len(each) < 2:
            return {**found, **dict(*each), "parameters": names}
        common = {name: value for name, value in found.items() if name not in each[0]}
        return {**common, "groups": each, "parameters": names}

    def _numbers(
        self, values: Mapping[str, Any], read: ReadNumber, group: int = 0, is_new: bool = False
    ) -> Iterator[tuple[str, Any]]:
        for name, value in values.items():
            if name.startswith(_HIDDEN) or name in _NOT_OF_THE_UPDATE or name in self.parameters:
                continue
            if name == "betas":
                yield from zip(("beta1", "beta2"), value)
            elif isinstance(value, (bool, int, float)):
                yield _WORDS.get(name, name), value
            elif isinstance(value, self._tensor) and value.size == 1:
                yield _WORDS.get(name, name), read(value) if is_new else self._number(name, value, read, group)

    def _number(self, name: str, value: Any, read: ReadNumber, place: int) -> Any:
        if isinstance(value, self._parameter):
            return read(value)
        known = self._constants.get((name, place))
        if known is None or known[0] is not value:
            known = self._constants[name, place] = value, to_number(value)
        return known[1]

    def _groups_of_lists(self, used: Mapping[str, Any], read: ReadNumber) -> list[dict[str, Any]]:
        """Return the groups of an optimizer that holds lists with one item for each parameter; else one group.

        A compiled optimizer does not show the number that its schedule gave: it is computed again.
        """
        count, columns = len(self.parameters), {}
        for name in _SCHEDULED:
            value = used.get(name, getattr(self._optimizer, name, None))
            if isinstance(value, (tuple, list)) and len(value) == count:
                columns[name] = value
            elif callable(value) and not isinstance(value, self._tensor):
                columns[name] = [value] * count
        groups: dict[tuple[Any, ...], dict[str, Any]] = {}
        for place, parameter in enumerate(self.parameters if columns else ()):
            cells = {name: values[place] for name, values in columns.items()}
            key = tuple(cell if isinstance(cell, (bool, int, float)) else id(cell) for cell in cells.values())
            if key not in groups:
                named = cells.items()
                groups[key] = {name: self._cell(name, cell, read, place, name in used) for name, cell in named}
            groups[key].setdefault("parameters", []).append(parameter)
        same: dict[str, dict[str, Any]] = {}  # of other tensors, and yet of the same numbers
        for group in groups.values():
            numbers = {name: value for name, value in group.items() if name != "parameters"}
            same.setdefault(repr(numbers), {**numbers, "parameters": []})["parameters"] += group["parameters"]
        return list(same.values())

    def _cell(self, name: str, value: Any, read: ReadNumber, place: int, is_new: bool) -> Any:
        if isinstance(value, self._tensor) and value.size == 1:
            return read(value) if is_new else self._number(name, value, read, place)
        step = getattr(self._optimizer, "global_step", None)
        if callable(value) and not isinstance(value, self._tensor):
            return None if step is None else value_of(value, int(to_number(step)), self._may_run)
        return value if isinstance(value, (bool, int, float)) else None


_MODULE = "mindspore.nn.learning_rate_schedule"


def value_of(schedule: Any, step: int, may_run: bool) -> float | None:
    """Return the number that a schedule gives for a step, the number of updates before; None if it is unknown.

    Compiled optimizers do not show it. The formulas are those of the documentation of ``mindspore.nn``.
    ``may_run`` allows a schedule of the user's own: on CPU, where it costs little and waits for nothing.
    """
    listed = getattr(schedule, "learning_rate", None)
    if type(schedule).__name__ == "_IteratorLearningRate" and listed is not None:
        values = to_numpy(listed)
        value = values[min(step, len(values) - 1)]
    elif type(schedule).__name__ == "_ConvertToCell" and listed is not None:
        return to_number(listed)
    elif type(schedule).__module__ == _MODULE and type(schedule).__name__ in _FORMULAS:
        value = _FORMULAS[type(schedule).__name__](schedule, step)
    elif may_run:
        return _run(schedule, step)
    else:
        return None
    return float(str(np.float32(value)))


def _run(schedule: Any, step: int) -> float | None:
    from mindspore import Tensor, dtype

    result = schedule(Tensor([step], dtype.int32))
    return to_number(result) if isinstance(result, Tensor) and result.size == 1 else None


def _part(schedule: Any, step: int) -> float:
    part = step / schedule.decay_steps
    return float(math.floor(part) if schedule.is_stair else part)


def _natural(schedule: Any, step: int) -> float:
    stairs = step // schedule.decay_steps * schedule.decay_steps if schedule.is_stair else step
    return float(schedule.learning_rate * math.exp(-schedule.decay_rate * stairs))


def _cosine(schedule: Any, step: int) -> float:
    part = min(step, schedule.decay_steps) / schedule.decay_steps
    return float(schedule.min_lr + 0.5 * (schedule.max_lr - schedule.min_lr) * (1 + math.cos(math.pi * part)))


def _polynomial(schedule: Any, step: int) -> float:
    steps, end = schedule.decay_steps, schedule.end_learning_rate
    if schedule.update_decay_steps:
        steps *= max(math.ceil(step / steps), 1)
    part = min(step, steps) / steps
    return float((schedule.start_learning_rate - end) * (1 - part) ** schedule.power + end)


_FORMULAS: Mapping[str, Callable[[Any, int], float]] = {
    "ExponentialDecayLR": lambda it, step: it.learning_rate * it.decay_rate ** _part(it, step),
    "NaturalExpDecayLR": _natural,
    "InverseDecayLR": lambda it, step: it.learning_rate / (1 + it.decay_rate * _part(it, step)),
    "CosineDecayLR": _cosine,
    "PolynomialDecayLR": _polynomial,
    "WarmUpLR": lambda it, step: it.learning_rate * min(step, it.warmup_steps) / it.warmup_steps,
}
