# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``probe recover``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from probe.reading.commands.arguments import PATH, add_parser


def add_recover(commands: Any) -> None:
    """Add ``probe recover``."""
    recover = add_parser(
        commands,
        "recover",
        "write the documents that a dead process could not",
        "Turn the journals that a dead process left into dump.json, stack.json and construct.json.",
    )
    recover.add_argument("path", help=PATH)
    recover.set_defaults(run=run_recover)


def run_recover(given: argparse.Namespace) -> int:
    """Run ``probe recover``."""
    from probe.reading.dumps.recover import recover

    outcomes = recover(given.path)
    for outcome in outcomes:
        print(outcome.text, file=sys.stdout if outcome.well else sys.stderr)
    return int(not all(outcome.well for outcome in outcomes))
