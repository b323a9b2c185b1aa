# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads an optimizer: the numbers of its update, its groups, its states. Each number is read by itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from probe.capture.patches import original_of
from probe.capture.training.plain_functions import adds_nothing_to
from probe.capture.training.schedules import NoNumber, Schedules, is_schedule
from probe.measure.tensor_reader import MeasureError, element_count, to_number
from probe.parameter_names import ParameterNames

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
#: numbers that all optimizers have: they may be schedules, or have one item for each parameter
_OF_ALL = ("learning_rate", "weight_decay")
#: methods of optimizers that compute a number of the update, and the local name that MindSpore's return
METHODS = {"get_lr": "learning_rate", "get_weight_decay": "weight_decay"}
_RETURNED = {"get_lr": "lr", "get_weight_decay": "weight_decay"}
_STEP = "global_step"  # the number of updates before
#: the keys of an update that are no numbers: the names of its parameters; its groups
PARAMETERS = "parameters"
GROUPS = "groups"
UNREAD = "unread"  # the names of numbers that could not be read, with the reasons
ReadNumber = Callable[[Any], Any]  # turns a tensor of one element into a number, or into its record
Numbers = dict[str, Any]
#: errors of schedules and of tensors that cannot be read
_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MeasureError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_LONGEST = 200  # characters of a reason that is the message of an error


class Column(NamedTuple):
    """A number that is a schedule, or that has one item for each parameter."""

    name: str
    items: Sequence[Any]


class OptimizerValues:
    """The parts of one optimizer that its entry shows. MindSpore's two kinds of optimizers, and users' subclasses."""

    def __init__(self, optimizer: Any, may_run: bool, names: ParameterNames | None = None) -> None:
        from mindspore import Parameter, Tensor, nn

        self._optimizer = optimizer
        self._tensor = Tensor
        self._parameter = Parameter
        self._lists = nn.CellList
        self._on_cpu = may_run  # a step may be read there; see ``Schedules``
        self._schedules = Schedules(may_run)
        #: tensors that no update changes, with their numbers
        self._constants: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._held: Sequence[Any] = getattr(optimizer, "parameters", ())
        self.names = names = names or ParameterNames()  # those of all parameters
        #: the parameters that it updates, by name, in the order of the gradients
        self.parameters: dict[str, Any] = {
            names.of(parameter): parameter for parameter in self._held
        }
        self._identities = frozenset(map(id, self._held))
        #: its state for each of them, such as "moments1.fc.weight"
        self.states: dict[str, Any] = dict(self._find_states())
        self._names: dict[
            tuple[tuple[str, ...], int], list[str]
        ] = {}  # to look at all that it holds takes long
        #: numbers that a method of the user's own computes: name -> the reason why they are not known before
        self._of_methods = dict(self._find_own_methods())
        #: the values of the optimizer that it wraps, as LARS does, or None
        self._inner = next(
            (OptimizerValues(cell, may_run, names) for _, cell in self._below(nn.Optimizer)), None
        )

    def has_own_method(self, number: str) -> bool:
        """Return whether a method of the user's own computes a number."""
        return number in self._of_methods

    def gradients(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of an update that are gradients: all of them."""
        return args

    def is_of(self, optimizer: Any) -> bool:
        """Return whether these are the values of this optimizer, and it has the same parameters as then."""
        return optimizer is self._optimizer and getattr(optimizer, "parameters", ()) is self._held

    def _below(self, kind: type) -> Iterator[tuple[str, Any]]:
        """Yield the Cells of a kind that the optimizer holds."""
        for name, cell in self._optimizer._cells.items():
            if isinstance(cell, kind) and cell is not self._optimizer:
                yield name, cell

    def _find_own_methods(self) -> Iterator[tuple[str, str]]:
        from mindspore import nn

        kind = type(self._optimizer)
        for method, number in METHODS.items() if isinstance(self._optimizer, nn.Optimizer) else ():
            original = original_of(inspect.getattr_static(nn.Optimizer, method, None))
            own = original_of(inspect.getattr_static(kind, method, None))
            if own is not original and not adds_nothing_to(own, original, _RETURNED[method]):
                yield number, f"{kind.__name__}.{method} computes it, and its result was not seen"

    def _find_states(self) -> Iterator[tuple[str, Any]]:
        own = self._identities
        for name, value in vars(self._optimizer).items():
            is_held = isinstance(value, (tuple, list)) and len(value) == len(own)
            if is_held and not name.startswith("_") and name not in _NO_STATES:
                for parameter, state in zip(self.parameters, value):
                    if isinstance(state, self._parameter) and id(state) not in own:
                        yield f"{name}.{parameter}", state

    def _find_names(self, held: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[str]:
        """Return the names of what may be a number: not of arrays, which are most of what an optimizer holds."""
        names = [
            *held,
            *(
                name
                for name, value in parameters.items()
                if value is not None and element_count(value) == 1
            ),
        ]
        names = [
            name
            for name in names
            if not name.startswith(_HIDDEN) and name not in _NOT_OF_THE_UPDATE
        ]
        return self._names.setdefault((tuple(held), len(parameters)), names)

    def scalars(self, read: ReadNumber) -> Numbers:
        """Return the numbers of the update that begins now.

        They have the field's words. "parameters" has the names in the order of the gradients. If there are groups,
        "groups" has the numbers and names of each. A number that cannot be read is None, and "unread" has the reason.

        Args:
            read: turns a tensor of one element, which updates may change, into a number or into its record.
        """
        held = vars(self._optimizer)
        parameters = self._optimizer._params
        names = self._names.get((tuple(held), len(parameters))) or self._find_names(
            held, parameters
        )
        own = {name: parameters[name] if name in parameters else held[name] for name in names}
        found = self._numbers(own, read)
        groups = getattr(self._optimizer, "param_groups", None)
        if isinstance(groups, list) and groups and all(isinstance(group, dict) for group in groups):
            each = [self._group(group, read, place) for place, group in enumerate(groups, 1)]
        else:
            self._note_own_methods(found)
            columns = [column for column in self.columns() if column.name not in self._of_methods]
            each = self._groups_of(columns, read)
            shown = {*found, *(column.name for column in columns)}
            for name in _OF_ALL:
                if name not in shown:
                    self._note_unknown(found, name)
        if self._inner is not None:  # the learning rate in use is that of the optimizer inside
            own_numbers = {
                name: value
                for name, value in found.items()
                if name not in ("learning_rate", UNREAD)
            }
            found = {**self._inner.scalars(read), **own_numbers}
        return self._joined(found, each)

    def _joined(self, found: Numbers, each: list[Numbers]) -> Numbers:
        """Return the numbers of the whole optimizer with those of its groups. The numbers of one group are its own."""
        names = list(self.parameters)
        if len(each) > 1:
            return {
                **{
                    name: value
                    for name, value in found.items()
                    if name not in each[0] or name == UNREAD
                },
                GROUPS: each,
                PARAMETERS: names,
            }
        reasons = dict(found.get(UNREAD, {}))
        for group in each:
            reasons.update(group.get(UNREAD, {}))
            found = {**found, **group}
        return {**found, **({UNREAD: reasons} if reasons else {}), PARAMETERS: names}

    def _group(self, group: Mapping[Any, Any], read: ReadNumber, place: int) -> Numbers:
        """Return the numbers and names of one item of ``param_groups``."""
        named = {name: value for name, value in group.items() if isinstance(name, str)}
        held = named.get("params")
        several = held if isinstance(held, (tuple, list)) else ()
        names = [
            self.names.of(parameter)
            for parameter in several
            if isinstance(parameter, self._parameter)
        ]
        return {**self._numbers(named, read, place), PARAMETERS: names}

    def _numbers(self, values: Mapping[str, Any], read: ReadNumber, place: int = 0) -> Numbers:
        """Return which of these values are numbers, under the field's words."""
        found: Numbers = {}
        for name, value in values.items():
            if (
                name.startswith(_HIDDEN)
                or name in _NOT_OF_THE_UPDATE
                or id(value) in self._identities
            ):
                continue
            if name == "betas" and isinstance(value, (tuple, list)):
                for word, item in zip(("beta1", "beta2"), value):
                    self._put(found, word, item, read, place)
            else:
                self._put(found, name, value, read, place)
        return found

    def _put(self, found: Numbers, name: str, value: Any, read: ReadNumber, place: int) -> None:
        if isinstance(value, (bool, int, float)):
            found[_WORDS.get(name, name)] = value
        elif isinstance(value, self._tensor):
            self.keep(found, _WORDS.get(name, name), lambda: self._number(name, value, read, place))

    def _number(self, name: str, value: Any, read: ReadNumber, place: int) -> Any:
        """Return the number of a tensor; raise _NotOne if it has more."""
        if element_count(value) != 1:
            raise _NotOne(f"it is a tensor of the shape {tuple(value.shape)}")
        if isinstance(value, self._parameter):
            return read(value)
        known = self._constants.get((name, place))
        if known is None or known[0] is not value:
            known = self._constants[name, place] = value, to_number(value)
        return known[1]

    def keep(
        self, found: Numbers, name: str, get: Callable[[], Any], is_needed: bool = False
    ) -> None:
        """Keep a number, or the reason why it cannot be read. A tensor of another size is no number, unless needed."""
        try:
            found[name] = get()
        except _NotOne as error:
            if is_needed:
                _note_unread(found, name, str(error))
        except NoNumber as error:
            _note_unread(found, name, str(error))
        except _ERRORS as error:
            if isinstance(error, RuntimeError) and not self._on_cpu:
                raise  # a device tells the errors of the training at the next occasion
            first = " ".join(str(error).split())[:_LONGEST]
            _note_unread(
                found, name, f"{type(error).__name__}: {first}" if first else type(error).__name__
            )

    # -- schedules, and numbers of each parameter -------------------------------------------------------------------

    def columns(self) -> Iterator[Column]:
        """Yield the numbers that are schedules, or that have an item for each parameter."""
        count = len(self.parameters)
        for name, value in self._candidates().items():
            if isinstance(value, (tuple, list, self._lists)):
                if len(value) == count:
                    yield Column(name, list(value))
            elif callable(value) and not isinstance(value, self._tensor):
                yield Column(name, [value] * count)

    def _candidates(self) -> dict[str, Any]:
        """Return learning rate, weight decay, and further schedules of an optimizer of the user's own."""
        from mindspore import nn

        found = {name: self._attribute(name) for name in _OF_ALL}
        for name, cell in self._below(nn.Cell):
            several = list(cell) if isinstance(cell, self._lists) else [cell]
            if several and all(map(is_schedule, several)):
                found.setdefault(name, cell)
        return found

    def _attribute(self, name: str) -> Any:
        """Return what the optimizer holds under a name, or None; a property of the user's own is not run."""
        own = vars(self._optimizer)
        places = (own, *(own.get(group) or {} for group in ("_params", "_cells", "_params_list")))
        return next((place[name] for place in places if name in place), None)

    def _note_own_methods(self, found: Numbers) -> None:
        """Note the numbers that a method of the user's own computes: the update shows them, unless it is compiled."""
        for name, reason in self._of_methods.items():
            _note_unread(found, name, reason)

    def _note_unknown(self, found: Numbers, name: str) -> None:
        """Note why a learning rate or weight decay that is there has no number."""
        value = self._attribute(name)
        if isinstance(value, self._tensor):
            _note_unread(found, name, f"it is a tensor of the shape {tuple(value.shape)}")
        elif isinstance(value, (tuple, list, self._lists)):
            given = f"it has {len(value)} items for {len(self.parameters)} parameters"
            _note_unread(found, name, given)
        elif value is not None:
            _note_unread(found, name, f"it is an object of the class {type(value).__name__}")

    def _groups_of(self, columns: Sequence[Column], read: ReadNumber) -> list[Numbers]:
        """Return the groups: parameters with the same items. Equal numbers of other items are one group too."""
        groups: dict[tuple[Any, ...], Numbers] = {}
        known: dict[tuple[str, Any], Numbers] = {}  # an item of several groups is read once
        for place, parameter in enumerate(self.parameters if columns else ()):
            items = [column.items[place] for column in columns]
            key = tuple(
                item if isinstance(item, (bool, int, float)) else id(item) for item in items
            )
            if key not in groups:
                for column, of_item, item in zip(columns, key, items):
                    if (column.name, of_item) not in known:
                        known[column.name, of_item] = self._number_of_item(
                            column.name, item, place, read
                        )
                groups[key] = {PARAMETERS: []}
            groups[key][PARAMETERS].append(parameter)
        same: dict[Any, Numbers] = {}  # of other tensors, and yet of the same numbers
        for key, group in groups.items():
            found: Numbers = {}
            kind: list[Any] = []
            for column, of_item in zip(columns, key):
                one = known[column.name, of_item]
                reasons = {**found.get(UNREAD, {}), **one.get(UNREAD, {})}
                found.update(one)
                found.update({UNREAD: reasons} if reasons else {})
                # numbers of a device, and those that could not be read, are known by their items alone
                number = one[column.name]
                kind.append(number if isinstance(number, (bool, int, float)) else (of_item,))
            same.setdefault(tuple(kind), {**found, PARAMETERS: []})[PARAMETERS] += group[PARAMETERS]
        return list(same.values())

    def _number_of_item(self, name: str, item: Any, place: int, read: ReadNumber) -> Numbers:
        found: Numbers = {}
        self.keep(found, name, functools.partial(self._item, name, item, place, read), True)
        return found

    def _item(self, name: str, item: Any, place: int, read: ReadNumber) -> Any:
        """Return the number of one item: of a schedule the one of this step."""
        if isinstance(item, (bool, int, float)):
            return item
        if isinstance(item, self._tensor):
            return self._number(name, item, read, place)
        if not callable(item):
            raise NoNumber(f"it is an object of the class {type(item).__name__}")
        held = getattr(self._optimizer, _STEP, None)
        if not isinstance(held, self._tensor):
            raise NoNumber(f"the optimizer has no {_STEP}")
        step = read(held) if self._on_cpu else None
        if isinstance(step, (int, float)):
            return self._schedules.number(item, int(step))
        return read(self._schedules.tensor(item, held))


class _NotOne(Exception):
    """A tensor has not one element."""


def _note_unread(found: Numbers, name: str, reason: str) -> None:
    found[name] = None
    found.setdefault(UNREAD, {})[name] = reason
