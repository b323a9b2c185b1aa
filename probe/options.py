# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A parser of options in the user's language. An error is one line: the word, what is allowed, the nearest spelling."""

from __future__ import annotations

import argparse
import difflib
import functools
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from probe.findings.sentence import (
    CHINESE,
    ENGLISH,
    LANGUAGES,
    NOTHING,
    Sentence,
    locale_language,
    say,
)

_LANG = "--lang"


def in_place(words: Sequence[str]) -> list[str]:
    """Return the words of a command; the language in front of the command goes behind its name.

    >>> in_place(["--lang", "zh", "nan", "dump"]), in_place(["--lang=zh", "--help"])
    (['nan', '--lang', 'zh', 'dump'], ['--lang=zh', '--help'])
    """
    count = next((size for size in (2, 1) if _has_language(words[:size], size)), 0)
    rest = list(words[count:])
    if not count or not rest or rest[0].startswith("-"):
        return list(words)
    return [rest[0], *words[:count], *rest[1:]]


def _has_language(words: Sequence[str], size: int) -> bool:
    """Return whether these words are the option of the language, in two words or in one."""
    return words[:1] == [_LANG] if size == 2 else bool(words) and words[0].startswith(f"{_LANG}=")


def asked_language(words: Sequence[str]) -> str:
    """Return the language that words of a command ask for, else that of the locale; options alone are looked at.

    >>> asked_language(["nan", "dump", "--lang", "zh"]), asked_language(["run", "--lang=zh", "train.py"])
    ('zh', 'zh')
    """
    is_program = bool(words) and words[0] in ("run", "try", "bisect", "drill", "find")
    end = next(
        (place for place, word in enumerate(words) if is_program and _begins_program(word)),
        len(words),
    )
    own = list(words[:end])
    pairs = zip(own, [*own[1:], ""])
    found = [
        word.partition("=")[2] or following
        for word, following in pairs
        if word.partition("=")[0] == _LANG
    ]
    return next(
        (language for language in reversed(found) if language in LANGUAGES), locale_language()
    )


def _begins_program(word: str) -> bool:
    return word.endswith(".py") or word.startswith("-m")


class _Help(argparse.HelpFormatter):
    """Writes the help in a language."""

    def __init__(self, prog: str, language: str = ENGLISH, **given: Any) -> None:
        super().__init__(prog, **given)
        self._language = language

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Add the line of the usage."""
        super().add_usage(
            usage,
            actions,
            groups,
            say("help.usage").text(self._language) if prefix is None else prefix,
        )

    def start_section(self, heading: str | None) -> None:
        """Begin a section; those that argparse has itself get a heading in the language."""
        if heading == "positional arguments":
            heading = say("help.positionals").text(self._language)
        elif heading in ("options", "optional arguments"):  # the second before Python 3.10
            heading = say("help.options").text(self._language)
        super().start_section(heading)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Return lines; a Chinese letter is two columns wide."""
        return textwrap.wrap(
            " ".join(text.split()), width // 2 if self._language == CHINESE else width
        )

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = self._split_lines(text, width - len(indent))
        return "\n".join(indent + line for line in lines)


class OneLineParser(argparse.ArgumentParser):
    """Says an error in one line, and ends with status 2."""

    def __init__(self, language: str = ENGLISH, add_help: bool = True, **given: Any) -> None:
        given["formatter_class"] = functools.partial(_Help, language=language)
        given["add_help"] = False  # its help is in the language
        super().__init__(**given)
        self.language = language
        if add_help:
            told = say("help.help").text(language)
            self.add_argument("-h", "--help", action="help", default=argparse.SUPPRESS, help=told)

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
            self.error(say("option.none", option=words[0], hint=hinted(words[0], own)))
        given, rest = self.parse_known_args(words, namespace)
        if rest:
            parser = self._parser_of(given)
            parser.error(parser._unknown(rest))
        return given

    def _apart(self, words: Sequence[str]) -> list[str]:
        """Return the words; an option whose FILE may be left out does not take the first word that is read."""
        optional = {name for parser in self._parsers() for name in parser.optional_files()}
        first = next((place for place, word in enumerate(words) if _is_read(word)), 0)
        is_taken = first > 0 and words[first - 1] in optional
        return (
            [*words[: first - 1], f"{words[first - 1]}=-", *words[first:]]
            if is_taken
            else list(words)
        )

    def _parsers(self) -> list[OneLineParser]:
        """Return this parser, and those of its commands."""
        found = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found += action.choices.values()
        return found

    def optional_files(self) -> list[str]:
        """Return the options whose file may be left out: standard output is meant then."""
        return [
            name
            for action in self._actions
            if action.const == "-"
            for name in action.option_strings
        ]

    def _parser_of(self, given: argparse.Namespace) -> OneLineParser:
        """Return the parser of the command that was given."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(getattr(given, action.dest, None) or "")
                if chosen is not None:
                    return chosen  # type: ignore[no-any-return]  # argparse has no type for it
        return self

    def _unknown(self, rest: Sequence[str]) -> Sentence:
        word = next((item for item in rest if item.startswith("-")), rest[0])
        if word.startswith("-"):
            option = word.partition("=")[0]
            return say(
                "option.none", option=option, hint=hinted(option, self._option_string_actions)
            )
        return say("option.many", word=word)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            reason = getattr(error.__context__, "args", ())
            if reason and isinstance(reason[0], Sentence):
                self.error(
                    say(
                        "option.other",
                        option=_last("/".join(action.option_strings)),
                        reason=reason[0],
                    )
                )
            raise

    def error(self, message: str | Sentence) -> NoReturn:
        """Print one line, and exit with status 2."""
        said = message if isinstance(message, Sentence) else _said(message)
        print(
            _printable(say("option.see", program=self.prog, said=said).text(self.language)),
            file=sys.stderr,
        )
        raise SystemExit(2)


def _said(message: str) -> Sentence:
    """Return an error of argparse as a sentence of ours."""
    for form, made in _forms():
        found = re.fullmatch(form, message, re.DOTALL)
        if found:
            return made(*found.groups())
    return say("option.error", reason=message)


def _printable(line: str) -> str:
    """Return a text on one line that every stream can print."""
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in line
    )
    return shown.encode("utf-8", "backslashreplace").decode("utf-8")


def hint(word: str, spellings: Iterable[str]) -> str:
    """Return the question for the nearest spelling, or an empty text.

    >>> hint("--jsno", ["--json", "--lang"]), hint("xyz", ["--json"])
    (' Did you mean --json?', '')
    """
    return str(hinted(word, spellings))


def hinted(word: str, spellings: Iterable[str]) -> Sentence:
    """Return the question for the nearest spelling, or NOTHING."""
    near = difflib.get_close_matches(word, list(spellings), 1, 0.5)
    return say("option.hint", word=near[0]) if near and near[0] != word else NOTHING


def _is_read(word: str) -> bool:
    """Return whether a word names an input of a command."""
    return os.path.isdir(word) or (word.endswith(".bin") and os.path.isfile(word))


def _last(name: str) -> str:
    """Return the longest spelling of an option: "-o/--output" gives "--output"."""
    return name.rpartition("/")[2]


def _choice(name: str, word: str, allowed: str) -> Sentence:
    choices = [item.strip().strip("'\"") for item in allowed.split(",")]
    plain = word.strip("'\"")
    near = hinted(plain, choices)
    if name == "COMMAND":
        return say(
            "option.command", word=plain, hint=near or say("option.commands", allowed=choices)
        )
    return say("option.choice", option=_last(name), word=plain, allowed=choices, hint=near)


def _refused(name: str, word: str, allowed: Sentence) -> Sentence:
    return say("option.refused", option=_last(name), word=word.strip("'\""), allowed=allowed)


def _forms() -> tuple[tuple[str, Callable[..., Sentence]], ...]:
    """Return the errors of argparse with ours; a group is a word of the user's."""
    return (
        (r"argument (.+?): invalid choice: (.+) \(choose from (.*)\)", _choice),
        (
            r"argument (.+?): invalid int value: (.+)",
            lambda name, word: _refused(name, word, say("option.whole")),
        ),
        (
            r"argument (.+?): invalid float value: (.+)",
            lambda name, word: _refused(name, word, say("option.number")),
        ),
        (
            r"argument (.+?): expected one argument",
            lambda name: say("option.needs", option=_last(name)),
        ),
        (
            r"argument (.+?): expected (\d+) arguments",
            lambda name, count: say("option.needs_several", option=_last(name), count=count),
        ),
        (
            r"argument (.+?): expected at least one argument",
            lambda name: say("option.needs", option=_last(name)),
        ),
        (
            r"argument (.+?): not allowed with argument (.+)",
            lambda a, b: say("option.exclude", option=_last(a), other=_last(b)),
        ),
        (
            r"argument (.+?): ignored explicit argument (.+)",
            lambda name, word: say("option.takes_none", option=_last(name), word=word.strip("'\"")),
        ),
        (
            r"the following arguments are required: (.+)",
            lambda names: say("option.missing", names=names),
        ),
        (
            r"ambiguous option: (.+?) could match (.+)",
            lambda word, several: say("option.ambiguous", word=word, several=several),
        ),
        (
            r"argument (.+?): (.+)",
            lambda name, rest: say("option.other", option=_last(name), reason=rest),
        ),
    )
