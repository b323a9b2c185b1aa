# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records the calls of the Cells below the model, and each update of an optimizer as one entry of a Cell."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

from probe.capture.autograd.parameter_hooks import ParameterHooks
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.context import CaptureContext
from probe.capture.pynative.jit import RECOMPUTE_MODULE
from probe.capture.pynative.outside import OutsideCells
from probe.capture.pynative.saved_tensors import SavedTensors
from probe.capture.pynative.thread_state import OpenCall
from probe.capture.training.computed_numbers import ComputedNumbers
from probe.capture.training.events import KnownOptimizers, optimizer_kinds, update_listeners
from probe.capture.training.optimizer_values import METHODS, OptimizerValues
from probe.entry import Kind
from probe.layers.layer import (
    is_model,
    layer_of_models,
    layer_of_optimizer,
    layers,
    modules_of,
    own_parameters,
    prefix_of,
)
from probe.measure.measurer import Role
from probe.measure.tensor_reader import to_number
from probe.naming import by_last_part, clean
from probe.parameter_names import ParameterNames
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder

_FOLLOWING = "following the hooks of a module"
_LOSS = "loss_fn"  # the path of a loss Cell outside of the model


class ModelAndLoss(NamedTuple):
    """A model and the loss Cell that is called outside of it."""

    model: Any  # the model; its Cells have the same names as without a loss
    loss: Any  # the loss Cell, which is recorded too


def with_loss(model: Any, loss: Any) -> Any:
    """Return the model, together with its loss if that is a Cell outside of the model."""
    is_outside = is_model(loss) and all(cell is not loss for _, cell in iter_cells(model))
    return ModelAndLoss(model, loss) if is_outside else model


def iter_cells(models: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, Cell) for the models and all Cells below them, without optimizers and their Cells.

    The Cells that MindSpore puts around a recomputed Cell are left out too.

    The path of a model itself is "", or its index when several were given.
    """
    if isinstance(models, ModelAndLoss):
        cells = dict(iter_cells(models.model))
        yield from cells.items()
        above = _LOSS if _LOSS not in cells else f"Model.{_LOSS}"
        yield from (
            (f"{above}.{path}" if path else above, cell) for path, cell in iter_cells(models.loss)
        )
        return
    found = list(_all_cells(models))
    kinds = optimizer_kinds()
    optimizers: list[Any] = [cell for _, cell in found if isinstance(cell, kinds)]
    hidden = {id(cell) for optimizer in optimizers for _, cell in modules_of(optimizer)}
    for path, cell in found:
        if id(cell) not in hidden and type(cell).__module__ != RECOMPUTE_MODULE:
            yield path, cell


def _all_cells(models: Any) -> Iterator[tuple[str, Any]]:
    models = _model_of(models)
    several = isinstance(models, (list, tuple))
    for index, model in enumerate(models if several else [models]):
        for path, cell in modules_of(model):
            yield ".".join(part for part in (str(index) if several else "", path) if part), cell


def are_others(models: Any, before: Any) -> bool:
    """Return whether models share no Cell with those before. A Cell without parameters is no model."""
    cells = [cell for _, cell in iter_cells(models)]
    known = [cell for _, cell in iter_cells(before)]
    has_parameters = all(any(own_parameters(cell) for cell in found) for found in (cells, known))
    return has_parameters and {id(cell) for cell in known}.isdisjoint(map(id, cells))


def _model_of(models: Any) -> Any:
    """Return models without the loss."""
    return models.model if isinstance(models, ModelAndLoss) else models


def named_cells(models: Any, cells: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the Cells below the models with the names of their entries, without number and direction."""
    models = _model_of(models)
    roots = (
        {str(index) for index in range(len(models))} if isinstance(models, (list, tuple)) else {""}
    )
    prefix = prefix_of(models)
    return [
        (clean(f"{prefix}.{path}.{type(cell).__name__}"), cell)
        for path, cell in cells
        if path not in roots
    ]


class CellHooks(HookGroup):
    """Watches the calls of the Cells of one set of models. One patch of the method that runs any Cell is enough.

    MindSpore's forward hooks would be one per Cell. They are not called after a call that raises (below 2.9), that is
    interrupted, or whose Cell defines its own bprop.

    The models themselves are not recorded, only the Cells below them. ``cells`` are those that ``iter_cells`` found in
    them; the models alone at a level without Cells.
    """

    def __init__(
        self,
        context: CaptureContext,
        parameters: ParameterHooks,
        models: Any,
        cells: Iterable[tuple[str, Any]],
        outside: OutsideCells,
    ) -> None:
        self._layer = layer = layer_of_models(_model_of(models)) or layers()[0]
        runs = zip(layer.hook_methods or (), (self._run_pre_hooks, self._run_hooks))
        inner = [Patch(layer.kind, name, around(run)) for name, run in runs]
        super().__init__([Patch(layer.kind, layer.call, self._call), *inner])
        self._context = context
        self._parameter_hooks = parameters
        self._outside = outside
        self._cells = named_cells(models, cells)  # held: identities stay unique
        self._keys = {id(cell): key for key, cell in self._cells}
        self._is_chosen = True
        below = {id(cell) for _, cell in self._cells}
        self._models = {
            id(cell): (path, cell) for path, cell in cells if id(cell) not in below
        }  # held too
        self._parameters: dict[
            str, tuple[list[Any], dict[str, Any]]
        ] = {}  # each Cell's own, as held and by name

    @property
    def keys(self) -> set[str]:
        """The keys of all these Cells."""
        return {key for key, _ in self._cells}

    def choose(self, only: Collection[str] | None) -> None:
        """Let ``install`` watch the Cells with these keys alone."""
        self._keys.clear()  # the patch holds this object
        self._keys.update(
            (id(cell), key) for key, cell in self._cells if only is None or key in only
        )
        self._is_chosen = only is None or bool(self._keys)

    def install(self) -> None:
        """Begin to watch calls."""
        self._parameters.clear()
        if self._is_chosen:
            super().install()

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        keys = self._keys
        context = self._context
        state = self._context.state
        end = self._end
        models = self._models
        note_model = self._note_model
        note_outside = self._outside.note
        has_pre_hooks = self._layer.has_pre_hooks
        follow = None if self._layer.hook_methods else self._layer.behind_pre_hooks

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            key = keys.get(id(self))
            recorder = context.recorder
            if key is None or recorder is None:
                if recorder is not None and id(self) in models:
                    recorder.note_inputs(args, kwargs)
                    if follow is not None or not has_pre_hooks(self):
                        note_model(recorder, self)
                elif recorder is not None:
                    note_outside(recorder, self)
                return original(self, *args, **kwargs)
            depth = len(state.cells)
            undo = None
            try:
                if not has_pre_hooks(self):
                    context.begin(key, args, kwargs, self)
                elif follow is not None:
                    begin = functools.partial(context.begin, key, cell=self)
                    undo = recorder.safely(_FOLLOWING, None, follow, self, begin, key=key)
                output = original(self, *args, **kwargs)
                recorder.queue.synchronize()
            except BaseException as error:
                opened = state.leave(depth, self)
                if opened is not None and context.recorder is not None:
                    context.fail(opened, error)
                raise
            finally:
                if undo is not None:
                    recorder.safely(_FOLLOWING, None, undo, key=key)
            opened = state.leave(depth, self)
            if opened is not None and context.recorder is not None:
                end(opened, key, output)
            return output

        return functools.update_wrapper(__call__, original)

    def _run_pre_hooks(
        self, original: Callable[..., Any], cell: Any, args: Any, kwargs: Any
    ) -> Any:
        """Wrap the method that runs the user's pre-hooks: its return values are the recorded inputs."""
        args, kwargs = original(cell, args, kwargs)
        key = self._keys.get(id(cell))
        recorder = self._context.recorder
        if key is not None:
            self._context.begin(key, args, kwargs, cell)
        elif recorder is not None and id(cell) in self._models:
            self._note_model(recorder, cell)
        return args, kwargs

    def _run_hooks(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        """Wrap the method that runs the user's forward hooks: they may swap the parameters that the Cell has used."""
        opened = next(reversed(self._context.state.cells), None)
        recorder = self._context.recorder
        if opened is not None and opened.cell is cell and recorder is not None:
            recorder.queue.synchronize()
            with recorder.guard("reading the parameters of a Cell", opened.call):
                opened.has_parameters = True
                parameters = self._named(cell)
                if opened.call.watched and recorder.task.records_parameters:
                    is_swapped = self._layer.has_pre_hooks(cell)
                    self._parameter_hooks.watch(
                        recorder, self._keys[id(cell)], parameters, lasting=not is_swapped
                    )
                if not opened.is_repeated:
                    recorder.note_states(opened.call, parameters, Role.OUTPUT)
        return original(cell, *args, **kwargs)

    def _end(self, opened: OpenCall, key: str, output: Any) -> None:
        parameters: dict[str, Any] | None = None
        with opened.recorder.guard("watching the gradients of a Cell", opened.call):
            if not opened.has_parameters:
                parameters = self._own_parameters(opened.cell, key)
                is_wanted = opened.recorder.task.records_parameters
                if opened.call.watched and not opened.is_repeated and is_wanted:
                    self._parameter_hooks.watch(opened.recorder, key, parameters)
        self._context.watch_gradients(opened, output)
        self._context.end(opened, output, parameters)

    def _note_model(self, recorder: StepRecorder, model: Any) -> None:
        path = self._models[id(model)][0]
        if not self._keys:
            return  # no Cell is recorded, only the inputs of the model are noted
        with recorder.guard("recording the model's parameters", key=path):
            recorder.note_model(path, self._own_parameters(model, f"model {path}"))

    def _own_parameters(self, cell: Any, key: str) -> dict[str, Any]:
        held = list(self._layer.parameters(cell).values())
        found = self._parameters.get(key)
        if found is None or list(map(id, found[0])) != list(
            map(id, held)
        ):  # some may have been replaced
            found = self._parameters[key] = held, self._named(cell)
        return found[1]

    def _named(self, cell: Any) -> dict[str, Any]:
        """Return the parameters that a module holds now by their names in its entry; a tensor may stand for one."""
        layer = self._layer
        held = layer.parameters(cell).items()
        named = (
            (layer.parameter_name(value, "", key), value)
            for key, value in held
            if value is not None
        )
        return by_last_part(dict(named))


class OptimizerHooks(HookGroup):
    """Records the updates of all optimizers. Nothing inside an optimizer is recorded."""

    def __init__(self, context: CaptureContext, mode: str, saved: SavedTensors | None) -> None:
        from mindspore import get_context, nn

        super().__init__(update_listeners(self._run))
        self._classes: set[type] = set()  # whose methods that compute a number are watched
        self._watch_methods(nn.Optimizer)
        self._context = context
        self._mode = mode  # the setting ``optimizer``
        self._saved = saved  # the guard of saved tensors
        self._below: list[
            tuple[str, Any]
        ] = []  # those below the models; held: identities stay unique
        self._paths: dict[int, str] = {}  # they are named by their paths
        self._names = ParameterNames()
        self._known = KnownOptimizers(get_context("device_target") == "CPU")
        self._computing: dict[int, ComputedNumbers] = {}  # the optimizers whose updates run

    def watch(self, models: Any, cells: list[tuple[str, Any]]) -> None:
        """Name the optimizers below these models by their paths. ``cells`` are the Cells of the models."""
        self._below = [
            (path, cell) for path, cell in _all_cells(models) if isinstance(cell, optimizer_kinds())
        ]
        self._paths = {id(cell): path for path, cell in self._below}
        self._name_parameters(cells)

    def rename(self, cells: list[tuple[str, Any]]) -> None:
        """Give the parameters of the models their names again, if a Cell holds another one now."""
        if not self._names.are_current:
            self._name_parameters(cells)

    def name_of(self, parameter: Any) -> str:
        """Return the name of a parameter. No other parameter has it."""
        return self._names.of(parameter)

    def _name_parameters(self, cells: list[tuple[str, Any]]) -> None:
        #: the parameters of models have their names before those of optimizers have
        self._names = ParameterNames(cells)
        self._known.rename(self._names)

    def _watch_methods(self, kind: type) -> None:
        """Watch the methods that compute a number: those of MindSpore's class, and those of a user's own."""
        for base in kind.__mro__ if kind not in self._classes else ():
            if base not in self._classes:
                self._classes.add(base)
                for name, number in METHODS.items():
                    if inspect.isfunction(vars(base).get(name)):
                        self.add(Patch(base, name, around(self._noting(number))))

    def _run(self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        state = self._context.state
        recorder = self._context.recorder
        if recorder is None or state.in_recorded_call:
            return original(optimizer, *args, **kwargs)
        call = None
        values = None
        key = ""
        name = type(optimizer).__name__
        state.in_recorded_call = True
        try:
            with recorder.guard("reading an optimizer", key=name):
                key, values = self._known.of(optimizer)
                layer = layer_of_optimizer(optimizer) or layers()[0]
                key = clean(f"{layer.prefix}.{self._paths.get(id(optimizer)) or key}.{name}")
                self._watch_methods(type(optimizer))
            if values is not None and self._mode != "off" and recorder.task.records_updates:
                entered = values.gradients(args)
                call = recorder.begin(Kind.CELL, key, entered, {}, state.cell)
            update = functools.partial(original, optimizer, *args, **kwargs)
            if values is None:
                result = update()
            else:
                self._computing[id(optimizer)] = ComputedNumbers(values)
                update = functools.partial(self._noted, recorder, key, optimizer, values, update)
                result = (
                    update()
                    if call is None
                    else self._record(recorder, call, values, optimizer, update)
                )
            if values is not None and recorder.snapshot is not None:
                with recorder.guard("noting the parameters after an update", key=name):
                    recorder.snapshot.updated(key, values.parameters)
            return result
        finally:
            self._computing.pop(id(optimizer), None)
            if self._saved is not None and values is not None:
                self._saved.note_update(call.forward if call else key, values.parameters.values())
            state.in_recorded_call = False

    def _noted(
        self,
        recorder: StepRecorder,
        key: str,
        optimizer: Any,
        values: OptimizerValues,
        update: Callable[[], Any],
    ) -> Any:
        """Run an update. The first one of an optimizer is noted, with the numbers that it computes itself."""
        snapshot = recorder.snapshot
        if snapshot is None or not snapshot.lacks(optimizer):
            return update()
        name = type(optimizer).__name__
        numbers = None
        used = self._computing[id(optimizer)]
        with recorder.guard("noting an optimizer", key=name):
            numbers = values.scalars(to_number)
        try:
            return update()
        finally:
            if numbers is not None:
                with recorder.guard("noting an optimizer", key=name):
                    snapshot.optimizer(
                        optimizer,
                        key,
                        used.merged(numbers, used.after(to_number)) if used else numbers,
                    )

    def _record(
        self,
        recorder: StepRecorder,
        call: Call,
        values: OptimizerValues,
        optimizer: Any,
        update: Callable[[], Any],
    ) -> Any:
        used = self._computing[id(optimizer)]
        has_ended = False
        states = {**values.states} if self._mode == "states" and call.recorded else None
        try:
            with recorder.guard("reading an optimizer", call):
                recorder.note_scalars(call, used.before)
                if states is not None:
                    recorder.note_states(call, states)
            result = update()
            recorder.queue.synchronize()
            has_ended = True
        finally:
            error = sys.exc_info()[1]
            if not has_ended and error is not None:
                recorder.fail(call, error)
        if used:
            with recorder.guard("reading the numbers of an optimizer", call):
                before = call.parts.get("input_kwargs")
                recorder.note_scalars(call, used.after)
                if before is not None:
                    call.parts["input_kwargs"] = used.merged(before, call.parts["input_kwargs"])
        recorder.end(call, {**values.parameters, **states} if states is not None else ())
        return result

    def _noting(self, name: str) -> Callable[..., Any]:
        """Return what runs instead of a method that computes a number of the update: it keeps the number."""

        def run(original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(optimizer, *args, **kwargs)
            used = self._computing.get(id(optimizer))
            if used is not None:
                used.note(name, result, is_held=result is getattr(optimizer, name, None))
            return result

        return run
