# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The results of a search, kept in a folder: a second start goes on with them, and does nothing twice."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.findings.system import reason_of
from probe.reading.dumps.tables import create_whole
from probe.store.file_io import make_dirs

_FILE = "state.json"


@dataclass(frozen=True)
class Result:
    """The result of one experiment.

    Attributes:
        name: the experiment.
        outcome: one of its outcomes.
        learned: what it has taught.
        seconds: how long it took.
        runs: how many runs of a training it made.
        facts: numbers and texts that later experiments need.
    """

    name: str
    outcome: str
    learned: Sentence
    seconds: float = 0.0
    runs: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        fields = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        return {**fields, "learned": self.learned.to_dict()}


class Ledger:
    """The results by the names of their experiments, in their order.

    Raise UsageError when the file of an earlier start cannot be read.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)
        self._path = os.path.join(self.folder, _FILE)
        self.results: dict[str, Result] = {}
        self.read()

    def read(self) -> None:
        """Read the results of an earlier start, if there are any."""
        if not os.path.exists(self._path):
            return
        try:
            with open(self._path, encoding="utf-8") as file:
                rows = json.load(file)
            found = [
                Result(**{**row, "learned": Sentence.from_dict(row["learned"])}) for row in rows
            ]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise UsageError(say("find.state", path=self._path, reason=reason_of(error))) from None
        self.results = {result.name: result for result in found}

    def add(self, result: Result) -> None:
        """Keep a result; raise UsageError when it cannot be written."""
        kept = {**self.results, result.name: result}
        try:
            make_dirs(self.folder)
            with create_whole(self._path) as file:
                json.dump([item.to_dict() for item in kept.values()], file, indent=1)
        except OSError as error:
            reason = reason_of(error)
            raise UsageError(say("find.folder", folder=self.folder, reason=reason)) from None
        self.results = kept

    def place(self, name: str) -> str:
        """Return the folder of an experiment."""
        return os.path.join(self.folder, name)

    def fact(self, name: str, key: str, default: Any = None) -> Any:
        """Return a fact of an experiment; the default where it was not made, or has no such fact."""
        result = self.results.get(name)
        return default if result is None else result.facts.get(key, default)
