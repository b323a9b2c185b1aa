# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A long training under probe, bounded in time: memory, handles and threads stay what they were.

    python tests/force/soak.py [--minutes 10]

Prints a line every half minute and exits with 1 if the second half grew by more than 8 MB.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.dirname(os.path.dirname(HERE))]

import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")

import nets

from probe import PrecisionDebugger


def resident():
    """Return the resident memory in MB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def main():
    """Train, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    folder = tempfile.mkdtemp()
    net, step = nets.build("digits")
    debugger = PrecisionDebugger(dump_path=folder, level="mix")
    end = time.monotonic() + 60 * given.minutes
    looked, looks, steps = 0.0, [], 0
    while time.monotonic() < end:
        debugger.start(net)
        step(steps)
        debugger.step()
        shutil.rmtree(os.path.join(folder, f"step{steps}"))
        steps += 1
        if time.monotonic() - looked > 30:
            looked = time.monotonic()
            looks.append((steps, resident(), len(os.listdir("/proc/self/fd")), threading.active_count()))
            print("step {}: {:.1f} MB, {} handles, {} threads".format(*looks[-1]), flush=True)
    shutil.rmtree(folder)
    half = looks[len(looks) // 2]
    grown = resident() - half[1]
    print(f"{steps} steps; the second half grew by {grown:.1f} MB")
    return int(grown > 8 or looks[-1][2:] != half[2:])


if __name__ == "__main__":
    sys.exit(main())
