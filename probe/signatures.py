# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parameters of MindSpore's functions, for words about arguments: their names and defaults."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
from collections.abc import Mapping
from typing import NamedTuple

#: the first part of an entry's name -> the module, or the class in it, that has the functions
_OWNERS = {
    "Functional": ("mindspore.ops", ""),
    "Mint": ("mindspore.mint", ""),
    "MintFunctional": ("mindspore.mint.nn.functional", ""),
    "Numpy": ("mindspore.numpy", ""),
    "Tensor": ("mindspore", "Tensor"),
}
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameter(NamedTuple):
    """A parameter of a function."""

    name: str
    place: int  # among the positional parameters; -1 where it is given by its name alone
    default: str  # as Python shows it; "" for none


def parameter(key: str, place: str, version: str) -> Parameter | None:
    """Return the parameter that an argument of an API is for.

    Args:
        key: of the API, such as "Functional.softmax".
        place: of the argument, such as "input.1" or "kwargs.axis".
        version: the MindSpore that the call ran with.

    Returns:
        None where it cannot be known: another MindSpore is installed, or none that can be imported; or the function
        has no signature in Python.

    >>> parameter("Functional.softmax", "input.1", importlib.metadata.version("mindspore"))
    Parameter(name='axis', place=1, default='-1')
    """
    if version != _installed():
        return None
    word, _, rest = place.partition(".")
    found = _parameters(key)
    if word == "kwargs":
        return found.get(rest.partition(".")[0])
    number = rest.partition(".")[0]
    return next((item for item in found.values() if str(item.place) == number), None)


@functools.cache
def _installed() -> str:
    try:
        return importlib.metadata.version("mindspore")
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _parameters(key: str) -> Mapping[str, Parameter]:
    """Return name -> parameter of an API, in order; nothing where it has no signature in Python."""
    prefix, _, name = key.partition(".")
    module, owner = _OWNERS.get(prefix, ("", ""))
    if not module:
        return {}
    try:
        place = importlib.import_module(module)
        function = getattr(getattr(place, owner) if owner else place, name)
        signature = inspect.signature(function)
    except (AttributeError, ImportError, OSError, RuntimeError, TypeError, ValueError):
        return {}
    found: dict[str, Parameter] = {}
    for number, item in enumerate(signature.parameters.values()):
        default = "" if item.default is item.empty else repr(item.default)
        found[item.name] = Parameter(item.name, number if item.kind in _BY_PLACE else -1, default)
    return found
