# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The cost of a report beside that of the comparison that it shows: 16 ranks, 5 steps, 1,000 entries each."""

from __future__ import annotations

import json
import os
import statistics
import sys

import pytest

from tests.reading.report.test_browser import made
from tests.support import processes
from tests.support.paths import ROOT, environment

RANKS, STEPS, ENTRIES, TIMES = 16, 5, 1000, 3


#: starts a command from a small process: memory counts from the fork on, and that of pytest may be large
MEASURE = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), time.perf_counter() - begin, used.ru_maxrss / 1024]))
"""


def run(*arguments):
    """Run probe; return (seconds, greatest memory of one of its processes in MB)."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "probe", *map(str, arguments)]
    done = processes.run(
        command,
        fresh="memory is counted",
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        cwd=ROOT,
        timeout=900,  # beside other work
    )
    status, seconds, memory = json.loads(done.stdout)
    assert status == 1, done.stderr
    return seconds, memory


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.proof
def test_a_report_costs_at_most_twice_the_comparison(tmp_path):
    sides = []
    for side, noise in (("a", 0.0), ("b", 1e-3)):
        source = made().make(tmp_path / f"one_{side}", entries=ENTRIES, noise=noise)
        sides.append(tmp_path / side)
        for step in range(STEPS):
            for rank in range(RANKS):
                target = sides[-1] / f"step{step}" / f"rank{rank}"
                target.mkdir(parents=True)
                for path in source.iterdir():
                    os.link(path, target / path.name)
    page = tmp_path / "report.html"
    times = [(run("compare", *sides), run("report", *sides, "-o", page)) for _ in range(TIMES)]
    ratio = statistics.median(report[0] / compare[0] for compare, report in times)
    memory = max(report[1] for _, report in times)
    print(
        f"report / compare: {ratio:.2f} in time, {memory:.0f} MB, page {page.stat().st_size / 1e6:.1f} MB"
    )
    assert ratio <= 2
    assert memory <= 300
