# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The page of a folder with rows of the monitor: its headline, its curves, and how it is renewed."""

from __future__ import annotations

import json
import shutil

import pytest

from probe.__main__ import main
from probe.reading.report import curves, following
from probe.series.file import SeriesFile
from tests.reading.one_run.test_health import Training
from tests.reading.report.rows import broken, healthy, spike, write_rows
from tests.reading.report.runs import columns
from tests.reading.report.test_report import report


def test_a_healthy_monitor_has_a_green_page_that_names_its_rows(tmp_path):
    status, found, _ = report(tmp_path, write_rows(tmp_path / "run"))
    headline = found["description"]["headline"]
    assert (status, headline["tone"], headline["others"]) == (0, "good", 0)
    assert headline["text"].startswith(
        "No fault is seen in 120 rows of the monitor, steps 0-59, 8 series"
    )
    assert found["description"]["trends"] == []


def test_an_alarm_heads_the_page_and_the_command_with_the_status_of_watch(tmp_path, capsys):
    run = write_rows(tmp_path / "run", spike)
    status, found, _ = report(tmp_path, run, "--lang", "en")
    said = capsys.readouterr().out.splitlines()[0]
    assert status == 1 == main(["watch", str(run)])
    assert found["description"]["headline"]["tone"] == "bad"
    assert (
        said == "step 45: loss: spike: 3.425e+04 in step 45, 2.106 at most in the 20 steps before"
    )
    assert found["description"]["headline"]["text"] == said


def test_nan_is_heavier_than_an_earlier_spike_and_the_others_are_counted(tmp_path, capsys):
    status, found, _ = report(tmp_path, write_rows(tmp_path / "run", broken), "--lang", "en")
    description = found["description"]
    assert status == 1
    assert description["headline"]["text"].startswith(
        "step 50: loss: NaN/Inf: Inf in step 50, after"
    )
    assert description["headline"]["others"] == len(description["trends"]) - 1 > 1
    assert f"; and {description['headline']['others']} more findings\n" in capsys.readouterr().out


def test_nan_that_no_rule_looks_at_is_the_headline_too(tmp_path):
    def row(step, rank):
        return {**healthy(step, rank), "optimizer.momentum": float("nan") if step == 30 else 0.9}

    status, found, _ = report(tmp_path, write_rows(tmp_path / "run", row, ranks=1))
    assert status == 1
    assert "NaN/Inf in 1 series: optimizer.momentum" in found["description"]["headline"]["text"]


def test_parameters_that_leave_each_other_on_two_ranks_are_told_as_watch_tells_them(
    tmp_path, capsys
):
    def row(step, rank):
        return {**healthy(step, rank), "fc.weight.param": 4.0 + (rank if step > 30 else 0)}

    run = write_rows(tmp_path / "run", row)
    status, found, _ = report(tmp_path, run)
    assert status == 1
    assert {item["rule"] for item in found["description"]["trends"]} == {"ranks apart"}
    assert main(["watch", str(run), "--lang", "en"]) == 1
    assert "look here: ranks apart: fc.weight.param" in capsys.readouterr().out
    assert main(["check", str(run), "--lang", "en"]) == 1
    assert main(["trend", str(run), "--like", "param"]) == 1


def test_too_few_rows_are_not_green(tmp_path):
    status, found, _ = report(tmp_path, write_rows(tmp_path / "run", steps=3))
    headline = found["description"]["headline"]
    assert (status, headline["tone"]) == (2, "unsure")
    assert headline["text"].startswith("cannot be known: most rules need 5 rows, and there are 3.")


def test_a_rank_that_cannot_be_read_is_not_green_and_the_others_are_shown(tmp_path):
    run = write_rows(tmp_path / "run")
    (run / "monitor" / "rank1" / "series.bin").write_bytes(b"no series\n" * 9)
    status, found, _ = report(tmp_path, run)
    assert (status, found["description"]["headline"]["tone"]) == (2, "unsure")
    assert "cannot be read" in found["description"]["headline"]["text"]
    assert [*found["description"]["curves"][0]["b"]] == ["0"]
    (run / "monitor" / "rank0" / "series.bin").write_bytes(b"no series\n" * 9)
    (tmp_path / "report.html").unlink()
    assert main(["report", str(run), "-o", str(tmp_path / "report.html")]) == 2
    assert not (tmp_path / "report.html").exists()


def test_every_series_has_a_curve_with_all_ranks_and_the_main_ones_come_first(tmp_path):
    _, found, _ = report(tmp_path, write_rows(tmp_path / "run", broken))
    shown = found["description"]["curves"]
    names = [curve["name"] for curve in shown]
    assert set(names) == set(healthy(0, 0))
    assert names[:3] == ["loss", "optimizer.global_norm", "optimizer.learning_rate"]
    assert names[3] == "out.weight.grad"  # it has an alarm
    assert [*shown[0]["b"]] == ["0", "1"]
    assert shown[0]["b"]["1"][50:52] == [[50, "inf"], [51, "nan"]]
    assert shown[0]["b"]["0"][45] == [45, 34_248.0]


def test_a_long_series_is_thinned_and_keeps_its_peak_and_its_nan(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "_MOST_OF_ONE", 10)
    _, found, _ = report(tmp_path, write_rows(tmp_path / "run", broken, steps=100))
    points = found["description"]["curves"][0]["b"]
    assert len(points["0"]) == len(points["1"]) == 10
    assert [45, 34_248.0] in points["0"]
    assert points["1"][-1] == [90, "nan"]


def test_series_that_have_no_room_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "_MOST_LINES", 6)
    _, found, _ = report(tmp_path, write_rows(tmp_path / "run"))
    assert len(found["description"]["curves"]) == 3
    assert found["description"]["curves_left_out"] == 5


def test_a_folder_with_a_dump_and_rows_shows_both(tmp_path):
    run = tmp_path / "run"
    Training().write(run)
    write_rows(run, ranks=1)
    status, found, _ = report(tmp_path, run)
    text = found["description"]["headline"]["text"]
    assert status == 0
    assert text.startswith(
        "No fault is seen in steps 0-2: 9 forward and 9 backward entries; 60 rows of the monitor"
    )
    assert len(found["description"]["units"]) == 3
    assert len(found["description"]["curves"]) == 8


def test_check_tells_the_alarms_beside_a_dump_as_the_page_does(tmp_path, capsys):
    run = tmp_path / "run"
    Training().write(run)
    write_rows(run, spike, ranks=1)
    status, found, _ = report(tmp_path, run, "--lang", "en")
    alarm = found["description"]["headline"]["text"]
    capsys.readouterr()
    assert main(["check", str(run), "--lang", "en"]) == status == 1
    assert capsys.readouterr().out.startswith(f"fault: {alarm}\n")
    assert main(["check", str(run), "--json"]) == 1
    (first, *_) = json.loads(capsys.readouterr().out)["findings"]
    assert (first["rule"], first["name"], first["step"], first["weight"]) == (
        "spike",
        "loss",
        45,
        "fault",
    )


def test_each_sentence_of_the_page_is_there_in_chinese(tmp_path):
    for row in (healthy, broken):
        _, found, _ = report(tmp_path, write_rows(tmp_path / row.__name__, row))
        description = found["description"]
        said = [
            description["headline"]["text"],
            description["rows"],
            *(it["sentence"] for it in description["trends"]),
        ]
        assert all(description["chinese"][sentence] != sentence for sentence in said)


def test_json_has_the_headline(tmp_path, capsys):
    run = write_rows(tmp_path / "run", spike)
    assert main(["report", str(run), "-o", str(tmp_path / "report.html"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["headline"].startswith("step 45: loss: spike")
    assert told["status"] == 1


def acts(monkeypatch, *steps):
    """Let the training act where the command waits; then the user interrupts."""
    waiting = iter(steps)

    def wait(seconds):
        act = next(waiting, None)
        if act is None:
            raise KeyboardInterrupt
        act()

    monkeypatch.setattr(following.time, "sleep", wait)


def test_follow_renews_the_page_while_the_training_runs(tmp_path, monkeypatch, capsys):
    run, page = write_rows(tmp_path / "run"), tmp_path / "report.html"
    seen = []

    def look():
        seen.append(columns(page)["description"])

    def go_on():
        look()
        write_rows(run, steps=2, first=60)

    def begin_anew():
        look()
        shutil.rmtree(run)

    def fail():
        look()
        write_rows(run, broken)

    acts(monkeypatch, go_on, begin_anew, fail, look)
    assert main(["report", str(run), "-o", str(page), "--follow", "--lang", "en"]) == 1
    assert [description["rows"][:35] for description in seen] == [
        "120 rows of the monitor, steps 0-59",
        "124 rows of the monitor, steps 0-61",
        "124 rows of the monitor, steps 0-61",  # the page before stays
        "120 rows of the monitor, steps 0-59",
    ]
    assert all(description["follow"] == following.PAUSE for description in seen)
    assert (
        columns(page)["description"]["follow"] == 0
    )  # a page that is sent on does not renew itself
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("step 50: loss: NaN/Inf")] != []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "run"]


def test_a_page_is_not_written_again_where_nothing_is_new(tmp_path, monkeypatch):
    run, page = write_rows(tmp_path / "run"), tmp_path / "report.html"
    numbers = []
    acts(monkeypatch, *[lambda: numbers.append(page.stat().st_ino)] * 3)
    assert main(["report", str(run), "-o", str(page), "--follow"]) == 0
    assert len(set(numbers)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("RUN", "RUN"), "--follow takes one run"),
        (("nothing",), "no such folder"),
        (("RUN", "--json"), "exclude each other"),
    ],
)
def test_follow_is_refused_in_one_line(tmp_path, capsys, words, said):
    run = write_rows(tmp_path / "run", steps=1)
    arguments = [str(run) if word == "RUN" else word for word in words]
    try:
        status = main(["report", *arguments, "--follow", "-o", str(tmp_path / "report.html")])
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert said in capsys.readouterr().err


def test_a_row_more_than_a_page_has_points_is_read_by_every_view(tmp_path):
    file = SeriesFile(str(tmp_path / "run" / "monitor" / "rank"))
    for step in range(5000):
        file.write(step, {"loss": 1.0 + step % 7 / 100})
    file.close()
    _, found, page = report(tmp_path, tmp_path / "run")
    assert len(found["description"]["curves"][0]["b"]["-"]) <= 2000
    assert page.stat().st_size < 400_000


@pytest.mark.parametrize(
    ("factor", "status"), [(1 - 0.9e-5, 0), (1 + 0.9e-5, 0), (1 - 1.2e-5, 1), (1 + 1.2e-5, 1)]
)
def test_two_folders_of_rows_have_one_page_that_names_the_first_difference(
    tmp_path, factor, status
):
    """The tolerance of two rows is 1e-5 of the greater number."""

    def row(step, rank):
        changed = healthy(step, rank)
        changed["fc.weight.grad"] *= factor if (step, rank) == (7, 1) else 1
        return {**changed, "seconds": 0.1 + step}

    golden = write_rows(tmp_path / "golden")
    mine = write_rows(tmp_path / "mine", row)
    found_status, found, _ = report(tmp_path, golden, mine)
    description = found["description"]
    assert found_status == status
    assert description["two"]
    curve = next(item for item in description["curves"] if item["name"] == "loss")
    assert set(curve["a"]) == set(curve["b"]) == {"0", "1"}
    if status:
        said = "step 7, rank 1: fc.weight.grad differs: A has 0."
    else:
        said = "The rows of both agree in 840 numbers. No fault is seen in 120 rows"
    assert description["headline"]["text"].startswith(said)


def test_rows_that_one_of_two_runs_lacks_are_not_green(tmp_path):
    whole = write_rows(tmp_path / "whole", ranks=3)
    lacking = {
        "steps": write_rows(tmp_path / "steps", steps=50, ranks=3),
        "ranks": write_rows(tmp_path / "ranks", ranks=2),
        "series": write_rows(
            tmp_path / "series",
            lambda step, rank: {k: v for k, v in healthy(step, rank).items() if k != "loss"},
            ranks=3,
        ),
    }
    words = {"steps": "rows of step 50-59", "ranks": "rows of rank 2.", "series": "1 series: loss"}
    for what, run in lacking.items():
        for pair, side in (((whole, run), "B"), ((run, whole), "A")):
            status, found, _ = report(tmp_path, *pair)
            said = found["description"]["headline"]["text"]
            assert status == 2
            assert said.startswith(f"cannot be known: {side} lacks {words[what]}")


def test_nan_on_both_sides_agrees_and_is_told_as_the_fault_of_b(tmp_path):
    runs = [write_rows(tmp_path / name, broken) for name in ("golden", "mine")]
    status, found, _ = report(tmp_path, *runs)
    assert status == 1
    said = found["description"]["headline"]["text"]
    assert said.startswith(
        "The rows of both agree in 840 numbers. B shows a finding, which is no difference from A: step 50: "
    )
    assert "loss: NaN/Inf" in said
