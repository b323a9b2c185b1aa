# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How the cost grows: time and bytes with the number of entries, memory beside none, import and constructor.

python benchmarks/growth.py
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, ROOT]


def run(*arguments):
    """Run this file with other arguments in a process of its own and return what it prints as JSON."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def synchronous():
    """Return MindSpore, running synchronously on CPU."""
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    return ms


def entries(count):
    """Return what a step of so many calls costs: milliseconds added, bytes written, bytes of the documents."""
    ms = synchronous()
    import numpy as np

    from probe import PrecisionDebugger

    x = ms.Tensor(np.random.RandomState(0).randn(16).astype(np.float32))

    def calls():
        y = x
        for _ in range(count):
            y = y * 1.0001
        return y

    folder = tempfile.mkdtemp()
    debugger = PrecisionDebugger(dump_path=folder)

    def step(watched):
        before, start = written(), time.perf_counter()
        if watched:
            debugger.start()
        calls()
        if watched:
            debugger.step()
        return 1e3 * (time.perf_counter() - start), written() - before

    step(True)
    pairs = [(step(False), step(True)) for _ in range(5)]
    added = statistics.median(watched[0] - bare[0] for bare, watched in pairs)
    final = sum(path.stat().st_size for path in Path(folder, "step1").rglob("*") if path.is_file())
    return {"added_ms": added, "written": pairs[0][1][1], "documents": final}


def written():
    """Return how many bytes this process has passed to write() so far."""
    return int(re.search(r"wchar: (\d+)", Path("/proc/self/io").read_text())[1])


def peak(watched):
    """Return the highest resident memory of five gpt steps, in MB."""
    synchronous()
    import trainings

    from probe import PrecisionDebugger

    net, train = trainings.build("gpt")
    debugger = PrecisionDebugger(dump_path=tempfile.mkdtemp(), level="mix") if watched else None
    for i in range(8):
        if watched:
            debugger.start(net)
        train(i)
        if watched:
            debugger.step()
    high = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
    return {"peak_mb": high / 1024, "largest_mb": max(p.nbytes for p in net.get_parameters()) / 1e6}


def imported():
    """Return the milliseconds that `import probe` adds to `import mindspore`, by -X importtime."""
    command = [sys.executable, "-X", "importtime", "-c", "import mindspore, probe"]
    lines = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT
    ).stderr.splitlines()
    own = [re.match(r"import time:\s+(\d+) \|\s+(\d+) \| probe$", line) for line in lines]
    return max(int(found[2]) for found in own if found) / 1e3


def constructed():
    """Return the milliseconds that making a PrecisionDebugger takes."""
    synchronous()
    from probe import PrecisionDebugger

    start = time.perf_counter()
    PrecisionDebugger(dump_path=tempfile.mkdtemp(), level="mix")
    return {"ms": 1e3 * (time.perf_counter() - start)}


def main():
    """Print the report."""
    if len(sys.argv) > 1:
        what, *rest = sys.argv[1:]
        print(
            json.dumps(
                {"entries": entries, "peak": peak, "constructed": constructed}[what](
                    *map(int, rest)
                )
            )
        )
        return
    for count in (100, 1000, 10_000, 20_000):
        many = run("entries", str(count))
        each = f"{1e3 * many['added_ms'] / count:.1f} us and {many['written'] / count:.0f} bytes written for each"
        print(f"{count} calls: {many['added_ms']:.1f} ms more, {each}", flush=True)
    print(f"bytes written / size of the documents: {many['written'] / many['documents']:.2f}")
    bare, watched = run("peak", "0"), run("peak", "1")
    extra = watched["peak_mb"] - bare["peak_mb"]
    print(
        f"gpt mix: {extra:.1f} MB more at the peak; the largest tensor has {bare['largest_mb']:.1f} MB"
    )
    print(f"import probe: {imported():.1f} ms; constructor: {run('constructed')['ms']:.1f} ms")


if __name__ == "__main__":
    main()
