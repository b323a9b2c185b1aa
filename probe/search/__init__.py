# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe find``: from the symptom of a training to its cause, by experiments, or by what is on disk alone."""

from __future__ import annotations

from typing import Any

from probe.findings.sentence import say

NAME = "find"


def add_find(commands: Any, language: str) -> None:
    """Name the command in the list of commands. ``main`` runs it: its last words may be a program's."""
    commands.add_parser(NAME, help=say("help.find").text(language), add_help=False)
