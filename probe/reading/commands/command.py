# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A command and its options, as rows of a table; ``arguments`` makes them known to argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

from probe.findings.wording import Wording


@dataclass(frozen=True)
class Option:
    """An option, or a positional argument. The fields have the names of argparse; None is argparse's own default."""

    name: str  # "--rows", or "path" for a positional argument
    help: Wording | None = None  # None: the option works, and --help does not list it
    short: str | None = None  # a second spelling: "-o"
    action: Literal["append", "append_const", "store_const", "store_true"] | None = None
    nargs: int | Literal["?", "+"] | None = None
    type: Callable[[str], Any] | None = None
    const: str | None = None
    default: str | float | None = None
    dest: str | None = None
    choices: Sequence[str] | None = None
    metavar: str | tuple[str, ...] | None = None
    is_required: bool = False
    is_language: bool = False  # its default is the language of the help


@dataclass(frozen=True)
class Exclusive:
    """Options of which a user may give one at most."""

    options: tuple[Option, ...]


#: one row of a command
OptionRow = Union[Option, Exclusive]


@dataclass(frozen=True)
class Command:
    """A command of ``probe``."""

    name: str
    run: Callable[[argparse.Namespace], int]  # returns the exit status
    help: Wording  # the line in the list of commands
    description: Wording
    options: tuple[OptionRow, ...]  # in the order of --help
    epilog: Wording | None = None  # the exit statuses
    failed: int = 2  # the exit status after an error that the user can mend
