# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains a net with or without a debugger of level L2, and prints one JSON line about it.

    python -m tests.programs.kernels '{"net": "lenet", "settings": {"level": "L2", "dump_path": "/d"}}'

A program of its own, because MindSpore reads its dump configuration once in a process. Keys: ``net`` (lenet, gpt),
``loop`` (own, model, jit), ``level`` (O0, O1), ``steps``, ``first`` (set_init_step), ``init`` (MsprobeInitStep, with
this global step), ``settings`` (none: bare), ``early`` (work before the first start: "graph", "communication"),
``trouble`` (see ``trouble``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.dataset import GeneratorDataset

from tests.support import nets

given = {"net": "lenet", "loop": "own", "level": "O0", "steps": 3, **json.loads(sys.argv[1])}
ms.set_context(mode=ms.PYNATIVE_MODE if given["loop"] == "jit" else ms.GRAPH_MODE)
ms.set_context(jit_config={"jit_level": given["level"]})
settings = given.get("settings")
CHILD = "import os; print(os.environ.get('MINDSPORE_DUMP_CONFIG'))"


class DiskWatch(threading.Thread):
    """Looks how many bytes of arrays are below a folder, as often as it can."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.most, self.ended = Path(folder), 0, threading.Event()

    def run(self):
        while not self.ended.is_set():
            size = 0
            for root, _, files in os.walk(self.folder):
                for name in files:
                    with contextlib.suppress(OSError):  # it was deleted meanwhile
                        size += (
                            os.path.getsize(os.path.join(root, name))
                            if name.endswith(".npy")
                            else 0
                        )
            self.most = max(self.most, size)


def data():
    """Return batches of the net's data."""
    rng = np.random.RandomState(0)
    if given["net"] == "gpt":
        return [
            (
                rng.randint(0, 64, (4, 16)).astype(np.int32),
                rng.randint(0, 64, (64,)).astype(np.int32),
            )
            for _ in range(given["steps"])
        ]
    return [
        (rng.randn(8, 1, 32, 32).astype(np.float32), rng.randint(0, 10, (8,)).astype(np.int32))
        for _ in range(given["steps"])
    ]


def build():
    """Return (net, loss, optimizer)."""
    ms.set_seed(1)
    np.random.seed(1)
    net = nets.Gpt() if given["net"] == "gpt" else nets.LeNet()
    kind = nn.Adam if given["net"] == "gpt" else nn.Momentum
    optimizer = kind(net.trainable_params(), 1e-2, *([] if given["net"] == "gpt" else [0.9]))
    return net.set_train(), nn.CrossEntropyLoss(), optimizer


def digest(seen, *tensors):
    seen.append(
        hashlib.sha256(b"".join(tensor.asnumpy().tobytes() for tensor in tensors)).hexdigest()
    )


def own_loop(debugger, seen):
    """Train in a loop of one's own."""
    net, loss, optimizer = build()

    def forward(x, y):
        return loss(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    for x, y in data():
        if debugger is not None:
            debugger.start(net)
        value, gradients = gradient(Tensor(x), Tensor(y))
        optimizer(gradients)
        trouble(len(seen))
        if debugger is not None:
            debugger.stop()
            debugger.step()
        digest(seen, value, *gradients, *net.get_parameters())


def trouble(step):
    """Do in step 1 what ``trouble`` says: die, remove the dump, or put a folder where a table belongs."""
    kind = given.get("trouble") if step == 1 else None
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "remove":
        shutil.rmtree(
            settings["dump_path"], ignore_errors=True
        )  # probe deletes arrays at the same time
    elif kind == "table":
        (Path(settings["dump_path"]) / "rank_0" / "Net" / "0" / "2" / "statistic.csv").mkdir(
            parents=True
        )


def model_train(debugger, seen):
    """Train with Model.train."""
    from probe import MsprobeInitStep, MsprobeStep

    net, loss, optimizer = build()
    if given.get("init"):
        optimizer.global_step = Parameter(Tensor([given["init"]], ms.int32), name="global_step")

    class Digest(ms.Callback):
        def on_train_step_end(self, run_context):
            digest(seen, run_context.original_args().net_outputs, *net.get_parameters())

    callbacks = [Digest()]
    if debugger is not None:
        callbacks += [MsprobeInitStep()] if given.get("init") else []
        callbacks += [MsprobeStep(debugger)]
    batches = GeneratorDataset(data(), ["x", "y"], shuffle=False)
    ms.Model(net, loss, optimizer).train(1, batches, callbacks=callbacks, dataset_sink_mode=False)


def jit_parts(debugger, seen):
    """Train in PyNative mode with one compiled function."""
    net, loss, optimizer = build()

    @ms.jit
    def double(x):
        return ops.relu(x) * 2

    def forward(x, y):
        return loss(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    for x, y in data():
        if debugger is not None:
            debugger.start(net)
        value, gradients = gradient(Tensor(x), Tensor(y))
        doubled = double(Tensor(x))
        optimizer(gradients)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        digest(seen, value, doubled, *gradients, *net.get_parameters())


def early():
    """Do the work after which it is too late."""
    if given["early"] == "communication":
        from mindspore.communication import GlobalComm

        GlobalComm.INITED = True
        return
    print(nets.LeNet()(Tensor(data()[0][0])).shape)


def main():
    seen, debugger, watch, found = [], None, None, {}
    if given.get("early"):
        early()
    if settings is not None:
        from probe import PrecisionDebugger

        folder = Path(settings["dump_path"])
        folder.parent.mkdir(parents=True, exist_ok=True)
        config = folder.with_name(folder.name + ".json")
        config.write_text(json.dumps(settings))
        debugger = PrecisionDebugger(str(config))
        if given.get("first"):
            debugger.set_init_step(given["first"])
        watch = DiskWatch(folder)
        watch.start()
    {"own": own_loop, "model": model_train, "jit": jit_parts}[given["loop"]](debugger, seen)
    if watch is not None:
        watch.ended.set()
        watch.join()
        found["most"] = watch.most
        child = subprocess.run(
            [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True
        )
        found["child"] = child.stdout.strip()
        found["patched"] = "MINDSPORE_DUMP_CONFIG" in os.environ
    print(json.dumps({"seen": seen, **found}))


if __name__ == "__main__":
    main()
