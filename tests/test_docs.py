# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Every example of the README, the guide and the page on reading runs by itself, and once more in the same folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import probe
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
#: pages of examples, and their headings under which there need not be one
PAGES = {"guide.md": (), "reading.md": ("Broken and unusual dumps",)}
#: (page, heading) -> the examples under it
SECTIONS = {
    (page, heading): re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for page, without in PAGES.items()
    for heading, _, text in (
        part.partition("\n") for part in re.split(r"^## ", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)[1:]
    )
    if heading not in without
}
EXAMPLES = [
    pytest.param(example, id=heading if len(found) == 1 else f"{heading} {number}")
    for (_, heading), found in SECTIONS.items()
    for number, example in enumerate(found)
]


def test_every_section_has_an_example():
    assert SECTIONS
    assert [heading for heading, found in SECTIONS.items() if not found] == []


README = re.findall(r"(?:^    .*\n|^\n)+", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
#: the examples of the README by their import, with names that they take for granted
BEFORE = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import GeneratorDataset
ms.set_context(mode=ms.PYNATIVE_MODE)
model = nn.SequentialCell(nn.Dense(6, 3))
items = [(np.ones(6, np.float32), np.zeros(3, np.float32))] * 13
"""
LOOP = "data = [(ms.Tensor(x), ms.Tensor(y)) for x, y in items]\n"
MODEL = """
data = GeneratorDataset(items, ["x", "y"]).batch(1)
model = ms.Model(model, nn.MSELoss(), nn.SGD(model.trainable_params()))
"""


def run(tmp_path, example):
    (tmp_path / "example.py").write_text(example, "utf-8")
    path = os.pathsep.join([str(Path(probe.__file__).parent.parent), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "example.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)},
        timeout=300,
    )


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_docs_runs_twice_in_one_folder(example, tmp_path):
    for _ in range(2):
        done = run(tmp_path, example)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    assert not list(tmp_path.rglob("dump_error_info.log"))


def block(word):
    """Return the indented block of the README that contains a word, as a program."""
    (found,) = [text for text in README if word in text]
    return textwrap.dedent(found).strip().removeprefix("pip install .") + "\n"


@pytest.mark.parametrize("kind", ["loop", "Model.train"])
def test_an_example_of_the_readme_runs_twice_in_one_folder(kind, tmp_path):
    (tmp_path / "config.json").write_text(block('"task": "statistics"'), "utf-8")
    program = block("for x, y in data") if kind == "loop" else block("callbacks=[")
    program = program.replace("…train…", "ms.grad(lambda x: nn.MSELoss()(model(x), y))(x)")
    for folder in ("dump_path", "dump_path-2"):
        done = run(tmp_path, BEFORE + (LOOP if kind == "loop" else MODEL) + program)
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == ["step0", "step10", "step11", "step12"]
        look = f"probe: 4 steps in {tmp_path}/{folder}; look with: probe show {tmp_path}/{folder}"
        assert [line for line in done.stderr.splitlines() if line.startswith("probe: ")] == [look]
    assert not list(tmp_path.rglob("dump_error_info.log"))
