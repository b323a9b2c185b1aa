# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes one call again: in float64, and in the recorded dtype. It needs MindSpore and numpy: a script holds a copy."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops

from probe.measure.dtype_name import dtype_name
from probe.replaying.described import PLAIN_DTYPES, CallDescription, CannotReplayError
from probe.replaying.judging import Array

DOUBLE = {
    "Float16": "Float64",
    "BFloat16": "Float64",
    "Float32": "Float64",
    "Complex64": "Complex128",
}
HALF = ("Float16", "BFloat16")
FLOATS = (*HALF, "Float32", "Float64")
#: numbers of numpy that an argument may be
_NUMBERS = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"

_IN_PLACE = re.compile(r"[^_]_$|\.__i(add|sub|mul|truediv|floordiv|mod|pow)__$")


def dtypes() -> dict[str, Any]:
    """Return name -> dtype of MindSpore: "Float32"."""
    names = f"{_NUMBERS} bfloat16 complex64 complex128".split()
    return {str(getattr(ms, name)): getattr(ms, name) for name in names}


def tensors_in(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the tensors of a described value, in order."""
    if isinstance(tree, list):
        for item in tree:
            yield from tensors_in(item)
    elif isinstance(tree, dict):
        if "array" in tree:
            yield tree
        else:
            yield from tensors_in(list(tree.get("items", {}).values()))


def tensors_of(call: CallDescription) -> list[dict[str, Any]]:
    """Return the tensors of a described call, positional ones first."""
    return [*tensors_in(call.args), *tensors_in(list(call.kwargs.values()))]


def fill(tree: Any, tensors: Iterator[Any], cast: Callable[[str], str], as_list: bool) -> Any:
    """Return a described value as Python has it, with the tensors in it, which come in order.

    ``cast`` returns the dtype that stands for a recorded one. ``as_list``: lists are lists; the record does not tell
    them from tuples.
    """
    if isinstance(tree, list):
        made = [fill(item, tensors, cast, as_list) for item in tree]
        return made if as_list else tuple(made)
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        return next(tensors)
    if "items" in tree:
        return {key: fill(item, tensors, cast, as_list) for key, item in tree["items"].items()}
    return _plain_value(tree, cast)


def _plain_value(tree: dict[str, Any], cast: Callable[[str], str]) -> Any:
    if "slice" in tree:
        return slice(*tree["slice"])
    if "ellipsis" in tree:
        return ...
    if "numpy" in tree:
        return {name: getattr(np, name) for name in _NUMBERS.split()}[tree["numpy"]](tree["value"])
    return dtypes()[cast(tree["dtype"])]


def to_tensor(array: Array, dtype: str) -> Any:
    """Return a new tensor of a dtype; bfloat16 comes from float32."""
    kinds = dtypes()
    if dtype not in kinds:
        raise CannotReplayError("replay.dtype", dtype=dtype[:200])
    if dtype == "BFloat16":
        return ms.Tensor(np.array(array, np.float32)).astype(ms.bfloat16)
    kind = {"Bool": "bool"}.get(dtype, dtype.lower())
    return ms.Tensor(np.array(array, np.dtype(kind)))


def to_array(tensor: Any) -> Array:
    """Return the values of a tensor, of bfloat16 as float32."""
    found: Array = (tensor.astype(ms.float32) if tensor.dtype == ms.bfloat16 else tensor).asnumpy()
    return np.array(found)


def outputs_of(result: Any) -> list[Any]:
    """Return the tensors and plain values that a call returned, in order."""
    if isinstance(result, dict):
        result = list(result.values())
    several = isinstance(result, (list, tuple))
    return [leaf for item in result for leaf in outputs_of(item)] if several else [result]


@dataclass
class Replayer:
    """Makes one call in one precision."""

    function: Callable[..., Any]  # the function, or a Primitive
    call: CallDescription
    arrays: Sequence[Array]  # the values of its tensors, positional ones first
    kinds: Sequence[str]  # the dtypes that the tensors get
    cast: Callable[[str], str]  # returns the dtype that stands for a recorded dtype as an argument
    as_list: bool  # see ``fill``
    leaves_input: bool = (
        False  # the call returned its result, but did not change its input as its name says
    )
    made: Sequence[str] = ()  # after ``backward`` the dtypes of the outputs that have gradients

    def forward(self) -> list[Any]:
        """Return the outputs: an (array, dtype) for a tensor or a number, None for others."""
        tensors = self._tensors()
        found = [_with_dtype(leaf) for leaf in self._run(tensors)]
        if tensors and found and found[0] and _IN_PLACE.search(self.call.key):
            self.leaves_input = not np.array_equal(to_array(tensors[0]), found[0][0])
        return found

    def backward(
        self, sens: Sequence[tuple[int, Array]], wanted: Sequence[int]
    ) -> list[tuple[Array, str]]:
        """Return the gradients of the wanted tensors; ``sens`` has numbers of output tensors, and their gradients."""
        tensors = self._tensors()
        found = _only_tensors(self._run(self._tensors()))
        chosen = [number for number, _ in sens]
        if any(found[number].shape != array.shape for number, array in sens):
            raise CannotReplayError("replay.other_shape")
        kinds = [dtype_name(found[number].dtype) for number in chosen]
        self.made = kinds
        given = [to_tensor(array, kind) for (_, array), kind in zip(sens, kinds)]

        def function(*inputs: Any) -> Any:
            current = list(tensors)
            for number, tensor in zip(wanted, inputs):
                current[number] = tensor
            leaves = _only_tensors(self._run(current))
            results = tuple(leaves[number] for number in chosen)
            return results[0] if len(results) == 1 else results

        gradient = ops.GradOperation(get_all=True, sens_param=True)(function)
        inputs = self._tensors()
        result = None
        try:
            result = gradient(
                *(inputs[number] for number in wanted),
                given[0] if len(given) == 1 else tuple(given),
            )
        finally:
            if result is None:
                _end_recording()
        items = result if isinstance(result, (list, tuple)) else [result]
        return [(to_array(item), dtype_name(item.dtype)) for item in items]

    def _tensors(self) -> list[Any]:
        return [to_tensor(array, kind) for array, kind in zip(self.arrays, self.kinds)]

    def _run(self, tensors: Sequence[Any]) -> list[Any]:
        left = iter(tensors)
        args = [fill(item, left, self.cast, self.as_list) for item in self.call.args]
        kwargs = {
            key: fill(item, left, self.cast, self.as_list) for key, item in self.call.kwargs.items()
        }
        result = self.function(*args, **kwargs)
        if self.call.key == "Tensor.__setitem__":
            result = args[0]
        return outputs_of(result)


def _end_recording() -> None:
    """End the recording of a graph, which MindSpore goes on with after an error in a gradient."""
    for home in ("mindspore.graph.api", "mindspore.common.api"):
        with contextlib.suppress(ImportError, AttributeError):
            executor = importlib.import_module(home)._pynative_executor
            executor.set_grad_flag(False)
            executor.clear_res()
            return


def _only_tensors(leaves: Sequence[Any]) -> list[Any]:
    return [leaf for leaf in leaves if isinstance(leaf, ms.Tensor)]


def _with_dtype(leaf: Any) -> tuple[Array, str] | None:
    if isinstance(leaf, ms.Tensor):
        return to_array(leaf), dtype_name(leaf.dtype)
    names = (dtype for kind, dtype in PLAIN_DTYPES.items() if isinstance(leaf, kind))
    return next(((np.array(leaf), name) for name in names), None)
