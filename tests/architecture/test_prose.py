# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of the texts: long sentences and "what" are found in documents and messages, and nowhere else."""

from __future__ import annotations

import pytest

from tests.architecture.prose import main, numbers
from tests.support.paths import ROOT

SHORT = "One two three four five. " * 10
LONG = "Some " + "word " * 24 + "more."


def tree(folder, page=SHORT, code='"""Nothing."""\n'):
    """Write a repository of one page and one module and return its folder."""
    (folder / "probe").mkdir(exist_ok=True)
    (folder / "probe" / "module.py").write_text(code, "utf-8")
    (folder / "README.md").write_text(page, "utf-8")
    return folder


def broken(folder):
    return {number.measure: number.places for number in numbers(folder) if number.is_broken}


@pytest.mark.parametrize(
    "page",
    [
        SHORT + LONG,
        SHORT + "\n\n* " + LONG,
        SHORT + "\n\n| a | b |\n|---|---|\n| x | " + LONG + " |",
        SHORT + LONG.replace("word word", "[word](page.md)\n`a b c d`", 1),
    ],
)
def test_a_long_sentence_of_a_document_is_found(tmp_path, page):
    (places,) = broken(tree(tmp_path, page)).values()
    assert len(places) == 1
    assert "26 words" in places[0] and places[0].startswith("README.md:")


@pytest.mark.parametrize(
    "page",
    [
        SHORT + "\n\n    " + LONG,
        SHORT + "\n\n```\n" + LONG + "\n```\n",
        SHORT + "`" + LONG + "` is one word.",
        SHORT + LONG.replace("word word", "word. Word", 1),
    ],
)
def test_code_is_no_sentence(tmp_path, page):
    assert broken(tree(tmp_path, page)) == {}


def test_a_long_message_is_found_and_a_docstring_is_none(tmp_path):
    assert broken(tree(tmp_path, code=f'"""{LONG}"""\n')) == {}
    code = 'log.warning(f"{name} ' + LONG.replace("word ", "", 1) + '")\n'
    assert broken(tree(tmp_path, code=code))["sentences of more than 25 words in messages, %"] == [
        "probe/module.py:1: 26 words: " + ("value Some " + "word " * 23 + "more.")[:60]
    ]


@pytest.mark.parametrize("opening", ["What is given here.", "Where it is given here."])
def test_a_sentence_that_begins_with_what_or_where_is_found(tmp_path, opening):
    found = broken(tree(tmp_path, SHORT * 200 + opening, f'"""{SHORT}{opening}"""\n'))
    assert [place.split(":")[0] for (places,) in [found.values()] for place in places] == [
        "README.md",
        "probe/module.py",
    ]
    assert broken(tree(tmp_path, SHORT * 200 + opening.replace(".", "?"), '"""Nothing."""\n')) == {}


def test_what_is_counted(tmp_path, capsys):
    assert main([str(tree(tmp_path, SHORT + "See what is there."))]) == 1
    assert "README.md:1" in capsys.readouterr().out


@pytest.mark.medium  # `make check` runs the program itself
def test_the_texts_of_this_repository_are_measured():
    assert len(numbers(ROOT)) == 4
