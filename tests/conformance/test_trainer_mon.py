# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The csv files of TrainerMon beside those of msprobe's, of the same training, number by number."""

from __future__ import annotations

import csv
import json
import math
import os
import sys

import pytest

from tests.conformance.test_msprobe import IMPORTS, MISSING, PYTHON
from tests.support import processes
from tests.support.paths import ROOT, environment, program

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

ALL = {"wg_distribution": True, "param_distribution": True, "xy_distribution": True}
OPS = ["min", "max", "mean", "norm", "zeros", "nans"]
CASES = {
    "everything": ({**ALL, "ops": OPS, "ndigits": 12, "step_count_per_record": 2}, 1),
    "a target": (
        {**ALL, "targets": {"layers.1": {}, "head": {}}, "ops": ["norm", "max"], "step_interval": 2, "ndigits": 12},
        1,
    ),
    "micro-batches": (
        {"wg_distribution": True, "monitor_mbs_grad": True, "xy_distribution": True, "ops": OPS, "ndigits": 12},
        2,
    ),
    "the last micro-batch": ({"wg_distribution": True, "ops": ["norm", "mean"], "collect_times": 2, "ndigits": 12}, 2),
    "forward only": ({"xy_distribution": True, "forward_only": True, "ops": ["max"]}, 1),
    "backward only": ({"xy_distribution": True, "backward_only": True, "ops": ["max"]}, 1),
}


def run(python, tool, config, accumulated, folder):
    """Return name of a csv file -> its rows."""
    folder.mkdir(mode=0o750)
    path = folder / "monitor.json"
    path.write_text(json.dumps(config))
    path.chmod(0o640)
    command = [*program("conformance.monitor_steps", python=python), "--tool", tool, "--config", str(path)]
    done = processes.run(
        [str(part) for part in (*command, "--accumulate", accumulated)],
        imports=IMPORTS if python == PYTHON else (),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(MONITOR_OUTPUT_DIR=str(folder / "out")),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    (own,) = [name for name in os.listdir(folder / "out") if "-rank0-" in name]
    found = {}
    for file in (folder / "out" / own).glob("*.csv"):
        with file.open(newline="") as opened:
            found[file.name] = list(csv.reader(opened))
    return found


def keyed(rows):
    """Return (stage, name, step, micro_step) -> the numbers."""
    count = 4 if "micro_step" in rows[0] else 3
    return {tuple(row[:count]): dict(zip(rows[0][count:], row[count:])) for row in rows[1:]}


def agrees(op, ours, theirs):
    if op in ("shape", "dtype"):
        return ours == theirs
    a, b = float(ours), float(theirs)
    return math.isclose(a, b, rel_tol=2e-6, abs_tol=2e-7) or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("name", list(CASES))
def test_the_csv_files_are_those_of_msprobe(name, tmp_path, capsys):
    config, accumulated = CASES[name]
    ours = run(sys.executable, "probe", config, accumulated, tmp_path / "ours")
    theirs = run(PYTHON, "msprobe", config, accumulated, tmp_path / "theirs")
    assert sorted(ours) == sorted(theirs)
    wrong, compared = [], 0
    for file, rows in theirs.items():
        assert ours[file][0] == rows[0], file
        mine, peer = keyed(ours[file]), keyed(rows)
        assert sorted(mine) == sorted(peer), file
        for key, numbers in peer.items():
            for op, number in numbers.items():
                compared += 1
                if not agrees(op, mine[key][op], number):
                    wrong.append((file, key, op, mine[key][op], number))
    with capsys.disabled():
        print(f"\n{name}: {len(theirs)} files, {compared} cells compared")
    assert not wrong, wrong[:5]
    assert compared > 10
