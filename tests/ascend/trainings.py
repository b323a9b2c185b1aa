# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains small nets on one device, bare and recorded in many ways, and writes dumps and results below a folder.

    python -m tests.ascend.trainings CPU|Ascend FOLDER [--all] [--nets mlp,gpt]

``FOLDER/{net}/{way}/step0/…`` are the dumps, ``FOLDER/{net}/results.json`` has for every way the digests of all losses,
gradients and parameters of two steps, and the losses.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from tests.support import nets
from tests.support.training import bytes_of, steps_of

#: name -> settings. The first few are recorded by ``make ascend``, the product of all by ``make ascend-all``.
WAYS = {
    "mix-device": {"level": "mix", "measure": "device"},
    "mix-host": {"level": "mix", "measure": "host"},
}
MORE_WAYS = {
    f"{level}-{task}-{measure}": {"level": level, "measure": measure, **settings}
    for level in ("L0", "L1", "mix")
    for measure in ("host", "device")
    for task, settings in {
        "statistics": {},
        "high": {"precision": "high"},
        "tensor": {"task": "tensor"},
        "md5": {"summary_mode": "md5"},
        "structure": {"task": "structure"},
        "nan_check": {"task": "nan_check"},
    }.items()
    if not (task == "high" and measure == "host")
}
STEPS = 2


class Mlp(nn.Cell):
    def __init__(self, recomputes=False):
        super().__init__()
        self.hidden, self.out = nn.Dense(12, 32), nn.Dense(32, 5)
        self.norm = nn.LayerNorm((32,))
        if recomputes:
            self.hidden.recompute()

    def construct(self, x):
        return self.out(ops.gelu(self.norm(self.hidden(x))))


class BrainMlp(Mlp):
    """Computes partly in bfloat16, for which CPU has no product of matrices."""

    def construct(self, x):
        hidden = self.hidden(x).astype(ms.bfloat16) * 1.5
        return self.out((hidden * hidden).astype(ms.float32))


def _data():
    rng = np.random.RandomState(2)
    return [
        (
            Tensor(rng.randn(16, 12).astype(np.float32)),
            Tensor(rng.randint(0, 5, 16).astype(np.int32)),
        )
        for _ in range(STEPS)
    ]


def mlp(optimizer=nn.Momentum, make=Mlp, amp="", parts=1, **options):
    """Return (net, step) of a training of the small net.

    Args:
        optimizer: class of the optimizer.
        make: class of the net.
        amp: level of mixed precision.
        parts: the gradients of so many parts of a batch are added.
        **options: those of the optimizer.
    """
    ms.set_seed(1)
    np.random.seed(1)
    net, data, loss = make(), _data(), nn.CrossEntropyLoss()
    if amp:
        net = ms.amp.auto_mixed_precision(net, amp)
    if optimizer is nn.Momentum:
        options = {"learning_rate": 0.1, "momentum": 0.9}
    net.set_train()
    update = optimizer(net.trainable_params(), **options)
    gradient = ms.value_and_grad(
        lambda x, y: loss(net(x).astype(ms.float32), y), None, update.parameters
    )

    def step(i):
        x, y = data[i % STEPS]
        size = len(x) // parts
        value, grads = gradient(x[:size], y[:size])
        for part in range(1, parts):
            more = gradient(x[part * size : (part + 1) * size], y[part * size : (part + 1) * size])[
                1
            ]
            grads = tuple(ops.add(one, other) for one, other in zip(grads, more))
        update(grads)
        return value, grads

    return net, step


def adamw():
    from mindspore import mint

    return mlp(mint.optim.AdamW, lr=0.01, weight_decay=0.1)


TRAININGS = {
    "mlp": mlp,
    "lenet": lambda: nets.build("lenet"),
    "digits": lambda: nets.build("digits"),
    "gpt": lambda: nets.build("gpt"),
    "adam_weight_decay": lambda: mlp(nn.AdamWeightDecay, learning_rate=0.01, weight_decay=0.1),
    "adamw": adamw,
    "amp": lambda: mlp(amp="O2"),
    "bf16": lambda: mlp(make=BrainMlp),
    "accumulation": lambda: mlp(nn.Adam, parts=4, learning_rate=0.01),
    "recompute": lambda: mlp(make=lambda: Mlp(recomputes=True)),
}


def train(name, debugger=None):
    """Return the digests of all results of two steps, and the losses."""
    digest, losses = hashlib.sha256(), []
    for loss, tensors in steps_of(TRAININGS[name](), STEPS, debugger):
        losses.append(float(loss.astype(ms.float32).asnumpy()))
        for content in bytes_of(tensors):
            digest.update(content)
    return digest.hexdigest(), losses


def train_by_model(folder, settings):
    """Return the same of a training by ``Model.train``, recorded by the callback where there are settings."""
    from probe import PrecisionDebugger
    from probe.callbacks import MsprobeStep

    ms.set_seed(1)
    net = Mlp()
    rows = [(x.asnumpy(), y.asnumpy()) for x, y in _data()]
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False)
    model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    callbacks = []
    if settings:
        callbacks = [MsprobeStep(PrecisionDebugger(write_settings(folder, settings)))]
    model.train(1, data, callbacks=callbacks, dataset_sink_mode=False)
    return hashlib.sha256(
        b"".join(p.asnumpy().tobytes() for p in net.get_parameters())
    ).hexdigest(), []


def write_settings(folder, settings):
    """Write a settings file; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = dict(settings)
    task = settings.get("task", "statistics")
    own = {key: settings.pop(key) for key in ("summary_mode",) if key in settings}
    path = folder / "config.json"
    path.write_text(
        json.dumps({**settings, "dump_path": str(folder), "overwrite": True, task: own})
    )
    return str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", choices=["CPU", "Ascend"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--nets", default="")
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device(given.device)
    from probe import PrecisionDebugger

    for name in given.nets.split(",") if given.nets else [*TRAININGS, "model"]:
        if name == "adamw" and given.device == "CPU":
            continue  # it has no kernel there
        ways = {**WAYS, **MORE_WAYS} if given.all else WAYS
        results = {}
        for way, settings in {"bare": None, **ways, "again": None}.items():
            folder = given.folder / name / way
            if name == "model":
                results[way] = train_by_model(folder, settings)
            else:
                debugger = PrecisionDebugger(write_settings(folder, settings)) if settings else None
                results[way] = train(name, debugger)
            if settings:
                PrecisionDebugger.close()
        (given.folder / name / "results.json").write_text(json.dumps(results))
        print(name, len({digest for digest, _ in results.values()}), results["bare"][1], flush=True)


if __name__ == "__main__":
    main()
