# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Sees where the steps of a training begin and end, and calls start, stop and step as the program would.

It owns the patches that ``probe run`` puts into MindSpore.
"""

from __future__ import annotations

import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from probe.capture.backend import is_graph_mode
from probe.capture.patches import HookGroup, Patch, around, holding
from probe.capture.training.events import optimizer_kinds, update_listener
from probe.executor import found_in
from probe.launch.models import CellRole, ModelFinder, Rounds, reached
from probe.launch.training_change import TrainingChange
from probe.layers.layer import Layer, held_by, layers, modules_of, parameters_below

if TYPE_CHECKING:
    from probe.session.session import Session

_FORWARD_RUN = "_pynative_forward_run"


class Steps:
    """The steps of a program that has no debugger of its own: the session is made when the first step begins."""

    def __init__(
        self,
        new_session: Callable[[], Session],
        models: ModelFinder,
        change: TrainingChange,
        ended: Callable[[], None],
    ) -> None:
        self._new_session = new_session
        self._finder = models
        self.change = change
        self._ended = ended  # is called after each step
        self._session: Session | None = None
        self._models: list[Any] = []
        self._uncalled: set[int] = set()  # the models that were found, and not called so far
        self._has_called = False
        self._is_ending = False  # the session ends a step, and may make its calls once more
        self.is_open = self.is_due = False  # due: it ends when the Cell ends that made the update

    @property
    def session(self) -> Session:
        """The session of this process."""
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def begin(self, models: list[Any] | None = None) -> None:
        """Begin a step, unless one is open. Its model is known from earlier steps, or found by ``adopt``.

        Models are given where their calls cannot be seen.
        """
        if self.is_open or self._is_ending:
            return
        if models:
            self._models = models
            self._uncalled.clear()
        self.is_open = True
        self._start()

    def adopt(self, model: Any) -> bool:
        """Take a Cell that is about to be called as a model; return whether it is a new one.

        Nothing of it has been recorded: the step's entries so far are those of calls outside of any model.
        """
        if self._is_ending:
            return False
        if any(model is known for known in self._models):
            self._uncalled.discard(id(model))
            self._has_called = True
            return False
        if self._has_called:
            # a part of this model, which an optimizer holds, may have been taken for a model
            parts = self._uncalled & {id(cell) for _, cell in modules_of(model)}
            self._models = [*(known for known in self._models if id(known) not in parts), model]
        else:
            self._models = self._finder.with_partners(model) if not self._models else [model]
            self._uncalled = {id(partner) for partner in self._models if partner is not model}
        self._has_called = True
        self.session.stop()
        self._start()
        return True

    def end(self) -> None:
        """End the step, if one is open."""
        if self.is_open:
            self.is_open = self.is_due = self._has_called = False
            with holding(self, "_is_ending", True):
                self.session.stop()
                self.session.step()
            self._ended()

    def tell_parameters(self, models: list[Any]) -> None:
        """Tell the change the parameters of models and optimizers."""
        held = map(held_by, self._finder.rounds.optimizers())
        self.change.parameters(itertools.chain(*map(parameters_below, models), *held))

    def _start(self) -> None:
        from mindspore import nn

        models = self._models
        self.tell_parameters(models)
        self.session.start(models[0] if len(models) == 1 else models or nn.Cell())


class _InTraining(threading.local):
    """The place of this thread in the training."""

    in_model = False  # a model is running: the Cells below it are of no interest
    in_trainer = False  # a Cell with an optimizer, or a compiled step, is running
    updates = 0  # the depth of optimizers that are running


class Watch(HookGroup):
    """Begins and ends the steps of a training that runs in its own loop, and gives MsprobeStep to ``Model``.

    A step begins with a gradient function, or a Cell that has an optimizer. It ends with the optimizer. With
    ``at_model``, each outermost call of a model is a step instead.
    """

    def __init__(self, steps: Steps, models: ModelFinder, rounds: Rounds, at_model: bool) -> None:
        from mindspore import Model, amp, nn
        from mindspore.ops.composite import base

        super().__init__()
        self._met: list[Layer] = []
        self._steps = steps
        self._models = models
        self._rounds = rounds
        self._at_model = at_model
        self._here = _InTraining()
        self._is_paused = False
        self._classes: set[type] = set()
        #: compiled functions contain these methods: they are restored while MindSpore may compile
        self._checks = HookGroup()
        self.meet_layers()
        if at_model:
            return
        for kind in optimizer_kinds():
            self.add(Patch(kind, "__init__", around(self._made)))
        for owner in (base, base.GradOperation, base._Grad):
            self.add(Patch(owner, _FORWARD_RUN, around(self._gradient)))
        for name in ("train", "fit"):
            self.add(Patch(Model, name, around(self._train)))
        for name, method in (("_JitExecutor", "__call__"), ("_CellGraphExecutor", "compile")):
            self.add(Patch(found_in(name), method, around(self._compiled)))
        finite = self._checks_of(lambda arguments, _: arguments[0], wanted=False)
        self._checks.add(Patch(amp.DynamicLossScaler, "adjust", around(finite)))
        overflow = self._checks_of(lambda _, result: result)
        self._checks.add(
            Patch(nn.TrainOneStepWithLossScaleCell, "process_loss_scale", around(overflow))
        )
        self.add(self._checks)

    def meet_layers(self) -> None:
        """Watch the layers that the program has imported since: their modules, and their optimizers."""
        for layer in layers():
            if layer in self._met:
                continue
            self._met.append(layer)
            self.add(Patch(layer.kind, layer.call, around(self._cell)))
            if self._at_model:
                continue
            for kind in layer.optimizers:
                self.add(Patch(kind, "__init__", around(self._made)))
            self.add(update_listener(layer, self._update))

    # -- Cells ------------------------------------------------------------------------------------------------------

    def _cell(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        if self._here.in_model:
            return original(cell, *args, **kwargs)
        role = self._models.role(cell)
        if role in (CellRole.MODEL, CellRole.TRAINER):
            self._steps.change.batch(args, kwargs)
        if self._is_paused:
            with holding(self._here, "in_model", True):
                return original(cell, *args, **kwargs)
        if role is CellRole.MODEL:
            return self._model(original, cell, args, kwargs)
        if role is CellRole.TRAINER and not self._here.in_trainer and not self._here.updates:
            return self._trainer(cell, args, kwargs)
        return original(cell, *args, **kwargs)

    def _model(self, original: Callable[..., Any], model: Any, args: Any, kwargs: Any) -> Any:
        steps = self._steps
        is_new = False
        if self._at_model:
            steps.begin([model])
            is_new = True
        else:
            if self._rounds.has_several and getattr(model, "training", True) and not steps.is_open:
                steps.begin()
                is_new = True
            if steps.is_open:
                is_new |= steps.adopt(model)
        with holding(
            self._here, "in_model", True
        ):  # a model goes through hooks that came after its call began
            result = (
                type(model).__call__(model, *args, **kwargs)
                if is_new
                else original(model, *args, **kwargs)
            )
        if self._at_model:
            steps.end()
        return result

    def _trainer(self, cell: Any, args: Any, kwargs: Any) -> Any:
        self._end_if_repeated(below for _, below in modules_of(cell))
        with holding(self._here, "in_trainer", True):
            self._steps.begin(self._models.below([cell]) if is_graph_mode() else None)
            result = type(cell).__call__(cell, *args, **kwargs)
        if self._steps.is_due or is_graph_mode():
            self._end()
        return result

    # -- gradients and updates --------------------------------------------------------------------------------------

    def _gradient(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._is_paused or self._here.updates:
            return original(*args, **kwargs)
        weights = sys._getframe(2).f_locals.get(
            "weights"
        )  # the caller is MindSpore's: it holds the parameters
        if not self._rounds.train(weights):
            return original(*args, **kwargs)
        self._rounds.note_gradient()
        if self._rounds.has_begun and self._steps.is_open and self._rounds.repeats(weights):
            self._end()
        self._steps.change.batch(
            args, kwargs
        )  # later they are inputs of the graph, which are not written
        self._steps.begin()
        with holding(self._here, "in_model", False):
            return original(*args, **kwargs)

    def _made(
        self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Note a new optimizer. A class with a ``__call__`` of its own gets a patch: it may never call MindSpore's."""
        original(optimizer, *args, **kwargs)
        self._rounds.add(optimizer)
        self._models.forget()
        kind = type(optimizer)
        if (
            isinstance(optimizer, optimizer_kinds())
            and kind not in self._classes
            and all(kind.__call__ is not base.__call__ for base in optimizer_kinds())
        ):
            self._classes.add(kind)
            self.add(Patch(kind, "__call__", around(self._update)))

    def _update(
        self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        here = self._here
        if self._is_paused:
            return original(optimizer, *args, **kwargs)
        if not here.updates:
            self._steps.begin()
        here.updates += 1
        try:
            result = original(optimizer, *args, **kwargs)
        finally:
            here.updates -= 1
        self._rounds.note(optimizer)
        if not here.updates and self._rounds.ends_with(optimizer):
            self._end_or_wait()
        return result

    def _checks_of(
        self, found: Callable[[Any, Any], Any], wanted: bool = True
    ) -> Callable[..., Any]:
        """Return what runs around a loss scaler's check: if it finds NaN/Inf, the update is left out."""

        def run(original: Callable[..., Any], scaler: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(scaler, *args, **kwargs)
            is_waiting = self._steps.is_open and not self._is_paused and not self._rounds.has_begun
            if is_waiting and _truth(found((*args, *kwargs.values()), result)) is wanted:
                self._end_or_wait()
            return result

        return run

    def _end_or_wait(self) -> None:
        if self._here.in_trainer:
            self._steps.is_due = True
        else:
            self._end()

    def _end_if_repeated(self, cells: Iterable[Any]) -> None:
        """End the step if one of these optimizers has had its turn in it."""
        if self._rounds.has_begun and any(self._rounds.was_called(cell) for cell in cells):
            self._end()

    def _end(self) -> None:
        self._rounds.end()
        self._steps.end()

    # -- compiled steps, and Model.train ----------------------------------------------------------------------------

    def _compiled(
        self, original: Callable[..., Any], executor: Any, *args: Any, **kwargs: Any
    ) -> Any:
        here = self._here
        with self._checks.suspended():
            function = getattr(executor, "fn", None)  # a compiler of Cells has none
            if (
                function is None
                or self._is_paused
                or here.in_model
                or here.in_trainer
                or here.updates
            ):
                return original(executor, *args, **kwargs)
            found = reached(function, executor.obj)
            has_optimizer = any(
                self._models.role(cell) in (CellRole.OPTIMIZER, CellRole.TRAINER)
                for cell in found.cells
            )
            if not has_optimizer and not (
                found.has_any(self._rounds.parameters())
                and self._rounds.note_compiled(bool(found.gradients))
            ):
                return original(executor, *args, **kwargs)
            self._end_if_repeated(found.cells)
            self._steps.change.batch(args, kwargs)
            with holding(self._here, "in_trainer", True):
                self._steps.begin(self._models.below(found.cells))
                result = type(executor).__call__(executor, *args, **kwargs)
        if has_optimizer:
            self._end()
        return result

    def _train(self, original: Callable[..., Any], model: Any, *args: Any, **kwargs: Any) -> Any:
        if self._is_paused:
            return original(model, *args, **kwargs)
        from probe.callbacks import SessionStep

        given = inspect.signature(original).bind(model, *args, **kwargs)
        callbacks = given.arguments.get("callbacks")
        further = (
            callbacks
            if isinstance(callbacks, (list, tuple))
            else []
            if callbacks is None
            else [callbacks]
        )
        self._steps.tell_parameters(self._models.below([model.train_network]))
        given.arguments["callbacks"] = [SessionStep(lambda: self._steps.session), *further]
        with holding(self, "_is_paused", True):
            return original(*given.args, **given.kwargs)


def _truth(value: Any) -> bool:
    """Return whether a value is true. A tensor is asked without a call that would be recorded."""
    return bool(value.asnumpy() if hasattr(value, "asnumpy") else value)
