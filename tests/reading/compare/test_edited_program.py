# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program that somebody edited: the fault is one finding, at the line that was edited. `make edits` tries more."""

from __future__ import annotations

from pathlib import Path

import mindspore as ms
import pytest

import probe
from tests.programs.origins.edited.edits_of_rotary import EDITS
from tests.programs.origins.edited.trial import PROGRAMS, judge, record

pytestmark = pytest.mark.medium
TEXT = (PROGRAMS / "rotary.py").read_text(encoding="utf-8")
BY_NAME = {edit.name: edit for edit in EDITS}


def recorded(folder: Path, text: str, mode: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    record(program, folder / "dump", mode)
    return folder / "dump"


@pytest.fixture(scope="module", params=["statistics", "md5"])
def golden(request, tmp_path_factory):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return recorded(tmp_path_factory.mktemp("golden"), TEXT, request.param), request.param


@pytest.mark.parametrize(
    "name",
    [
        "rotation of values",  # a function is called once more: the line that calls it
        "no rotation of keys",
        "no last norm",  # a Cell is not called
        "mask diagonal",  # a mask has no numbers that differ: its users follow from it
        "layers exchanged",  # no other form of the first layer
        "halves",  # two lines that were edited together
        "scale first",
    ],
)
def test_an_edit_has_its_line(golden, tmp_path, name):
    folder, mode = golden
    edit = BY_NAME[name]
    text = edit.applied(TEXT)
    other = recorded(tmp_path / "edited", text, mode)
    row = judge(edit, edit.lines(text), probe.compare(folder, other), probe.compare(other, folder))
    assert row["right"], row["text"]
