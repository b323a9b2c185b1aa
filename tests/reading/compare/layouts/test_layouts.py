# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe compare of two parallel layouts, on ranks that are made of real dumps of one rank."""

from __future__ import annotations

import csv
import itertools
import json
import re
import shutil
import sys

import numpy as np
import pytest

import probe
from probe.__main__ import main
from probe.reading.compare.answer.summary import summary_text
from probe.reading.dumps import load
from tests.reading.builders import forward, tensor, value, write
from tests.reading.compare.layouts.split import Split
from tests.support import processes
from tests.support.paths import ROOT, environment
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

LAYOUTS = (
    "tp=2",
    "tp=4",
    "pp=2",
    "tp=2,pp=2",
    "dp=2",
    "tp=2,pp=4,dp=2",
    "tp=2,pp=2,order=pp-tp-dp",
)
TASKS = ("tensor", "statistics")


@pytest.fixture(scope="session")
def dumps(tmp_path_factory):
    """Return a function that gives the dump of a layout and a fault, made of a real one of one rank."""
    base = tmp_path_factory.mktemp("layouts")

    wholes = {}

    def find(layout="", fault="", task="tensor", level="mix", steps=1, micro=1):
        recorded = "L0" if level == "L0" else "mix"
        whole = base / f"{fault or 'golden'}-{recorded}{micro}" / "dump"
        if not whole.exists():
            program = [
                sys.executable,
                ROOT / "tests/reading/compare/layouts/training.py",
                whole.parent,
            ]
            program += [fault, recorded, str(micro)]
            processes.run(program, check=True, capture_output=True, env=environment(), timeout=300)
        made = base / f"{task}-{fault or 'golden'}-{level}-{layout or 'one'}-{steps}-{micro}"
        for step in range(0 if made.exists() else steps):
            key = whole / f"step{step}" / "rank", task == "statistics", level == "L1"
            if key not in wholes:
                wholes[key] = Split(*key)
            wholes[key].write(made, layout or "tp=1", step)
        return made

    yield find
    shutil.rmtree(base)


def compare(a, b, layout_a="", layout_b=""):
    return probe.compare(a, b, layout_a=layout_a or "tp=1", layout_b=layout_b or "tp=1")


@pytest.mark.parametrize(
    ("layout", "task"),
    [
        *((layout, "statistics") for layout in LAYOUTS),
        ("tp=2", "tensor"),
        ("tp=2,pp=2", "tensor"),
        ("dp=2", "tensor"),
    ],
)
def test_a_layout_agrees_with_one_rank(dumps, layout, task):
    for sides in (("", layout), (layout, "")):
        comparison = compare(*(dumps(side, task=task) for side in sides), *sides)
        assert comparison.ok, comparison
        assert set(comparison.pairs) == {"exact"}
        allowed = {"same"} if task == "tensor" else {"equal numbers", "close"}
        assert set(comparison.verdicts) - {"not combined"} <= allowed
        assert comparison.verdicts.get("not combined", 0) == ("tp" in layout)


PAIRS = [*itertools.permutations(LAYOUTS, 2)]


@pytest.mark.parametrize(("a", "b"), thorough_but(PAIRS[::8], PAIRS), ids=str)
def test_two_layouts_agree(dumps, a, b):
    comparison = compare(dumps(a, task="statistics"), dumps(b, task="statistics"), a, b)
    assert comparison.ok, comparison
    assert comparison.verdicts.get("not combined", 0) < 0.01 * sum(comparison.verdicts.values())


@pytest.mark.parametrize("level", thorough_but(["L0"], ["L0", "L1"]))
@pytest.mark.parametrize("layout", thorough_but(["tp=2"], ["tp=2", "pp=2", "tp=2,pp=2"]))
def test_the_other_levels(dumps, layout, level):
    comparison = compare(
        dumps(level=level, task="statistics"), dumps(layout, "", "statistics", level), "", layout
    )
    assert comparison.ok, comparison
    named = compare(dumps(level=level), dumps(layout, "row", "tensor", level), "", layout)
    assert not named.ok
    if level == "L0":
        assert (named.first.kind, named.first.cell, named.first.rank) == (
            "parameter",
            "layers.1.attention.proj.Row",
            0,
        )


@pytest.mark.parametrize("layout", thorough_but([], ["tp=2", "pp=2", "tp=2,pp=4"]))
def test_several_micro_batches(dumps, layout):
    golden, mine = (dumps(side, task="statistics", micro=2) for side in ("", layout))
    for sides, layouts in (((golden, mine), ("", layout)), ((mine, golden), (layout, ""))):
        comparison = compare(*sides, *layouts)
        assert comparison.ok, comparison
        assert sum(comparison.pairs.values()) == 992


@pytest.mark.thorough
def test_several_micro_batches_without_cells(dumps):
    golden, mine, split = (
        dumps(side, "", "statistics", "L1", 1, 2) for side in ("", "pp=2", "tp=2")
    )
    comparison = compare(golden, mine, "", "pp=2")
    assert comparison.status == 2
    assert "A has several micro-batches and no Cells" in str(comparison)
    assert "Record it at level mix or L0" in str(comparison)
    assert compare(golden, split, "", "tp=2").ok


#: fault -> kind, Cell, ranks of each layout
FAULTS = {
    "weight": (
        "parameter",
        "layers.2.mlp.fc1.Column",
        {"tp=2": [1], "pp=2": [1], "tp=2,pp=2": [3], "tp=4": [2, 3]},
    ),
    "row": (
        "parameter",
        "layers.1.attention.proj.Row",
        {"tp=2": [0], "pp=2": [0], "tp=2,pp=2": [0], "tp=4": [0, 1]},
    ),
    "gain": (
        "outside value",
        "layers.2.mlp.Mlp",
        {"tp=2": [1], "pp=2": [1], "tp=2,pp=2": [3], "tp=4": [2, 3]},
    ),
}


def ranks_of(origin):
    return [origin.rank, *origin.ranks]


PLACES = [(fault, layout) for fault in FAULTS for layout in ("tp=2", "tp=2,pp=2")] + [
    ("weight", "tp=4"),
    ("row", "pp=2"),
]


@pytest.mark.parametrize(("fault", "layout"), thorough_but(PLACES[:1], PLACES))
def test_a_fault_in_one_shard_is_named_with_its_rank(dumps, fault, layout):
    kind, cell, ranks = FAULTS[fault]
    comparison = compare(dumps(), dumps(layout, fault), "", layout)
    assert (comparison.first.kind, comparison.first.cell) == (kind, cell), comparison
    assert len(comparison.origins) == 1, comparison
    assert ranks_of(comparison.first) == ranks[layout]
    assert f"step 0, {'rank' if len(ranks[layout]) == 1 else '2 ranks'}" in str(comparison)
    assert f"{ranks[layout][0]}" in comparison.first.sentence
    assert comparison.status == 1


@pytest.mark.parametrize("fault", thorough_but(["row"], ["weight", "row"]))
def test_statistics_name_the_rank_whose_shard_cannot_be_a_part(dumps, fault):
    kind, cell, ranks = FAULTS[fault]
    for layout, other in (("tp=2", ""), ("tp=2,pp=2", ""), ("tp=4", "tp=2")):
        comparison = compare(
            dumps(other, task="statistics"), dumps(layout, fault, "statistics"), other, layout
        )
        assert (comparison.first.kind, comparison.first.cell) == (kind, cell), comparison
        assert ranks_of(comparison.first) == ranks[layout]


def test_statistics_that_do_not_tell_the_rank_name_the_group(dumps):
    comparison = compare(dumps(task="statistics"), dumps("tp=2", "gain", "statistics"), "", "tp=2")
    assert comparison.first.cell == "layers.2.mlp.Mlp"
    assert ranks_of(comparison.first) == [0, 1]
    assert comparison.first.sentence.endswith(
        "the dumps do not tell on which of ranks 0, 1 of B it is"
    )


def test_ranks_are_named_without_arrays_that_the_user_has_excluded(dumps, monkeypatch):
    golden, mine, opened, read = dumps(), dumps("tp=2", "gain"), [], load.read_array
    monkeypatch.setattr(
        load, "read_array", lambda path, *further: opened.append(path) or read(path, *further)
    )
    first = probe.compare(golden, mine, layout_b="tp=2", arrays="none").first
    assert opened == []
    assert first.sentence.endswith("the dumps do not tell on which of ranks 0, 1 of B it is")
    assert probe.compare(golden, mine, layout_b="tp=2").first.sentence.endswith(
        "rank 1's shard in B differs"
    )
    assert opened


def planted(dumps, tmp_path, change, task):
    """Return the comparison with ranks of tp=2, of which one has another tensor."""
    golden = dumps(task=task)
    whole = golden.parent / "golden-mix1" / "dump" / "step0" / "rank"
    Split(whole, task == "statistics").write(tmp_path / "planted", "tp=2", 0, change)
    return compare(golden, tmp_path / "planted", "", "tp=2")


@pytest.mark.parametrize("task", TASKS)
def test_a_replicated_parameter_that_one_rank_has_otherwise(dumps, tmp_path, task):
    def change(rank, name, place, array):
        here = (name, place) in (
            ("Cell.layers.1.norm1.Norm.forward.0", "parameters.weight"),
            ("Tensor.__mul__.10.forward", "input.1"),
        )
        return array * np.float32(1.5) if rank == 1 and here else array

    comparison = planted(dumps, tmp_path, change, task)
    assert (comparison.first.kind, comparison.first.cell, comparison.first.rank) == (
        "parameter",
        "layers.1.norm1.Norm",
        1,
    ), comparison
    assert comparison.first.sentence.endswith("rank 1's value in B differs")


@pytest.mark.parametrize("task", TASKS)
def test_a_replicated_computation_that_one_rank_makes_otherwise(dumps, tmp_path, task):
    def change(rank, name, place, array):
        here = rank == 1 and (name, place) == ("Functional.rsqrt.0.forward", "output.0")
        return array * np.float32(1.5) if here else array

    comparison = planted(dumps, tmp_path, change, task)
    assert (comparison.first.kind, comparison.first.name, comparison.first.rank) == (
        "computation",
        "Functional.rsqrt.0.forward",
        1,
    ), comparison


@pytest.mark.parametrize("task", TASKS)
def test_other_data_on_one_rank(dumps, tmp_path, task):
    comparison = planted(
        dumps,
        tmp_path,
        lambda rank, name, place, array: array + (rank == 1 and array.dtype.kind == "i"),
        task,
    )
    assert (comparison.first.kind, comparison.first.rank) == ("data", 1), comparison


@pytest.mark.parametrize("task", TASKS)
def test_a_gradient_of_one_shard(dumps, tmp_path, task):
    def change(rank, name, place, array):
        here = (
            rank == 1
            and name == "Cell.layers.0.mlp.fc2.Row.parameters_grad.0"
            and place == "weight.0"
        )
        return array * np.float32(3) if here else array

    comparison = planted(dumps, tmp_path, change, task)
    assert comparison.first.name == "Cell.layers.0.mlp.fc2.Row.parameters_grad.0", comparison
    assert (comparison.first.kind, comparison.first.rank) == ("gradient", 1)


@pytest.mark.thorough
def test_all_that_is_not_combined_is_listed(dumps, tmp_path):
    path = tmp_path / "rows.csv"
    comparison = probe.compare(
        dumps("tp=2", steps=2), dumps(steps=2), layout_a="tp=2", rows={"csv": path}
    )
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [
        (row["step"], row["call_a"], row["place"])
        for row in rows
        if row["verdict"] == "not combined"
    ] == [
        ("0", "Functional.gather.0.forward", "output.0"),
        ("1", "Functional.gather.0.forward", "output.0"),
    ]
    assert "not combined 2" in str(comparison)
    assert "the first is Functional.gather.0.forward.output.0" in str(comparison)
    assert [row["verdict"] for row in comparison.table()] == [row["verdict"] for row in rows]


def test_the_rows_have_the_numbers_of_the_whole(dumps):
    rows = {
        (row["call_a"], row["place"]): row
        for row in compare(dumps("tp=4", task="statistics"), dumps(), "tp=4", "").table()
    }
    row = rows["Cell.layers.0.mlp.fc2.Row.forward.0", "parameters.weight"]
    assert row["shape_a"] == row["shape_b"] == "24x56"
    assert (row["Max_a"], row["Min_a"]) == (row["Max_b"], row["Min_b"])
    assert row["Mean_a"] == pytest.approx(row["Mean_b"], abs=1e-7)
    assert row["Norm_a"] == pytest.approx(row["Norm_b"], rel=1e-6)


def test_replicas_are_said(dumps):
    text = str(compare(dumps("dp=2"), dumps(), "dp=2", ""))
    assert "A has 2 data-parallel replicas; rank 0's stands for them" in text


def test_equal_layouts_are_compared_rank_by_rank(dumps):
    comparison = compare(dumps("tp=2", steps=2), dumps("tp=2", "weight", steps=2), "tp=2", "tp=2")
    assert [(unit.step, unit.rank) for unit in comparison.units] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert comparison.first.rank == 1


def test_several_processes_give_the_same(dumps, tmp_path):
    program = (
        "import sys, probe\n"
        "if __name__ == '__main__':\n"
        "    print(probe.compare(*sys.argv[1:3], layout_b=sys.argv[3], jobs=2))\n"
    )
    (tmp_path / "compare.py").write_text(program)
    a, b = dumps(steps=2), dumps("tp=2,pp=2", "row", steps=2)
    words = [sys.executable, tmp_path / "compare.py", a, b, "tp=2,pp=2"]
    done = processes.run(
        words, check=True, capture_output=True, text=True, env=environment(), timeout=300
    )
    assert done.stdout.rstrip("\n") == str(compare(a, b, "", "tp=2,pp=2"))


def test_the_layout_may_stand_in_the_header(dumps, tmp_path):
    shutil.copytree(dumps("tp=2,pp=2"), tmp_path / "mine")
    for path in (tmp_path / "mine").rglob("dump.json"):
        document = json.loads(path.read_text())
        document["run"]["layout"] = {"tp": 2, "pp": 2} if "rank0" in str(path) else "tp=2,pp=2"
        path.write_text(json.dumps(document, indent=1))
    comparison = probe.compare(dumps(), tmp_path / "mine")
    assert comparison.ok
    assert len(comparison.units) == 1


def test_arrays_of_fused_blocks_are_put_in_the_order_of_the_whole(tmp_path):
    """A rank has a part of the gate and a part of the other half: [gate of rank 0, up of rank 0], ..."""
    whole = np.random.RandomState(0).randn(8, 3).astype(np.float32)
    parts = [whole[[0, 1, 4, 5]], whole[[2, 3, 6, 7]] * np.float32(1)]
    for name, arrays in (
        ("a", [whole]),
        ("b", parts),
        ("c", [parts[0], parts[1] * np.float32(1.01)]),
    ):
        for rank, array in enumerate(arrays):
            folder = tmp_path / name / "step0" / f"rank{rank}"
            record = tensor(
                shape=list(array.shape),
                Max=float(array.max()),
                Min=float(array.min()),
                Mean=float(array.mean()),
                Norm=float(np.linalg.norm(array)),
                data_name="weight.npy",
            )
            entry = {**forward([tensor()], [tensor()]), "parameters": {"weight": record}}
            write(folder, {"Cell.fc.Column.forward.0": entry}, dump_data_dir="x", task="tensor")
            (folder / "dump_tensor_data").mkdir()
            np.save(folder / "dump_tensor_data" / "weight.npy", array)
    assert compare(tmp_path / "a", tmp_path / "b", "", "tp=2").ok
    named = compare(tmp_path / "a", tmp_path / "c", "", "tp=2")
    assert named.first.rank == 1
    assert named.first.rel_l2 == pytest.approx(0.01, rel=0.5)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (
            "tp=3",
            [
                "tp=3 times pp=1 is 3, and 4 ranks (0, 1, 2, 3) are no multiple",
                "product is the number of ranks",
            ],
        ),
        ("tp=8", ["tp=8 times pp=1 is 8, and 4 ranks"]),
        ("tp=2,dp=1", ["needs the 2 ranks 0 to 1, and there are 4 ranks"]),
        ("tp=2,dp=4", ["needs the 8 ranks 0 to 7, and rank 4 is missing"]),
        (
            "cp=2",
            ["'cp=2' is not allowed. Allowed: tp, pp, dp, vpp with a number from 1, and order"],
        ),
        ("tp=0", ["'tp=0' is not allowed"]),
        ("tp=two", ["'tp=two' is not allowed"]),
        ("tp", ["'tp' is not allowed"]),
        ("tp=2,tp=2", ["tp is given twice"]),
        (" , ", ["Allowed: tp, pp, dp, vpp"]),
        ("tp=2,order=tp-pp", ["order=tp-pp is not allowed. Allowed: tp, dp and pp in any order"]),
        (
            "pp=2,vpp=2",
            [
                "vpp=2: stages that hold several chunks are not put together",
                "Allowed: equal pp and vpp",
            ],
        ),
    ],
)
def test_a_wrong_layout_is_refused(dumps, layout, words, capsys):
    arguments = [
        "compare",
        str(dumps()),
        str(dumps("tp=2,pp=2")),
        "--layout-b",
        layout,
        "--jobs",
        "1",
    ]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    for part in words:
        assert part in error


def test_ranks_that_are_missing(dumps, tmp_path, capsys):
    shutil.copytree(dumps("tp=4", task="statistics", steps=2), tmp_path / "mine")
    shutil.rmtree(tmp_path / "mine" / "step1" / "rank2")
    comparison = compare(dumps(task="statistics", steps=2), tmp_path / "mine", "", "tp=4")
    assert comparison.agrees
    assert comparison.status == 2
    assert [[*map(str, labels)] for labels in comparison.alone] == [["step 1 (rank 2)"], []]
    assert "cannot be known: B lacks step 1 (rank 2). Record" in summary_text(comparison)
    assert "仅在 A，未比较：第 1 步（rank 2）" in summary_text(comparison, "zh")  # noqa: RUF001
    shutil.rmtree(tmp_path / "mine" / "step0" / "rank2")
    assert (
        main(
            ["compare", str(dumps(task="statistics")), str(tmp_path / "mine"), "--layout-b", "tp=4"]
        )
        == 2
    )
    assert re.search(
        r"B: tp=4 times pp=1 is 4, and 3 ranks \(0, 1, 3\) are no multiple", capsys.readouterr().err
    )


def test_other_wrong_uses(dumps, capsys):
    four, one = str(dumps("tp=4")), str(dumps())
    for words, text in (
        (
            [four, one, "--layout-b", "tp=1"],
            "A has 4 ranks, and its layout is not known: give --layout-a, as tp=4",
        ),
        (
            [four, one, "--layout-a", "tp=4", "--rank", "0"],
            "--rank cannot be used with two layouts",
        ),
        (
            [four, one, "--layout-a", "tp=4", "--noise", four],
            "--noise cannot be used with two layouts",
        ),
        ([four, one, "--layout-a", "tp=4", "--step", "7"], "no dump of step 7"),
    ):
        assert main(["compare", *words]) == 2
        assert text in capsys.readouterr().err


def test_a_dump_of_one_rank_that_cannot_be_read(dumps, tmp_path, capsys):
    shutil.copytree(dumps("tp=2"), tmp_path / "mine")
    (tmp_path / "mine" / "step0" / "rank1" / "dump.json").write_text('{"data": ')
    assert (
        main(["compare", str(dumps()), str(tmp_path / "mine"), "--layout-b", "tp=2", "--jobs", "1"])
        == 2
    )
    assert "rank1" in capsys.readouterr().out


def test_the_command(dumps, tmp_path, capsys):
    words = [
        "compare",
        str(dumps("tp=2")),
        str(dumps()),
        "--layout-a",
        "tp=2",
        "--layout-b",
        "tp=1",
    ]
    assert main([*words, "--jsonl", str(tmp_path / "rows"), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["verdicts"]["not combined"]) == (True, 1)
    lines = (tmp_path / "rows").read_text().splitlines()
    assert any(json.loads(line)["verdict"] == "not combined" for line in lines)


@pytest.mark.parametrize(
    "wrong",
    [None, 7, "x", [], {"type": "mindspore.Tensor"}, {"type": "mindspore.Tensor", "shape": "ab"}],
)
def test_a_document_that_holds_anything(tmp_path, wrong):
    good = forward([tensor(), value(2)], [tensor(norm=4.0)])
    for name, ranks in (("a", 1), ("b", 2)):
        for rank in range(ranks):
            strange = (
                {**good, "output": [wrong], "stored": wrong, "not_combined": wrong}
                if rank
                else good
            )
            data = {
                "Functional.f.0.forward": good,
                "Functional.g.0.forward": strange,
                "odd": wrong if rank else good,
            }
            write(tmp_path / name / "step0" / f"rank{rank}", data, dump_data_dir="x")
    assert compare(tmp_path / "a", tmp_path / "b", "", "tp=2").errors == []


def of(array, **more):
    """Return the record of an array."""
    numbers = {"Max": float(array.max()), "Min": float(array.min()), "Mean": float(array.mean())}
    return tensor(shape=list(array.shape), Norm=float(np.linalg.norm(array)), **numbers, **more)


def sequence_parallel(tmp_path, changed=None, seed=0, tp=(1, 2)):
    """Compare two layouts, in which the sum of a row layer is scattered over the sequence.

    Args:
        changed: gets the rows of the last rank of B.
        seed: of the numbers: of some the sums of the parts are bitwise those of the whole, of others not.
        tp: the ranks of A and of B.
    """
    random = np.random.RandomState(seed)
    x, weight = random.randn(8, 12), random.randn(12, 6)
    y = x @ weight
    for path, ranks in zip(("a", "b"), tp):
        for rank in range(ranks):
            own = np.split(np.arange(12), ranks)[rank]
            part, rows = x[:, own] @ weight[own], np.split(y, ranks)[rank]
            if changed and path == "b" and rank == ranks - 1:
                rows = changed(rows)
            if ranks == 1:
                part = rows
            data = {
                "Functional.matmul.0.forward": forward([of(x[:, own]), of(weight[own])], [of(part)])
            }
            if ranks > 1:
                given = [
                    tensor(shape=list(rows.shape), Max=0.0, Min=0.0, Mean=0.0, Norm=0.0),
                    of(part),
                ]
                data["MintDistributed.reduce_scatter_tensor.0.forward"] = forward(
                    given, [of(rows), of(part)]
                )
            data["Functional.tanh.0.forward"] = forward([of(rows)], [of(np.tanh(rows))])
            write(tmp_path / str(seed) / path / "step0" / f"rank{rank}", data, level="L1")
    return compare(
        *(tmp_path / str(seed) / path for path in ("a", "b")), *(f"tp={ranks}" for ranks in tp)
    )


@pytest.mark.parametrize("tp", [(1, 2), (2, 1), (2, 4)], ids=str)
def test_a_sum_that_is_scattered(tmp_path, tp):
    for seed in range(8):
        comparison = sequence_parallel(tmp_path, seed=seed, tp=tp)
        assert comparison.ok, comparison
        assert set(comparison.verdicts) == {"equal numbers"}
        if 1 in tp:
            assert comparison.pairs == {"exact": 2}


@pytest.mark.parametrize("tp", [(1, 2), (2, 1), (2, 4)], ids=str)
def test_a_sum_that_is_scattered_wrongly(tmp_path, tp):
    for seed in range(8):
        comparison = sequence_parallel(tmp_path, lambda rows: 3.0 * rows, seed, tp)
        assert (comparison.first.name, comparison.first.kind) == (
            "Functional.matmul.0.forward",
            "computation",
        ), seed


def test_a_small_change_of_a_scattered_sum_is_no_rounding(tmp_path):
    def one_number_between(rows):
        found = rows.copy()
        found.flat[np.argsort(rows, axis=None)[rows.size // 2]] *= 1 + 1e-6
        return found

    for seed in range(8):
        assert "close" in sequence_parallel(tmp_path, one_number_between, seed).verdicts, seed


@pytest.mark.parametrize(("crc", "ok"), [("aaaaaaaa", True), ("bbbbbbbb", False)])
def test_replicated_parameters_without_numbers(tmp_path, crc, ok):
    numbers = {"Max": None, "Min": None, "Mean": None, "Norm": None}
    for path, ranks in (("one", 1), ("two", 2)):
        for rank in range(ranks):
            record = tensor(**numbers, md5=crc if rank else "aaaaaaaa")
            entry = {
                **forward([tensor(**numbers, md5="0")], [tensor(**numbers, md5="1")]),
                "parameters": {"weight": record},
            }
            write(
                tmp_path / path / "step0" / f"rank{rank}",
                {"Cell.norm.Norm.forward.0": entry},
                level="L0",
            )
    comparison = compare(tmp_path / "one", tmp_path / "two", "", "tp=2")
    assert comparison.verdicts.get("same", 0) == (3 if ok else 2)


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_cells_of_another_class(tmp_path, scale):
    """The split layers have classes of their own, and other shapes: they are paired by their attributes."""
    random = np.random.RandomState(0)
    x, fc1, fc2 = random.randn(4, 6), random.randn(8, 6), random.randn(6, 8)
    wrong = fc1 * np.where(np.arange(8) < 4, 1.0, scale)[:, None]
    for path, ranks, classes in (
        ("one", 1, ("Dense", "Dense")),
        ("two", 2, ("ColumnParallelLinear", "RowParallelLinear")),
    ):
        for rank in range(ranks):
            own = np.split(np.arange(8), ranks)[rank]
            weight = wrong if ranks > 1 else fc1
            calls = (
                (f"mlp.fc1.{classes[0]}", x, weight[own], (x @ weight.T)[:, own]),
                (
                    f"mlp.fc2.{classes[1]}",
                    (x @ weight.T)[:, own],
                    fc2[:, own],
                    x @ weight.T @ fc2.T,
                ),
            )
            data = {
                f"Cell.{name}.forward.0": {
                    **forward([of(given)], [of(made)]),
                    "parameters": {"weight": of(own_weight)},
                }
                for name, given, own_weight, made in calls
            }
            data["Cell.mlp.Mlp.forward.0"] = {
                **forward([of(x)], [of(x @ weight.T @ fc2.T)]),
                "parameters": {},
            }
            construct = {name: None if "Mlp" in name else "Cell.mlp.Mlp.forward.0" for name in data}
            write(tmp_path / path / "step0" / f"rank{rank}", data, construct=construct, level="L0")
    comparison = compare(tmp_path / "one", tmp_path / "two", "", "tp=2")
    assert comparison.pairs == {"renamed": 2, "exact": 1}
    assert comparison.ok == (scale == 1.0), comparison
    if not comparison.ok:
        assert (comparison.first.cell, comparison.first.rank) == ("mlp.fc1.ColumnParallelLinear", 1)
