# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Operators and casts by dtype, and the places where half precision enters and leaves."""

from __future__ import annotations

import json

import pytest

from probe.__main__ import main
from probe.reading.dumps.dtypes import change_of, dtype_table, size_of
from tests.reading.builders import dump, forward, tensor, write

CELL = "Cell.up.Dense.forward.0"


def mixed():
    """Return a dump: a product in half precision inside a Cell, between two casts."""
    wide, half, whole = tensor(), tensor(dtype="Float16"), tensor(dtype="Int64")
    data = {
        "Functional.tanh.0.forward": forward([wide], [wide]),
        "Tensor.to.0.forward": forward([wide], [half]),
        "Functional.matmul.0.forward": forward([half, half], [half]),
        "Functional.matmul.1.forward": forward([wide, wide], [wide]),
        "Tensor.to.1.forward": forward([half], [wide]),
        "Functional.argmax.0.forward": forward([wide], [whole]),
        "Functional.add.0.forward": forward([half, wide], [wide]),
        CELL: forward([wide], [wide]),
    }
    return dump(
        data, {"Tensor.to.0.forward": CELL, "Functional.matmul.0.forward": CELL, CELL: None}
    )


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Float64", 8),
        ("mindspore.float32", 4),
        ("BFloat16", 2),
        ("Float8_e5m2", 1),
        ("Bool", 0),
        (None, 0),
    ],
)
def test_the_bytes_of_a_dtype_with_fractions(dtype, size):
    assert size_of(dtype) == size


def test_operators_are_counted_by_the_dtype_of_their_results():
    found = [tuple(row.values()) for row in dtype_table(mixed())["operators"]]
    assert ("Functional.matmul", "Float16", 1) in found and (
        "Functional.matmul",
        "Float32",
        1,
    ) in found
    assert ("Functional.argmax", "Int64", 1) in found and not any("Cell" in row[0] for row in found)


def test_casts_are_counted_by_cell():
    found = [tuple(row.values()) for row in dtype_table(mixed())["casts"]]
    assert found == [("", "Float16", "Float32", 1), ("up.Dense", "Float32", "Float16", 1)]


def test_half_precision_enters_and_leaves():
    found = dtype_table(mixed())
    assert [item["name"] for item in found["enters"]] == ["Tensor.to.0.forward"]
    assert [item["name"] for item in found["leaves"]] == [
        "Tensor.to.1.forward",
        "Functional.add.0.forward",
    ]
    assert found["enters"][0]["cell"] == "up.Dense"


def test_whole_numbers_change_no_precision():
    assert change_of(mixed(), "Functional.argmax.0.forward") is None


def test_a_dump_of_cells_alone_has_the_dtypes_of_cells():
    made = dump({CELL: forward([tensor()], [tensor(dtype="BFloat16")])})
    assert dtype_table(made)["operators"] == [
        {"operator": "Dense", "dtype": "BFloat16", "calls": 1}
    ]


def test_the_command_tells_it_as_text_and_as_json(tmp_path, capsys):
    made = mixed()
    path = str(write(tmp_path / "step0" / "rank0", made.data, construct=made.construct))

    def answer(*words):
        assert main(["show", "--dtypes", path, *words]) == 0
        return capsys.readouterr().out

    said = answer("--lang", "en")
    assert "half precision enters" in said and "Functional.matmul" in said
    assert "半精度进入之处" in answer("--lang", "zh")
    (found,) = json.loads(answer("--format", "json"))
    assert {"cell": "", "from": "Float16", "to": "Float32", "calls": 1} in found["casts"]
    assert main(["show", "--dtypes", path, "--format", "csv"]) == 2
