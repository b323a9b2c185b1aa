# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The text of the documents."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from probe.reading.dumps.journal_reader import read
from probe.store.documents import MOST_WAITING, JsonDocuments, encode
from probe.store.error_log import ErrorLog


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
        "data": {
            "a": {
                "input_args": [{"type": "int", "value": 1}],
                "input_kwargs": {},
                "output": [None],
            },
            "b": {},
        },
    }
    assert (tmp_path / "dump.json").read_text() == json.dumps(expected, indent=1)
    assert json.loads((tmp_path / "stack.json").read_text()) == {"0": [["a"], ["File x"]]}
    assert json.loads((tmp_path / "construct.json").read_text()) == {"a": None}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "construct.json",
        "dump.json",
        "stack.json",
    ]


def journaled(folder):
    copy = shutil.copy(
        folder / "dump.journal", folder / "copy.journal"
    )  # the journal itself is locked
    return [record["name"] for record in read(str(copy), strict=True)[0][1:]]


def batched(tmp_path, **options):
    return JsonDocuments(str(tmp_path), {"level": "L1"}, [], extra=False, journal=True, **options)


def test_entries_reach_the_journal_64_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("probe.store.documents.monotonic", lambda: 0.0)
    documents, names = batched(tmp_path), [str(number) for number in range(130)]
    for name in names:
        documents.entry(name, {"output": [1]})
        expected = names[: (int(name) + 1) // MOST_WAITING * MOST_WAITING]
        assert (journaled(tmp_path) if expected else []) == expected
    assert documents.write()
    assert list(json.loads((tmp_path / "dump.json").read_text())["data"]) == names


def test_no_entry_waits_longer_than_5_ms_when_the_next_one_comes(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("probe.store.documents.monotonic", lambda: now[0])
    documents = batched(tmp_path)
    for name, time in (("a", 1.0), ("b", 1.004), ("c", 1.0051), ("d", 2.0)):
        now[0] = time
        documents.entry(name, {})
    assert journaled(tmp_path) == ["a", "b", "c"]


def test_each_entry_is_in_the_journal_at_once_if_the_user_wants_that(tmp_path):
    documents = batched(tmp_path, each=True)
    for names in (["a"], ["a", "b"]):
        documents.entry(names[-1], {})
        assert journaled(tmp_path) == names


def test_an_entry_that_is_no_json_costs_no_other_of_its_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("probe.store.documents.monotonic", lambda: 0.0)
    errors = ErrorLog(str(tmp_path), set())
    documents = batched(tmp_path, errors=errors)
    for name, value in (("a", 1), ("b", {1}), ("c", 3)):
        documents.entry(name, {"output": [value] if name != "b" else value})
    assert documents.text("c")  # looking makes the text of all that wait
    assert journaled(tmp_path) == ["a", "b", "c"]
    documents.write()
    data = json.loads((tmp_path / "dump.json").read_text())["data"]
    assert data == {
        "a": {"output": [1]},
        "b": {"error": "TypeError: set is no JSON value"},
        "c": {"output": [3]},
    }
    assert "writing an entry (b)" in (tmp_path / "dump_error_info.log").read_text()


def test_a_signal_that_writes_the_documents_while_a_batch_becomes_text_loses_no_entry(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("probe.store.documents.monotonic", lambda: 0.0)
    documents = batched(tmp_path)

    class Interrupting:
        """Its text is asked for while the batch is made, as a signal may come then."""

        def text(self, pad):
            if not documents.is_written:
                documents.is_written = True
                documents.write()
            return "1"

    documents.is_written = False
    for name, value in (("a", 1), ("b", Interrupting()), ("c", 3)):
        documents.entry(name, {"output": [value]})
    documents.write()
    assert list(json.loads((tmp_path / "dump.json").read_text())["data"]) == ["a", "b", "c"]
