# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Finds the function of a call: a listed API, or a Primitive with its attributes. No other name becomes code."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from probe.capture.support_ops import load_supported_apis
from probe.naming import PRIMITIVE
from probe.replaying.refusals import FORBIDDEN, RefusedError, bare

_CLASS = re.compile(r"^[A-Z][A-Za-z0-9_]*$")


class Found(NamedTuple):
    """The function of a call.

    Attributes:
        function: it.
        code: the Python expression that gives it, for a script; of the module ``mindspore`` and plain names alone.
        inputs: how many of the recorded positional inputs it takes; None for all.
    """

    function: Callable[..., Any]
    code: str
    inputs: int | None = None


def find(call: dict[str, Any]) -> Found:
    """Return the function of a described call.

    Raises:
        RefusedError: when there is none of this name.
    """
    key = call["key"]
    if bare(key) in FORBIDDEN:
        raise RefusedError("an operation with effects outside of its outputs")
    if key.partition(".")[0] == PRIMITIVE:
        return _primitive(call)
    api = _listed().get(key)
    if api is None:
        raise RefusedError("no listed API of the MindSpore that is installed here")
    owner = api.owner
    module = f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else owner.__name__
    if isinstance(owner, type):
        module = f"mindspore.{owner.__name__}"
    return Found(getattr(owner, api.name), f"{module}.{api.name}")


@functools.cache
def _listed() -> dict[str, Any]:
    apis = load_supported_apis(None)
    found = {api.key: api for api in reversed(apis)}
    return {**found, **{api.key: api for api in reversed(apis) if bare(api.key) == api.name}}


def _primitive(call: dict[str, Any]) -> Found:
    from mindspore import ops
    from mindspore.ops import Primitive, auto_generate, operations

    name = bare(call["key"])
    for place, module in (("operations", operations), ("auto_generate", auto_generate)):
        kind = vars(module).get(name) if _CLASS.match(name) else None
        if isinstance(kind, type) and issubclass(kind, Primitive):
            made, code = _instance(kind, call["attributes"])
            return Found(made, f"mindspore.ops.{place}.{code}", _inputs(kind, call))
    # an overloaded function that another API called
    for prefix in ("Mint", "Functional", "Tensor"):
        api = _listed().get(f"{prefix}.{name}")
        if api is not None and hasattr(ops, name):
            return find({**call, "key": f"{prefix}.{name}"})
    raise RefusedError("no Primitive of this name in the MindSpore that is installed here")


def _instance(kind: type, attributes: dict[str, Any]) -> tuple[Any, str]:
    """Return a Primitive with recorded attributes, and the code that makes it."""
    plain = {name: _plain(value) for name, value in attributes.items() if name.isidentifier()}
    initial: Any = kind.__init__  # type: ignore[misc]
    initial = getattr(initial, "decorated_func", initial)
    parameters = list(inspect.signature(initial).parameters)[1:]
    given = {name: plain[name] for name in parameters if name in plain}
    errors = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
    # MindSpore may have turned words into numbers, as "NCHW" into 0, and pairs into tuples of four
    words = {name: value for name, value in given.items() if type(value) is not int}
    pairs = {name: value[2:] if type(value) is tuple and len(value) == 4 else value for name, value in given.items()}
    first: Exception | None = None
    for tried in (given, words, pairs):
        try:
            made = kind(**tried)
        except errors as error:
            first = first or error
            continue
        code = f"{kind.__name__}({', '.join(f'{name}={value!r}' for name, value in tried.items())})"
        for name in [name for name in given if name not in tried]:
            made.add_prim_attr(name, given[name])
            code += f".add_prim_attr({name!r}, {given[name]!r})"
        return made, code
    raise RefusedError(f"the Primitive cannot be made of its attributes: {' '.join(str(first).split())[:200]}")


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        if "dtype" in value and "array" not in value:
            from probe.replaying.calling import dtypes

            return dtypes().get(value["dtype"])
        raise RefusedError("an attribute is no plain value")
    return value


def _inputs(kind: type, call: dict[str, Any]) -> int | None:
    """Return how many inputs a Primitive takes: MindSpore's Python hands its attributes to C++ as further inputs."""
    parameters = list(inspect.signature(kind.__call__).parameters.values())[1:]
    if any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters):
        return None
    return min(len(parameters), len(call["args"]))
