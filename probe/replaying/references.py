# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Operations without float64 kernels, made of elementary ones that have them. Their gradients follow.

A reference takes the arguments of the operation. The attributes of a Primitive are its keywords.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from mindspore import Tensor, ops

from probe.replaying.described import CallDescription


def reference_of(call: CallDescription) -> Callable[..., Any] | None:
    """Return the reference of a described call, or None."""
    key = call.key
    name = key.rpartition(".")[2]
    if key.startswith("Primitive."):
        made = _PRIMITIVES.get(name)
        return None if made is None else functools.partial(made, attributes=call.attributes)
    return _mint_conv2d if key == "MintFunctional.conv2d" else _FUNCTIONS.get(name)


# -- sums of products -----------------------------------------------------------------------------------------------


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of two matrices, vectors or batches of matrices."""
    return ops.matmul(a, b)


def dense(x: Tensor, weight: Tensor, bias: Any = None) -> Tensor:
    """Return x @ weight.T + bias."""
    rows = x.reshape(-1, x.shape[-1])
    flat = matmul(rows, weight.swapaxes(0, 1))
    product = flat.reshape((*x.shape[:-1], weight.shape[0]))
    return product if bias is None else product + bias


def addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta * bias + alpha * (a @ b)."""
    return bias * beta + matmul(a, b) * alpha


def _matmul_primitive(a: Tensor, b: Tensor, *rest: Any, attributes: dict[str, Any]) -> Tensor:
    if attributes.get("transpose_a"):
        a = a.swapaxes(-1, -2)
    if attributes.get("transpose_b"):
        b = b.swapaxes(-1, -2)
    return matmul(a, b)


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Any = None,
    stride: Any = 1,
    pad_mode: Any = "valid",
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return a convolution over two axes: for each place of the kernel a product of matrices."""
    stride = _pair(stride)
    dilation = _pair(dilation)
    size = tuple(weight.shape[2:])
    pads = _pads(x.shape[2:], size, stride, dilation, pad_mode, padding)
    if any(pads):
        top, bottom, left, right = pads
        x = ops.pad(x, (left, right, top, bottom))
    samples, channels, rows, columns = x.shape
    height = (rows - dilation[0] * (size[0] - 1) - 1) // stride[0] + 1
    width = (columns - dilation[1] * (size[1] - 1) - 1) // stride[1] + 1
    inside = channels // groups
    outside = weight.shape[0] // groups
    of_groups = []
    for group in range(groups):
        part = x[:, group * inside : (group + 1) * inside]
        kernel = weight[group * outside : (group + 1) * outside].reshape(outside, -1)
        places = _places(part, size, stride, dilation, (height, width))
        patches = ops.stack(places, 2).reshape(samples, -1, height * width)
        of_groups.append(matmul(kernel, patches))
    whole = ops.concat(of_groups, 1) if groups > 1 else of_groups[0]
    result = whole.reshape(samples, weight.shape[0], height, width)
    return result if bias is None else result + bias.reshape(1, -1, 1, 1)


def _mint_conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    if isinstance(padding, str):
        return conv2d(input, weight, bias, stride, padding, 0, dilation, groups)
    return conv2d(input, weight, bias, stride, "pad", padding, dilation, groups)


def _conv2d_primitive(x: Tensor, weight: Tensor, *rest: Any, attributes: dict[str, Any]) -> Tensor:
    given = {}
    for name in ("stride", "pad_mode", "dilation"):
        if name in attributes:
            value = attributes[name]
            given[name] = value[-2:] if isinstance(value, list) else value
    return conv2d(
        x,
        weight,
        None,
        padding=attributes.get("pad", 0),
        groups=attributes.get("group", 1),
        **given,
    )


def _avg_pool_primitive(x: Tensor, *rest: Any, attributes: dict[str, Any]) -> Tensor:
    size = _pair(attributes["kernel_size"])
    stride = _pair(attributes["strides"])
    if str(attributes.get("pad_mode", "VALID")).lower() not in ("valid", "2"):
        raise ValueError("this pooling has no reference")
    counts = [(x.shape[2 + axis] - size[axis]) // stride[axis] + 1 for axis in (0, 1)]
    places = _places(x, size, stride, (1, 1), counts)
    return ops.stack(places, 0).mean(0)


def _places(x: Tensor, size: Any, stride: Any, dilation: Any, counts: Any) -> list[Tensor]:
    """Return the elements that each place of a kernel meets."""

    def along(axis: int, at: int) -> slice:
        begin = at * dilation[axis]
        return slice(begin, begin + stride[axis] * (counts[axis] - 1) + 1, stride[axis])

    rows = [along(0, at) for at in range(size[0])]
    columns = [along(1, at) for at in range(size[1])]
    return [x[:, :, row, column] for row in rows for column in columns]


def _pair(value: Any) -> tuple[int, int]:
    items = value[-2:] if isinstance(value, (list, tuple)) else [value]
    return int(items[0]), int(items[-1])


def _pads(
    shape: tuple[int, ...],
    size: tuple[int, ...],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    mode: Any,
    padding: Any,
) -> list[int]:
    """Return the padding: top, bottom, left, right."""
    word = str(mode).lower()
    if word in ("same", "1"):
        found = []
        for axis in (0, 1):
            count = -(-shape[axis] // stride[axis])
            reach = dilation[axis] * (size[axis] - 1) + 1
            wanted = (count - 1) * stride[axis] + reach
            total = max(wanted - shape[axis], 0)
            found += [total // 2, total - total // 2]
        return found
    if word in ("valid", "2"):
        return [0, 0, 0, 0]
    if isinstance(padding, (list, tuple)) and len(padding) == 4:
        return [int(item) for item in padding]
    above, left = _pair(padding)
    return [above, above, left, left]


# -- means and exponentials -----------------------------------------------------------------------------------------


def softmax(x: Tensor, axis: Any = -1, *, dtype: Any = None, dim: Any = None) -> Tensor:
    """Return exp(x) over its sum."""
    axis = axis if dim is None else dim
    parts = ops.exp(x - ops.stop_gradient(x.max(axis, keepdims=True)))
    return parts / parts.sum(axis, keepdims=True)


def log_softmax(x: Tensor, axis: Any = -1, *, dtype: Any = None, dim: Any = None) -> Tensor:
    """Return the logarithm of softmax."""
    axis = axis if dim is None else dim
    moved = x - ops.stop_gradient(x.max(axis, keepdims=True))
    return moved - ops.log(ops.exp(moved).sum(axis, keepdims=True))


def _softmax_primitive(x: Tensor, *rest: Any, attributes: dict[str, Any]) -> Tensor:
    axis = attributes.get("axis", -1)
    return softmax(x, axis[0] if isinstance(axis, list) and len(axis) == 1 else axis)


def layer_norm(
    x: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Tensor:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias over the last axes."""
    axes = tuple(range(-len(normalized_shape), 0))
    away = x - x.mean(axes, keep_dims=True)
    found = away / ops.sqrt((away * away).mean(axes, keep_dims=True) + eps)
    found = found if weight is None else found * weight
    return found if bias is None else found + bias


def _layer_norm_primitive(
    x: Tensor, weight: Tensor, bias: Tensor, *rest: Any, attributes: dict[str, Any]
) -> Any:
    begin = attributes.get("begin_norm_axis", 1)
    axes = tuple(range(begin % x.ndim, x.ndim))
    mean = x.mean(axes, keep_dims=True)
    away = x - mean
    variance = (away * away).mean(axes, keep_dims=True)
    root = 1 / ops.sqrt(variance + attributes.get("epsilon", 1e-7))
    return away * root * weight + bias, mean, variance


def rms_norm(x: Tensor, weight: Any, epsilon: float = 1e-6) -> Any:
    """Return x / sqrt(mean(x²) + epsilon) * weight, and the reciprocal of the root."""
    axes = tuple(range(-weight.ndim, 0))
    root = 1 / ops.sqrt((x * x).mean(axes, keep_dims=True) + epsilon)
    return x * root * weight, root


def _batch_norm_primitive(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    variance: Tensor,
    *rest: Any,
    attributes: dict[str, Any],
) -> Any:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    eps = attributes.get("epsilon", 1e-5)
    training = attributes.get("is_training")
    at = x.mean(axes, keep_dims=True) if training else mean.reshape(shape)
    away = x - at
    spread = (away * away).mean(axes, keep_dims=True) if training else variance.reshape(shape)
    root = 1 / ops.sqrt(spread + eps)
    found = away * root * scale.reshape(shape) + bias.reshape(shape)
    return found, mean, variance, at.reshape(-1), (root if training else spread).reshape(-1)


def cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of classes in the second axis, for targets that are indices."""
    if weight is not None or label_smoothing or x.ndim != 2 or target.ndim != 1:
        raise ValueError("this cross entropy has no reference")
    logs = log_softmax(x, -1)
    kept = (target != ignore_index).astype(x.dtype)
    classes = x.shape[-1]
    one = ops.ones((), x.dtype)
    zero = ops.zeros((), x.dtype)
    chosen = ops.one_hot(ops.clamp(target, 0, classes - 1), classes, one, zero)
    losses = (
        -ops.masked_fill(logs, chosen == 0, 0.0).sum(-1) * kept
    )  # -Inf of other classes is no NaN
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / kept.sum()


def cumsum(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Return the sums of the elements up to each one along an axis."""
    if dtype is not None or not x.is_floating_point():
        raise ValueError("this cumsum has no reference")
    return ops.cumsum(x, dim)


# -- element by element ---------------------------------------------------------------------------------------------


def gelu(x: Tensor, approximate: Any = "none") -> Tensor:
    """Return x times the normal distribution function of x, or its approximation by tanh."""
    if approximate == "tanh" or approximate is True:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + ops.tanh(inner))
    return 0.5 * x * (1 + ops.erf(x * math.sqrt(0.5)))


_PRIMITIVES: dict[str, Callable[..., Any]] = {
    "MatMul": _matmul_primitive,
    "BatchMatMul": _matmul_primitive,
    "Conv2D": _conv2d_primitive,
    "Softmax": _softmax_primitive,
    "LayerNorm": _layer_norm_primitive,
    "BatchNorm": _batch_norm_primitive,
    "AvgPool": _avg_pool_primitive,
    "LogSoftmax": lambda x, *rest, attributes: log_softmax(x, attributes.get("axis", -1)),
    "RmsNorm": lambda x, weight, *rest, attributes: rms_norm(
        x, weight, attributes.get("epsilon", 1e-6)
    ),
    "GeLU": lambda x, *rest, attributes: gelu(x, "tanh"),
    "SiLU": lambda x, *rest, attributes: _FUNCTIONS["silu"](x),
    "Sigmoid": lambda x, *rest, attributes: _FUNCTIONS["sigmoid"](x),
    "BiasAdd": lambda x, bias, *rest, attributes: _FUNCTIONS["bias_add"](x, bias),
    "MatMulExt": lambda a, b, *rest, attributes: matmul(a, b),
    "Dense": lambda x, weight, bias=None, *rest, attributes: dense(x, weight, bias),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "__matmul__": matmul,
    "mm": matmul,
    "bmm": matmul,
    "mv": matmul,
    "dot": matmul,
    "dense": dense,
    "linear": dense,
    "addmm": addmm,
    "conv2d": conv2d,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "gelu": gelu,
    "cross_entropy": cross_entropy,
    "cumsum": cumsum,
    "silu": lambda x, inplace=False: x / (1 + ops.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + ops.exp(-x)),
    "bias_add": lambda x, bias: (
        x + bias.reshape((1, -1) + (1,) * (x.ndim - 2))
    ),  # along the second axis
}
