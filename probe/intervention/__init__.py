# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes a training on purpose, in processes of its own: one thing, halves of a set, planted faults."""

from __future__ import annotations

from typing import Any

from probe.findings.sentence import say

SHORT = {"try": say("help.try"), "bisect": say("help.bisect"), "drill": say("help.drill")}


def add_interventions(commands: Any, language: str) -> None:
    """Name the commands in the list of commands. ``main`` runs them: their last words are the program's."""
    for name, short in SHORT.items():
        commands.add_parser(name, help=short.text(language), add_help=False)
