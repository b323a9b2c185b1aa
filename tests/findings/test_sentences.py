# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of sentences: every sentence of the code has a row, and says the same in both languages."""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from probe.findings.sentence import CHINESE, NOTHING, Sentence, clauses, say, table
from tests.support.paths import ROOT

#: rows that join their parts have this one fact
JOINS = {"clauses", "list"}
#: sentences in sentences, by the name of the fact
NESTED = {
    "finding": say("compare.transposed"),
    "reason": say("compare.few_pairs"),
    "owner": say("compare.model"),
    "where": say("compare.model_or_script"),
    "place": say("compare.input", place=0),
    "maker": say("compare.not_recorded"),
    "numbers": say(
        "compare.numbers",
        numbers=[say("compare.bits"), say("compare.shape", left="2x3", right="4")],
        dtype="Float32",
    ),
    "when": say("compare.in_step", step=3),
    "cause": say("compare.unseen"),
    "agree": say("compare.backward_agrees"),
    "difference": say("compare.header", key="level", left="L0", right="L1"),
    "title": say("compare.first"),
    "note": say("compare.left_out", count=7),
    "operand": say("compare.place_of", place="x", name="Cell.fc.0"),
}
LISTED = {"names", "ranks", "parameters", "parts", "placements"}
TEXTS = {"side": "A", "other": "B", "rank": 3, "axis": "tp", "kind": "parameter"}


def fields(form: str) -> Counter[tuple[str, str]]:
    """Return the facts of a form with their formats."""
    return Counter(
        (name, spec or "")
        for _, name, spec, _ in string.Formatter().parse(form)
        if name is not None
    )


def sample(name: str, spec: str) -> Any:
    """Return a fact: a number where the form has the format of one, else what usually has this name."""
    if spec:
        return 7 if spec.endswith("d") else 0.25
    known = TEXTS.get(name, NESTED.get(name))
    if known is not None:
        return known
    title = f"Cell.fc.{name.title()}.0"
    return [title, title] if name in LISTED else title


def whole(key: str) -> Sentence:
    """Return a sentence with all its facts."""
    if key in JOINS:
        return say(key, parts=[say("compare.transposed"), say("compare.bits")])
    return say(key, **{name: sample(name, spec) for name, spec in fields(table()[key][0])})


def english_words(said: str) -> list[str]:
    """Return the pairs of words in a Chinese text; names and quoted terms are none."""
    return re.findall(
        r"(?<![\w.])[A-Za-z]+ [a-z]+\b", re.sub(r'"[^"]*"|`[^`]*`|probe recover', "", said)
    )


def keys_in(node: ast.AST, known: set[str]) -> set[str]:
    return {
        item.value
        for item in ast.walk(node)
        if isinstance(item, ast.Constant) and item.value in known
    }


def assigned(name: str, *scopes: ast.AST) -> Iterator[ast.expr]:
    """Yield the values that a name gets in a function or a module."""
    for node in (node for scope in scopes for node in ast.walk(scope)):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield node.value


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.AST]]:
    """Yield each call of ``say`` with the function around it."""
    seen = set()
    scopes = [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    for scope in [*scopes, tree]:
        for node in ast.walk(scope):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "say"
                and id(node) not in seen
            ):
                seen.add(id(node))
                yield node, scope


def wrong_facts(source: str) -> list[str]:
    """Return the calls of ``say`` whose key is not in the table, or that give other facts than its row has."""
    tree, known, found = ast.parse(source), set(table()), []
    for call, scope in calls(tree):
        key = call.args[0]
        keys = {key.value} if isinstance(key, ast.Constant) else keys_in(key, known)
        for name in {node.id for node in ast.walk(key) if isinstance(node, ast.Name)}:
            for value in assigned(name, scope, tree):
                keys |= keys_in(value, known)
        given = {keyword.arg for keyword in call.keywords}
        for one in keys:
            wanted = (
                {"parts"}
                if one in JOINS
                else {name for name, _ in fields(table().get(one, [""])[0])}
            )
            if one not in known or (given != wanted and None not in given):
                found.append(
                    f"line {call.lineno}: {one}: {sorted(map(str, given))} for {sorted(wanted)}"
                )
    return found


def built_texts(source: str) -> list[str]:
    """Return the facts that are sentences in disguise: texts with words, of which no other language has any."""
    tree, found = ast.parse(source), []
    for call, scope in calls(tree):
        for keyword in call.keywords:
            values = [keyword.value]
            if isinstance(keyword.value, ast.Name) and not isinstance(scope, ast.Module):
                values += assigned(keyword.value.id, scope)
            found += [f"line {call.lineno}: {keyword.arg}" for value in values if is_wordy(value)]
    return found


def is_wordy(value: ast.expr) -> bool:
    """Return whether an expression is a text of three words, or puts words between its parts."""
    if isinstance(value, ast.Constant):
        return (
            isinstance(value.value, str)
            and len(re.findall(r"(?:^|\s)[A-Za-z]{2,}", value.value)) >= 3
        )
    if isinstance(value, ast.JoinedStr):
        fixed = "{}".join(
            str(part.value) for part in value.values if isinstance(part, ast.Constant)
        )
        return re.search(r"[A-Za-z]{2,}[,:]? | [A-Za-z]{2,}", fixed) is not None
    if isinstance(value, ast.BinOp):
        return is_wordy(value.left) or is_wordy(value.right)
    if isinstance(value, ast.IfExp):
        return is_wordy(value.body) or is_wordy(value.orelse)
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in ("format", "join")
    ):
        return is_wordy(value.func.value) or any(map(is_wordy, value.args))
    return False


SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "probe").rglob("*.py")
}
SPEAKING = sorted(name for name, source in SOURCES.items() if "say(" in source)


@pytest.mark.parametrize("name", SPEAKING)
def test_every_sentence_has_a_row_and_its_facts(name):
    assert wrong_facts(SOURCES[name]) == []


@pytest.mark.parametrize("name", SPEAKING)
def test_no_fact_is_a_text_of_english_words(name):
    assert built_texts(SOURCES[name]) == []


@pytest.mark.parametrize("key", table())
def test_both_languages_have_the_same_facts(key):
    english, chinese = table()[key]
    assert fields(english) == fields(chinese)


@pytest.mark.parametrize("key", table())
def test_the_whole_sentence_is_chinese(key):
    said = whole(key)
    assert english_words(said.text(CHINESE)) == [], said.text(CHINESE)
    for name, spec in fields(table()[key][0]):
        if isinstance(sample(name, spec), str):
            assert sample(name, spec) in said.text(CHINESE)


def test_no_row_is_unused():
    known = set(table())
    trees = (ast.parse(source) for source in SOURCES.values())
    used = set().union(*(keys_in(tree, known) for tree in trees))
    assert known - used == set()


def test_clauses_and_sentences_in_sentences_are_told_in_both_languages():
    numbers = say(
        "compare.numbers", numbers=[say("compare.rel_l2_least", distance=0.5)], dtype="Float32"
    )
    differs = say("compare.parameter", parameter="w", owner="fc.Dense", numbers=numbers)
    both = clauses(differs, NOTHING, say("compare.factor", factor=2.0))
    said = say("compare.changed_after_update", step=0, finding=both)
    assert str(said) == (
        "all of step 0 agrees, and w of fc.Dense differs before its first use: rel_l2 >= 0.5 (Float32); "
        "B is A's times 2: it changed between the optimizer and the next forward"
    )
    assert english_words(said.text(CHINESE)) == []
    assert "fc.Dense 的参数 w" in said.text(CHINESE) and "B 是 A 的 2 倍" in said.text(CHINESE)


def test_names_are_never_taken_for_a_form():
    said = say("compare.parameters", count=3, finding=say("compare.arguments", name="w{x}.{0}"))
    assert "w{x}.{0} is given other arguments" in str(said)
    assert "w{x}.{0}" in said.text(CHINESE)


def test_an_unknown_key_is_an_error_and_a_huge_fact_is_none():
    with pytest.raises(KeyError):
        say("nothing of this is known")
    huge = "Functional." + "x, " * 5000
    assert huge in say("compare.arguments", name=huge).text(CHINESE)


@pytest.mark.parametrize(
    "call",
    [
        'say("compare.no_such", name=1)',
        'say("compare.random", name=x)',
        'say("compare.random", name=x, numbers=y, z=1)',
        'KEYS = "compare.first", "compare.step"\nsay(KEYS[i])',
        'say("list", names=x)',
    ],
)
def test_a_wrong_call_is_found(call):
    assert len(wrong_facts(call)) == 1


@pytest.mark.parametrize(
    "call",
    [
        'say("x", name=f"the {x} differs")',
        'say("x", name="in the model")',
        'say("x", name="all of the " + x)',
        'say("x", name="one of the {}".format(x))',
        'def f():\n    y = f"{x} differs"\n    say("x", name=y)',
        'say("x", name="of the model" if x else y)',
    ],
)
def test_a_text_in_place_of_a_fact_is_found(call):
    assert len(built_texts(call)) == 1


@pytest.mark.parametrize(
    "call",
    ['say("x", name=f"{a}.forward")', 'say("x", name=f"{a:.3g} / {b}")', 'say("x", n="AB"[i])'],
)
def test_a_name_and_a_text_of_numbers_are_facts(call):
    assert built_texts(call) == []


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("B 的 rows in another order", 2),
        ("Norm differs", 1),
        ('记录 "in the optimizer"', 0),
        ("Cell.fc.w 的 md5 不同", 0),
    ],
)
def test_english_words_in_a_chinese_sentence_are_found(said, count):
    assert len(english_words(said)) == count


#: rooms whose errors end a command
ROOMS = ("reading", "replaying", "doctor", "intervention", "series")
#: errors for programs: a wrong argument of a function of the public API
FOR_PROGRAMS = ("lang: ", "series: ")


def bare_errors(source: str) -> list[str]:
    """Return the errors that are raised with a text of their own instead of a sentence."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("UsageError", "SettingsError")
            and node.args
        ):
            said = ast.unparse(node.args[0])
            is_text = isinstance(node.args[0], (ast.JoinedStr, ast.Constant))
            if is_text and not said.lstrip("f'\"").startswith(FOR_PROGRAMS):
                found.append(f"line {node.lineno}: {said}")
    return found


@pytest.mark.parametrize("path", [path for path in SOURCES if path.split("/")[1] in ROOMS])
def test_every_error_of_a_command_is_a_sentence(path):
    assert bare_errors(SOURCES[path]) == []


def test_a_bare_error_is_found():
    assert bare_errors('raise UsageError(f"{path} is wrong")') == ["line 1: f'{path} is wrong'"]
    assert bare_errors('raise UsageError(say("error.regex", text=a, reason=b))') == []
