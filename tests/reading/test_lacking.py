# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""No reading command answers "nothing found" with status 0 over a part of a run that it has not looked at."""

from __future__ import annotations

import json

import pytest

import probe
from probe.__main__ import main
from tests.reading.lacking import LACKS, healthy
from tests.reading.report.runs import columns

#: what a folder lacks -> the commands that cannot know all, and so end with a status other than 0
BLIND = {
    "run.json": "check report check2",
    "half of run.json": "check check2",
    "dump.json": "nan check ranks trend report compare show replay",
    "dump.json of one step": "compare report2",
    "a step": "compare report2",
    "the last step": "compare report2",
    "half of dump.json": "nan check ranks trend report compare show replay",
    "half of one dump.json": "nan check ranks trend report compare show replay",
    "all of dump.json": "nan check ranks trend report compare show replay",
    "a list for dump.json": "nan check ranks trend report compare show replay",
    "entries": "nan check ranks trend report compare replay",
    "a rank": "nan check ranks check2 compare report2",
    "a rank in one step": "nan check ranks report compare report2",
    "all": "nan check ranks trend report compare check2 show watch replay",
    "backwards": "nan check report compare",
    "forwards": "nan check report compare",
    "all calls but one": "check report compare",
    "numbers": "nan check ranks report compare",
    "Max and Min": "nan check report",
    "Norm": "ranks",
    "numbers of one call": "nan check report",
    "numbers of one rank": "nan check ranks report compare",
    "numbers of one step": "nan check report compare",
    "numbers of gradients": "nan check report",
    "numbers of parameters": "nan check report",
    "outputs": "nan check report compare",
    "inputs": "check report compare",
    "parameters": "ranks",
    "an entry that failed": "nan check report",
    "a tensor that was not read": "nan check report",
    "a dump, beside rows": "compare",
    "a dump, and all rows but two": "check report compare",
    "a dump, and half of the rows": "compare",
}


def commands(golden, folder, page):
    """Return the words of each reading command over a folder, by a name for it."""
    work = ["--jobs", "1"]
    return {
        "nan": ["nan", folder, *work],
        "check": ["check", folder, *work],
        "ranks": ["ranks", folder, *work],
        "trend": ["trend", folder, *work],
        "report": ["report", folder, "-o", page, *work],
        "report2": ["report", golden, folder, "-o", page, *work],
        "compare": ["compare", golden, folder, *work],
        "check2": ["check", golden, folder],
        "show": ["show", folder],
        "watch": ["watch", folder],
        "recover": ["recover", folder],
        "replay": ["replay", folder, "Functional.matmul.0.forward", *work],
    }


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return healthy(tmp_path_factory.mktemp("whole") / "golden")


def statuses(golden, folder, tmp_path, capsys, *further, names=()):
    """Return the status and the output of each command."""
    found = {}
    for name, words in commands(str(golden), str(folder), str(tmp_path / "page.html")).items():
        if not names or name in names:
            status = main([*words, *further])
            found[name] = status, "".join(capsys.readouterr())
    return found


#: commands that have no answer over a healthy dump without arrays or rows of the monitor
_NOT_FOR_IT = ("watch", "replay")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_whole_run_has_status_0_in_each_command(golden, tmp_path, capsys, lang):
    found = statuses(golden, golden, tmp_path, capsys, "--lang", lang)
    expected = {name: 2 if name in _NOT_FOR_IT else 0 for name in found}
    assert {name: status for name, (status, _) in found.items()} == expected


@pytest.mark.parametrize("lack", LACKS)
def test_no_command_is_content_with_what_it_has_not_looked_at(golden, tmp_path, capsys, lack):
    folder = healthy(tmp_path / "mine")
    LACKS[lack](folder)
    found = statuses(golden, folder, tmp_path, capsys, "--lang", "en")
    blind = BLIND.get(lack, "").split()
    assert [name for name in blind if found[name][0] == 0] == []
    for name, (status, said) in found.items():
        assert "Traceback" not in said and "internal error" not in said, said
        if status == 2:
            assert said.strip(), f"{name} ends with 2 and says nothing"
        if status == 0 and name in ("nan", "check"):  # the scope is named
            assert "step" in said and ("entries" in said or "rows" in said), said


@pytest.mark.parametrize("lack", ["numbers", "backwards", "a rank", "run.json", "outputs"])
def test_a_part_that_cannot_be_known_is_in_json_and_in_chinese_too(tmp_path, capsys, lack):
    folder = healthy(tmp_path / "mine")
    LACKS[lack](folder)
    assert main(["check", str(folder), "--jobs", "1", "--json"]) == 2
    (first, *_) = json.loads(capsys.readouterr().out)["unknown"]
    assert first["sentence"].startswith("cannot be known: ")
    assert first["key"].startswith("gap.")
    assert main(["check", str(folder), "--jobs", "1", "--lang", "zh"]) == 2
    assert "无法得知" in capsys.readouterr().out


def test_each_lack_that_blinds_a_command_is_in_the_table():
    assert set(BLIND) <= set(LACKS)
    assert len(LACKS) >= 40


def test_the_page_of_two_runs_without_numbers_is_not_green(golden, tmp_path):
    folder = healthy(tmp_path / "mine")
    LACKS["numbers"](folder)
    page = tmp_path / "page.html"
    assert main(["report", str(golden), str(folder), "-o", str(page), "--jobs", "1"]) == 2
    headline = columns(page)["description"]["headline"]
    assert headline["tone"] == "unsure"
    assert headline["text"].startswith("cannot be known: no tensor has numbers on both sides")


@pytest.mark.parametrize(
    ("lack", "chosen"),
    [
        ("a rank", ["--rank", "0"]),
        ("a rank in one step", ["--rank", "0"]),
        ("a step", ["--step", "0,2"]),
        ("the last step", ["--step", "0-1"]),
    ],
)
def test_compare_names_the_steps_and_ranks_that_one_side_lacks(
    golden, tmp_path, capsys, lack, chosen
):
    folder = healthy(tmp_path / "mine")
    LACKS[lack](folder)
    for pair, side in (((golden, folder), "B"), ((folder, golden), "A")):
        assert main(["compare", *map(str, pair), "--jobs", "1", "--lang", "en"]) == 2
        assert f"cannot be known: {side} lacks step" in capsys.readouterr().out
        assert not probe.compare(*pair).ok
    assert main(["compare", str(golden), str(folder), *chosen, "--jobs", "1"]) == 0


@pytest.mark.parametrize("lack", ["a step", "the last step", "dump.json", "dump.json of one step"])
def test_two_runs_of_which_one_lacks_steps_are_not_called_the_same_alone(
    golden, tmp_path, capsys, lack
):
    folder = healthy(tmp_path / "mine")
    LACKS[lack](folder)
    main(["check", str(golden), str(folder), "--lang", "en"])
    said = capsys.readouterr().out
    assert "the same experiment" not in said
    assert "judged by run.json, ranks: 2" in said
    assert "B has no dump of steps" in said


#: an error in a reader -> what it replaces, what takes its place, and a lack and a command that it would blind
PLANTED = {
    "gaps are swallowed": ("one_run.coverage.Looked.gaps", lambda _: iter(()), "numbers", "nan"),
    "missing ranks are swallowed": (
        "one_run.coverage.Looked._missing_ranks",
        lambda _: iter(()),
        "a rank",
        "nan",
    ),
    "gaps of a check are swallowed": (
        "one_run.health.run_look.gaps_of",
        lambda *_: [],
        "run.json",
        "check",
    ),
    "unread dumps are swallowed": (
        "commands.findings._show_errors",
        lambda *_: False,
        "half of one dump.json",
        "trend",
    ),
    "a rank of one side is swallowed": (
        "compare.answer.summary.ComparisonResult.lacks",
        property(lambda _: []),
        "a rank",
        "compare",
    ),
    "steps without numbers are swallowed": (
        "compare.answer.summary.ComparisonResult.blind",
        property(lambda _: []),
        "numbers",
        "compare",
    ),
    "the first statuses are 0": (
        "one_run.rank_checks.RankChecks.status",
        property(lambda _: 0),
        "numbers",
        "ranks",
    ),
}


@pytest.mark.parametrize("error", PLANTED)
def test_the_table_finds_an_error_in_a_reader(golden, tmp_path, capsys, monkeypatch, error):
    target, replacement, lack, command = PLANTED[error]
    folder = healthy(tmp_path / "mine")
    LACKS[lack](folder)
    assert command in BLIND[lack].split()
    assert statuses(golden, folder, tmp_path, capsys, names=(command,))[command][0] == 2
    monkeypatch.setattr(f"probe.reading.{target}", replacement)
    assert statuses(golden, folder, tmp_path, capsys, names=(command,))[command][0] == 0
