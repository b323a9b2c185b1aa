# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tries settings before a program begins: paths that must be there, folders that must be writable, own functions.

MindSpore is not imported for it, and no code of the user runs.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder

from probe.config.own_statistics import own_statistics
from probe.config.settings import Settings
from probe.errors import SettingsError, UsageError
from probe.findings.sentence import NOTHING, said_of, say
from probe.reading.dumps.folders import find_folders
from probe.series.series import find_series
from probe.store import file_io


def try_settings(settings: Settings, folder: str) -> None:
    """Raise SettingsError where a run could not use these settings.

    ``folder`` is that of the program, from which Python imports modules.
    """
    if not settings.dump_enable:
        return
    problem = file_io.why_unwritable(settings.dump_path)
    if problem:
        raise SettingsError(say("run.dump_path", path=settings.dump_path, reason=problem))
    if settings.golden:
        _try_golden(settings.golden)
    modes = (
        (settings.summary_mode,)
        if isinstance(settings.summary_mode, str)
        else settings.summary_mode
    )
    known = own_statistics()
    for source in (known[mode].source for mode in modes if mode in known):
        if source:
            _try_function(source, [folder, os.getcwd(), *sys.path])


def _try_golden(path: str) -> None:
    try:
        find_folders(path)
    except UsageError as error:
        hint = NOTHING
        if os.path.isdir(path) and find_series(path):
            hint = say("run.hint_rows")
        raise SettingsError(say("run.golden", reason=said_of(error), hint=hint)) from None


def _try_function(text: str, places: Sequence[str]) -> None:
    module, _, path = text.partition(":")
    spec = _found(module, places)
    if spec is None:
        raise SettingsError(say("run.no_module", text=text, module=module))
    names = _names_of(spec)
    first = path.partition(".")[0]
    if names is not None and first not in names:
        raise SettingsError(say("run.no_function", text=text, file=spec.origin, name=first))


def _found(module: str, places: Sequence[str]) -> ModuleSpec | None:
    """Return where a module is, without importing the packages around it."""
    spec: ModuleSpec | None = None
    name = ""
    where: Sequence[str] | None = places
    for part in module.split("."):
        if where is None:
            return None
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, where)
        if spec is None:
            return None
        where = spec.submodule_search_locations
    return spec


def _names_of(spec: ModuleSpec) -> set[str] | None:
    """Return the names that a module's source binds at its top; None where that cannot be known."""
    if not spec.origin or not spec.origin.endswith(".py"):
        return None
    try:
        with open(spec.origin, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    names = set(_bound(tree.body))
    return None if "*" in names or "__getattr__" in names else names


def _bound(statements: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.alias):
                yield (node.asname or node.name).partition(".")[0]
