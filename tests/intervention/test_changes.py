# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes of calls, and planted faults, in a training of this process."""

from __future__ import annotations

import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from probe.capture.patches import HookGroup
from probe.errors import UsageError
from probe.intervention.change import Calls, Change
from probe.intervention.changing import Intervention
from probe.intervention.faults import SIZES, Planted
from probe.intervention.values import graft, mapped, write

pytestmark = pytest.mark.medium


class Inner(nn.Cell):
    """Its numbers overflow in float16 on the way."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.full(4, 2, np.float32)), name="weight")

    def construct(self, x):
        return x * self.weight.astype(x.dtype) * 30000 / 30000


class Net(nn.Cell):
    """Half precision, with a softmax behind the inner Cell."""

    def __init__(self):
        super().__init__()
        self.inner, self.act = Inner(), nn.ReLU()

    def construct(self, x):
        return ops.softmax(self.act(self.inner(x.astype(ms.float16))) * 0.5, -1)


X = Tensor(np.array([[1, 2, 3, 4]], np.float32))


class Bench:
    """Makes steps of a net under one change."""

    def __init__(self, folder):
        self.folder, self.net, self.calls = folder, Net(), str(folder / "calls.json")
        self.gradient = ms.value_and_grad(
            lambda x: (self.net(x).astype(ms.float32) * X).sum(), None, [self.net.inner.weight]
        )
        self.run(Intervention(Change(), self.calls, str(folder)))

    def change(self, **given):
        """Return what changes the calls, by the names that a user gives."""
        change = Calls(self.calls).resolve(Change(**given))
        return Intervention(change, self.calls, str(self.folder))

    def run(self, intervention):
        """Return loss and gradient of a step."""
        intervention.parameters([])
        intervention.begin(self.net)
        try:
            loss, gradients = self.gradient(X)
        finally:
            intervention.pause()
            intervention.end()
        return float(loss.asnumpy()), gradients[0].asnumpy()


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_the_first_step_is_noted_with_cells_dtypes_and_shapes(bench):
    rows = {row["name"]: row for row in json.loads(Path(bench.calls).read_text())}
    assert rows["Cell.inner.Inner.forward.0"] == {
        "name": "Cell.inner.Inner.forward.0",
        "is_cell": True,
        "cell": "",
        "inputs": ["Float16"],
        "outputs": ["Float16"],
        "shapes": [[1, 4]],
    }
    assert rows["Tensor.__truediv__.0.forward"]["cell"] == "Cell.inner.Inner"


def test_a_cell_computes_in_float32_and_gives_back_half_precision(bench):
    assert np.isnan(bench.gradient(X)[0].asnumpy())
    loss, gradient = bench.run(bench.change(float32=("inner",)))
    assert loss == pytest.approx(3.493, rel=1e-3)
    assert np.isfinite(gradient).all() and gradient.any()
    seen = []
    bench.net.act.register_forward_pre_hook(lambda cell, args: seen.append(args[0].dtype))
    bench.run(bench.change(float32=("inner",)))
    assert seen == [ms.float16]
    assert bench.net.inner.weight.dtype == ms.float32
    assert np.isnan(bench.gradient(X)[0].asnumpy())  # all is as before


def test_a_call_alone_computes_in_float32_and_is_cast_back(bench):
    assert np.isnan(
        bench.run(bench.change(float32=("Tensor.__truediv__.0",)))[0]
    )  # its input is Inf already


def test_a_skipped_cell_gives_back_its_input(bench):
    x = X.asnumpy() * 0.5
    wanted = np.exp(x) / np.exp(x).sum()
    assert bench.run(bench.change(skip=("inner",)))[0] == pytest.approx(
        (wanted * X.asnumpy()).sum(), rel=1e-2
    )


@pytest.mark.parametrize("kind", ["formula", "cpu"])
def test_a_formula_and_the_host_give_the_same_numbers_as_the_call(bench, kind):
    wanted = bench.run(bench.change(skip=("inner",)))
    given = bench.run(bench.change(skip=("inner",), **{kind: ("Functional.softmax.0",)}))
    assert given[0] == pytest.approx(wanted[0], rel=1e-2)


def test_a_call_without_a_formula_is_refused(bench):
    with pytest.raises(UsageError, match=r"--formula: Tensor\.to has no formula"):
        bench.run(bench.change(formula=("Tensor.to",)))
    ms.common.api._pynative_executor.clear_res()


@pytest.mark.parametrize("values", [[1.1, -3.0, 7e-5], [np.nan, np.inf, 1.0]])
def test_a_graft_has_the_golden_values_and_passes_gradients_on(values):
    golden, x = np.array([0.3, 1e-3, 2.0], np.float32), Tensor(np.array(values, np.float32))
    assert graft(x, golden).asnumpy().tobytes() == golden.tobytes()
    if np.isfinite(values).all():
        assert ms.grad(lambda x: (graft(x, golden) * 3).sum())(x).asnumpy().tolist() == [3, 3, 3]


def test_a_graft_of_another_shape_is_refused():
    with pytest.raises(
        UsageError, match=r"the golden output has the shape \(2,\), this one \(1, 4\)"
    ):
        graft(X, np.zeros(2, np.float32))


@pytest.mark.parametrize("dtype", [ms.float32, ms.float16, ms.bfloat16, ms.int32])
def test_values_are_written_into_the_memory_of_a_tensor(dtype):
    tensor = Tensor([1, 2], dtype)
    view = tensor.view(2, 1)
    write(tensor, np.array([5, 6], np.float32 if dtype != ms.int32 else np.int32))
    assert view.astype(ms.float32).asnumpy().ravel().tolist() == [5, 6]


def test_containers_stay_what_they_are():
    assert mapped(lambda item: item + 1, {"a": (1, [2])}) == {"a": (2, [3])}


# -- planted faults ---------------------------------------------------------------------------------------------------


def train(kind, size, steps=4, at=2):
    """Return the gradients, the parameters and the losses of a training with a planted fault."""
    ms.set_seed(1)
    net = nn.Dense(3, 3, weight_init=Tensor(np.arange(9).reshape(3, 3) / 9, ms.float32))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    function = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)
    planted, found = Planted(Change(fault=(kind, size, at))), []
    try:
        for step in range(steps):
            x = Tensor(np.full((2, 3), 0.1 * (step + 1), np.float32))
            planted.parameters(net.get_parameters())
            planted.batch(x)
            planted.begin(net)
            loss, gradients = function(x)
            optimizer(gradients)
            planted.pause()
            assert planted.end() == (2 if step + 1 == at else 0)
            found.append(
                (float(loss.asnumpy()), gradients[0].asnumpy().copy(), net.weight.asnumpy().copy())
            )
    finally:
        planted.hooks.remove()
    return found


def test_no_fault_changes_a_step_before_its_own_and_each_changes_the_training():
    clean = train("clean", 0.0)
    for kind, sizes in SIZES.items():
        for size in sizes if kind != "rank" else ():
            found = train(kind, size)
            assert [item[0] for item in found[:2]] == [item[0] for item in clean[:2]]
            if (kind, size) != ("frozen", 0.0):  # the smallest is the bias
                assert not np.array_equal(found[-1][2], clean[-1][2]), kind


def test_each_fault_is_the_one_that_it_is_called():
    clean = train("clean", 0.0)
    assert np.allclose(train("gradient", 100.0)[2][1], clean[2][1] * 100)
    assert np.isnan(train("nan", 1.0)[2][1]).sum() == 1
    frozen = train("frozen", 1.0)
    assert np.array_equal(frozen[1][2], frozen[3][2])
    step = [found[2][2] - found[1][2] for found in (train("rate", 3.0), clean)]
    assert np.allclose(step[0], step[1] * 3, atol=1e-6)
    assert train("batch", 1000.0)[2][0] > clean[2][0] * 1000
    turned = train("transposed", 1.0)
    assert (
        np.allclose(turned[2][2] - turned[3][2], turned[3][1] * 0.1, atol=1e-4)
        or turned[2][0] != clean[2][0]
    )


def test_a_planted_fault_takes_its_hooks_out():
    planted = Planted(Change(fault=("nan", 1.0, 0)))
    assert isinstance(planted.hooks, HookGroup)
    planted.hooks.remove()
    assert np.isfinite(ms.value_and_grad(lambda w: w * 2, 0)(X.sum())[1].asnumpy())
