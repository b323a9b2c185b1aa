# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The list of recorded APIs, read from support_ops.yaml and found in the installed MindSpore."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from probe.config import file_reader
from probe.config.messages import nearest, shorten
from probe.errors import SettingsError
from probe.naming import PREFIXES, clean

_FILE = "support_ops.yaml"
#: msprobe's name of a section -> ours
_ALIASES = {"mint.ops": "mint"}
#: the tool itself reads tensors with it
_NEVER = frozenset({"asnumpy"})


@dataclass(frozen=True)
class SupportedApi:
    """One listed function of the installed MindSpore.

    Attributes:
        owner: the module or class that it is called from.
        name: the attribute there.
        key: its entries' names without number and direction, "Functional.relu".
    """

    owner: Any
    name: str
    key: str


def load_supported_apis(path: str | None) -> list[SupportedApi]:
    """Return the listed APIs that the installed MindSpore has.

    Args:
        path: the user's list, or None for the shipped one.

    Raises:
        SettingsError: when the list cannot be read or is malformed.
    """
    return list(_resolve(_read(path)))


def _read(path: str | None) -> dict[str, list[str]]:
    listed = _shipped() if path is None else _users(path)
    key = f"support_ops: {path}" if path else "support_ops"
    sections: dict[str, list[str]] = {}
    for given, names in listed.items():
        section = _ALIASES.get(given, given)
        if section not in PREFIXES:
            near = nearest(section, PREFIXES)
            hint = f" Did you mean {near!r}?" if near else ""
            raise SettingsError(f"{key}: unknown section {shorten(section)}. Allowed: {', '.join(PREFIXES)}.{hint}")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise SettingsError(f"{key}: section {section!r} must be a list of names")
        sections[section] = names
    return sections


def _users(path: str) -> dict[Any, Any]:
    """Return the content of the user's list. libyaml is faster, but deep nesting makes it crash."""
    data = file_reader.read_bytes("support_ops", path)
    try:
        return file_reader.parse(data, is_json=path.lower().endswith(".json"))
    except SettingsError as error:
        raise SettingsError(f"support_ops: {path}: {error} Sections of names: {', '.join(PREFIXES)}") from error


def _shipped() -> dict[Any, Any]:
    """Return the content of the list inside the installed package, or at the top of a checkout."""
    import yaml

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    inside = os.path.join(package, _FILE)
    path = inside if os.path.exists(inside) else os.path.join(os.path.dirname(package), _FILE)
    with open(path, encoding="utf-8") as file:
        return dict(yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _resolve(sections: dict[str, list[str]]) -> Iterator[SupportedApi]:
    seen: set[tuple[int, str]] = set()
    for section, names in sections.items():
        namespace = _namespace(section)
        if namespace is None:
            continue
        for dotted in names:
            *path, name = dotted.split(".")
            owner = namespace
            for part in path:
                owner = getattr(owner, part, None)
            if name in _NEVER or not _is_function(getattr(owner, name, None)) or (id(owner), name) in seen:
                continue
            seen.add((id(owner), name))
            yield SupportedApi(owner, name, clean(f"{PREFIXES[section]}.{name}"))


def _namespace(section: str) -> Any:
    import importlib

    import mindspore

    if section == "tensor":
        return mindspore.Tensor
    try:
        return importlib.import_module(f"mindspore.{section}")
    except ImportError:
        return None


def _is_function(value: Any) -> bool:
    """Return whether a value is a function. Wrapping a class, module or Primitive would change its type."""
    return callable(value) and not isinstance(value, (type, ModuleType)) and hasattr(value, "__name__")
