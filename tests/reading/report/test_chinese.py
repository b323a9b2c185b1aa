# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The sentences of findings in Chinese: each sentence that the code can make has a row in the table."""

from __future__ import annotations

import ast
import re

import pytest

from probe.reading.report.chinese import chinese, table
from tests.support.paths import ROOT

MAKERS = (
    "compare/answer/sentences", "compare/answer/update_sentences", "compare/origins/across_ranks",
    "compare/layouts/blame", "compare/layouts/named", "one_run/nan", "one_run/rank_checks", "../series/looks",
)  # fmt: skip
#: texts of these modules that stand in no sentence of a finding
OTHERS = (
    "looking for NaN/Inf",
    "other bits, equal statistics",
    "comparing ranks",
    "there is nothing to compare it with",
    "has one rank",
    "looking at the ranks",
    "one layer apart",
)
SAMPLES = {
    "numbers": ": rel_l2 >= 0.5, Max 1 / 2 (Float32)", "when": " in step 3", "side": "A", "lacks": "A", "gets": "B",
    "step": "4", "next": "5", "count": "7", "verb": "are", "nan": "-Inf", "number": "learning_rate", "left": "0.25",
    "right": "0.75", "sentence": "B is the transpose of A's", "place": "input 0", "where": "the model",
    "calls": "6 calls of A",
    "factor": "0.75", "value": "0.25", "groups": "ranks 0, 1 agree, rank 2 does not", "ranks": "3, 5",
}  # fmt: skip


def texts(module):
    """Yield the texts of a module's functions, without their docstrings."""
    tree = ast.parse((ROOT / "probe" / "reading" / f"{module}.py").read_text())
    documented = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    docs = {id(node.body[0].value) for node in documented if isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("module", MAKERS)
def test_every_text_of_a_sentence_has_a_row(module):
    known = [form for key in ("sentences", "words", "groups") for form, _ in table()[key]]
    known = [*(re.sub(r"\{\w+\}", "{}", form) for form in known), *OTHERS]
    missing = []
    for text in texts(module):
        pieces = (piece.strip(" ,:;") for piece in re.split(r"; |\{\w+\}", text))
        missing += [
            piece for piece in pieces
            if len(re.findall(r"[a-z]{2,}", piece)) >= 3 and " " in piece and not any(piece in form for form in known)
        ]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize("english", [english for english, _ in table()["sentences"]])
def test_every_row_translates_its_sentence_whole(english):
    parts = re.findall(r"\{(\w+)\}", english)
    sentence = english.format(**{part: SAMPLES.get(part, f"Cell.fc.{part.title()}.0") for part in parts})
    said = chinese(sentence)
    assert re.findall(r"(?<![\w.])[a-z]+ [a-z]+\b", said) == [], said
    for part in parts:
        if part not in SAMPLES:
            assert f"Cell.fc.{part.title()}.0" in said


def test_clauses_and_sentences_in_sentences_are_translated():
    clause = "w of fc.Dense differs before its first use: rel_l2 >= 0.5, Max 1 / 2 (Float32); B is A's times 2"
    said = chinese(f"all of step 0 agrees, and {clause}: it changed between the optimizer and the next forward")
    assert re.findall(r"(?<![\w.])[a-z]+ [a-z]+\b", said) == []
    assert "fc.Dense 的参数 w" in said and "B 是 A 的 2 倍" in said


def test_an_unknown_sentence_and_a_huge_one_stay_english():
    assert chinese("nothing of this is known") == "nothing of this is known"
    huge = "Functional." + "x, " * 5000
    assert chinese(huge) == huge
