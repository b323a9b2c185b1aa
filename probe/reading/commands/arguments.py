# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands and their arguments, as commands.json has them; and arguments that several commands share."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import LANGUAGES, locale_language, say
from probe.naming import NARROWER
from probe.reading.dumps.names import Names
from probe.reading.dumps.text import shorten
from probe.reading.dumps.work import Workers

#: the help of an older spelling: it works, and --help does not list it
HIDDEN = "hidden"
#: the number of rows that are shown unless the user asks for another
ROWS = 40
_NONE = ("", "")
#: defaults that say nothing, or that the help itself describes
_PLAIN: tuple[Any, ...] = (None, "", 0, -1, "-", [])


@functools.lru_cache(1)
def _table() -> dict[str, Any]:
    """Return the table of commands; under "shared" the arguments that several have."""
    found: dict[str, Any] = json.loads(
        (Path(__file__).parent / "commands.json").read_text(encoding="utf-8")
    )
    return found


def add_commands(
    commands: Any, runs: Mapping[str, Callable[[argparse.Namespace], int]], language: str
) -> None:
    """Add commands of the table, with their help in a language; each runs the function of its name."""
    for name, run in runs.items():
        row = _table()[name]
        texts = {
            key: _in(language, row.get(key, _NONE)) for key in ("help", "description", "epilog")
        }
        parser = commands.add_parser(name, **texts)
        _add(parser, row["arguments"], language)
        parser.set_defaults(run=run, failed=row.get("failed", 1))


def add_shared(parser: argparse._ActionsContainer, group: str, language: str) -> None:
    """Add arguments that several commands share, such as "language"."""
    _add(parser, _table()["shared"][group], language)


def _in(language: str, pair: Sequence[str]) -> str:
    """Return that of two texts which is in a language."""
    return pair[LANGUAGES.index(language)]


def _add(parser: argparse._ActionsContainer, rows: Iterable[Any], language: str) -> None:
    words = {"{locale}": language, "{narrower}": NARROWER, "{kept}": argparse.SUPPRESS}
    for row in rows:
        if isinstance(row, str):
            add_shared(parser, row[1:], language)
            continue
        if isinstance(row, list):  # of which one at most may be given
            _add(parser.add_mutually_exclusive_group(), row, language)
            continue
        given: dict[str, Any] = {key: words.get(str(value), value) for key, value in row.items()}
        given["help"] = argparse.SUPPRESS if row["help"] == HIDDEN else _help_of(row, language)
        if "type" in row:
            given["type"] = {"int": int, "float": float}[row["type"]]
        if type(row.get("metavar")) is list:
            given["metavar"] = tuple(row["metavar"])  # argparse takes no list
        parser.add_argument(*given.pop("flags").split(), **given)


def _help_of(row: Mapping[str, Any], language: str) -> str:
    """Return the help of an option; a default that is a word or a number is said behind it."""
    told = _in(language, row["help"]).replace("{narrower}", ", ".join(NARROWER))
    default = row.get("default")
    is_said = default in _PLAIN or str(default).startswith("{")
    if is_said:
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
