# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The Cells below the model: what goes in before and comes out after every call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from probe.capture.patches import Patch, PatchSet
from probe.capture.pynative import recompute
from probe.capture.pynative.thread_state import OpenCall
from probe.naming import CELL, clean

if TYPE_CHECKING:
    from probe.capture.pynative.pynative_capture import PyNativeCapture
    from probe.recording.step_recorder import StepRecorder


def below(models: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, Cell) for the models and all Cells below them, but not for optimizers and what they hold.

    The Cells that MindSpore puts around a recomputed one are no Cells of the user's either.

    The path of a model itself is "", or its index when several were given.
    """
    from mindspore import nn

    several = isinstance(models, (list, tuple))
    for index, model in enumerate(models if several else [models]):
        found = list(model.cells_and_names())
        optimizers = [cell for _, cell in found if isinstance(cell, nn.Optimizer)]
        hidden = {id(cell) for optimizer in optimizers for _, cell in optimizer.cells_and_names()}
        for path, cell in found:
            if id(cell) not in hidden and type(cell).__module__ != recompute.MODULE:
                yield ".".join(part for part in (str(index) if several else "", path) if part), cell


class CellHooks:
    """Watches the calls of the Cells of one set of models, by one patch of the method that runs any Cell.

    Hooks of MindSpore's own would be one per Cell, and those after a call are not called when the Cell raises (below
    2.9), when it is interrupted, nor when it has a bprop of its own.

    Args:
        collection: what the calls are recorded by.
        models: a Cell, or a list or tuple of Cells; they themselves are not recorded, only what is below them.
        cells: what ``below`` found in them.
    """

    def __init__(self, collection: PyNativeCapture, models: Any, cells: Iterable[tuple[str, Any]]) -> None:
        from mindspore import nn

        self._collection, self._state = collection, collection.state
        roots = {id(model) for model in (models if isinstance(models, (list, tuple)) else [models])}
        self._cells = [(path, cell) for path, cell in cells if id(cell) not in roots]  # held: so identities stay theirs
        self._keys = {id(cell): clean(f"{CELL}.{path}.{type(cell).__name__}") for path, cell in self._cells}
        self._parameters: dict[str, dict[str, Any]] = {}  # each Cell's own, from its first call after a start
        self._patches = PatchSet(
            [Patch(nn.Cell, "__call__", self._call), Patch(nn.Cell, "_run_forward_pre_hook", self._pre_hooks)]
        )

    def install(self) -> None:
        """Begin to watch."""
        self._parameters.clear()
        self._patches.install()

    def remove(self) -> None:
        """Put MindSpore's method back."""
        self._patches.remove()

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        keys, collection, begin, end = self._keys, self._collection, self._begin, self._end

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            key = keys.get(id(self))
            recorder = collection.recorder
            if key is None or recorder is None:
                return original(self, *args, **kwargs)
            try:
                if not self._forward_pre_hook:
                    begin(recorder, self, key, args, kwargs)
                output = original(self, *args, **kwargs)
                if collection.recorder is not None:
                    collection.recorder.settle()
            except BaseException as error:
                end(self, key, None, error)
                raise
            end(self, key, output, None)
            if collection.recorder is not None and collection.recorder.theirs is not None:
                collection.recorder.settle()
            return output

        return functools.update_wrapper(__call__, original)

    def _pre_hooks(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stand in for what runs the user's own pre-hooks: the inputs are what comes out of them."""
        keys, collection, begin = self._keys, self._collection, self._begin

        def _run_forward_pre_hook(self: Any, args: Any, kwargs: Any) -> Any:
            args, kwargs = original(self, args, kwargs)
            key, recorder = keys.get(id(self)), collection.recorder
            if key is not None and recorder is not None:
                begin(recorder, self, key, args, kwargs)
            return args, kwargs

        return functools.update_wrapper(_run_forward_pre_hook, original)

    def _begin(
        self, recorder: StepRecorder, cell: Any, key: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        try:
            call, repeated = self._state.begin(key, recorder.cell_call)
            if call is None:
                return
            opened = OpenCall(cell, call, repeated)
            self._state.cells.append(opened)
            if not (repeated or recorder.opens(call) or recorder.follows(call)):
                return
        except Exception as error:
            recorder.trouble("recording a call", error, key)
            return
        recorder.settle()
        try:
            if not repeated:
                recorder.begins(call, args, kwargs, sys._getframe(2))
        except Exception as error:
            recorder.failed(call, "recording a call", error)
        try:
            if recorder.follows(call):
                opened.plan = self._collection.gradients.plan_cell(recorder, args, kwargs)
        except Exception as error:
            recorder.failed(call, "watching the gradients of a Cell", error)

    def _end(self, cell: Any, key: str, output: Any, raised: BaseException | None) -> None:
        opened, recorder = self._state.leave(cell), self._collection.recorder
        if opened is None or recorder is None:
            return
        parameters: dict[str, Any] = {}
        try:
            parameters = self._own_parameters(cell, key)
            if raised is not None:
                opened.plan = None
            elif not opened.repeated and recorder.follows(opened.call):
                self._collection.parameters.watch(recorder, key, parameters)
            if opened.plan is not None:
                self._collection.gradients.attach(recorder, opened.call, opened.plan, output)
        except Exception as error:
            recorder.failed(opened.call, "watching the gradients of a Cell", error)
        try:
            if opened.repeated:
                return
            if raised is None:
                recorder.ends(opened.call, output, parameters)
            else:
                recorder.raised(opened.call, raised)
        except Exception as error:
            recorder.failed(opened.call, "recording a result", error)

    def _own_parameters(self, cell: Any, key: str) -> dict[str, Any]:
        parameters = self._parameters.get(key)
        if parameters is None:
            own = cell.parameters_dict(recurse=False).items()
            parameters = self._parameters[key] = {name.rsplit(".", 1)[-1]: parameter for name, parameter in own}
        return parameters


def is_cell_or_cells(value: Any) -> bool:
    """Return whether a value is what ``start(model=)`` takes: a Cell, or a list or tuple of Cells."""
    from mindspore import nn

    several: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(isinstance(model, nn.Cell) for model in several)
