# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""What a dump costs a training step: every row measured in turn with a tool that does nothing, medians.

    python benchmarks/bench.py [--peer PYTHON_WITH_MSPROBE] [--repeat 3] [--rows gpt:L1:statistics,…]

A row counts where ``null`` is within 1 ± 0.05: elsewhere the machine was too busy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = (
    "gpt:L0:statistics,gpt:L1:statistics,gpt:mix:statistics,gpt:mix:structure,gpt:L1:statistics:md5,gpt:mix:tensor,"
    "lenet:L0:statistics,lenet:L1:statistics,lenet:mix:statistics,tiny:L1:statistics,"
    "gpt:L0:statistics:asynchronous,gpt:L1:statistics:asynchronous,gpt:mix:statistics:asynchronous"
)


def measure(python, tool, row, *more):
    """Return what row.py prints for a row, or None where the tool fails there."""
    net, level, task, *options = row.split(":")
    command = [
        python,
        os.path.join(HERE, "row.py"),
        "--tool",
        tool,
        "--net",
        net,
        "--level",
        level,
        "--task",
        task,
    ]
    done = subprocess.run(
        [*command, *(f"--{option}" for option in options), *more],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def middle(runs, key):
    """Return the median of a ratio to bare, or nan."""
    ratios = [run[key] / run["bare_ms"] for run in runs if run]
    return statistics.median(ratios) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python that has msprobe, for a column of its own")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--rows", default=ROWS)
    given = parser.parse_args()
    sides = {
        "null": sys.executable,
        "probe": sys.executable,
        **({"msprobe": given.peer} if given.peer else {}),
    }
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}; step with a dump over bare step")
    columns = " ".join(f"{side:>8}" for side in sides)
    print(f"{'row':34} {'bare ms':>8} {columns} {'stopped':>8} {'entries':>8} {'floor ms':>9}")
    for row in given.rows.split(","):
        runs = {side: [] for side in sides}
        for _ in range(given.repeat):
            for side, python in sides.items():
                runs[side].append(measure(python, side, row))
        extra = measure(sys.executable, "probe", row, "--parts", "--floor") or {}
        ours = [run for run in runs["probe"] if run]
        bare = statistics.median(run["bare_ms"] for run in ours) if ours else float("nan")
        ratios = " ".join(f"{middle(runs[side], 'dump_ms'):8.2f}" for side in sides)
        entries, floor = ours[0]["entries"] if ours else 0, extra.get("floor_ms", 0.0)
        print(
            f"{row:34} {bare:8.1f} {ratios} {middle(ours, 'stopped_ms'):8.2f} {entries:8} {floor:9.1f}",
            flush=True,
        )
        parts = sorted(extra.get("parts_ms", {}).items(), key=lambda item: -item[1])
        print(" " * 4 + ", ".join(f"{part} {value:.1f} ms" for part, value in parts), flush=True)


if __name__ == "__main__":
    main()
