# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures the reading side on made dumps of 20,000 entries: time beside json.load, memory, many ranks.

    python benchmarks/reading.py [--ranks 64] [--peer PYTHON] [--show]

Every number comes from a process of its own. Times are the processor's, so that other work on the machine counts less.
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
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from made import make

_TIMES = 5

LOAD = """
import json, sys
for path in sys.argv[1:]:
    with open(path) as file:
        json.load(file)
"""
FIRST = """
import sys, probe
probe.open(sys.argv[1])[0]["Tensor.__add__.0.forward"].outputs["0"].max
"""
EMPTY = "import json, sys"
IMPORT = "import probe, probe.reading.dumps.run, probe.reading.dumps.dump, probe.reading.dumps.entry_view, json"
COMPARE = """
import sys, probe
probe.compare(sys.argv[1], sys.argv[2], rows={"csv": sys.argv[3]})
"""


def measured(command, environment=None):
    """Return (processor time of it and its children, wall time, greatest resident size of one process in MB)."""
    code = (
        "import json, os, resource, subprocess, sys, time\n"
        "begin = time.perf_counter()\n"
        "process = subprocess.Popen(json.loads(sys.argv[1]), stdout=subprocess.DEVNULL)\n"
        "_, _, used = os.wait4(process.pid, 0)\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss / 1024]))\n"
    )
    path = os.pathsep.join([os.path.dirname(HERE), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(command)],
        capture_output=True,
        text=True,
        check=True,
        env=variables,
    )
    return json.loads(done.stdout)


def alternate(*commands):
    """Return the median of the processor times, and the greatest memory, of commands that are run in turn."""
    found = [[] for _ in commands]
    for _ in range(_TIMES):
        for results, command in zip(found, commands):
            results.append(measured(command))
    return [
        (statistics.median(item[0] for item in results), max(item[2] for item in results))
        for results in found
    ]


def python(code, *arguments):
    return [sys.executable, "-c", code, *map(str, arguments)]


def one_pair(folder, peer):
    a, b = (
        make(folder / name / "step0" / "rank0", noise=noise)
        for name, noise in (("a", 0.0), ("b", 1e-3))
    )
    halfway(a, folder / "late" / "step0" / "rank0")
    documents = [str(path / "dump.json") for path in (a, b)]
    empty, imported, load_one, first = alternate(
        python(EMPTY), python(IMPORT), python(LOAD, documents[0]), python(FIRST, folder / "a")
    )
    ratio = (first[0] - imported[0]) / (load_one[0] - empty[0])
    print(
        f"open and first number: {ratio:.2f} times json.load of one file, after import", flush=True
    )
    out = folder / "out.csv"
    load, all_off, half, command = alternate(
        python(LOAD, *documents),
        python(COMPARE, folder / "a", folder / "b", out),
        python(COMPARE, folder / "a", folder / "late", out),
        [
            sys.executable,
            "-m",
            "probe",
            "compare",
            str(folder / "a"),
            str(folder / "b"),
            "--csv",
            str(out),
        ],
    )
    base = load[0] - empty[0]
    print(f"json.load of both: {base:.2f} s of the processor", flush=True)
    for name, (used, memory), less in (
        ("compare with csv, every tensor differs", all_off, imported[0]),
        ("compare with csv, differs from the middle on", half, imported[0]),
        ("probe compare as a command, start included", command, 0.0),
    ):
        print(
            f"{name}: {(used - less) / base:.2f} times json.load of both, {memory:.0f} MB",
            flush=True,
        )
    if peer:
        scratch = folder / "peer"
        scratch.mkdir()
        tool = str(Path(peer).parent / "msprobe")
        files = [str(path / "dump.json") for path in (b, a)]
        command = [tool, "compare", "-tp", files[0], "-gp", files[1], "-o", str(scratch)]
        used, _, memory = measured(command, {"PYTHONPATH": ""})
        if not list(scratch.rglob("compare_result*")):
            raise SystemExit("msprobe wrote no table: its figure would be that of a failure")
        print(
            f"msprobe compare: {used / base:.1f} times json.load of both, {memory:.0f} MB",
            flush=True,
        )


def halfway(golden, folder):
    """Write a dump whose numbers differ from those of another from the middle on; return it."""
    shutil.copytree(golden, folder)
    document = json.loads((golden / "dump.json").read_text())
    other = json.loads(
        (golden.parent.parent.parent / "b" / "step0" / "rank0" / "dump.json").read_text()
    )
    names = list(document["data"])
    document["data"].update({name: other["data"][name] for name in names[len(names) // 2 :]})
    (folder / "dump.json").write_text(json.dumps(document, indent=1))
    return folder


def many_ranks(folder, counts):
    """Compare ranks that are links to two dumps; print time per rank and the memory of a worker."""
    pair = [make(folder / name, noise=noise) for name, noise in (("one", 0.0), ("two", 1e-3))]
    code = (
        "import json, resource, sys, time, probe\n"
        "if __name__ == '__main__':\n"
        "    begin = time.perf_counter()\n"
        "    units = len(probe.compare(sys.argv[1], sys.argv[2], jobs=int(sys.argv[3])).units)\n"
        "    used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "    wall = time.perf_counter() - begin\n"
        "    print(json.dumps([units, wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))\n"
    )
    (folder / "job.py").write_text(code)
    for count in counts:
        for side, source in zip(("a", "b"), pair):
            for rank in range(count):
                target = folder / f"{side}{count}" / "step0" / f"rank{rank}"
                target.mkdir(parents=True)
                for name in os.listdir(source):
                    os.link(source / name, target / name)
        path = os.pathsep.join([os.path.dirname(HERE), os.environ.get("PYTHONPATH", "")])
        command = [
            sys.executable,
            str(folder / "job.py"),
            str(folder / f"a{count}"),
            str(folder / f"b{count}"),
            "2",
        ]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        units, wall, used, memory = json.loads(done.stdout)
        print(
            f"{units} ranks, 2 processes: {wall / units:.2f} s a rank, {used / units:.2f} s of the processor a rank, "
            f"{memory:.0f} MB a worker",
            flush=True,
        )


def many_steps(folder, count=60):
    """Show a run of many steps; print the memory."""
    source = make(folder / "one")
    for step in range(count):
        target = folder / "run" / f"step{step}" / "rank0"
        target.mkdir(parents=True)
        for name in os.listdir(source):
            os.link(source / name, target / name)
    _, wall, memory = measured([sys.executable, "-m", "probe", "show", str(folder / "run")])
    print(f"probe show of {count} steps: {wall:.0f} s, {memory:.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[4, 64])
    parser.add_argument("--peer", default="")
    parser.add_argument("--only", choices=("pair", "ranks", "show"), default="")
    given = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.only in ("", "pair"):
            one_pair(folder / "pair", given.peer)
        if given.only in ("", "ranks"):
            many_ranks(folder / "ranks", given.ranks)
        if given.only in ("", "show"):
            many_steps(folder / "show")
    print(f"{time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
