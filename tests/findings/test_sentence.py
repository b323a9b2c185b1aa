# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A sentence is a key and facts: its text in both languages, its JSON and back, the language of the locale."""

from __future__ import annotations

import json

import pytest

from probe.findings.sentence import NOTHING, Sentence, clauses, locale_language, say

SENTENCES = [
    NOTHING,
    say("compare.transposed"),
    say("replay.limit", seconds=2.5),
    clauses(say("replay.tie"), say("replay.golden", golden=say("replay.float32"))),
    say("replay.remarks", remarks=["a", 1, say("replay.tie")]),
]


@pytest.mark.parametrize("sentence", SENTENCES, ids=str)
def test_a_sentence_is_the_same_after_json(sentence):
    read = Sentence.from_dict(json.loads(json.dumps(sentence.to_dict())))
    assert read == sentence
    assert [read.text(language) for language in ("en", "zh")] == [
        sentence.text(each) for each in ("en", "zh")
    ]


def test_an_unknown_key_is_refused():
    with pytest.raises(KeyError, match="no such key"):
        Sentence.from_dict({"key": "no such key", "facts": {}})


@pytest.mark.parametrize(
    "given",
    [
        None,
        "text",
        [],
        {},
        {"key": "list"},
        {"key": "list", "facts": []},
        {"key": "", "facts": {}, "more": 1},
        {"key": 1, "facts": {}},
        {"key": "list", "facts": {"parts": [{"key": "list"}]}},
    ],
)
def test_another_shape_is_no_sentence(given):
    with pytest.raises(TypeError):
        Sentence.from_dict(given)


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C"}, "en"),
        ({"LANG": "ZH_TW"}, "zh"),
        ({"LANG": "zh_CN", "LC_ALL": "en_US"}, "en"),
        ({"LANG": "en_US", "LC_ALL": "zh_CN"}, "zh"),
        ({"LANG": "en_US", "LC_MESSAGES": "zh_CN"}, "zh"),
        ({"LC_MESSAGES": "en_US", "LC_ALL": "zh_CN"}, "zh"),
        ({"LANG": "zh_CN", "LC_ALL": ""}, "zh"),
    ],
)
def test_the_first_variable_of_the_locale_that_is_set_counts(variables, language):
    assert locale_language(variables) == language


def test_clauses_are_those_that_say_something():
    one, two = say("compare.value"), say("compare.shard")
    assert str(clauses(one, NOTHING, two)) == "value; shard"
    assert clauses(NOTHING, one) is one
    assert not clauses(NOTHING)
    assert str(NOTHING) == ""


def test_facts_are_shown_in_the_language_of_the_whole():
    whole = clauses(say("compare.transposed"), say("compare.value"))
    assert whole.text("zh").startswith(say("compare.transposed").text("zh"))
    assert whole.text("en").startswith(str(say("compare.transposed")))


def test_json_has_the_keys_of_the_sentences_in_it():
    keys = "compare.value", "compare.shard"
    assert clauses(*map(say, keys)).to_dict() == {
        "key": "clauses",
        "facts": {"parts": [{"key": key, "facts": {}} for key in keys]},
    }


def test_a_key_that_the_table_lacks_is_an_error():
    with pytest.raises(KeyError, match="no such key"):
        say("no such key")
