# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A sentence goes to JSON and back."""

from __future__ import annotations

import json

import pytest

from probe.findings.sentence import NOTHING, Sentence, clauses, say

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
    assert [read.text(language) for language in ("en", "zh")] == [sentence.text(each) for each in ("en", "zh")]


def test_an_unknown_key_is_refused():
    with pytest.raises(KeyError, match="no such key"):
        Sentence.from_dict({"key": "no such key", "facts": {}})


@pytest.mark.parametrize(
    "given",
    [None, "text", [], {}, {"key": "list"}, {"key": "list", "facts": []}, {"key": "", "facts": {}, "more": 1},
     {"key": 1, "facts": {}}, {"key": "list", "facts": {"parts": [{"key": "list"}]}}],
)  # fmt: skip
def test_another_shape_is_no_sentence(given):
    with pytest.raises(TypeError):
        Sentence.from_dict(given)
