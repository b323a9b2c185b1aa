# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The capture backend for GRAPH_MODE, and for compiled Cells in PyNative mode, and the checks of a start there.

Constructs of Cells and optimizers are replaced while MindSpore compiles, and only then. Each check raises a UsageError
that names the remedy.
"""

from __future__ import annotations

import functools
import logging
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.dumped_files import ENTER, LEAVE, UPDATE
from probe.capture.graph.operators import (
    MOST,
    WATCHED,
    CallbackOperators,
    FileOperators,
    GraphOperators,
)
from probe.capture.graph.sites import SKIPPED, Plans, select_measurers
from probe.capture.graph.templates import ascend_operators
from probe.capture.patches import HookGroup, Patch, around, holding
from probe.capture.training.events import optimizer_kinds
from probe.config.settings import Settings
from probe.errors import UsageError
from probe.executor import found_in, living, pynative_executor
from probe.naming import by_last_part
from probe.recording.step_recorder import StepRecorder

_log = logging.getLogger("probe")
TASKS = ("statistics", "tensor", "structure")  # the tasks that compiled graphs support
_WORKS = 'GRAPH_MODE supports level "L0" with the tasks "statistics", "tensor" and "structure"'
_OR = "or mindspore.set_context(mode=mindspore.PYNATIVE_MODE)"
_Inferred = Mapping[str, Any]  # inferred values of one argument: "shape", "dtype" and "value"
_NOTHING = object()
_OWN = (
    "_compile_cache",
    "_phase_cache",
    "_create_time",
    "_id",
)  # the attributes that no two Cells share
_BEFORE = "_set_compile_cache_dep_files"  # the method of both executors that is called right before a compilation


class CompiledGraphs:
    """Watches compilations from the first ``start`` until ``close``, and records Cells between start and stop.

    A graph that was compiled with reports keeps them. While nothing is recorded, they do nothing. In PyNative mode
    (``is_split``), forward and backward of a Cell are two graphs. On Ascend, files are written below ``dump_path``.
    """

    select_measurers = staticmethod(select_measurers)
    journals_each = True  # a value is safe as soon as its report has returned
    companion = None

    def __init__(self, is_split: bool, dump_path: str, watches: bool) -> None:
        self._watches = watches
        self.calls = calls = GraphCalls(Plans(MOST, WATCHED if watches else 0))
        self._device = device_target()
        if self._device == "CPU":
            self._operators: GraphOperators = CallbackOperators(calls, is_split)
        else:
            self._operators = FileOperators(calls, ascend_operators(), is_split, dump_path)
        self._cells: list[tuple[str, Any]] = []
        self._hooks: CompilationHooks | None = None
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def serves(self, is_split: bool, watches: bool) -> bool:
        """Return whether the reports are those for this mode and for the device of now, and tell enough."""
        is_same = self._operators.is_split == is_split and self._device == device_target()
        return is_same and self._watches >= watches

    def knows(self, cell: Any) -> bool:
        """Return whether a Cell was watched before: its compiled graphs report."""
        return cell in self._known

    def watch_cells(self, cells: Sequence[tuple[str, Any]]) -> None:
        """Report the calls of these Cells in all graphs that are compiled from now on."""
        old = self._cells
        if len(cells) == len(old) and all(
            a[1] is b[1] and a[0] == b[0] for a, b in zip(cells, old)
        ):
            return
        self._unwatch()
        self._cells = list(cells)
        self._known.update(cell for _, cell in cells)
        is_recomputed = any(getattr(cell, "_recompute_cell", None) is not None for _, cell in cells)
        self._operators.recomputes = is_recomputed and not self._operators.is_split
        self._hooks = CompilationHooks(Constructs(cells, self._operators, self.calls))
        self._hooks.install()

    def close(self) -> None:
        """Watch no more compilations. Nothing of ours is left but the reports in compiled graphs."""
        self._unwatch()
        self._operators.close()

    def _unwatch(self) -> None:
        if self._hooks is not None:
            self._hooks.remove()
        self._hooks = None
        self._cells = []

    def wait(self) -> None:
        """Wait until the running graphs have ended; raise a pending error of the training."""
        if not self._operators.is_running:
            pynative_executor().sync()

    def install(
        self, recorder: StepRecorder, model: Any = None, token_range: tuple[int, int] | None = None
    ) -> None:
        """Record the calls that begin from now on."""
        self._operators.begin()
        self.calls.begin(recorder)

    def remove(self) -> None:
        """Record no further call. Gradients of recorded calls still arrive."""
        self._operators.replay()
        self.calls.stop()

    def end_step(self) -> None:
        """End the open entries."""
        self._operators.replay()
        self._operators.end()
        self.calls.end_step()

    def detach(self) -> None:
        """Stop recording for good, in a forked child."""
        self.calls.detach()

    def add(self, api: Any) -> None:
        """Do nothing: no API is seen inside a graph."""

    def drop(self, owner: Any, name: str) -> None:
        """Do nothing: no API is seen inside a graph."""

    def watch(self, models: Any) -> None:
        """Do nothing: the Cells of a graph are watched already."""

    def save(self, *_: Any) -> None:
        """Do nothing: ``save`` is refused before."""


def device_target() -> str:
    """Return the device that graphs run on."""
    import mindspore

    return str(mindspore.get_context("device_target"))


def check_graph_settings(settings: Settings, token_range: Any) -> None:
    """Check that GRAPH_MODE supports the settings, and the argument of ``start``."""
    if not is_supported():
        raise UsageError(
            f"start(): GRAPH_MODE is supported on CPU and Ascend. Set one of these devices, {_OR}."
        )
    if settings.level != "L0":
        raise UsageError(f'{_WORKS}, not level "{settings.level}". Set "level": "L0", {_OR}.')
    if settings.task not in TASKS:
        raise UsageError(f'{_WORKS}, not task "{settings.task}". Set another task, {_OR}.')
    if token_range is not None:
        raise UsageError(f"start(): {_WORKS}, without token_range. Leave it out, {_OR}.")


def is_supported() -> bool:
    """Return whether graphs can report on this device."""
    return device_target() in ("CPU", "Ascend")


def check_cells(cells: Sequence[tuple[str, Any]], is_watched: bool) -> None:
    """Check that shapes are fixed, and that nothing was compiled before a start has watched (``is_watched``)."""
    dynamic = [
        path or "the model"
        for path, cell in cells
        if getattr(cell, "_dynamic_shape_inputs", None) is not None
    ]
    if dynamic:
        raise UsageError(
            f"start(): {dynamic[0]} has dynamic shapes (set_inputs). In GRAPH_MODE only fixed shapes can be recorded."
        )
    compiled = [path or "the model" for path, cell in cells if getattr(cell, "compile_cache", None)]
    if compiled and not is_watched:
        raise UsageError(
            f"start(): {compiled[0]} is compiled already, and a compiled graph cannot be changed. "
            "Call start(model) before the first step, also if that step is not recorded."
        )


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

    def __init__(
        self, cells: Iterable[tuple[str, Any]], operators: GraphOperators, events: GraphCalls
    ) -> None:
        self._plans = events.plans
        self._operators = operators
        self._events = events
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
            self._before.append(
                (cell, name, type(cell) if name == "__class__" else vars(cell).get(name, _NOTHING))
            )
            object.__setattr__(cell, name, replacement)

    def _cell(self, key: str, cell: Any) -> dict[str, Any]:
        plans = self._plans
        operators = self._operators
        parameters = by_last_part(cell.parameters_dict(recurse=False))
        names = tuple(parameters)
        inner = cell.construct
        hidden = dict[str, Any]()
        if callable(getattr(cell, "bprop", None)):  # its stand-in has it, inside of the reports
            no_bprop = {"bprop": property()}  # it raises AttributeError
            inner = _stand_in(cell)
            hidden["__class__"] = type(type(cell).__name__, (type(cell),), no_bprop)

        def inputs(args: _Inferred, kwargs: _Inferred) -> tuple[Any, ...]:
            return operators.graph_plan(plans.inputs(key, args, kwargs), key, ENTER)

        def outputs(output: _Inferred, own: _Inferred) -> tuple[Any, ...]:
            return operators.graph_plan(plans.outputs(key, names, output, own), key, LEAVE)

        construct = operators.cell_construct(
            inner,
            _description(inputs, self._events),
            _description(outputs, self._events),
            tuple(parameters.values()),
        )
        return {"construct": types.MethodType(construct, cell), **hidden}

    def _optimizer(self, optimizer: Any) -> dict[str, Any]:
        def describe(args: _Inferred, kwargs: _Inferred) -> tuple[Any, ...]:
            owners = [self._owners.get(id(parameter), []) for parameter in optimizer.parameters]
            return self._operators.graph_plan(
                self._plans.gradients(args, kwargs, owners), "Optimizer", UPDATE
            )

        construct = self._operators.optimizer_construct(
            optimizer.construct, _description(describe, self._events)
        )
        return {"construct": types.MethodType(construct, optimizer)}


def _stand_in(cell: Any) -> Any:
    """Return a Cell with everything that this one has, but its compiled graphs."""
    from mindspore import nn

    inner = nn.Cell.__new__(type(cell))
    nn.Cell.__init__(inner, auto_prefix=False)
    vars(inner).update((name, value) for name, value in vars(cell).items() if name not in _OWN)
    return inner


def _optimizers(owners: Mapping[int, Any]) -> list[Any]:
    found = living(*optimizer_kinds())
    return [
        item
        for item in found
        if any(id(parameter) in owners for parameter in getattr(item, "parameters", ()))
    ]


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
        self._constructs = constructs
        self._is_refused = False

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
            _log.error(
                "a graph could not be compiled with its Cells watched, and is not recorded: %s",
                first,
            )
            return result
        finally:
            self._constructs.remove()
