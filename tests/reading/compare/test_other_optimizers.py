# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two trainings whose optimizers are of two classes, of which no state is recorded."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe


class Own(nn.SGD):
    """The same optimizer by another name."""


def trained(folder, kind, level, steps=2, is_changed=False):
    """Record steps of a training with an optimizer of a class; return the folder."""
    net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 4))
    for seed, parameter in enumerate(net.get_parameters()):
        array = np.random.RandomState(seed).randn(*parameter.shape).astype(np.float32)
        parameter.set_data(Tensor(array))
    optimizer = kind(net.trainable_params(), 0.1)
    x = Tensor(np.random.RandomState(20).randn(5, 6).astype(np.float32))
    labels = Tensor([0, 1, 2, 3, 0], ms.int32)
    gradient = ms.value_and_grad(
        lambda: ops.cross_entropy(net(x), labels), None, optimizer.parameters
    )
    debugger = probe.PrecisionDebugger(dump_path=str(folder), level=level)
    for _ in range(steps):
        debugger.start(net)
        _, gradients = gradient()
        optimizer(gradients)
        debugger.stop()
        debugger.step()
        if is_changed:
            net[0].weight.set_data(net[0].weight.value() * 0.5)
    debugger.close()
    return folder


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize(("kind", "status"), [(nn.Adam, 1), (Own, 0)])
def test_another_class_is_the_first_difference_where_its_update_differs(
    tmp_path, level, kind, status
):
    a, b = trained(tmp_path / "a", nn.SGD, level), trained(tmp_path / "b", kind, level)
    for one, other, classes in ((a, b, ("SGD", kind.__name__)), (b, a, (kind.__name__, "SGD"))):
        compared = probe.compare(one, other)
        assert compared.status == status
        said = "the optimizer is {} in A, {} in B".format(*classes)
        assert said in str(compared)
        assert "reset or loaded" not in str(compared)
        if status:
            (origin,) = compared.origins
            assert (origin.step, origin.kind) == (0, "optimizer")
            assert str(origin.said).startswith(said)
            assert str(origin.said).count("the parameters of step 1 differ") == 1


def test_one_step_without_results_proves_nothing_of_another_class(tmp_path):
    a, b = (trained(tmp_path / kind.__name__, kind, "L0", 1) for kind in (nn.SGD, nn.Adam))
    said = str(probe.compare(a, b))
    assert "changed too: the optimizer is SGD in A, Adam in B" in said
    assert "harmless" not in said


def test_a_class_is_not_blamed_for_one_parameter_that_was_changed_behind_its_update(tmp_path):
    a = trained(tmp_path / "a", nn.SGD, "mix")
    b = trained(tmp_path / "b", Own, "mix", is_changed=True)
    for compared in (probe.compare(a, b), probe.compare(b, a)):
        (origin,) = compared.origins
        assert (origin.step, origin.kind) == (1, "parameter")
        assert "it changed between the optimizer and the next forward" in str(origin.said)
