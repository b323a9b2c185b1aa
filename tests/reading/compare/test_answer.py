# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The answer of probe compare: its sentences in two languages and as facts, the arrays and the processes behind it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import probe
from probe import UsageError
from probe.__main__ import main
from probe.reading.compare.answer import unit
from probe.reading.compare.answer.summary import one_line, summary_text
from probe.reading.dumps import load
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.text import columns, space
from tests.reading.builders import forward, tensor, value, write
from tests.reading.report.runs import faulty

ENGLISH = re.compile(r"(?<![\w./])[A-Za-z]+ [a-z]+\b")
#: verdicts that have two words; the documents have them so in both languages
TERMS = ("equal numbers", "other bits", "near zero", "one side")


def english_words(said):
    """Return the pairs of English words in the sentences of an answer, without names, terms and lines of code."""
    lines = [
        line for line in said.splitlines() if not re.match(r"^(A|B): |^    .*\.py:\d+: ", line)
    ]
    found = ENGLISH.findall("\n".join(lines))
    return [words for words in found if words not in TERMS]


def parameters(folder, scales, name):
    """Write steps in which a Cell has four parameters with other numbers where the scale is another."""
    for step, scale in enumerate(scales):
        names = [name, "p1", "p2", "p3"]
        held = {key: tensor(norm=scale * (number + 1)) for number, key in enumerate(names)}
        entry = {**forward([tensor(norm=4.0)], [tensor(norm=5.0 * scale)]), "parameters": held}
        write(folder / f"step{step}" / "rank", {"Cell.fc.Dense.forward.0": entry})
    return folder


@pytest.mark.parametrize("name", ["w{x}", "w}", "{0}", "weight"])
def test_a_name_with_braces_is_told_as_it_is(tmp_path, name):
    """F3: the sentence was formatted a second time, with the name in it."""
    golden = parameters(tmp_path / "a", (1.0, 1.0), name)
    first = probe.compare(golden, parameters(tmp_path / "b", (1.0, 1.5), name)).first
    assert first.kind == "optimizer"
    assert first.sentence.startswith(
        "all of step 0 agrees, gradients included, but the parameters of step 1 do not"
    )
    assert f"the first is {name} of fc.Dense differs before its first use" in first.sentence


@pytest.fixture
def doubled(tmp_path):
    """Return two runs with arrays; the second has a batch and a parameter of twice the numbers."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    for run, factor in (("a", 1), ("b", 2)):
        folder = tmp_path / run / "step0" / "rank"
        batch, weight = (tensor(norm=norm * factor, data_name=f"{norm}.npy") for norm in (3.0, 7.0))
        entry = {**forward([batch], [tensor(norm=9.0 * factor)]), "parameters": {"weight": weight}}
        write(folder, {"Cell.fc.Dense.forward.0": entry}, task="tensor", dump_data_dir="x")
        (folder / "dump_tensor_data").mkdir()
        for norm in (3.0, 7.0):
            np.save(folder / "dump_tensor_data" / f"{norm}.npy", array * factor)
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.parametrize(("arrays", "is_read"), [("all", True), ("differs", True), ("none", False)])
def test_no_array_is_read_that_the_user_has_excluded(doubled, arrays, is_read, monkeypatch):
    """F4: the sentences of a batch and of a parameter opened the files of both."""
    opened, read = [], load.read_array
    monkeypatch.setattr(
        load, "read_array", lambda path, *further: opened.append(path) or read(path, *further)
    )
    comparison = probe.compare(*doubled, arrays=arrays)
    assert bool(opened) is is_read
    said = [origin.sentence for origin in comparison.origins]
    assert len(said) == 2
    assert all(sentence.endswith("; B is A's times 2") is is_read for sentence in said), said


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ({"head": "tail"}, []),
        ({"f": "g"}, []),
        ({"nosuch.name": "other.name", "head": "tail"}, ["nosuch.name: other.name"]),
        ({"net": "module", "Dense": "Dense"}, ["net: module"]),
    ],
)
def test_lines_of_a_map_that_rename_nothing_are_told(tmp_path, lines, told):
    for run, path, word in (("a", "net.head", "f"), ("b", "net.tail", "g")):
        for step in (0, 1):
            data = {f"Cell.{path}.Dense.forward.0": forward([tensor()], [tensor()])}
            if step:  # a name may be in one step alone
                data = {f"Tensor.{word}.0.forward": forward([], [tensor()]), **data}
            write(tmp_path / run / f"step{step}" / "rank", data)
    (tmp_path / "map.yaml").write_text(json.dumps(lines))
    found = probe.compare(tmp_path / "a", tmp_path / "b", mapping=lines)
    assert found.unmapped == told
    line = f"--map: no call fits {told[0]}" if told else "--map"
    assert (line in str(found)) is bool(told)


@pytest.fixture
def golden_runs(tmp_path):
    """Return golden, a second golden run and a third one that is apart within the noise; each has two steps."""
    for name, norm in (("a", 2.0), ("a2", 2.002), ("b", 2.004)):
        for step in (0, 1):
            data = {"Tensor.f.0.forward": forward([], [tensor(norm=norm)])}
            write(tmp_path / name / f"step{step}" / "rank", data)
    return [str(tmp_path / name) for name in ("a", "a2", "b")]


def test_the_noise_is_measured_by_the_processes_that_compare(golden_runs, monkeypatch):
    """F6: this process compared the golden runs, one step after the other. Here it can read no dump at all."""

    def refuse(dump, folder):
        raise UsageError(f"this process reads {folder.path}")

    golden, again, mine = golden_runs
    monkeypatch.setattr(Dump, "__init__", refuse)
    assert main(["compare", golden, mine, "--noise", again, "--jobs", "2"]) == 0
    assert main(["compare", golden, mine, "--jobs", "2"]) == 1


def test_the_dumps_of_the_noise_are_released(golden_runs, monkeypatch):
    opened, released = [], []
    opening, release = Dump.__init__, Dump.release
    monkeypatch.setattr(
        Dump, "__init__", lambda dump, *given: opened.append(dump) or opening(dump, *given)
    )
    monkeypatch.setattr(Dump, "release", lambda dump: released.append(dump) or release(dump))
    golden, again, mine = golden_runs
    assert probe.compare(golden, mine, noise=again).ok
    opened = [dump for dump in opened if type(dump) is Dump]
    assert len(opened) == 8
    assert {*map(id, opened)} <= {*map(id, released)}


def test_the_noise_obeys_the_choice_of_arrays(doubled, tmp_path, monkeypatch):
    opened, read = [], load.read_array
    monkeypatch.setattr(
        load, "read_array", lambda path, *further: opened.append(path) or read(path, *further)
    )
    probe.compare(*doubled, noise=doubled[0], arrays="none")
    assert opened == []


def test_a_second_golden_run_that_cannot_be_read_is_told(golden_runs, tmp_path, capsys):
    (tmp_path / "a2" / "step1" / "rank" / "dump.json").write_text("{")
    golden, again, mine = golden_runs
    for jobs in ("1", "2"):
        assert main(["compare", golden, mine, "--noise", again, "--jobs", jobs]) == 2
        assert "cannot be read" in capsys.readouterr().err


def test_the_answer_in_chinese_has_no_english_sentence(tmp_path, capsys):
    golden, mine = faulty(tmp_path)
    assert main(["compare", str(golden), str(mine), "--lang", "zh"]) == 1
    said = capsys.readouterr().out
    assert english_words(said) == []
    first = "首个差异：第 0 步，4 个 rank（0，1，2，3）"  # noqa: RUF001
    for words in ("已比较 12 份数据", first, "A 中为 0.25，B 中为 0.0625", "不同的 Cell"):  # noqa: RUF001
        assert words in said
    assert main(["compare", str(golden), str(mine), "--lang", "en"]) == 1
    assert capsys.readouterr().out == f"{probe.compare(golden, mine)}\n"


def test_every_kind_of_line_is_chinese(tmp_path):
    """Runs that agree with harmless changes, that cannot be compared, that differ in level, and in which dumps lack."""
    calls = {f"Functional.f{i}.0.forward": forward([tensor()], [tensor()]) for i in range(6)}
    more = {f"Functional.g{i}.0.forward": forward([], [tensor(norm=i + 9.0)]) for i in range(9)}
    other = {f"Functional.h{i}.0.forward": forward([tensor()], [tensor(norm=i)]) for i in range(9)}
    for name, data, header in (
        ("a", calls, {}),
        ("more", {**calls, **more}, {"run": {"seed": 1}}),
        ("other", other, {}),
        ("level", {**calls, "Cell.fc.Dense.forward.0": forward([], [tensor()])}, {"level": "L1"}),
    ):
        for step in (0, 1) if name == "more" else (0,):
            write(tmp_path / name / f"step{step}" / "rank0", data, **header)
    write(tmp_path / "a" / "step1" / "rank1", calls)
    for name in ("more", "other", "level"):
        comparison = probe.compare(tmp_path / "a", tmp_path / name)
        assert english_words(summary_text(comparison, "zh")) == [], summary_text(comparison, "zh")
        assert english_words(one_line(comparison, "zh")) == []
        assert str(comparison) == summary_text(comparison) == summary_text(comparison, "en")


def test_the_locale_chooses_the_language_of_the_command_alone(golden_runs, capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    golden, _, mine = golden_runs
    assert main(["compare", golden, mine]) == 1
    assert "首个差异" in capsys.readouterr().out
    assert "first difference" in str(probe.compare(golden, mine))
    monkeypatch.setenv("LC_ALL", "C")
    assert main(["compare", golden, mine]) == 1
    assert "first difference" in capsys.readouterr().out


def test_json_has_key_and_facts_of_each_sentence(tmp_path, capsys):
    golden = parameters(tmp_path / "a", (1.0, 1.0), "weight")
    mine = parameters(tmp_path / "b", (1.0, 1.5), "weight")
    assert main(["compare", str(golden), str(mine), "--json", "-", "--lang", "zh"]) == 1
    first = json.loads(capsys.readouterr().out)["origins"][0]
    assert first["sentence"].startswith("all of step 0 agrees")
    assert first["key"] == "clauses"
    cause, parameter = first["facts"]["parts"]
    assert cause == {"key": "compare.optimizer", "facts": {"step": 0, "next": 1}}
    assert (parameter["key"], parameter["facts"]["count"]) == ("compare.parameters", 4)
    inner = parameter["facts"]["finding"]["facts"]
    assert (inner["parameter"], inner["owner"]) == ("weight", "fc.Dense")
    numbers = inner["numbers"]["facts"]
    assert numbers["dtype"] == "Float32"
    assert {
        "key": "compare.number",
        "facts": {"name": "Norm", "left": 1.0, "right": 1.5},
    } in numbers["numbers"]


def test_json_stays_valid_where_numbers_are_not_finite(tmp_path, capsys):
    for name, norm in (("a", 2.0), ("b", float("inf"))):
        data = {"Tensor.f.0.forward": forward([tensor(), value(1)], [tensor(norm=norm, Max=norm)])}
        write(tmp_path / name / "step0" / "rank", data)
    main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json", "-"])
    facts = json.loads(capsys.readouterr().out)["origins"][0]["facts"]
    json.dumps(facts, allow_nan=False)


def test_chinese_columns_stand_in_line():
    table = columns([["不同的 Cell", "张量"], ["fc.Dense", "12"], ["不在任何 Cell 中", "3"]])
    assert len({space(line) for line in table.split("\n")}) == 1
    narrow = columns([["不在任何 Cell 中不在任何 Cell 中", "1"], ["x", "2"]], width=24)
    assert len({space(line) for line in narrow.split("\n")}) == 1
    assert space(narrow.split("\n")[0]) <= 24


def test_a_unit_of_noise_has_the_distances_of_its_tensors(golden_runs):
    golden, again, _ = (probe.open(path).folders[0] for path in golden_runs)
    apart = unit.noise_unit(golden, again, unit.Options())
    assert list(apart) == ["Tensor.f.0.forward.output.0"]
    assert 0 < apart["Tensor.f.0.forward.output.0"] < 2e-3
