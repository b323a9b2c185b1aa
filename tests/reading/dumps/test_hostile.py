# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps that nobody wrote in good faith: every command says one clear line for each, and executes nothing."""

from __future__ import annotations

import json
import re

import pytest

from probe.__main__ import main
from tests.reading.builders import forward, tensor, write

pytestmark = pytest.mark.medium

NESTED = '{"data": {"a": ' + '{"a":' * 2_000_000 + "1" + "}" * 2_000_002
CANNOT_BE_READ = {
    "cut": '{"task": "statistics", "data": {"Functional.relu.0.forward": {"output": [{"type": "minds',
    "nested lists": '{"data": ' + "[" * 5_000_000 + "]" * 5_000_000 + "}",
    "nested objects": NESTED,
    "list": "[]",
    "no data": "{}",
    "data of a wrong type": '{"data": 5}',
    "empty": "",
    "bytes": b"\x93NUMPY\x01\x00\xff\xff",
}
COMMANDS = ["show", "nan", "trend", "ranks", "compare"]


def arguments(command, folder, golden):
    return [command, str(golden), str(folder)] if command == "compare" else [command, str(folder)]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", CANNOT_BE_READ)
def test_a_document_that_cannot_be_read_is_one_clear_line(kind, command, tmp_path, capsys):
    text = CANNOT_BE_READ[kind]
    for rank in ("rank0", "rank1"):
        folder = write(tmp_path / "dump" / "step0" / rank, {})
        (folder / "dump.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        write(tmp_path / "golden" / "step0" / rank, {"Tensor.f.0.forward": forward([], [tensor()])})
    status = main(arguments(command, tmp_path / "dump", tmp_path / "golden"))
    said = capsys.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "dump.json" in line]
    assert status != 0
    assert lines
    assert max(map(len, lines)) < 1000
    assert "Traceback" not in said.out + said.err


STRANGE_NAMES = [
    "Functional.re\x1b[2Jlu.0.forward",
    "=cmd()",
    f"Functional.{'x' * 10_000}.0.forward",
    "a\x00b",
    "@SUM(1)",
]
STRANGE_RECORDS = {
    "shape: null": {**tensor(), "shape": None},
    "shape of text": {**tensor(), "shape": "2x3"},
    "numbers of text": {**tensor(), "Max": "\x1b[31m9", "Min": "=cmd()", "Mean": [], "Norm": {}},
    "dtype of text": {**tensor(), "dtype": "=cmd()\x1b[2J", "md5": 5},
    "array elsewhere": {**tensor(), "data_name": "../../../../etc/passwd"},
    "no type": {"shape": [2]},
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", STRANGE_RECORDS)
def test_strange_names_and_records_are_read_as_far_as_they_go(kind, command, tmp_path, capsys):
    strange = STRANGE_RECORDS[kind]
    entries = {name: forward([strange], [strange]) for name in STRANGE_NAMES}
    entries["Cell.fc.Dense.parameters_grad.0"] = {"weight": [strange, tensor()]}
    for run in ("dump", "golden"):
        for rank in ("rank0", "rank1"):
            stack = {"0": [[*STRANGE_NAMES], ["File =cmd(), line 1, in f, \n \x1b[0m"]]}
            write(tmp_path / run / "step0" / rank, entries, stack=stack)
    given = arguments(command, tmp_path / "dump", tmp_path / "golden")
    if command == "compare":
        given += ["--csv", str(tmp_path / "out.csv"), "--json", str(tmp_path / "out.json")]
    assert main(given) in (0, 1, 2)
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", said.out + said.err)
    if command == "compare":
        text = (tmp_path / "out.csv").read_text()
        assert not re.search(r"(^|,)\"?[=+@]", text, re.MULTILINE)
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
        assert json.loads((tmp_path / "out.json").read_text())["errors"] == []
