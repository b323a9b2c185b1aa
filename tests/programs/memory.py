# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains the digits for many steps and prints what grew between an early and the last step, as one JSON line.

python -m tests.programs.memory bare|probe [STEPS]
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
import threading

import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")

from tests.support import nets


def now():
    """Return resident memory in bytes, live objects, open files and threads."""
    for _ in range(3):
        gc.collect()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "objects": len(gc.get_objects()),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


def main():
    tool, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    net, train = nets.build("digits")
    folder = tempfile.mkdtemp()
    debugger = None
    if tool == "probe":
        from probe import PrecisionDebugger

        debugger = PrecisionDebugger(dump_path=os.path.join(folder, "dump"), level="mix")
    early = {}
    for step in range(steps):
        if debugger is not None:
            debugger.start(net)
        train(step)
        if debugger is not None:
            debugger.stop()
            debugger.step()
            shutil.rmtree(os.path.join(folder, "dump", f"step{step}"))
        if step == min(100, steps // 2):
            early = now()
    late = now()
    print(json.dumps({key: late[key] - early[key] for key in late}))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
