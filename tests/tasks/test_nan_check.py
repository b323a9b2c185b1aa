# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task "nan_check": the first call that turns finite inputs into NaN or Inf."""

from __future__ import annotations

import logging
import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops
from mindspore.communication import comm_func
from mindspore.mint import distributed

import probe
from probe import NonFiniteError, SettingsError
from tests.support import collectives, nets
from tests.support.tensors import tensor

pytestmark = pytest.mark.medium

X = tensor(np.random.default_rng(3).normal(size=(4, 6)))


class Planted(nn.Cell):
    """Three layers with something between them."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last = nn.Dense(6, 5), nn.Dense(5, 3)
        self.between = between

    def construct(self, x):
        return self.last(self.between(ops.tanh(self.first(x))))


def _overflows(h):
    return ops.exp(h * 0.0 + 1000.0)


def _overflows_in_backward(h):
    return ops.sqrt(ops.relu(h * 0.0))  # the root is 0, its gradient is not


def _train(between, debugger, steps=3, scale=None):
    """Train; from the second step on with what is planted."""
    ms.set_seed(3)
    net = Planted(lambda h: h)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    step = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)
    losses = []
    for i in range(steps):
        if i == 1 and between is not None:
            net.between = between
        if debugger is not None:
            debugger.start(net)
        loss, gradients = step(X)
        if i == 1 and scale is not None:
            gradients = tuple(ops.mul(gradient, scale) for gradient in gradients)
        optimizer(gradients)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        losses += [_bits(value) for value in (loss, *gradients, *net.get_parameters())]
    return losses


def _bits(value):
    """Return the bytes of a tensor. The sign of a NaN changes from call to call on some processors, without probe."""
    array = value.asnumpy()
    return np.where(np.isnan(array), np.float32(np.nan), array).tobytes()


PLANTS = {
    "forward": ({"between": _overflows}, "Functional.exp.0.forward"),
    "backward": ({"between": _overflows_in_backward}, "Functional.sqrt.0.backward"),
    "optimizer": ({"between": None, "scale": 3e38}, "Functional.mul.0.forward"),
}


@pytest.mark.parametrize("level", ["L1", "mix"])
@pytest.mark.parametrize("plant", PLANTS)
def test_the_first_call_that_produces_nan_is_written_with_its_arrays_and_the_calls_before_it(
    debug, plant, level, caplog
):
    caplog.set_level(logging.WARNING, "probe")
    planted, culprit = PLANTS[plant]
    bare = _train(debugger=None, **planted)
    debugger = debug(task="nan_check", level=level, last_calls=4)
    assert _train(debugger=debugger, **planted) == bare
    assert [path.name for path in debug.dump_path.iterdir()] == ["step1"]
    dump = debug.dump(1)
    *before, last = dump.data
    if plant == "optimizer":
        assert last.startswith("Functional.mul.")
    else:
        assert last == culprit
    assert len(before) == 4
    (message,) = [message for message in caplog.messages if "First NaN/Inf" in message]
    assert last in message
    entry = dump.data[last]
    forward = "input_args" in entry
    inputs = [
        record
        for record in entry["input_args" if forward else "input"]
        if "data_name" in (record or {})
    ]
    outputs = [record for record in entry["output"] if record]
    for record in inputs + outputs:
        array = probe.load(dump.folder / "dump_tensor_data" / record["data_name"])
        assert array.shape == tuple(record["shape"])
        assert np.isfinite(array).all() == (record in inputs)
        assert math.isfinite(record["Norm"]) != (record in outputs)
    assert inputs
    if forward:
        assert any(last in names for names, _ in dump.stack.values())
    for name in before:
        text = str(dump.data[name])
        assert "data_name" not in text
        assert "'Max': " in text


def test_nothing_is_written_while_all_values_are_finite(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    net, train = nets.build("digits")
    debugger = debug(task="nan_check", level="mix")
    for step in range(3):
        debugger.start(net)
        train(step)
        debugger.stop()
        debugger.step()
    assert not debug.dump_path.exists()
    assert not [record for record in caplog.records if record.name == "probe"]


def test_nan_in_outputs_that_a_kernel_does_not_write_is_ignored(debug):
    """BatchNorm's kernel does not write two of its outputs: here the memory that they get holds NaN."""
    normal = nn.BatchNorm2d(4)
    normal.set_train()
    x = tensor(np.random.default_rng(0).normal(size=(2, 4, 3, 3)))
    debugger = debug(task="nan_check")
    debugger.start(nn.SequentialCell(normal))
    for _ in range(50):
        old = [tensor([np.nan] * 4) + 0.0 for _ in range(8)]
        del old
        normal(x)
    debugger.step()
    assert not debug.dump_path.exists() or not any(
        "BatchNorm" in name for name in debug.dump().data
    )


def test_after_the_first_nan_nothing_is_recorded(debug):
    exp = ops.exp
    debugger = debug(task="nan_check")
    for _ in range(3):
        debugger.start()
        watched = ops.exp is not exp
        ops.exp(tensor([1000.0]))
        debugger.stop()
        debugger.step()
    assert not watched
    assert [path.name for path in debug.dump_path.iterdir()] == ["step0"]


def test_on_nan_raise_stops_the_training(debug):
    debugger = debug(task="nan_check", on_nan="raise")
    debugger.start()
    ops.exp(tensor([1.0]))
    with pytest.raises(NonFiniteError, match=r"First NaN/Inf: Functional\.exp\.1\.forward"):
        ops.exp(tensor([1000.0]))
    debugger.stop()
    debugger.step()
    assert list(debug.dump().data) == ["Functional.exp.0.forward", "Functional.exp.1.forward"]


def test_on_nan_raise_stops_the_training_in_a_backward(debug):
    debugger = debug(task="nan_check", on_nan="raise")
    with pytest.raises(NonFiniteError, match=r"Functional\.sqrt\.0\.backward"):
        _train(_overflows_in_backward, debugger)
    debugger.step()
    assert list(debug.dump(1).data)[-1] == "Functional.sqrt.0.backward"


def test_nan_in_the_data_is_warned_about_and_not_blamed_on_a_call(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(task="nan_check")
    debugger.start()
    ops.tanh(tensor([np.nan, 1.0]) * 2)
    ops.masked_fill(X, X > 0, -math.inf)  # whoever gives -inf wants it
    debugger.stop()
    debugger.step()
    assert not debug.dump_path.exists()
    (message,) = caplog.messages
    assert "received NaN/Inf, but no recorded call produced it" in message


def test_an_input_that_the_call_changes_is_recorded_as_it_was_before(debug):
    x = tensor([1e38, 1.0])
    debug.record(lambda: x.mul_(tensor([1e10, 1.0])), task="nan_check")
    entry = debug.dump().data["Tensor.mul_.0.forward"]
    assert entry["input_args"][0]["Max"] == pytest.approx(1e38)
    assert entry["output"][0]["Max"] == math.inf


@pytest.mark.parametrize(
    ("key", "value"), [("last_calls", -1), ("last_calls", True), ("on_nan", "stop")]
)
def test_wrong_settings_are_named(debug, key, value):
    with pytest.raises(SettingsError, match=rf"nan_check\.{key}: {value!r} is not allowed"):
        debug(task="nan_check", **{key: value})


BAD = tensor([[1.0, np.nan, 2.0, 0.5, 1.0, 1.0]])


def _found(debug, net, function, level, **settings):
    debugger = debug(task="nan_check", level=level, **settings)
    debugger.start(net)
    function()
    debugger.stop()
    debugger.step()
    return list(debug.dump().data)[-1] if debug.dump_path.exists() else ""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("layer", [nn.ReLU, nn.Tanh])
def test_nan_in_the_data_is_not_blamed_on_a_backward(debug, level, bad, layer):
    ms.set_seed(1)  # outputs that are all -inf count as a mask: then its square makes Inf
    net = nn.SequentialCell(nn.Dense(6, 5), layer(), nn.Dense(5, 2))
    x = tensor([[1.0, bad, 2.0, 0.5, 1.0, 1.0]])
    step = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, net.trainable_params())
    assert _found(debug, net, lambda: step(x), level) == ""


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_nan_in_a_weight_is_not_blamed_on_a_call(debug, level):
    net = nn.SequentialCell(nn.SequentialCell(nn.SequentialCell(nn.Dense(6, 5))), nn.Dense(5, 2))
    net[0][0][0].weight.set_data(tensor(np.full((5, 6), np.nan)))
    assert _found(debug, net, lambda: net(X), level) == ""


def test_nan_in_the_gradient_given_by_the_user_is_not_blamed_on_a_call(debug):
    net = nn.SequentialCell(nn.Dense(6, 5), nn.Dense(5, 2))
    gradient = ms.ops.GradOperation(get_by_list=True, sens_param=True)(net, net.trainable_params())
    assert _found(debug, net, lambda: gradient(X, tensor(np.full((4, 2), np.nan))), "L0") == ""


class Root(nn.Cell):
    """Its weight's gradient is NaN/Inf where the weight is 0."""

    def __init__(self):
        super().__init__()
        self.w = ms.Parameter(tensor(np.zeros((6, 3))), name="w")

    def construct(self, x):
        return ops.sqrt(ops.matmul(x, self.w))


def test_nan_in_the_gradient_of_a_weight_is_blamed_on_its_cell(debug):
    net = nn.SequentialCell(Root())
    step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    assert _found(debug, net, lambda: step(X), "L0") == "Cell.0.Root.parameters_grad.0"
    record = debug.dump().data["Cell.0.Root.parameters_grad.0"]["w"][0]
    assert not np.isfinite(debug.dump().array(record["data_name"])).all()


@pytest.mark.parametrize("name", ["input", "kwargs"])
def test_a_cell_named_like_a_key_of_an_entry_is_found(debug, name):
    net = nn.SequentialCell()
    net.insert_child_to_cell(name, nn.Dense(6, 5))
    layer = getattr(net, name)
    layer.weight.set_data(tensor(np.full((5, 6), 3e38)))
    assert (
        _found(debug, net, lambda: layer(tensor(np.ones((4, 6)))), "L0")
        == f"Cell.{name}.Dense.forward.0"
    )


class Mask(nn.Cell):
    """Makes NaN/Inf on purpose."""

    def construct(self):
        return ops.triu(ops.full((4, 4), -math.inf, dtype=ms.float32), 1)


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_minus_inf_of_a_mask_is_ignored(debug, level):
    net = nn.SequentialCell(Mask())
    assert _found(debug, net, lambda: ops.softmax(net[0]() + 1.0), level) == ""


def test_a_backward_that_produces_nan_has_the_stack_of_its_forward(debug):
    step = ms.grad(lambda x: ops.sqrt(ops.relu(x * 0.0)).sum())
    assert _found(debug, None, lambda: step(X), "L1", last_calls=0) == "Functional.sqrt.0.backward"
    ((names, lines),) = debug.dump().stack.values()
    assert names == ["Functional.sqrt.0.forward"]
    assert any("test_nan_check.py" in line for line in lines)


def test_the_call_that_produces_nan_is_written_at_once(debug):
    debugger = debug(task="nan_check")
    debugger.start()
    ops.exp(tensor([1000.0]))
    assert list(debug.dump().data) == [
        "Functional.exp.0.forward"
    ]  # as a process leaves it that is killed now
    debugger.step()


def test_after_the_first_nan_an_edit_may_choose_another_task(debug):
    debugger = debug(task="nan_check")
    debugger.start()
    ops.exp(tensor([1000.0]))
    debugger.step()
    path = debug.path / "config.json"
    path.write_text(path.read_text().replace('"nan_check"', '"statistics"', 1) + "  ")
    debugger.start()
    ops.exp(tensor([1.0]))
    debugger.step()
    assert list(debug.dump(1).data) == ["Functional.exp.0.forward"]


def test_data_mode_without_inputs_is_refused(debug):
    with pytest.raises(SettingsError, match=r"nan_check\.data_mode"):
        debug(task="nan_check", data_mode=["output"])


def test_a_large_complex_number_is_finite(debug):
    assert (
        _found(debug, None, lambda: ops.reshape(tensor([3e38 + 3e38j], np.complex64), (1, 1)), "L1")
        == ""
    )


@pytest.mark.parametrize("order", ["one after the other", "overlapping"])
def test_nan_that_a_communication_was_given_is_not_blamed_on_it(debug, monkeypatch, caplog, order):
    class Sent:
        def wait(self):
            pass

    collectives.install(
        monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Sent())
    )
    debugger = debug(task="nan_check", level="L1")
    debugger.start()
    first = distributed.irecv(tensor([1.0]), 1)
    if order == "one after the other":
        first.wait()
    second = distributed.irecv(
        tensor([np.nan]), 1
    )  # its inputs are copied, and measured when both have finished
    if order == "overlapping":
        first.wait()
    second.wait()
    debugger.step()
    (message,) = caplog.messages
    assert (
        "MintDistributed.irecv.1.forward received NaN/Inf, but no recorded call produced it"
        in message
    )


def _bad_step(debugger, at):
    """Two findings could be made of this step: the second is of the same step."""
    debugger.start()
    try:
        ops.log(tensor([0.0 if at else 1.0]))
        ops.exp(tensor([1000.0 if at else 1.0]))
    finally:
        debugger.stop()
        debugger.step()


@pytest.mark.parametrize(
    ("hits", "found"), [(1, [1]), (2, [1, 3]), (3, [1, 3, 4]), (0, [1, 3, 4, 5])]
)
def test_max_hits_findings_are_made_at_most_one_per_step(debug, caplog, hits, found):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(task="nan_check", max_hits=hits)
    for step in range(6):
        _bad_step(debugger, at=step in (1, 3, 4, 5))
    assert sorted(path.name for path in debug.dump_path.iterdir()) == [
        f"step{step}" for step in found
    ]
    assert sum(
        "First NaN/Inf: Functional.log.0.forward" in message for message in caplog.messages
    ) == len(found)
    assert not any("exp" in message for message in caplog.messages)


def test_on_nan_raise_ends_the_training_at_the_last_of_max_hits(debug):
    debugger = debug(task="nan_check", max_hits=2, on_nan="raise")
    _bad_step(debugger, at=True)
    _bad_step(debugger, at=False)
    with pytest.raises(
        NonFiniteError,
        match=r"First NaN/Inf: .*test_nan_check\.py, line \d+, in _bad_step: ops\.log",
    ):
        _bad_step(debugger, at=True)


def test_without_a_limit_on_nan_raise_never_ends_the_training(debug):
    debugger = debug(task="nan_check", max_hits=0, on_nan="raise")
    for _ in range(3):
        _bad_step(debugger, at=True)
    assert len(list(debug.dump_path.iterdir())) == 3


def test_an_overflow_of_dynamic_loss_scaling_is_one_of_several_hits(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    net = nn.SequentialCell(nn.Dense(6, 3).to_float(ms.float16))
    scaler = ms.amp.DynamicLossScaler(scale_value=2.0**20, scale_factor=2, scale_window=2)
    debugger = debug(task="nan_check", level="mix", max_hits=3)
    gradient = ms.value_and_grad(
        lambda x: scaler.scale(net(x).astype(ms.float32).sum()), None, net.trainable_params()
    )
    finite = []
    for _ in range(8):
        with debugger.recording(net):
            _, gradients = gradient(X)
            finite.append(bool(ms.amp.all_finite(gradients)))
            scaler.adjust(tensor(finite[-1], bool))
        debugger.step()
    overflows = [step for step, is_finite in enumerate(finite) if not is_finite]
    assert overflows[:3] == [0, 1, 2]
    assert sorted(path.name for path in debug.dump_path.iterdir()) == ["step0", "step1", "step2"]
    findings = [message for message in caplog.messages if message.startswith("First NaN")]
    assert len(findings) == 3


def test_a_loss_outside_of_the_recorded_calls_is_said_once(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    net = nn.SequentialCell(nn.Dense(6, 3), nn.Dense(3, 2))
    debugger = debug(task="nan_check", level="L0")
    for _ in range(3):
        with debugger.recording(net):
            ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, net.trainable_params())(X)
        debugger.step()
    (message,) = caplog.messages
    assert message.startswith("The loss is computed outside of the recorded calls")
    assert message.endswith("Cell.1.Dense.backward.0.")


def test_a_loss_inside_of_the_recorded_calls_is_not_talked_about(debug, caplog):
    class WithLoss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layer = nn.Dense(6, 3)
            self.loss = nn.MSELoss()

        def construct(self, x):
            return self.loss(self.layer(x), x[:, :3])

    caplog.set_level(logging.WARNING, "probe")
    net = nn.SequentialCell(WithLoss())
    debugger = debug(task="nan_check", level="L0")
    with debugger.recording(net):
        ms.value_and_grad(net, None, net.trainable_params())(X)
    debugger.step()
    assert caplog.messages == []
