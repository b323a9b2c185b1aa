# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Findings of the guards, which a training has written while it ran: the lines of findings.jsonl."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass

from probe.door import open_text
from probe.findings.finding import Finding
from probe.findings.sentence import Sentence, say
from probe.store import file_names
from probe.store.file_names import Rank


@dataclass(frozen=True)
class GuardFinding(Finding):
    """A finding of a guard."""

    step: int | None  # None where the folder's name does not say
    rank: Rank  # None where communication was not initialised
    said: Sentence
    kind: str = "guard"

    @property
    def told(self) -> Sentence:
        """The sentence with its step and rank."""
        if self.step is None:
            return self.said
        if self.rank is None:
            return say("guard.in_step", step=self.step, said=self.said)
        return say("guard.on_rank", step=self.step, rank=self.rank, said=self.said)


def guard_findings(path: str) -> list[GuardFinding]:
    """Return the findings in a folder and below it, in the order of steps and ranks.

    Args:
        path: a dump_path, or a step or rank folder in it.
    """
    found = []
    for folder, _, files in os.walk(path):
        if file_names.FINDINGS in files:
            above, name = os.path.split(os.path.abspath(folder))
            step, rank = file_names.step_of(os.path.basename(above)), file_names.rank_of(name)
            found += [GuardFinding(step, rank, said) for said in in_folder(folder)]
    return sorted(found, key=lambda one: (one.step or 0, one.rank if isinstance(one.rank, int) else -1))


def in_folder(folder: str) -> tuple[Sentence, ...]:
    """Return the findings in the folder of one step and rank.

    Lines that cannot be read are left out: a killed process may leave half of one.
    """
    found: list[Sentence] = []
    path = os.path.join(folder, file_names.FINDINGS)
    with contextlib.suppress(OSError), open_text(path, errors="replace") as file:
        for line in file:
            with contextlib.suppress(ValueError, KeyError, TypeError, IndexError, RecursionError):
                found.append(_sentence(line))
    return tuple(found)


def _sentence(line: str) -> Sentence:
    """Return the sentence of a line. One that this version does not know is shown in English as it is."""
    given = json.loads(line)
    try:
        said = Sentence.from_dict({"key": given["key"], "facts": given["facts"]})
        str(said)  # all facts are there
    except KeyError:
        return say("guard.other", text=str(given["sentence"]))
    return said
