# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A mistyped command is answered by one line that says what to type: no traceback, no word of Python."""

from __future__ import annotations

import re

import pytest

from probe.__main__ import main
from tests.reading.one_run.test_health import Training

#: words of Python that no message has
_PYTHON = re.compile(
    r"\b(int|float|str|bool|NoneType|None|dict|tuple|repr|argparse|Namespace|True|False|Traceback|Errno|nargs)\b|"
    r"\w+Error\(|\[\]|\{\}|<class|object at"
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
    "nan": "path is missing",
    "show": "path is missing",
    "check": "PATH is missing",
    "compare": "compare needs two dumps",
    "compare RUN": "compare needs two dumps",
    "report": "DIR is missing",
    "ranks": "path is missing",
    "trend": "path is missing",
    "watch": "path is missing",
    "replay": "DUMP is missing",
    "run": "a program is missing",
    "run --level mix": "a program is missing",
    "run -m": "a program is missing",
    "run MISSING.py": "No such file or directory",
    "try": "a program is missing",
    "drill": "a program is missing",
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


@pytest.mark.parametrize("words", MISTYPED)
def test_a_mistyped_command_is_answered_by_one_line(tmp_path, capsys, monkeypatch, words):
    run = Training().write(tmp_path / "dump")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (tmp_path / "train.py").write_text("raise SystemExit('the program began')\n")
    given = [run if word == "RUN" else word for word in words.split()]
    try:
        status = main(given)
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr()
    assert status in (1, 2) and status is not True, said
    (line,) = said.err.splitlines()
    assert MISTYPED[words] in line
    plain = line.replace(run, "RUN").replace(str(tmp_path), "")
    assert not _PYTHON.search(plain), plain
    assert not said.out
