# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes the calls of a training, in its process."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.cells import iter_cells
from probe.capture.pynative.thread_state import ThreadState
from probe.capture.training.events import KnownOptimizers, update_listeners
from probe.entry import Kind
from probe.intervention.change import Change
from probe.intervention.values import Treatment, treatments
from probe.launch.training_change import TrainingChange
from probe.layers.layer import layer_of_optimizer, layers
from probe.monitor.cell_values import ONLY, CellTask, CellValues
from probe.naming import clean
from probe.parameter_names import ParameterNames
from probe.process.rank import RankResolver
from probe.pytree import leaves
from probe.recording.call import Call
from probe.store.error_log import ErrorLog
from probe.store.file_io import make_dirs


class Intervention(TrainingChange):
    """Changes the calls of a training; without a change, it writes those of the first step into ``calls``."""

    def __init__(self, change: Change, calls: str, folder: str) -> None:
        known = {}
        if change.said:
            with open(calls, encoding="utf-8") as file:
                known = {call["name"]: call for call in json.load(file)}
        notes = None if change.said else Notes(calls)
        self._is_noting = notes is not None
        self._calls = ChangedCalls([notes] if notes else treatments(change, known))
        self._folder = folder
        self._watch: CellValues | None = None

    def parameters(self, parameters: Iterable[Any]) -> None:
        """Get ready before the monitor begins, as the capture differentiates to test itself."""
        if self._watch is None:
            settings = replace(ONLY, level="mix", unlisted=True)
            errors = ErrorLog(self._folder, set())
            self._watch = CellValues(settings, errors, CallsTask(), self._calls)

    def begin(self, models: Any) -> None:
        """Begin to change calls."""
        if self._watch is not None and self._calls.treatments:
            self._calls.name_parameters(models)
            self._watch.install(models)

    def pause(self) -> None:
        """Change nothing until the step goes on."""
        if self._watch is not None:
            self._watch.remove()

    def end(self) -> int:
        """End the step. Notes of the first one are enough."""
        if self._watch is not None:
            self._watch.end_step()
        for treatment in self._calls.treatments:
            treatment.end_step()
        if self._is_noting:
            self._is_noting = False
            self._calls.treatments = []
        return 0


class CallsTask(CellTask):
    """Records nothing but the attributes of Primitives, which their formulas need."""

    def __init__(self) -> None:
        super().__init__(frozenset(("forward",)), lambda slot, tensor: None)

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the attributes of a Primitive; see ``Task``."""
        return {"attributes": dict(attributes)}


class ChangedCalls:
    """Lets treatments run around calls of APIs, Cells and optimizers; see ``CallChange``."""

    def __init__(self, treatments: list[Treatment]) -> None:
        self.treatments = treatments
        self._state = ThreadState()
        self._optimizers = KnownOptimizers(may_run=False)
        self._names = ParameterNames()
        self._models: Any = None

    def name_parameters(self, models: Any) -> None:
        """Give parameters the names that they have in a dump."""
        if models is not self._models or not self._names.are_current:
            self._models = models
            self._names = ParameterNames(iter_cells(models))
            self._optimizers.rename(self._names)

    def hooks(self, state: ThreadState) -> HookGroup:
        """Return the hooks of Cells and updates. Each Cell has its name already when it runs."""
        self._state = state
        modules = [Patch(layer.kind, layer.call, around(self._cell)) for layer in layers()]
        return HookGroup([*modules, *update_listeners(self._update)])

    def around(
        self, call: Call, original: Callable[..., Any], inputs: Any, named: Any
    ) -> Callable[..., Any]:
        """Return the function that runs in place of a call of an API."""
        treatment = self._treatment_of(call)
        if treatment is None:
            return original
        return functools.partial(treatment.run, call, original, (inputs, named))

    def _treatment_of(self, call: Call) -> Treatment | None:
        return next((one for one in self.treatments if one.takes(call)), None)

    def _cell(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        opened = next(reversed(self._state.cells), None)
        is_recorded = opened is not None and opened.cell is cell
        treatment = self._treatment_of(opened.call) if opened is not None and is_recorded else None
        if opened is None or treatment is None:
            return original(cell, *args, **kwargs)
        unseen = self._state.unseen
        args, kwargs = unseen(treatment.before, opened.call, cell, (args, kwargs))
        result = treatment.instead(opened.call, (args, kwargs))
        if result is None:
            result = original(cell, *args, **kwargs)
        return unseen(treatment.after, opened.call, result, (args, kwargs))

    def _update(
        self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any
    ) -> Any:
        result = original(optimizer, *args, **kwargs)
        name, values = self._optimizers.of(optimizer)
        layer = layer_of_optimizer(optimizer) or layers()[0]
        key = clean(f"{layer.prefix}.{name}.{type(optimizer).__name__}")
        call = Call(Kind.CELL, key, 0, None)
        for treatment in self.treatments:
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
