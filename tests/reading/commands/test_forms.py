# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``--csv [FILE]`` and the names that are asked for have one form in all commands; older forms go on working."""

from __future__ import annotations

import csv
import io
import pathlib

import pytest

from probe.__main__ import main
from probe.series.file import SeriesFile
from tests.reading.builders import forward, tensor, write


@pytest.fixture
def run(tmp_path):
    """Write a run of three steps with two Cells, and the rows of a monitor beside it."""
    for step in range(3):
        data = {
            "Functional.relu.0.forward": forward([tensor(norm=1.0 + step)], [tensor(norm=2.0)]),
            "Cell.head.Dense.forward.0": forward([tensor(norm=1.0)], [tensor(norm=2.0)]),
            "Cell.fc.Dense.parameters_grad.0": {"weight": [tensor(norm=1.0)]},
            "Cell.head.Dense.parameters_grad.0": {"weight": [tensor(norm=3.0)]},
        }
        write(tmp_path / "run" / f"step{step}" / "rank", data)
    return str(tmp_path / "run")


@pytest.fixture
def rows(tmp_path):
    file = SeriesFile(str(tmp_path / "rows" / "monitor" / "rank"))
    for step in range(3):
        file.write(step, {"loss": 1.0, "fc.weight.grad": 2.0, "head.weight.grad": 3.0})
    file.close()
    return str(tmp_path / "rows")


def said(capsys, *words):
    status = main(list(words))
    found = capsys.readouterr()
    assert status in (0, 1) or not found.err, found.err
    return found.out


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("command", ["show", "trend", "watch", "compare", "replay"])
def test_csv_goes_to_standard_output_or_into_a_file(tmp_path, run, rows, capsys, command):
    path = str(tmp_path / "out.csv")
    own = {
        "compare": [run, run],
        "watch": [rows],
        "replay": [run, "--all", "--jobs", "1"],
    }
    words = [command, *own.get(command, [run])]
    status = main([*words, "--csv"])
    printed = capsys.readouterr().out
    assert main([*words, "--csv", path]) == status
    written = pathlib.Path(path).read_text(encoding="utf-8")
    assert table(written)
    assert printed == written


def test_an_option_of_csv_before_the_folder_does_not_take_it(run, rows, capsys):
    assert said(capsys, "trend", "--csv", run) == said(capsys, "trend", run, "--csv")
    assert said(capsys, "compare", "--csv", run, run) == said(capsys, "compare", run, run, "--csv")
    file = f"{rows}/monitor/rank/series.bin"
    assert said(capsys, "watch", "--csv", file) == said(capsys, "watch", file, "--csv")


@pytest.mark.parametrize("command", ["show", "trend", "watch", "replay"])
def test_names_are_asked_for_in_one_form(run, rows, capsys, command):
    words = {"watch": ["watch", rows, "--csv"], "replay": ["replay", run, "--csv", "--jobs", "1"]}
    words = words.get(command, [command, run, "--csv"])
    column = {"show": "tensor", "trend": "tensor", "watch": "series", "replay": "call"}[command]

    def names(*options):
        main([*words, *options])
        return {row[column] for row in table(capsys.readouterr().out)}

    by_name, by_regex, by_cell = (
        names("--name", "head"),
        names("--regex", "he[a]d"),
        names("--cell", "head"),
    )
    assert by_name == by_regex == by_cell
    assert by_name
    assert all("head" in name for name in by_name)
    assert names("--name", "head", "--regex", "fc") == set()


def test_older_forms_go_on_working(run, rows, capsys):
    assert said(capsys, "show", run, "--format", "csv") == said(capsys, "show", run, "--csv")
    assert said(capsys, "show", run, "--format", "json") == said(capsys, "show", run, "--json")
    assert said(capsys, "trend", run, "--like", "output") == said(
        capsys, "trend", run, "--name", "output"
    )
    assert said(capsys, "watch", rows, "--like", "fc") == said(
        capsys, "watch", rows, "--name", "fc"
    )
    for command in ("show", "trend", "watch"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        told = capsys.readouterr().out
        assert "--format" not in told
        assert "--like" not in told


@pytest.mark.parametrize("command", ["compare", "replay", "show"])
def test_standard_output_takes_one_of_csv_and_json(run, capsys, command):
    words = {"compare": [run, run], "replay": [run, "--all"]}.get(command, [run])
    try:
        status = main([command, *words, "--csv", "--json"])
    except SystemExit as end:
        status = end.code
    (line,) = capsys.readouterr().err.splitlines()
    assert status == 2
    assert "--csv" in line
    assert "--json" in line
