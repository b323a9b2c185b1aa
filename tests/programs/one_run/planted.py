# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records the faults and the healthy trainings, and looks at each of them alone.

    python -m tests.programs.one_run.planted [--level mix] [--only stop_gradient,gpt] [--keep DIR]

Exit status 1 if a fault is not named in the first two lines, a healthy training has a fault, or more than three
suspicious lines are said about healthy trainings in all. Nets of mindcv need the package on the path.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import mindspore as ms
import numpy as np

import probe
from tests.programs.one_run.faults import FAULTS
from tests.programs.one_run.healthy import TRAININGS

SUSPICIOUS_LINES = 3


def record(train, folder, level="mix", limit=300):
    """Record a training in a child of this process, which has imported MindSpore; raise RuntimeError if it fails."""
    folder = Path(folder)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(limit)
            log = os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
            ms.set_device("CPU")
            ms.set_seed(1)
            np.random.seed(1)
            settings = {"task": "statistics", "level": level, "dump_path": str(folder)}
            Path(f"{folder}.json").write_text(json.dumps(settings))
            train(probe.PrecisionDebugger(config_path=f"{folder}.json"))
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError(Path(f"{folder}.log").read_text()[-1000:])


def is_named(fault, findings):
    """Return whether one of the first two findings has the fault's rule and place."""
    return any(
        item.rule == fault.rule and re.search(fault.names, str(item.whole)) for item in findings[:2]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--level", default="mix")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="")
    given = parser.parse_args()
    only = set(filter(None, given.only.split(",")))
    folder = Path(given.keep or tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return look(folder, given.level, only)
    finally:
        if not given.keep:
            shutil.rmtree(folder)


def look(folder, level, only):
    named, count, weights = 0, 0, {"fault": 0, "suspicious": 0, "note": 0}
    for name, fault in FAULTS.items():
        path = folder / name.replace(" ", "_")
        if only and path.name not in only:
            continue
        record(fault.train, path, level)
        found = probe.check(path).findings
        well = is_named(fault, found)
        named, count = named + well, count + 1
        print(
            f"{'named    ' if well else 'NOT NAMED'} {name}",
            *[f"    {item.whole}" for item in found[:3]],
            sep="\n",
        )
    trainings = 0
    for name, train in TRAININGS.items():
        if (only and name not in only) or (
            name.startswith("mindcv") and not importlib.util.find_spec("mindcv")
        ):
            continue
        record(train, folder / name, level)
        trainings += 1
        for item in probe.check(folder / name).findings:
            weights[item.weight] += 1
            if item.weight != "note":
                print(f"healthy {name}: {item.whole}")
    print(f"{named} of {count} faults named in the first two lines")
    print(
        f"{trainings} healthy trainings: "
        + ", ".join(f"{number} {weight}" for weight, number in weights.items())
    )
    return int(named < count or bool(weights["fault"]) or weights["suspicious"] > SUSPICIOUS_LINES)


if __name__ == "__main__":
    sys.exit(main())
