# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The examples without a word of probe have the same dumps under `probe run`."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.support.launched import RUN, differences, dump, own, start
from tests.support.paths import ROOT
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: example: the options of its debugger beside those of the settings file
CASES = {"train_loop": [], "train_model": [], "train_gpt": ["--task", "statistics", "--step", "0"]}


def without_probe(text):
    """Return a program without the lines of its debugger."""
    text = text.replace("MsprobeStep(debugger), ", "")
    return re.sub(r"^.*(debugger|from probe import).*\n", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", thorough_but(["train_loop"], list(CASES)))
def test_an_example_without_its_lines_has_the_same_dump(name, tmp_path):
    for folder in ("lines", "run"):
        shutil.copytree(
            ROOT / "examples",
            tmp_path / folder,
            ignore=shutil.ignore_patterns("pytorch", "__pycache__"),
        )
    stripped = tmp_path / "run" / f"{name}.py"
    stripped.write_text(without_probe(stripped.read_text("utf-8")), "utf-8")
    assert not re.search(
        "probe(?! run)|debugger",
        re.sub(r'""".*?"""|#.*', "", stripped.read_text("utf-8"), flags=re.S),
    )
    edited = start(tmp_path / "lines", f"{name}.py", "--dump-path", "dump")
    options = ["--config", "config.json", "--dump-path", "dump", *CASES[name]]
    launched = start(tmp_path / "run", *RUN, *options, f"{name}.py")
    assert edited.returncode == launched.returncode == 0, edited.stderr + launched.stderr
    assert own(edited.stdout) == own(launched.stdout) != []
    expected, found = (
        {
            path: document
            for path, document in dump(tmp_path / folder).items()
            if path.endswith("dump.json")
        }
        for folder in ("lines", "run")
    )
    assert expected
    assert differences(expected, found) == []
    arrays = [
        {
            path.relative_to(tmp_path / folder): path.read_bytes()
            for path in (tmp_path / folder / "dump").rglob("*.npy")
        }
        for folder in ("lines", "run")
    ]
    assert arrays[0] == arrays[1]
