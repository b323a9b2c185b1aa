# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Findings that are known while the training runs: lines on the log, and of findings.jsonl."""

from __future__ import annotations

import json
import logging
import os

from probe.findings.sentence import Sentence
from probe.store import file_io, file_names
from probe.store.error_log import ErrorLog

_log = logging.getLogger("probe")

#: findings of one step on the log, and in its file
_MOST_LOGGED, _MOST_FOUND = 10, 1000


class FindingsFile:
    """Tells the findings of one step and rank."""

    def __init__(self, folder: str, errors: ErrorLog) -> None:
        self._folder, self._errors = folder, errors
        self._path = os.path.join(folder, file_names.FINDINGS)
        self._count = 0

    def tell(self, said: Sentence) -> None:
        """Write a finding as a line of the file, and the first ones on the log."""
        self._count += 1
        if self._count <= _MOST_LOGGED:
            _log.warning("%s", said)
        elif self._count == _MOST_LOGGED + 1:
            _log.warning("more findings are in %s", self._path)
        if self._count <= _MOST_FOUND:
            line = json.dumps({**said.to_dict(), "sentence": str(said)}, ensure_ascii=False)
            with self._errors.guard("writing a finding"):
                file_io.make_dirs(self._folder)
                file_io.append(self._path, line + "\n")
