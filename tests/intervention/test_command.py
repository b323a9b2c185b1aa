# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands `probe try`, `probe bisect` and `probe drill`, on trainings in processes of their own."""

from __future__ import annotations

import json

import pytest

from tests.support.launched import start
from tests.support.paths import ROOT
from tests.support.schemas import all_keys, keys, validate

pytestmark = pytest.mark.slow
HALF = ("-m", "tests.programs.intervention.half_gpt", "--layers", "1")


def probe(folder, *words):
    return start(folder, "-m", "probe", *words)


def hold_to_schema(command, answer):
    """A real answer has the keys of ``probe --json-schema``, all of them and no others."""
    validate(command, answer)
    assert keys(command, answer) == all_keys(command)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("try", "--float32", "x"), "a program is missing"),
        (("try", "train.py"), "a change is missing"),
        (("try", "--from", "nowhere", "x", "train.py"), "nowhere: no such folder"),
        (("bisect", "--float32", "train.py"), "--until"),
        (("bisect", "--until", "finite", "train.py"), "bisect needs one change"),
        (("bisect", "--until", "never", "--float32", "train.py"), "Allowed: 'finite'"),
        (("drill", "--wrong", "train.py"), "there is no option --wrong"),
    ],
)
def test_wrong_use_is_one_clear_error(tmp_path, words, told):
    done = probe(tmp_path, *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_fails_is_told_with_its_last_line(tmp_path):
    (tmp_path / "train.py").write_text("raise ValueError('no data here')")
    done = probe(tmp_path, "try", "--seed", "1", "train.py")
    assert done.returncode == 2
    assert "the unchanged run has no loss: ValueError: no data here" in done.stderr


def test_a_change_is_shown_beside_the_unchanged_run_and_told_in_all_files(tmp_path):
    done = probe(
        tmp_path,
        "try",
        "--float32",
        "blocks.0",
        "--json",
        "answer.json",
        *HALF,
        "--overflow",
        "blocks.0.up",
    )
    assert done.returncode == 0, done.stderr
    assert "THE TRAINING WAS CHANGED: blocks.0 in float32" in done.stderr
    answer = json.loads((tmp_path / "answer.json").read_text())
    hold_to_schema("try", answer)
    assert [str(loss) for loss in answer["unchanged"].values()] == ["nan"] * 3
    assert all(4 < loss < 5 for loss in answer["changed"].values())
    folder = tmp_path / answer["log"]
    assert (
        (folder / "log.txt")
        .read_text()
        .startswith("THIS TRAINING IS CHANGED: blocks.0 in float32.")
    )
    assert (
        json.loads((folder / "change.json").read_text())["change"]["said"] == "blocks.0 in float32"
    )


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(("children.py", "spawn"), marks=pytest.mark.thorough),
        pytest.param(("from_msprobe.py",), marks=pytest.mark.thorough),
        ("gan.py",),
    ],
)
def test_spawned_programs_those_of_msprobe_and_several_optimizers_are_changed(tmp_path, program):
    path = ROOT / "tests" / "launch" / "programs" / program[0]
    done = probe(tmp_path, "try", "--seed", "3", "--json", "-", path, *program[1:])
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["unchanged"].keys() == answer["changed"].keys() != set()
    assert answer["unchanged"] != answer["changed"]


def test_bisect_names_the_cell_and_goes_on_with_the_runs_that_are_there(tmp_path):
    words = (
        "bisect",
        "--until",
        "finite",
        "--float32",
        "--steps",
        "1",
        "--json",
        "-",
        *HALF,
        "--overflow",
        "blocks.0.up",
    )
    first, second = (probe(tmp_path, *words) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr
    answer, again = json.loads(first.stdout), json.loads(second.stdout)
    hold_to_schema("bisect", answer)
    hold_to_schema("bisect", again)
    assert answer["found"] == again["found"] == ["blocks.0.up"]
    assert all(row["changed"].endswith("(kept)") for row in again["runs"])


SKIPPED = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_seed(1)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.up = nn.Dense(4, 4).to_float(ms.float16)

    def construct(self, x):
        return ops.mean(self.up(x).astype(ms.float32))


net = Net()
optimizer = nn.SGD(net.trainable_params(), 0.1)
step = ms.value_and_grad(net, None, optimizer.parameters)
for _ in range(2):
    loss, gradients = step(Tensor(np.full((2, 4), 3e38, np.float32)))
    if np.isfinite(loss.asnumpy()):
        optimizer(gradients)
"""


@pytest.mark.thorough
def test_bisect_of_a_program_that_skips_each_update(tmp_path):
    (tmp_path / "train.py").write_text(SKIPPED)
    done = probe(tmp_path, "bisect", "--until", "finite", "--float32", "--json", "-", "train.py")
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["key"] == "bisect.none"  # the output is given back in half precision


def test_a_condition_that_holds_already_is_said_and_nothing_is_changed(tmp_path):
    done = probe(
        tmp_path, "bisect", "--until", "finite", "--float32", "--steps", "1", "--json", "-", *HALF
    )
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    hold_to_schema("bisect", answer)
    assert answer["found"] == []
    assert answer["said"] == "The unchanged run fulfils the condition already: finite"
    assert [row["fulfilled"] for row in answer["runs"]] == ["yes"]


@pytest.mark.thorough
def test_a_drill_of_an_example_with_a_debugger_of_its_own_names_each_fault(tmp_path):
    done = probe(
        tmp_path, "drill", "--json", "-", ROOT / "examples" / "train_loop.py", "--steps", "6"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    hold_to_schema("drill", answer)
    assert answer["false"] == answer["missed"] == []
    assert all(row["by"] for row in answer["faults"])
    headers = [
        json.loads(path.read_text())["run"].get("changed") for path in tmp_path.rglob("dump.json")
    ]
    assert None not in headers and "a NaN in one gradient" in headers
    assert {row["by"] for row in answer["faults"]} >= {"NaN/Inf", "probe check", "probe compare"}
