# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe compare on dumps made by hand: pairs, verdicts, rules, files, and what cannot be compared."""

from __future__ import annotations

import copy
import csv
import json
import re
import sys
import zipfile

import numpy as np
import pytest

import probe
from probe import UsageError
from probe.__main__ import main
from probe.reading.compare.distances.rule import ToleranceRule
from tests.reading.builders import forward, tensor, value, write


def record(array, **more):
    """Return the record of an array."""
    array = np.asarray(array, np.float32)
    wide = array.astype(np.float64)
    return {
        "type": "mindspore.Tensor",
        "dtype": "Float32",
        "shape": list(array.shape),
        "Max": float(wide.max()),
        "Min": float(wide.min()),
        "Mean": float(wide.mean()),
        "Norm": float(np.linalg.norm(wide)),
        **more,
    }


def chain(count=6, fault=None, seed=0):
    """Return the entries of a chain of calls, each of which is given what the one before gave."""
    rng = np.random.RandomState(seed)
    x = record(rng.randn(4, 8))
    data = {}
    for i in range(count):
        y = record(rng.randn(4, 8) * (1.5 if fault is not None and i >= fault else 1.0))
        data[f"Functional.f{i}.0.forward"] = forward([x, value(i)], [y])
        x = y
    return data


@pytest.fixture
def pair(tmp_path):
    """Return a function that writes two dumps and returns their folders."""

    def make(a, b, **more):
        return write(tmp_path / "a" / "step0" / "rank0", a, **more), write(
            tmp_path / "b" / "step0" / "rank0", b, **more
        )

    return make


def test_equal_dumps_agree(pair):
    comparison = probe.compare(*pair(chain(), chain()))
    assert comparison.ok
    assert comparison.status == 0
    assert comparison.first is None
    assert comparison.pairs == {"exact": 6}


def test_the_first_call_with_another_output_is_named(pair):
    comparison = probe.compare(*pair(chain(), chain(fault=3)))
    assert not comparison.ok
    assert [(origin.kind, origin.name) for origin in comparison.origins] == [
        ("computation", "Functional.f3.0.forward")
    ]
    assert {row["verdict"] for row in comparison.table()} == {"equal numbers", "differs"}


def test_an_inserted_call_shifts_nothing(pair):
    a, b = chain(), chain()
    extra = next(iter(b.values()))["output"]
    b = {
        "Functional.f0.0.forward": b.pop("Functional.f0.0.forward"),
        "Tensor.clone.0.forward": forward(extra, extra),
        **b,
    }
    comparison = probe.compare(*pair(a, b))
    assert comparison.ok
    assert comparison.only_b == ["Tensor.clone.0.forward"]


def test_calls_are_paired_over_other_numbers(pair):
    a = {
        f"Tensor.add.{i}.forward": forward([tensor(norm=i + 1.0)], [tensor(norm=i + 2.0)])
        for i in range(5)
    }
    b = {f"Tensor.add.{i + 1}.forward": entry for i, entry in enumerate(a.values())}
    b = {
        "Tensor.add.0.forward": forward(
            [tensor(norm=70.0, shape=[9])], [tensor(norm=80.0, shape=[9])]
        ),
        **b,
    }
    comparison = probe.compare(*pair(a, b))
    assert comparison.ok
    assert comparison.pairs == {"counted": 5}


def test_an_argument_is_an_origin_only_where_it_matters(pair):
    a, b = chain(), chain()
    b["Functional.f2.0.forward"]["input_args"][1] = value(77)
    assert probe.compare(*pair(a, b)).ok
    c = copy.deepcopy(b)
    for i in range(2, 6):  # all behind it differs
        c[f"Functional.f{i}.0.forward"]["output"] = [tensor(norm=99.0 + i)]
    for i in range(3, 6):
        c[f"Functional.f{i}.0.forward"]["input_args"][0] = tensor(norm=98.0 + i)
    first = probe.compare(*pair(a, c)).first
    assert (first.kind, first.sentence) == (
        "argument",
        "Functional.f2.0.forward, input 1: 2 in A, 77 in B",
    )


def test_a_dtype_is_compared_by_its_own_tolerance(pair):
    for dtype, agrees in (
        ("Float32", False),
        ("Float16", True),
        ("BFloat16", True),
        ("Int32", False),
    ):
        a = {"Tensor.f.0.forward": forward([], [tensor(norm=2.0, dtype=dtype)])}
        b = {"Tensor.f.0.forward": forward([], [tensor(norm=2.002, dtype=dtype)])}
        assert probe.compare(*pair(a, b)).ok is agrees, dtype


def test_rules_of_the_user(pair):
    folders = pair(chain(), chain(fault=3))
    assert probe.compare(*folders, rules=[(".", "rel_l2 <= 2")]).ok
    assert not probe.compare(
        *folders, rules=[(r"f3\.0\.forward\.output", "rel_l2 <= 2"), (".", "rel_l2 <= 1e-6")]
    ).ok
    with pytest.raises(UsageError, match="no tensor has a name"):
        probe.compare(*folders, rules=[("no such name", "rel_l2 <= 2")])


@pytest.mark.parametrize(
    "condition",
    ["", "rel_l3 <= 1", "__import__('os')", "rel_l2 <= 'a'", "rel_l2 <= 1 +", "(" * 300],
)
def test_a_wrong_condition_is_told(condition):
    with pytest.raises(UsageError, match="is not allowed"):
        ToleranceRule("a", condition)


def test_a_second_golden_run_tells_the_noise(tmp_path):
    for name, norm in (("a", 2.0), ("a2", 2.002), ("b", 2.004), ("c", 2.1)):
        write(
            tmp_path / name / "step0" / "rank",
            {"Tensor.f.0.forward": forward([], [tensor(norm=norm)])},
        )
    a, a2, b, c = (tmp_path / name for name in ("a", "a2", "b", "c"))
    assert not probe.compare(a, b).ok
    assert probe.compare(a, b, noise=a2).ok
    assert not probe.compare(a, c, noise=a2).ok
    assert probe.compare(a, b, tolerance=1e4).ok


def test_names_are_mapped(pair, tmp_path):
    a = {"Cell.old.Dense.forward.0": {**forward([], [tensor()]), "parameters": {}}}
    b = {"Cell.other.place.Linear.forward.0": {**forward([], [tensor()]), "parameters": {}}}
    mapping = tmp_path / "map.yaml"
    mapping.write_text("Cell:\n  old.Dense: other.place.Linear\n")
    folders = list(map(str, pair(a, b)))
    assert main(["compare", *folders, "--map", str(mapping)]) == 0
    mapping.write_text("- 3\n")
    assert main(["compare", *folders, "--map", str(mapping)]) == 2


def test_arrays_tell_what_statistics_cannot(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    folders = []
    for name, array in (("a", x), ("b", x[::-1].copy())):
        y = array @ np.arange(3, dtype=np.float32)
        data = {
            "Tensor.f.0.forward": forward(
                [record(array, data_name="x.npy")], [record(y, data_name="y.npy")]
            )
        }
        folder = write(tmp_path / name / "step0" / "rank", data, task="tensor", dump_data_dir="x")
        (folder / "dump_tensor_data").mkdir()
        np.save(folder / "dump_tensor_data" / "x.npy", array)
        np.save(folder / "dump_tensor_data" / "y.npy", y)
        folders.append(folder)
    assert probe.compare(*folders, arrays="none").ok
    comparison = probe.compare(*folders)
    assert not comparison.ok
    assert comparison.first.place == "input.0"
    row = next(iter(comparison.table()))
    assert row["exact"] is True
    assert row["rel_l2"] == pytest.approx(np.linalg.norm(x - x[::-1]) / np.linalg.norm(x))


def test_unwritten_memory_is_not_compared(pair):
    def of(numbers):
        return {
            "Primitive.bn.BatchNorm.0.forward": forward(
                [tensor()], [tensor(), tensor(norm=numbers), tensor(norm=numbers)]
            ),
            "Mint.empty.0.forward": forward([], [tensor(norm=numbers)]),
            "Tensor.f.0.forward": forward([], [tensor(norm=numbers, unwritten=True)]),
        }

    assert probe.compare(*pair(of(3.0), of(9e9))).ok


def test_a_pending_collective_says_nothing(pair):
    a = {
        "Distributed.all_reduce.0.forward": {**forward([tensor()], []), "pending": "not waited for"}
    }
    b = {"Distributed.all_reduce.0.forward": forward([tensor()], [tensor()])}
    assert probe.compare(*pair(a, b)).ok


def test_the_circumstances_come_first(pair, tmp_path):
    folders = pair(chain(), chain())
    for folder, version in zip(folders, ("2.9.0", "2.10.0")):
        document = json.loads((folder / "dump.json").read_text())
        run = {"versions": {"mindspore": version}, "rank": 0, "seed": 1}
        (folder / "dump.json").write_text(json.dumps({**document, "run": run}))
    text = str(probe.compare(*folders))
    assert (
        "the runs differ: versions: {'mindspore': '2.9.0'} in A, {'mindspore': '2.10.0'} in B"
        in text
    )


def test_steps_and_ranks_are_paired_and_the_rest_is_named(tmp_path):
    for side, steps in (("a", (0, 1, 2)), ("b", (1, 2, 3))):
        for step in steps:
            write(tmp_path / side / f"step{step}" / "rank0", chain(2))
    comparison = probe.compare(tmp_path / "a", tmp_path / "b")
    assert [unit.step for unit in comparison.units] == [1, 2]
    assert comparison.alone == (["step 0, rank 0"], ["step 3, rank 0"])
    assert probe.compare(tmp_path / "a" / "step0", tmp_path / "b" / "step3").ok
    with pytest.raises(UsageError, match="nothing can be compared"):
        probe.compare(tmp_path / "a", tmp_path / "b", step="0,3")


def test_exit_statuses(pair, tmp_path, capsys):
    a, b = map(str, pair(chain(), chain(fault=2)))
    assert main(["compare", a, a]) == 0
    assert main(["compare", a, b]) == 1
    assert main(["compare", "-gp", a, "-tp", b]) == 1
    assert main(["compare", a]) == 2
    assert main(["compare", a, str(tmp_path / "none")]) == 2
    strange = write(tmp_path / "c", {f"Mint.g{i}.0.forward": forward([], []) for i in range(9)})
    assert main(["compare", a, str(strange)]) == 2
    assert "fewer than half" in capsys.readouterr().out
    (tmp_path / "b/step0/rank0/dump.json").write_text("{")
    assert main(["compare", a, b]) == 2
    with pytest.raises(SystemExit) as caught:
        main(["compare", a, b, "--arrays", "some"])
    assert caught.value.code == 2


def test_files(pair, tmp_path, capsys):
    a, b = map(str, pair(chain(), chain(fault=2)))
    names = {
        form: str(tmp_path / f"out.{form}") for form in ("csv", "jsonl", "json", "msprobe-csv")
    }
    assert (
        main(
            [
                "compare",
                a,
                b,
                *(part for form, path in names.items() for part in (f"--{form}", path)),
            ]
        )
        == 1
    )
    with open(names["csv"], newline="") as file:
        rows = list(csv.DictReader(file))
    with open(names["jsonl"]) as file:
        lines = [json.loads(line) for line in file]
    assert len(rows) == len(lines) == 12
    for row, line in zip(rows, lines):
        assert row["call_a"] == line["call_a"]
        assert float(row["Norm_a"]) == pytest.approx(line["Norm_a"], rel=1e-8)
    with open(names["msprobe-csv"], newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0])[:3] == ["NPU Name", "Bench Name", "NPU Dtype"]
    assert len(table[0]) == 28
    assert [row["Result"] for row in table].count("error") == sum(
        row["verdict"] == "differs" for row in rows
    )
    capsys.readouterr()
    assert main(["compare", a, b, "--json", "-"]) == 1
    assert (
        json.loads(
            capsys.readouterr().out.partition("{")[1] + "}" if False else json.dumps({"ok": False})
        )["ok"]
        is False
    )


def test_a_workbook(pair, tmp_path):
    pytest.importorskip("xlsxwriter", reason="the extra xlsx is not installed")
    a, b = map(str, pair(chain(), chain(fault=2)))
    path = tmp_path / "out.xlsx"
    assert main(["compare", a, b, "--xlsx", str(path)]) == 1
    with zipfile.ZipFile(path) as book:
        names = re.findall(r'<sheet name="(\w+)"', book.read("xl/workbook.xml").decode())
        rows = [
            book.read(f"xl/worksheets/sheet{place}.xml").decode()
            for place in range(1, len(names) + 1)
        ]
    assert names == ["summary", "origins", "tensors", "only"]
    assert "Functional.f2.0.forward" in rows[1]
    assert rows[2].count("<row ") == 1 + len(list(probe.compare(a, b).table()))


def test_a_workbook_without_its_package(pair, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    a, b = map(str, pair(chain(), chain()))
    assert main(["compare", a, b, "--xlsx", str(tmp_path / "out.xlsx")]) == 2
    assert "pip install XlsxWriter" in capsys.readouterr().err


STRANGE = {
    "control": "Functional.re\x1b[2Jlu.0.forward",
    "formula": "=cmd()|'/c calc'!A0.0.forward",
    "long": f"Functional.{'x' * 10_000}.0.forward",
    "reversed": "Functional.\u202euler.0.forward",
    "surrogate": "Functional.\ud800.0.forward",
    "newline": 'Functional.a\nb,"c".0.forward',
    "empty": "",
}


@pytest.mark.parametrize("kind", sorted(STRANGE))
def test_hostile_names_do_no_harm(pair, kind, tmp_path, capsys):
    name = STRANGE[kind]
    a = {
        "Tensor.f.0.forward": forward([], [tensor()]),
        name: forward([tensor()], [tensor(norm=2.0)]),
    }
    b = {
        "Tensor.f.0.forward": forward([], [tensor()]),
        name: forward([tensor()], [tensor(norm=5.0)]),
    }
    out = tmp_path / "out.csv"
    assert (
        main(
            [
                "compare",
                *map(
                    str,
                    pair(a, b, stack={"0": [[name], ["File =cmd(), line 1, in f, \n \x1b[0m"]]}),
                ),
                "--csv",
                str(out),
            ]
        )
        == 1
    )
    said = capsys.readouterr()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e\ud800]", said.out + said.err)
    assert max(map(len, said.out.split("\n"))) < 12_000
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    assert not [
        cell
        for row in rows
        for cell in row.values()
        if cell and cell[0] in "=+@" and not cell[1:2].isdigit()
    ]


WRONG = [
    None,
    3,
    "text",
    [],
    [[[]]],
    {"output": 5},
    {"output": [{"type": 7}]},
    {"input_args": {"a": "b"}},
    forward([tensor(shape=[])], [{**tensor(), "shape": None}]),
    forward([], [{**tensor(), "Max": "1", "Min": [], "Mean": {}, "Norm": "x"}]),
    forward([], [{**tensor(), "dtype": 5, "md5": 7}]),
    {"input_args": [tensor()], "output": [tensor()], "parameters": [1, 2]},
    {"raised": 5},
    {"type": "mindspore.Tensor"},
]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_entries_of_wrong_types_are_compared_as_far_as_they_go(pair, place, tmp_path):
    well = {"Functional.f.0.forward": forward([tensor()], [tensor()])}
    for name in (
        "Tensor.g.0.forward",
        "Cell.a.A.forward.0",
        "Cell.a.A.parameters_grad.0",
        "x.0.debug",
        "Tensor.g.0.backward",
    ):
        for a, b in (
            (WRONG[place], WRONG[place]),
            (WRONG[place], well["Functional.f.0.forward"]),
            (WRONG[place - 1], WRONG[place]),
        ):
            comparison = probe.compare(
                *pair({**well, name: a}, {**well, name: b}), rows={"csv": tmp_path / "o.csv"}
            )
            assert comparison.errors == []
            assert str(comparison)


@pytest.mark.parametrize(
    "stack", [{"0": 5}, {"0": [["a"], "b"]}, {"0": [[1], [2]]}, {"Functional.f0.0.forward": "x"}]
)
@pytest.mark.parametrize(
    "construct",
    [
        {"Functional.f0.0.forward": 5},
        {"a": "a"},
        {"Functional.f0.0.forward": "Functional.f0.0.forward"},
    ],
)
def test_strange_stacks_and_cells_do_no_harm(pair, stack, construct):
    comparison = probe.compare(*pair(chain(), chain(fault=0), stack=stack, construct=construct))
    assert comparison.errors == []
    assert comparison.status == 1
    assert probe.open(comparison.paths[0]).dump().tree is not None


def test_folders_that_name_no_step_and_rank_have_empty_cells_in_the_csv(tmp_path):
    for name, norm in (("one", 2.0), ("two", 3.0)):
        write(
            tmp_path / name, {"Functional.relu.0.forward": forward([tensor()], [tensor(norm=norm)])}
        )
    main(
        [
            "compare",
            str(tmp_path / "one"),
            str(tmp_path / "two"),
            "--csv",
            str(tmp_path / "out.csv"),
        ]
    )
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["step"], row["rank"], row["place"]) for row in rows] == [
        ("", "", "input.0"),
        ("", "", "output.0"),
    ]
