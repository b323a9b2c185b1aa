# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Arguments for a listed API: its recipe, or what its signature and a few rules suggest."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np

from tests.whitelist.recipes import BY_PARAMETER, GENERIC, MORE, RECIPES, A, T


def candidates(api: Any) -> list[A]:
    """Return the calls to try, best first."""
    for name in (api.key, api.name):
        if name in RECIPES:
            return list(RECIPES[name])
    return [*_by_signature(api), *GENERIC]


def variants(api: Any, call: A) -> Iterator[A]:
    """Yield other calls of an API of which one is known to work: by keyword, those listed for it, in half precision."""
    try:
        parameters = list(inspect.signature(getattr(api.owner, api.name)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    by_name = [p.name for p in parameters[: len(call.args)] if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(by_name) == len(call.args):
        first = 1 if by_name[:1] == ["self"] else 0
        if len(by_name) > first:
            yield A(
                *call.args[:first], **dict(zip(by_name[first:], call.args[first:])), **call.kwargs
            )
    yield from MORE.get(api.key, MORE.get(api.name, ()))
    half = A(*_in_half(call.args), **dict(zip(call.kwargs, _in_half(list(call.kwargs.values())))))
    if repr(half) != repr(call):
        yield half


def _in_half(value: Any) -> Any:
    """Return the same with tensors of half precision."""
    if isinstance(value, T):
        return value.in_half()
    return (
        type(value)([_in_half(item) for item in value]) if type(value) in (list, tuple) else value
    )


def _by_signature(api: Any) -> Iterator[A]:
    """Yield a call with every required parameter that a rule knows by name."""
    try:
        parameters = inspect.signature(getattr(api.owner, api.name)).parameters.values()
    except (TypeError, ValueError):
        return
    required = [p for p in parameters if p.default is p.empty]
    if not required or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in required):
        return
    if all(p.name in BY_PARAMETER for p in required):
        yield A(*(BY_PARAMETER[p.name] for p in required if p.kind is not p.KEYWORD_ONLY))


class Values:
    """A call with its tensors' values, which are the same at every run.

    Args:
        key: the API; it seeds the values.
        call: the recipe.

    Attributes:
        arrays: the values of the tensors, positional first, in order.
        floats: the places among them that can have a gradient.
    """

    def __init__(self, key: str, call: A) -> None:
        self._key, self.call = key, call
        self._specs: list[T] = []
        _collect(call.args, self._specs)
        _collect(list(call.kwargs.values()), self._specs)
        self.arrays = [_values(spec, f"{key} {place}") for place, spec in enumerate(self._specs)]
        self.floats = [
            place
            for place, spec in enumerate(self._specs)
            if spec.form == "tensor" and np.issubdtype(self.arrays[place].dtype, np.inexact)
        ]

    def fresh(self) -> list[Any]:
        """Return new tensors (or whatever the recipe asks for) with the values."""
        return [_made(spec, array) for spec, array in zip(self._specs, self.arrays)]

    def tensors(self) -> list[np.ndarray]:
        """Return the values of those that are tensors."""
        return [array for spec, array in zip(self._specs, self.arrays) if spec.form != "array"]

    def arguments(self, leaves: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the call's arguments with these in the places of its tensors."""
        rest = iter(leaves)
        args = [_filled(arg, rest) for arg in self.call.args]
        return args, {name: _filled(arg, rest) for name, arg in self.call.kwargs.items()}


def _collect(value: Any, specs: list[T]) -> None:
    if isinstance(value, T):
        specs.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, specs)


def _filled(value: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(value, T):
        return next(leaves)
    if isinstance(value, (list, tuple)):
        return type(value)([_filled(item, leaves) for item in value])
    return value


def _values(spec: T, seed: str) -> np.ndarray:
    """Return the values of one tensor; nothing but the seed decides."""
    if spec.values is not None:
        return np.array(spec.values, spec.dtype)
    numbers = np.random.RandomState(zlib.crc32(seed.encode()))
    dtype = np.dtype(spec.dtype)
    if dtype == np.bool_:
        return numbers.randint(0, 2, spec.shape).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        return numbers.randint(int(spec.low), int(spec.high), spec.shape).astype(dtype)
    array = numbers.uniform(spec.low, spec.high, spec.shape)
    if np.issubdtype(dtype, np.complexfloating):
        array = array + 1j * numbers.uniform(spec.low, spec.high, spec.shape)
    if spec.square == "spd":
        array = array @ np.swapaxes(array, -1, -2) + 2.0 * np.eye(spec.shape[-1])
    if spec.square == "lower":
        array = np.tril(array) + np.eye(spec.shape[-1])
    return np.asarray(array).astype(dtype)


def _made(spec: T, array: np.ndarray) -> Any:
    if spec.form == "array":
        return array.copy()
    tensor = ms.Tensor(array.copy())
    return ms.Parameter(tensor, name="variable") if spec.form == "parameter" else tensor
