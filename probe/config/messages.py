# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The wording of settings errors: values in short form, and the nearest right spelling."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import Any, NoReturn

from probe.errors import SettingsError

#: longest value, in characters, that a message shows in full
_LONGEST = 160
#: longest word for which a right spelling is searched
_LONGEST_WORD = 60
#: longest number, in digits, that a message shows in full
_LONGEST_NUMBER = 40


class _ShortRepr(reprlib.Repr):
    """Python's notation of a value, with long and deep values cut. Its size never depends on the value's."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = 6
        self.maxstring = self.maxother = 80

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to write numbers of more than 4,300 digits."""
        digits = int(x.bit_length() * 0.30103) + 1
        return repr(x) if digits <= _LONGEST_NUMBER else long_number(digits)


def long_number(digits: int) -> str:
    """Return the text that messages show in place of a long number."""
    return f"<a number of {digits} digits>"


def shorten(value: object) -> str:
    """Return a value in Python's notation, printable and at most about 160 characters long.

    >>> shorten("x" * 1000) == "'" + "x" * 37 + "..." + "x" * 38 + "'"
    True
    """
    return _cut(_ShortRepr().repr(value))


def printable(text: str) -> str:
    r"""Return a text that every UTF-8 stream can print, at most about 160 characters long.

    >>> printable("dump\ud800")
    'dump\\ud800'
    """
    return _cut(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"


def nearest(word: object, spellings: Iterable[str]) -> str:
    """Return the spelling that is nearest to a word, or an empty text."""
    if not isinstance(word, str) or len(word) > _LONGEST_WORD:
        return ""
    found = difflib.get_close_matches(word, list(spellings), n=1, cutoff=0.5)
    return found[0] if found else ""


def refuse(key: str, value: Any, allowed: str, near: object = None, spellings: Iterable[str] = ()) -> NoReturn:
    """Raise a SettingsError that names the key, the value, the allowed values and the nearest right spelling."""
    guess = nearest(near, spellings)
    hint = f" Did you mean {guess!r}?" if guess and guess != value else ""
    raise SettingsError(f"{key}: {shorten(value)} is not allowed. Allowed: {allowed}.{hint}")
