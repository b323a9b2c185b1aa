# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Call stacks: the lines of the user's code that made a call. Each distinct stack is formatted once."""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

from probe.recording.call import Call

_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: runs the program of ``probe run``: the frames outside of it are not the program's
_LAUNCHER = os.path.join(_TOOL, "launch", "program.py")
#: the files of MindSpore between a Cell's caller and its hooks
_CELL_MACHINERY = (os.path.join("mindspore", "nn", "cell.py"), "check_jit_forbidden_api.py")
#: the first constant of the code that records a function of MindSpore: its frames are frames of the tool
REPLACEMENT = "probe records the calls of a function by this code"
_MOST = 10_000


class CallStacks:
    """Distinct stacks, numbered from 0 in the order of their first call."""

    def __init__(self) -> None:
        #: identities of code objects and places in them -> number, and the code objects: identities stay unique
        self._numbers: dict[tuple[int, ...], tuple[int, list[CodeType]]] = {}
        self._texts: dict[tuple[str, ...], int] = {}
        self._by_number: list[tuple[str, ...]] = []

    def number(self, frame: FrameType | None, cell: Call | None) -> tuple[int, FrameType | None]:
        """Return the number of the stack of a call, innermost frame first, and the frame that made the call.

        ``frame`` is the innermost one. Those of the tool, and those between a Cell's caller and its hooks, are skipped.
        ``cell`` is the innermost running Cell call; the stack from its frame outwards is known.
        """
        while frame is not None:
            code = frame.f_code
            path = code.co_filename
            if not (
                path.startswith(_TOOL) or path.endswith(_CELL_MACHINERY) or is_replacement(code)
            ):
                break
            frame = frame.f_back
        known = None if cell is None else cell.frame
        caller = frame
        parts: list[int] = []
        while frame is not None and frame is not known:
            parts += id(frame.f_code), frame.f_lasti
            frame = frame.f_back
        rest = cell.stack if cell is not None and frame is not None else -1
        parts.append(rest)
        key = tuple(parts)
        found = self._numbers.get(key)
        if found is None:
            if len(self._numbers) >= _MOST:  # a training that creates code objects all the time
                self._numbers.clear()
            number = self.add(
                format_stack(caller, known) + (self._by_number[rest] if rest >= 0 else ())
            )
            found = self._numbers[key] = number, _codes(caller, known)
        return found[0], caller

    def add(self, text: tuple[str, ...]) -> int:
        """Return the number of a formatted stack."""
        number = self._texts.setdefault(text, len(self._texts))
        if number == len(self._by_number):
            self._by_number.append(text)
        return number

    def texts(self) -> list[tuple[str, ...]]:
        """Return the formatted stacks in the order of their numbers."""
        return self._by_number

    def user_line(self, number: int) -> str:
        """Return the innermost frame outside of the packages mindspore and probe, as one line, or ""."""
        if number < 0:
            return ""
        inner = f"File {os.path.dirname(str(sys.modules['mindspore'].__file__))}{os.sep}"
        found = [line for line in self._by_number[number] if not line.startswith(inner)]
        place, _, source = found[0].partition(", \n ") if found else ("", "", "")
        return f"{place}: {source}" if source else place


def is_replacement(code: CodeType) -> bool:
    """Return whether code records a function of MindSpore. It names the file and line of the original."""
    constants = code.co_consts
    return bool(constants) and constants[0] is REPLACEMENT


def _codes(frame: FrameType | None, last: FrameType | None) -> list[CodeType]:
    codes = []
    while frame is not None and frame is not last:
        codes.append(frame.f_code)
        frame = frame.f_back
    return codes


def format_stack(frame: FrameType | None, last: FrameType | None = None) -> tuple[str, ...]:
    """Return the lines from a frame outwards, up to the last one exclusively, without frames of the tool."""
    lines = []
    while frame is not None and frame is not last:
        path = frame.f_code.co_filename
        line = frame.f_lineno
        if path == _LAUNCHER:
            break
        if not path.startswith(_TOOL) and not is_replacement(frame.f_code):
            source = linecache.getline(path, line, frame.f_globals).strip()
            lines.append(f"File {path}, line {line}, in {frame.f_code.co_name}, \n {source}")
        frame = frame.f_back
    return tuple(lines)
