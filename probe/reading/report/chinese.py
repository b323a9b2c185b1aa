# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The sentences of findings in Chinese, for the page of ``probe report``.

The English sentence is made where the finding is made. ``page/sentences.json`` has its form, with the changing parts in
braces, and the first row that fits the whole of a sentence decides. A part that is a sentence itself is translated too.
A sentence without a row stays English.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

#: a part in braces -> its pattern; all others are any text
_PARTS = {
    "numbers": r"(?:: (?:shape |rel_l2 |other bits|Max |Min |Mean |Norm ).*\(\w+\))?", "when": r"(?: in step \d+)?",
    "side": "[AB]", "lacks": "[AB]", "gets": "[AB]", "step": r"\d+", "next": r"\d+", "count": r"\d+",
    "sentence": ".+", "verb": "is|are", "nan": "NaN|-?Inf", "number": r"\w+", "value": r"\S+",
}  # fmt: skip
_ANY = "[^;]+?"
_MOST, _LONGEST = 8, 1000


def chinese(sentence: str, depth: int = 0) -> str:
    """Return a sentence of a finding in Chinese; English where it is not known.

    Args:
        sentence: the sentence.
        depth: in how many sentences it stands.

    >>> chinese("B is the transpose of A's"), chinese("something else")
    ('B 是 A 的转置', 'something else')
    """
    if depth >= _MOST or len(sentence) > _LONGEST:
        return sentence
    for pattern, form in _rows():
        found = pattern.fullmatch(sentence)
        if found:
            parts = {key: part or "" for key, part in found.groupdict().items()}
            return form.format(
                **{
                    key: chinese(part, depth + 1) if key == "sentence" else _word(key, part)
                    for key, part in parts.items()
                }
            )
    for mark, sign in table()["marks"]:
        clauses = sentence.split(mark)
        said = [chinese(clause, depth + 1) for clause in clauses] if len(clauses) > 1 else clauses
        if said != clauses:
            return str(sign).join(said)
    return sentence


def _word(key: str, text: str) -> str:
    """Return a part of a sentence: a place, a step, numbers and ranks have Chinese words, and names stay."""
    if key in ("numbers", "groups"):
        for pattern, form in table()[key]:
            text = re.sub(pattern, form, text)
        return text
    for pattern, form in table()["words"]:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, form, text)
    return text


@functools.lru_cache(1)
def table() -> dict[str, list[list[str]]]:
    """Return the table: the forms of sentences, and words in them."""
    found: dict[str, list[list[str]]] = json.loads(
        (Path(__file__).parent / "page" / "sentences.json").read_text(encoding="utf-8")
    )
    return found


@functools.lru_cache(1)
def _rows() -> list[tuple[re.Pattern[str], str]]:
    found = []
    for english, form in table()["sentences"]:
        pieces = re.split(r"\{(\w+)\}", english)
        named = [
            f"(?P<{piece}>{_PARTS.get(piece, _ANY)})" if number % 2 else re.escape(piece)
            for number, piece in enumerate(pieces)
        ]
        found.append((re.compile("".join(named)), form))
    return found
