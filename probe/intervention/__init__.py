# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes a training on purpose, in processes of its own: one thing, halves of a set, planted faults."""

from __future__ import annotations

from typing import Any

SHORT = {"try": "one thing changed, loss by loss beside the unchanged run",
          "bisect": "the smallest set of Cells or calls whose change matters",
          "drill": "faults are planted: who names them?"}  # fmt: skip


def add_interventions(commands: Any) -> None:
    """Name the commands in the list of commands. ``main`` runs them: their last words are the program's."""
    for name, short in SHORT.items():
        commands.add_parser(name, help=short, add_help=False)
