# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""No reading command answers "nothing found" with status 0 over a part of a run that it has not looked at."""

from __future__ import annotations

import json

import pytest

from probe.__main__ import main
from tests.reading.lacking import LACKS, healthy
from tests.reading.report.runs import columns

#: what a folder lacks -> the commands that cannot know all, and so end with a status other than 0
BLIND = {
    "run.json": "check report check2",
    "half of run.json": "check check2",
    "dump.json": "nan check ranks trend report compare",
    "dump.json of one step": "",
    "half of dump.json": "nan check ranks trend report compare",
    "half of one dump.json": "nan check ranks trend report compare",
    "all of dump.json": "nan check ranks trend report compare",
    "a list for dump.json": "nan check ranks trend report compare",
    "entries": "nan check ranks trend report compare",
    "a rank": "nan check ranks check2",
    "a rank in one step": "nan check ranks report",
    "all": "nan check ranks trend report compare check2",
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
        "compare": ["compare", golden, folder, *work],
        "check2": ["check", golden, folder],
    }


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return healthy(tmp_path_factory.mktemp("whole") / "golden")


def statuses(golden, folder, tmp_path, capsys, *further):
    """Return the status and the output of each command."""
    found = {}
    for name, words in commands(str(golden), str(folder), str(tmp_path / "page.html")).items():
        status = main([*words, *further])
        found[name] = status, "".join(capsys.readouterr())
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_whole_run_has_status_0_in_each_command(golden, tmp_path, capsys, lang):
    found = statuses(golden, golden, tmp_path, capsys, "--lang", lang)
    assert {name: status for name, (status, _) in found.items()} == dict.fromkeys(found, 0)


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
