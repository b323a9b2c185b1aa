# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from typing import Any

#: the number of rows that are shown unless the user asks for another
ROWS = 40
PATH = "a dump_path, or a step or rank folder in it"


def add_parser(commands: Any, name: str, short: str, long: str, epilog: str = "") -> argparse.ArgumentParser:
    """Add the parser of a command.

    Args:
        commands: the commands of the command line.
        name: its name.
        short: its line in the list of commands.
        long: its description.
        epilog: the text below its options.
    """
    made: argparse.ArgumentParser = commands.add_parser(name, help=short, description=long, epilog=epilog)
    return made


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose steps and ranks."""
    parser.add_argument("--step", default="", metavar="STEPS", help="only these steps, as 0,4-6")
    parser.add_argument("--rank", default="", metavar="RANKS", help="only these ranks, as 0-7")
