# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures one row in a process of its own and prints one JSON line: bare, dumped and stopped steps in turn.

    python benchmarks/row.py --tool probe|msprobe|null --net gpt --level mix --task statistics

``null`` does nothing at start, stop and step: its ratios are the noise of the machine. ``--parts`` says where probe's
own time goes, from a run of its own, as looking costs time too; ``--floor`` how long measuring the arrays alone takes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--tool", choices=["probe", "msprobe", "null"], default="probe")
parser.add_argument("--net", default="gpt")
parser.add_argument("--level", default="L1")
parser.add_argument("--task", default="statistics")
parser.add_argument("--md5", action="store_true")
parser.add_argument("--asynchronous", action="store_true")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--parts", action="store_true")
parser.add_argument("--floor", action="store_true")
args = parser.parse_args()

import mindspore as ms
import numpy as np

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
if not args.asynchronous:
    ms.set_context(pynative_synchronize=True)

import trainings


class Null:
    """A tool that does nothing."""

    def start(self, model):
        """Do nothing."""

    def stop(self):
        """Do nothing."""

    def step(self):
        """Do nothing."""


def make(folder):
    """Return a debugger that writes below a folder."""
    if args.tool == "null":
        return Null()
    if args.tool == "msprobe":  # mint.norm has no CPU kernel
        from mindspore import mint

        mint.norm = lambda x, *a, **k: np.linalg.norm(x.asnumpy().astype(np.float32))
    settings = {
        "task": args.task,
        "dump_path": os.path.join(folder, "dump"),
        "level": args.level,
        args.task: {"summary_mode": "md5" if args.md5 else "statistics"},
    }
    config = os.path.join(folder, "config.json")
    Path(config).write_text(json.dumps(settings))
    os.chmod(config, 0o640)
    module = importlib.import_module("probe" if args.tool == "probe" else "msprobe.mindspore")
    return module.PrecisionDebugger(config_path=config)


def watch_parts(spent):
    """Add the time spent in probe's parts to a dict; a part that contains another contains its time."""
    places = {
        "patch and hook": [
            ("probe.capture.pynative.pynative_capture", "PyNativeCapture", name)
            for name in ("install", "remove", "watch")
        ],
        "stack": [("probe.recording.call_stacks", "CallStacks", "number")],
        "describe": [
            ("probe.measure.describe", "ValueDescriber", "value"),
            ("probe.measure.host", "HostMeasurer", "tensor"),
        ],
        "statistics": [
            ("probe.measure.host", None, name) for name in ("statistics", "finite_statistics")
        ],
        "gradient": [
            ("probe.capture.autograd.gradient_hooks", "GradientHooks", name)
            for name in ("find_inputs", "attach")
        ],
        "write": [("probe.store.documents", "JsonDocuments", name) for name in ("entry", "write")],
    }
    depth = dict.fromkeys(places, 0)

    def timed(part, function):
        def run(*a, **k):
            depth[part] += 1
            start = time.perf_counter()
            try:
                return function(*a, **k)
            finally:
                depth[part] -= 1
                if not depth[part]:
                    spent[part] = spent.get(part, 0.0) + time.perf_counter() - start

        return run

    for part, wanted in places.items():
        for module, owner, name in wanted:
            holder = importlib.import_module(module)
            holder = getattr(holder, owner) if owner else holder
            setattr(holder, name, timed(part, getattr(holder, name)))


def floor(net, train, folder):
    """Return the milliseconds that measuring every recorded array once takes, without any hook."""
    from probe import PrecisionDebugger
    from probe.measure.statistics import statistics as measure

    debugger = PrecisionDebugger(
        task="tensor", level=args.level, dump_path=os.path.join(folder, "arrays")
    )
    debugger.start(net)
    train(0)
    debugger.step()
    arrays = [np.load(path) for path in Path(folder, "arrays").rglob("*.npy")]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for array in arrays:
            measure(array)
        times.append(1e3 * (time.perf_counter() - start))
    return {"floor_ms": min(times), "recorded_mb": sum(array.nbytes for array in arrays) / 1e6}


def main():
    net, train = trainings.build(args.net)
    folder = tempfile.mkdtemp()
    spent: dict[str, float] = {}
    if args.parts:
        watch_parts(spent)
    count = 0

    def step(debugger=None):
        nonlocal count
        start = time.perf_counter()
        if debugger is not None:
            debugger.start(net)
        loss, gradients = train(count)
        for tensor in (loss, *gradients):
            tensor.asnumpy()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        count += 1
        return 1e3 * (time.perf_counter() - start)

    result = {**vars(args)}
    if args.floor:
        result.update(floor(net, train, folder))
    for _ in range(3):
        step()
    before = [step() for _ in range(args.rounds)]
    debugger = make(folder)
    step(debugger)
    step()
    spent.clear()
    pairs = [(step(debugger), step()) for _ in range(args.rounds)]
    bare = statistics.median(before)
    result.update(
        bare_ms=bare,
        dump_ms=statistics.median(a for a, _ in pairs),
        stopped_ms=statistics.median(b for _, b in pairs),
        parts_ms={part: 1e3 * value / args.rounds for part, value in spent.items()},
        entries=sum(
            len(json.loads(p.read_text())["data"])
            for p in list(Path(folder).glob("dump/step1/*/dump.json"))
        ),
    )
    shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
