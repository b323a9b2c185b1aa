# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds attention, routers, embeddings and weights of a model, and measures them: by function, name, shape, class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from probe.capture.pynative.cells import iter_cells, named_cells
from probe.measure import features
from probe.monitor.cell_values import ONLY, CellTask, CellValues
from probe.monitor.numbers import HostNumbers, StepValues
from probe.parameter_names import ParameterNames
from probe.recording.call import Call
from probe.series.series_name import MECHANISMS, Slot
from probe.store.error_log import ErrorLog

_SOFTMAX = frozenset(("softmax", "softmax_ext", "Softmax"))
_MODES = frozenset(("forward", "input", "output"))
_FUSED = frozenset(("flash_attention_score", "speed_fusion_attention"))
_ARGUMENTS = (
    "query",
    "key",
    "value",
    "head_num",
    "input_layout",
)  # the first arguments of a fused attention
_MOST_EXPERTS = 512  # most experts of a router


class Mechanisms(CellTask):
    """Measures weights, and as a task attention by its inputs and routers; ``values`` takes the numbers."""

    def __init__(self, numbers: HostNumbers, errors: ErrorLog, values: StepValues) -> None:
        super().__init__(_MODES, self._of_router, _SOFTMAX | _FUSED)
        self._numbers = numbers
        self._errors = errors
        self._values = values
        self._calls: list[CellValues] = []
        self._matrices: dict[str, Any] = {}  # by the names of the parameters
        self._routers: dict[str, int] = {}  # key of the calls -> number of experts
        self._tables: list[str] = []  # parameters of embeddings and routers

    def begin(self) -> list[CellValues]:
        """Measure the weights at the beginning of a step; return what watches the calls in it."""
        with self._errors.guard("measuring weights"):
            for name, matrix in self._matrices.items():
                self._compute(name, features.stable_rank, matrix, 6)  # a few iterations are enough
        return self._calls

    def add_ratios(self, step: int, values: dict[str, float]) -> None:
        """Add to the numbers of a step the parts of their norms that the updates of embeddings and routers are."""
        for name in self._tables:
            if values.get(f"{name}.param") and f"{name}.update" in values:
                values[f"{name}.update_ratio"] = values[f"{name}.update"] / values[f"{name}.param"]

    def find(self, models: Any, names: ParameterNames) -> None:
        """Find what is measured in these models; nothing in None. ``names`` are those of their parameters."""
        self._calls = []
        self._matrices = {}
        self._routers = {}
        self._tables = []
        if models is None:
            return
        with self._errors.guard("finding attention and weights"):
            for key, cell in named_cells(models, iter_cells(models)):
                self._take(key, cell, features.matrix_of(cell), names)
            listed = (*_SOFTMAX, *_FUSED, *(f"{key}." for key in self._routers))
            settings = replace(ONLY, level="mix", data_mode=_MODES, list=listed)
            self._calls = [CellValues(settings, self._errors, self)]

    def _take(self, key: str, cell: Any, matrix: Any, names: ParameterNames) -> None:
        if (
            "Embedding" in type(cell).__name__
            or hasattr(cell, "num_embeddings")
            or hasattr(cell, "vocab_start_index")
        ):
            self._tables += map(names.of, cell.get_parameters(expand=False))
        elif hasattr(matrix, "name") and min(matrix.shape) > 1:
            name = names.of(matrix)
            self._matrices[name] = matrix
            if is_router(key, matrix.shape):
                self._routers[key] = min(matrix.shape)
                self._tables.append(name)

    def inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Measure the logits of an attention; see ``Task``."""
        function = call.key.rpartition(".")[2]
        place = call.key if call.cell is None else call.cell.key
        given = {**dict(zip(_ARGUMENTS, args)), **kwargs}
        if function in _SOFTMAX and _is_attention(args, kwargs):
            self._compute(place, features.scores, args[0])
        elif function in _FUSED and {"query", "key", "head_num"} <= given.keys():
            layout = given.get("input_layout", "BSH")
            self._compute(
                place, features.attention, given["query"], given["key"], layout, given["head_num"]
            )
        return {}

    def _of_router(self, slot: Slot, tensor: Any) -> None:
        if slot.place == "output.0" and tensor.shape[-1:] == (self._routers.get(slot.cell),):
            self._compute(slot.cell, features.router, tensor)

    def _compute(
        self, name: str, function: Callable[..., features.Scalars], *arguments: Any
    ) -> None:
        found = self._numbers.computed(function, *arguments)
        self._values.put(
            {
                f"{name}.{MECHANISMS[key]}": number
                for key, number in found.items()
                if key in MECHANISMS
            }
        )


def _is_attention(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a softmax over the last dimension has the shape of an attention: [..., queries, keys]."""
    shape = tuple(getattr(args[0], "shape", ())) if args else ()
    axis = next(
        (kwargs[name] for name in ("axis", "dim") if name in kwargs),
        args[1] if len(args) > 1 else -1,
    )
    is_square = len(shape) > 2 and (len(shape) > 3 or shape[-1] == shape[-2])
    return is_square and axis in (-1, len(shape) - 1, (-1,)) and shape[-1] > 1


def is_router(key: str, shape: tuple[int, ...]) -> bool:
    """Return whether a linear Cell chooses among experts, by the key of its calls and the shape of its weight."""
    named = {"router", "gate", "gating", "wg"} & set(key.lower().split("."))
    return bool(named) and 2 <= min(shape) <= _MOST_EXPERTS and 2 * min(shape) <= max(shape)
