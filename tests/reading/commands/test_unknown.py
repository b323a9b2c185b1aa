# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own commas

"""A part that one side lacks, and rows that are too few, are status 2: all is well only over what was looked at."""

from __future__ import annotations

import json
import shutil

import pytest

import probe
from probe.__main__ import main
from probe.series.file import SeriesFile
from probe.series.history import LEAST_STEPS
from tests.reading.one_run.test_health import Training


@pytest.mark.parametrize("lacking", ["a", "b"])
def test_check_of_two_runs_does_not_know_a_step_that_one_side_lacks(tmp_path, capsys, lacking):
    a, b = (Training().write(tmp_path / side) for side in "ab")
    assert main(["check", a, b]) == 0
    assert probe.check(a, b).ok
    capsys.readouterr()
    shutil.rmtree(tmp_path / lacking / "step2")
    other = {"a": "b", "b": "a"}[lacking].upper()
    assert main(["check", a, b]) == 2
    said = f"cannot be known: {lacking.upper()} has no dump of steps 2, and {other} has."
    assert said in capsys.readouterr().out
    assert main(["check", a, b, "--lang", "zh"]) == 2
    assert "无法得知" in capsys.readouterr().out
    assert main(["check", a, b, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert not told["ok"] and not told["differences"] and told["unknown"][0].startswith(said)
    assert not probe.check(a, b).ok and probe.check(a, b).status == 2


def test_a_difference_outweighs_a_step_that_is_lacking(tmp_path, capsys):
    a = Training().write(tmp_path / "a")
    other = Training(2)
    other.run["seed"] = 5
    other.run["parameters"]["fc.weight"]["values"]["crc"] = "1"
    b = other.write(tmp_path / "b")
    assert main(["check", a, b]) == 1
    assert "cannot be known: B has no dump of steps 2" in capsys.readouterr().out


@pytest.mark.parametrize(("side", "other"), [("a", "B"), ("b", "A")])
def test_check_of_two_runs_does_not_know_a_rank_that_one_side_lacks(tmp_path, capsys, side, other):
    for name in "ab":
        for rank in range(3):
            Training().write(tmp_path / name)
            for step in range(3):
                folder = tmp_path / name / f"step{step}"
                shutil.move(folder / "rank", folder / f"rank{rank}")
    for step in range(3):
        (tmp_path / side / f"step{step}" / "rank2" / "dump.json").unlink()
    status = main(["check", str(tmp_path / "a"), str(tmp_path / "b")])
    said = capsys.readouterr().out
    assert status in (1, 2)
    assert f"{side.upper()} lacks dumps of ranks 2, and {other} has them" in said


@pytest.mark.parametrize("count", [LEAST_STEPS - 1, LEAST_STEPS])
def test_watch_does_not_know_of_too_few_rows(tmp_path, capsys, count):
    file = SeriesFile(str(tmp_path / "monitor" / "rank"))
    for step in range(count):
        file.write(step, {"loss": 1.0 + step / 100})
    file.close()
    status = 2 * (count < LEAST_STEPS)
    assert main(["watch", str(tmp_path)]) == status
    assert ("cannot be known: most rules need" in capsys.readouterr().out) == bool(status)
    assert main(["watch", str(tmp_path), "--json"]) == status
    assert json.loads(capsys.readouterr().out)["status"] == status
    assert main(["check", str(tmp_path)]) == status


@pytest.mark.parametrize("content", ['{"data": {', '{"task": "x",\n "data": {"é": [}'])
def test_the_headline_of_a_page_says_at_which_byte_a_document_ends(tmp_path, capsys, content):
    run = Training().write(tmp_path / "dump")
    (tmp_path / "dump" / "step1" / "rank" / "dump.json").write_text(content, encoding="utf-8")
    cut = len(content.rstrip("}").encode())
    page = str(tmp_path / "page.html")
    for language, said in (("en", f"(byte {cut})"), ("zh", f"（第 {cut} 字节）")):
        assert main(["report", run, "-o", page, "--jobs", "1", "--lang", language]) == 2
        head = capsys.readouterr().out.splitlines()[0]
        assert said in head and "dump.json" in head
        assert "Expecting" not in head and "delimiter" not in head
