# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures what the guard of saved tensors adds to a step with statistics, in turn with steps without it.

    python benchmarks/guard.py --net gpt --level mix --rounds 30

One debugger records all steps. Its settings are changed between them, and an empty step takes them over. It prints the
shortest and the median step of each kind, their ratios, and the median of the ratios of neighbours.
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

import mindspore as ms
import trainings

from probe import PrecisionDebugger


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", default="gpt")
    parser.add_argument("--level", default="mix")
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    net, train = trainings.build(given.net)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"

        def select(guarded):
            settings = {
                "task": "statistics",
                "dump_path": f"{folder}/dump",
                "level": given.level,
                "quiet": True,
            }
            config.write_text(json.dumps({**settings, "saved_tensors": guarded}))

        def step(guarded, number):
            select(guarded)
            debugger.start(net)  # takes the settings over
            debugger.stop()
            debugger.step()
            start, own = time.perf_counter(), time.thread_time()
            debugger.start(net)
            loss, gradients = train(number)
            for tensor in (loss, *gradients):
                tensor.asnumpy()
            debugger.stop()
            debugger.step()
            return 1e3 * (time.perf_counter() - start), 1e3 * (time.thread_time() - own)

        select(False)
        debugger = PrecisionDebugger(config_path=str(config))
        for number in range(6):
            step(bool(number % 2), number)
        pairs = [(step(False, number), step(True, number)) for number in range(given.rounds)]
        debugger.close()
    result = {"net": given.net, "level": given.level, "rounds": given.rounds}
    for place, clock in enumerate(("wall", "thread")):
        bare, guarded = ([pair[kind][place] for pair in pairs] for kind in (0, 1))
        result[clock] = {
            "without_ms": [min(bare), statistics.median(bare)],
            "with_ms": [min(guarded), statistics.median(guarded)],
            "ratio_of_shortest": min(guarded) / min(bare),
            "ratio_of_medians": statistics.median(guarded) / statistics.median(bare),
            "median_of_ratios": statistics.median(two / one for one, two in zip(bare, guarded)),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
