# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A long training under probe, bounded in time: memory, handles and threads stay what they were.

    python -m tests.programs.soak [--minutes 10]

Bare MindSpore grows too: exits with 1 where 1,000 watched steps grow by over 2 MB more than 1,000 bare ones.
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

import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")

from probe import PrecisionDebugger
from tests.support import nets


def resident():
    """Return the resident memory in MB."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def train(step, seconds, debugger=None, net=None):
    """Train for some time; return the MB that resident memory grew by in 1,000 steps of the second half."""
    end = time.monotonic() + seconds
    looked, looks, steps = 0.0, [], 0
    while time.monotonic() < end:
        if debugger is not None:
            debugger.start(net)
        step(steps)
        if debugger is not None:
            debugger.step()
            shutil.rmtree(os.path.join(debugger._session.settings.dump_path, f"step{steps}"))
        steps += 1
        if time.monotonic() - looked > min(30, seconds / 8):
            looked = time.monotonic()
            looks.append(
                (steps, resident(), len(os.listdir("/proc/self/fd")), threading.active_count())
            )
            print("step {}: {:.1f} MB, {} handles, {} threads".format(*looks[-1]), flush=True)
    first, last = looks[len(looks) // 2], looks[-1]
    return 1000 * (last[1] - first[1]) / (last[0] - first[0]), first[2:] == last[2:]


def main():
    """Train bare, train watched, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    folder = tempfile.mkdtemp()
    net, step = nets.build("digits")
    print("bare")
    bare, _ = train(step, 60 * given.minutes / 4)
    print("watched")
    watched, same = train(
        step, 60 * given.minutes * 3 / 4, PrecisionDebugger(dump_path=folder, level="mix"), net
    )
    shutil.rmtree(folder)
    print(
        f"MB in 1,000 steps: bare {bare:.1f}, watched {watched:.1f}; handles and threads the same: {same}"
    )
    return int(watched > bare + 2 or not same)


if __name__ == "__main__":
    sys.exit(main())
