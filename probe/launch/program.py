# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs a program as Python itself does: a file, a folder or zip file with ``__main__.py``, or a module with ``-m``."""

from __future__ import annotations

import functools
import linecache
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from types import ModuleType, TracebackType
from typing import Any

from probe.findings.sentence import ENGLISH, say

#: the folder of the package: its frames are no frames of the program
TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Program:
    """A file, folder or zip file with its arguments, or a module, whose path is ""."""

    def __init__(self, path: str, module: str, arguments: list[str]) -> None:
        self.path = path
        self.module = module
        self._arguments = arguments

    def __str__(self) -> str:
        return self.path or f"-m {self.module}"

    def check(self, language: str = ENGLISH) -> None:
        """End with status 2 where there is no such file, as Python does."""
        if self.path and not os.path.exists(self.path):
            missing = say("run.missing", path=repr(os.path.abspath(self.path)))
            print(missing.text(language), file=sys.stderr)
            raise SystemExit(2)

    def run(self) -> None:
        """Become the program. Its exceptions pass; a traceback has no frames of the tool."""
        is_file = bool(self.path) and os.path.isfile(self.path) and not self._is_zip()
        sys.argv = [self.path or "-m", *self._arguments]
        sys.excepthook = functools.partial(_show, sys.excepthook)
        if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
            where = (
                os.path.dirname(os.path.realpath(self.path))
                if is_file
                else os.path.abspath(self.path or ".")
            )
            sys.path[0] = where
        # the program's globals live until the process ends, as with Python
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__builtins__ = __builtins__  # type: ignore[attr-defined]  # Python's own way
        if self.path:
            show_runpy()
        if is_file:
            self._run_file(main)
        else:
            runpy._run_module_as_main(self.module or "__main__", alter_argv=not self.path)  # type: ignore[attr-defined]  # Python's own way

    def _is_zip(self) -> bool:
        import zipfile

        return not self.path.endswith(".py") and zipfile.is_zipfile(self.path)

    def _run_file(self, main: ModuleType) -> None:
        path = os.path.join(os.getcwd(), self.path)  # as Python: not normalized
        if path.endswith(".pyc"):
            loader: Any = SourcelessFileLoader("__main__", path)
            code = loader.get_code("__main__")
        else:
            loader = SourceFileLoader("__main__", path)
            code = loader.source_to_code(loader.get_data(path), path)
        main.__file__ = path
        main.__loader__ = loader
        main.__dict__.update(__cached__=None, __annotations__={})
        exec(code, main.__dict__)


def show_runpy() -> None:
    """Let ``inspect.stack`` find the source of the frame that ``python -m probe`` has, and ``python FILE`` has not.

    MindSpore's capture by trace (2.10) raises at a frame without source. The entry has the form of ``linecache``.
    """
    name = "<frozen runpy>"
    lines = linecache.getlines(runpy.__file__ or "")
    if lines and name not in linecache.cache:
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _show(
    shown: Callable[..., Any], kind: type, error: BaseException, trace: TracebackType | None
) -> None:
    """Show an exception that ends the program, without the frames of the tool."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error.__cause__, error.__context__]
    while waiting:
        other = waiting.pop()
        if other is not None and id(other) not in seen:
            seen.add(id(other))
            other.__traceback__ = _trimmed(other.__traceback__)
            waiting += other.__cause__, other.__context__
    error.__traceback__ = _trimmed(trace)
    shown(kind, error, error.__traceback__)


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path == __file__:
            kept.clear()  # before it is the way to the program
        elif not (path.startswith(TOOL) or (not kept and path.startswith("<frozen importlib"))):
            kept.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for part in reversed(kept):
        rest = TracebackType(rest, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return rest
