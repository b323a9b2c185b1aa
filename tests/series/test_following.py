# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe watch --follow reads what is new, tells each alarm once, and begins anew where a new run replaced the file."""

from __future__ import annotations

import math
import os
import re
import shutil
from pathlib import Path

import pytest

from probe.__main__ import main
from probe.reading.commands import watch
from probe.series.call_file import CallFile
from probe.series.file import RankSeries, SeriesFile, SeriesTail
from probe.series.series import Follower

STEADY = [1 + 0.01 * (step % 3) for step in range(40)]


def write(folder, losses, first=0, others=0):
    """Append a row for each loss, with further series."""
    file = SeriesFile(str(folder))
    for step, loss in enumerate(losses, first):
        file.write(
            step, {"loss": loss, **{f"layers.{place}.w.grad": 1.0 for place in range(others)}}
        )
    file.close()
    return file.path


def bytes_read(function):
    """Return how many bytes this process reads while a function runs."""

    def count():
        return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])

    before = count()
    own = count() - before  # the question itself
    before = count()
    function()
    return count() - before - own


def test_a_look_reads_the_new_rows_and_no_others(tmp_path):
    path = write(tmp_path / "rank", STEADY * 50, others=99)
    follower, found = Follower(), []
    assert follower.begin(RankSeries(path, None)) == []
    for look in range(3):
        size = os.path.getsize(path)
        write(tmp_path / "rank", STEADY[:10], first=5000 + 10 * look, others=99)
        new = os.path.getsize(path) - size
        read = bytes_read(lambda: found.extend(follower.look(path)))
        assert read == new < size / 50
    assert found == []


def test_the_rules_go_on_and_an_alarm_is_told_once(tmp_path):
    path = write(tmp_path / "rank", STEADY)
    follower = Follower()
    follower.begin(RankSeries(path, None))
    write(tmp_path / "rank", [9.0, 1.0], first=40)
    assert [(alarm.rule, alarm.step) for alarm in follower.look(path)] == [("spike", 40)]
    assert follower.look(path) == []
    write(tmp_path / "rank", [9.0], first=42)  # it is not over yet
    assert follower.look(path) == []


@pytest.mark.parametrize("change", ["replaced", "shorter"])
def test_a_file_of_a_new_run_is_judged_from_its_start(tmp_path, change):
    path = write(tmp_path / "rank", [*STEADY, math.nan])
    follower = Follower()
    assert [alarm.rule for alarm in follower.begin(RankSeries(path, None))] == ["NaN/Inf"]
    if change == "replaced":  # by a file of another number, which is longer
        os.rename(path, tmp_path / "old")
        write(tmp_path / "rank", [*STEADY[:30], math.nan, *STEADY, *STEADY])
    else:
        os.truncate(path, 0)
        write(tmp_path / "rank", [*STEADY[:30], math.nan])
    (alarm,) = follower.look(path)
    assert (alarm.rule, alarm.step) == ("NaN/Inf", 30)
    assert alarm.sentence.startswith("NaN in step ")


def follow(monkeypatch, *acts):
    """Let the training act where the command waits; then the user interrupts."""
    waiting = iter(acts)

    def wait(seconds):
        act = next(waiting, None)
        if act is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(watch.time, "sleep", wait)


def test_follow_prints_each_new_alarm_of_old_and_new_ranks_once(tmp_path, monkeypatch, capsys):
    folders = [tmp_path / "monitor" / f"rank{rank}" for rank in (0, 1)]
    write(folders[0], [*STEADY, math.nan])

    def train():
        write(folders[0], [9.0], first=41)
        write(folders[1], [1.0, math.inf])

    def restart():
        shutil.rmtree(folders[1])
        write(folders[1], [math.nan])

    follow(monkeypatch, train, lambda: None, lambda: shutil.rmtree(folders[0]), restart)
    assert main(["watch", str(tmp_path), "--follow"]) == 1
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("look here")]
    assert said == [
        "look here: NaN/Inf: loss: NaN in step 40, after 1 in step 39",
        "look here: spike: loss: 9 in step 41, 1.02 at most in the 20 steps before",
        "look here: NaN/Inf: loss: Inf in step 1, after 1 in step 0",
        "look here: NaN/Inf: loss: NaN/Inf in step 0",
    ]


def test_follow_without_an_alarm_has_status_0(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "monitor" / "rank"
    write(folder, STEADY)
    follow(monkeypatch, lambda: write(folder, STEADY, first=40))
    assert main(["watch", str(tmp_path), "--follow"]) == 0
    assert "look here" not in capsys.readouterr().out


def test_rows_that_come_later_have_the_numbers_of_their_calls(tmp_path):
    series, calls = SeriesFile(str(tmp_path)), CallFile(str(tmp_path / "calls.bin"), 3, 1500)
    entry = "Functional.relu.0.forward"
    tail, seen = None, {}
    for step in range(200):
        calls.write(step, {entry: {"output.0.norm": float(step)}})
        series.write(step, {"loss": 1.0})
        tail = tail or SeriesTail(series.path)
        seen.update(tail.new_rows())
    assert list(seen) == list(range(200))
    assert all(
        row == {"loss": 1.0, f"{entry}.output.0.norm": float(step)} for step, row in seen.items()
    )
    assert calls.path and RankSeries(series.path, None)[f"{entry}.output.0.norm"].steps[-1] == 199


def test_a_reader_that_begins_later_goes_on_behind_what_it_has_read(tmp_path):
    series, calls = SeriesFile(str(tmp_path)), CallFile(str(tmp_path / "calls.bin"), 3)
    for step in range(5):
        calls.write(step, {f"Functional.f{step}.0.forward": {"output.0.norm": float(step)}})
        series.write(step, {"loss": 1.0})
        if step == 2:
            tail = RankSeries(series.path, None).tail()
    rows = dict(tail.new_rows())
    assert rows[4] == {"loss": 1.0, "Functional.f4.0.forward.output.0.norm": 4.0}
    assert sorted(rows) == [3, 4]
