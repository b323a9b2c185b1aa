# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A parser of options whose errors are one line: the word, what is allowed, and the nearest right spelling."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn


class OneLineParser(argparse.ArgumentParser):
    """Says an error in one line, and ends with status 2."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words; one that no option takes is an error with the nearest option."""
        words = self._apart(sys.argv[1:] if args is None else list(args))
        own = self._option_string_actions
        if (
            words
            and words[0].startswith("-")
            and words[0].partition("=")[0] not in own
            and self._subparsers is not None
        ):
            self.error(f"there is no option {words[0]}.{hint(words[0], own)}")
        given, rest = self.parse_known_args(words, namespace)
        if rest:
            self._parser_of(given).error(self._unknown(given, rest))
        return given

    def _apart(self, words: Sequence[str]) -> list[str]:
        """Return the words; an option whose FILE may be left out does not take the first word that is read."""
        optional = {name for parser in self._parsers() for name in parser.optional_files()}
        first = next((place for place, word in enumerate(words) if _is_read(word)), 0)
        is_taken = first > 0 and words[first - 1] in optional
        return [*words[: first - 1], f"{words[first - 1]}=-", *words[first:]] if is_taken else list(words)

    def _parsers(self) -> list[OneLineParser]:
        """Return this parser, and those of its commands."""
        found = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += action.choices.values()
        return found

    def optional_files(self) -> list[str]:
        """Return the options whose file may be left out: standard output is meant then."""
        return [name for action in self._actions if action.const == "-" for name in action.option_strings]

    def _parser_of(self, given: argparse.Namespace) -> argparse.ArgumentParser:
        """Return the parser of the command that was given."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(getattr(given, action.dest, None) or "")
                if chosen is not None:
                    return chosen  # type: ignore[no-any-return]
        return self

    def _unknown(self, given: argparse.Namespace, rest: Sequence[str]) -> str:
        options = [name for action in self._parser_of(given)._actions for name in action.option_strings]
        word = next((item for item in rest if item.startswith("-")), rest[0])
        if word.startswith("-"):
            return f"there is no option {word.partition('=')[0]}.{hint(word.partition('=')[0], options)}"
        return f"{word!r} is one argument too many"

    def error(self, message: str) -> NoReturn:
        """Print one line, and exit with status 2."""
        for form, said in _forms():
            found = re.fullmatch(form, message, re.DOTALL)
            if found:
                message = said(*found.groups())
                break
        print(
            f"{self.prog}: {message}{'' if message.endswith(('.', '?')) else '.'} See {self.prog} --help",
            file=sys.stderr,
        )
        raise SystemExit(2)


def _is_read(word: str) -> bool:
    """Return whether a word names an input of a command."""
    return os.path.isdir(word) or (word.endswith(".bin") and os.path.isfile(word))


def hint(word: str, spellings: Iterable[str]) -> str:
    """Return the question for the nearest spelling, or an empty text.

    >>> hint("--jsno", ["--json", "--lang"]), hint("xyz", ["--json"])
    (' Did you mean --json?', '')
    """
    near = difflib.get_close_matches(word, list(spellings), 1, 0.5)
    return f" Did you mean {near[0]}?" if near and near[0] != word else ""


def _last(name: str) -> str:
    """Return the longest spelling of an option: "-o/--output" gives "--output"."""
    return name.rpartition("/")[2]


def _choice(name: str, word: str, allowed: str) -> str:
    choices = [item.strip().strip("'\"") for item in allowed.split(",")]
    plain = word.strip("'\"")
    if name == "COMMAND":
        return f"there is no command {plain!r}.{hint(plain, choices) or ' Allowed: ' + ', '.join(choices)}"
    return f"{_refused(name, word, ', '.join(choices))}.{hint(plain, choices)}"


def _refused(name: str, word: str, allowed: str) -> str:
    return f"{_last(name)}: {word} is not allowed. Allowed: {allowed}"


def _forms() -> tuple[tuple[str, Callable[..., str]], ...]:
    """Return the errors of argparse with ours; a group is a word of the user's."""
    return (
        (
            r"argument (.+): invalid choice: (.+?) \(choose from (.*)\)",
            _choice,
        ),
        (r"argument (.+): invalid int value: (.+)", lambda name, word: _refused(name, word, "a whole number")),
        (r"argument (.+): invalid float value: (.+)", lambda name, word: _refused(name, word, "a number")),
        (r"argument (.+): expected one argument", lambda name: f"{_last(name)} needs a value"),
        (r"argument (.+): expected (\d+) arguments", lambda name, count: f"{_last(name)} needs {count} values"),
        (r"argument (.+): expected at least one argument", lambda name: f"{_last(name)} needs a value"),
        (
            r"argument (.+): not allowed with argument (.+)",
            lambda a, b: f"{_last(a)} and {_last(b)} exclude each other",
        ),
        (r"argument (.+): ignored explicit argument (.+)", lambda name, word: f"{_last(name)} takes no value: {word}"),
        (r"the following arguments are required: (.+)", lambda names: f"{names} is missing"),
        (
            r"ambiguous option: (.+) could match (.+)",
            lambda word, several: f"{word} may be {several}: write it in full",
        ),
        (r"argument (.+): (.+)", lambda name, rest: f"{_last(name)}: {rest}"),
    )
