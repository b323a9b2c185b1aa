# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The text of the documents."""

from __future__ import annotations

import json
import math

import pytest

from probe.store.documents import JsonDocuments, encode


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -2.5,
        1e300,
        1e-7,
        'ä " \\ \n',
        [],
        {},
        [[], {}],
        {"a": [1, {"b": None}], "c": "d"},
        [1.0, [2, [3, {"x": [4]}]]],
        float("inf"),
        -math.inf,
        float("nan"),
        2**70,
    ],
)
def test_encode_writes_what_json_writes_with_indent_1(value):
    assert encode(value, "") == json.dumps(value, indent=1)


def test_encode_refuses_values_that_json_cannot_express():
    with pytest.raises(TypeError, match="set is no JSON value"):
        encode([{1}], "")


def test_dump_json_is_the_text_of_json_with_indent_1(tmp_path):
    header = {"task": "statistics", "dump_data_dir": None}
    documents = JsonDocuments(str(tmp_path), header, [("File x",)], extra=True, journal=False)
    documents.entry("a", {"input_args": [{"type": "int", "value": 1}], "input_kwargs": {}})
    documents.entry("a", {"output": [None]})
    documents.entry("b", {})
    documents.stack("a", 0)
    documents.construct([("a", None)])
    assert documents.write()
    assert not documents.write()
    expected = {
        "task": "statistics",
        "dump_data_dir": None,
        "data": {"a": {"input_args": [{"type": "int", "value": 1}], "input_kwargs": {}, "output": [None]}, "b": {}},
    }
    assert (tmp_path / "dump.json").read_text() == json.dumps(expected, indent=1)
    assert json.loads((tmp_path / "stack.json").read_text()) == {"0": [["a"], ["File x"]]}
    assert json.loads((tmp_path / "construct.json").read_text()) == {"a": None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["construct.json", "dump.json", "stack.json"]
