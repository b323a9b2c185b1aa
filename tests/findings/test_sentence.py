# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A sentence is a key and facts: its text in both languages, its JSON, the language of the locale."""

from __future__ import annotations

import pytest

from probe.findings.sentence import NOTHING, clauses, locale_language, say


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "C"}, "en"), ({"LANG": "ZH_TW"}, "zh"),
        ({"LANG": "zh_CN", "LC_ALL": "en_US"}, "en"), ({"LANG": "en_US", "LC_ALL": "zh_CN"}, "zh"),
        ({"LANG": "en_US", "LC_MESSAGES": "zh_CN"}, "zh"), ({"LC_MESSAGES": "en_US", "LC_ALL": "zh_CN"}, "zh"),
        ({"LANG": "zh_CN", "LC_ALL": ""}, "zh"),
    ],
)  # fmt: skip
def test_the_first_variable_of_the_locale_that_is_set_counts(variables, language):
    assert locale_language(variables) == language


def test_clauses_are_those_that_say_something():
    one, two = say("text", text="a"), say("text", text="b")
    assert str(clauses(one, NOTHING, two)) == "a; b"
    assert clauses(NOTHING, one) is one
    assert not clauses(NOTHING)
    assert str(NOTHING) == ""


def test_facts_are_shown_in_the_language_of_the_whole():
    whole = clauses(say("compare.transposed"), say("text", text="x"))
    assert whole.text("zh").startswith(say("compare.transposed").text("zh"))
    assert whole.text("en").startswith(str(say("compare.transposed")))


def test_json_has_the_keys_of_the_sentences_in_it():
    found = clauses(say("text", text="a"), say("text", text="b")).to_dict()
    assert found == {
        "key": "clauses", "facts": {"parts": [{"key": "text", "facts": {"text": part}} for part in "ab"]},
    }  # fmt: skip


def test_a_key_that_the_table_lacks_is_an_error():
    with pytest.raises(KeyError, match="no such key"):
        say("no such key")
