# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Does what a rank pays grow with the number of ranks? Many simulated writers share one dump_path on this machine.

python benchmarks/ranks.py [--ranks 16 64 256] [--rounds 3]

A few processes take the part of one rank after the other: each records two steps of the digits (level mix, statistics)
into folders of its own in the same tree. Measured is what recording adds to a rank's step, beside the same training
bare in the same process in turn, the files and bytes that it leaves, and the operations on names (make, rename, remove,
list, open) that a shared file system has to serve.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, ROOT]

STEPS = 2
#: Python tells of these; stat is not among them
COUNTED = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir")


def writer(dump_path, ranks):
    """Take the part of these ranks one after the other; print what each has cost."""
    import mindspore as ms

    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    from probe import PrecisionDebugger
    from tests.support import nets

    net, train = nets.build("digits")
    for i in range(5):
        train(i)
    seen: dict[str, int] = {}
    counting = False

    def audit(event, arguments):
        if counting and event in COUNTED and str(arguments[0]).startswith(dump_path):
            seen[event] = seen.get(event, 0) + 1

    sys.addaudithook(audit)
    for rank in ranks:
        debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
        debugger.set_init_step(0)
        seen.clear()
        bare, watched = [], []
        for step in range(STEPS):
            begun = time.perf_counter()
            train(step)
            bare.append(time.perf_counter() - begun)
            counting, begun = True, time.perf_counter()
            debugger.start(net, rank_id=rank)
            train(step)
            debugger.stop()
            debugger.step()
            watched.append(time.perf_counter() - begun)
            counting = False
        files = [
            os.path.join(folder, name)
            for step in range(STEPS)
            for folder, _, names in os.walk(os.path.join(dump_path, f"step{step}", f"rank{rank}"))
            for name in names
        ]
        cost = {
            "added": (sum(watched) - sum(bare)) / STEPS * 1e3,
            "files": len(files) / STEPS,
            "bytes": sum(map(os.path.getsize, files)) / STEPS,
            "operations": sum(seen.values()) / STEPS,
            "kinds": {event: count / STEPS for event, count in sorted(seen.items())},
        }
        print(json.dumps(cost), flush=True)


def simulate(ranks, processes):
    """Return what each of so many ranks has paid, written by so many processes at a time."""
    dump_path = tempfile.mkdtemp()
    try:
        jobs = []
        for number in range(min(processes, ranks)):
            mine = ",".join(map(str, range(number, ranks, processes)))
            command = [sys.executable, __file__, "--writer", dump_path, mine]
            jobs.append(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, text=True, env={**os.environ, "GLOG_v": "3"}
                )
            )
        texts = [job.communicate()[0] for job in jobs]
        if any(job.returncode for job in jobs):
            raise SystemExit("a writer failed")
        return [
            json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")
        ]
    finally:
        shutil.rmtree(dump_path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often each number of ranks has its turn"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--writer", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.writer:
        writer(arguments.writer[0], [int(rank) for rank in arguments.writer[1].split(",")])
        return
    found: dict[int, list[dict]] = {ranks: [] for ranks in arguments.ranks}
    for round_ in range(arguments.rounds):
        for ranks in arguments.ranks:
            if sys.stderr.isatty():
                print(
                    f"\rround {round_ + 1} of {arguments.rounds}, {ranks} ranks ",
                    end="",
                    file=sys.stderr,
                )
            found[ranks] += simulate(ranks, arguments.processes)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print("ranks  ms added  files  kB on disk  operations   (medians of a rank and step)")
    medians = {}
    for ranks, costs in found.items():
        row = medians[ranks] = {
            key: statistics.median(cost[key] for cost in costs)
            for key in costs[0]
            if key != "kinds"
        }
        row["bytes"] /= 1000
        print(
            "{:5d}  {added:8.1f}  {files:5.1f}  {bytes:10.1f}  {operations:10.1f}".format(
                ranks, **row
            )
        )
    first, last = (medians[ranks] for ranks in (min(found), max(found)))
    growth = {key: last[key] / first[key] for key in first}
    print(
        f"from {min(found)} to {max(found)} ranks:",
        ", ".join(f"{key} x{ratio:.2f}" for key, ratio in growth.items()),
    )
    print("operations of the last:", json.dumps(found[max(found)][-1]["kinds"]))
    if max(growth.values()) > 1.2:
        raise SystemExit("a rank pays over 20 % more")


if __name__ == "__main__":
    main()
