# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every example of the README and of the pages with examples runs by itself, and once more in the same folder."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from pathlib import Path

import pytest

import probe
from tests.support import processes
from tests.support.paths import ROOT, environment

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"
#: pages of examples, and their headings under which there need not be one
PAGES = {
    "guide.md": (),
    "choosing.md": ("The symptom", "The level", "The task", "The size"),
    "large-runs.md": (),
    "sharded.md": (
        "Shells",
        "Gathered parameters",
        "Micro-batches",
        "Compare with one card",
        "A MindSpore that was not tested",
    ),
    "reading.md": ("Broken and unusual dumps",),
}
#: (page, heading) -> the examples under it
SECTIONS = {
    (page, heading): re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for page, without in PAGES.items()
    for heading, _, text in (
        part.partition("\n")
        for part in re.split(r"^## ", (DOCS / page).read_text("utf-8"), flags=re.MULTILINE)[1:]
    )
    if heading not in without
}
#: these take most of the time
RARELY = (
    "See how far long work is",
    "1,024 ranks",
    "Measure after the step",
    "Estimate the size of a dump",
    "Two runs differ: where does it begin?",
)
EXAMPLES = [
    pytest.param(
        example,
        id=heading if len(found) == 1 else f"{heading} {number}",
        marks=[pytest.mark.thorough] if heading in RARELY or number else [],
    )
    for (_, heading), found in SECTIONS.items()
    for number, example in enumerate(found)
]


def test_every_section_has_an_example():
    assert SECTIONS
    assert [heading for heading, found in SECTIONS.items() if not found] == []


#: the indented blocks of the two pages that show the first steps
BLOCKS = [
    text
    for path in (ROOT / "README.md", DOCS / "choosing.md")
    for text in re.findall(
        r"(?:^    .*\n|^\n)+",
        re.sub(r"(?ms)^```.*?^```$", "", path.read_text("utf-8")),
        re.MULTILINE,
    )
]
#: the names that the examples of the README take for granted
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
    return processes.run(
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
    """Return the indented block of README.md or choosing.md that contains a word, as a program."""
    (found,) = [text for text in BLOCKS if word in text]
    return textwrap.dedent(found).strip().removeprefix("pip install .") + "\n"


@pytest.mark.parametrize("kind", ["loop", "Model.train"])
def test_an_example_of_the_readme_runs_twice_in_one_folder(kind, tmp_path):
    (tmp_path / "config.json").write_text(block('"task": "statistics",\n'), "utf-8")
    program = block("for x, y in data") if kind == "loop" else block("callbacks=[")
    program = program.replace("…train…", "ms.grad(lambda x: nn.MSELoss()(model(x), y))(x)")
    for folder in ("dump_path", "dump_path-2"):
        done = run(tmp_path, BEFORE + (LOOP if kind == "loop" else MODEL) + program)
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == [
            "step0",
            "step10",
            "step11",
            "step12",
        ]
        look = f"probe: 4 steps in {tmp_path}/{folder}; look with: probe show {tmp_path}/{folder}"
        assert [line for line in done.stderr.splitlines() if line.startswith("probe: ")] == [look]
    assert not list(tmp_path.rglob("dump_error_info.log"))


def command(words, tmp_path):
    """Return the lines that a command prints, and its exit code."""
    words = words.replace("probe", f"{sys.executable} -m probe", 1)
    done = processes.run(
        words.split(),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment(),
        timeout=300,
    )
    return done.stdout.splitlines(), done.returncode, done.stderr


def test_the_output_in_the_readme_is_that_of_the_demo(tmp_path):
    shown = block("$ probe show demo_dump").splitlines()
    options = ["--config", ROOT / "examples/config.json", "--dump-path", tmp_path / "demo_dump"]
    program = [sys.executable, "-m", "probe", "run", *options, ROOT / "examples/train.py"]
    processes.run(
        program, check=True, capture_output=True, cwd=tmp_path, env=environment(), timeout=300
    )
    found, status, _ = command(shown[0].removeprefix("$ "), tmp_path)
    assert status == 0
    assert [line.split()[:3] for line in found] == [line.split()[:3] for line in shown[1:]]
    assert len(shown) == 10


#: the model of the loop, with a NaN at step 11: the root of a number below zero
PLANTED = """
import sys
step = 0
class Planted(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(6, 3)
    def construct(self, x):
        y = self.fc(x) * float(sys.argv[1])
        return ops.sqrt(y - 1000.0) if step == 11 else ops.sigmoid(y)
probe.seed_all(1234, mode=True, rm_dropout=True)
model = Planted()
"""


def planted(tmp_path, config, scale):
    """Run the loop of the README with a planted NaN, and return its error output."""
    (tmp_path / "config.json").write_text(config, "utf-8")
    train = "ms.grad(lambda x: nn.MSELoss()(model(x), y))(x); step += 1"
    program = block("for x, y in data").replace("…train…", train)
    begin = "import probe\n" + BEFORE + LOOP + PLANTED
    (tmp_path / "example.py").write_text(begin + program, "utf-8")
    done = processes.run(
        [sys.executable, "example.py", scale],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment(),
        timeout=300,
    )
    return done.stderr


def test_the_first_steps_find_a_planted_nan_and_compare_two_runs(tmp_path):
    line = "return ops.sqrt(y - 1000.0) if step == 11 else ops.sigmoid(y)"
    nan, show_nan = block('"task": "nan_check"'), block("probe show ./nan_path").strip()
    told = planted(tmp_path, nan, "1.0")
    assert "NonFiniteError" in told
    assert "First NaN/Inf: Functional.sqrt.0.forward" in told
    assert line in told
    found, status, _ = command(show_nan, tmp_path)
    assert (status, [row.split()[0] for row in found[1:]]) == (
        0,
        ["Functional.sqrt.0.forward.output.0"],
    )

    statistics = block('"task": "statistics",\n')
    for folder, scale in (("golden", "1.0"), ("mine", "1.5")):
        assert f"look with: probe show {tmp_path}/{folder}" in planted(
            tmp_path, statistics.replace("./dump_path", folder), scale
        )
    found, status, _ = command(
        block("probe nan ./dump_path").strip().replace("./dump_path", "golden"), tmp_path
    )
    assert status == 1
    assert any("Functional.sqrt.0.forward" in row for row in found)
    assert any(line in row for row in found)
    check, compare, report = block("probe compare golden mine").strip().splitlines()
    found, status, _ = command(check, tmp_path)
    other = "values from outside: step 0, input.1 of Tensor.__mul__.0.forward: 1.0 / 1.5"
    assert (status, found[2:]) == (1, [other, "command: 1.0 / 1.5"])
    found, status, _ = command(compare, tmp_path)
    assert status == 1
    assert any(
        row.startswith("first difference: step 0, Tensor.__mul__.0.forward: argument")
        for row in found
    )
    _, status, told = command(report, tmp_path)
    assert status == 1, told
    assert (tmp_path / "report.html").stat().st_size > 10_000
