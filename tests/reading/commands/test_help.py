# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own commas
"""``--help`` of every command: defaults are said, no word of the code is shown, and it is in the user's language."""

from __future__ import annotations

import argparse
import re

import pytest

from probe.__main__ import main
from probe.launch.command import count_of_options
from probe.options import OneLineParser
from tests.reading.commands.test_language import english

COMMANDS = [
    "show", "check", "compare", "report", "nan", "ranks", "trend", "watch", "recover", "doctor", "replay",
    "run", "try", "bisect", "drill", "find",
]  # fmt: skip
#: words of the code, or of Python
_CODE = re.compile(
    r"\b(ARGS|KWARGS|dest|nargs|None|NoneType|True|False|argparse|lambda|str|int|bool)\b|<\w+|_[A-Z]|\w_="
)
#: defaults that are no value: the option is off, or has nothing
_NO_VALUE = (None, "", False, [], argparse.SUPPRESS)
#: these defaults are described in words
_IN_WORDS = {0, -1, "en", "zh", "-"}


def helped(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 0
    said = capsys.readouterr()
    assert not said.err
    return said.out


@pytest.fixture
def parsers(monkeypatch, capsys):
    """Return the parser of each command, as it prints its help."""
    found = {}

    def note(parser, file=None):
        found[parser.prog.rpartition(" ")[2]] = parser

    monkeypatch.setattr(OneLineParser, "print_help", note)
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
    return found


def test_every_default_is_said(parsers):
    assert set(parsers) == set(COMMANDS)
    for command, parser in parsers.items():
        for action in parser._actions:
            is_hidden = action.help == argparse.SUPPRESS
            if is_hidden or action.default in _NO_VALUE:
                continue
            shown = f"{action.default:g}" if type(action.default) is float else str(action.default)
            assert "default: " in action.help, (command, action.option_strings)
            assert action.default in _IN_WORDS or f"default: {shown}" in action.help, (
                command,
                action.option_strings,
            )


def test_every_value_has_a_word_of_the_user(parsers):
    for command, parser in parsers.items():
        for action in parser._actions:
            takes_value = action.nargs != 0 and not isinstance(
                action, argparse.BooleanOptionalAction
            )
            is_named = action.metavar or action.choices or action.help == argparse.SUPPRESS
            assert not takes_value or is_named, (command, action.option_strings or action.dest)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_of_the_code_is_shown(capsys, command):
    told = helped(capsys, command, "--help", "--lang", "en")
    assert not _CODE.search(told), _CODE.search(told)
    assert "{narrower}" not in told


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_in_chinese_by_the_option_and_by_the_locale(capsys, monkeypatch, command):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    before, behind = (
        helped(capsys, "--lang", "zh", command, "--help"),
        helped(capsys, command, "--help", "--lang", "zh"),
    )
    assert before == behind == helped(capsys, "--lang=zh", command, "--help")
    assert "显示此帮助并退出" in before
    assert "show this help" not in before
    assert not [
        pair
        for pair in english(re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'|[\[(|{][^\n]*", "", before))
        if " " in pair
    ]
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert helped(capsys, command, "--help") == before
    assert "show this help" in helped(capsys, "--lang", "en", command, "--help")


def test_the_list_of_commands_is_in_chinese(capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert "NaN 或 Inf 来自哪里" in helped(capsys, "--lang", "zh", "--help")
    assert "NaN 或 Inf 来自哪里" in helped(capsys, "--help", "--lang", "zh")
    assert "where NaN or Inf comes from" in helped(capsys, "--help")


def test_the_language_of_the_program_is_its_own(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with pytest.raises(SystemExit):
        main(["run", "--levle", "L0", "train.py", "--lang", "zh"])
    assert "Did you mean --level?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--lang", "zh", "run", "--levle", "L0", "train.py"])
    assert "是否想写 --level？" in capsys.readouterr().err


def test_the_words_of_a_program_are_left_alone():
    parser = OneLineParser(prog="probe run")
    parser.add_argument("--lang")
    assert count_of_options(["--lang", "zh", "train.py", "--lang", "en"], parser) == 2
