# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Where the time of a recorded step goes: as it is, without measuring, and structure alone, in turn with the bare step.

    python benchmarks/floor.py NET LEVEL,… [ROUNDS]

Prints, for each level, the milliseconds that a step adds (medians, processor time of the training's thread).
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")

import trainings

from probe import PrecisionDebugger
from probe.measure.host import HostMeasurer

MEASURE = HostMeasurer.tensor


def record_nothing(self, *arguments, known=[]):  # noqa: B006
    """Return the record of the first tensor for every tensor."""
    if not known:
        known.append(MEASURE(self, *arguments))
    return known[0]


def bare(train):
    """Return the milliseconds of a step."""
    start = time.thread_time()
    train(1)[0].asnumpy()
    return 1e3 * (time.thread_time() - start)


def recorded(net, train, level, task, measure):
    """Return the milliseconds of the second recorded step."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    (folder / "config.json").write_text(
        json.dumps({"dump_path": str(folder / "dump"), "level": level, "task": task, "quiet": True})
    )
    HostMeasurer.tensor = measure
    debugger = PrecisionDebugger(config_path=str(folder / "config.json"))
    for _ in range(2):
        start = time.thread_time()
        debugger.start(net)
        train(1)[0].asnumpy()
        debugger.stop()
        debugger.step()
        spent = 1e3 * (time.thread_time() - start)
    HostMeasurer.tensor = MEASURE
    shutil.rmtree(folder)
    return spent


def main():
    logging.getLogger("probe").setLevel(logging.ERROR)
    name, levels, rounds = sys.argv[1], sys.argv[2].split(","), int((*sys.argv[3:], 9)[0])
    net, train = trainings.build(name)
    kinds = {"all": ("statistics", MEASURE), "without measuring": ("statistics", record_nothing)}
    kinds["structure"] = ("structure", MEASURE)
    spent = {}
    for _ in range(rounds):
        spent.setdefault("bare", []).append(bare(train))
        for level in levels:
            for kind, (task, measure) in kinds.items():
                spent.setdefault(f"{level} {kind}", []).append(
                    recorded(net, train, level, task, measure)
                )
    medians = {kind: statistics.median(times[2:]) for kind, times in spent.items()}
    least = medians.pop("bare")
    print(f"{name}: bare {least:.1f} ms")
    for kind, median in medians.items():
        print(f"  {kind:24} {median - least:6.1f} ms more")


if __name__ == "__main__":
    main()
