# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Operations in float64 of numpy: golden outputs that no kernel of MindSpore made. A script holds a copy.

A function takes the arguments of the operation under MindSpore's names, with arrays for tensors. It raises TypeError or
ValueError for arguments that it does not know. Then another golden output is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from probe.replaying.described import CallDescription
from probe.replaying.exact_gradients import (
    Gradients,
    gradients_of_elements,
    gradients_of_matrices,
    gradients_of_moves,
)
from probe.replaying.judging import Array

_MOST_EACH = 2**20  # elements of which each one is computed by Python
#: constants of selu, and of gelu by tanh
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
_GELU = (math.sqrt(2 / math.pi), 0.044715)
#: Primitives without attributes, or whose attributes are read here -> the function of the same meaning
_OF_PRIMITIVES = {
    "Abs": "abs", "Neg": "neg", "Sign": "sign", "Add": "add", "Sub": "sub", "Mul": "mul", "RealDiv": "div",
    "Square": "square", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Exp": "exp", "Log": "log", "Log1p": "log1p", "Sin": "sin",
    "Cos": "cos", "Tanh": "tanh", "Erf": "erf", "Sigmoid": "sigmoid", "ReLU": "relu", "ReLU6": "relu6",
    "SiLU": "silu", "Floor": "floor", "Ceil": "ceil", "Reciprocal": "reciprocal", "Maximum": "maximum",
    "Minimum": "minimum", "Pow": "pow", "Select": "where", "MaskedFill": "masked_fill", "Reshape": "reshape",
    "Transpose": "transpose", "ExpandDims": "expand_dims", "Tile": "tile", "BroadcastTo": "broadcast_to",
    "BiasAdd": "bias_add",
}  # fmt: skip
#: methods between two underlines on each side -> the operation
_OPERATORS = {
    "add": "add", "radd": "add", "sub": "sub", "mul": "mul", "rmul": "mul", "truediv": "div", "pow": "pow",
    "matmul": "matmul", "neg": "neg", "abs": "abs", "getitem": "__getitem__",
}  # fmt: skip


def exact_of(call: CallDescription) -> Callable[..., Any] | None:
    """Return the function in numpy of a described call, or None."""
    if call.key.startswith("Numpy."):  # whose arguments are others
        return None
    if call.key in _OF_KEYS:
        return _OF_KEYS[call.key]
    name = call.key.rpartition(".")[2]
    if not call.key.startswith("Primitive."):
        return _OF_NAMES.get(name) or _OF_NAMES.get(_plain(name))
    attributes = call.attributes
    if name == "Softmax":
        axis = attributes.get("axis", -1)
        axis = tuple(axis) if isinstance(axis, list) else axis
        return lambda x, *rest: _softmax(x, axis)
    if name in ("MatMul", "BatchMatMul"):
        swaps = [bool(attributes.get(key)) for key in ("transpose_a", "transpose_b")]
        return lambda a, b, *rest: np.matmul(_swapped(a, swaps[0]), _swapped(b, swaps[1]))
    known = _OF_PRIMITIVES.get(name)
    return _OF_NAMES[known] if known and not set(attributes) - {"data_format"} else None


def gradients_of(call: CallDescription) -> Gradients | None:
    """Return what gives the gradients of the function in numpy of a call, or None."""
    if exact_of(call) is None:
        return None
    word = call.key.rpartition(".")[2]
    is_primitive = call.key.startswith("Primitive.")
    name = _OF_PRIMITIVES.get(word, "") if is_primitive else word
    for functions, gradients in (
        (_ELEMENTS, gradients_of_elements),
        (_MOVING, gradients_of_moves),
        (_MATRICES, gradients_of_matrices),
    ):
        if name in functions or _plain(name) in functions:
            return gradients
    return None


def _plain(name: str) -> str:
    """Return the name of the operation behind a method: "add" for "__iadd__" and "add_"."""
    if not name.startswith("__"):
        return name.rstrip("_")
    word = name.strip("_")
    found = _OPERATORS.get(word) or _OPERATORS.get(word[1:] if word[:1] == "i" else "")
    return found or name


def _swapped(x: Array, is_swapped: bool) -> Array:
    return np.swapaxes(x, -1, -2) if is_swapped else x


def _numbers(*values: Any) -> None:
    """Raise ValueError for booleans and complex numbers: MindSpore computes with them in its own way."""
    kinds = [value.dtype.kind for value in values if hasattr(value, "dtype")]
    if set(kinds) - set("fiu") or any(type(value) is bool for value in values):
        raise ValueError("these dtypes have no reference")


def _floats(*values: Any) -> None:
    """Raise ValueError unless a tensor has fractions: MindSpore has other dtypes for whole numbers."""
    _numbers(*values)
    if not any(hasattr(value, "dtype") and value.dtype.kind == "f" for value in values):
        raise ValueError("whole numbers have no reference")


def _whole(*values: Any) -> list[int]:
    """Return whole numbers that were given one by one, or in one list."""
    items = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    if len(values) == 1 and hasattr(values[0], "dtype"):
        items = values[0].tolist()
    if not all(type(item) is int for item in items):
        raise TypeError("no whole numbers")
    return list(items)


def _axis(axis: Any, dim: Any = None) -> Any:
    axis = axis if dim is None else dim
    if isinstance(axis, (list, tuple)):
        return tuple(_whole(axis)) or None
    if axis is not None and type(axis) is not int:
        raise TypeError("no axis")
    return axis


# -- element by element ---------------------------------------------------------------------------------------------


def _unary(function: Callable[[Array], Any]) -> Callable[..., Any]:
    def made(input: Array) -> Any:
        _floats(input)
        return function(input)

    return made


def _any_unary(function: Callable[[Array], Any]) -> Callable[..., Any]:
    def made(input: Array) -> Any:
        _numbers(input)
        return function(input)

    return made


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def made(input: Any, other: Any) -> Any:
        _floats(input, other)
        return function(input, other)

    return made


def _add(sign: int) -> Callable[..., Any]:
    def made(input: Any, other: Any, *, alpha: Any = 1) -> Any:
        _numbers(input, other, alpha)
        return input + sign * alpha * other

    return made


def _multiply(input: Any, other: Any) -> Any:
    _numbers(input, other)
    return input * other


def _divide(input: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    _floats(input, other)
    if rounding_mode is not None:
        raise ValueError("this division has no reference")
    return np.divide(input, other)


def _extreme(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def made(input: Any, other: Any) -> Any:
        _numbers(input, other)
        return function(input, other)

    return made


def _clamp(input: Array, min: Any = None, max: Any = None) -> Any:
    _numbers(input, min, max)
    found = input if min is None else np.maximum(input, min)
    return found if max is None else np.minimum(found, max)


def _own_where(input: Array, condition: Any, other: Any) -> Any:
    return _where(condition, input, other)


def _select(input: Array, axis: Any, index: Any) -> Any:
    """Return one part of an axis; with a condition, the elements of two tensors."""
    if getattr(axis, "dtype", None) == np.bool_:
        return _own_where(input, axis, index)
    if type(axis) is not int:
        return _where(input, axis, index)
    return np.take(input, index, axis)


def _addcmul(input: Array, tensor1: Array, tensor2: Array, value: Any = 1) -> Any:
    _floats(input, tensor1, tensor2)
    return input + value * tensor1 * tensor2


def _addcdiv(input: Array, tensor1: Array, tensor2: Array, value: Any = 1) -> Any:
    _floats(input, tensor1, tensor2)
    return input + value * tensor1 / tensor2


def _threshold(input: Array, thr: float, value: float) -> Any:
    _numbers(input)
    return np.where(input > thr, input, value)


def _where(condition: Any, input: Any, other: Any) -> Any:
    if getattr(condition, "dtype", None) != np.bool_:
        raise ValueError("no condition")
    return np.where(condition, input, other)


def _masked_fill(input: Array, mask: Array, value: Any) -> Any:
    if mask.dtype != np.bool_:
        raise ValueError("no mask")
    return np.where(mask, value, input)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    found: Array = np.where(x >= 0, 1 / (1 + small), small / (1 + small))
    return found


def _softplus(x: Array) -> Array:
    found: Array = np.logaddexp(x, 0.0)
    return found


def _gelu(input: Array, approximate: Any = "none") -> Any:
    _floats(input)
    if approximate not in ("none", "tanh"):
        raise ValueError("this gelu has no reference")
    if approximate == "none":
        return 0.5 * input * _erfc(-input * math.sqrt(0.5))
    inner = _GELU[0] * (input + _GELU[1] * input**3)
    return 0.5 * input * (1 + np.tanh(inner))


def _erf(x: Array) -> Array:
    return _each(math.erf, x)


def _erfc(x: Array) -> Array:
    return _each(math.erfc, x)


def _each(function: Callable[[float], float], x: Array) -> Array:
    """Return the values of a function of Python; raise ValueError where this takes long."""
    if x.size > _MOST_EACH:
        raise ValueError("too many elements")
    return np.array([function(item) for item in x.ravel().tolist()], np.float64).reshape(x.shape)


def _leaky_relu(input: Array, alpha: float) -> Any:
    _floats(input)
    return np.where(input > 0, input, input * alpha)


def _elu(input_x: Array, alpha: float = 1.0) -> Any:
    _floats(input_x)
    return np.where(input_x > 0, input_x, alpha * np.expm1(np.minimum(input_x, 0)))


def _selu(x: Array) -> Any:
    lower = _SELU_ALPHA * np.expm1(np.minimum(x, 0))
    return _SELU_SCALE * np.where(x > 0, x, lower)


def _lerp(input: Array, end: Array, weight: Any) -> Any:
    _floats(input, end)
    return input + weight * (end - input)


def _cast(input: Array, dtype: Any) -> Any:
    """Return values in another dtype; one with fractions is float64."""
    kind = str(dtype)
    _numbers(input)
    if kind.startswith(("Float", "BFloat")):
        return input.astype(np.float64)
    limits = {"Int32": np.int32, "Int64": np.int64}.get(kind)
    if limits is None or not np.all(np.abs(input) < np.iinfo(np.int32).max):
        raise ValueError("this cast has no reference")
    return input.astype(limits)


def _to_float(input: Array) -> Any:
    _numbers(input)
    return input.astype(np.float64)


def _type_as(input: Array, other: Array) -> Any:
    if other.dtype.kind != "f":
        raise ValueError("this cast has no reference")
    return _to_float(input)


# -- values that move -----------------------------------------------------------------------------------------------


def _reshape(input: Array, *shape: Any) -> Any:
    return input.reshape(_whole(*shape))


def _transpose(input: Array, *axes: Any) -> Any:
    if not axes:
        return input.T
    found = _whole(*axes)
    if len(found) != input.ndim:
        raise ValueError("no permutation")
    return input.transpose(found)


def _swap(input: Array, first: int, second: int) -> Any:
    return np.swapaxes(input, first, second)


def _mint_transpose(input: Array, *axes: Any, dim0: Any = None, dim1: Any = None) -> Any:
    if len(axes) == 2 and all(type(axis) is int for axis in axes):
        if input.ndim == 2 and axes == (0, 1):
            raise ValueError("a permutation, or axes that are exchanged")
        return np.swapaxes(input, axes[0], axes[1])
    if dim0 is not None:
        return np.swapaxes(input, dim0, dim1)
    return _transpose(input, *axes)


def _squeeze(input: Array, axis: Any = None, *, dim: Any = None) -> Any:
    return np.squeeze(input, _axis(axis, dim))


def _unsqueeze(input: Array, axis: Any = None, *, dim: Any = None) -> Any:
    axis = _axis(axis, dim)
    if axis is None:
        raise ValueError("no axis")
    return np.expand_dims(input, axis)


def _expand(input: Array, *shape: Any) -> Any:
    wanted = _whole(*shape)
    own = [1] * (len(wanted) - input.ndim) + list(input.shape)
    return np.broadcast_to(input, [b if a == -1 else a for a, b in zip(wanted, own)])


def _flatten(input: Array, start_dim: Any = None, end_dim: int = -1) -> Any:
    """Return fewer axes; without a first one MindSpore's functions differ, unless there is one axis."""
    if start_dim is None and input.ndim > 1:
        raise ValueError("this flatten has no reference")
    first = (start_dim or 0) % max(input.ndim, 1)
    last = end_dim % max(input.ndim, 1)
    return input.reshape((*input.shape[:first], -1, *input.shape[last + 1 :]))


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    def made(tensors: Any, axis: Any = 0, *, dim: Any = None) -> Any:
        return function(list(tensors), axis=_axis(axis, dim))

    return made


def _unbind(input: Array, axis: Any = 0, *, dim: Any = None) -> Any:
    axis = _axis(axis, dim)
    return [np.take(input, at, axis) for at in range(input.shape[axis])]


def _split(input: Array, sizes: Any, axis: Any = 0, *, dim: Any = None) -> Any:
    axis = _axis(axis, dim)
    length = input.shape[axis]
    if type(sizes) is int:
        ends = list(range(sizes, length, sizes))
    else:
        ends = list(np.cumsum(_whole(sizes))[:-1])
    return np.split(input, ends, axis)


def _chunk(input: Array, chunks: int, axis: Any = 0, *, dim: Any = None) -> Any:
    return _split(input, -(-input.shape[_axis(axis, dim)] // chunks), _axis(axis, dim))


def _narrow(input: Array, axis: int, start: int, length: int) -> Any:
    if start < 0:
        start += input.shape[axis]
    return np.take(input, range(start, start + length), axis)


def _flip(input: Array, *dims: Any) -> Any:
    return np.flip(input, _whole(*dims))


def _roll(input: Array, shifts: Any, dims: Any = None) -> Any:
    return np.roll(input, shifts, dims)


def _tile(input: Array, *dims: Any) -> Any:
    return np.tile(input, _whole(*dims))


def _gather(input: Array, first: Any, second: Any) -> Any:
    if hasattr(first, "dtype") and type(second) is int:
        return np.take(input, _within(first, input.shape[second]), second)
    if type(first) is int and hasattr(second, "dtype"):
        shape = [
            second.shape[at] if at != first % input.ndim else n for at, n in enumerate(input.shape)
        ]
        if list(input.shape) != shape:
            raise ValueError("this gather has no reference")
        return np.take_along_axis(input, _within(second, input.shape[first]), first)
    raise TypeError("no indices")


def _within(indices: Array, length: int) -> Array:
    """Return indices, all of them within the axis."""
    if indices.dtype.kind not in "iu" or np.any((indices < 0) | (indices >= length)):
        raise ValueError("no indices")
    return indices


def _index_select(input: Array, axis: int, index: Array) -> Any:
    return np.take(input, _within(index, input.shape[axis]), axis)


def _masked_select(input: Array, mask: Array) -> Any:
    if mask.dtype != np.bool_:
        raise ValueError("no mask")
    return np.broadcast_to(input, np.broadcast_shapes(input.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(input.shape, mask.shape))
    ]


def _getitem(input: Array, index: Any) -> Any:
    """Return a part that numbers and slices choose; a list of numbers chooses rows in another way than a tuple."""
    items = index if isinstance(index, tuple) else (index,)
    plain = all(item is ... or type(item) in (int, slice) for item in items)
    if not plain:
        raise TypeError("this index has no reference")
    return input[index]


def _kept(input: Array) -> Any:
    return input


def _move(input: Array, source: Any, destination: Any) -> Any:
    return np.moveaxis(input, source, destination)


# -- sums and the like ----------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def made(
        input: Array,
        axis: Any = None,
        keepdims: Any = False,
        *,
        dim: Any = None,
        keepdim: Any = False,
        keep_dims: Any = False,
    ) -> Any:
        _floats(input)
        kept = any(item is True for item in (keepdims, keepdim, keep_dims))
        return function(input, axis=_axis(axis, dim), keepdims=kept)

    return made


def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    found = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return found if keepdims else np.squeeze(found, axis)


def _softmax(input: Array, axis: Any = -1, *, dim: Any = None, dtype: Any = None) -> Any:
    _floats(input)
    axis = _axis(axis, dim)
    if axis is None:  # MindSpore chooses one by the shape
        raise ValueError("no axis")
    parts = np.exp(input - np.max(input, axis, keepdims=True))
    return parts / np.sum(parts, axis, keepdims=True)


def _log_softmax(input: Array, axis: Any = -1, *, dim: Any = None, dtype: Any = None) -> Any:
    _floats(input)
    axis = _axis(axis, dim)
    if axis is None:  # MindSpore chooses one by the shape
        raise ValueError("no axis")
    away = input - np.max(input, axis, keepdims=True)
    return away - np.log(np.sum(np.exp(away), axis, keepdims=True))


def _cross_entropy(
    input: Array,
    target: Array,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return the cross entropy of classes in the second axis, of a vector in the only one."""
    axis = 0 if input.ndim == 1 else 1
    logs = _log_softmax(input, axis)
    if label_smoothing:
        raise ValueError("this cross entropy has no reference")
    each = np.ones(input.shape[axis]) if weight is None else weight
    shape = [1] * input.ndim
    shape[axis] = -1
    if target.dtype.kind == "f":
        losses = -np.sum(logs * target * each.reshape(shape), axis)
        kept = np.ones(losses.shape) * (input.size // input.shape[axis] / max(losses.size, 1))
    else:
        is_kept = target != ignore_index
        chosen = _within(np.where(is_kept, target, 0), input.shape[axis])
        kept = np.where(is_kept, each[chosen], 0.0)
        picked = np.take_along_axis(logs, np.expand_dims(chosen, axis), axis).squeeze(axis)
        losses = -np.where(is_kept, picked, 0.0) * kept
    if reduction == "none":
        return losses
    total = np.sum(losses)
    return total if reduction == "sum" else total / np.sum(kept)


def _cumsum(input: Array, axis: Any = None, *, dim: Any = None) -> Any:
    _floats(input)
    return np.cumsum(input, _axis(axis, dim))


def _matmul(input: Array, other: Array) -> Any:
    _floats(input, other)
    return np.matmul(input, other)


def _dense(input: Array, weight: Array, bias: Any = None) -> Any:
    product = np.matmul(input, np.swapaxes(weight, -1, -2))
    return product if bias is None else product + bias


def _addmm(input: Array, a: Array, b: Array, *, beta: float = 1, alpha: float = 1) -> Any:
    return beta * input + alpha * np.matmul(a, b)


def _bias_add(x: Array, bias: Array) -> Any:
    return x + bias.reshape((1, -1) + (1,) * (x.ndim - 2))


def _layer_norm(
    input: Array,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    count = 1 if type(normalized_shape) is int else len(normalized_shape)
    axes = tuple(range(-count, 0))
    away = input - np.mean(input, axes, keepdims=True)
    found = away / np.sqrt(np.mean(away * away, axes, keepdims=True) + eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


# -- indices --------------------------------------------------------------------------------------------------------


def _chosen(function: Callable[..., Any]) -> Callable[..., Any]:
    def made(input: Array, axis: Any = None, keepdims: Any = False, *, dim: Any = None) -> Any:
        _ordered(input)
        axis = _axis(axis, dim)
        if isinstance(axis, tuple) or type(keepdims) is not bool:
            raise TypeError("no axis")
        if axis is None:
            return function(input)
        found = function(input, axis)
        return np.expand_dims(found, axis) if keepdims else found

    return made


def _extreme_value(function: Callable[..., Any]) -> Callable[..., Any]:
    def made(input: Array) -> Any:
        _ordered(input)
        return function(input)

    return made


def _any_extreme(function: Callable[..., Any], places: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of mint: along an axis it gives places too, without one the value alone."""
    along = _with_places(function, places)

    def made(input: Array, axis: Any = None, keepdims: Any = False, *, dim: Any = None) -> Any:
        _ordered(input)
        axis = _axis(axis, dim)
        return function(input) if axis is None else along(input, axis, keepdims)

    return made


def _with_places(function: Callable[..., Any], places: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the extreme value, along an axis with its places."""

    def made(input: Array, axis: Any = None, keepdims: Any = False) -> Any:
        _ordered(input)
        if axis is None and not keepdims:
            return function(input), 0  # functions give a place too
        if type(axis) is not int or type(keepdims) is not bool:
            raise TypeError("no axis")
        found = np.expand_dims(places(input, axis), axis)
        values = np.take_along_axis(input, found, axis)
        return (values, found) if keepdims else (values.squeeze(axis), found.squeeze(axis))

    return made


def _aminmax(input: Array, *, axis: Any = 0, keepdims: bool = False) -> Any:
    _ordered(input)
    axis = _axis(axis)
    return np.min(input, axis, keepdims=keepdims), np.max(input, axis, keepdims=keepdims)


def _median(input: Array, axis: int = -1, keepdims: Any = False) -> Any:
    """Return the middle elements along an axis, of two the lower one, and their places."""
    _ordered(input)
    if type(axis) is not int or type(keepdims) is not bool:
        raise TypeError("no axis")
    middle = (input.shape[axis] - 1) // 2
    place = np.take(np.argsort(input, axis, kind="stable"), [middle], axis)
    value = np.take_along_axis(input, place, axis)
    return (value, place) if keepdims else (value.squeeze(axis), place.squeeze(axis))


def _cumulative(function: Any, is_better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def made(input: Array, axis: int) -> Any:
        _ordered(input)
        values = function.accumulate(input, axis)
        before = np.concatenate(
            [np.take(values, [0], axis), np.take(values, range(input.shape[axis] - 1), axis)], axis
        )
        shape = [1] * input.ndim
        shape[axis] = -1
        numbers = np.arange(input.shape[axis]).reshape(shape)
        places = np.where(is_better(input, before), numbers, 0)  # of equal elements the last one
        return values, np.maximum.accumulate(places, axis)

    return made


def _sort(input: Array, axis: Any = -1, descending: Any = False) -> Any:
    order = _argsort(input, axis, descending)
    return np.take_along_axis(input, order, axis), order


def _argsort(input: Array, axis: Any = -1, descending: Any = False) -> Any:
    _ordered(input)
    if type(axis) is not int or type(descending) is not bool:
        raise TypeError("no axis")
    return np.argsort(-input if descending else input, axis, kind="stable")


def _is_usual(value: Any, count: int) -> bool:
    """Return whether an argument of topk is the last axis, or asks for the largest elements in order."""
    return value in (-1, count - 1) if type(value) is int else value is True or value is None


def _ordered(input: Array) -> None:
    """Raise ValueError for NaN, whose place among others is not fixed, and for other dtypes than numbers."""
    _numbers(input)
    if np.isnan(input).any():
        raise ValueError("NaN has no order")


def _topk(input: Array, k: int, *rest: Any) -> Any:
    _ordered(input)
    if any(not _is_usual(item, input.ndim) for item in rest):
        raise ValueError("this topk has no reference")
    order = np.argsort(-input, -1, kind="stable")[..., :k]
    return np.take_along_axis(input, order, -1), order


#: keys whose arguments are others than those of the name
_OF_KEYS: dict[str, Callable[..., Any]] = {
    "Functional.max": _with_places(np.max, np.argmax),
    "Functional.min": _with_places(np.min, np.argmin),
    "Mint.max": _any_extreme(np.max, np.argmax),
    "Mint.min": _any_extreme(np.min, np.argmin),
    "Tensor.where": _own_where,
    "Functional.leaky_relu": lambda input, alpha=0.2: _leaky_relu(input, alpha),
    "Mint.flatten": lambda input, start_dim=0, end_dim=-1: _flatten(input, start_dim, end_dim),
    "MintFunctional.flatten": lambda input, start_dim=0, end_dim=-1: _flatten(
        input, start_dim, end_dim
    ),
    "Functional.flatten": lambda input, order="C", *, start_dim=1, end_dim=-1: _flatten(
        input, start_dim, end_dim
    ),
}
#: names of operations of one kind -> their functions; the gradients of the first three follow from the kind
_ELEMENTS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("abs", "absolute"), _any_unary(np.abs)),
    **dict.fromkeys(("neg", "negative"), _any_unary(np.negative)),
    "sign": _any_unary(np.sign),
    "square": _any_unary(np.square),
    "sqrt": _unary(np.sqrt),
    "rsqrt": _unary(lambda x: 1 / np.sqrt(x)),
    "reciprocal": _unary(lambda x: 1 / x),
    **{
        name: _unary(getattr(np, name))
        for name in "exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh floor ceil trunc round".split()
    },
    **{
        name: _unary(getattr(np, f"arc{name[1:]}"))
        for name in "asin acos atan asinh acosh atanh".split()
    },
    "erf": _unary(_erf),
    "erfc": _unary(_erfc),
    "sigmoid": _unary(_sigmoid),
    "logsigmoid": _unary(lambda x: -_softplus(-x)),
    "relu": _any_unary(lambda x: np.maximum(x, 0)),
    "relu6": _any_unary(lambda x: np.clip(x, 0, 6)),
    **dict.fromkeys(("silu", "swish"), _unary(lambda x: x * _sigmoid(x))),
    "gelu": _gelu,
    "fast_gelu": _unary(lambda x: x * _sigmoid(1.702 * x)),
    "mish": _unary(lambda x: x * np.tanh(_softplus(x))),
    "softsign": _unary(lambda x: x / (1 + np.abs(x))),
    "softplus": _unary(_softplus),
    "hardswish": _unary(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "hardsigmoid": _unary(lambda x: np.clip(x + 3, 0, 6) / 6),
    "hardtanh": _unary(lambda x: np.clip(x, -1, 1)),
    "selu": _unary(_selu),
    "elu": _elu,
    "celu": _unary(lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "leaky_relu": _leaky_relu,
    "add": _add(1),
    **dict.fromkeys(("sub", "subtract"), _add(-1)),
    **dict.fromkeys(("mul", "multiply"), _multiply),
    **dict.fromkeys(("div", "divide", "true_divide"), _divide),
    "pow": _binary(np.power),
    "maximum": _extreme(np.maximum),
    "minimum": _extreme(np.minimum),
    "atan2": _binary(np.arctan2),
    "hypot": _binary(np.hypot),
    "fmod": _binary(np.fmod),
    "logaddexp": _binary(np.logaddexp),
    "xlogy": _binary(lambda x, y: np.where(x == 0, 0.0, x * np.log(y))),
    "lerp": _lerp,
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "where": _where,
    "select": _select,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "threshold": _threshold,
    "masked_fill": _masked_fill,
    **dict.fromkeys(("cast", "to", "astype"), _cast),
    **dict.fromkeys(("float", "half", "bfloat16"), _to_float),
    "type_as": _type_as,
}
_MOVING: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("reshape", "view"), _reshape),
    **dict.fromkeys(("transpose", "permute"), _mint_transpose),
    **dict.fromkeys(("swapaxes", "swapdims"), _swap),
    **dict.fromkeys(("t", "T"), _transpose),
    "squeeze": _squeeze,
    **dict.fromkeys(("unsqueeze", "expand_dims"), _unsqueeze),
    **dict.fromkeys(("expand", "broadcast_to"), _expand),
    "expand_as": lambda input, other: np.broadcast_to(input, other.shape),
    "flatten": _flatten,
    "ravel": lambda input: input.reshape(-1),
    **dict.fromkeys(("concat", "cat"), _joined(np.concatenate)),
    "stack": _joined(np.stack),
    **dict.fromkeys(("unbind", "unstack"), _unbind),
    "split": _split,
    "chunk": _chunk,
    "narrow": _narrow,
    "flip": _flip,
    "roll": _roll,
    "tile": _tile,
    **dict.fromkeys(("contiguous", "clone", "copy", "identity", "deepcopy"), _kept),
    "__getitem__": _getitem,
    "gather": _gather,
    "index_select": _index_select,
    "masked_select": _masked_select,
    **dict.fromkeys(("movedim", "moveaxis"), _move),
    "hstack": lambda tensors: np.hstack(list(tensors)),
    "vstack": lambda tensors: np.vstack(list(tensors)),
}
_MATRICES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "__matmul__"), _matmul),
}
_FURTHER: dict[str, Callable[..., Any]] = {
    "sum": _reduction(np.sum),
    "mean": _reduction(np.mean),
    "prod": _reduction(np.prod),
    "amax": _reduction(np.max),
    "amin": _reduction(np.min),
    "logsumexp": _reduction(_logsumexp),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "cumsum": _cumsum,
    **dict.fromkeys(("dense", "linear"), _dense),
    "addmm": _addmm,
    "bias_add": _bias_add,
    "layer_norm": _layer_norm,
    "argmax": _chosen(np.argmax),
    "argmin": _chosen(np.argmin),
    "argsort": _argsort,
    "sort": _sort,
    "topk": _topk,
    "max": _extreme_value(np.max),
    "min": _extreme_value(np.min),
    "aminmax": _aminmax,
    "median": _median,
    "cummax": _cumulative(np.maximum, np.greater_equal),
    "cummin": _cumulative(np.minimum, np.less_equal),
    "cross_entropy": _cross_entropy,
}
_OF_NAMES = {**_ELEMENTS, **_MOVING, **_MATRICES, **_FURTHER}
