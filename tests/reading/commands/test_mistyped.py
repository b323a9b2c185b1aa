# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own commas, and users type full-width letters
"""A mistyped command is answered by one line that says what to type: no traceback, no word of Python."""

from __future__ import annotations

import re

import pytest

from probe.__main__ import main
from tests.reading.one_run.test_health import Training
from tests.support.chinese import english_left

#: words of Python that no message has
_PYTHON = re.compile(
    r"\b(int|float|str|bool|NoneType|None|dict|tuple|repr|argparse|Namespace|True|False|Traceback|Errno|nargs)\b|"
    r"\w+Error\(|\[None\]|\[\]|\{\}|<class|object at|Expecting|char \d"
)
#: the words of the user, and a part of the answer
MISTYPED = {
    "chek RUN": "Did you mean check?",
    "comapre RUN RUN": "Did you mean compare?",
    "shwo RUN": "Did you mean show?",
    "Show RUN": "Did you mean show?",
    "nans RUN": "Did you mean nan?",
    "rank RUN": "Did you mean ranks?",
    "trends RUN": "Did you mean trend?",
    "wacth RUN": "Did you mean watch?",
    "recovr RUN": "Did you mean recover?",
    "repaly RUN x": "Did you mean replay?",
    "doctro": "Did you mean doctor?",
    "rnu train.py": "Did you mean run?",
    "bisct train.py": "Did you mean bisect?",
    "RUN": "there is no command",
    "xyzzy": "Allowed: ",
    "--verison": "Did you mean --version?",
    "--jsonschema": "Did you mean --json-schema?",
    "-x nan RUN": "there is no option -x",
    "nan": "DIR is missing",
    "show": "DIR is missing",
    "check": "PATH is missing",
    "compare": "compare needs two dumps",
    "compare RUN": "compare needs two dumps",
    "report": "DIR is missing",
    "ranks": "DIR is missing",
    "trend": "DIR is missing",
    "watch": "DIR is missing",
    "replay": "DUMP is missing",
    "run": "a program is missing",
    "run --level mix": "a program is missing",
    "run -m": "a program is missing",
    "run MISSING.py": "No such file or directory",
    "try": "a program is missing",
    "drill": "a program is missing",
    "find": "a program or a folder is missing",
    "fnid RUN": "Did you mean find?",
    "find RUN --jsno": "Did you mean --json?",
    "find MISSING": "MISSING: no such folder",
    "find RUN RUN RUN": "find takes one run, or two",
    "nan RUN --jsno": "Did you mean --json?",
    "nan RUN --lnag zh": "Did you mean --lang?",
    "show RUN --nmae fc": "Did you mean --name?",
    "show RUN --row 3 --stak": "there is no option",
    "show RUN --fromat csv": "Did you mean --format?",
    "check RUN --row=x": "Allowed: a whole number",
    "compare RUN RUN --tolerence 2": "Did you mean --tolerance?",
    "compare RUN RUN --nosie RUN": "Did you mean --noise?",
    "trend RUN --liek loss": "Did you mean --like?",
    "watch RUN --folow": "Did you mean --follow?",
    "report RUN --outptu p.html": "Did you mean --output?",
    "run --levle L0 train.py": "Did you mean --level?",
    "run --sumary-mode max train.py": "Did you mean --summary-mode?",
    "run --dump_path d train.py": "Did you mean --dump-path?",
    "run --level L7 train.py": "level: 'L7' is not allowed",
    "run --task statistic train.py": "Did you mean 'statistics'?",
    "run --step x train.py": "step: 'x' is not allowed",
    "run --first-step one train.py": "Allowed: a whole number from 0",
    "run --config MISSING.json train.py": "MISSING.json: ",
    "run --golden MISSING train.py": "MISSING: no such folder",
    "run --dump-path": "--dump-path needs a value",
    "nan RUN --lang fr": "Allowed: en, zh",
    "nan RUN --lang": "--lang needs a value",
    "nan RUN RUN": "one argument too many",
    "show RUN --rows x": "Allowed: a whole number",
    "show RUN --format xml": "Allowed: text, csv, json",
    "show RUN --step 99": "has no dump of step 99. There are its steps: 0, 1, 2",
    "compare RUN RUN --tolerance much": "Allowed: a number",
    "compare RUN RUN --tolerance -1": "Allowed: a number from 0",
    "compare RUN MISSING": "MISSING: no such folder",
    "compare RUN RUN --step 9": "has no dump of step 9",
    "check RUN RUN RUN": "check takes one run or two",
    "check MISSING": "MISSING: no such folder",
    "show MISSING": "MISSING: no such folder",
    "nan MISSING": "MISSING: no such folder",
    "trend RUN --rows": "--rows needs a value",
    "trend RUN --like nothing": "nothing",
    "watch RUN": 'record with "task": "monitor"',
    "ranks RUN": "one rank",
}


#: further kinds: wrong order, another command's option, files for folders, full-width letters, empty words
FURTHER = {
    ("RUN", "show"): "there is no command",
    ("show", "RUN", "fc"): "one argument too many",
    ("-tp", "RUN", "compare", "-gp", "RUN"): "there is no option -tp",
    ("compare", "-gp", "RUN"): "compare needs two dumps",
    ("compare", "--tolerance", "RUN", "RUN"): "Allowed: a number",
    ("nan", "--lang", "RUN"): "Allowed: en, zh",
    ("show", "RUN", "--tolerance", "2"): "there is no option --tolerance",
    ("nan", "RUN", "--rows", "3"): "there is no option --rows",
    ("check", "RUN", "--stat", "max"): "there is no option --stat",
    ("report", "RUN", "--csv"): "there is no option --csv",
    ("ranks", "RUN", "--name", "fc"): "there is no option --name",
    ("show", "RUN", "--version"): "there is no option --version",
    ("show", "FILE"): "is no dump. Allowed: a dump_path, a step or rank folder in it, or a dump.json",
    ("nan", "FILE"): "is no dump. Allowed: a dump_path",
    ("compare", "RUN", "FILE"): "is no dump. Allowed: a dump_path",
    ("watch", "FILE"): 'record with "task": "monitor"',
    ("recover", "FILE"): "no such folder",
    ("recover", "MISSING"): "MISSING: no such folder",
    ("show", "EMPTY"): "no dump.json in it or below it",
    ("report", "EMPTY"): "no dump.json in it or below it",
    ("trend", "EMPTY"): "no dump.json in it or below it",
    ("check", "EMPTY", "EMPTY"): "no run.json in it",
    ("show", "RUN/step0/rank/dump.jsn"): "no such folder",
    ("show", "RUN*"): "no such folder",
    ("compare", "*.dump"): "compare needs two dumps",
    ("nan", "ＲＵＮ"): "no such folder",
    ("ｎａｎ", "RUN"): "there is no command",
    ("nan", "RUN", "－－json"): "one argument too many",
    ("show", "RUN", "—name", "fc"): "one argument too many",
    ("compare", "RUN", "RUN", "--tolerance=１．５"): "Allowed: a number",
    ("trend", "RUN", "--rows", "1.5"): "Allowed: a whole number",
    ("compare", "RUN", "RUN", "--tolerance", "nan"): "Allowed: a number from 0",
    ("show", "RUN", "--step", "3-1"): "Allowed: numbers and ranges, as 0,4-6",
    ("show", "RUN", "--step", "99999999999"): "Allowed: numbers and ranges, as 0,4-6",
    ("show", "RUN", "--rank", "-1"): "Allowed: numbers and ranges",
    ("show", ""): "no such folder",
    ("nan", ""): "no such folder",
    ("compare", "", "RUN"): "compare needs two dumps",
    ("", "RUN"): "there is no command",
    ("show", "RUN", "--lang="): "Allowed: en, zh",
    ("show", "RUN", "--json=x"): "--json takes no value: 'x'",
    ("nan", "RUN", "--json=out.json"): "--json takes no value",
    ("show", "RUN", "--csv", "--json"): "--json and --csv exclude each other",
    ("show", "RUN", "--regex", "("): "is no regular expression",
    ("trend", "RUN", "--regex", "*"): "is no regular expression",
    ("show", "RUN", "--fits", "float15"): "Did you mean float16?",
    ("compare", "RUN", "RUN", "--rule", "softmax"): "--rule needs 2 values",
    ("compare", "RUN", "RUN", "--rule", "softmax", "rel_l2 = 3"): "as 'rel_l2 <= 0.02 or max_abs <= 1e-3'",
    ("compare", "RUN", "RUN", "--map", "MISSING.yaml"): "--map: MISSING.yaml cannot be read",
    ("compare", "RUN", "RUN", "--layout-a", "tp=two"): "as tp=8,pp=2",
    ("compare", "RUN", "RUN", "--arrays", "some"): "Allowed: all, differs, none",
    ("compare", "RUN", "RUN", "--csv", "none/x.csv"): "cannot be written: there is no folder",
    ("trend", "RUN", "--rules", "MISSING.json"): "MISSING.json cannot be read",
    ("trend", "RUN", "--rules", "BROKEN.json"): "it is cut, or no JSON, at line 1, column 2",
    ("trend", "RUN", "--stat", "median"): "--stat: 'median' is not allowed. Allowed: max, min",
    ("replay", "RUN"): "probe replay DUMP CALL",
    ("replay", "RUN", "Functional.nothing"): "no call 'Functional.nothing'; probe show names them",
    ("replay", "RUN", "--all", "--repeat", "1"): "--repeat: it takes a number from 2",
    ("replay", "RUN", "--all", "--limit", "0"): "Allowed: a number of seconds above 0",
    ("replay", "RUN", "--all", "--dtype", "int8"): "Allowed: float16, bfloat16, float32, float64",
    ("doctor", "--device", "TPU"): "Allowed: CPU, GPU, Ascend",
    ("doctor", "--limit", "0"): "Allowed: a number of seconds above 0",
    ("doctor", "RUN"): "one argument too many",
    ("--lang", "fr", "nan", "RUN"): "Allowed: en, zh",
    ("--lang",): "--lang needs a value",
    ("run", "--lang", "fr", "FILE"): "Allowed: en, zh",
    ("try", "--floaT32", "x", "FILE"): "Did you mean --float32?",
    ("bisect", "--float32", "FILE"): "--until is missing",
    ("nan", "RUN\udcff"): "no such folder",
    ("--lang", "zh", "nan", "MISSING"): "MISSING：没有该目录",
    ("--lang", "zh", "nan"): "缺少 DIR",
    ("nan", "RUN", "--jsno", "--lang", "zh"): "是否想写 --json？",
    ("--lang=zh", "shwo", "RUN"): "是否想写 show？",
    ("compare", "RUN", "RUN", "--lang", "zh", "--tolerance", "x"): "允许：数",
}  # fmt: skip


def test_there_are_many_kinds():
    assert len(MISTYPED) + len(FURTHER) >= 60
    assert len(FURTHER) >= 30


@pytest.mark.parametrize("words", FURTHER, ids=" ".join)
def test_a_further_kind_is_answered_by_one_line(tmp_path, capsys, monkeypatch, words):
    check_answer(words, FURTHER[words], tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("words", MISTYPED)
def test_a_mistyped_command_is_answered_by_one_line(tmp_path, capsys, monkeypatch, words):
    check_answer(words.split(), MISTYPED[words], tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("words", [*FURTHER, *map(tuple, map(str.split, MISTYPED))], ids=" ".join)
def test_the_line_is_chinese_where_the_locale_is(tmp_path, capsys, monkeypatch, words):
    _, said, _ = run_words(words, tmp_path, capsys, monkeypatch, "zh_CN.UTF-8")
    line = said.err.removeprefix("probe: ")
    assert re.search("[\u4e00-\u9fff]", line), line
    assert english_left(line, *filter(None, words), "probe run", "probe") == [], line


def check_answer(words, said_part, tmp_path, capsys, monkeypatch):
    """Run words of a user, and hold the answer to the promises of this module."""
    status, said, run = run_words(words, tmp_path, capsys, monkeypatch, "C.UTF-8")
    (line,) = said.err.splitlines()
    assert status == 2, said
    assert said_part in line
    plain = line.replace(run, "RUN").replace(str(tmp_path), "")
    assert not _PYTHON.search(plain), plain
    assert not said.out


def run_words(words, tmp_path, capsys, monkeypatch, locale):
    """Run words of a user under a locale; return the exit status, the output, and the path of RUN."""
    run = Training().write(tmp_path / "dump")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", locale)
    (tmp_path / "train.py").write_text("raise SystemExit('the program began')\n")
    (tmp_path / "BROKEN.json").write_text("{spike: 3}")
    (tmp_path / "EMPTY").mkdir()
    places = {"RUN": run, "FILE": "train.py"}
    given = [places.get(word, word) for word in words]
    try:
        status = main(given)
    except SystemExit as end:
        status = end.code
    return status, capsys.readouterr(), run
