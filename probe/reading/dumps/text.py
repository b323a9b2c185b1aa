# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Text for people: safe for a terminal, in columns, as wide as there is room."""

from __future__ import annotations

import html
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_UNITS = ("B", "kB", "MB", "GB", "TB")


def safe(value: object) -> str:
    r"""Return a text of a dump in which nothing can steer a terminal or reverse the direction of reading.

    >>> print(safe("relu\x1b[2J"), safe("a\u202eb"))
    relu\x1b[2J a\u202eb
    """
    text = value if isinstance(value, str) else str(value)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return (
        f"\\x{ord(letter):02x}"
        if letter.isascii()
        else letter.encode("ascii", "backslashreplace").decode("ascii")
    )


def csv_text(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula.

    >>> csv_text("=cmd()"), csv_text("relu")
    ("'=cmd()", 'relu')
    """
    text = safe(text)
    return "'" + text if text.startswith(_FORMULA) else text


def number(value: object) -> str:
    """Return a number with six digits.

    >>> number(1.23456789), number(None), number(True), number(10**30)
    ('1.23457', '-', 'True', '1000000000000000000000000000000')
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else shorten(safe(value), 40)


def fact(value: object) -> float | str:
    """Return a number as a fact, whose form writes six digits; all else as ``number`` writes it.

    >>> fact(1.23456789), fact(float("inf")), fact(None)
    (1.23456789, 'inf', '-')
    """
    return value if isinstance(value, float) and math.isfinite(value) else number(value)


def shape(value: object) -> str:
    """Return a shape.

    >>> shape([2, 3]), shape([]), shape(None)
    ('2x3', '()', '?')
    """
    if not isinstance(value, (list, tuple)):
        return "?"
    return "x".join(safe(size) for size in value) or "()"


def size(count: float) -> str:
    """Return a number of bytes.

    >>> size(999), size(15_400_000)
    ('999 B', '15.4 MB')
    """
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count = count / 1000
        unit = unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def shorten(text: str, width: int) -> str:
    """Return a text of at most ``width`` letters, cut in its middle.

    >>> shorten("Functional.softmax.1.forward", 15)
    'Functi...orward'
    """
    if len(text) <= width:
        return text
    keep = max(width - 3, 2)
    return text[: keep - keep // 2] + "..." + text[len(text) - keep // 2 :]


def columns(lines: Sequence[Sequence[str]], width: int = 0, left: int = 1) -> str:
    """Return lines of cells in columns; the first line is the header.

    A line has ``width`` letters at most; the first column is cut, 0 cuts nothing. The first ``left`` columns stand at
    their left edge, the others at their right one.

    >>> print(columns([["name", "Max"], ["relu.0", "1.5"]]))
      name    Max
      relu.0  1.5
    """
    widths = [max(map(space, column)) for column in zip(*lines)]
    if width and widths:
        over = sum(widths) + 2 * len(widths) - width
        widths[0] = max(min(widths[0], 12), widths[0] - max(over, 0))
    made = []
    for cells in lines:
        parts = [_cut(cell, size) for cell, size in zip(cells[:left], widths)]
        parts += [
            " " * (size - space(cell)) + cell for cell, size in zip(cells[left:], widths[left:])
        ]
        made.append("  " + "  ".join(parts).rstrip())
    return "\n".join(made)


def space(text: str) -> int:
    """Return how much room a text needs on a terminal: a Chinese letter is as wide as two others.

    >>> space("Cell"), space("张量")
    (4, 4)
    """
    return len(text) + (
        0
        if text.isascii()
        else sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    )


def _cut(cell: str, size: int) -> str:
    """Return a cell that needs exactly this room."""
    letters = size
    shown = shorten(cell, size)
    while space(shown) > size and letters > 1:
        letters -= 1
        shown = shorten(cell, letters)
    return shown + " " * (size - space(shown))


def fit(lines: str, width: int) -> str:
    """Return lines of which none is longer than ``width``; 0 cuts nothing."""
    return "\n".join(shorten(line, width) for line in lines.split("\n")) if width else lines


def terminal_width() -> int:
    """Return how many letters a line on the terminal has; 0 where stdout is no terminal."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (OSError, ValueError, AttributeError):
        return 0


def html_table(rows: Iterable[Sequence[object]], most: int = 50) -> str:
    """Return at most ``most`` rows as a table for a notebook; the first cell of a row is its title.

    >>> html_table([("a", "<b>"), ("c", 1)], most=1)
    '<table><tr><th>a</th><td>&lt;b&gt;</td></tr><tr><th>...</th></tr></table>'
    """
    lines = []
    for count, row in enumerate(rows):
        if count == most:
            lines.append("<tr><th>...</th></tr>")
            break
        title, *cells = (html.escape(safe(cell)) for cell in row)
        lines.append(f"<tr><th>{title}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"
