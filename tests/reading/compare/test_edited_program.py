# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program that somebody edited: the fault is one finding, at the line that was edited. `make edits` tries more."""

from __future__ import annotations

from pathlib import Path

import mindspore as ms
import pytest

import probe
from tests.programs.origins.edited import edits_of_contrast, edits_of_rotary
from tests.programs.origins.edited.trial import PROGRAMS, judge, record

pytestmark = pytest.mark.medium
EDITS = {"rotary": edits_of_rotary.EDITS, "contrast": edits_of_contrast.EDITS}
MODES = ("statistics", "md5")


def recorded(folder: Path, text: str, mode: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    record(program, folder / "dump", mode)
    return folder / "dump"


def text_of(program: str) -> str:
    return (PROGRAMS / f"{program}.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    folder = tmp_path_factory.mktemp("golden")
    return {
        (program, mode): recorded(folder / f"{program}-{mode}", text_of(program), mode)
        for program in EDITS
        for mode in MODES
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("rotary", "rotation of values"),  # a function is called once more: the line that calls it
        ("rotary", "no rotation of keys"),
        ("rotary", "no last norm"),  # a Cell is not called
        ("rotary", "mask diagonal"),  # a mask has no numbers that differ: its users follow from it
        ("rotary", "layers exchanged"),  # no other form of the first layer
        ("rotary", "halves"),  # two lines that were edited together
        ("rotary", "scale first"),
        ("contrast", "back first"),  # the statistics of a matrix are those of its transpose
        ("contrast", "same direction"),
        ("contrast", "all at once"),
    ],
)
def test_an_edit_has_its_line(golden, tmp_path, program, name, mode):
    folder = golden[program, mode]
    edit = next(edit for edit in EDITS[program] if edit.name == name)
    text = edit.applied(text_of(program))
    other = recorded(tmp_path / "edited", text, mode)
    row = judge(edit, edit.lines(text), probe.compare(folder, other), probe.compare(other, folder))
    assert row["right"], row["text"]


def test_arrays_tell_apart_where_a_mask_hides_the_statistics(tmp_path):
    ms.set_context(mode=ms.PYNATIVE_MODE)
    golden = recorded(tmp_path / "golden", text_of("rotary"), "tensor")
    edit = next(edit for edit in edits_of_rotary.EDITS if edit.name == "scale")
    text = edit.applied(text_of("rotary"))
    other = recorded(tmp_path / "edited", text, "tensor")
    row = judge(edit, edit.lines(text), probe.compare(golden, other), probe.compare(other, golden))
    assert row["right"], row["text"]
    assert "another form of the same" not in row["text"]
