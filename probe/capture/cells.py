# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The Cells below the model: a hook before and one after every call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from probe.capture import recompute
from probe.capture.patches import Patch, Patches
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
        self._after: dict[int, Callable[..., None]] = {}  # by the identity of the Cell: a copy of it is not watched
        self._run = Patches([Patch(nn.Cell, "_run_construct", self._told)])
        self._parameters: dict[str, dict[str, Any]] = {}  # each Cell's own, from its first call after a start
        roots = {id(model) for model in (models if isinstance(models, (list, tuple)) else [models])}
        self._cells = [
            (cell, *self._hooks(clean(f"{CELL}.{path}.{type(cell).__name__}")))
            for path, cell in cells
            if id(cell) not in roots
        ]

    def install(self) -> None:
        """Register the hooks."""
        if self._handles:
            return
        self._parameters.clear()
        with unnoticed():
            for cell, before, after in self._cells:
                self._handles.append(cell.register_forward_pre_hook(before, with_kwargs=True))
                self._after[id(cell)] = after
        self._run.install()

    def remove(self) -> None:
        """Take every hook away."""
        with unnoticed():
            for handle in self._handles:
                handle.remove()
        self._handles.clear()
        self._run.remove()
        self._after.clear()

    def _told(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Stand in for the method that runs a Cell's hooks and its construct, and tell how it ended.

        MindSpore's own forward hooks are not called when the Cell raises (below 2.9), when it is interrupted, nor when
        it has a bprop of its own.
        """
        watched, collection = self._after, self._collection

        def _run_construct(self: Any, *args: Any, **kwargs: Any) -> Any:
            after = watched.get(id(self))
            if after is None:
                return original(self, *args, **kwargs)
            try:
                output = original(self, *args, **kwargs)
                if collection.recorder is not None:
                    collection.recorder.settle()
            except BaseException as error:
                after(self, None, error)
                raise
            after(self, output, None)
            if collection.recorder is not None and collection.recorder.theirs is not None:
                collection.recorder.settle()
            return output

        return functools.update_wrapper(_run_construct, original)

    def _hooks(self, key: str) -> tuple[Any, Any]:
        collection, state, known, watched = self._collection, self._collection.state, self._parameters, self._after

        def before(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            recorder = collection.recorder
            if recorder is None or id(cell) not in watched:
                return
            try:
                call, repeated = state.begin(key, recorder.cell_call)
                if call is None:
                    return
                opened = OpenCell(cell, call, repeated)
                state.cells.append(opened)
                if not (repeated or recorder.opens(call) or recorder.follows(call)):
                    return
            except Exception as error:
                recorder.trouble("recording a call", error, key)
                return
            recorder.settle()
            try:
                if not repeated:
                    recorder.begins(call, args, kwargs, sys._getframe(1))
            except Exception as error:
                recorder.failed(call, "recording a call", error)
            try:
                if recorder.follows(call):
                    opened.plan = collection.gradients.plan_cell(recorder, args, kwargs)
            except Exception as error:
                recorder.failed(call, "watching the gradients of a Cell", error)

        def after(cell: Any, output: Any, raised: BaseException | None) -> None:
            opened, recorder = state.leave(cell), collection.recorder
            if opened is None or recorder is None:
                return
            parameters: dict[str, Any] = {}
            try:
                parameters = own_parameters(cell)
                if raised is not None:
                    opened.plan = None
                elif not opened.repeated and recorder.follows(opened.call):
                    collection.parameters.watch(recorder, key, parameters)
                if opened.plan is not None:
                    collection.gradients.attach(recorder, opened.call, opened.plan, output)
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

        def own_parameters(cell: Any) -> dict[str, Any]:
            parameters = known.get(key)
            if parameters is None:
                own = cell.parameters_dict(recurse=False).items()
                parameters = known[key] = {name.rsplit(".", 1)[-1]: parameter for name, parameter in own}
            return parameters

        return before, after


def is_model(value: Any) -> bool:
    """Return whether a value is what ``start(model=)`` takes: a Cell, or a list or tuple of Cells."""
    from mindspore import nn

    several: Sequence[Any] = value if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(isinstance(model, nn.Cell) for model in several)
