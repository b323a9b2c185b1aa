# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""All optimizers of MindSpore, and kinds that users write, with groups and schedules: each number is the right one.

MindSpore itself says which number is right: a twin of the optimizer computes it outside of the training. A training has
the same bits with probe as without.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, experimental, jit, mint, nn, ops
from mindspore.nn.learning_rate_schedule import LearningRateSchedule

from probe.reading.dumps.updates import groups, unread
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow
STEPS = 3
DATA = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3) / 7)


class Net(nn.Cell):
    """Two layers: a body and a head, as trainings group them."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Dense(3, 4), nn.Dense(4, 2)
        for place, parameter in enumerate(self.trainable_params()):
            values = np.random.RandomState(place).randn(*parameter.shape)
            parameter.set_data(Tensor(values.astype(np.float32)))

    def construct(self, x):
        return self.head(ops.relu(self.body(x)))


# -- schedules of a user's own ---------


class Falling(LearningRateSchedule):
    """It only computes."""

    def __init__(self):
        super().__init__()
        self.warm, self.rate, self.cast = nn.WarmUpLR(0.01, 2), Tensor(0.05), ops.Cast()

    def construct(self, step):
        if step < 1:
            return self.warm(step) + 0.01
        return self.scaled(self.cast(step, ms.float32))

    def scaled(self, step):
        return ops.maximum(self.rate / (1 + step), 0.001)


class Counting(LearningRateSchedule):
    """It counts its calls: one call more would change the training."""

    def __init__(self):
        super().__init__()
        self.calls = Parameter(Tensor(0.0, ms.float32), name="calls")

    def construct(self, step):
        ops.assign_add(self.calls, Tensor(1.0))
        return 0.05 / self.calls


class Drawing(LearningRateSchedule):
    """It draws a random number: one call more would change the training."""

    def construct(self, step):
        return ops.rand(1).reshape(()) * 0.1


class Sloped(nn.Cell):
    """A weight decay."""

    def construct(self, step):
        return 0.01 * (1 + ops.cast(step, ms.float32))


RATES = {
    "number": lambda: 0.05,
    "list": lambda: [0.01, 0.02, 0.03],
    "tensor": lambda: Tensor([0.03, 0.02, 0.01], ms.float32),
    "iterator": lambda: iter([0.01, 0.03, 0.02]),
    "function": lambda: nn.cosine_decay_lr(0.001, 0.05, 4, 1, 3),
    "cosine": lambda: nn.CosineDecayLR(0.0, 0.1, 4),
    "exponential": lambda: nn.ExponentialDecayLR(0.1, 0.9, 2, is_stair=True),
    "natural": lambda: nn.NaturalExpDecayLR(0.1, 0.9, 4),
    "inverse": lambda: nn.InverseDecayLR(0.1, 0.9, 4),
    "polynomial": lambda: nn.PolynomialDecayLR(0.1, 0.01, 4, 0.5),
    "warm up": lambda: nn.WarmUpLR(0.1, 4),
    "own": Falling,
    "counting": Counting,
    "drawing": Drawing,
}
UNKNOWN = ("counting", "drawing")  # to run one of these once more would change the training


def plain(net, rate):
    return net.trainable_params(), rate


def of_body(net, rate):
    """The body has a rate of its own."""
    return [
        {"params": net.body.trainable_params(), "lr": rate},
        {"params": net.head.trainable_params()},
    ], 0.02


def of_head(net, rate):
    """The head has a number of its own, the body has the rate of all. The order of the parameters is another."""
    first, *rest = net.trainable_params()
    head = {"params": net.head.trainable_params(), "lr": 0.02, "weight_decay": 0.05}
    return [{"params": net.body.trainable_params()}, head, {"order_params": [*rest, first]}], rate


def decayed(net, rate):
    """The weight decay of the body is a Cell."""
    body = {"params": net.body.trainable_params(), "weight_decay": Sloped()}
    return [body, {"params": net.head.trainable_params(), "weight_decay": 0.03}], rate


FORMS = {"plain": plain, "of body": of_body, "of head": of_head, "decayed": decayed}


# -- optimizers of a user's own ---------


class Written(nn.Optimizer):
    """It runs in Python. It has a schedule of the momentum, and a method for the learning rate."""

    def __init__(self, params, learning_rate):
        super().__init__(learning_rate, params)
        self.momentum = nn.CosineDecayLR(0.1, 0.9, 4)
        self.moments = self.parameters.clone(prefix="moments", init="zeros")

    def construct(self, gradients):
        rates, momentum = self.get_lr(), self.momentum(self.global_step)
        gradients = self.decay_weight(gradients)
        for place, (parameter, moment, gradient) in enumerate(
            zip(self.parameters, self.moments, gradients)
        ):
            ops.assign(moment, momentum * moment + gradient)
            ops.assign_sub(
                parameter, (rates[place] if isinstance(rates, tuple) else rates) * moment
            )
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        return True


class Halved(Written):
    """The rate is half of that of its schedule."""

    def get_lr(self):
        rates = super().get_lr()
        return tuple(rate * 0.5 for rate in rates) if isinstance(rates, tuple) else rates * 0.5


class Layered(Written):
    """Each parameter has a rate of its own, which its method makes."""

    def get_lr(self):
        rates = super().get_lr()
        several = rates if isinstance(rates, tuple) else (rates,) * len(self.parameters)
        return tuple(rate / (1 + place) for place, rate in enumerate(several))


class Copied(nn.Optimizer):
    """It is compiled, and has a copy of MindSpore's method that counts the steps too, as those of mindcv have."""

    def __init__(self, params, learning_rate):
        super().__init__(learning_rate, params)

    def get_lr(self):
        lr = self.learning_rate
        if self.dynamic_lr:
            if self.is_group_lr:
                lr = ()
                for learning_rate in self.learning_rate:
                    current_dynamic_lr = learning_rate(self.global_step).reshape(())
                    lr += (current_dynamic_lr,)
            else:
                lr = self.learning_rate(self.global_step).reshape(())
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        return lr

    @jit
    def construct(self, gradients):
        lr = self.get_lr()
        for i in range(self.param_length):
            rate = lr[i] if self.is_group_lr else lr
            ops.assign_sub(self.parameters[i], rate * gradients[i])
        return True


class Noised(nn.Momentum):
    """Its construct adds to the gradients and calls MindSpore's, as the private optimizers of mindarmour do."""

    def construct(self, gradients):
        return super().construct(tuple(gradient + 0.01 for gradient in gradients))


NN = {
    "Adadelta": lambda p, rate: nn.Adadelta(p, rate),
    "Adagrad": lambda p, rate: nn.Adagrad(p, learning_rate=rate),
    "Adam": lambda p, rate: nn.Adam(p, rate),
    "AdaMax": lambda p, rate: nn.AdaMax(p, rate),
    "AdamWeightDecay": lambda p, rate: nn.AdamWeightDecay(p, rate),
    "ASGD": lambda p, rate: nn.ASGD(p, rate),
    "FTRL": lambda p, rate: nn.FTRL(p, learning_rate=rate),
    "Lamb": lambda p, rate: nn.Lamb(p, rate),
    "LazyAdam": lambda p, rate: nn.LazyAdam(p, rate),
    "Momentum": lambda p, rate: nn.Momentum(p, rate, 0.9),
    "ProximalAdagrad": lambda p, rate: nn.ProximalAdagrad(p, learning_rate=rate),
    "RMSProp": lambda p, rate: nn.RMSProp(p, rate),
    "Rprop": lambda p, rate: nn.Rprop(p, rate),
    "SGD": lambda p, rate: nn.SGD(p, rate),
    "Written": Written,
    "Halved": Halved,
    "Layered": Layered,
    "Copied": Copied,
    "Noised": lambda p, rate: Noised(p, rate, 0.9),
}
IN_PYTHON = ("Adadelta", "Written", "Halved", "Layered")  # their methods are seen while they run
#: MindSpore's, whose kernels a CPU lacks, or that need more than parameters and a rate
NOT_HERE = ("AdaFactor", "AdamOffload", "AdaSumByDeltaWeightWrapCell", "AdaSumByGradWrapCell", "LARS", "OptTFTWrapper",
            "thor", "Optimizer")  # fmt: skip

OWN = ("Written", "Halved", "Layered", "Copied", "Noised")
QUICK = [
    *((kind, "of body", "list") for kind in ("Momentum", "SGD", "Lamb", *OWN)),
    ("Momentum", "decayed", "cosine"),
    ("Momentum", "of head", "counting"),
    ("SGD", "plain", "drawing"),
    ("Momentum", "of head", "own"),
    ("Written", "decayed", "list"),
    ("Written", "of body", "drawing"),
]
#: each kind with one more form, each with the next rate; and two kinds with all rates
CASES = [
    *QUICK,
    *((kind, "of body", "list") for kind in NN),
    *(
        (kind, ("of head", "decayed")[place % 2], list(RATES)[place % len(RATES)])
        for place, kind in enumerate(NN)
    ),
    *(("SGD", "of body", rate) for rate in RATES),
    *(("Written", "decayed", rate) for rate in RATES),
]


# -- the test ---------


def train(make, debugger=None):
    """Train; return the bits of all losses and parameters, or the class of the error that ended it."""
    ms.set_seed(5)
    net = Net()
    found = []
    try:
        optimizer = make(net)
        gradient = ms.value_and_grad(
            lambda: ops.square(net(DATA)).mean(), None, list(optimizer.parameters)
        )
        for _ in range(STEPS):
            if debugger:
                debugger.start(net)
            loss, gradients = gradient()
            optimizer(gradients)
            if debugger:
                debugger.stop()
                debugger.step()
            found.append(loss.asnumpy().tobytes())
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        return type(error)
    return found + [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]


def recorded(debug, make, **settings):
    """Train with probe; return the bits, and the entries of the updates."""
    debugger = debug(**{"level": "L1", "overwrite": True, **settings})
    bits = train(make, debugger)
    debugger.close()
    if isinstance(bits, type):
        return bits, []
    data = [debug.dump(step).data for step in range(STEPS)]
    return bits, [
        entry
        for of_step in data
        for name, entry in of_step.items()
        if name.startswith("Cell.optimizer")
    ]


def shown(entry, number):
    """Return a number of an update for each parameter."""
    return {name: numbers.get(number) for numbers, names in groups(entry) for name in names}


def told(make, step):
    """Return the learning rate and weight decay of each parameter, as MindSpore computes them."""
    ms.set_seed(5)
    optimizer = make(Net())
    optimizer.global_step.set_data(Tensor([step], ms.int32))
    names = [parameter.name for parameter in optimizer.parameters]
    found = {}
    for number, value in (
        ("weight_decay", optimizer.get_weight_decay()),
        ("learning_rate", optimizer.get_lr()),
    ):
        each = value if isinstance(value, (tuple, list)) else [value] * len(names)
        found[number] = {
            name: float(item.asnumpy().reshape(-1)[0]) for name, item in zip(names, each)
        }
    return found


def warnings_of_ours(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "probe" and record.levelname != "INFO"
    ]


@pytest.mark.parametrize(("kind", "form", "rate"), thorough_but(QUICK, list(dict.fromkeys(CASES))))
def test_each_number_is_that_of_the_update_and_the_training_has_its_bits(
    debug, caplog, kind, form, rate
):
    def make(net):
        return NN[kind](*FORMS[form](net, RATES[rate]()))

    bare = train(make)
    bits, entries = recorded(debug, make)
    assert bits == bare
    assert not list(debug.path.rglob("dump_error_info.log"))
    if isinstance(bare, type):
        return  # MindSpore refuses this way
    on_device = ms.get_context("device_target") != "CPU"
    assert not warnings_of_ours(caplog)
    assert len(entries) == STEPS
    for step, entry in enumerate(entries):
        expected = told(make, step)
        decays = {
            name: number
            for name, number in shown(entry, "weight_decay").items()
            if number is not None
        }
        assert decays == pytest.approx(
            {name: expected["weight_decay"][name] for name in decays}, rel=1e-6
        )
        rates = shown(entry, "learning_rate")
        assert list(rates) == [str(name) for name in expected["learning_rate"]] or form != "plain"
        reasons = {item.number: item.reason for item in unread(entry)}
        if form == "decayed" and on_device and kind not in IN_PYTHON:
            assert "Sloped is not MindSpore's" in reasons.pop("weight_decay")
        else:
            assert len(decays) == len(rates)
        is_unknown = rate in UNKNOWN or (rate == "own" and on_device)
        if is_unknown and kind not in IN_PYTHON:
            why = "would run on the device" if on_device else "may do more than compute"
            assert why in reasons.pop("learning_rate")
            known = {name: number for name, number in rates.items() if number is not None}
            assert known == {name: pytest.approx(expected["learning_rate"][name]) for name in known}
        elif not is_unknown or rate == "own":
            assert rates == pytest.approx(expected["learning_rate"], rel=2e-6, abs=1e-9)
        else:
            assert None not in rates.values()
        assert not reasons


def test_the_table_has_every_optimizer_of_mindspore():
    assert {*nn.optim.__all__} == {*NN, *NOT_HERE} - {*OWN}


#: the other kind of optimizers, which hold their groups as dictionaries
OTHERS = {
    **{
        f"experimental.{name}": getattr(experimental.optim, name)
        for name in experimental.optim.__all__
    },
    **{f"mint.{name}": getattr(mint.optim, name) for name in ("SGD", "Adam")},
}
del OTHERS["experimental.Optimizer"]


@pytest.mark.parametrize(
    "kind", thorough_but(["experimental.AdamW", "experimental.SGD", "mint.SGD"], list(OTHERS))
)
def test_groups_of_dictionaries_have_their_numbers(debug, caplog, kind):
    def make(net):
        body = {"params": net.body.trainable_params(), "lr": 0.03}
        return OTHERS[kind]([body, {"params": net.head.trainable_params()}], 0.02)

    bare = train(make)
    bits, entries = recorded(debug, make)
    assert bits == bare
    assert isinstance(bare, type) or not warnings_of_ours(caplog)
    for entry in entries:
        rates = {
            name: pytest.approx(0.03 if name.startswith("body") else 0.02)
            for name in shown(entry, "weight_decay")
        }
        assert shown(entry, "learning_rate") == rates
        assert not list(unread(entry))
    assert len(entries) == (0 if isinstance(bare, type) else STEPS)
