# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A sentence is a key and facts. The table ``sentences.json`` has its English and its Chinese form.

A form has the facts in braces, with Python's format of numbers: ``{left:.4g}``. Text is made at the very end, for a
terminal, a page or JSON. Until then sentences are passed on as facts, and no text is searched or changed. A finding has
fields, and one sentence about them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ENGLISH, CHINESE = LANGUAGES = ("en", "zh")
#: keys that join the sentences in their fact ``parts``, with the form as the mark between them
_JOINS = frozenset(("clauses", "list"))


@dataclass(frozen=True)
class Sentence:
    """One sentence, or a part of one.

    Attributes:
        key: its row in the table; "" for no sentence, which is false and has no text.
        facts: name -> a text, a number, another sentence, or a list of these.

    >>> str(say("compare.transposed"))
    "B is the transpose of A's"
    >>> say("compare.transposed").text("zh")
    'B 是 A 的转置'

    Raises:
        KeyError: when the table has no such key.
    """

    key: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.key and self.key not in table():
            raise KeyError(self.key)

    def __hash__(self) -> int:
        return hash((self.key, str(self)))

    def __bool__(self) -> bool:
        return bool(self.key)

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def text(self, language: str) -> str:
        """Return the sentence in a language: "en" or "zh"."""
        if not self.key:
            return ""
        form = table()[self.key][LANGUAGES.index(language)]
        if self.key in _JOINS:
            return form.join(str(_shown(part, language)) for part in self.facts["parts"])
        return _FORMS.vformat(
            form, (), {name: _shown(fact, language) for name, fact in self.facts.items()}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return key and facts as values of JSON; sentences in it are such objects too."""
        return {"key": self.key, "facts": as_json(self.facts)}

    @classmethod
    def from_dict(cls, given: Any) -> Sentence:
        """Return the sentence that ``to_dict`` has made values of.

        >>> Sentence.from_dict(say("list", parts=[NOTHING, 2]).to_dict())
        Sentence(key='list', facts={'parts': [Sentence(key='', facts={}), 2]})

        Raise KeyError when the table has no such key, TypeError when it is no sentence.
        """
        is_right = (
            isinstance(given, dict)
            and set(given) == {"key", "facts"}
            and isinstance(given["facts"], dict)
        )
        if not is_right or not isinstance(given["key"], str):
            raise TypeError(f"no sentence: {given!r}")
        return cls(given["key"], {name: _read(fact) for name, fact in given["facts"].items()})


NOTHING = Sentence("")  # no sentence


def say(key: str, /, **facts: Any) -> Sentence:
    """Return a sentence, by its row in the table and its facts."""
    return Sentence(key, facts)


def said_of(error: Exception) -> Sentence | str:
    """Return the sentence that an error was raised with; its text where it has none.

    >>> said_of(ValueError(say("compare.transposed"))).text("en"), said_of(ValueError("no"))
    ("B is the transpose of A's", 'no')
    """
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Sentence) else str(error)


def clauses(*parts: Sentence) -> Sentence:
    """Return clauses as one sentence, divided by semicolons; empty ones are left out."""
    known = [part for part in parts if part]
    return known[0] if len(known) == 1 else say("clauses", parts=known) if known else NOTHING


def as_json(value: Any) -> Any:
    """Return a value as JSON has it, which has no NaN/Inf: these are texts. A sentence is its key and its facts.

    >>> as_json({"loss": float("nan"), "steps": (1, 2.5), "said": NOTHING})
    {'loss': 'nan', 'steps': [1, 2.5], 'said': {'key': '', 'facts': {}}}
    """
    if isinstance(value, Sentence):
        return value.to_dict()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def locale_language(variables: Mapping[str, str] = os.environ) -> str:
    """Return the language of the locale: "zh" where it is Chinese, else "en".

    >>> locale_language({"LANG": "zh_CN.UTF-8"}), locale_language({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"})
    ('zh', 'en')
    """
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    chosen = next((variables[name] for name in names if variables.get(name)), "")
    return CHINESE if chosen.lower().startswith("zh") else ENGLISH


@functools.lru_cache(1)
def table() -> dict[str, list[str]]:
    """Return the table: key -> the English form, the Chinese form."""
    found: dict[str, list[str]] = json.loads(
        (Path(__file__).parent / "sentences.json").read_text(encoding="utf-8")
    )
    return found


class _Forms(string.Formatter):
    """Formats facts; a text in the place of a number stays as it is."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Return a fact as its place in the sentence asks for it."""
        return value if isinstance(value, str) else super().format_field(value, format_spec)


_FORMS = _Forms()


def _shown(fact: Any, language: str) -> Any:
    if isinstance(fact, Sentence):
        return fact.text(language)
    return say("list", parts=fact).text(language) if isinstance(fact, (list, tuple)) else fact


def _read(fact: Any) -> Any:
    if isinstance(fact, dict):
        return Sentence.from_dict(fact)
    return [_read(part) for part in fact] if isinstance(fact, list) else fact


class Finding:
    """Something that is told to the user. A kind of finding is a dataclass derived from this."""

    said: Sentence  # one sentence about it

    @property
    def sentence(self) -> str:
        """The sentence in English."""
        return str(self.said)

    def to_dict(self) -> dict[str, Any]:
        """Return its fields, the English sentence, and the key and the facts of the sentence, for JSON."""
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)  # type: ignore[arg-type]  # each kind is a dataclass
            if field.name != "said"
        }
        return {**fields, "sentence": self.sentence, **self.said.to_dict()}
