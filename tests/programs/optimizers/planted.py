# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Plants faults behind the backward of a training, and compares.

    python -m tests.programs.optimizers.planted [--kinds Adam,Momentum] [--level L0] [--states]

One process records all trainings. Exit status 1 if a fault is not named, or a harmless change is blamed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, experimental, mint, nn, ops

import probe

STEPS, LONG, SCALE, CLIP, RATE, DECAY = 2, 4, 128.0, 0.05, 1e-2, 1e-2
RATES = [1e-2, 8e-3, 6e-3, 4e-3, 2e-3, 1e-3]


class Net(nn.Cell):
    """Two layers."""

    def __init__(self):
        super().__init__()
        rng = np.random.RandomState(3)
        self.fc1, self.fc2 = nn.Dense(8, 16), nn.Dense(16, 4)
        for parameter in self.get_parameters():
            parameter.set_data(Tensor(rng.randn(*parameter.shape).astype(np.float32) * 0.5))

    def construct(self, x):
        return self.fc2(ops.tanh(self.fc1(x)))


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        variant: the training that is right: "plain", "long", "schedule", "decay groups" ….
        named: a regular expression for the kind and the sentence of the first origin.
        kinds: the kinds of optimizers that have it; () for all.
    """

    variant: str
    named: str
    kinds: tuple[str, ...] = ()


_ADAMS = ("Adam", "AdamWeightDecay", "AdamW", "mint.AdamW")
FAULTS = {
    "learning rate": Fault("plain", r"optimizer learning_rate 0\.01 / 0\.02 in step 0"),
    "schedule off by one": Fault("schedule", r"optimizer learning_rate 0\.01 / 0\.008 in step 0"),
    "weight decay": Fault("plain", r"optimizer weight_decay 0\.01 / 0\.1 in step 0"),
    "decay on a bias": Fault(
        "decay groups", r"optimizer weight_decay of fc1\.bias and 1 more of 4 parameters 0 / 0\.01"
    ),
    "beta2": Fault("plain", r"optimizer beta2 0\.999 / 0\.99 in step 0", _ADAMS),
    "eps": Fault("plain", r"optimizer eps 1e-08 / 0\.001 in step 0", _ADAMS),
    "momentum": Fault("plain", r"optimizer (momentum|beta1) 0\.9 / 0\.5 in step 0"),
    "clip norm": Fault("plain", r"argument \S*clip_by_global_norm\S*, .*0\.05 in A, 0\.1 in B"),
    "clip missing": Fault(
        "plain",
        r"optimizer the gradients that entered have Norm \S+ / \S+ in step 0, .*only A has \S*clip_by_global_norm",
    ),
    "averaged twice": Fault(
        "late average",
        r"optimizer the gradients that entered have Norm \S+ / \S+ in step 0, .*only B has \S*div",
    ),
    "unscale missing": Fault(
        "no clip",
        r"optimizer the gradients that entered have Norm \S+ / \S+ in step 0, .*only A has \S*mul",
    ),
    "parameter missing": Fault("plain", r"optimizer fc1\.bias is missing in the optimizer of B"),
    "states reset": Fault(
        "long",
        r"optimizer (all of step 2 agrees, and so do .* of step 3|(moment|exp_avg)\S+ .*step 2)",
    ),
    "optimizer made again": Fault("long", r"optimizer global_step [12] / (0|-1) in step 2"),
    "groups exchanged": Fault(
        "rate groups",
        r"optimizer learning_rate of fc1\.weight and 3 more of 4 parameters 0\.01 / 0\.001",
    ),
}
HARMLESS = {
    "parameters in another order": "plain",
    "schedule as a list": "computed schedule",
    "other kernel": "plain",
    "accumulated otherwise": "accumulated",
    "batch divided": "plain",
}
KINDS = ("Adam", "AdamWeightDecay", "Momentum", "AdamW")


class Rates(nn.learning_rate_schedule.LearningRateSchedule):
    """A schedule of the user's own: falls by a fifth of the first rate."""

    def construct(self, global_step):
        return Tensor(1e-2, ms.float32) - 2e-3 * ops.cast(global_step, ms.float32)


def make(kind, variant, change, parameters):
    """Return an optimizer, and the function that moves its schedule."""
    rate = 2 * RATE if change == "learning rate" else RATE
    decay = 10 * DECAY if change == "weight decay" else DECAY
    beta1 = 0.5 if change == "momentum" else 0.9
    beta2 = 0.99 if change == "beta2" else 0.999
    eps = 1e-3 if change == "eps" else 1e-8
    if variant in ("schedule", "computed schedule"):
        rate = RATES[1:] if change == "schedule off by one" else RATES
    is_new = kind in ("AdamW", "mint.AdamW")
    groups, word = list(parameters), "params"
    if change == "parameters in another order":
        groups.reverse()
    if change == "parameter missing":
        groups = [parameter for parameter in groups if parameter.name != "fc1.bias"]
    biases = [parameter for parameter in parameters if "bias" in parameter.name]
    weights = [parameter for parameter in parameters if "bias" not in parameter.name]
    if variant == "decay groups":
        of_bias = decay if change == "decay on a bias" else 0.0
        groups = [{word: weights, "weight_decay": decay}, {word: biases, "weight_decay": of_bias}]
    if variant == "rate groups":
        rates = [RATE, RATE / 10][:: -1 if change == "groups exchanged" else 1]
        groups = [
            {word: list(own), "lr": own_rate} for own, own_rate in zip((weights, biases), rates)
        ]
    if not is_new and variant == "computed schedule" and change != "schedule as a list":
        rate = Rates()
    if kind == "Momentum":
        return nn.Momentum(groups, rate, beta1, weight_decay=decay), None
    if kind == "Adam":
        own = {"use_locking": True} if change == "other kernel" else {}
        return nn.Adam(groups, rate, beta1, beta2, eps, weight_decay=decay, **own), None
    if kind == "AdamWeightDecay":
        return nn.AdamWeightDecay(groups, rate, beta1, beta2, eps, weight_decay=decay), None
    optim = mint.optim if kind == "mint.AdamW" else experimental.optim
    first = rate[0] if isinstance(rate, list) else rate
    made = optim.AdamW(groups, lr=first, betas=(beta1, beta2), eps=eps, weight_decay=decay)
    if not isinstance(rate, list):
        return made, None

    def move(step):
        for group in made.param_groups:
            value = (
                RATE - 2e-3 * (step + 1)
                if variant == "computed schedule" and not change
                else rate[step + 1]
            )
            group["lr"] = (
                value
                if kind == "mint.AdamW"
                else ops.assign(group["lr"], Tensor(value, ms.float32)) and group["lr"]
            )

    return made, move


def passes(of, batch, count):
    """Return the gradients of a batch that is divided into equal passes."""
    rows = [slice(start, start + 8 // count) for start in range(0, 8, 8 // count)]
    each = (
        [of(*(part[chosen] for part in batch))[1] for chosen in rows]
        if count > 1
        else [of(*batch)[1]]
    )
    return [sum(more) / count for more in zip(*each)] if count > 1 else each[0]


def train(kind, variant, change, debugger):
    """Train two layers under a debugger."""
    ms.set_seed(1)
    net = Net()
    optimizer, move = make(kind, variant, change, net.trainable_params())
    rng = np.random.RandomState(5)
    data = [
        (Tensor(rng.randn(8, 8).astype(np.float32)), Tensor(rng.randint(0, 4, 8).astype(np.int32)))
        for _ in range(2 * LONG)
    ]
    of = ms.value_and_grad(
        lambda x, y: ops.cross_entropy(net(x), y) * SCALE, None, list(optimizer.parameters)
    )
    for step in range(LONG if variant == "long" else STEPS):
        debugger.start(net)
        gradients = passes(of, data[step], 2 if change == "batch divided" else 1)
        if variant == "accumulated":
            _, more = of(*data[LONG + step])
            if change:
                gradients = [(a + b) / 2 for a, b in zip(gradients, more)]
            else:
                gradients = [a / 2 + b / 2 for a, b in zip(gradients, more)]
        if change != "unscale missing":
            gradients = [gradient * (1 / SCALE) for gradient in gradients]
        if variant != "no clip" and change != "clip missing":
            gradients = ops.clip_by_global_norm(
                gradients, 2 * CLIP if change == "clip norm" else CLIP
            )
        if variant == "late average":
            gradients = [gradient / 2 for gradient in gradients]
        if change == "averaged twice":
            gradients = [gradient / 2 for gradient in gradients]
        optimizer(tuple(gradients))
        debugger.stop()
        debugger.step()
        if move is not None:
            move(step)
        if step == 1 and change == "states reset":
            reset(optimizer)
        if step == 1 and change == "optimizer made again":
            optimizer, move = make(kind, variant, change, net.trainable_params())


def reset(optimizer):
    """Set all states to zero."""
    for name, held in vars(optimizer).items():
        for state in held if isinstance(held, (tuple, list)) and name != "lrs" else ():
            if isinstance(state, Parameter) and all(
                state is not own for own in optimizer.parameters
            ):
                ops.assign(state, ops.zeros_like(state))


class Bench:
    """Records trainings below a folder, each once.

    Args:
        folder: the folder.
        level: the level.
        states: whether states are recorded.
    """

    def __init__(self, folder, level="mix", states=False):
        self._folder, self._level, self._states = Path(folder), level, states
        self._known = {}

    def record(self, kind, variant, change=""):
        """Return the folder of a dump."""
        key = kind, variant, change
        if key not in self._known:
            path = self._known[key] = self._folder / "_".join(key).replace(" ", "-")
            own = {"optimizer": "states"} if self._states else {}
            config = Path(f"{path}.json")
            config.write_text(
                json.dumps(
                    {
                        "task": "statistics",
                        "level": self._level,
                        "dump_path": str(path),
                        "quiet": True,
                        **own,
                    }
                )
            )
            debugger = probe.PrecisionDebugger(config_path=str(config))
            train(kind, variant, change, debugger)
            debugger.close()
        return self._known[key]

    def compare(self, kind, variant, change):
        """Return the comparison of a change with what is right."""
        return probe.compare(
            str(self.record(kind, variant)), str(self.record(kind, variant, change))
        )


def said(comparison):
    """Return kind and sentence of the first origin; "nothing" where there is none."""
    first = comparison.first
    return "nothing" if first is None else f"{first.kind} {first.sentence}"


def is_named(fault, comparison):
    """Return whether the first origin names a fault."""
    return re.match(fault.named, said(comparison)) is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--level", default="mix")
    parser.add_argument("--states", action="store_true")
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device(given.device)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, given.level, given.states)
        for kind in given.kinds.split(","):
            for change, fault in FAULTS.items():
                if (fault.kinds and kind not in fault.kinds) or given.only not in change:
                    continue
                comparison = bench.compare(kind, fault.variant, change)
                wrong += not is_named(fault, comparison)
                print(
                    f"{kind} | {change} | {'yes' if is_named(fault, comparison) else 'NO'} | {said(comparison)}",
                    flush=True,
                )
            for change, variant in HARMLESS.items():
                if given.only not in change:
                    continue
                comparison = bench.compare(kind, variant, change)
                wrong += not comparison.agrees
                print(
                    f"{kind} | {change} | {'yes' if comparison.agrees else 'NO'} | {said(comparison)}",
                    flush=True,
                )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
