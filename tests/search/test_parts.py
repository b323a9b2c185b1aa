# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parts of ``probe find``: working folders, results on disk, the table of experiments, the price."""

from __future__ import annotations

import json
import os
import time

import pytest

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.one_run.health.rows import alarms_of, read_rows
from probe.search.concluding import is_given
from probe.search.ledger import Ledger, Result
from probe.search.table import EXPERIMENTS, FIRST
from probe.search.watch_end import WatchEnd
from probe.search.watching import is_offset
from probe.search.wishes import Training, Wishes
from probe.search.workplace import copied, name_originals, states
from tests.reading.report.rows import broken, healthy, write_rows


@pytest.fixture
def folder(tmp_path):
    """A working folder with files, an environment of Python, and the folder of a search."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("numbers")
    (tmp_path / "train.py").write_text("print()")
    (tmp_path / ".git").mkdir()
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "probe_find").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_a_copy_has_the_files_of_the_user_alone(folder):
    kept = folder / "probe_find"
    copy = copied(str(folder), str(kept / "work" / "mine"), str(kept))
    assert sorted(os.listdir(copy)) == ["data", "train.py"]
    (kept / "work" / "mine" / "data" / "x.txt").write_text("other")
    assert (folder / "data" / "x.txt").read_text() == "numbers"


def test_a_folder_that_is_too_large_is_refused_with_the_way_out(folder):
    with open(folder / "data" / "large.bin", "wb") as file:
        file.truncate((1 << 30) + 1)  # it takes no space
    with pytest.raises(UsageError, match="--in-place"):
        copied(
            str(folder), str(folder / "probe_find" / "work" / "mine"), str(folder / "probe_find")
        )
    assert not (folder / "probe_find" / "work").exists()


def test_a_file_that_changes_is_seen(folder):
    before = states(str(folder), str(folder / "probe_find"))
    (folder / "data" / "x.txt").write_text("more numbers")
    (folder / "probe_find" / "state.json").write_text("[]")
    after = states(str(folder), str(folder / "probe_find"))
    assert [path for path in after if before[path] != after[path]] == [
        str(folder / "data" / "x.txt")
    ]


@pytest.mark.parametrize("folder", ["/home/me", "/home/m\u00e9", '/home/of "me"', "/home/\\me"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_the_files_of_a_run_name_those_of_the_user(tmp_path, folder, is_ascii):
    copy = f"/find/work{folder}"
    rank = tmp_path / "step0" / "rank"
    rank.mkdir(parents=True)
    stack = [f"File {copy}/net.py, line 3, in construct", f"File {copy}2/net.py, line 1"]
    (rank / "stack.json").write_text(json.dumps(stack, ensure_ascii=is_ascii))
    (rank / "run.json").write_text(json.dumps({"folder": copy}, ensure_ascii=is_ascii))
    (rank / "dump.json").write_text(json.dumps([copy]))
    name_originals(str(tmp_path), copy, folder)
    expected = [f"File {folder}/net.py, line 3, in construct", stack[1]]
    assert json.loads((rank / "stack.json").read_text()) == expected
    assert json.loads((rank / "run.json").read_text()) == {"folder": folder}
    assert json.loads((rank / "dump.json").read_text()) == [copy]


@pytest.mark.parametrize(
    ("series", "is_symptom"),
    [("fc.bias.update", False), ("norm.beta.grad", False), ("fc.weight.update", True)],
)
def test_an_offset_that_never_changes_is_no_symptom(tmp_path, series, is_symptom):
    folder = write_rows(tmp_path, lambda *at: {**healthy(*at), series: 0.0}, ranks=1)
    alarms = alarms_of(read_rows(str(folder)).ranks)
    assert [is_offset(alarm) for alarm in alarms] == [not is_symptom]


def test_a_result_comes_back_as_it_was_kept(tmp_path):
    result = Result("watch", "quiet", say("find.no_symptom"), 1.5, 2, {"last": 3})
    Ledger(str(tmp_path / "a")).add(result)
    assert Ledger(str(tmp_path / "a")).results == {"watch": result}


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": 1}]', '[{"learned": {"key": "no"}}]'])
def test_results_that_are_broken_are_refused_with_their_file(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(UsageError, match=r"state\.json cannot be read.*Remove this file"):
        Ledger(str(tmp_path))


def test_each_outcome_leads_to_experiments_of_the_table_and_never_back():
    names = list(EXPERIMENTS)
    assert names[0] == FIRST
    for place, experiment in enumerate(EXPERIMENTS.values()):
        assert experiment.outcomes
        for outcome in experiment.outcomes.values():
            assert all(names.index(name) > place for name in outcome.then)


def test_a_price_rises_with_the_steps_that_a_run_needs():
    whole = EXPERIMENTS["watch"].price
    record = EXPERIMENTS["record"].price
    assert whole.seconds(start=2.0, step=1.0, steps=[5], count=100) > 100
    assert record.seconds(2.0, 1.0, [5], 100) < record.seconds(2.0, 1.0, [50], 100)
    assert record.seconds(2.0, 1.0, [5], 100) < record.seconds(2.0, 1.0, [4, 5], 100)


def test_an_edit_gives_the_search_another_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("a = 1")
    wishes = Wishes(Training("train.py", "", ()), None, "", str(tmp_path), 30.0)
    before = wishes.key
    assert wishes.key == before
    os.utime(tmp_path / "net.py", (1, 1))
    assert wishes.key != before


def test_results_are_plain_json(tmp_path):
    Ledger(str(tmp_path)).add(Result("watch", "quiet", say("find.no_symptom"), facts={"a": None}))
    (row,) = json.loads((tmp_path / "state.json").read_text())
    assert row["learned"] == {"key": "find.no_symptom", "facts": {}}


def test_the_command_that_goes_on_has_the_options_of_the_first_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    golden = Training("old.py", "", ("--lr", "1"))
    training = Training("train.py", "", ("--lr", "2"))
    folder = str(tmp_path / "probe_find")
    wishes = Wishes(training, golden, "", folder, 30.0, options=("--as-msprobe",))
    said = "probe find --minutes 60 --as-msprobe --golden 'old.py --lr 1' train.py --lr 2"
    assert wishes.command(60) == said


@pytest.mark.parametrize(
    ("row", "last", "has_told"),
    [(healthy, None, False), (healthy, 59, False), (healthy, 58, True), (broken, None, True)],
)
def test_a_watched_run_ends_with_a_loss_of_nan_or_the_last_step_of_the_other(
    tmp_path, row, last, has_told
):
    end = WatchEnd(str(tmp_path), time.monotonic() + 3600, last, pause=0.0)
    assert not end()  # there are no rows yet
    write_rows(tmp_path, row)
    assert end() is has_told


def test_a_watched_run_ends_when_its_time_is_used_up(tmp_path):
    assert WatchEnd(str(tmp_path), time.monotonic() - 1)()


def test_a_path_above_leads_to_the_same_file_from_a_copy(tmp_path):
    (tmp_path / "data.txt").write_text("numbers")
    (tmp_path / "mine").mkdir()
    kept = tmp_path / "mine" / "probe_find"
    copy = copied(str(tmp_path / "mine"), str(kept / "work" / "mine"), str(kept))
    with open(os.path.join(copy, "..", "data.txt")) as file:
        assert file.read() == "numbers"


@pytest.mark.parametrize(
    ("subject", "said", "is_told"),
    [
        ("check.command", say("check.values", values=["a", "b"]), False),
        ("check.code", say("check.files", names=["good.py", "bad.py"]), False),
        ("check.code", say("check.files", names=["bad.py", "model.py"]), True),
        ("check.code", say("check.values", values=["a", "b"]), True),
    ],
)
def test_the_two_programs_that_were_given_are_no_finding(subject, said, is_told):
    line = say("check.line", subject=say(subject), said=said)
    programs = (Training("bad.py", "", ()), Training("good/good.py", "", ()))
    assert is_given(line, Wishes(*programs, "", "probe_find", 30.0)) != is_told
