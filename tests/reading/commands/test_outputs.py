# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files that a command writes: their permissions, and what is told if they cannot be; errors of ours."""

from __future__ import annotations

import os
import stat

import pytest

from probe.__main__ import main
from probe.reading.dumps import run as runs
from tests.reading.builders import forward, tensor, write

OPTIONS = [
    ("compare", "--csv"),
    ("compare", "--json"),
    ("compare", "--jsonl"),
    ("compare", "--xlsx"),
    ("compare", "--msprobe-csv"),
    ("report", "-o"),
    ("replay", "--csv"),
    ("replay", "--json"),
    ("replay", "--script"),
    ("watch", "--msprobe-csv"),
]


@pytest.fixture
def dump(tmp_path):
    write(
        tmp_path / "dump" / "step0" / "rank",
        {"Functional.relu.0.forward": forward([tensor(Min=0.0)], [tensor(Min=0.0)])},
    )
    return str(tmp_path / "dump")


def words(command, option, path, dump):
    own = {
        "compare": [dump, dump],
        "replay": [dump, "Functional.relu"],
    }
    return [command, *own.get(command, [dump]), option, str(path)]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
@pytest.mark.parametrize("place", ["missing/x", "folder", "/proc/x", "file/x"])
def test_an_output_that_cannot_be_written_is_known_before_the_work(
    tmp_path, dump, capsys, monkeypatch, command, option, place
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    if command == "watch":  # it makes folders
        place = place.replace("missing", "file").replace("folder", "file")
    monkeypatch.setattr(runs, "open", lambda *_: pytest.fail("the work has begun"))
    status = main(words(command, option, tmp_path / place, dump))
    said = capsys.readouterr()
    assert status == 2
    assert "cannot be written" in said.err
    assert said.err.count("\n") == 1
    assert not said.out


@pytest.mark.parametrize(("command", "option"), OPTIONS[:6])
def test_a_new_file_is_readable_for_owner_and_group_alone(tmp_path, dump, command, option):
    usual = os.umask(0o022)
    try:
        status = 2 if command == "report" else 0  # the dump has no run.json: not all can be known
        assert main(words(command, option, tmp_path / "out", dump)) == status
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
        os.umask(0o077)
        assert main(words(command, option, tmp_path / "narrow", dump)) == status
        assert stat.S_IMODE((tmp_path / "narrow").stat().st_mode) == 0o600
    finally:
        os.umask(usual)


@pytest.mark.parametrize(("command", "option"), [it for it in OPTIONS[:6] if it[1] != "--xlsx"])
def test_a_full_disk_is_one_sentence_and_a_device_stays(dump, capsys, command, option):
    assert main(words(command, option, "/dev/full", dump)) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_an_error_of_ours_is_one_line_and_a_file(tmp_path, dump, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("probe.reading.compare.answer.comparison.compare_runs", lambda *_: {}["a"])
    assert main(["compare", dump, dump]) == 70
    said = capsys.readouterr().err
    assert said.startswith("probe: internal error: KeyError: 'a'. Please report it")
    assert said.count("\n") == 1
    assert "Traceback" in (tmp_path / said.split()[-1]).read_text()


def test_no_memory_is_one_line(dump, capsys, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("probe.reading.compare.answer.comparison.compare_runs", full)
    assert main(["compare", dump, dump]) == 2
    assert capsys.readouterr().err == "probe: there is not enough memory\n"


@pytest.mark.parametrize(
    ("a", "b", "consistent"), [(True, True, "True"), (True, False, "False"), (None, True, "True")]
)
def test_the_table_of_msprobe_has_requires_grad(tmp_path, a, b, consistent):
    for side, value in (("a", a), ("b", b)):
        record = tensor() if value is None else tensor(requires_grad=value)
        write(
            tmp_path / side / "step0" / "rank",
            {"Functional.relu.0.forward": forward([record], [tensor()])},
        )
    main(
        [
            "compare",
            str(tmp_path / "a"),
            str(tmp_path / "b"),
            "--msprobe-csv",
            str(tmp_path / "out.csv"),
        ]
    )
    head, first, *_ = (
        line.split(",")
        for line in (tmp_path / "out.csv").read_text().replace('"[2, 3]"', "s").splitlines()
    )
    row = dict(zip(head, first))
    assert row["Bench Requires_grad"] == ("N/A" if a is None else str(a))
    assert (row["NPU Requires_grad"], row["Requires_grad Consistent"]) == (str(b), consistent)


def test_one_broken_dump_does_not_hide_the_trend(tmp_path, capsys):
    for step in range(3):
        folder = write(
            tmp_path / f"step{step}" / "rank",
            {"Cell.fc.Dense.parameters_grad.0": {"weight": [tensor()]}},
        )
    (folder / "dump.json").write_text("{")
    assert main(["trend", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert "Cell.fc.Dense.parameters_grad" in said.out
    assert "dump.json cannot be read" in said.err


@pytest.mark.parametrize("command", ["nan", "ranks", "trend", "report", "show"])
def test_a_number_that_is_left_out_is_told(tmp_path, capsys, command):
    for rank in ("rank0", "rank1"):
        entry = {"weight": [tensor(Max=[])]}
        write(tmp_path / "dump" / "step0" / rank, {"Cell.fc.Dense.parameters_grad.0": entry})
    more = ["-o", str(tmp_path / "out.html")] if command == "report" else []
    status = main([command, str(tmp_path / "dump"), *more])
    assert "entry Cell.fc.Dense.parameters_grad.0: Max is a list; it is left out" in "".join(
        capsys.readouterr()
    )
    assert status == (0 if command == "show" else 2)
