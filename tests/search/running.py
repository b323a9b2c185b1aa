# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs ``probe find`` on programs of the tests."""

from __future__ import annotations

import json

from tests.support.launched import start
from tests.support.schemas import validate


def find(folder, *words, variables=None, **programs):
    """Write programs into a folder, and run the command there with JSON; return the process and its lines."""
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)
    done = start(folder, "-m", "probe", "find", "--json", *words, variables=variables)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        validate("find", line)
    return done, lines


def outcomes(lines):
    """Return experiment -> outcome."""
    return {line["experiment"]: line["outcome"] for line in lines[:-1]}
