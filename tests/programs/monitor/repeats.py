# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plants faults in trainings whose alarms make the step again, and counts what is told. Prints one JSON line a case.

    python -m tests.programs.monitor.repeats [--device Ascend] [--only flip] [--every 3]

A flip multiplies one number by a power of two, once: as a flipped bit of its exponent does. A race does that in each
call anew. Each training also runs without probe; afterwards all bits, and all random numbers, must be equal. The exit
status is 1 where a case is told wrongly, or changes a bit. On Ascend it runs on the simulated CANN of tests/ascend.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.experimental import optim

from probe import PrecisionDebugger

STEPS, BAD = 27, 22
WIDTH = 12
#: MindSpore's seeds of operations; the package has a function of the module's name
SEEDS = importlib.import_module("mindspore.common.seed")._KERNEL_SEED
#: the key of an answer -> the word of a case
TOLD = {"repeats": "repeats", "last_bits": "repeats", "not_repeatable": "race"}
TOLD.update({"transient_first": "flip", "transient_repeat": "flip"})


class Backward(nn.Cell):
    """Passes values on, and multiplies the gradient by what ``factor`` gives."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def construct(self, x):
        return x * 1

    def bprop(self, x, out, dout):
        return (dout * self.factor("gradient"),)


class Net(nn.Cell):
    """A perceptron with a buffer, dropout, and random numbers of numpy and Python. Faults have three places."""

    def __init__(self, fault, on_device):
        super().__init__()
        self.first, self.second, self.last = (
            nn.Dense(8, WIDTH),
            nn.Dense(WIDTH, WIDTH),
            nn.Dense(WIDTH, 4),
        )
        self.norm, self.relu, self.backward = (
            nn.BatchNorm1d(WIDTH),
            nn.ReLU(),
            Backward(self.factor),
        )
        self.fault, self.on_device, self.scale, self.calls = fault, on_device, 1.0, 0

    def factor(self, place):
        return ms.Tensor(self.fault(place) if self.fault else np.ones(WIDTH, np.float32))

    def construct(self, x):
        self.calls += 1
        noise = ms.Tensor(
            np.random.normal(size=(1, WIDTH)).astype(np.float32) * 0.01 + random.random() * 0.01
        )
        x = self.first(x)
        x = (self.norm(x) + x * 0.1) * self.factor("activation") * self.scale
        x = self.backward(self.relu(x + noise))
        weight = self.second.weight * self.factor("weight")
        x = ops.relu(ops.matmul(x, weight.swapaxes(0, 1)) + self.second.bias)
        dropout = ms.mint.nn.functional.dropout if self.on_device else ops.dropout
        return self.last(dropout(x, p=0.05, training=True))


class Training:
    """One training. The parts that a case replaces are attributes."""

    def __init__(self, fault=None, optimizer=None, accumulate=1, device="CPU"):
        ms.set_seed(5)
        ms.manual_seed(5)
        random.seed(5)
        SEEDS.clear()  # set_seed() keeps the names of seeds
        self.data = np.random.default_rng(5)
        happens = fault() if fault else None
        self.net = Net(
            happens and (lambda place: happens(self, place)), device != "CPU"
        ).set_train()
        make = optimizer or (lambda parameters: nn.Momentum(parameters, 0.05, 0.9))
        self.optimizer = make(self.net.trainable_params())
        self.loss = nn.CrossEntropyLoss()
        self.grad = ms.value_and_grad(self.forward, None, self.optimizer.parameters)
        self.accumulate, self.step = accumulate, 0
        self.change = self.after = self.note = None

    def forward(self, x, y):
        return self.loss(self.net(x), y)

    def run(self, debugger=None):
        losses = []
        for self.step in range(STEPS):
            if debugger is not None:
                debugger.start(self.net)
            total = None
            for _ in range(self.accumulate):
                y = self.data.integers(0, 4, 32).astype(np.int32)
                x = (np.eye(4, 8)[y] * 3 + self.data.normal(size=(32, 8))).astype(np.float32)
                if self.change and self.step >= BAD:
                    x, y = self.change(self, x, y)
                loss, gradients = self.grad(ms.Tensor(x), ms.Tensor(y))
                total = (
                    gradients if total is None else tuple(a + b for a, b in zip(total, gradients))
                )
            self.optimizer(total)
            if debugger is not None:
                debugger.stop()
                if self.note:
                    debugger.log("note", self.note(self.step))
                debugger.step()
            if self.after and self.step >= BAD - 1:
                self.after(self)
            losses.append(loss.asnumpy().tobytes())
        return losses

    def state(self):
        """All that must be equal afterwards: tensors, counters, and the random numbers that come next."""
        tensors = [*self.net.get_parameters(), *self.optimizer.get_parameters()]
        values = [tensor.asnumpy().tobytes() for tensor in tensors]
        drawn = ms.mint.rand(3) if self.net.on_device else ops.rand(3)
        numbers = (
            ms.get_rng_state().asnumpy().tobytes(),
            sorted(SEEDS.items()),
            drawn.asnumpy().tobytes(),
        )
        return (
            values,
            numbers,
            np.random.random(),
            random.random(),
            self.data.random(),
            self.net.scale,
        )


def once(place, column, power):
    """Return what makes a fault that multiplies one number by a power of two in one call."""
    return lambda: _fault(place, column, lambda count: 2.0**power if count == 1 else 1.0)


def always(place, column, power):
    """Return what makes a fault that multiplies one number by another one in each call of a step."""
    return lambda: _fault(place, column, lambda count: count * 2.0**power)


def _fault(place, column, number):
    calls = []  # no number, which would be put back

    def fault(training, where):
        factor = np.ones(WIDTH, np.float32)
        if where == place and training.step == BAD:
            calls.append(1)
            factor[column] = number(len(calls))
        return factor

    return fault


def _with(**parts):
    def make(device):
        own = {
            name: value
            for name, value in parts.items()
            if name not in ("fault", "optimizer", "accumulate")
        }
        training = Training(**{k: v for k, v in parts.items() if k not in own}, device=device)
        for name, value in own.items():
            setattr(training, name, value)
        return training

    return make


def _scaled(factor):
    return lambda training, x, y: (x * np.float32(factor) if training.step == BAD else x, y)


def _nan(training, x, y):
    x[3, 2] = np.nan if training.step == BAD else x[3, 2]
    return x, y


def _set(training, scale):
    training.net.scale = scale


def _weights(training):
    if training.step == BAD - 1:
        training.net.last.weight.set_data(training.net.last.weight * 200)


def _flags(step):
    return 100.0 if step == BAD else 1.0 + step % 3 * 0.01


def _adam(parameters):
    return nn.Adam(parameters, 0.01)


def _adamw(parameters):
    return optim.AdamW(parameters, lr=0.01)


def _jumping(rate):
    return lambda parameters: nn.Momentum(parameters, [0.05] * BAD + [rate] * 30, 0.9)


#: name -> (what must be told, the training, further settings)
CASES = {
    **{
        f"flip {place} {column} {power}": ("flip", _with(fault=once(place, column, power)), more)
        for place, column, power, more in (
            ("activation", 1, 30, {}),
            ("activation", 5, 60, {}),
            ("activation", 3, 40, {"keep_steps": 1}),
            ("activation", 0, 90, {"times": 2}),
            ("gradient", 2, 30, {}),
            ("gradient", 7, 60, {}),
            ("gradient", 4, 40, {"keep_steps": 1}),
            ("weight", 3, 30, {}),
            ("weight", 8, 60, {}),
            ("weight", 6, 40, {"keep_steps": 2}),
        )
    },
    **{
        f"race {place} {column}": ("race", _with(fault=always(place, column, power)), more)
        for place, column, power, more in (
            ("activation", 1, 30, {}),
            ("activation", 6, 60, {"keep_steps": 1}),
            ("gradient", 2, 30, {}),
            ("gradient", 9, 60, {}),
            ("weight", 4, 40, {}),
        )
    },
    "large batch": ("repeats", _with(change=_scaled(1000)), {}),
    "large batch, kept": ("repeats", _with(change=_scaled(1000)), {"keep_steps": 1}),
    "large batch, Adam": ("repeats", _with(change=_scaled(1e6), optimizer=_adam), {}),
    "NaN in a batch": ("repeats", _with(change=_nan), {}),
    "NaN in a batch, four micro-batches": ("repeats", _with(change=_nan, accumulate=4), {}),
    "Inf in a batch": ("repeats", _with(change=_scaled(np.inf)), {}),
    "learning rate": ("repeats", _with(optimizer=_jumping(5.0)), {}),
    "learning rate of zero layers": (
        "repeats",
        _with(optimizer=_jumping(50.0)),
        {"alarm_level": "L0"},
    ),
    "scale of a layer": (
        "repeats",
        _with(after=lambda training: _set(training, 1e4)),
        {"alarm_level": "L1"},
    ),
    "weights multiplied": ("repeats", _with(after=_weights), {}),
    "healthy": ("repeats", _with(note=_flags), {}),
    "healthy, Adam": ("repeats", _with(note=_flags, optimizer=_adam), {}),
    "healthy, AdamW of experimental": (
        "repeats",
        _with(note=_flags, optimizer=_adamw),
        {"keep_steps": 1},
    ),
    "healthy, micro-batches": ("repeats", _with(note=_flags, accumulate=3), {}),
    "healthy, once": ("repeats", _with(note=_flags), {"times": 1}),
}


def run(name, device, folder):
    """Run a case with and without probe; return what came of it."""
    wanted, make, more = CASES[name]
    bare = make(device)
    losses, after = bare.run(), bare.state()
    config = Path(folder) / "config.json"
    monitor = {"on_alarm": "again", **more}
    config.write_text(
        json.dumps(
            {"task": "monitor", "dump_path": f"{folder}/dump", "quiet": True, "monitor": monitor}
        )
    )
    debugger, watched = PrecisionDebugger(config_path=str(config)), make(device)
    own = watched.run(debugger)
    debugger.close()
    alarms = Path(folder) / "dump/monitor/rank/alarms.jsonl"
    rows = [json.loads(line) for line in alarms.read_text().splitlines()] if alarms.exists() else []
    answers = [row for row in rows if row["rule"] == "again"]
    key = answers[0]["key"].partition(".")[2] if answers else ""
    errors = [path.read_text() for path in Path(folder).rglob("dump_error_info.log")]
    return {
        "case": name,
        "wanted": wanted,
        "told": TOLD.get(key, key),
        "answers": len(answers),
        "equal": own == losses and after == watched.state() and bare.net.calls == watched.net.calls,
        "said": answers[0]["sentence"].replace(str(folder), "") if answers else "",
        "errors": errors,
    }


def main():
    """Print a line for each case, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--every", type=int, default=1, help="each so many cases, beginning with the first"
    )
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=given.device == "CPU")
    ms.set_device(given.device)
    found = []
    for name in [name for name in CASES if given.only in name][:: given.every]:
        with tempfile.TemporaryDirectory() as folder:
            found.append(run(name, given.device, folder))
        print(json.dumps(found[-1]), flush=True)
    right = sum(case["told"] == case["wanted"] and not case["errors"] for case in found)
    equal = sum(case["equal"] for case in found)
    print(json.dumps({"cases": len(found), "told apart": right, "equal bits": equal}))
    return int(not found or min(right, equal) < len(found))


if __name__ == "__main__":
    sys.exit(main())
