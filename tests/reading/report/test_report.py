# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The file that ``probe report`` writes: its content, its size, and the things that must not be in it."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

import probe
from probe import UsageError
from probe.__main__ import main
from probe.reading.report import content
from probe.reading.report.html_page import SCRIPTS, read, script
from probe.series.file import SeriesFile
from tests.reading import builders
from tests.reading.one_run.test_health import Training
from tests.reading.report.runs import FAULT, columns, faulty, one_dump


def report(tmp_path, *arguments):
    """Run the command; return (exit status, the page's columns, the page)."""
    page = tmp_path / "report.html"
    status = main(["report", *map(str, arguments), "-o", str(page), "--jobs", "1"])
    return status, columns(page), page


def test_the_origin_is_named_with_its_line_of_code(tmp_path):
    status, found, _ = report(tmp_path, *faulty(tmp_path))
    first = found["description"]["origins"][0]
    assert status == 1
    assert (first["kind"], first["name"], first["ranks"]) == ("argument", FAULT, [1, 2, 3])
    assert "0.25" in first["sentence"] and "0.0625" in first["sentence"]
    assert first["code"] == [
        "model/attention.py",
        48,
        "construct",
        "scores = q @ k * the_secret_scale",
        1,
    ]


def test_every_sentence_about_two_runs_is_there_in_chinese(tmp_path):
    golden, mine = faulty(tmp_path)
    one_dump(golden, 0.25, 1.0, step=9)
    made = {"Functional.f.0.forward": builders.forward([builders.tensor()], [builders.tensor()])}
    for folder, more in (
        (golden, {}),
        (mine, {"raised": "ValueError: x", "pending": "nobody waited"}),
    ):
        data = {name: {**entry, **more} for name, entry in made.items()}
        builders.write(folder / "step5" / "rank0", data, run={"seed": len(more)})
        builders.write(folder / "step0" / "rank4", {**data, **made}, run={"seed": len(more)})
    _, found, _ = report(tmp_path, golden, mine)
    description = found["description"]
    said = [item["sentence"] for item in (*description["origins"], *description["later"])]
    said += [*description["soft"], *description["remarks"], *description["notes"].values()]
    for words in (
        "not compared, only in A: step 9, rank 0",
        "the runs differ: seed: 0 in A, 2 in B",
        "raised: ValueError: x; pending: nobody waited",
    ):
        assert words in said
    chinese = [description["chinese"][sentence] for sentence in said]
    assert all(re.search("[\u4e00-\u9fff]", sentence) for sentence in chinese), chinese
    assert [
        words
        for sentence in chinese
        for words in re.findall(r"(?<![\w.])[a-z]+ [a-z]+\b", sentence)
        if words != "nobody waited"
    ] == []


def test_every_call_and_number_of_both_runs_is_in_the_page(tmp_path):
    golden, mine = faulty(tmp_path)
    _, found, _ = report(tmp_path, golden, mine)
    description = found["description"]
    names = [description["tables"]["names"][number] for number in found["call-name"]]
    for unit in description["units"]:
        path = mine / f"step{unit['step']}" / f"rank{unit['rank']}" / "dump.json"
        assert names[slice(*unit["calls"])] == list(json.loads(path.read_text())["data"])
    places = [description["tables"]["places"][number] for number in found["row-place"]]
    row = sum(found["call-rows"][: names.index("Functional.my_softmax.0.forward")])
    assert places[row] == "input.0"
    assert found["row-Norm_a"][row] == pytest.approx(5.0)
    assert found["row-Norm_b"][row] == pytest.approx(7.5)
    assert found["row-rel"][row] == pytest.approx(1 / 3, rel=0.1)


def test_equal_runs_end_with_status_0_and_no_origin(tmp_path):
    golden, _ = faulty(tmp_path)
    status, found, _ = report(tmp_path, golden, golden)
    assert status == 0
    assert found["description"]["origins"] == []
    assert set(found["call-state"]) == {0}


def test_producers_lead_to_the_call_that_made_an_input(tmp_path):
    _, found, _ = report(tmp_path, *faulty(tmp_path, 1, 1))
    names = [found["description"]["tables"]["names"][number] for number in found["call-name"]]
    row = sum(found["call-rows"][: names.index(FAULT)])
    assert names[found["row-producer"][row]] == "Primitive.gather.Gather.0.forward"


def test_one_run_alone_shows_the_call_that_makes_nan(tmp_path):
    one_dump(tmp_path / "run", 0.25, 1.0)
    path = tmp_path / "run" / "step0" / "rank0" / "dump.json"
    document = json.loads(path.read_text())
    record = document["data"]["Functional.my_softmax.0.forward"]["output"][0]
    record.update(Max=math.nan, Min=math.nan, Mean=math.nan, Norm=math.nan)
    path.write_text(json.dumps(document))
    status, found, _ = report(tmp_path, tmp_path / "run")
    assert status == 1
    assert found["description"]["origins"][0]["name"] == "Functional.my_softmax.0.forward"
    assert not found["description"]["two"]
    assert math.isnan(found["row-Norm_b"][sum(found["call-rows"][:2]) + 1])


def test_one_clean_run_ends_with_status_0(tmp_path):
    status, found, _ = report(tmp_path, Training().write(tmp_path / "run"))
    assert status == 0
    assert found["description"]["headline"]["tone"] == "good"
    assert (
        found["description"]["headline"]["text"]
        == "No fault is seen in steps 0-2: 9 forward and 9 backward entries"
    )


def test_a_run_of_which_a_part_cannot_be_known_has_no_green_headline(tmp_path):
    one_dump(tmp_path / "run", 0.25, 1.0)
    status, found, _ = report(tmp_path, tmp_path / "run")
    assert status == 2
    assert found["description"]["headline"]["tone"] == "unsure"
    assert found["description"]["headline"]["text"].startswith("cannot be known: ")


def test_an_alarm_of_the_monitor_is_the_headline_of_a_run_without_nan(tmp_path):
    run = Path(Training().write(tmp_path / "run"))
    file = SeriesFile(str(run / "monitor" / "rank"))
    for step in range(60):
        file.write(step, {"loss": 1.0 + step % 3 / 100 if step < 50 else 34_248.0})
    file.close()
    status, found, _ = report(tmp_path, run)
    assert status == 1
    assert found["description"]["headline"]["tone"] == "bad"
    assert "loss" in found["description"]["headline"]["text"]


def test_numbers_that_half_the_digits_cannot_hold_are_kept_whole(tmp_path):
    big = builders.tensor(Max=1e300, Min=5e-300, dtype="Float64")
    builders.write(
        tmp_path / "run" / "step0" / "rank0", {"Mint.exp.0.forward": builders.forward([], [big])}
    )
    _, found, _ = report(tmp_path, tmp_path / "run")
    assert found["row-Max_b"][0] == 1e300
    assert found["row-Min_b"][0] == 5e-300


@pytest.mark.parametrize("no_code", [False, True])
def test_no_folder_of_the_machine_is_in_the_page(tmp_path, no_code):
    golden, mine = faulty(tmp_path)
    (mine / "step1" / "rank1" / "dump.json").write_text("{")  # its error would name the path
    status, found, page = report(tmp_path, golden, mine, *(["--no-code"] if no_code else []))
    whole = json.dumps(found["description"]) + page.read_text()
    assert status == 2
    for private in (str(tmp_path), os.path.basename(tmp_path), "/home", "/ann/", "site-packages"):
        assert private not in json.dumps(found["description"]), private
    assert ("the_secret_scale" in whole) is not no_code
    assert ("model/attention.py" in whole) is not no_code
    assert "attention.py" in whole


def test_names_from_a_dump_are_never_markup(tmp_path):
    names = [
        "<script>alert(1)</script>.0.forward",
        "a\u202eb.0.forward",
        "x" * 10_000 + ".0.forward",
        "</script>.1.forward",
    ]
    golden, mine = faulty(tmp_path, 1, 1, names=names)
    _, found, page = report(tmp_path, golden, mine)
    text = page.read_text()
    shown = found["description"]["tables"]["names"]
    assert "alert(1)" not in text
    assert "\u202e" not in json.dumps(shown, ensure_ascii=False)
    assert "a\\u202eb.0.forward" in shown
    assert any(len(name) > 10_000 for name in shown)


def test_the_page_asks_for_nothing_and_runs_one_script_only(tmp_path):
    _, _, page = report(tmp_path, *faulty(tmp_path, 1, 1))
    text = page.read_text()
    assert re.search(
        r"default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'", text
    )
    own = "\n".join(read(name) for name in SCRIPTS) + read("page/page.html")
    own = own.replace(
        "http://www.w3.org/2000/svg", ""
    )  # the name of a kind of element, not an address
    for word in (
        "http:",
        "https:",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "innerHTML",
        "eval(",
        " src=",
        "import(",
    ):
        assert word not in own, word
    assert not re.search(r"<[^>]+\son\w+=", read("page/page.html"))
    assert text.count("</script") == text.count("<script")


def test_the_language_is_fixed_where_it_is_wished(tmp_path):
    for language in ("en", "zh"):
        _, _, page = report(tmp_path, *faulty(tmp_path, 1, 1), "--lang", language)
        assert f'<html lang="{language}">' in page.read_text()
    assert 'LANGUAGE = ""' in script("")


def test_every_text_has_both_languages_and_is_used():
    texts = json.loads(read("page/texts.json"))
    code = "\n".join(read(name) for name in SCRIPTS)
    for key, both in texts.items():
        assert len(both) == 2 and all(both), key
        assert (
            re.findall(r"\{\d\}", both[0]) == sorted(re.findall(r"\{\d\}", both[1]))
            or key == "matrix_cut"
        ), key
        assert re.search(rf"\b{key}\b", code), key


def test_above_the_limit_one_rank_stands_for_those_that_agree(tmp_path, monkeypatch, capsys):
    golden, mine = faulty(tmp_path)
    for rank in (0, 2):
        (mine / "step1" / f"rank{rank}" / "dump.json").write_bytes(
            (golden / "step1" / f"rank{rank}" / "dump.json").read_bytes()
        )
    monkeypatch.setattr(content, "WHOLE", 50)
    _, found, _ = report(tmp_path, golden, mine)
    description = found["description"]
    assert description["dropped"] > 0 and "left out" in capsys.readouterr().err
    kept = found["call-state"]
    units = {(unit["step"], unit["rank"]): unit for unit in description["units"]}
    assert 0 not in kept[slice(*units[1, 3]["calls"])]
    assert units[1, 2]["calls"][0] == units[1, 2]["calls"][1]
    _, whole, _ = report(tmp_path, golden, mine, "--all")
    assert whole["description"]["dropped"] == 0
    differing = [state for state in whole["call-state"] if state]
    assert sorted(state for state in kept if state) == sorted(differing)


def test_arrays_that_differ_get_a_histogram_of_their_errors(tmp_path):
    for side, error in (("golden", 0.0), ("mine", 1e-3)):
        folder = tmp_path / side / "step0" / "rank0"
        values = np.linspace(1.0, 2.0, 6, dtype=np.float32).reshape(2, 3) * (1 + error)
        (folder / "dump_tensor_data").mkdir(parents=True)
        np.save(folder / "dump_tensor_data" / "exp.npy", values)
        output = builders.tensor(
            data_name="exp.npy",
            Max=float(values.max()),
            Min=float(values.min()),
            mean=float(values.mean()),
            norm=float(np.linalg.norm(values)),
        )
        data = {"Mint.exp.0.forward": builders.forward([builders.tensor()], [output])}
        builders.write(folder, data, dump_data_dir="dump_tensor_data")
    _, found, _ = report(tmp_path, tmp_path / "golden", tmp_path / "mine")
    ((row, counts),) = found["description"]["histograms"].items()
    assert found["description"]["tables"]["places"][found["row-place"][int(row)]] == "output.0"
    assert sum(counts) == 6
    assert sum(counts[17:19]) == 6  # errors near 1e-3: bins of half a power of ten from 1e-12


def test_wrong_use_ends_with_status_2(tmp_path, capsys):
    golden, mine = faulty(tmp_path, 1, 1)
    page = str(tmp_path / "report.html")
    assert main(["report", str(tmp_path / "nothing"), "-o", page]) == 2
    assert main(["report", str(golden), str(mine), str(mine), "-o", page]) == 2
    assert main(["report", str(golden), "-o", str(tmp_path / "no" / "folder.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert not os.path.exists(page)


def test_an_old_report_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    golden, mine = faulty(tmp_path, 1, 1)
    (tmp_path / "report.html").write_text("old")
    report(tmp_path, golden, mine)
    assert (tmp_path / "report.html").read_text() != "old"
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_several_processes_write_the_same_page(tmp_path):
    golden, mine = faulty(tmp_path, 1, 2)
    _, alone, _ = report(tmp_path, golden, mine)
    main(["report", str(golden), str(mine), "-o", str(tmp_path / "report.html"), "--jobs", "2"])
    assert columns(tmp_path / "report.html") == alone


def test_the_function_writes_the_page_of_the_command(tmp_path):
    golden, mine = faulty(tmp_path, 1, 2)
    _, expected, _ = report(tmp_path, golden, mine)
    outcome = probe.report(golden, probe.open(mine), path=tmp_path / "two.html")
    assert columns(tmp_path / "two.html") == expected
    assert (outcome.status, outcome.size) == (1, (tmp_path / "two.html").stat().st_size)
    assert (
        probe.report(str(golden), path=tmp_path / "one.html").status == 2
    )  # the ranks have no parameters in it
    alone = columns(tmp_path / "one.html")["description"]
    assert alone["origins"] == [] != expected["description"]["origins"]
    probe.report(mine, path=tmp_path / "zh.html", lang="zh")
    assert 'LANGUAGE = "zh"' in (tmp_path / "zh.html").read_text()
    with pytest.raises(UsageError, match="lang: 'de'"):
        probe.report(mine, path=tmp_path / "zh.html", lang="de")
    with pytest.raises(UsageError, match="no such folder"):
        probe.report(tmp_path / "nothing")
