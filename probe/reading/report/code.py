# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The lines of code in a report: frames, each once, with paths that tell nothing about the machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from probe.reading.dumps.frames import Frame, parse
from probe.reading.dumps.text import safe, shorten

_PACKAGES = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_LIBRARY = re.compile(r"^.*[/\\]lib[/\\]python3(?:\.\d+)?[/\\]")
_INSTALLED = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python3(?:\.\d+)?)[/\\]")
_LONG = 500


class Code:
    """All frames of a report."""

    def __init__(self, stacks: Iterable[str], with_source: bool) -> None:
        self._with_source = with_source  # whether source lines and folders are kept
        self._frames: dict[tuple[Any, ...], int] = {}
        parsed = [[frame for frame in map(parse, json.loads(stack)) if frame] for stack in stacks]
        self._base = common_folder([frame.file for frames in parsed for frame in frames])
        #: the stacks of all calls, each a JSON list of frames
        self.stacks = [[self._number(frame) for frame in frames] for frames in parsed]

    def _number(self, frame: Frame) -> int:
        key = self.place(frame)
        return self._frames.setdefault(key, len(self._frames))

    def place(self, frame: Frame) -> tuple[Any, ...]:
        """Return file, line, function and source of a frame, as the report shows them."""
        source = shorten(safe(frame.source), _LONG) if self._with_source else ""
        is_own = not _INSTALLED.search(frame.file)
        return self.file(frame.file), frame.line, safe(frame.function), source, int(is_own)

    def file(self, path: str) -> str:
        """Return the part of a path that the report shows."""
        if not self._with_source:
            return safe(re.split(r"[/\\]", path)[-1])
        short = _LIBRARY.sub("", _PACKAGES.sub("", path))
        if short == path and self._base and path.startswith(self._base):
            short = path[len(self._base) :].lstrip("/\\")
        return safe(short.lstrip("/"))

    @property
    def frames(self) -> list[tuple[Any, ...]]:
        """All frames: file, line, function, source, and whether it is the user's own."""
        return list(self._frames)


def common_folder(files: Sequence[str]) -> str:
    """Return the folder that all files of the user lie in.

    >>> common_folder(["/home/me/net/train.py", "/home/me/net/model/block.py", "/x/site-packages/a.py"])
    '/home/me/net'
    """
    own = sorted({os.path.dirname(file) for file in files if os.path.isabs(file) and not _INSTALLED.search(file)})
    return os.path.commonpath(own) if own else ""


def short_paths(a: str, b: str) -> tuple[str, str]:
    """Return the names of two runs without the folders above both.

    >>> short_paths("/data/me/golden", "/data/me/mine"), short_paths("/x/a/dump", "/x/b/dump"), short_paths("", "/x/y")
    (('golden', 'mine'), ('a/dump', 'b/dump'), ('', 'y'))
    """
    full = [os.path.abspath(path) if path else "" for path in (a, b)]
    known = [path for path in full if path]
    base = os.path.commonpath([os.path.dirname(path) for path in known])
    short = [os.path.relpath(path, base) if path else "" for path in full]
    return safe(short[0]), safe(short[1])


def without_paths(text: str, paths: Sequence[str]) -> str:
    """Return a remark in which no path of the machine is left.

    >>> without_paths("/data/run/step0/dump.json cannot be read: cut", ["/data/run"])
    'run/step0/dump.json cannot be read: cut'
    """
    forms = {form for path in paths if path for form in (path, os.path.abspath(path))}
    for form in sorted(forms, key=len, reverse=True):
        if len(form) > 1:
            text = text.replace(form, os.path.basename(form.rstrip("/")) or "dump")
    return safe(text)
