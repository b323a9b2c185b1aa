# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs a script of tests/programs/ranks on several ranks."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support import msrun
from tests.support.paths import ROOT

PROGRAMS = ROOT / "tests" / "programs" / "ranks"


def launch(script, ranks, folder, *arguments, limit=600, dies=False, python=sys.executable):
    """Run a script of tests/programs/ranks on so many ranks, by this interpreter; return the texts of their logs.

    Raises:
        AssertionError: when it fails (or, with ``dies``, when it does not) or hangs; the logs are in the message.
    """
    words = [PROGRAMS / script, Path(folder), *arguments]
    job = msrun.run(ranks, folder, *words, dies=dies, limit=limit, python=python)
    assert job.status == int(dies), job.words()
    return job.logs
