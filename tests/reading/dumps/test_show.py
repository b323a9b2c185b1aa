# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - the answers have Chinese punctuation
"""probe show: an overview, questions, broken documents, terminals and pipes."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys

import pytest

from probe.__main__ import main
from probe.store.documents import JsonDocuments
from tests.reading.builders import forward, tensor, write
from tests.support import processes
from tests.support.chinese import english_left

FRAMES = ["File /home/me/train.py, line 7, in step, \n y = ops.relu(x)"]


@pytest.fixture
def run(tmp_path):
    """Two steps of two ranks, with a NaN, and a call that raised."""
    for step in (0, 1):
        for rank in (0, 1):
            strange = (
                {"Max": float("nan"), "Min": float("nan"), "nan_count": 2}
                if (step, rank) == (1, 1)
                else {}
            )
            data = {
                "Functional.relu.0.forward": forward(
                    [tensor(norm=1.0)], [tensor(norm=4.0, **strange)]
                ),
                "Functional.exp.0.forward": forward([tensor(norm=9.0)], [tensor(norm=2.0 + step)]),
                "Tensor.view.0.forward": {
                    "input_args": [],
                    "input_kwargs": {},
                    "raised": "ValueError: no",
                },
            }
            construct = {
                "Functional.relu.0.forward": "Cell.a.A.forward.0",
                "Cell.a.A.forward.0": None,
            }
            write(
                tmp_path / f"step{step}" / f"rank{rank}",
                data,
                {"0": [["Functional.relu.0.forward"], FRAMES]},
                construct,
            )
    return tmp_path


def show(*arguments, code=0, capsys=None):
    assert main(["show", *map(str, arguments)]) == code
    return capsys.readouterr()


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_an_overview_names_folders_kinds_and_tensors(run, capsys):
    out = show(run, capsys=capsys).out
    assert "step1/rank1/" in out
    assert "3 entries" in out
    assert "Functional.relu.0.forward.output.0" in out
    assert [line for line in out.splitlines() if line.split()[:1] == ["all"]] == [
        "  all               3         0                0        4        0"
    ]


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (
            ["--name", "exp"],
            ["Functional.exp.0.forward.input.0", "Functional.exp.0.forward.output.0"] * 4,
        ),
        (["--regex", r"exp.*output", "--step", "1"], ["Functional.exp.0.forward.output.0"] * 2),
        (["--step", "1", "--rank", "1", "--nonfinite"], ["Functional.relu.0.forward.output.0"]),
        (["--nonfinite"], ["Functional.relu.0.forward.output.0"]),
        (["--raised", "--rank", "0"], ["Tensor.view.0.forward"] * 2),
        (
            ["--cell", "a.A", "--step", "0-0", "--rank", "1"],
            [f"Functional.relu.0.forward.{x}" for x in ("input.0", "output.0")],
        ),
        (
            ["--sort", "norm", "--rows", "2", "--rank", "0"],
            ["Functional.exp.0.forward.input.0"] * 2,
        ),
    ],
)
def test_questions(run, asked, names, capsys):
    assert [
        row["tensor"] for row in rows_of(show(run, *asked, "--format", "csv", capsys=capsys).out)
    ] == names
    assert [
        row["tensor"]
        for row in json.loads(show(run, *asked, "--format", "json", capsys=capsys).out)
    ] == names
    text = show(run, *asked, capsys=capsys).out.splitlines()
    assert [line for line in text[1:] if names[0] in line]


def test_the_lines_of_code_are_shown(run, capsys):
    out = show(run, "--name", "relu", "--stack", "--step", "0", "--rank", "0", capsys=capsys).out
    assert "File /home/me/train.py, line 7, in step, y = ops.relu(x)" in out
    (row, _) = json.loads(
        show(
            run,
            "--name",
            "relu",
            "--stack",
            "--step",
            "0",
            "--rank",
            "0",
            "--format",
            "json",
            capsys=capsys,
        ).out
    )
    assert row["stack"] == FRAMES
    assert "raised ValueError: no" in show(run, "--raised", capsys=capsys).out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--step", "9"], "no dump of step 9"),
        (["--step", "x"], "--step: 'x'"),
        (["--sort", "size"], "--sort: 'size'"),
        (["--regex", "("], "--regex"),
    ],
)
def test_wrong_questions_are_told(run, asked, said, capsys):
    assert said in show(run, *asked, code=2, capsys=capsys).err


def test_a_broken_document_does_not_hide_the_others(run, capsys):
    path = run / "step0" / "rank1" / "dump.json"
    path.write_text(path.read_text()[:100])
    (run / "step1" / "rank0" / "stack.json").write_text('{"0": [')
    said = show(run, code=1, capsys=capsys)
    assert f"broken: {path} cannot be read" in said.out
    assert said.out.count("3 entries") == 3
    assert "broken: it has no end" in said.out
    found = show(run, "--name", "exp", "--format", "csv", "--step", "0", code=1, capsys=capsys)
    assert [row["rank"] for row in rows_of(found.out)] == ["0", "0"]
    assert f"broken: {path}" in found.err


def test_a_journal_that_was_not_recovered_is_named(tmp_path, capsys):
    folder = tmp_path / "step0" / "rank0"
    header = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None}
    documents = JsonDocuments(str(folder), header, [], extra=False, journal=True, each=True)
    documents.entry("Functional.relu.0.forward", forward([tensor()], [tensor()]))
    documents.journal.close()
    out = show(tmp_path, capsys=capsys).out
    assert f"probe recover {folder}" in out
    assert "Functional.relu.0.forward.output.0" in out


def command(*arguments, **environment):
    path = os.pathsep.join(filter(None, sys.path))
    return [sys.executable, "-m", "probe", "show", *map(str, arguments)], {
        **os.environ,
        "PYTHONPATH": path,
        **environment,
    }


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_any_encoding_and_no_control_characters(tmp_path, environment, form):
    name = "Functional.r\u00e9lu\x1b[2J\u202e\ud800.0.forward"
    write(tmp_path, {name: forward([], [tensor()])})
    arguments, variables = command(tmp_path, "--name", "lu", "--format", form, **environment)
    done = processes.run(arguments, capture_output=True, check=True, env=variables)
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    assert b"lu" in done.stdout


def test_a_closed_pipe_is_quiet(run):
    arguments, variables = command(run, "--name", "Functional")
    with processes.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(600) == 0


def test_a_terminal_is_not_overrun_and_a_pipe_cuts_nothing(tmp_path):
    name = f"Functional.{'long' * 60}.0.forward"
    write(tmp_path, {name: forward([], [tensor()])})
    arguments, variables = command(tmp_path, COLUMNS="")
    assert (
        f"{name}.output.0"
        in processes.run(
            arguments, capture_output=True, check=True, env=variables, text=True
        ).stdout
    )
    import fcntl
    import struct
    import termios

    for more in ([], ["--name", "long"]):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        with processes.Popen([*arguments, *more], stdout=slave, env=variables) as process:
            os.close(slave)
            shown = b""
            try:
                while block := os.read(master, 4096):
                    shown += block
            except OSError:  # the other end is closed
                pass
            assert process.wait(600) == 0
        os.close(master)
        lines = shown.decode().splitlines()
        assert max(map(len, lines)) <= 80
        assert any("..." in line for line in lines)


def test_a_question_that_nothing_answers_says_so(run, capsys):
    assert main(["show", str(run), "--name", "nothing"]) == 0
    assert "no tensor fits" in capsys.readouterr().err


CHINESE = [
    [],
    ["--rows", "1"],
    ["--name", "relu"],
    ["--sort", "norm", "--rows", "2"],
    ["--raised"],
    ["--stack"],
]


@pytest.mark.parametrize("asked", CHINESE, ids=" ".join)
def test_the_content_is_shown_in_chinese(run, asked, capsys):
    out = show(run, *asked, "--lang", "zh", capsys=capsys).out
    assert "形状" in out
    assert english_left(out, run, "Max  Min  Mean  Norm", "in step") == []
    english = show(run, *asked, "--lang", "en", capsys=capsys).out
    assert out.count("\n") == english.count("\n")


def test_remarks_on_broken_and_lost_dumps_are_told_in_chinese(run, capsys):
    path = run / "step0" / "rank1" / "dump.json"
    path.write_text("{")
    (run / "step1" / "rank0" / "stack.json").write_text('{"0": [')
    (run / "step1" / "rank1" / "dump.json").unlink()
    header = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None}
    documents = JsonDocuments(
        str(run / "step1" / "rank1"), header, [], extra=False, journal=True, each=True
    )
    documents.entry("Functional.relu.0.forward", forward([tensor()], [tensor()]))
    documents.journal.close()

    for asked in ([], ["--name", "relu"]):
        said = show(run, *asked, "--lang", "zh", code=1, capsys=capsys)
        whole = said.out + said.err
        assert f"已损坏：{path} 无法读取：在第 1 行" in whole
        assert f"未恢复，可能缺少条目。恢复命令：probe recover {run}" in whole
        assert english_left(whole, run, "probe recover") == []
    assert main(["show", str(run / "step0" / "rank0"), "--name", "nothing", "--lang", "zh"]) == 0
    assert "没有符合条件的张量" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["csv", "json"])
def test_rows_for_other_programs_are_the_same_in_every_language(run, form, capsys):
    asked = [run, "--name", "relu", "--stack", "--format", form]
    shown = [show(*asked, "--lang", language, capsys=capsys).out for language in ("en", "zh")]
    assert shown[0] == shown[1]


def test_the_locale_chooses_the_language(run):
    for variables, word in (({"LC_ALL": "zh_CN.UTF-8"}, "张量"), ({"LC_ALL": "C.UTF-8"}, "tensor")):
        arguments, environment = command(
            run, "--name", "relu", **variables, PYTHONIOENCODING="utf-8"
        )
        done = processes.run(
            arguments, capture_output=True, check=True, env=environment, fresh="the locale is read"
        )
        assert word in done.stdout.decode()


@pytest.fixture
def chosen(tmp_path):
    """A dump with statistics that tables have no column for."""
    own = [tensor(zero_count=0, kurtosis=2.5, storage=3), tensor(zero_count=1, kurtosis=None)]
    write(tmp_path / "step0" / "rank", {"Functional.relu.0.forward": forward([tensor()], own)})
    return tmp_path


@pytest.mark.parametrize("asked", [[], ["--name", "relu"]])
def test_further_statistics_have_a_column(chosen, asked, capsys):
    lines = show(chosen, *asked, capsys=capsys).out.splitlines()
    head = next(
        place
        for place, line in enumerate(lines)
        if line.split()[:3] == ["tensor", "dtype", "shape"]
    )
    assert lines[head].split()[3:] == ["Max", "Min", "Mean", "Norm", "zero_count", "kurtosis"]
    assert [line.split()[-2:] for line in lines[head + 1 : head + 4]] == [
        ["-", "-"],
        ["0", "2.5"],
        ["1", "-"],
    ]


def test_further_statistics_for_other_programs(chosen, capsys):
    rows = json.loads(show(chosen, "--json", capsys=capsys).out)
    assert rows == json.loads(show(chosen, "--format", "json", capsys=capsys).out)
    assert [row.get("kurtosis", "none") for row in rows] == ["none", 2.5, None]
    assert "storage" not in rows[1]
    table = list(
        csv.DictReader(io.StringIO(show(chosen, "--format", "csv", "--stack", capsys=capsys).out))
    )
    assert [(row["zero_count"], row["kurtosis"]) for row in table] == [
        ("", ""),
        ("0", "2.5"),
        ("1", ""),
    ]
    assert main(["trend", str(chosen), "--like", "output", "--stat", "kurtosis", "--json"]) == 0
    (series,) = json.loads(capsys.readouterr().out)["series"]
    assert (series["steps"], series["values"]) == ([0], [2.5])
