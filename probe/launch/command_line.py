# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A command line with a program: its options stand before the program, and all words behind that are the program's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from probe.findings.sentence import say


def count_of_options(words: Sequence[str], parser: argparse.ArgumentParser) -> int:
    """Return how many words are options and their values. All behind them are the program's."""
    sizes = {name: action.nargs for action in parser._actions for name in action.option_strings}
    count = 0
    while count < len(words) and (words[count].startswith("--") or words[count] in sizes):
        size = sizes.get(words[count])
        count += 1 + (size if isinstance(size, int) else "=" not in words[count] and size != "?")
    return count


def split_program(words: Sequence[str]) -> tuple[str, str, list[str]]:
    """Return the path of a program, or its module, and its own words. Both are "" where no program is given.

    >>> split_program(["train.py", "--lr", "0.1"]), split_program(["-m", "train"])
    (('train.py', '', ['--lr', '0.1']), ('', 'train', []))
    """
    rest = list(words)
    if rest and rest[0].startswith("-m"):
        module = rest.pop(0)[2:] or (rest.pop(0) if rest else "")
        return "", module, rest
    path = rest.pop(0) if rest else ""
    return path, "", rest


def tell_of_options_behind(
    rest: Sequence[str], parser: argparse.ArgumentParser, program: str, language: str
) -> None:
    """Say which options of a command stand behind the program, and so are the program's.

    Args:
        rest: the words of the program.
        parser: the parser of the command.
        program: the program, as its user has given it.
        language: the language of the line.
    """
    own = {
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    found = [word for word in rest if word.partition("=")[0] in own - {"--help"}]
    if found:
        said = say("run.behind", options=found, program=program, command=parser.prog)
        print(f"probe: {said.text(language)}", file=sys.stderr)
