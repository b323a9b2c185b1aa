# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe compare --distance: the user's own distance, beside rel_l2 and in rules."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

import probe
from probe.__main__ import main
from tests.reading.builders import forward, record, write

FUNCTIONS = """
import numpy as np

def cosine(a, b):
    assert a.dtype == b.dtype == np.float64 and a.shape == b.shape
    a[:] = a / np.linalg.norm(a)
    return 1 - (a * b).sum() / np.linalg.norm(b)

def fails(a, b):
    raise KeyError("mine")
"""


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two runs with arrays: an output that is twice as large, an input of the same bits, one output without array."""
    (tmp_path / "distances_of_a_test.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    x = np.random.RandomState(0).randn(3, 4).astype(np.float32)
    for side, factor in (("a", 1.0), ("b", 2.0)):
        names = {"x.npy": x, "y.npy": (factor * x).astype(np.float32)}
        folder = tmp_path / side / "step0" / "rank"
        given, made = (record(array, data_name=name) for name, array in names.items())
        made_too = {key: value for key, value in made.items() if key != "data_name"}
        write(folder, {"Functional.relu.0.forward": forward([given], [made, made_too])})
        (folder / "dump_tensor_data").mkdir()
        for name, array in names.items():
            np.save(folder / "dump_tensor_data" / name, array)
    for path in tmp_path.rglob("dump.json"):
        path.write_text(
            path.read_text().replace('"dump_data_dir": null', '"dump_data_dir": "dump_tensor_data"')
        )
    return str(tmp_path / "a"), str(tmp_path / "b")


def rows(runs, *words):
    """Compare; return the exit status, and (verdict, distance) of each place."""
    status = main(["compare", *runs, "--csv", "rows.csv", *words])
    with open("rows.csv", newline="") as file:
        return status, {
            row["place"]: (row["verdict"], row["distance"]) for row in csv.DictReader(file)
        }


def test_it_stands_in_the_rows_where_two_arrays_differ(runs):
    status, found = rows(runs, "--distance", "distances_of_a_test:cosine")
    assert status == 1
    assert found["input.0"] == ("same", "")
    assert found["output.1"] == ("differs", "")
    verdict, distance = found["output.0"]
    assert verdict == "differs"
    assert float(distance) == pytest.approx(0.0, abs=1e-6)
    comparison = probe.compare(*runs, distance="distances_of_a_test:cosine")
    table = {row["place"]: row["distance"] for row in comparison.table()}
    assert table["input.0"] is None
    assert table["output.0"] == pytest.approx(0.0, abs=1e-6)


def test_a_rule_may_name_it_and_holds_only_where_it_is_known(runs):
    words = "--distance", "distances_of_a_test:cosine", "--rule", "relu", "distance <= 1e-6"
    assert [verdict for verdict, _ in rows(runs, *words)[1].values()] == [
        "same",
        "close",
        "differs",
    ]
    words = *words[:-1], "distance > 1"
    assert [verdict for verdict, _ in rows(runs, *words)[1].values()] == [
        "same",
        "differs",
        "differs",
    ]


def test_without_it_the_column_is_empty(runs):
    assert {distance for _, distance in rows(runs)[1].values()} == {""}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--distance", "cosine"], "cosine is not allowed. Allowed: module:function."),
        (
            ["--distance", "no_such_module:x"],
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
        (["--distance", "distances_of_a_test:x"], "has no attribute 'x'"),
        (["--rule", "relu", "distance <= 1"], "--rule: 'distance <= 1' needs --distance"),
        (
            ["--distance", "distances_of_a_test:fails"],
            "--distance: distances_of_a_test:fails: KeyError: 'mine'",
        ),
    ],
)
def test_a_wrong_one_is_told(runs, words, told, capsys):
    assert main(["compare", *runs, *words]) == 2
    said = capsys.readouterr()
    assert told in said.out + said.err
