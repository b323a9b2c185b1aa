# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The entries of a golden run, and which of them agree: no difference of ``probe compare`` is taken for agreement."""

from __future__ import annotations

import json

import pytest

from probe.errors import UsageError
from probe.golden.watched_step import Agreement, GoldenEntries
from probe.reading.dumps.folders import find_folders
from probe.store.documents import encode

NAME = "Functional.relu.0.forward"


def record(norm=2.0, dtype="Float32", **keys):
    numbers = {"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": norm}
    return {"type": "mindspore.Tensor", "dtype": dtype, "shape": [4], **{**numbers, **keys}}


def text(*outputs, **parts):
    return encode(
        {"input_args": [record()], "input_kwargs": {}, "output": list(outputs), **parts}, "  "
    )


@pytest.mark.parametrize(
    ("golden", "own", "agrees"),
    [
        (text(record()), text(record()), True),
        (text(record(2.0)), text(record(2.0 + 1e-6)), True),
        (text(record(2.0)), text(record(2.1)), False),
        (text(record(2.0, "Float16")), text(record(2.001, "Float16")), True),
        (text(record(2.0)), text(record(2.001)), False),
        (text(record(2.0)), text(record(2.0, "Float16")), False),
        (text(record(2.0, "Int32")), text(record(2.0 + 1e-6, "Int32")), False),
        (text(record(md5="aa")), text(record(md5="bb")), True),
        (text(record(md5="aa")), text(record()), True),
        (text(record(requires_grad=True)), text(record()), True),
        (text(record(float("nan"))), text(record(float("nan"))), True),
        (text(record(Max=float("nan"))), text(record(Max=1.0)), False),
        (text({"type": "int", "value": 3}), text({"type": "int", "value": 4}), False),
        (text(record()), text(record(), record()), False),
        (text(record(1e-9)), text(record(3e-9)), False),  # not a sum
    ],
)
def test_an_entry_agrees_where_compare_sees_no_difference(golden, own, agrees):
    assert Agreement().holds(NAME, golden, own) is agrees


def test_numbers_that_are_near_in_one_dtype_are_not_in_another():
    agreement = Agreement()
    pair = [text(record(norm, "Float16")) for norm in (2.0, 2.001)]
    assert agreement.holds(NAME, *pair)
    assert not agreement.holds(NAME, *(one.replace("Float16", "Float32") for one in pair))


def test_an_entry_that_lacks_a_key_does_not_agree_yet():
    golden = text(record())
    own = encode({"input_args": [record()], "input_kwargs": {}}, "  ")
    assert not Agreement().holds(NAME, golden, own)


@pytest.fixture
def entries(tmp_path):
    def make(data, indent=1):
        folder = tmp_path / "step0" / "rank"
        folder.mkdir(parents=True)
        (folder / "dump.json").write_text(
            json.dumps({"task": "statistics", "data": data}, indent=indent)
        )
        return GoldenEntries(find_folders(str(tmp_path))[0])

    return make


DATA = {"a": {"input_args": [record()]}, "b": {}, "c": {"output": [record(3.0)]}}


@pytest.mark.parametrize("indent", [1, None])
@pytest.mark.parametrize("order", ["abc", "cab"])
def test_each_entry_is_found_in_any_order_and_form(entries, order, indent):
    found = entries(DATA, indent)
    for name in order:
        own = encode(DATA[name], "  ")
        assert found.find(name, own) == own
        if name == "b":
            assert found.find("d", "{}") is None
            assert not found.is_over() or order == "cab"
    assert found.is_over()
    found.close()


def test_an_entry_with_other_numbers_is_given_as_the_file_has_it(entries):
    found = entries(DATA)
    assert json.loads(found.find("a", encode({"input_args": [record(9.0)]}, "  "))) == DATA["a"]
    assert found.find("b", "{}") == "{}"
    assert found.in_order
    found.close()


def test_a_file_that_is_no_dump_is_a_usage_error(entries, tmp_path):
    found = entries(DATA)
    found.close()
    (tmp_path / "step0/rank/dump.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        GoldenEntries(find_folders(str(tmp_path))[0]).find("a", "{}")
