# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares runs of many ranks of 20,000 entries: in processes of this machine, and on a local Dask cluster.

    python benchmarks/cluster.py [--ranks 4 64] [--more 128 256] [--entries 20000]

Every rank is a link to one of two made dumps. The last of ``--ranks`` runs once more, and one of the two workers is
killed in the middle. The results must be equal. ``--more`` runs on the cluster only, to extrapolate to 1,024 ranks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from made import make

from tests.support.cluster import cluster
from tests.support.paths import environment

_AIM = 1024
_JOB = """
import json, re, resource, sys, time, probe
from pathlib import Path
if __name__ == "__main__":
    begin = time.perf_counter()
    comparison = probe.compare(sys.argv[1], sys.argv[2], jobs=2, scheduler=sys.argv[3], rows={"csv": sys.argv[4]})
    wall = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    own = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
    print(json.dumps([wall, used, own, comparison.to_dict()]))
"""


def link_ranks(folder, pair, count):
    """Make two runs of so many ranks; return their folders."""
    runs = [folder / f"{side}{count}" for side in "ab"]
    for run, source in zip(runs, pair):
        for rank in range(count):
            target = run / "step0" / f"rank{rank}"
            target.mkdir(parents=True)
            for name in os.listdir(source):
                os.link(source / name, target / name)
    return runs


def compared(folder, runs, scheduler=""):
    """Compare two runs in a process of its own; return seconds, memory of children and own, and the result."""
    job, table = folder / "job.py", folder / "table" / "rows.csv"
    job.write_text(_JOB)
    table.parent.mkdir(exist_ok=True)
    command = [sys.executable, str(job), *map(str, runs), scheduler, str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    wall, children, own, result = json.loads(done.stdout)
    for key in ("a", "b"):
        result.pop(key)
    with open(table, "rb") as file:
        return wall, children, own, result, hashlib.file_digest(file, "sha256").hexdigest()


def resident():
    """Return the greatest memory of a worker in MB; ``ru_maxrss`` would have that of the process which started it."""
    text = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", text)[1]) / 1024


def of_workers(address):
    """Return the greatest memory of the workers in MB."""
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(1)
        return max(client.run(resident).values())


def kill_in_the_middle(folder, process, begun):
    """Kill a worker as soon as the rows of ten ranks are there."""
    while not len(list(folder.glob("table/.probe-*/csv.*"))) >= 10:
        if begun.wait(0.02):
            return
    process.send_signal(signal.SIGKILL)


def show(label, count, wall, memory, parent):
    """Print a line; return the seconds for a rank."""
    print(
        f"{label}: {count} ranks in {wall:.1f} s, {wall / count:.3f} s a rank, {memory:.0f} MB a worker, "
        f"{parent:.0f} MB here",
        flush=True,
    )
    return wall / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[4, 64])
    parser.add_argument("--more", type=int, nargs="*", default=[128, 256])
    parser.add_argument("--entries", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pair = [
            make(folder / key, given.entries, noise=noise)
            for key, noise in (("one", 0.0), ("two", 1e-3))
        ]
        seconds = {}
        for count in given.ranks:
            runs = link_ranks(folder, pair, count)
            wall, memory, parent, expected, rows = compared(folder, runs)
            show("2 processes", count, wall, memory, parent)
            with cluster(folder) as (address, _):
                idle = of_workers(address)
                wall, _, parent, result, there = compared(folder, runs, address)
                memory = of_workers(address)
                print(f"a worker that has done nothing: {idle:.0f} MB")
                seconds[count] = show("cluster of 2 workers", count, wall, memory, parent)
            if (result, there) != (expected, rows):
                raise SystemExit("the cluster found something else")
        with cluster(folder, nanny=False) as (address, workers):
            over = threading.Event()
            killer = threading.Thread(target=kill_in_the_middle, args=(folder, workers[0], over))
            killer.start()
            wall, _, parent, result, there = compared(folder, runs, address)
            over.set()
            killer.join()
            if workers[0].poll() != -signal.SIGKILL:
                raise SystemExit("no worker was killed")
            print(
                f"one of two workers killed in the middle: {count} ranks in {wall:.1f} s",
                flush=True,
            )
        if (result, there) != (expected, rows):
            raise SystemExit("the cluster without a worker found something else")
        with cluster(folder) as (address, _):
            for count in given.more:
                runs = link_ranks(folder, pair, count)
                wall, _, parent, _, _ = compared(folder, runs, address)
                seconds[count] = show(
                    "cluster of 2 workers", count, wall, of_workers(address), parent
                )
        counts = [count for count in seconds if count >= 64] or list(seconds)
        slope = (seconds[counts[-1]] * counts[-1] - seconds[counts[0]] * counts[0]) / (
            (counts[-1] - counts[0]) or 1
        )
        aim = seconds[counts[-1]] * counts[-1] + slope * (_AIM - counts[-1])
        print(f"{_AIM} ranks, extrapolated from {counts}: {aim:.0f} s with 2 workers")


if __name__ == "__main__":
    begun = time.perf_counter()
    main()
    print(f"{time.perf_counter() - begun:.0f} s in all")
