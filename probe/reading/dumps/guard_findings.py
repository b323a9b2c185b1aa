# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Findings of the guards, which a training has written while it ran: the lines of findings.jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from probe.findings.finding import Finding
from probe.findings.sentence import Sentence, say
from probe.store import file_names
from probe.store.file_names import Rank


@dataclass(frozen=True)
class GuardFinding(Finding):
    """A finding of a guard."""

    step: int | None  # None where the folder's name does not say
    rank: Rank  # None where communication was not initialised
    folder: str  # the folder of the step and rank
    said: Sentence


def guard_findings(path: str) -> list[GuardFinding]:
    """Return the findings in a folder and below it, in the order of steps and ranks.

    Lines that cannot be read are left out: a killed process may leave half of one.

    Args:
        path: a dump_path, or a step or rank folder in it.
    """
    found = [one for folder, _, files in os.walk(path) if file_names.FINDINGS in files for one in _in_folder(folder)]
    return sorted(found, key=lambda one: (one.step or 0, one.rank if isinstance(one.rank, int) else -1))


def _in_folder(folder: str) -> Iterator[GuardFinding]:
    above, name = os.path.split(os.path.abspath(folder))
    step, rank = file_names.step_of(os.path.basename(above)), file_names.rank_of(name)
    with open(os.path.join(folder, file_names.FINDINGS), encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                said = _sentence(line)
            except (ValueError, KeyError, TypeError, IndexError):
                continue
            yield GuardFinding(step, rank, folder, said)


def _sentence(line: str) -> Sentence:
    """Return the sentence of a line. One that this version does not know is shown in English as it is."""
    given = json.loads(line)
    try:
        said = Sentence.from_dict({"key": given["key"], "facts": given["facts"]})
        str(said)  # all facts are there
    except KeyError:
        return say("guard.other", text=str(given["sentence"]))
    return said
