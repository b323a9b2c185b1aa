# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe run --seed``: a program without a seed repeats its bits, and its dump says that it was changed."""

from __future__ import annotations

import json

import pytest

from tests.launch.test_trial import RUN
from tests.support.launched import own, start

pytestmark = pytest.mark.slow

PROGRAM = """
import os

import mindspore as ms
import numpy as np
from mindspore import nn

net = nn.Dense(3, 2)
optimizer = nn.SGD(net.trainable_params(), 0.1)
gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
loss, gradients = gradient(ms.Tensor(np.random.randn(4, 3).astype(np.float32)))
optimizer(gradients)
print(float(loss))
print(os.environ["HCCL_DETERMINISTIC"])
"""


def run(folder, *words):
    (folder / "mine.py").write_text(PROGRAM)
    chosen = {"HCCL_DETERMINISTIC": "strict"}
    done = start(folder, *RUN, "--level", "mix", "--overwrite", *words, "mine.py", variables=chosen)
    assert done.returncode == 0, done.stderr
    header = json.loads(next(folder.rglob("dump.json")).read_text())["run"]
    return own(done.stdout), header, done.stderr


def test_a_seed_makes_a_program_repeat_itself_and_is_told(tmp_path):
    words = ("--dump-path", "dump", "--seed")
    first, header, said = run(tmp_path, *words, "7")
    assert header["seeded"] == 7
    assert first[-1] == "strict"  # as the user has chosen
    assert "THIS TRAINING IS CHANGED: probe.seed_all(7)" in said
    assert run(tmp_path, *words, "7")[0] == first
    assert run(tmp_path, *words, "8")[0] != first
    loss, header, said = run(tmp_path, *words[:2])
    assert loss != first
    assert "seeded" not in header
    assert "CHANGED" not in said


@pytest.mark.parametrize("seed", ["-1", "4294967296", "one"])
@pytest.mark.parametrize("command", ["run", "find"])
def test_a_wrong_seed_is_refused_before_the_program(tmp_path, command, seed):
    (tmp_path / "mine.py").write_text("print('begun')")
    done = start(tmp_path, "-m", "probe", command, "--seed", seed, "mine.py")
    assert done.returncode == 2
    assert "--seed" in done.stderr
    assert f"'{seed}' is not allowed. Allowed: a whole number from 0 to 4294967295" in done.stderr
    assert "begun" not in done.stdout
