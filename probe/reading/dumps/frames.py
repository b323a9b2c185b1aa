# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds the line of the user's code in the frames of a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_FRAME = re.compile(r"File (?P<file>.+), line (?P<line>\d+), in (?P<function>[^\n]*?),? ?\n ?(?P<source>.*)", re.DOTALL)
_BARE = re.compile(r"File (?P<file>.+), line (?P<line>\d+), in (?P<function>[^\n]*)")
_OURS = re.compile(r"(site|dist)-packages[/\\](mindspore|probe|msprobe|torch)[/\\]")


class Frame(NamedTuple):
    """One frame: the file, the line's number, the function, and the text of the line."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.source}" if self.source else f"{self.file}:{self.line}"


def parse(text: str) -> Frame | None:
    r"""Take the text of a frame apart; None where it is none.

    >>> parse("File /p/f.py, line 23, in construct, \n x = self.a(x)")
    Frame(file='/p/f.py', line=23, function='construct', source='x = self.a(x)')
    """
    found = _FRAME.match(text) or _BARE.match(text)
    if found is None:
        return None
    parts = found.groupdict()
    return Frame(parts["file"], int(parts["line"][:18]), parts["function"], (parts.get("source") or "").strip())


def user_frame(frames: Sequence[str]) -> Frame | None:
    r"""Return the innermost frame outside of MindSpore and of the recorder; the innermost where all are inside.

    >>> inner = "File /x/site-packages/mindspore/nn/cell.py, line 1, in f, \n a"
    >>> user_frame([inner, "File /me/t.py, line 2, in g, \n b"]).line
    2
    """
    parsed = [frame for frame in map(parse, frames) if frame is not None]
    return next((frame for frame in parsed if not _OURS.search(frame.file)), parsed[0] if parsed else None)
