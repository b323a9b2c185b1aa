# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures a step that is compared with a golden run, in turn with a step that is recorded as it is.

    python benchmarks/golden.py --net gpt --level mix --rounds 20 [--md5]

The golden run is equal, or differs faintly in every entry: its weights differ in their last bits. One debugger records
all steps, each with the same numbers. It prints the shortest and the median step of each kind, and the ratios of the
times that they add to a bare step. ``--entries N`` records a net of about so many entries, and prints the memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import mindspore as ms
import trainings

from probe import PrecisionDebugger
from tests.programs.origins.models import add_noise

KINDS = ("bare", "plain", "equal", "faint")


def build(given):
    """Return (net, train): train() gives the loss and the gradients of one batch, and changes no weight."""
    if not given.entries:
        net, train = trainings.build(given.net)
        return net, lambda: train.gradient(0)
    import numpy as np

    net = trainings.Tiny(given.entries // 2)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    x = ms.Tensor(np.linspace(-1, 1, 16).astype(np.float32))
    return net, lambda: gradient(x)


class Steps:
    """The steps of one debugger, whose settings are edited between them."""

    def __init__(self, folder, net, train, given):
        self.folder, self.net, self.train, self.given = Path(folder), net, train, given
        self.weights = [
            (parameter, parameter.asnumpy().copy()) for parameter in net.get_parameters()
        ]
        self.config = self.folder / "config.json"
        self.select("none", "none")
        self.debugger = PrecisionDebugger(config_path=str(self.config))

    def select(self, name, golden):
        """Edit the settings. The debugger is one that watches, so that all kinds of steps take the same way."""
        own = {"summary_mode": "md5"} if self.given.md5 else {}
        settings = {
            "task": "statistics",
            "dump_path": f"{self.folder}/{name}",
            "level": self.given.level,
            "quiet": True,
            "overwrite": True,
            "snapshot": False,
            "statistics": own,
        }
        settings["golden"] = golden and {
            "path": f"{self.folder}/{golden}",
            "on_difference": "raise",
        }
        self.config.write_text(json.dumps(settings))

    def run(self, name, golden=None, records=True):
        """Return the wall time and the time of the thread of one step, in ms."""
        for parameter, value in self.weights:
            parameter.set_data(ms.Tensor(value))
        self.select(name, golden)
        self.debugger.set_init_step(0)
        start, own = time.perf_counter(), time.thread_time()
        if records:
            self.debugger.start(self.net)
        loss, gradients = self.train()
        for tensor in (loss, *gradients):
            tensor.asnumpy()
        if records:
            self.debugger.stop()
            self.debugger.step()
        return 1e3 * (time.perf_counter() - start), 1e3 * (time.thread_time() - own)


def measured(steps, rounds):
    """Return kind -> times, of steps in turn."""
    times = {kind: [] for kind in KINDS}
    for number in range(rounds + 2):
        for kind in KINDS:
            golden = kind if kind in ("equal", "faint") else None
            found = steps.run(
                f"{kind} {number}", golden, kind != "bare"
            )  # a folder of its own: nothing is removed
            if number > 1:
                times[kind].append(found)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", default="gpt", choices=("gpt", "tiny"))
    parser.add_argument("--level", default="mix")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--entries", type=int, default=0)
    parser.add_argument("--md5", action="store_true")
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    net, train = build(given)
    with tempfile.TemporaryDirectory() as folder:
        steps = Steps(folder, net, train, given)
        steps.run("equal")
        exact = [value for _, value in steps.weights]
        add_noise(net, 1e-7)
        steps.weights = [(parameter, parameter.asnumpy().copy()) for parameter, _ in steps.weights]
        steps.run("faint")
        steps.weights = [(parameter, value) for (parameter, _), value in zip(steps.weights, exact)]
        steps.run("of plain")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        steps.run("of equal", "equal")
        steps.run("of faint", "faint")
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        times = measured(steps, given.rounds)
        entries = len(json.loads((Path(folder) / "equal/step0/rank/dump.json").read_text())["data"])
        steps.debugger.close()
    result = {
        "net": given.net,
        "entries": entries,
        "rounds": given.rounds,
        "peak_grew_mb": (after - before) / 1024,
    }
    for place, clock in enumerate(("wall", "thread")):
        own = {kind: [pair[place] for pair in found] for kind, found in times.items()}
        result[clock] = {
            kind: [round(min(it), 1), round(statistics.median(it), 1)] for kind, it in own.items()
        }
        for kind in ("equal", "faint"):
            pairs = zip(own["bare"], own["plain"], own[kind])
            result[clock][f"added_{kind}"] = round(
                statistics.median((c - a) / (b - a) for a, b, c in pairs), 3
            )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
