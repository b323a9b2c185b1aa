# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds the function of a call: a listed API, or a Primitive with its attributes. No other name becomes code."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from probe.capture.support_ops import load_supported_apis
from probe.naming import PRIMITIVE
from probe.replaying.described import CallDescription, CannotReplayError

_CLASS = re.compile(r"^[A-Z][A-Za-z0-9_]*$")
#: the errors of a Primitive that is made with wrong attributes
_REFUSED = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

#: the names of operations of one kind. They draw random numbers ("random"). They read or write files, run code, talk to
#: other processes, or wait ("forbidden"). They only move values ("moves"). Each element of the output depends on one
#: element of each input ("elementwise"); small elements come from a difference of numbers as large as the input
#: ("tails"). They return indices: equal elements may stand in another order ("indices")
_NAMES = json.loads((Path(__file__).parent / "operators.json").read_text(encoding="utf-8"))
OPERATORS = {kind: frozenset(names) for kind, names in _NAMES.items()}


class Function(NamedTuple):
    """The function of a call."""

    function: Callable[..., Any]
    code: str  # the Python expression that gives it, for a script; of the module ``mindspore`` and plain names alone
    inputs: int | None = None  # how many of the recorded positional inputs it takes; None for all


def bare(key: str) -> str:
    """Return the last word of a key.

    >>> bare("Functional.dropout"), bare("Primitive.fn:f.ReLU")
    ('dropout', 'ReLU')
    """
    return key.rpartition(".")[2]


def find(call: CallDescription) -> Function:
    """Return the function of a described call; raise CannotReplayError when there is none of this name."""
    key = call.key
    if bare(key) in OPERATORS["forbidden"]:
        raise CannotReplayError("replay.effects")
    if key.partition(".")[0] == PRIMITIVE:
        return _primitive(call)
    api = _listed().get(key)
    if api is None:
        raise CannotReplayError("replay.no_api")
    owner = api.owner
    module = f"mindspore.{owner.__name__}" if isinstance(owner, type) else owner.__name__
    return Function(getattr(owner, api.name), f"{module}.{api.name}")


@functools.cache
def _listed() -> dict[str, Any]:
    """Return key -> API. Of several the first counts, one that has the name of its key before others."""
    apis = load_supported_apis(None)
    first = {api.key: api for api in reversed(apis)}
    own = {api.key: api for api in reversed(apis) if bare(api.key) == api.name}
    return {**first, **own}


def _primitive(call: CallDescription) -> Function:
    from mindspore import ops
    from mindspore.ops import Primitive, auto_generate, operations

    name = bare(call.key)
    for place, module in (("operations", operations), ("auto_generate", auto_generate)):
        kind = vars(module).get(name) if _CLASS.match(name) else None
        if isinstance(kind, type) and issubclass(kind, Primitive):
            made, code = _instance(kind, call.attributes)
            return Function(made, f"mindspore.ops.{place}.{code}", _inputs(kind, call))
    # an overloaded function that another API called
    for prefix in ("Mint", "Functional", "Tensor"):
        api = _listed().get(f"{prefix}.{name}")
        if api is not None and hasattr(ops, name):
            return find(call._replace(key=f"{prefix}.{name}"))
    raise CannotReplayError("replay.no_primitive")


def _instance(kind: type, attributes: dict[str, Any]) -> tuple[Any, str]:
    """Return a Primitive with recorded attributes, and the code that makes it."""
    given = _arguments(kind, attributes)
    # MindSpore may have turned words into numbers, as "NCHW" into 0, and pairs into tuples of four
    words = {name: value for name, value in given.items() if type(value) is not int}
    pairs = {name: _pair_of(value) for name, value in given.items()}
    first: Exception | None = None
    for tried in (given, words, pairs):
        try:
            made = kind(**tried)
        except _REFUSED as error:
            first = first or error
            continue
        arguments = ", ".join(f"{name}={value!r}" for name, value in tried.items())
        code = f"{kind.__name__}({arguments})"
        for name, value in given.items():
            if name not in tried:
                made.add_prim_attr(name, value)
                code += f".add_prim_attr({name!r}, {value!r})"
        return made, code
    raise CannotReplayError("replay.attributes", error=" ".join(str(first).split())[:200])


def _arguments(kind: type, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the recorded attributes that a class of Primitives is given when one is made."""
    plain = {name: _plain(value) for name, value in attributes.items() if name.isidentifier()}
    initial: Any = kind.__init__  # type: ignore[misc]  # a class of MindSpore
    initial = getattr(initial, "decorated_func", initial)
    parameters = list(inspect.signature(initial).parameters)[1:]
    return {name: plain[name] for name in parameters if name in plain}


def _pair_of(value: Any) -> Any:
    is_four = type(value) is tuple and len(value) == 4
    return value[2:] if is_four else value


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        if "dtype" in value and "array" not in value:
            from probe.replaying.calling import dtypes

            return dtypes().get(value["dtype"])
        raise CannotReplayError("replay.attribute")
    return value


def _inputs(kind: type, call: CallDescription) -> int | None:
    """Return how many inputs a Primitive takes: MindSpore's Python hands its attributes to C++ as further inputs."""
    parameters = list(inspect.signature(kind.__call__).parameters.values())[1:]
    if any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in parameters):
        return None
    return min(len(parameters), len(call.args))
