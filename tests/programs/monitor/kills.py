# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Children that train under the monitor and are killed at random moments. Prints one JSON line about their files.

    python -m tests.programs.monitor.kills [--kills 50] [--seed 0]

A child tells through a pipe which steps have ended, and the parent kills it after some of them. The children are forked
from a process that has imported MindSpore and run no operation.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn

from probe import PrecisionDebugger
from probe.series.series import open_series

STEPS = 400


def child(folder, told):
    """Train under the monitor, and tell each step that has ended with its loss."""
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    config = Path(folder) / "config.json"
    config.write_text(json.dumps({"task": "monitor", "dump_path": folder, "monitor": {"interval": 3}}))
    debugger = PrecisionDebugger(config_path=str(config))
    x = ms.Tensor(np.ones((5, 3), np.float32))
    for step in range(STEPS):
        debugger.start(net)
        loss, gradients = gradient(x)
        optimizer(gradients)
        debugger.stop()
        if step % 50 == 7:
            debugger.log(f"late {step}", float(step))  # a new section
        debugger.step()
        os.write(told, np.float32(loss.asnumpy()).tobytes())


def kill_one(generator):
    """Fork, kill, read; return what came of it."""
    folder = tempfile.mkdtemp()
    reading, told = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with contextlib.suppress(BaseException):
            child(folder, told)
        os._exit(0)
    os.close(told)
    enough = 4 * (1 + int(generator.random() ** 2 * STEPS * 0.8))
    heard = os.read(reading, 4)
    while len(heard) < enough and (more := os.read(reading, 1 << 16)):
        heard += more
    for _ in range(generator.randrange(200_000)):
        pass  # a moment within the next step
    os.kill(pid, signal.SIGKILL)
    while more := os.read(reading, 1 << 16):
        heard += more
    os.close(reading)
    os.waitpid(pid, 0)
    losses = np.frombuffer(heard[: len(heard) // 4 * 4], "<f4")
    (series,) = open_series(folder)
    steps, found = series["loss"]
    whole = series.steps == list(range(len(series.steps)))
    same = bool(np.allclose(found[: len(losses)], losses, rtol=1e-6))
    shutil.rmtree(folder)
    return {
        "told": len(losses),
        "rows": len(series.steps),
        "whole": whole and len(steps) == len(series.steps),
        "same": same,
    }


def main():
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    generator = random.Random(given.seed)
    print(json.dumps([kill_one(generator) for _ in range(given.kills)]))


if __name__ == "__main__":
    main()
