# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Exact evidence comes before any tolerance: real trainings with one change, and what is told of it."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from probe.reading.report.report import make_content
from tests.reading.builders import forward, tensor, write

pytestmark = pytest.mark.medium
MODES = ("statistics", "md5", "tensor")


@pytest.fixture
def both(tmp_path):
    """Record run(False, debugger) and run(True, debugger), and compare them."""

    def compare(run, mode="md5", **more):
        task = "tensor" if mode == "tensor" else "statistics"
        settings = {"task": task, "level": "mix", "dump_path": "x", "quiet": True, **more}
        settings[task] = {"summary_mode": "md5"} if mode == "md5" else {}
        (tmp_path / "config.json").write_text(json.dumps(settings))
        for bad in (False, True):
            probe.seed_all(1)
            folder = str(tmp_path / ("bad" if bad else "good"))
            run(
                bad,
                probe.PrecisionDebugger(
                    config_path=str(tmp_path / "config.json"), dump_path=folder
                ),
            )
        return probe.compare(tmp_path / "good", tmp_path / "bad")

    return compare


def once(net, debugger, *inputs):
    debugger.start(net)
    net(*inputs)
    debugger.stop()
    debugger.step()


def two_steps(net, optimizer, debugger, halved=False):
    """Train two recorded steps; the parameters may be halved after each."""
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    for step in range(2):
        x = ms.Tensor(np.random.default_rng(step).normal(size=(8, 4)).astype(np.float32))
        debugger.start(net)
        optimizer(gradient(x)[1])
        debugger.stop()
        debugger.step()
        for item in net.trainable_params() if halved else ():
            item.set_data(item.value() * 0.5)


class Positions(nn.Cell):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.weight = (
            kind,
            ms.Parameter(ms.Tensor(np.ones((8, 3), np.float32)), name="weight"),
        )

    def construct(self, place):
        place = place.astype(self.kind)
        rates = ms.Tensor(np.linspace(0.1, 1, 8).astype(np.float32))
        return ops.matmul(ops.cos(ops.outer(place.astype(ms.float32), rates)), self.weight)


@pytest.mark.parametrize("mode", MODES)
def test_a_cast_is_named_and_not_its_consumer(both, mode):
    def run(bad, debugger):
        once(
            Positions(ms.float16 if bad else ms.float32),
            debugger,
            ms.Tensor(np.arange(2100, 2124), ms.int32),
        )

    found = both(run, mode)
    assert (found.first.kind, found.first.name, found.first.place) == (
        "argument",
        "Tensor.to.0.forward",
        "input.1",
    )


class Missing(nn.Cell):
    def construct(self, a, b, bad):
        if not bad:
            b = b.reshape(-1, 1)
        return (a - b).mean()


@pytest.mark.parametrize("mode", MODES)
def test_a_missing_reshape_is_named_in_every_mode(both, mode):
    def run(bad, debugger):
        a, b = np.arange(4, dtype=np.float32)[:, None], np.array([3, 1, 0, 2], np.float32)
        once(Missing(), debugger, ms.Tensor(a), ms.Tensor(b), bad)

    found = both(run, mode)
    assert (found.first.kind, found.first.name) == ("calls", "Tensor.reshape.0.forward")
    assert "only A has" in found.first.sentence


class Tiny(nn.Cell):
    def __init__(self, epsilon):
        super().__init__()
        self.epsilon = epsilon

    def construct(self, x):
        return ops.mul(ops.rsqrt(ops.square(x) + self.epsilon), 3.0)


@pytest.mark.parametrize("mode", MODES)
def test_an_argument_counts_however_small_its_effect(both, mode):
    def run(bad, debugger):
        once(
            Tiny(2e-6 if bad else 1e-6),
            debugger,
            ms.Tensor(np.linspace(1, 2, 8).astype(np.float32)),
        )

    found = both(run, mode)
    assert found.status == 1
    assert (found.first.kind, found.first.name) == ("argument", "Tensor.__add__.0.forward")


class Amplified(nn.Cell):
    def construct(self, x, y):
        return ops.cos(x), ops.softmax(y)


def test_a_difference_that_a_call_has_made_large_is_no_rounding(both):
    def run(bad, debugger):
        rng = np.random.default_rng(0)
        x, y = (
            np.arange(100000, 100024).astype(np.float32),
            rng.uniform(1e5, 100030, (4, 8)).astype(np.float32),
        )
        half = np.float32(0.5)
        if bad:
            x, y = x + half, y + (rng.random((4, 8)) > 0.5).astype(np.float32) * half
        once(Amplified(), debugger, ms.Tensor(x), ms.Tensor(y))

    found = both(run, "tensor")
    assert found.status == 1
    far = [row for row in found.table() if row["rel_l2"] and row["rel_l2"] > 0.1]
    assert far and {row["verdict"] for row in far} == {"differs"}
    assert found.first.kind == "data"


def train(net, optimizer, debugger, between=lambda step: None):
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    for step in range(2):
        debugger.start(net)
        optimizer(
            gradient(ms.Tensor(np.random.default_rng(step).normal(size=(8, 4)).astype(np.float32)))[
                1
            ]
        )
        debugger.stop()
        debugger.step()
        between(step)


def test_where_recorded_results_agree_a_parameter_has_changed_after_them(both):
    def run(bad, debugger):
        net = Summed()

        def between(step):
            if bad and step == 0:
                net.fc.weight.set_data(net.fc.weight.value() * 0.5)

        train(net, nn.Adam(net.trainable_params(), 0.01), debugger, between)

    first = both(run, optimizer="states").first
    assert (first.kind, first.step) == ("parameter", 1)
    assert "it changed between the optimizer and the next forward" in first.sentence
    assert "was its state reset" not in first.sentence


def test_another_class_of_optimizer_is_named_as_such(both):
    def run(bad, debugger):
        net = nn.Dense(4, 4)
        kind = nn.Adam if bad else nn.AdamWeightDecay
        train(net, kind(net.trainable_params(), 0.01, eps=1e-8), debugger)

    first = both(run, optimizer="states").first
    assert first.kind == "optimizer"
    assert first.sentence.startswith("the optimizer is AdamWeightDecay in A, Adam in B")


class Summed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x):
        return self.fc(x)


def test_a_second_output_that_is_differentiated_is_told_by_what_it_adds(both):
    def run(bad, debugger):
        net = Summed()
        labels = ms.Tensor([0, 1], ms.int32)

        def forward(x):
            logits = net(x)
            loss = ops.cross_entropy(logits, labels)
            return (loss, logits) if bad else (loss, ops.stop_gradient(logits))

        gradient = ms.grad(forward, None, net.trainable_params())
        debugger.start(net)
        gradient(ms.Tensor(np.ones((2, 4), np.float32)))
        debugger.stop()
        debugger.step()

    found = both(run)
    said = " ".join(origin.sentence for origin in found.origins)
    assert "has 1 more in B: is a second output differentiated?" in said or "stop_gradient" in said


def module(name, weight, number):
    given, made = tensor(norm=1.0), tensor(norm=2.0)
    gradient = f"{name}.parameters_grad{number}"
    return {
        f"{name}.forward.0": {
            **forward([given], [made]),
            "parameters": {"weight": tensor(norm=3.0)},
        },
        gradient: {"weight": [weight]},
        f"{name}.backward.0": {"input": [tensor(norm=5.0)], "output": [tensor(norm=6.0)]},
    }


@pytest.mark.parametrize(("left", "right"), [("", ".0"), (".2", ".0"), (".0", "")])
def test_gradients_of_parameters_are_paired_whatever_number_their_recorder_writes(
    tmp_path, left, right
):
    for side, number in (("a", left), ("b", right)):
        write(
            tmp_path / side / "step2" / "rank0", module("Cell.fc.Dense", tensor(norm=4.0), number)
        )
    found = probe.compare(tmp_path / "a", tmp_path / "b")
    assert found.ok, found
    assert found.only_a == found.only_b == []


def test_a_gradient_that_differs_is_named_whatever_its_number(tmp_path):
    for side, number, weight in (("a", "", tensor(norm=4.0)), ("b", ".7", tensor(norm=9.0))):
        write(tmp_path / side / "step2" / "rank0", module("Cell.fc.Dense", weight, number))
    first = probe.compare(tmp_path / "a", tmp_path / "b").first
    assert (first.kind, first.name) == ("gradient", "Cell.fc.Dense.parameters_grad.7")


class Tied(nn.Cell):
    def __init__(self, bad):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.head = (
            ms.Parameter(self.fc.weight.value().copy(), name="head") if bad else self.fc.weight
        )

    def construct(self, x):
        return ops.matmul(self.fc(x), self.head)


@pytest.mark.parametrize("mode", MODES)
def test_an_own_copy_of_a_shared_parameter_is_named_where_it_is_used(both, mode):
    def run(bad, debugger):
        net = Tied(bad)
        two_steps(net, nn.Adam(net.trainable_params(), 0.01), debugger)

    first = both(run, mode).first
    assert (first.kind, first.name, first.place) == (
        "parameter",
        "Functional.matmul.0.forward",
        "input.1",
    )
    assert first.sentence == (
        "of the parameters of the model itself only A has weight, only B has head; "
        "Functional.matmul.0.forward, input 1, is given it"
    )
    assert "ops.matmul(self.fc(x), self.head)" in first.source


def test_the_elements_that_differ_are_told_where_arrays_are_known(both):
    def run(bad, debugger):
        x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
        x[1, 2] += 5 * bad
        debugger.start()
        ops.exp(ops.relu(ms.Tensor(x)) * 0.1)
        debugger.stop()
        debugger.step()

    assert both(run, "tensor", level="L1").first.sentence.endswith(
        "; 1 of 12 elements differs, first [1, 2]: 7 / 12"
    )
    assert "elements" not in both(run, "md5", level="L1").first.sentence


class Momentum:
    """An optimizer that the user wrote: what it keeps is neither a parameter of the model nor of nn.Optimizer."""

    def __init__(self, parameters, fault):
        self.parameters, self.fault = parameters, fault
        self.means = [ops.zeros_like(item) for item in parameters]
        self.squares = [ops.zeros_like(item) for item in parameters]

    def __call__(self, gradients):
        for place, (parameter, gradient) in enumerate(zip(self.parameters, gradients)):
            decay = 0.8 if self.fault == "decay" else 0.9
            mean = decay * self.means[place] + 0.1 * gradient
            square = 0.99 * self.squares[place] + 0.01 * ops.square(gradient)
            self.means[place] = square if self.fault == "exchanged" else mean
            self.squares[place] = self.squares[place] if self.fault == "lost" else square
            ops.assign(parameter, parameter - 0.01 * mean / (ops.sqrt(square) + 1e-8))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fault", "place", "said"),
    [
        (
            "decay",
            (0, "argument", "input.1"),
            "0.9 in A, 0.8 in B; the first value that differs by it is in step 1",
        ),
        (
            "lost",
            (1, "wiring", "input.0"),
            "in A the output of Tensor.__add__.1.forward of step 0, in B a constant",
        ),
        (
            "exchanged",
            (1, "wiring", "input.0"),
            "__add__.0.forward of step 0, in B the output of Tensor.__add__.1",
        ),
    ],
)
def test_a_value_that_one_step_leaves_to_the_next_is_followed(both, mode, fault, place, said):
    def run(bad, debugger):
        net = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 2))
        two_steps(net, Momentum(net.trainable_params(), fault if bad else ""), debugger)

    found = both(run, mode)
    assert (found.first.step, found.first.kind, found.first.place) == place
    assert said in found.first.sentence
    assert len({(origin.line, origin.name.split(".")[1]) for origin in found.origins}) == len(
        found.origins
    )


@pytest.mark.parametrize("recorded", ["off", "scalars", "states"])
@pytest.mark.parametrize("mode", MODES)
def test_a_parameter_that_changed_after_the_update_is_certain(both, mode, recorded):
    def run(bad, debugger):
        net = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU(), nn.Dense(4, 2))
        two_steps(net, nn.Adam(net.trainable_params(), 0.01), debugger, halved=bad)

    found = both(run, mode, optimizer=recorded)
    first = found.first
    assert (first.step, first.kind) == (1, "parameter")
    assert "changed between the optimizer and the next forward" in first.sentence
    golden, mine = found.paths
    assert (
        make_content(mine, golden).head.finding.sentence == first.sentence
    )  # the page says the same


@pytest.mark.parametrize(
    ("mode", "noise", "told"),
    [
        ("md5", 0.0, "the runs agree in all bits up to here"),
        ("statistics", 0.0, "the runs agree in all recorded numbers up to here"),
        ("md5", 1e-7, "before it values differ within the tolerance, which decides here"),
    ],
)
def test_the_answer_says_how_the_runs_agree_before(both, mode, noise, told):
    def run(bad, debugger):
        x = np.linspace(1, 2, 12, dtype=np.float32) * np.float32(1 + 4 * noise * bad)
        debugger.start()
        ops.exp(ops.relu(ms.Tensor(x)) * (0.5 if bad else 0.1))
        debugger.stop()
        debugger.step()

    found = both(run, mode, level="L1")
    assert told in str(found)


class Flat(nn.Cell):
    """Flattens the places of an image in one of two orders of calls, or in a wrong one."""

    def __init__(self, form):
        super().__init__()
        self.patch, self.norm, self.form = nn.Conv2d(1, 6, 2, stride=2), nn.LayerNorm((6,)), form

    def construct(self, x):
        x = self.patch(x)
        count, channels, high, wide = x.shape
        if self.form == "permuted":
            x = x.permute(0, 2, 3, 1).reshape(count, high * wide, channels)
        elif self.form == "permuted, wide first":
            x = x.permute(0, 3, 2, 1).reshape(count, high * wide, channels)
        elif self.form == "permuted, stopped":
            x = ops.stop_gradient(x.permute(0, 2, 3, 1)).reshape(count, high * wide, channels)
        else:
            x = x.reshape(count, channels, high * wide).swapaxes(1, 2)
        return self.norm(x)[:, 1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("form", "status"),
    [("permuted", 0), ("permuted, wide first", 1), ("permuted, stopped", 1)],
)
def test_a_permutation_that_the_next_call_undoes_is_no_difference(
    both, tmp_path, mode, form, status
):
    def run(bad, debugger):
        net = Flat(form if bad else "")
        weights = net.trainable_params()
        gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, weights)
        optimizer = nn.SGD(weights, 0.1)
        for step in range(2):
            x = np.random.default_rng(step).normal(size=(2, 1, 8, 6)).astype(np.float32)
            debugger.start(net)
            optimizer(gradient(ms.Tensor(x))[1])
            debugger.stop()
            debugger.step()

    compared = both(run, mode)
    assert compared.status == status, str(compared)
    assert probe.compare(tmp_path / "bad", tmp_path / "good").status == status


class Scaled(nn.Cell):
    """Has a call more that changes the last bits, and a call behind it that makes the difference large."""

    def __init__(self, is_scaled):
        super().__init__()
        self.fc, self.is_scaled = nn.Dense(4, 4), is_scaled

    def construct(self, x):
        x = self.fc(x)
        if self.is_scaled:
            x = x * 1.000001
        return ops.exp(ops.cos((x + 1.0) * 1e6))


@pytest.mark.parametrize("mode", MODES)
def test_last_bits_that_the_next_call_makes_large_are_a_difference(both, tmp_path, mode):
    def run(bad, debugger):
        x = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
        once(Scaled(bad), debugger, ms.Tensor(x))

    compared = both(run, mode)
    assert compared.status == 1
    assert compared.first.name == "Tensor.__mul__.0.forward", str(compared)
    assert probe.compare(tmp_path / "bad", tmp_path / "good").first.line == compared.first.line


class Spread(nn.Cell):
    """Uses one setting in a loop on one line, and on another line."""

    def __init__(self, ddof):
        super().__init__()
        self.ddof = ddof

    def construct(self, x):
        found = [ops.std(part, 0, self.ddof) for part in x]
        last = ops.std(x[0] * 2, 0, self.ddof)
        return ops.stack([*found, last])


@pytest.mark.parametrize("mode", MODES)
def test_one_setting_on_several_lines_is_one_change_that_tells_how_many(both, mode):
    def run(bad, debugger):
        x = np.random.default_rng(1).normal(size=(3, 8, 4)).astype(np.float32)
        once(Spread(int(bad)), debugger, ms.Tensor(x))

    compared = both(run, mode)
    assert len(compared.origins) == 1, str(compared)
    said = str(compared.first.said)
    assert "further calls of this line: 2" in said
    assert "further calls with this change, of other lines: 1" in said
