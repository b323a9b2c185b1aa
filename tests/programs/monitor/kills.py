# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Children that train under the monitor and are killed at random moments. Prints one JSON line about their files.

    python -m tests.programs.monitor.kills [--kills 50] [--seed 0] [--in-repeat | --rolling]

A child tells through a pipe which steps have ended, and the parent kills it after some of them. The children are forked
from a process that has imported MindSpore and run no operation.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
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
from probe.reading.dumps.journal_reader import recover
from probe.reading.dumps.run import open as open_run
from probe.series.series import open_series

STEPS = 400


def child(folder, told, **own):
    """Train under the monitor, and tell each step that has ended with its loss."""
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    config = Path(folder) / "config.json"
    config.write_text(
        json.dumps({"task": "monitor", "dump_path": folder, "monitor": {"interval": 3, **own}})
    )
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


def kill_one(generator, **own):
    """Fork, kill, read; return what came of it. ``own`` are further settings of the monitor."""
    folder = tempfile.mkdtemp()
    reading, told = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with contextlib.suppress(BaseException):
            child(folder, told, **own)
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
    calls = [] if series.calls is None else [step for step, _ in series.calls.records()]
    shutil.rmtree(folder)
    return {
        "told": len(losses),
        "rows": len(series.steps),
        "whole": whole and len(steps) == len(series.steps),
        "same": same,
        "calls": calls,
    }


def repeating_child(folder, told):
    """Train until a bad batch, whose step is made again; tell each alarm before that begins."""
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), *(nn.Dense(4, 4) for _ in range(40)))
    optimizer = nn.SGD(net.trainable_params(), 0.001)
    gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
    config = Path(folder) / "config.json"
    config.write_text(
        json.dumps({"task": "monitor", "dump_path": folder, "monitor": {"on_alarm": "again"}})
    )
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.on_alarm(lambda alarm: os.write(told, b"!"))
    for step in range(8):
        debugger.start(net)
        _, gradients = gradient(ms.Tensor(np.full((5, 3), np.nan if step == 3 else 1, np.float32)))
        optimizer(gradients)
        debugger.stop()
        debugger.step()


def kill_in_repeat(generator):
    """Fork, kill after some bytes of the journal of a repeat, read; return what came of it."""
    folder = tempfile.mkdtemp()
    reading, told = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        with contextlib.suppress(BaseException):
            repeating_child(folder, told)
        os._exit(0)
    os.close(told)
    os.read(reading, 1)
    wanted = generator.randrange(60_000)
    written = 0
    while written < wanted and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        with contextlib.suppress(FileNotFoundError):  # the documents have taken its place
            written = sum(path.stat().st_size for path in Path(folder).rglob("dump.journal"))
    os.kill(pid, signal.SIGKILL)
    os.close(reading)
    os.waitpid(pid, 0)
    alarms = (Path(folder) / "monitor/rank/alarms.jsonl").read_text().splitlines()
    rules = [json.loads(line)["rule"] for line in alarms]
    (series,) = open_series(folder)
    recover(folder)
    dumps = list(Path(folder).rglob("dump.json"))
    entries = [len(open_run(str(dump)).dump()) for dump in dumps]
    left = list(Path(folder).rglob("dump.journal"))
    shutil.rmtree(folder)
    return {
        "alarm": "NaN/Inf" in rules,
        "answered": "again" in rules,
        "rows": len(series.steps) >= 4,
        "readable": not left,
        "entries": entries,
    }


def main():
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rolling", action="store_true", help="with rolling records")
    parser.add_argument("--in-repeat", action="store_true", help="kill while a step is made again")
    given = parser.parse_args()
    generator = random.Random(given.seed)
    kill = kill_in_repeat if given.in_repeat else kill_one
    if given.rolling:
        kill = functools.partial(kill_one, rolling=5)
    print(json.dumps([kill(generator) for _ in range(given.kills)]))


if __name__ == "__main__":
    main()
