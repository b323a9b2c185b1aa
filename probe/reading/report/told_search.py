# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A search as the page shows it: the experiments in their order, and the answer behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence


class ToldExperiment(NamedTuple):
    """An experiment that was done."""

    name: str
    asks: Sentence  # its question
    learned: Sentence  # its answer
    seconds: float
    tone: str = ""  # "bad" where it has seen a fault, "good" where it excludes one, else ""


class ToldSearch(NamedTuple):
    """A search that has ended."""

    experiments: Sequence[ToldExperiment]
    answer: Sentence  # its first line
    code: Sentence = NOTHING  # the line of code; NOTHING where the cause has none
    more: Sequence[Sentence] = ()  # evidence, and the lines below it
    tone: str = "good"  # "good", "bad" or "unsure"


def told(search: ToldSearch, said: Callable[[Sentence], str]) -> dict[str, Any]:
    """Return a search as values of JSON.

    Args:
        search: the search.
        said: returns a sentence in English, and keeps its Chinese.
    """
    return {
        "experiments": [
            {
                "name": item.name,
                "asks": said(item.asks),
                "learned": said(item.learned),
                "seconds": round(item.seconds, 1),
                "tone": item.tone,
            }
            for item in search.experiments
        ],
        "answer": said(search.answer),
        "code": said(search.code).strip(),
        "more": [said(line).strip() for line in search.more],
        "tone": search.tone,
    }
