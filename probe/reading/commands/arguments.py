# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Adds commands and options to argparse; and reads the arguments that several commands share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import locale_language, say
from probe.reading.commands.command import Command, Exclusive, Option, OptionRow
from probe.reading.dumps.names import Names
from probe.reading.dumps.text import shorten
from probe.reading.dumps.work import Workers

#: the number of rows that are shown unless the user asks for another
ROWS = 40
#: defaults that say nothing, or that the help itself describes
_PLAIN: tuple[Any, ...] = (None, "", 0, -1, "-")


def add_command(commands: Any, command: Command, language: str) -> None:
    """Add a command, with its help in a language."""
    parser = commands.add_parser(
        command.name,
        help=command.help.text(language),
        description=command.description.text(language),
        epilog=command.epilog.text(language) if command.epilog else None,
    )
    add_options(parser, command.options, language)
    parser.set_defaults(run=command.run, failed=command.failed)


def add_options(
    parser: argparse._ActionsContainer, rows: Iterable[OptionRow], language: str
) -> None:
    """Add options, with their help in a language."""
    for row in rows:
        if isinstance(row, Exclusive):
            add_options(parser.add_mutually_exclusive_group(), row.options, language)
        else:
            _add_option(parser, row, language)


def _add_option(parser: argparse._ActionsContainer, option: Option, language: str) -> None:
    default = language if option.is_language else option.default
    given: dict[str, Any] = {
        "action": option.action,
        "nargs": option.nargs,
        "type": option.type,
        "const": option.const,
        "default": [] if option.action == "append" else default,
        "dest": option.dest,
        "choices": option.choices,
        "metavar": option.metavar,
        "required": option.is_required or None,  # positional arguments refuse the word
        "help": _help_of(option, language),
    }
    spellings = [option.name] if option.short is None else [option.short, option.name]
    # argparse refuses some of these names beside some actions, even as None
    parser.add_argument(
        *spellings, **{name: value for name, value in given.items() if value is not None}
    )


def _help_of(option: Option, language: str) -> str:
    """Return the help of an option; a default that is a word or a number is said behind it."""
    if option.help is None:
        return argparse.SUPPRESS
    told = option.help.text(language)
    default = option.default
    if default in _PLAIN:
        return told
    shown = f"{default:g}" if type(default) is float else default
    return say("help.default", help=told, value=shown).text(language)


def workers(given: argparse.Namespace) -> Workers:
    """Return the processes that the user asks for."""
    return Workers(max(given.jobs, 0), given.scheduler, given.lang or locale_language())


def names(given: argparse.Namespace, default: str = "") -> Names:
    """Return the names that the user asks for; ``default`` is a part of the name where nothing is asked.

    Raise UsageError where the regular expression is none.
    """
    is_asked = given.name is not None or given.regex or given.cell
    chosen = Names((given.name or "") if is_asked else default, given.regex, given.cell)
    chosen.check()
    return chosen


def read_thresholds(path: str | None, rules: Iterable[str]) -> dict[str, float]:
    """Return the thresholds in a JSON file, {} without one; raise UsageError when it is broken or names no rule."""
    from probe.reading.dumps.document import read_document

    given = read_document(path) if path else {}
    allowed = list(rules)
    for name, value in given.items():
        if name not in allowed:
            raise UsageError(say("error.rule", name=name, allowed=allowed))
        if type(value) not in (int, float):
            raise UsageError(
                say("error.rule_value", name=name, value=shorten(json.dumps(value), 60))
            )
    return given
