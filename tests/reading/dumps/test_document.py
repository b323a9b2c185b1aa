# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""dump.json is read piece by piece: the result is that of ``json.load``, and equal records are one object."""

from __future__ import annotations

import json
import random

import pytest

from probe import UsageError
from probe.reading.dumps import document


def record(number, shape=(2, 3), **more):
    numbers = {"Max": number, "Min": -0.0, "Mean": 0.0, "Norm": abs(number)}
    return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": list(shape), **numbers, **more}


def made(count):
    rng = random.Random(count)
    entries = {}
    for i in range(count):
        plain = {"type": "float", "value": rng.choice([0.0, -0.0, 1.0])}
        name = rng.choice(
            ["Functional.relu.{}.forward", 'odd "data": {{ {}', "Cell.ä\n  .{}", ',\n  "{}']
        )
        tensors = [record(rng.choice([1.0, 2.0]), rng.choice([(6,), (2, 3)])), plain, None]
        entries[name.format(i)] = {
            "input_args": tensors,
            "input_kwargs": {"axis": plain},
            "output": [record(3.0)],
        }
    return {"task": "statistics", "run": {"data": {"x": 1}, "y": 2}, "data": entries}


def exact(value):
    """Return a text that tells -0.0 from 0.0, and True from 1."""
    return json.dumps(value)


@pytest.mark.parametrize("count", [0, 1, 40])
@pytest.mark.parametrize("piece", [7, 64, 1000, 1 << 20])
@pytest.mark.parametrize("indent", [None, 0, 1, 2, 4])
@pytest.mark.parametrize("last", [True, False])
def test_every_layout_gives_what_json_load_gives(tmp_path, monkeypatch, count, piece, indent, last):
    monkeypatch.setattr(document, "_PIECE", piece)
    content = made(count)
    if not last:
        content["framework"] = {"after": {"a": 1, "b": 2}}
    path = tmp_path / "dump.json"
    for text in (
        json.dumps(content, indent=indent),
        json.dumps(content, indent=indent, ensure_ascii=False),
    ):
        for start, end in (("", "\n"), ("\ufeff", "\r\n")):
            path.write_bytes((start + text.replace("\n", end)).encode())
            assert exact(document.read_document(str(path), shares=True)) == exact(content)


def test_a_document_that_is_cut_anywhere_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "_PIECE", 100)
    path = tmp_path / "dump.json"
    text = json.dumps(made(3), indent=1)
    for length in range(len(text)):
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(UsageError, match=r"dump\.json cannot be read: .*line"):
            document.read_document(str(path), shares=True)


def test_equal_records_are_one_object_and_others_are_not(tmp_path):
    plain = [
        {"type": "int", "value": 1},
        {"type": "int", "value": True},
        {"type": "int", "value": 1},
    ]
    rows = [record(1.0), record(1.0), record(1.0, (6,)), record(1.0, data_name="x.npy"), *plain]
    rows[1] = {**rows[1], "Min": 0.0}
    rows.append(record(1.0))
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"data": {"a": {"output": rows}}}, indent=1))
    read = document.read_document(str(path), shares=True)["data"]["a"]["output"]
    assert exact(read) == exact(rows)
    same = [(i, j) for i in range(len(read)) for j in range(i) if read[i] is read[j]]
    assert same == [(6, 4), (7, 0)]
    assert all(type(item) is dict for item in read)
