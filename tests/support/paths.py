# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Places in the repository, and how a program of the tests is run."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
#: The scheduler of msrun measures silence of a rank by the wall clock, and a step of that clock ends a healthy run.
#: A launch of the tests has its own limit of time. It sets this where all ranks are to live.
#: (MS_DISABLE_HEARTBEAT is no way out: ranks crash at their end.)
LONG_SILENCE = {"MS_NODE_TIMEOUT": "86400"}  # seconds


def program(name, *arguments, python=sys.executable):
    """Return the command for a program of tests/programs, to be run with ``cwd=ROOT``."""
    return [str(python), "-m", f"tests.programs.{name}", *map(str, arguments)]


def environment(**variables):
    """Return the environment of a process that imports probe and the tests from here, wherever it runs."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **variables}


def make_targets(file):
    """Return the targets of a make file, by their names, in order."""
    return re.findall(r"^([a-z0-9-]+):", (ROOT / file).read_text("utf-8"), re.MULTILINE)
