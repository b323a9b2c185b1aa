# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""seed_all: two trainings are the same, and a dropout is an identity where that is asked for."""

from __future__ import annotations

import os
import random
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import mint, nn, ops

from probe import UsageError, seed_all
from tests.support import processes

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 4, 4)).astype(np.float32)
VOLUMES = IMAGES.reshape(2, 3, 4, 2, 2)


def _cell(kind, array):
    def run():
        cell = kind(p=0.5)
        cell.set_train()
        return cell(ms.Tensor(array))

    return run


#: every form of dropout that runs on CPU: what it gives, and what it was given
FORMS = {
    "nn.Dropout": (_cell(nn.Dropout, IMAGES), IMAGES),
    "nn.Dropout1d": (_cell(nn.Dropout1d, IMAGES[0]), IMAGES[0]),
    "nn.Dropout2d": (_cell(nn.Dropout2d, IMAGES), IMAGES),
    "nn.Dropout3d": (_cell(nn.Dropout3d, VOLUMES), VOLUMES),
    "ops.dropout": (lambda: ops.dropout(ms.Tensor(IMAGES), 0.5), IMAGES),
    "ops.dropout1d": (lambda: ops.dropout1d(ms.Tensor(IMAGES[0]), 0.5), IMAGES[0]),
    "ops.dropout2d": (lambda: ops.dropout2d(ms.Tensor(IMAGES), 0.5), IMAGES),
    "ops.dropout3d": (lambda: ops.dropout3d(ms.Tensor(VOLUMES), 0.5), VOLUMES),
    "ops.Dropout": (lambda: ops.Dropout(keep_prob=0.5)(ms.Tensor(IMAGES))[0], IMAGES),
    "ops.Dropout2D": (lambda: ops.Dropout2D(keep_prob=0.5)(ms.Tensor(IMAGES))[0], IMAGES),
    "ops.Dropout3D": (lambda: ops.Dropout3D(keep_prob=0.5)(ms.Tensor(VOLUMES))[0], VOLUMES),
}
#: those without a kernel on CPU: with rm_dropout they need none
WITHOUT_KERNEL = {
    "mint.nn.Dropout": (_cell(mint.nn.Dropout, IMAGES), IMAGES),
    "mint.nn.Dropout2d": (_cell(mint.nn.Dropout2d, IMAGES), IMAGES),
    "mint.nn.functional.dropout": (
        lambda: mint.nn.functional.dropout(ms.Tensor(IMAGES), 0.5),
        IMAGES,
    ),
    "mint.nn.functional.dropout2d": (
        lambda: mint.nn.functional.dropout2d(ms.Tensor(IMAGES), 0.5),
        IMAGES,
    ),
}


@pytest.fixture(autouse=True)
def as_before():
    yield
    seed_all(1)


@pytest.mark.parametrize("form", FORMS)
def test_rm_dropout_makes_dropout_an_identity_until_it_is_switched_off(form):
    run, given = FORMS[form]
    for rm_dropout in (False, True, False):
        seed_all(7, rm_dropout=rm_dropout)
        result = run().asnumpy()
        assert (result.tobytes() == given.tobytes()) == rm_dropout


@pytest.mark.parametrize("form", WITHOUT_KERNEL)
def test_rm_dropout_applies_to_dropout_without_a_cpu_kernel(form):
    run, given = WITHOUT_KERNEL[form]
    seed_all(7, rm_dropout=True)
    assert run().asnumpy().tobytes() == given.tobytes()


def test_rm_dropout_applies_to_a_cell_made_before():
    cell = nn.Dropout(p=0.5)
    cell.set_train()
    seed_all(7, rm_dropout=True)
    assert cell(ms.Tensor(IMAGES)).asnumpy().tobytes() == IMAGES.tobytes()


TRAINING = """
import sys, random
import mindspore as ms, numpy as np
from mindspore import nn, ops
from probe import seed_all
seed_all(int(sys.argv[1]), mode=True)
net = nn.SequentialCell(nn.Dense(8, 16), nn.Dropout(p=0.3), nn.ReLU(), nn.Dense(16, 4))
net.set_train()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
forward = lambda x, y: nn.CrossEntropyLoss()(net(x), y)
step = ms.value_and_grad(forward, None, optimizer.parameters)
for _ in range(3):
    x = ms.Tensor(np.random.normal(size=(4, 8)).astype(np.float32)) + ops.standard_normal((4, 8))
    loss, gradients = step(x, ms.Tensor(np.array([random.randrange(4) for _ in range(4)], np.int32)))
    optimizer(gradients)
    print(loss.asnumpy().tobytes().hex())
"""


@pytest.mark.slow
def test_two_processes_with_one_seed_train_the_same(tmp_path):
    (tmp_path / "training.py").write_text(TRAINING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

    def losses(seed):
        command = [sys.executable, str(tmp_path / "training.py"), str(seed)]
        return processes.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout.split()

    first = losses(1234)
    assert len(first) == 3
    assert losses(1234) == first
    assert losses(4321) != first


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_the_first_and_the_last_seed_are_taken(seed):
    drawn = []
    for _ in range(2):
        seed_all(seed)
        drawn.append((random.random(), np.random.rand(), float(ops.rand(1).asnumpy()[0])))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    "wrong", [{"seed": -1}, {"seed": 2**32}, {"seed": True}, {"seed": "1"}, {"mode": 1}]
)
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(UsageError, match=rf"seed_all\(\): {next(iter(wrong))} .*Allowed"):
        seed_all(**wrong)
