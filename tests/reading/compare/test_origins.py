# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Planted faults of real trainings are named, harmless changes are not; ``make origins`` runs all of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys

import pytest

import probe
from probe.__main__ import main
from tests.support import processes
from tests.support.paths import ROOT, environment, program

pytestmark = pytest.mark.medium

FAULTS = ["scale", "mask", "stop_gradient", "weight transposed", "other batch", "learning rate"]
HARMLESS = [
    "q and k in the other order",
    "renamed Cell",
    "operands swapped",
    "identity calls",
    "the same again",
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The folder with the dumps, and what the program printed."""
    folder = tmp_path_factory.mktemp("planted")
    command = program("origins.planted", "--keep", folder, "--kinds", "gpt,digits")
    command += ["--only", ",".join([*FAULTS, *HARMLESS, "dropout seed"])]
    done = processes.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    return folder, done.stdout


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(planted, fault):
    (line,) = [line for line in planted[1].splitlines() if line.startswith(f"gpt | {fault} |")]
    assert " | yes | " in line


def test_other_numbers_of_one_seed_are_a_random_call(planted, tmp_path):
    """Dropout on several processors gives such runs, but not each time: two seeds, which both dumps hide, do."""
    for name in ("golden", "dropout_seed"):
        shutil.copytree(planted[0] / "digits" / name, tmp_path / name)
        for path in (tmp_path / name).rglob("dump.json"):
            path.write_text(
                re.sub(r'("Seed[01]": {[^}]*"value": )\d+', r"\g<1>0", path.read_text())
            )
    first = probe.compare(tmp_path / "golden", tmp_path / "dropout_seed").first
    assert (first.kind, first.cell) == ("random", "drop.Dropout")
    assert "draws other random numbers" in first.sentence


@pytest.mark.parametrize("change", HARMLESS)
def test_a_harmless_change_is_not_blamed(planted, change):
    lines = [line for line in planted[1].splitlines() if f" | {change} |" in line]
    assert lines
    assert all(" | yes | nothing" in line for line in lines)


def test_an_origin_tells_cell_line_and_sentence(planted):
    comparison = probe.compare(planted[0] / "gpt" / "golden", planted[0] / "gpt" / "scale")
    first = comparison.first
    assert (first.kind, first.name, first.cell) == (
        "argument",
        "Tensor.__mul__.3.forward",
        "blocks.1.attention.Attention",
    )
    assert first.file.endswith("models.py")
    assert "* scale + mask" in first.source
    assert first.sentence == "Tensor.__mul__.3.forward, input 1: 0.25 in A, 0.0625 in B"
    assert first.stack[0].startswith("File ")
    text = str(comparison)
    assert len(text.split("\n")) <= 25
    assert first.sentence in text
    assert len(repr(comparison)) < 240
    assert first.name in repr(comparison)


def test_the_command_prints_and_writes_the_origins(planted, tmp_path, capsys):
    golden, mine = str(planted[0] / "gpt" / "golden"), str(planted[0] / "gpt" / "stop_gradient")
    assert main(["compare", golden, mine, "--json", str(tmp_path / "out.json")]) == 1
    assert "first difference: step 0, Functional.stop_gradient.0.forward" in capsys.readouterr().out
    (first, *_) = json.loads((tmp_path / "out.json").read_text())["origins"]
    assert {"kind", "name", "cell", "stack", "step", "rank", "sentence"} <= set(first)
    assert (first["kind"], first["why"]) == (
        "calls",
        "the gradient ends at a call that one side lacks",
    )
    assert "gets no gradient in B, and one in A" in first["sentence"]
    assert main(["compare", golden, golden]) == 0
    assert "no difference beyond tolerance" in capsys.readouterr().out


def test_an_assertion_shows_where_it_begins(planted, tmp_path):
    golden, mine = planted[0] / "gpt" / "golden", planted[0] / "gpt" / "mask"
    (tmp_path / "test_it.py").write_text(
        f"import probe\ndef test_it():\n    assert probe.compare({str(golden)!r}, {str(mine)!r}).ok\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    done = processes.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 1
    assert (
        "outside value at step 0, Tensor.__add__.4.forward in blocks.1.attention.Attention"
        in done.stdout
    )
    assert "first difference: step 0, Tensor.__add__.4.forward" in done.stdout  # the summary too
    assert "calls paired" in done.stdout


def test_two_processes_find_the_same(planted, capsys):
    golden, mine = str(planted[0] / "gpt" / "golden"), str(planted[0] / "gpt" / "learning_rate")
    said = []
    for jobs in ("1", "2"):
        assert main(["compare", golden, mine, "--jobs", jobs]) == 1
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "optimizer" in said[0]
    assert "learning_rate 0.001 / 0.002 in step 0" in said[0]
