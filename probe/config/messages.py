# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The wording of settings errors: values in short form, the nearest right spelling, and the place."""

from __future__ import annotations

import contextlib
import difflib
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from probe.errors import SettingsError
from probe.findings.sentence import NOTHING, Sentence, said_of, say
from probe.findings.system import foreign, reason_of

_LONGEST = 160  # longest text, in characters, that a message shows in full
#: errors of Python that a file, or a value of a wrong kind or size, can cause
_CAUSED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class _ShortRepr(reprlib.Repr):
    """Python's notation of a value, with long and deep values cut. Its size never depends on the value's."""

    #: Python refuses to write numbers of more than 4,300 digits; this one then writes the kind of the value
    repr_int = reprlib.Repr.repr_instance

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = 80
        self.maxother = 80


def shorten(value: object) -> str:
    """Return a value in Python's notation, printable and at most about 160 characters long.

    >>> shorten("x" * 1000) == "'" + "x" * 37 + "..." + "x" * 38 + "'"
    True
    """
    return printable(_ShortRepr().repr(value))


def printable(text: str) -> str:
    r"""Return a text that every UTF-8 stream can print, at most about 160 characters long.

    >>> printable("dump\ud800")
    'dump\\ud800'
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}...{text[-_LONGEST // 2 :]}"


def nearest(word: object, spellings: Iterable[str]) -> str:
    """Return the spelling that is nearest to a word, or an empty text."""
    found = (
        difflib.get_close_matches(word, spellings, 1, 0.5)
        if isinstance(word, str) and len(word) < 60
        else []
    )
    return found[0] if found else ""


def refuse(
    key: str, value: Any, allowed: Sentence | str, spellings: Iterable[str] = ()
) -> NoReturn:
    """Raise a SettingsError that names the key, the value, the allowed values and the nearest right spelling."""
    guess = nearest(value, spellings)
    hint = say("option.hint", word=repr(guess)) if guess not in ("", value) else NOTHING
    said = say("settings.refused", key=key, value=shorten(value), allowed=allowed, hint=hint)
    raise SettingsError(said)


@contextlib.contextmanager
def errors_about(place: str) -> Iterator[None]:
    """Put a place in front of every settings error. Errors of Python become one too: no file may end a training."""
    try:
        yield
    except SettingsError as error:
        error.args = (_at(place, said_of(error)),)
        raise
    except OSError as error:
        raise SettingsError(_at(place, say("settings.unread", reason=reason_of(error)))) from error
    except _CAUSED as error:
        unused = say("settings.unused", reason=foreign(printable(repr(error))))
        raise SettingsError(_at(place, unused)) from error


def _at(place: str, said: Sentence | str) -> Sentence | str:
    """Return an error with its place in front; "" is no place."""
    return say("settings.at", place=printable(place), said=said) if place else said
