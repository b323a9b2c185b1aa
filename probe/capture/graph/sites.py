# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plans: the values at one place of a compiled graph, as MindSpore infers them while it compiles.

A place is the begin or the end of a Cell's call. Its plan says which tensors are reported, and builds the arguments or
results again from their arrays: the values of tensors arrive as arrays on the host.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from probe.capture.graph.templates import CAST, FLATTEN
from probe.config.settings import Settings
from probe.measure.deferred import DeferredMeasurer
from probe.measure.device import Measurers, host_measurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import ArraySink, Role, TensorRecord, tensor_record
from probe.measure.statistics import FOUR
from probe.measure.tensor_reader import Array
from probe.pytree import SlotLayout, TensorTree, as_outputs, leaves
from probe.recording.call_stacks import format_stack

Path = tuple[Any, ...]  # an index or key for each level of nesting
#: the plan as the graph has it: its number, the reported tensors with their codes, the watched ones with number, code
GraphPlan = tuple[int, tuple[tuple[Path, int], ...], tuple[tuple[Path, int, int], ...]]

SKIPPED: GraphPlan = (-1, (), ())  # the plan of a place that is not recorded
OUTPUT = 1000  # added to the number of a tensor whose gradient is an input of the backward
_BRAIN = "BFloat16"


@dataclass
class Leaf:
    """A tensor of a plan."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    #: its number among the reported tensors; -1 where it is not reported: an empty tensor, or one without a fixed shape
    position: int = -1

    def value(self, array: Array | None) -> HostValue:
        """Return its value from the array that arrived."""
        if array is None:
            return HostValue(
                np.empty(self.shape, _numpy_dtype(self.dtype)) if 0 in self.shape else None,
                *self.record,
            )
        array = np.asarray(array)
        if self.dtype == _BRAIN and array.dtype == np.float32:
            array = array.astype(ml_dtypes.bfloat16)
        return HostValue(array if self.shape else array.reshape(()), *self.record)

    def accepts(self, array: Array) -> bool:
        """Return whether an array that a graph reports can be its value, or its gradient."""
        array = np.asarray(array)
        dtype = np.dtype(np.float32) if self.dtype == _BRAIN else _numpy_dtype(self.dtype)
        return array.dtype == dtype and array.shape == (self.shape or (1,))

    @property
    def code(self) -> int:
        """The changes that it needs before it is reported."""
        return CAST * (self.dtype == _BRAIN) + FLATTEN * (not self.shape)

    @property
    def record(self) -> tuple[str, tuple[int, ...]]:
        """Its dtype and shape."""
        return self.dtype, self.shape


def _numpy_dtype(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == _BRAIN else np.dtype(name.lower())


@dataclass
class Plan:
    """The values at one place."""

    key: str  # the names of the Cell's entries without number and direction
    values: Any  # the values, with a leaf in place of each tensor
    leaves: list[Leaf] = field(
        default_factory=list
    )  # these leaves, in the order of the gradients' slots
    reported: list[Leaf] = field(default_factory=list)  # the reported leaves, in their order
    #: the places of the gradients in a backward entry
    layout: SlotLayout = field(default_factory=lambda: SlotLayout([], [], {}, True))
    differentiable: list[int] = field(
        default_factory=list
    )  # the numbers of the leaves whose gradients are watched
    stack: tuple[str, ...] = ()  # the lines of the user's code that made MindSpore compile
    names: tuple[str, ...] = ()  # the names of the parameters
    #: the plans that its outputs may have: those of all calls of this Cell
    returns: list[Plan] = field(default_factory=list)
    #: of an optimizer, the owners of each gradient: keys of Cells, and the parameter's names there
    owners: list[list[tuple[str, str]]] = field(default_factory=list)

    def is_like(self, other: Plan) -> bool:
        """Return whether gradients have the same slots, shapes and dtypes with another plan."""
        records = zip(self.leaves, other.leaves)
        return self.layout.slots == other.layout.slots and all(
            a.record == b.record for a, b in records
        )

    def fill(self, arrays: Sequence[Array | None]) -> Any:
        """Return the values with the arrays that arrived; None stands for one that did not."""
        return _fill(self.values, arrays)


def _fill(value: Any, arrays: Sequence[Array | None]) -> Any:
    if isinstance(value, Leaf):
        return value.value(arrays[value.position] if value.position >= 0 else None)
    if isinstance(value, dict):
        return {key: _fill(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_fill(item, arrays) for item in value])
    return value


def structure(inferred: Mapping[str, Any], path: Path = ()) -> Any:
    """Return inferred values with a leaf in place of each tensor. A size that is not fixed is negative."""
    shape = inferred["shape"]
    dtype = inferred["dtype"]
    value = inferred["value"]
    if isinstance(dtype, (tuple, list)):
        return _container(shape, dtype, value, path)
    element = getattr(dtype, "element_type", None)
    if element is None or not str(dtype).startswith(("Tensor[", "Ref[Tensor[")):
        return value
    return Leaf(path, str(element()), (-2,) if shape is None else tuple(shape))


def _container(shape: Any, dtype: Any, value: Any, path: Path) -> Any:
    shapes = (
        shape
        if isinstance(shape, (tuple, list)) and len(shape) == len(dtype)
        else [None] * len(dtype)
    )
    keys: Sequence[Any] = list(value) if isinstance(value, dict) else range(len(dtype))
    values = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(values, (tuple, list)) or len(values) != len(dtype):
        values = [None] * len(dtype)
    rows = zip(keys, shapes, dtype, values)
    items = [structure({"shape": s, "dtype": d, "value": v}, (*path, key)) for key, s, d, v in rows]
    if isinstance(value, dict):
        return dict(zip(keys, items))
    return items if isinstance(dtype, list) else tuple(items)


class Plans:
    """All plans of the compiled graphs, by number."""

    def __init__(self, reported: int, watched: int) -> None:
        self._most_reported = reported  # by one operator
        self._most_watched = watched  # tensors of a call whose gradients are watched
        self._plans: list[Plan] = []
        self._returns: defaultdict[str, list[Plan]] = defaultdict(list)

    def __getitem__(self, number: int) -> Plan:
        return self._plans[number]

    def inputs(self, key: str, args: Mapping[str, Any], kwargs: Mapping[str, Any]) -> GraphPlan:
        """Make the plan of a call's inputs."""
        values = structure(args, (0,)), structure(kwargs, (1,))
        plan = Plan(key, values, stack=format_stack(sys._getframe()), returns=self._returns[key])
        tree = TensorTree(Leaf, values[0], is_input=False, keywords=values[1] or None)
        return self._add(plan, tree, lambda path: path[1:] if path[0] == 0 else None)

    def outputs(
        self,
        key: str,
        names: tuple[str, ...],
        output: Mapping[str, Any],
        parameters: Mapping[str, Any],
    ) -> GraphPlan:
        """Make the plan of a call's outputs and of its Cell's parameters."""
        plan = Plan(key, (structure(output, (0,)), structure(parameters, (1,))), names=names)
        self._returns[key].append(plan)
        tree = TensorTree(Leaf, as_outputs(plan.values[0]), is_input=True)
        return self._add(plan, tree, lambda path: path[1:])

    def gradients(
        self,
        args: Mapping[str, Any],
        kwargs: Mapping[str, Any],
        owners: list[list[tuple[str, str]]],
    ) -> GraphPlan:
        """Make the plan of the gradients that enter an optimizer."""
        plan = Plan("", (structure(args, (0,)), structure(kwargs, (1,))), owners=owners)
        return self._add(plan, TensorTree(Leaf, (), is_input=False), lambda path: None)

    def _add(self, plan: Plan, tree: TensorTree, place: Callable[[Path], Path | None]) -> GraphPlan:
        """Number a plan and return it as the graph has it; ``place`` returns None where a tensor cannot be watched."""
        plan.leaves = tree.tensors
        plan.layout = tree.slot_layout
        for leaf in (leaf for leaf in leaves(plan.values) if isinstance(leaf, Leaf)):
            if all(size > 0 for size in leaf.shape) and (
                not plan.key or len(plan.reported) < self._most_reported
            ):
                leaf.position = len(plan.reported)
                plan.reported.append(leaf)
        watched = []
        for number, leaf in enumerate(plan.leaves[: self._most_watched]):
            path = place(leaf.path)
            if path is not None and leaf.position >= 0 and "loat" in leaf.dtype and len(path) <= 2:
                watched.append((path, number, leaf.code))
                plan.differentiable.append(number)
        self._plans.append(plan)
        return (
            len(self._plans) - 1,
            tuple((leaf.path, leaf.code) for leaf in plan.reported),
            tuple(watched),
        )


class HostValue:
    """The values of one tensor, and the dtype that it has in the graph: "Float32". A measurer takes it for a tensor."""

    __slots__ = ("array", "dtype", "shape")
    is_tensor_value = True

    def __init__(self, array: Array | None, dtype: str, shape: tuple[int, ...]) -> None:
        self.array = array  # read at once and never kept
        self.dtype = dtype  # None where unknown
        self.shape = shape  # None where unknown


class HostValueMeasurer(HostMeasurer):
    """Measures values that are arrays already, and tensors."""

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> TensorRecord:
        """Return the record of one value; an unknown one has null for its numbers."""
        if not isinstance(tensor, HostValue):
            return super().tensor(tensor, name, sink, role)
        if tensor.array is None:
            return tensor_record(tensor.dtype, tensor.shape, dict.fromkeys(FOUR))
        return self.array(tensor.array, tensor.dtype, name, sink)


def select_measurers(settings: Settings) -> Measurers:
    """Return the measurers for values that arrive as arrays on the host."""
    host = host_measurer(settings, HostValueMeasurer)
    return Measurers(host, DeferredMeasurer(host))
