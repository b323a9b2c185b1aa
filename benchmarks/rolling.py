# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures rolling records: bare steps and steps that record a share of the calls, in turn; prints one JSON line.

    python benchmarks/rolling.py --net gpt --rolling 50
    python benchmarks/rolling.py --net lenet --budget 0.02

The ratio is that of the sums of both. ``--null`` does nothing: its ratio is the noise of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--net", default="gpt")
parser.add_argument("--level", default="mix")
parser.add_argument("--task", default="statistics")
parser.add_argument("--rolling", type=int)
parser.add_argument("--budget", type=float)
parser.add_argument(
    "--synchronize", action="store_true", help="each operation is waited for: less noise"
)
parser.add_argument("--null", action="store_true")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--warm", type=int, default=10)
args = parser.parse_args()

import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=args.synchronize)
ms.set_device("CPU")

import trainings

from probe import PrecisionDebugger


def main() -> None:
    """Measure and print."""
    net, train = trainings.build(args.net)
    count = 0

    def step(debugger: PrecisionDebugger | None) -> float:
        nonlocal count
        begin = time.perf_counter()
        if debugger is not None:
            debugger.start(net)
        loss, gradients = train(count)
        loss.asnumpy()
        for gradient in gradients:
            gradient.asnumpy()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        count += 1
        return time.perf_counter() - begin

    with tempfile.TemporaryDirectory() as folder:
        given = {"rolling": args.rolling, "budget": args.budget}
        own = {key: value for key, value in given.items() if value is not None}
        settings = {
            "task": args.task,
            "level": args.level,
            "dump_path": os.path.join(folder, "dump"),
            "quiet": True,
            args.task: own,
        }
        config = Path(folder, "config.json")
        config.write_text(json.dumps(settings))
        config.chmod(0o640)
        debugger = None if args.null else PrecisionDebugger(config_path=str(config))
        for _ in range(args.warm):
            step(debugger)
            step(None)
        pairs = [(step(debugger), step(None)) for _ in range(args.steps)]
        sums = [sum(times) for times in zip(*pairs)]
        middles = [statistics.median(times) for times in zip(*pairs)]
        files = [path.stat().st_size for path in Path(folder).rglob("calls.bin")]
    found = {
        "net": args.net,
        "null": args.null,
        **own,
        "ratio": sums[0] / sums[1],
        "ratio_of_medians": middles[0] / middles[1],
        "bare_ms": 1e3 * middles[1],
        "bytes_a_step": sum(files) / (args.steps + args.warm),
        "load": os.getloadavg()[0],
    }
    print(
        json.dumps(
            {
                key: round(value, 4) if type(value) is float else value
                for key, value in found.items()
            }
        )
    )


main()
