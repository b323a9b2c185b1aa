# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The list of recorded APIs, read from support_ops.yaml and found in the installed MindSpore."""

from __future__ import annotations

import contextlib
import functools
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from probe.config import file_reader
from probe.config.messages import errors_about, refuse
from probe.config.validators import names as list_of_names
from probe.layers.layer import layers
from probe.naming import PREFIXES, clean

_FILE = "support_ops.yaml"
_TORCH = "torch"  # the sections of a layer that may be absent
_ALIASES = {"mint.ops": "mint"}  # msprobe's name of a section -> ours
_ONE_NAME = {"Tensor.astype": "Tensor.to"}  # astype runs to, under whose name msprobe records it
_NEVER = frozenset({"asnumpy"})  # the tool itself reads tensors with it


@dataclass(frozen=True)
class SupportedApi:
    """One listed function of the installed MindSpore."""

    owner: Any  # the module or class that it is called from
    name: str  # the attribute there
    key: str  # its entries' names without number and direction, "Functional.relu"


def load_supported_apis(path: str | None) -> list[SupportedApi]:
    """Return the APIs of the user's list, or of the shipped one, that MindSpore has. Raises SettingsError."""
    return list(_resolve(_read(path)))


def _read(path: str | None) -> dict[str, list[str]]:
    """Return the names of each section. libyaml reads faster than our reader, but deep nesting makes it crash."""
    listed = {}
    with errors_about("support_ops"):
        for given, names in (file_reader.read(path) if path else _shipped()).items():
            section = _ALIASES.get(given, given)
            if section not in PREFIXES:
                refuse("unknown section", section, ", ".join(PREFIXES), PREFIXES)
            listed[section] = [*list_of_names(section, names)]
    if path is None:
        listed["ops.functional"] = listed["ops"]
    return listed


@functools.cache
def _shipped() -> dict[Any, Any]:
    """Return the content of the list inside the installed package, or at the top of a checkout."""
    import yaml

    package = Path(__file__).resolve().parent.parent
    path = next(folder / _FILE for folder in (package, package.parent) if (folder / _FILE).exists())
    # all of it is text: a loader that looks for numbers and dates in each name takes five times as long
    return dict(yaml.load(path.read_text("utf-8"), getattr(yaml, "CBaseLoader", yaml.BaseLoader)))


def _resolve(sections: dict[str, list[str]]) -> Iterator[SupportedApi]:
    seen: set[tuple[int, str]] = set()
    spaces = {section: space for layer in layers() for section, space in layer.functions().items()}
    # a layer above has its names in place of MindSpore's
    for section, names in sorted(sections.items(), key=lambda item: item[0] not in spaces):
        namespace = spaces.get(section)
        if namespace is None and not section.startswith(_TORCH):
            with contextlib.suppress(ImportError, AttributeError):
                namespace = pkgutil.resolve_name(
                    f"mindspore.{'Tensor' if section == 'tensor' else section}"
                )
        for dotted in names:
            *path, name = dotted.split(".")
            owner = functools.reduce(
                lambda owner, part: getattr(owner, part, None), path, namespace
            )
            function = None if owner is None or name in _NEVER else getattr(owner, name, None)
            # wrapping a class, module or Primitive would change its type
            is_function = callable(function) and not isinstance(function, (type, ModuleType))
            if is_function and hasattr(function, "__name__") and (id(owner), name) not in seen:
                seen.add((id(owner), name))
                key = clean(f"{PREFIXES[section]}.{name}")
                yield SupportedApi(owner, name, _ONE_NAME.get(key, key))
