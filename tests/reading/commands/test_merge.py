# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Summaries that several machines write, and probe merge, which puts them together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from probe.__main__ import main
from tests.reading.builders import two_runs

pytestmark = pytest.mark.medium

COMMANDS = [["compare", "a", "b"], ["nan", "b"], ["ranks", "b"], ["trend", "b"]]


@pytest.fixture
def machines(tmp_path, monkeypatch):
    """Return a function that runs a command on the disks of two machines; each holds its own ranks."""
    two_runs(tmp_path / "all")
    for machine, ranks in (("one", "01"), ("two", "234")):
        for path in (tmp_path / "all").glob("*/step*/rank*"):
            if path.name[-1] in ranks:
                shutil.copytree(path, tmp_path / machine / path.relative_to(tmp_path / "all"))

    def run(*command):
        for machine in ("two", "one"):  # in any order
            monkeypatch.chdir(tmp_path / machine)
            assert (
                main([*command, "--only-summaries", "-o", str(tmp_path / f"{machine}.jsonl")]) == 0
            )
        monkeypatch.chdir(tmp_path / "all")
        return [str(tmp_path / "two.jsonl"), str(tmp_path / "one.jsonl")]

    return run


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_merged_summaries_say_the_same_as_one_machine(machines, command, capsys):
    parts = machines(*command)
    capsys.readouterr()
    whole = main(command), capsys.readouterr()
    merged = main(["merge", *parts]), capsys.readouterr()
    assert merged == whole
    assert whole[1].out


@pytest.mark.parametrize("command", COMMANDS[:3], ids=lambda command: command[0])
def test_merged_summaries_as_json(machines, command, capsys):
    parts = machines(*command)
    capsys.readouterr()
    assert main([*command, "--json", *(["-"] if command[0] == "compare" else [])]) == 1
    whole = capsys.readouterr().out
    assert main(["merge", *parts, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == json.loads(whole)


def test_a_merged_comparison_is_told_in_chinese(machines, capsys):
    parts = machines("compare", "a", "b")
    capsys.readouterr()
    assert main(["compare", "a", "b", "--lang", "zh"]) == 1
    whole = capsys.readouterr().out
    assert main(["merge", *parts, "--lang", "zh"]) == 1
    assert capsys.readouterr().out == whole
    assert "首个差异" in whole


def test_merged_series_as_csv(machines, capsys):
    parts = machines("trend", "b", "--stat", "mean")
    capsys.readouterr()
    assert main(["trend", "b", "--csv", "--stat", "mean"]) == 0
    whole = capsys.readouterr().out
    assert main(["merge", *parts, "--csv"]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(whole.splitlines())


def test_summaries_go_through_a_pipe(machines, tmp_path, capsys):
    machines("nan", "b")
    capsys.readouterr()
    assert main(["nan", str(tmp_path / "one" / "b"), "--only-summaries"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 4
    assert all(json.loads(line) for line in lines)


def test_a_rule_may_fit_the_tensors_of_another_machine(machines, tmp_path, capsys):
    parts = machines("compare", "a", "b", "--rule", "nothing has this name", "rel_l2 <= 1")
    assert main(["merge", *parts]) == 2
    assert (
        "no tensor has a name in which 'nothing has this name' is found" in capsys.readouterr().err
    )
    assert (
        main(["merge", *machines("compare", "a", "b", "--rule", "Functional.f", "rel_l2 <= 9")])
        == 1
    )


def cut(path):
    """Take the last line away."""
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")


def torn(path):
    """Take the last characters away."""
    path.write_text(path.read_text()[:-20])


def another_class(path):
    """Name a class that is no summary."""
    path.write_text(path.read_text().replace('"Origin"', '"Popen"'))


def another_version(path):
    """Write another number of the format."""
    path.write_text(path.read_text().replace('"probe_summaries": 1', '"probe_summaries": 99'))


def empty(path):
    """Leave nothing."""
    path.write_text("")


def other_file(path):
    """Write what is no file of summaries."""
    path.write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "is cut off: it has 3 summaries"),
        (torn, "is no file of summaries, or is damaged"),
        (another_class, "is no file of summaries, or is damaged"),
        (another_version, "another version of probe"),
        (empty, "is no file of summaries, or is damaged"),
        (other_file, "is no file of summaries, or is damaged"),
        (Path.unlink, "cannot be read: No such file"),
    ],
)
def test_damaged_files_are_refused_in_one_line(machines, damage, message, capsys):
    parts = machines("compare", "a", "b")
    damage(Path(parts[1] if damage is not another_class else parts[0]))
    capsys.readouterr()
    assert main(["merge", *parts]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out
    assert len(said.err.splitlines()) == 1


def test_files_that_do_not_belong_together(machines, tmp_path, capsys):
    first = Path(machines("nan", "b")[0]).rename(tmp_path / "nan.jsonl")
    parts = machines("ranks", "b")
    assert main(["merge", str(first), parts[0]]) == 2
    assert "do not belong together: probe nan and probe ranks" in capsys.readouterr().err
    assert main(["merge", parts[0], str(shutil.copy(parts[0], tmp_path / "again.jsonl"))]) == 2
    assert "both have step 0, rank 2" in capsys.readouterr().err
    strict = Path(machines("compare", "a", "b")[0]).rename(tmp_path / "strict.jsonl")
    loose = machines("compare", "a", "b", "--tolerance", "9")[1]
    assert main(["merge", str(strict), loose]) == 2
    assert "do not belong together: tolerance 1.0 and 9.0" in capsys.readouterr().err


def test_the_ranks_of_one_rank_alone(machines, tmp_path, capsys):
    machines("ranks", "b")
    shutil.rmtree(tmp_path / "one" / "b" / "step0" / "rank0")
    shutil.rmtree(tmp_path / "one" / "b" / "step1" / "rank0")
    part = str(tmp_path / "part.jsonl")
    assert main(["ranks", str(tmp_path / "one" / "b"), "--only-summaries", "-o", part]) == 0
    assert main(["merge", part]) == 2
    assert "one rank" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(machines, tmp_path, capsys):
    assert (
        main(
            [
                "nan",
                str(tmp_path / "one" / "b"),
                "--only-summaries",
                "-o",
                str(tmp_path / "no" / "x"),
            ]
        )
        == 2
    )
    assert "cannot be written: there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["compare", "a", "b", "--only-summaries", "--json", "x"],
            "--json: not allowed with --only-summaries",
        ),
        (
            ["compare", "a", "b", "--only-summaries", "--xlsx", "x"],
            "--xlsx: not allowed with --only-summaries",
        ),
        (["nan", "b", "--only-summaries", "--json"], "--json: not allowed with --only-summaries"),
        (["trend", "b", "--only-summaries", "--csv"], "--csv: not allowed with --only-summaries"),
        (
            ["compare", "a", "b", "-o", "x"],
            "-o: this is the file of the summaries; it needs --only-summaries",
        ),
        (
            ["ranks", "b", "-o", "x"],
            "-o: this is the file of the summaries; it needs --only-summaries",
        ),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, list) else "",
)
def test_outputs_that_cannot_be_made_are_refused(tmp_path, monkeypatch, command, message, capsys):
    two_runs(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_rows_are_written_beside_the_summaries(tmp_path, monkeypatch, capsys):
    two_runs(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    assert (
        main(["compare", "a", "b", "--only-summaries", "-o", "part.jsonl", "--csv", "rows.csv"])
        == 0
    )
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 1 + 4 * 5
    assert capsys.readouterr().out == ""
