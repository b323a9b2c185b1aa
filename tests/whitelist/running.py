# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs one call of a listed API, alone or under a gradient, and keeps what went in and what came out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops
from mindspore.common.api import _pynative_executor

from tests.whitelist.generate import Values

# Primitives that nobody records: what the test computes itself must not be in the dump
_MUL, _ADD, _SUM, _CAST = ops.Mul(), ops.Add(), ops.ReduceSum(), ops.Cast()
_REAL, _IMAG = ops.Real(), ops.Imag()
_COMPLEX = (ms.complex64, ms.complex128)
_CONTINUOUS = (ms.float16, ms.float32, ms.float64, ms.bfloat16, *_COMPLEX)


@dataclass
class Run:
    """What one run showed.

    Attributes:
        outputs: the outputs' arrays, and what is no tensor as text.
        changed: an input was changed, or is an output.
        dtypes: those of the outputs that are tensors.
        gradients: place of an input -> its gradient.
        shared: places of the inputs that an output shares its place in the graph with.
        shared_outputs: the numbers of these outputs.
        constant_outputs: the numbers of those outputs that no differentiated input leads to.
        connected: whether any output is in the graph at all.
    """

    outputs: list[Any] = field(default_factory=list)
    changed: bool = False
    dtypes: list[Any] = field(default_factory=list)
    gradients: dict[int, np.ndarray] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    shared_outputs: set[int] = field(default_factory=set)
    constant_outputs: set[int] = field(default_factory=set)
    connected: bool = False


def outcome(api: Any, args: Any, kwargs: Any) -> Any:
    """Return what a call gives its program. Python drops what ``__setitem__`` returns: on Ascend the written part."""
    result = getattr(api.owner, api.name)(*args, **kwargs)
    return args[0] if api.name == "__setitem__" else result


def forward(api: Any, values: Values) -> Run:
    """Run the call once."""
    leaves = values.fresh()
    args, kwargs = values.arguments(leaves)
    _seed()
    result = outcome(api, args, kwargs)
    run = Run()
    outputs = list(_leaves(result))
    run.outputs = [array(item) for item in outputs]
    run.changed = any(item is leaf for item in outputs for leaf in leaves) or not all(
        same(array(leaf), old) for leaf, old in zip(leaves, values.arrays)
    )
    return run


@dataclass(frozen=True)
class Mode:
    """How a gradient is taken.

    Attributes:
        through: the call gets results of a multiplication by one and not leaves, which must not be changed in place.
        last: with respect to the last input alone.
        twice: every output is used twice.
    """

    through: bool = False
    last: bool = False
    twice: bool = False


def gradient(api: Any, values: Values, mode: Mode, key: Any) -> Run:
    """Run the call and the gradient of a scalar of its outputs.

    Args:
        api: what is called.
        values: with what.
        mode: how.
        key: tensor -> its place in the graph.
    """
    leaves, run = values.fresh(), Run()
    places = values.floats[-1:] if mode.last else values.floats

    def function(*given: Any) -> Any:
        now = list(leaves)
        for place, tensor in zip(places, given):
            now[place] = _MUL(tensor, ms.Tensor(1.0, tensor.dtype)) if mode.through else tensor
        args, kwargs = values.arguments(now)
        before = {key(now[place]): place for place in places}
        result = outcome(api, args, kwargs)
        outputs = list(_leaves(args[0] if result is None else result))
        run.outputs = [array(item) for item in outputs]
        tensors = [item for item in outputs if isinstance(item, ms.Tensor)]
        run.dtypes = [item.dtype for item in tensors]
        made = [key(item) for item in tensors]
        run.shared = {before[place] for place in made if place is not None and place in before}
        run.shared_outputs = {
            i for i, place in enumerate(made) if place is not None and place in before
        }
        run.constant_outputs = {i for i, place in enumerate(made) if place is None}
        run.connected = any(
            place is not None for place, item in zip(made, tensors) if item.dtype in _CONTINUOUS
        )
        return _scalar(tensors, mode.twice)

    _seed()
    try:
        found = ms.grad(function, tuple(range(len(places))))(*[leaves[place] for place in places])
    except (
        BaseException
    ):  # after an error MindSpore goes on recording a graph, and soon x[0] raises
        _pynative_executor.set_grad_flag(False)
        _pynative_executor.clear_res()
        raise
    found = found if isinstance(found, tuple) else (found,)
    run.gradients = {place: array(item) for place, item in zip(places, found)}
    return run


def upstream(run: Run, mode: Mode) -> list[np.ndarray | None]:
    """Return what the gradient of the scalar is with respect to each tensor output, None where it has none."""
    arrays = [item for item in run.outputs if isinstance(item, np.ndarray)]
    places = [i for i, dtype in enumerate(run.dtypes) if dtype in _CONTINUOUS]
    found: list[np.ndarray | None] = [None] * len(arrays)
    if places:
        tensors = [ms.Tensor(item, dtype) for item, dtype in zip(arrays, run.dtypes)]

        def function(*given: Any) -> Any:
            now = list(tensors)
            for place, tensor in zip(places, given):
                now[place] = tensor
            return _scalar(now, mode.twice)

        gradients = ms.grad(function, tuple(range(len(places))))(*[tensors[i] for i in places])
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        for place, item in zip(places, gradients):
            found[place] = array(item)
    return found


def differentiable(outputs: list[Any]) -> bool:
    """Return whether any output could have a gradient."""
    return any(
        isinstance(item, np.ndarray) and np.issubdtype(item.dtype, np.inexact) for item in outputs
    )


def array(item: Any) -> Any:
    """Return a tensor's values as the dump has them, anything else as text."""
    if isinstance(item, np.ndarray):
        return item.copy()
    if not isinstance(item, ms.Tensor):
        return repr(item)
    return (_CAST(item, ms.float32) if item.dtype == ms.bfloat16 else item).asnumpy().copy()


def same(one: Any, other: Any) -> bool:
    """Return whether two arrays are bitwise equal, any NaN being equal to any other."""
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return isinstance(one, str) and one == other
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.tobytes() == other.tobytes():
        return True
    if not np.issubdtype(one.dtype, np.inexact):
        return False
    known = ~np.isnan(one)
    return (
        np.array_equal(known, ~np.isnan(other)) and one[known].tobytes() == other[known].tobytes()
    )


def _scalar(outputs: list[Any], twice: bool) -> Any:
    """Return a number whose gradient is another fixed tensor for every output."""
    total = None
    for i, output in enumerate(outputs):
        if output.dtype not in _CONTINUOUS:
            continue
        parts = (_REAL(output), _IMAG(output)) if output.dtype in _COMPLEX else (output,)
        if output.dtype == ms.bfloat16:  # its multiplication has no kernel
            parts = (_CAST(output, ms.float32),)
        for j, part in enumerate(parts):
            for use in range(2 if twice else 1):
                numbers = np.random.RandomState(100 * use + 10 * i + j).uniform(
                    0.5, 2.0, part.shape
                )
                term = _CAST(_SUM(_MUL(part, ms.Tensor(numbers, part.dtype))), ms.float32)
                total = term if total is None else _ADD(total, term)
    return total


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _seed() -> None:
    ms.set_seed(7)
    np.random.seed(7)
    if hasattr(ms, "manual_seed"):
        ms.manual_seed(7)
