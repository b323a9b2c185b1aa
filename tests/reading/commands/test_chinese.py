# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own commas
"""All that a command prints of broken files and wrong settings is Chinese under ``--lang zh``, and English without."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re

import pytest

from probe.__main__ import main
from probe.config.loading import load
from probe.errors import SettingsError
from probe.findings.sentence import CHINESE, said_of, say
from probe.findings.system import _REASONS, reason_of
from probe.intervention.bisection import Bisection, Until
from probe.intervention.drill import Drill
from probe.intervention.runs import Run
from probe.process.progress import progress
from probe.reading.dumps.journal_reader import recover
from probe.store import file_names
from probe.store.journal import Journal
from tests.reading.one_run.test_health import Training
from tests.support.chinese import english_left

CHINESE_LETTER = re.compile("[\u4e00-\u9fff]")
#: names in an answer: a verdict, and a package without a version
NAMES = ("equal numbers", "python None")


def said_by(capsys, *words):
    """Return the exit status, and all that a command prints."""
    try:
        status = main([*map(str, words)])
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr()
    return status, said.out + said.err


def in_both(capsys, folder, *words):
    """Return what a command says in English and in Chinese; its exit status is the same."""
    status, english = said_by(capsys, *words, "--lang", "en")
    again, chinese = said_by(capsys, *words, "--lang", "zh")
    assert status == again
    assert not CHINESE_LETTER.search(english), english
    assert CHINESE_LETTER.search(chinese), chinese
    assert english_left(chinese, folder, "probe:", *NAMES) == [], chinese
    return status, english, chinese


# -- settings --------------------------------------------------------------------------------------

WRONG = [
    '{"tsak": "tensor"}',
    '{"task": "statistic"}',
    '{"task": "acc_check"}',
    '{"level": 1}',
    '{"step": ["6-4"]}',
    '{"step": {}}',
    '{"rank": "all"}',
    '{"dump_path": ""}',
    '{"dump_path": "\\ud800"}',
    '{"dump_path": "$NO_SUCH_VARIABLE/x"}',
    '{"dump_path": "~nobody_here/x"}',
    '{"extra_info": "true"}',
    '{"statistics": []}',
    '{"list": ["relu"]}',
    '{"last_calls": 3}',
    '{"statistics": {"task": "tensor"}}',
    '{"statistics": {"lst": ["relu"]}}',
    '{"statistics": {"list": "relu"}}',
    '{"statistics": {"list": [""]}}',
    '{"statistics": {"list": ["name-regex(("]}}',
    '{"statistics": {"list": ["name-regex(()"]}}',
    '{"statistics": {"data_mode": ["forwards"]}}',
    '{"statistics": {"data_mode": ["all", "input"]}}',
    '{"statistics": {"summary_mode": "md"}}',
    '{"statistics": {"summary_mode": ["mox"]}}',
    '{"statistics": {"summary_mode": ["hash"]}}',
    '{"level": "L2", "statistics": {"summary_mode": ["zero share"]}}',
    '{"statistics": {"scope": ["Tensor.add.0.forward"]}}',
    '{"statistics": {"scope": ["add", "Tensor.add.0.forward"]}}',
    '{"statistics": {"sample_num": -1}}',
    '{"statistics": {"slice": [{"dim": -1}]}}',
    '{"statistics": {"when": {"stat": "max"}}}',
    '{"task": "tensor", "tensor": {"diff_nums": 0}}',
    '{"max_disk": "many"}',
    '{"kernel_dump": 3}',
    '{"golden": {"arrays": 3}}',
    '{"golden": "x", "level": "debug"}',
    '{"task": "nan_check", "nan_check": {"data_mode": ["input"]}}',
    '{"async_dump": true, "statistics": {"summary_mode": "md5"}}',
    '{"task": "monitor", "level": "mix"}',
    '{"task": "monitor", "level": "L2"}',
    '{"task": "structure", "level": "debug"}',
    '{"task": "overflow_check"}',
    "[1, 2]",
    '{"task": "tensor",\n "step": [1,, 2]}',
    '{"step": [1, 2,]}',
    '{"step": [1 2]}',
    '{"step" 1}',
    "{step: 1}",
    '{"step": "1',
    '{"step": "1\x01"}',
    '{"step": 1} {}',
    '{"step": \\x}',
    '{"step": "\\x"}',
    '{"step": \u201c1\u201d}',
    '{"step"\uff1a 1}',
    '{"extra_info": True}',
    '{"step": 1} // the first',
    '{"step": 1, "step": 2}',
    "[" * 200,
    b"\xb2\xbd",
    "{}".encode("utf-16"),
]
WRONG_YAML = [
    "task: tensor\nstep: [1, 2\n",
    "step:\n\t- 1\n",
    "step: 010\n",
    "a: 1\na: 2\n",
    "a: \x01\n",
]


@pytest.mark.parametrize(
    ("name", "content"),
    [*(("config.json", it) for it in WRONG), *(("config.yaml", it) for it in WRONG_YAML)],
)
def test_a_wrong_setting_is_told_in_both_languages(tmp_path, capsys, name, content):
    file = tmp_path / name
    file.write_bytes(
        content if type(content) is bytes else content.encode("utf-8", "surrogatepass")
    )
    (tmp_path / "train.py").touch()
    with pytest.raises(SettingsError) as caught:
        load(file)
    words = ["run", "--config", str(file)]
    status, english = said_by(capsys, *words, "--lang", "en", tmp_path / "train.py")
    again, chinese = said_by(capsys, *words, "--lang", "zh", tmp_path / "train.py")
    assert status == again == 2
    assert english == f"probe: {caught.value}\n"
    assert chinese == f"probe: {said_of(caught.value).text(CHINESE)}\n"
    rest = re.sub("'[^']*'|\"[^\"]*\"", "", chinese)
    assert CHINESE_LETTER.search(rest) and english_left(rest, tmp_path, "probe:") == [], chinese


def test_an_unreadable_settings_file_and_a_missing_program_are_told_in_both_languages(
    tmp_path, capsys
):
    for words, said in (
        (["--config", tmp_path / "none.json", "x.py"], "没有该文件或目录"),
        (["--config", tmp_path, "x.py"], "允许：.json、.yaml 或 .yml 文件"),
        (["--dump-path", "/proc/x", "x.py"], "不接受文件：没有该文件或目录"),
        (["none.py"], "没有该文件或目录"),
    ):
        assert said_by(capsys, "run", "--lang", "zh", *words)[0] == 2
        _, chinese = said_by(capsys, "run", "--lang", "zh", *words)
        assert said in chinese
        assert english_left(chinese, tmp_path, "probe:") == [], chinese


# -- the operating system --------------------------------------------------------------------------


@pytest.mark.parametrize("number", list(_REASONS))
def test_a_reason_of_the_system_has_its_own_words_in_english(number):
    said = reason_of(OSError(number, os.strerror(number)))
    assert str(said) == os.strerror(number)
    assert english_left(said.text(CHINESE)) == [] and "`" not in said.text(CHINESE)


def test_another_reason_stands_in_backticks():
    assert (
        reason_of(OSError(errno.EBADMSG, os.strerror(errno.EBADMSG))).text(CHINESE)
        == "`Bad message`"
    )
    assert reason_of(OSError(errno.ENOENT, "own words")).text(CHINESE) == "`own words`"
    assert reason_of(OSError(errno.ENOENT, say("door.cut"))).text(CHINESE) == "被截断"
    assert reason_of(ValueError()).text(CHINESE) == "`ValueError`"


# -- broken dumps, also in processes of their own --------------------------------------------------

BROKEN = {"cut": "{", "a list": "[]", "a folder": None, "not UTF-8": b"\xff", "empty": ""}


def break_dump(rank, content):
    (rank / "dump.json").unlink()
    if content is None:
        (rank / "dump.json").mkdir()
    elif type(content) is bytes:
        (rank / "dump.json").write_bytes(content)
    else:
        (rank / "dump.json").write_text(content)


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", ["show", "nan", "trend", "check", "compare", "report"])
def test_a_broken_dump_is_told_in_both_languages(tmp_path, capsys, command, kind):
    Training().write(tmp_path / "dump")
    Training().write(tmp_path / "golden")
    break_dump(tmp_path / "dump" / "step1" / "rank", BROKEN[kind])
    paths = [tmp_path / "golden"] * (command == "compare") + [tmp_path / "dump"]
    page = ["-o", tmp_path / "page.html"] if command == "report" else []
    jobs = ["--jobs", 1] if command != "show" else []
    in_both(capsys, tmp_path, command, *paths, *page, *jobs)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["nan", "trend", "check", "compare"])
def test_an_error_of_a_worker_is_told_in_both_languages(tmp_path, capsys, command):
    Training().write(tmp_path / "dump")
    Training().write(tmp_path / "golden")
    break_dump(tmp_path / "dump" / "step1" / "rank", "{")
    paths = [tmp_path / "golden"] * (command == "compare") + [tmp_path / "dump"]
    _, english, chinese = in_both(capsys, tmp_path, command, *paths, "--jobs", 2)
    assert "cannot be read" in english and "无法读取" in chinese


def test_an_output_that_cannot_be_written_is_told_in_both_languages(tmp_path, capsys):
    run = Training().write(tmp_path / "dump")
    for option, path in (
        ("--csv", tmp_path),
        ("--csv", tmp_path / "none" / "x"),
        ("--csv", "/proc/x"),
    ):
        status, _, _ = in_both(capsys, tmp_path, "trend", run, option, path)
        assert status == 2


# -- recover, bisect, drill, progress --------------------------------------------------------------


def journal(folder, *records):
    folder.mkdir(parents=True, exist_ok=True)
    head = {"header": {"task": "statistics"}, "extra_info": True}
    made = Journal(str(folder), json.dumps(head))
    for record in records:
        made.append(record)
    made.close()


RECORD = '{"name":"Functional.relu.0.forward","entry":{"input_args":[],"output":[null]}}'


def test_recover_answers_in_both_languages(tmp_path, capsys):
    in_both(capsys, tmp_path, "recover", tmp_path)  # nothing to recover
    for language, said in (
        ("en", "1 entries recovered; dump.json was damaged"),
        ("zh", "恢复了 1 个条目；dump.json 已损坏"),
    ):
        journal(tmp_path / language, RECORD)
        (tmp_path / language / "dump.json").write_text("{")
        status, text = said_by(capsys, "recover", tmp_path / language, "--lang", language)
        assert status == 0 and said in text
        assert language == "en" or english_left(text, tmp_path) == [], text
    (tmp_path / "en" / file_names.JOURNAL).write_bytes(b"no journal")
    status, _, _ = in_both(capsys, tmp_path, "recover", tmp_path)
    assert status == 1


def test_recover_of_the_library_speaks_english(tmp_path):
    (done,) = recover(str(tmp_path))
    assert done.text == f"{tmp_path}: no journal, nothing to recover"
    assert done.to_dict() == {"text": done.text, "well": True}


class NoRuns:
    """Runs that are there already."""

    ranks, steps = 0, 0

    def __init__(self, calls=None):
        self.calls = calls

    def run(self, change=None, decide=None, **_):
        run = Run("nowhere", rows=[(step, {"loss": 2.0}) for step in range(4)])
        run.answer = decide(run, True) if decide else True
        run.was_kept = True
        return run


def test_bisect_tells_each_run_in_both_languages(capsys):
    for language in ("en", "zh"):
        answer, _, text = Bisection(NoRuns(), Until("loss < 3 at 2"), "cpu", "cell").answer(
            language
        )
        told = capsys.readouterr().err
        assert answer["runs"] == [
            {"changed": "0 of ? (kept)", "loss": "2 at 3", "fulfilled": "yes"}
        ]
        if language == "en":
            assert told == "run 1: 0 changed, loss 2 at 3: yes (kept)\n"
        else:
            assert told == "第 1 次运行：改动 0 个，损失 2（第 3 步）：是（沿用）\n"
            assert english_left(text) == [], text


def test_drill_tells_each_run_in_both_languages(capsys):
    for language, said in (("en", "no fault: 4 steps\n"), ("zh", "无故障：4 步\n")):
        drill = Drill(NoRuns(), 1)
        with contextlib.suppress(Exception):  # there is no folder to look at
            drill.answer(language)
        assert capsys.readouterr().err.startswith(said)


def test_a_progress_line_is_chinese(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tqdm")
    shown = []
    monkeypatch.setattr(
        "probe.reading.dumps.work.progress",
        lambda items, label, count=None: shown.append(label) or progress(items, label),
    )
    run = Training().write(tmp_path / "dump")
    for language in ("en", "zh"):
        said_by(capsys, "nan", run, "--jobs", "1", "--lang", language)
    assert {"looking for NaN/Inf", "查找 NaN/Inf"} <= set(shown)


def test_json_stays_english(tmp_path, capsys):
    Training().write(tmp_path / "dump")
    break_dump(tmp_path / "dump" / "step1" / "rank", "{")
    for words in (["check", tmp_path / "dump"], ["compare", tmp_path / "dump", tmp_path / "dump"]):
        _, text = said_by(capsys, *words, "--json", "--lang", "zh", "--jobs", 1)
        assert not CHINESE_LETTER.search(text)
        assert all("cannot be read: it is cut" in line for line in json.loads(text)["errors"])
