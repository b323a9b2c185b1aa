# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds the model of a training: the outermost Cell with parameters that an optimizer holds.

Of the optimizers it tells which of them make a step together.
"""

from __future__ import annotations

import enum
import logging
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from probe.capture.training.events import optimizer_kinds
from probe.executor import living
from probe.layers.layer import children_of, held_by, layers, modules_of, parameters_below
from probe.repeats.reached import cell_contents
from probe.store.error_log import ErrorGuard

_log = logging.getLogger("probe")

#: MindSpore's Cells around a model: with its loss, or with loss and optimizer
_WRAPPERS = "mindspore.nn.wrap."
_AMP_WRAPPER = ("mindspore.train.amp", "WithLossCell")
_MOST = 2_000  # most objects that are looked at for a compiled function


class CellRole(enum.Enum):
    """The part that a Cell has in a training."""

    OPTIMIZER = "optimizer"  # updates parameters
    TRAINER = "trainer"  # has an optimizer below it: a call of it is a training step
    WRAPPER = "wrapper"  # one of MindSpore's own Cells around a model
    MODEL = "model"  # has parameters that are trained
    OTHER = "other"  # anything else


class ModelFinder:
    """Tells the parts of Cells in a training. With ``any_parameters``, a Cell with any parameters is a model."""

    def __init__(self, rounds: Rounds, any_parameters: bool) -> None:
        self.rounds = rounds
        self._any = any_parameters
        self._roles: dict[int, tuple[weakref.ref[Any], CellRole]] = {}

    def forget(self) -> None:
        """Look again at each Cell: there is a new optimizer."""
        self._roles.clear()

    def role(self, cell: Any) -> CellRole:
        """Return the part of a Cell."""
        known = self._roles.get(id(cell))
        if known is None or known[0]() is not cell:
            role = CellRole.OTHER
            with ErrorGuard(self._report, f"looking at the Cell {type(cell).__name__}"):
                role = self._role(cell)
            known = self._roles[id(cell)] = weakref.ref(cell), role
        return known[1]

    def _report(self, operation: str, error: Exception) -> None:
        _log.warning(
            "%s failed, it is no model of a step: %s: %s", operation, type(error).__name__, error
        )

    def _role(self, cell: Any) -> CellRole:
        kinds = optimizer_kinds()
        if isinstance(cell, kinds):
            return CellRole.OPTIMIZER
        if not self._any and any(isinstance(below, kinds) for _, below in modules_of(cell)):
            return CellRole.TRAINER
        kind = type(cell)
        if (
            kind.__module__.startswith(_WRAPPERS)
            or (kind.__module__, kind.__name__) == _AMP_WRAPPER
        ):
            return CellRole.WRAPPER
        held = _parameters(cell)
        trained = held if self._any else held & self.rounds.parameters()
        return CellRole.MODEL if trained else CellRole.OTHER

    def below(self, cells: Iterable[Any]) -> list[Any]:
        """Return the outermost models of Cells."""
        found: list[Any] = []
        for cell in cells:
            role = self.role(cell)
            if role is CellRole.MODEL:
                found.append(cell)
            elif role in (CellRole.TRAINER, CellRole.WRAPPER):
                found += self.below(children_of(cell))
        unique = {id(cell): cell for cell in found}
        inner = {
            id(below)
            for cell in unique.values()
            for _, below in modules_of(cell)
            if below is not cell
        }
        return [cell for cell in unique.values() if id(cell) not in inner]

    def with_partners(self, model: Any) -> list[Any]:
        """Return a model, and the models of all other parameters that are trained, in the order of their making."""
        found = [model]
        covered = _parameters(model)
        left = self.rounds.parameters() - covered
        kinds = [layer.kind for layer in layers()]
        cells = (
            [cell for cell in living(*kinds) if self.role(cell) is CellRole.MODEL] if left else []
        )
        while left:
            fitting = [
                (cell, own)
                for cell in cells
                for own in [_parameters(cell)]
                if own & left and not own & covered
            ]
            if not fitting:
                break
            # most of these parameters, fewest others; of equal ones the outermost
            best = max(
                fitting, key=lambda pair: (len(pair[1] & left), -len(pair[1]), _count(pair[0]))
            )
            found.append(best[0])
            covered = covered | best[1]
            left = left - best[1]
        return sorted(found, key=lambda cell: getattr(cell, "create_time", 0))


def _parameters(cell: Any) -> set[int]:
    return {id(parameter) for parameter in parameters_below(cell)}


def _count(cell: Any) -> int:
    return sum(1 for _ in modules_of(cell))


class Reached(NamedTuple):
    """The things that a function's code names, with the functions that it calls."""

    cells: list[Any]
    parameters: list[tuple[Any, ...]]  # one item a list of parameters
    gradients: list[Any]  # gradient functions of MindSpore

    def has_any(self, trained: set[int]) -> bool:
        """Return whether a list begins with one of these parameters, which are given by identity."""
        return any(id(first) in trained for first, *_ in self.parameters)


def reached(function: Callable[..., Any], owner: Any = None) -> Reached:
    """Return what the code of a function names, also that of an owner's method."""
    from mindspore import Parameter, nn
    from mindspore.ops.composite.base import GradOperation, _Grad

    seen: dict[int, Any] = {}
    found = Reached([], [], [])
    # a method of the owner, if that is known
    waiting: list[Any] = [
        function if owner is None else MethodType(getattr(function, "__func__", function), owner)
    ]
    while waiting and len(seen) < _MOST:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, nn.Cell):
            found.cells.append(item)
        elif isinstance(item, (GradOperation, _Grad)):
            found.gradients.append(item)
        elif isinstance(item, tuple) and item and isinstance(item[0], Parameter):
            found.parameters.append(item)
        elif isinstance(item, MethodType):
            owner = item.__self__
            names = _names(getattr(item.__func__, "__code__", None))
            attributes = {**getattr(owner, "__dict__", {}), **getattr(owner, "_cells", {})}
            own = vars(type(owner))
            waiting += [item.__func__, *(attributes[name] for name in names if name in attributes)]
            waiting += [
                getattr(owner, name) for name in names if isinstance(own.get(name), FunctionType)
            ]
        elif isinstance(item, partial):
            waiting += [item.func, *item.args, *item.keywords.values()]
        elif isinstance(item, FunctionType):
            waiting += _named_by(item)
    return found


def _named_by(function: FunctionType) -> Iterator[Any]:
    yield from cell_contents(function)
    names = _names(function.__code__)
    yield from (function.__globals__[name] for name in names if name in function.__globals__)
    if hasattr(function, "__wrapped__"):
        yield function.__wrapped__


def _names(code: CodeType | None) -> set[str]:
    if code is None:
        return set()
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


class Rounds:
    """Tells whether an update is the last one of its step.

    With one optimizer each update is. With several, as in a GAN, a step ends when all have had their turn. If one comes
    again before the others, only those of the last step are waited for from then on.
    """

    def __init__(self) -> None:
        self._made: list[weakref.ref[Any]] = []
        self._expected: set[int] = set()
        self._called: set[int] = set()
        self._has_gradient = self._has_compiled = False  # since the last update
        self._are_compiled: bool | None = None

    def add(self, optimizer: Any) -> None:
        """Note an optimizer that the program has made."""
        self._made.append(weakref.ref(optimizer))

    def optimizers(self) -> list[Any]:
        """Return the optimizers that the program still holds."""
        return [optimizer for made in self._made for optimizer in [made()] if optimizer is not None]

    def parameters(self) -> set[int]:
        """Return the identities of all parameters that they update."""
        return {id(held) for optimizer in self.optimizers() for held in held_by(optimizer)}

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
        if self._has_compiled and not self._has_gradient:
            self._are_compiled = True
        elif self._has_gradient and not self._has_compiled:
            self._are_compiled = bool(self._are_compiled)
        self._has_gradient = self._has_compiled = False

    def note_gradient(self) -> None:
        """Note a gradient function of trained parameters, which is not compiled."""
        self._has_gradient = True

    def note_compiled(self, names_gradient: bool) -> bool:
        """Note a compiled function with trained parameters; return whether it may make their gradients.

        One that follows the updates, such as an average of weights, makes none. It names no gradient function, and
        an update before it had its gradients without any compiled function.
        """
        self._has_compiled = True
        return names_gradient or self._are_compiled is not False

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
        return any(wanted <= _identities(held_by(optimizer)) for optimizer in called)

    def end(self) -> None:
        """End the step: the next one is expected to have the same optimizers."""
        if self._called:
            self._expected = self._called
            self._called = set()

    def _awaited(self) -> set[int]:
        alive = {id(optimizer) for optimizer in self.optimizers()}
        return self._expected & alive or alive


def _identities(weights: Any) -> set[int]:
    return {id(weight) for weight in (weights if isinstance(weights, (list, tuple)) else [weights])}
