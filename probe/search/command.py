# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The command ``probe find``: what is on disk, or a program as Python is given it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.wording import Wording
from probe.launch.command import count_of_options
from probe.options import OneLineParser, asked_language
from probe.reading.commands.arguments import add_options
from probe.reading.commands.command import Option
from probe.reading.commands.main import ended
from probe.reading.commands.shared_options import LANGUAGE
from probe.reading.dumps.text import safe
from probe.search import NAME
from probe.search.answer import Diagnosis
from probe.search.disk_answer import diagnosis_of
from probe.search.on_disk import look

_JSON = Option(
    "--json",
    action="store_true",
    help=Wording("write the answer as JSON", "把回答写成 JSON"),
)
_PATHS = Option(
    "paths",
    nargs="+",
    metavar=("DIR", "GOLDEN"),
    help=Wording("a dump_path, and that of a golden run", "dump_path，以及标杆运行的 dump_path"),
)


def main(words: Sequence[str]) -> int:
    """Run the command; return its exit status: 0 nothing found, 1 something, 2 wrong use or it cannot be known."""
    language = asked_language(words)
    parser = _parser(language)
    count = count_of_options(words[1:], parser) + 1
    if not words[count:]:
        parser.parse_args(words[1:])
        parser.error(say("find.no_input"))
    add_options(parser, [_PATHS], language)
    given = parser.parse_args(words[1:])
    return ended(lambda: _of_disk(given), 2, language)


def _parser(language: str) -> OneLineParser:
    usage = say("help.find_usage").text(language)
    about = say("help.find_long").text(language)
    parser = OneLineParser(
        prog=f"probe {NAME}", usage=usage, description=about, allow_abbrev=False, language=language
    )
    add_options(parser, [_JSON, LANGUAGE], language)
    return parser


def _of_disk(given: argparse.Namespace) -> int:
    """Answer about what is on disk."""
    if len(given.paths) > 2:
        raise UsageError(say("find.too_many"))
    path, golden = [*given.paths, ""][:2]
    seen = look(path, golden)
    return tell(diagnosis_of(seen, path, golden), given)


def tell(found: Diagnosis, given: argparse.Namespace) -> int:
    """Print the answer; return the exit status."""
    if given.json:
        print(json.dumps(found.to_dict(), indent=1))
        return found.status
    for line in found.lines():
        print(safe(line.text(given.lang)))
    return found.status
