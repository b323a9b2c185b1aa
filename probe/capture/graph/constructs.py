# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Replaces the constructs of Cells and optimizers while MindSpore compiles, and only then."""

from __future__ import annotations

import functools
import logging
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.dumped_files import ENTER, LEAVE, UPDATE
from probe.capture.graph.operators import GraphOperators
from probe.capture.graph.sites import SKIPPED
from probe.capture.patches import HookGroup, Patch, around, holding
from probe.capture.training.events import optimizer_kinds
from probe.executor import found_in, living
from probe.naming import by_last_part

#: inferred values of one argument: "shape", "dtype" and "value"
_Inferred = Mapping[str, Any]
_NOTHING = object()
#: the attributes that no two Cells share
_OWN = ("_compile_cache", "_phase_cache", "_create_time", "_id")


def _description(describe: Callable[..., tuple[Any, ...]], events: GraphCalls) -> Any:
    """Return a Primitive that MindSpore evaluates while it compiles: it receives shapes, dtypes and constants."""
    from mindspore.ops import PrimitiveWithInfer

    class Description(PrimitiveWithInfer):  # type: ignore[misc]  # MindSpore has no types
        """Leaves nothing in the graph but the constants of the plan."""

        def __init__(self) -> None:
            super().__init__("Description")
            self.set_const_prim(True)
            self.add_prim_attr("forbid_reuse_result", True)

        def __infer__(self, *inferred: _Inferred) -> dict[str, Any]:
            plan: tuple[Any, ...] = SKIPPED
            with events.guard():
                plan = describe(*inferred)
            return {"dtype": None, "shape": None, "value": plan}

    return Description()


class Constructs:
    """Makes the constructs of one set of Cells, once, and installs them while MindSpore compiles."""

    def __init__(self, cells: Iterable[tuple[str, Any]], operators: GraphOperators, events: GraphCalls) -> None:
        self._plans, self._operators, self._events = events.plans, operators, events
        self._cells = list(cells)
        self._made: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._before: list[tuple[Any, str, Any]] = []
        #: identity of a parameter -> its Cells' keys and its names there
        self._owners: dict[int, list[tuple[str, str]]] = {}
        for key, cell in self._cells:
            for name, parameter in by_last_part(cell.parameters_dict(recurse=False)).items():
                self._owners.setdefault(id(parameter), []).append((key, name))

    @property
    def is_installed(self) -> bool:
        """Whether MindSpore compiles now."""
        return bool(self._before)

    def install(self) -> None:
        """Replace the constructs: all of them or, after an error of the tool, none."""
        if self.is_installed:
            return
        is_complete = False
        with self._events.guard():
            for key, cell in self._cells:
                self._replace(cell, functools.partial(self._cell, key, cell))
            for optimizer in _optimizers(self._owners):
                self._replace(optimizer, functools.partial(self._optimizer, optimizer))
            is_complete = True
        if not is_complete:
            self.remove()

    def remove(self) -> None:
        """Restore the constructs."""
        while self._before:
            cell, name, own = self._before.pop()
            if own is _NOTHING:
                vars(cell).pop(name, None)
            else:
                object.__setattr__(cell, name, own)

    def _replace(self, cell: Any, make: Callable[[], dict[str, Any]]) -> None:
        if id(cell) not in self._made:
            self._made[id(cell)] = cell, make()
        for name, replacement in self._made[id(cell)][1].items():
            self._before.append((cell, name, type(cell) if name == "__class__" else vars(cell).get(name, _NOTHING)))
            object.__setattr__(cell, name, replacement)

    def _cell(self, key: str, cell: Any) -> dict[str, Any]:
        """Return the attributes of a Cell while MindSpore compiles."""
        plans, operators, parameters = self._plans, self._operators, by_last_part(cell.parameters_dict(recurse=False))
        names, inner, hidden = tuple(parameters), cell.construct, _hidden(cell)
        if hidden:
            inner = _stand_in(cell)

        def inputs(args: _Inferred, kwargs: _Inferred) -> tuple[Any, ...]:
            return operators.graph_plan(plans.inputs(key, args, kwargs), key, ENTER)

        def outputs(output: _Inferred, own: _Inferred) -> tuple[Any, ...]:
            return operators.graph_plan(plans.outputs(key, names, output, own), key, LEAVE)

        descriptions = _description(inputs, self._events), _description(outputs, self._events)
        construct = operators.cell_construct(inner, *descriptions, tuple(parameters.values()))
        return {"construct": types.MethodType(construct, cell), **hidden}

    def _optimizer(self, optimizer: Any) -> dict[str, Any]:
        def describe(args: _Inferred, kwargs: _Inferred) -> tuple[Any, ...]:
            owners = [self._owners.get(id(parameter), []) for parameter in optimizer.parameters]
            return self._operators.graph_plan(self._plans.gradients(args, kwargs, owners), "Optimizer", UPDATE)

        construct = self._operators.optimizer_construct(optimizer.construct, _description(describe, self._events))
        return {"construct": types.MethodType(construct, optimizer)}


def _hidden(cell: Any) -> dict[str, Any]:
    """Return the attributes that hide a Cell's own bprop: its stand-in has it, inside of the reports."""
    if not callable(getattr(cell, "bprop", None)):
        return {}
    return {"__class__": type(type(cell).__name__, (type(cell),), {"bprop": property(_no_bprop)})}


def _no_bprop(cell: Any) -> None:
    raise AttributeError("bprop")


def _stand_in(cell: Any) -> Any:
    """Return a Cell with everything that this one has, but its compiled graphs."""
    from mindspore import nn

    inner = nn.Cell.__new__(type(cell))
    nn.Cell.__init__(inner, auto_prefix=False)
    vars(inner).update((name, value) for name, value in vars(cell).items() if name not in _OWN)
    return inner


def _optimizers(owners: Mapping[int, Any]) -> list[Any]:
    """Return the living optimizers of these parameters."""
    found = living(*optimizer_kinds())
    return [item for item in found if any(id(parameter) in owners for parameter in getattr(item, "parameters", ()))]


_log = logging.getLogger("probe")

#: the method of both executors that is called right before a compilation
_BEFORE = "_set_compile_cache_dep_files"


class CompilationHooks(HookGroup):
    """Patches MindSpore's two executors of compiled code."""

    def __init__(self, constructs: Constructs) -> None:
        patches = []
        for name in ("_CellGraphExecutor", "_JitExecutor"):
            executor = found_in(name)
            if executor is not None:
                patches.append(Patch(executor, "compile", around(self._compile)))
                patches.append(Patch(executor, _BEFORE, around(self._begin)))
        super().__init__(patches)
        self._constructs, self._is_refused = constructs, False

    def _begin(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Replace the constructs: MindSpore parses them next."""
        if not self._is_refused:
            self._constructs.install()
        return original(*args, **kwargs)

    def _compile(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Compile; if that fails with our constructs, compile without them."""
        if self._constructs.is_installed:  # a compilation inside a compilation
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        except Exception as error:
            if not self._constructs.is_installed:
                raise
            self._constructs.remove()
            with holding(self, "_is_refused", True):
                result = original(*args, **kwargs)
            first = str(error).strip().partition("\n")[0]
            _log.error("a graph could not be compiled with its Cells watched, and is not recorded: %s", first)
            return result
        finally:
            self._constructs.remove()
