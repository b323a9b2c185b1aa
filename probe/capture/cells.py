# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The Cells below the model: a hook before and one after every call."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from probe.capture import recompute
from probe.capture.threads import OpenCell
from probe.capture.unnoticed import unnoticed
from probe.naming import CELL, clean

if TYPE_CHECKING:
    from probe.capture.collection import Collection


def below(models: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, Cell) for the models and all Cells below them, but not for optimizers and what they hold.

    The Cells that MindSpore puts around a recomputed one are no Cells of the user's either.

    The path of a model itself is "", or its index when several were given.
    """
    from mindspore import nn

    several = isinstance(models, (list, tuple))
    for index, model in enumerate(models if several else [models]):
        optimizers = [cell for _, cell in model.cells_and_names() if isinstance(cell, nn.Optimizer)]
        hidden = {id(cell) for optimizer in optimizers for _, cell in optimizer.cells_and_names()}
        for path, cell in model.cells_and_names():
            if id(cell) not in hidden and type(cell).__module__ != recompute.MODULE:
                yield ".".join(part for part in (str(index) if several else "", path) if part), cell


class CellHooks:
    """The hooks of one collection on one set of models.

    Args:
        collection: what the calls are recorded by.
        models: a Cell, or a list or tuple of Cells; they themselves are not recorded, only what is below them.
        cells: what ``below`` found in them.
    """

    def __init__(self, collection: Collection, models: Any, cells: Iterable[tuple[str, Any]]) -> None:
        from mindspore import nn

        self._collection = collection
        self._handles: list[Any] = []
        self._parameters: dict[str, dict[str, Any]] = {}  # each Cell's own, from its first call after a start
        roots = {id(model) for model in (models if isinstance(models, (list, tuple)) else [models])}
        self._cells = [
            (cell, *self._hooks(clean(f"{CELL}.{path}.{type(cell).__name__}")))
            for path, cell in cells
            if id(cell) not in roots
        ]
        self._told_of_errors = "always_call" in inspect.signature(nn.Cell.register_forward_hook).parameters
        self._options = {"with_kwargs": True, **({"always_call": True} if self._told_of_errors else {})}

    def install(self) -> None:
        """Register the hooks."""
        if self._handles:
            return
        self._parameters.clear()
        with unnoticed():
            for cell, before, after in self._cells:
                self._handles.append(cell.register_forward_pre_hook(before, with_kwargs=True))
                self._handles.append(cell.register_forward_hook(after, **self._options))
                if cell.has_bprop or not self._told_of_errors:
                    vars(cell)[_RUN] = _told(cell, after)

    def remove(self) -> None:
        """Take every hook away."""
        with unnoticed():
            for handle in self._handles:
                handle.remove()
        self._handles.clear()
        for cell, _, _ in self._cells:
            vars(cell).pop(_RUN, None)

    def _hooks(self, key: str) -> tuple[Any, Any]:
        collection, state, known = self._collection, self._collection.state, self._parameters

        def before(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            recorder = collection.recorder
            if recorder is None:
                return
            try:
                call, repeated = state.begin(key, recorder.cell_call)
                if call is None:
                    return
                opened = OpenCell(cell, call, repeated)
                state.cells.append(opened)
                if not repeated:
                    recorder.begins(call, args, kwargs, sys._getframe(1))
                if recorder.follows(call):
                    opened.plan = collection.gradients.plan_cell(recorder, args, kwargs)
            except Exception as error:
                recorder.trouble(f"recording the call of {key}", error)

        def after(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            opened, recorder = state.leave(cell), collection.recorder
            if opened is None or recorder is None:
                return
            try:
                raised = sys.exc_info()[1]
                if raised is not None and output is None:
                    if not opened.repeated:
                        recorder.raised(opened.call, raised)
                    return
                if not opened.repeated:
                    parameters = known.get(key)
                    if parameters is None:
                        own = cell.parameters_dict(recurse=False).items()
                        parameters = known[key] = {name.rsplit(".", 1)[-1]: parameter for name, parameter in own}
                    recorder.ends(opened.call, output, parameters)
                    if opened.call.recorded:
                        collection.parameters.watch(recorder, key, parameters)
                if opened.plan is not None:
                    collection.gradients.attach(recorder, opened.call, opened.plan, output)
            except Exception as error:
                recorder.trouble(f"recording the result of {key}", error)

        return before, after


_RUN = "_run_construct"


def _told(cell: Any, after: Callable[..., None]) -> Callable[..., Any]:
    """Stand in for a method of Cell where MindSpore calls no hook after it.

    That is when it raises (below 2.9), and always when it has a bprop of its own: such a Cell drops forward hooks.
    """
    run, dropped = getattr(type(cell), _RUN), cell.has_bprop

    def run_construct(*args: Any, **kwargs: Any) -> Any:
        try:
            output = run(cell, *args, **kwargs)
        except Exception:
            after(cell, args, kwargs, None)
            raise
        if dropped:
            after(cell, args, kwargs, output)
        return output

    return run_construct


def is_model(value: Any) -> bool:
    """Return whether a value is what ``start(model=)`` takes: a Cell, or a list or tuple of Cells."""
    from mindspore import nn

    several: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(isinstance(model, nn.Cell) for model in several)
