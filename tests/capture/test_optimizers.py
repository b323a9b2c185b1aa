# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each update of an optimizer is one entry: the gradients that enter, the numbers of the step, the states."""

from __future__ import annotations

import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, amp, experimental, nn, ops
from mindspore.experimental.optim import lr_scheduler

from probe import MsprobeStep
from probe.__main__ import main
from probe.capture.training.optimizer_values import OptimizerValues
from probe.capture.training.schedules import Schedules
from probe.measure.tensor_reader import to_number

pytestmark = pytest.mark.medium


class Net(nn.Cell):
    """One layer with a bias."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return self.fc(x)


X, Y = (
    Tensor(np.arange(12, dtype=np.float32).reshape(4, 3) / 7),
    Tensor(np.ones((4, 2), np.float32)),
)
NAMES = ["fc.weight", "fc.bias"]


def trainer(optimizer_of, change=tuple):
    """Return a net and a function that trains it by one step; ``change`` runs on the gradients."""
    net = Net()
    optimizer = optimizer_of(net.trainable_params())
    of = ms.value_and_grad(lambda: ops.mse_loss(net(X), Y), None, list(optimizer.parameters))

    def train():
        gradients = change(of()[1])
        optimizer(gradients)
        return gradients

    return net, optimizer, train


def record(debug, net, train, steps=1, **settings):
    """Record steps; return the updates of each."""
    debugger = debug(**{"level": "mix", "overwrite": True, **settings})
    for _ in range(steps):
        debugger.start(net)
        train()
        debugger.stop()
        debugger.step()
    debugger.close()
    dumps = [debug.dump(step) for step in range(steps)]
    return [
        [entry for name, entry in dump.data.items() if name.startswith("Cell.optimizer")]
        for dump in dumps
    ]


def numbers(entry):
    """Return the numbers of an update, and its names, as Python has them."""
    return plain(entry["input_kwargs"])


def plain(value):
    """Return a value with numbers in place of their records. On a device a number may be a record of one element."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"type", "value"}:
        return value["value"]
    if value.get("shape") in ([], [1]):
        return value["Max"]
    return {key: plain(item) for key, item in value.items()}


OPTIMIZERS = {
    "Adam": (
        lambda p: nn.Adam(p, 0.01, weight_decay=0.1),
        {
            "learning_rate": 0.01,
            "beta1": 0.9,
            "beta2": 0.999,
            "eps": 1e-8,
            "weight_decay": 0.1,
            "loss_scale": 1.0,
            "use_nesterov": False,
            "global_step": 0,
        },
    ),
    "AdamWeightDecay": (
        lambda p: nn.AdamWeightDecay(p, 0.01, 0.8),
        {"learning_rate": 0.01, "beta1": 0.8, "eps": 1e-6},
    ),
    "Momentum": (
        lambda p: nn.Momentum(p, 0.01, 0.9, use_nesterov=True),
        {"momentum": 0.9, "use_nesterov": True},
    ),
    "SGD": (
        lambda p: nn.SGD(p, 0.01, 0.5, 0.25),
        {"learning_rate": 0.01, "momentum": 0.5, "dampening": 0.25},
    ),
    "RMSProp": (lambda p: nn.RMSProp(p, 0.01, 0.8), {"learning_rate": 0.01, "decay": 0.8}),
    "Adagrad": (lambda p: nn.Adagrad(p, learning_rate=0.01), {"learning_rate": 0.01}),
    "experimental.Adam": (
        lambda p: experimental.optim.Adam(p, 0.01),
        {"learning_rate": 0.01, "beta2": 0.999},
    ),
    "experimental.AdamW": (
        lambda p: experimental.optim.AdamW(p, 0.01, weight_decay=0.5),
        {"weight_decay": 0.5},
    ),
    "experimental.SGD": (
        lambda p: experimental.optim.SGD(p, 0.01, 0.9),
        {"learning_rate": 0.01, "momentum": 0.9},
    ),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_an_update_has_its_gradients_and_its_numbers(debug, kind):
    make, expected = OPTIMIZERS[kind]
    net, _, train = trainer(make)
    ((entry,),) = record(debug, net, train)
    found = numbers(entry)
    assert {key: found.get(key) for key in expected} == pytest.approx(expected)
    assert found["parameters"] == NAMES
    (given,) = entry["input_args"]
    assert [record["shape"] for record in given] == [[2, 3], [2]]
    assert given == [
        debug.dump().data["Cell.fc.Dense.parameters_grad.0"][name][0] for name in ("weight", "bias")
    ]
    assert entry["output"] == []


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_an_update_is_recorded_at_each_level_with_its_stack(debug, level):
    net, _, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))
    record(debug, net, train, level=level)
    dump = debug.dump()
    assert dump.names("optimizer") == ["Cell.optimizer.SGD.forward.0"]
    assert list(dump.data)[-1] == "Cell.optimizer.SGD.forward.0"
    (stack,) = [
        lines for names, lines in dump.stack.values() if "Cell.optimizer.SGD.forward.0" in names
    ]
    assert "optimizer(gradients)" in stack[0]
    assert ("Cell.optimizer.SGD.forward.0" in dump.construct) == (level != "L1")


@pytest.mark.parametrize("task", ["statistics", "tensor", "structure"])
def test_an_update_has_the_parts_of_its_task(debug, task):
    net, _, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))
    gradients = train()
    settings = {"summary_mode": "md5"} if task == "statistics" else {}
    updates = record(debug, net, train, task=task, **settings)
    if task == "structure":
        assert updates == [[]]
        assert debug.dump().construct["Cell.optimizer.SGD.forward.0"] is None
        return
    ((entry,),) = updates
    weight = entry["input_args"][0][0]
    assert ("md5" in weight) == (task == "statistics")
    if task == "tensor":
        assert debug.dump().array(weight["data_name"]).shape == gradients[0].shape


def test_an_update_can_be_left_out(debug):
    net, _, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))
    assert record(debug, net, train, optimizer="off") == [[]]


def test_nan_check_has_no_updates_and_says_nothing_about_them(debug, caplog):
    net, _, train = trainer(
        lambda p: experimental.optim.SGD(p, 0.1),
        lambda gradients: [ops.log(-ops.abs(g)) for g in gradients],
    )
    debugger = debug(level="mix", task="nan_check")
    debugger.start(net)
    train()
    debugger.stop()
    debugger.step()
    assert debug.dump().names("log")
    assert not debug.dump().names("optimizer")


@pytest.mark.parametrize(
    "make",
    [
        lambda p: nn.Momentum(p, 0.1, 0.9),
        lambda p: nn.Adam(p, 0.1),
        lambda p: experimental.optim.Adam(p, 0.1),
    ],
)
def test_states_are_those_before_and_results_those_after(debug, make):
    net, optimizer, train = trainer(make)
    train()
    values = OptimizerValues(optimizer, may_run=True)
    before = {name: state.asnumpy().copy() for name, state in values.states.items()}
    ((entry,),) = record(debug, net, train, task="tensor", optimizer="states")
    dump = debug.dump()
    assert set(entry["parameters"]) == set(before)
    for name, record_of in entry["parameters"].items():
        np.testing.assert_array_equal(dump.array(record_of["data_name"]), before[name])
    (after,) = entry["output"]
    for name, held in {**values.parameters, **values.states}.items():
        np.testing.assert_array_equal(dump.array(after[name]["data_name"]), held.asnumpy())
    assert any(np.any(dump.array(after[name]["data_name"]) != before[name]) for name in before)


def test_a_number_that_takes_the_place_of_another_is_seen():
    _, optimizer, _ = trainer(lambda p: nn.Momentum(p, 0.1, 0.9))
    values = OptimizerValues(optimizer, may_run=True)
    optimizer.warmth = 0.5
    assert values.scalars(to_number)["warmth"] == 0.5
    del optimizer.warmth
    optimizer.coldness = 0.25
    found = values.scalars(to_number)
    assert found["coldness"] == 0.25
    assert "warmth" not in found


def test_groups_have_numbers_and_names_of_their_own(debug):
    def make(parameters):
        weight, bias = parameters
        return nn.Adam(
            [{"params": [weight], "lr": 0.1, "weight_decay": 0.5}, {"params": [bias]}], 0.01
        )

    net, _, train = trainer(make)
    ((entry,),) = record(debug, net, train)
    found = numbers(entry)
    assert [(group["learning_rate"], group["parameters"]) for group in found["groups"]] == [
        (pytest.approx(0.1), ["fc.weight"]),
        (pytest.approx(0.01), ["fc.bias"]),
    ]
    assert [group["weight_decay"] for group in found["groups"]] == pytest.approx([0.5, 0.0])
    assert found["parameters"] == NAMES
    assert "learning_rate" not in found


def test_groups_of_the_other_kind_of_optimizers(debug):
    def make(parameters):
        weight, bias = parameters
        return experimental.optim.AdamW(
            [{"params": [bias], "lr": 0.1}, {"params": [weight], "weight_decay": 0.0}], 0.01
        )

    net, _, train = trainer(make)
    ((entry,),) = record(debug, net, train)
    found = numbers(entry)
    assert [group["learning_rate"] for group in found["groups"]] == pytest.approx([0.1, 0.01])
    assert found["parameters"] == ["fc.bias", "fc.weight"]
    assert [record["shape"] for record in entry["input_args"][0]] == [[2], [2, 3]]


SCHEDULES = {
    "exponential": lambda: nn.ExponentialDecayLR(0.1, 0.9, 4),
    "exponential stairs": lambda: nn.ExponentialDecayLR(0.1, 0.9, 4, is_stair=True),
    "natural": lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4),
    "natural stairs": lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4, is_stair=True),
    "inverse": lambda: nn.InverseDecayLR(0.1, 0.9, 4),
    "inverse stairs": lambda: nn.InverseDecayLR(0.1, 0.9, 4, is_stair=True),
    "cosine": lambda: nn.CosineDecayLR(0.01, 0.1, 4),
    "polynomial": lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5),
    "polynomial that begins again": lambda: nn.PolynomialDecayLR(
        0.1, 0.01, 4, 2.0, update_decay_steps=True
    ),
    "warm up": lambda: nn.WarmUpLR(0.1, 4),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_gives_the_number_that_mindspore_computes(name):
    schedule = SCHEDULES[name]()
    for step in range(11):
        expected = float(schedule(Tensor([step], ms.int32)).asnumpy().reshape(-1)[0])
        assert Schedules(may_run=False).number(schedule, step) == pytest.approx(
            expected, rel=2e-6, abs=1e-9
        ), step


class Falling(nn.learning_rate_schedule.LearningRateSchedule):
    """A schedule of a user's own."""

    def construct(self, global_step):
        return 0.5 / (1 + global_step.astype(ms.float32))


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        (Falling(), [0.5, 0.25, 0.5 / 3]),
        (
            nn.CosineDecayLR(0.0, 0.1, 4),
            [0.05 * (1 + math.cos(math.pi * step / 4)) for step in range(3)],
        ),
    ],
)
@pytest.mark.parametrize("make", [nn.Adam, nn.AdamWeightDecay])
def test_the_learning_rate_is_that_of_the_step(debug, make, rate, expected):
    net, _, train = trainer(lambda p: make(p, rate))
    found = [numbers(entry) for (entry,) in record(debug, net, train, steps=3)]
    if isinstance(rate, Falling) and ms.get_context("device_target") != "CPU":
        # it would run on the device, and its number would be waited for
        assert [item["learning_rate"] for item in found] == [None] * 3
    else:
        assert [item["learning_rate"] for item in found] == pytest.approx(expected, rel=1e-6)
    assert [item["global_step"] for item in found] == [0, 1, 2]


def test_a_scheduler_that_moves_the_groups_is_seen(debug):
    net, optimizer, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))
    scheduler = lr_scheduler.StepLR(optimizer, 1, 0.5)

    def step():
        train()
        scheduler.step()

    found = [numbers(entry)["learning_rate"] for (entry,) in record(debug, net, step, steps=3)]
    assert found == pytest.approx([0.1, 0.05, 0.025])


class Sign(nn.Optimizer):
    """An optimizer of a user's own."""

    def __init__(self, parameters, rate, strength):
        super().__init__(rate, parameters)
        self.strength = strength
        self.ages = ms.ParameterTuple(
            [
                Parameter(Tensor(np.zeros(1, np.float32)), name=f"age.{p.name}")
                for p in self.parameters
            ]
        )

    def construct(self, gradients):
        rate = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        for parameter, gradient, age in zip(self.parameters, gradients, self.ages):
            ops.assign_sub(parameter, rate * self.strength * ops.sign(gradient))
            ops.assign_add(age, Tensor([1.0]))
        return True


def test_an_optimizer_of_the_users_own_is_read_by_its_attributes(debug):
    net, _, train = trainer(lambda p: Sign(p, [0.1, 0.2], 0.5))
    found = record(debug, net, train, steps=2, optimizer="states")
    assert [numbers(entry)["strength"] for (entry,) in found] == [0.5, 0.5]
    assert [numbers(entry)["learning_rate"] for (entry,) in found] == pytest.approx([0.1, 0.2])
    assert [numbers(entry)["global_step"] for (entry,) in found] == [0, 1]
    assert {name: record["Max"] for name, record in found[1][0]["parameters"].items()} == {
        "ages.fc.weight": 1.0,
        "ages.fc.bias": 1.0,
    }
    assert debug.dump().names("optimizer") == ["Cell.optimizer.Sign.forward.0"]


def test_two_optimizers_have_two_paths_in_the_order_of_their_first_updates(debug):
    net = Net()
    weight, bias = net.trainable_params()
    first, second = nn.Momentum([weight], 0.1, 0.9), nn.Momentum([bias], 0.2, 0.9)
    of = ms.value_and_grad(lambda: ops.mse_loss(net(X), Y), None, [weight, bias])

    def train():
        gradients = of()[1]
        second(gradients[1:])
        first(gradients[:1])
        second(gradients[1:])

    record(debug, net, train, steps=2)
    for step in range(2):
        data = debug.dump(step).data
        assert [name for name in data if "optimizer" in name] == [
            "Cell.optimizer.Momentum.forward.0",
            "Cell.optimizer1.Momentum.forward.0",
            "Cell.optimizer.Momentum.forward.1",
        ]
        assert numbers(data["Cell.optimizer1.Momentum.forward.0"])[
            "learning_rate"
        ] == pytest.approx(0.1)


def test_gradients_of_several_passes_enter_once(debug):
    net = Net()
    optimizer = experimental.optim.SGD(net.trainable_params(), 0.1)
    of = ms.value_and_grad(lambda x: ops.mse_loss(net(x), Y), None, list(optimizer.parameters))

    def train():
        first, second = of(X)[1], of(X + 1)[1]
        optimizer([a + b for a, b in zip(first, second)])

    ((entry,),) = record(debug, net, train)
    made = [
        debug.dump().data[name]["output"][0]
        for name in debug.dump().names("Tensor.__add__", "forward")
    ][-2:]
    assert entry["input_args"][0] == made


def test_one_step_cells_have_the_update_below_their_path(debug):
    net = Net()
    whole = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
    )
    whole.set_train()
    debug.record(lambda: whole(X, Y), whole, level="L0")
    assert debug.dump().names("Momentum") == ["Cell.optimizer.Momentum.forward.0"]
    entry = debug.dump().data["Cell.optimizer.Momentum.forward.0"]
    assert [name.rpartition("fc.")[2] for name in numbers(entry)["parameters"]] == [
        "weight",
        "bias",
    ]


def test_model_train_has_an_update_in_each_step(debug):
    net = Net()
    model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    data = ms.dataset.NumpySlicesDataset({"x": X.asnumpy(), "y": Y.asnumpy()}, shuffle=False).batch(
        2
    )
    debugger = debug(level="L0")
    model.train(1, data, callbacks=[MsprobeStep(debugger)], dataset_sink_mode=False)
    debugger.close()
    assert [len(debug.dump(step).names("Momentum")) for step in range(2)] == [1, 1]


def test_gradients_enter_after_a_scaler_has_unscaled_them(debug):
    scaler = amp.StaticLossScaler(8)
    net, _, train = trainer(
        lambda p: experimental.optim.SGD(p, 0.1), lambda gradients: scaler.unscale(gradients)
    )
    ((entry,),) = record(debug, net, train)
    entered = [item["Norm"] for item in entry["input_args"][0]]
    arrived = debug.dump().data["Cell.fc.Dense.parameters_grad.0"]
    assert [8 * norm for norm in entered] == pytest.approx(
        [arrived[name][0]["Norm"] for name in ("weight", "bias")]
    )


class Failing(experimental.optim.SGD):
    """An optimizer whose update fails."""

    def construct(self, gradients):
        raise ValueError("no update today")


def test_an_update_that_raises_says_so_and_the_training_has_the_exception(debug):
    net, _, train = trainer(lambda p: Failing(p, 0.1))
    debugger = debug(level="mix")
    debugger.start(net)
    with pytest.raises(ValueError, match="no update today"):
        train()
    debugger.stop()
    debugger.step()
    entry = debug.dump().data["Cell.optimizer.Failing.forward.0"]
    assert entry["raised"] == "ValueError: no update today"
    assert numbers(entry)["learning_rate"] == pytest.approx(0.1)


def test_an_error_of_ours_in_an_optimizer_reaches_only_the_log(debug, monkeypatch):
    net, _, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))

    def fail(*args):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(OptimizerValues, "scalars", fail)
    before = net.fc.bias.asnumpy().copy()
    ((entry,),) = record(debug, net, train)
    assert entry["error"] == "ZeroDivisionError: ours"
    assert len(entry["input_args"][0]) == 2
    assert np.any(net.fc.bias.asnumpy() != before)
    (log,) = debug.path.rglob("dump_error_info.log")
    log.unlink()


def test_an_optimizer_that_cannot_be_read_updates_all_the_same(debug, monkeypatch):
    net, _, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))

    def fail(*args, **kwargs):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(OptimizerValues, "__init__", fail)
    before = net.fc.bias.asnumpy().copy()
    assert record(debug, net, train) == [[]]
    assert np.any(net.fc.bias.asnumpy() != before)
    (log,) = debug.path.rglob("dump_error_info.log")
    log.unlink()


def test_a_scope_may_end_at_an_update(debug):
    net, _, train = trainer(lambda p: experimental.optim.SGD(p, 0.1))

    def twice():
        train()
        train()

    names = ["Cell.fc.Dense.forward.0", "Cell.optimizer.SGD.forward.0"]
    record(debug, net, twice, level="L0", scope=names)
    data = debug.dump().data
    assert "Cell.optimizer.SGD.forward.0" in data
    assert "Cell.fc.Dense.forward.1" not in data


@pytest.mark.parametrize(
    "make", [lambda p: nn.Adam(p, [0.1, 0.2]), lambda p: experimental.optim.AdamW(p, 0.1)]
)
def test_a_device_keeps_its_numbers_as_records(debug, make):
    net, _, train = trainer(make)
    ((entry,),) = record(debug, net, train, measure="device", optimizer="states")
    found = entry["input_kwargs"]
    rate = found["learning_rate"]
    assert rate.get("value", rate.get("Max")) == pytest.approx(0.1)
    assert [plain(name) for name in found["parameters"]] == NAMES
    assert all(item["Norm"] is not None for item in entry["input_args"][0])


class Counting(nn.learning_rate_schedule.LearningRateSchedule):
    """A schedule that counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = Parameter(Tensor(0.0, ms.float32), name="calls")

    def construct(self, global_step):
        ops.assign_add(self.calls, Tensor(1.0))
        return 0.5 / self.calls


def of_weight(rate):
    """Return what makes an optimizer whose first group has this rate."""
    return lambda p: nn.Momentum([{"params": p[:1], "lr": rate}, {"params": p[1:]}], 0.1, 0.9)


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "learning_rate of group 1 has no number"), ("zh", "第 1 组的 learning_rate 没有数值")],
)
def test_show_says_why_a_number_is_missing(debug, capsys, language, words):
    net, _, train = trainer(of_weight(Counting()))
    record(debug, net, train)
    path = str(debug.path)
    reason = "the schedule Counting "
    assert main(["show", "--lang", language, path, "--name", "optimizer"]) == 0
    found = capsys.readouterr().err
    assert words in found and reason in found
    assert main(["show", "--lang", language, path]) == 0
    found = capsys.readouterr().out
    assert words in found and reason in found
    assert main(["show", "--lang", language, path, "--name", "fc.Dense"]) == 0
    assert reason not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("language", "words"), [("en", "0.2 / no number"), ("zh", "0.2 / 没有数值")]
)
def test_check_says_why_a_number_is_missing(debug, tmp_path, capsys, language, words):
    paths = [str(tmp_path / name) for name in ("known", "unknown")]
    for path, rate in zip(paths, ([0.2, 0.3], Counting())):
        net, _, train = trainer(of_weight(rate))
        debugger = debug(level="mix", dump_path=path)
        debugger.start(net)
        train()
        debugger.stop()
        debugger.close()
    assert main(["check", "--lang", language, *paths]) == 1
    found = capsys.readouterr().out
    assert f"groups.0.learning_rate {words}" in found
    assert ".unread" not in found
