# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Findings of the guards, which a training has written while it ran: the lines of findings.jsonl."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from probe.findings.finding import Finding
from probe.findings.sentence import Sentence, table
from probe.store import layout
from probe.store.layout import Rank

_FOLDER = re.compile(r"step(\d+)[/\\]rank(\d*)$")


@dataclass(frozen=True)
class GuardFinding(Finding):
    """A finding of a guard.

    Attributes:
        step: its step; None where the folder's name does not say.
        rank: its rank; None where communication was not initialised.
        folder: the folder of the step.
        said: one sentence about it.
    """

    step: int | None
    rank: Rank
    folder: str
    said: Sentence


def guard_findings(path: str) -> list[GuardFinding]:
    """Return the findings in a folder and below it, in the order of steps and ranks.

    Lines that cannot be read are left out: a killed process may leave half of one.

    Args:
        path: a dump_path, or a step or rank folder in it.
    """
    found = [one for folder, _, files in os.walk(path) if layout.FINDINGS in files for one in _in_folder(folder)]
    return sorted(found, key=lambda one: (one.step or 0, one.rank if isinstance(one.rank, int) else -1))


def _in_folder(folder: str) -> Iterator[GuardFinding]:
    match = _FOLDER.search(os.path.abspath(folder))
    step, rank = (int(match[1]), int(match[2]) if match[2] else None) if match else (None, None)
    with open(os.path.join(folder, layout.FINDINGS), encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                said = _sentence(json.loads(line))
                str(said)  # all facts are there
            except (ValueError, KeyError, TypeError, AttributeError, IndexError):
                continue
            yield GuardFinding(step, rank, folder, said)


def _sentence(given: Any) -> Sentence:
    """Return the sentence of its key and facts. One that this version does not know is shown in English as it is."""
    key = str(given["key"])
    if key and key not in table():
        return Sentence("text", {"text": str(given["sentence"])})
    return Sentence(key, {name: _fact(fact) for name, fact in given["facts"].items()})


def _fact(given: Any) -> Any:
    if isinstance(given, dict):
        return _sentence(given)
    return [_fact(part) for part in given] if isinstance(given, list) else given
