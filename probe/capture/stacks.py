# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Finds where in the user's code a call was made; formats each distinct stack once."""

from __future__ import annotations

import linecache
import os
from types import CodeType, FrameType

_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: the parts of MindSpore that stand between a Cell's caller and its hooks
_CELL_MACHINERY = (os.path.join("mindspore", "nn", "cell.py"), "check_jit_forbidden_api.py")


_MOST = 10_000


class Stacks:
    """Distinct stacks, numbered from 0 in the order they were first seen."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}
        self._codes: list[list[CodeType]] = []  # held, so that no other code takes over an identity
        self._texts: dict[tuple[str, ...], int] = {}

    def number(self, frame: FrameType | None) -> int:
        """Return the number of the stack that begins at this frame, innermost first, without the tool's own frames."""
        while frame is not None and frame.f_code.co_filename.startswith(_TOOL):
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.endswith(_CELL_MACHINERY):
            frame = frame.f_back
        innermost = frame
        parts: list[int] = []
        codes: list[CodeType] = []
        while frame is not None:
            code = frame.f_code
            codes.append(code)
            parts.append(id(code))
            parts.append(frame.f_lasti)
            frame = frame.f_back
        key = tuple(parts)
        number = self._numbers.get(key)
        if number is None:
            if len(self._codes) >= _MOST:  # code that is made anew all the time
                self._numbers.clear()
                self._codes.clear()
            self._codes.append(codes)
            text = _format(innermost)
            number = self._numbers[key] = self._texts.setdefault(text, len(self._texts))
        return number

    def texts(self) -> list[tuple[str, ...]]:
        """Return the formatted stacks in the order of their numbers."""
        return list(self._texts)


def _format(frame: FrameType | None) -> tuple[str, ...]:
    lines = []
    while frame is not None:
        path, line = frame.f_code.co_filename, frame.f_lineno
        source = "" if path.startswith(_TOOL) else linecache.getline(path, line, frame.f_globals).strip()
        if source:
            lines.append(f"File {path}, line {line}, in {frame.f_code.co_name}, \n {source}")
        frame = frame.f_back
    return tuple(lines)
