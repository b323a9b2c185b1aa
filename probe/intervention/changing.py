# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Stands around the calls of a training, in its process, and lets a change run in their place."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from probe.capture.method_event import Listener
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.cells import iter_cells
from probe.capture.pynative.thread_state import ThreadState
from probe.capture.training.events import KnownOptimizers, updates
from probe.entry import Kind
from probe.intervention.change import Change
from probe.intervention.values import Treatment, treatments
from probe.monitor.cell_values import ONLY, CellTask, CellValues
from probe.naming import CELL, clean
from probe.parameter_names import ParameterNames
from probe.process.rank import RankResolver
from probe.pytree import leaves
from probe.recording.call import Call
from probe.store.error_log import ErrorLog
from probe.store.file_io import make_dirs


class Planting:
    """Stands in the place of a ``Perturbation``, and is told the steps of a run. This one changes nothing.

    ``open`` begins a step or goes on with it, ``pause`` is within one, ``close`` ends it and returns whether the next
    two are to be recorded.
    """

    def parameters(self, *given: Any, **named: Any) -> Any:
        """Change nothing."""

    batch = open = pause = close = parameters


class Intervention(CellTask, Planting):
    """Changes the calls of a training; without a change, it writes those of the first step into ``calls``."""

    def __init__(self, change: Change, calls: str, folder: str) -> None:
        super().__init__(frozenset(("forward",)), lambda slot, tensor: None)
        self.change = self
        self._state = ThreadState()
        known = {}
        if change.said:
            with open(calls, encoding="utf-8") as file:
                known = {call["name"]: call for call in json.load(file)}
        self._notes = None if change.said else Notes(calls)
        self._treatments: list[Treatment] = (
            [self._notes] if self._notes else treatments(change, known)
        )
        self._optimizers = KnownOptimizers(may_run=False)
        self._names = ParameterNames()
        self._models = cast(Any, None)
        self._folder = folder
        self._watch = cast("CellValues | None", None)

    def parameters(self, parameters: Iterable[Any]) -> None:
        """Get ready before the monitor begins, as the capture differentiates to test itself; see ``Planting``."""
        if self._watch is None:
            self._watch = CellValues(
                replace(ONLY, level="mix", unlisted=True), ErrorLog(self._folder, set()), self
            )

    def open(self, models: Any) -> None:
        """Begin to change calls; see ``Planting``."""
        if self._watch is not None and self._treatments:
            self._rename(models)
            self._watch.install(models)

    def _rename(self, models: Any) -> None:
        """Give parameters the names that they have in a dump."""
        if models is not self._models or not self._names.are_current:
            self._models = models
            self._names = ParameterNames(iter_cells(models))
            self._optimizers.rename(self._names)

    def pause(self) -> None:
        """See ``Planting``."""
        if self._watch is not None:
            self._watch.remove()

    def close(self) -> None:
        """End the step; see ``Planting``."""
        if self._watch is not None:
            self._watch.end_step()
        for treatment in self._treatments:
            treatment.end_step()
        if self._notes is not None:
            self._notes = None  # those of the first step are enough
            self._treatments = []

    # -- what the capture calls -------------------------------------------------------------------------------------

    def hooks(self, context: Any) -> HookGroup:
        """Return the hooks of Cells and updates. Each Cell has its name already when it runs."""
        from mindspore import nn

        self._state = context.state
        return HookGroup(
            [Patch(nn.Cell, "__call__", around(self._cell)), Listener(updates(), self._update)]
        )

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the attributes of a Primitive for its formula; see ``Task``."""
        return {"attributes": dict(attributes)}

    def begin(self, *given: Any) -> Any:
        """Do nothing of what ``SavedTensors`` does, in whose place this stands."""

    remove = note_update = end_step = begin

    def around(
        self, call: Call, original: Callable[..., Any], inputs: Any, named: Any
    ) -> Callable[..., Any]:
        """Return what runs in place of a call of an API."""
        found = next((one for one in self._treatments if one.takes(call)), None)
        return (
            original
            if found is None
            else functools.partial(found.run, call, original, (inputs, named))
        )

    def _cell(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        opened = next(reversed(self._state.cells), None)
        run = functools.partial(original, cell)
        if opened is None or opened.cell is not cell:
            return run(*args, **kwargs)
        found = next((one for one in self._treatments if one.takes(opened.call)), None)
        if found is None:
            return run(*args, **kwargs)
        args, kwargs = self._state.unseen(found.before, opened.call, cell, (args, kwargs))
        result = found.instead(opened.call, (args, kwargs))
        result = run(*args, **kwargs) if result is None else result
        return self._state.unseen(found.after, opened.call, result, (args, kwargs))

    def _update(
        self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        result = original(optimizer, *args, **kwargs)
        (name, values) = self._optimizers.of(optimizer)
        call = Call(Kind.CELL, clean(f"{CELL}.{name}.{type(optimizer).__name__}"), 0, None)
        for treatment in self._treatments:
            treatment.updated(call, {**values.parameters, **values.states})
        return result


class Notes(Treatment):
    """Notes the names, Cells, dtypes and shapes of calls, for the changed runs."""

    def __init__(self, path: str) -> None:
        super().__init__({})
        self._path = path
        self._rows = list[dict[str, Any]]()
        self._inputs = dict[int, list[str]]()

    def takes(self, call: Call) -> bool:
        """Take all calls."""
        return True

    def before(self, call: Call, cell: Any, value: Any) -> Any:
        """Note the inputs."""
        self._inputs[id(call)] = self.dtypes(value)
        return value

    def after(self, call: Call, result: Any, inputs: Any) -> Any:
        """Note the outputs."""
        tensors = [leaf for leaf in leaves(result) if isinstance(leaf, self.tensor)]
        self._rows.append(
            {
                "name": call.forward,
                "is_cell": call.kind is Kind.CELL,
                "cell": "" if call.cell is None else call.cell.key,
                "inputs": self._inputs.pop(id(call), None) or self.dtypes(inputs),
                "outputs": self.dtypes(result),
                "shapes": [list(leaf.shape) for leaf in tensors],
            }
        )
        return result

    def updated(self, call: Call, held: Mapping[str, Any]) -> None:
        """Note an update: it is a call, and no Cell of the model."""
        self.after(call, None, None)

    def end_step(self) -> None:
        """Write the calls."""
        if not RankResolver().rank():
            make_dirs(os.path.dirname(self._path))
            with open(self._path, "w", encoding="utf-8") as file:
                json.dump(self._rows, file)
