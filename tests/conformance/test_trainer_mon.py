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
GRADIENTS, PARAMETERS, CELLS = ({key: True} for key in ALL)
FEATURES = {
    "attention_hook": ["0:layers.0.core", "0:layers.1.core"],
    "linear_hook": ["0:layers.0.fc", "0:layers.1.qkv"],
    "moe_router_weight_hook": ["0:layers.0.router", "0:layers.1.router"],
    "moe_router_logit_hook": ["0:layers.0.router", "0:layers.1.router"],
}


def features(*hooks, **more):
    return {
        "recording_l2_features": True,
        "l2_targets": {hook: FEATURES[hook] for hook in hooks or FEATURES},
        **more,
    }


#: name -> settings, backwards of a step; those of l2_targets are cases of the net "decoder"
CASES = {
    "everything": ({**ALL, "ops": OPS, "step_count_per_record": 2}, 1),
    "a target": (
        {
            **ALL,
            "targets": {"layers.1": {}, "head": {}},
            "ops": ["norm", "max"],
            "step_interval": 2,
        },
        1,
    ),
    "micro-batches": ({**GRADIENTS, **CELLS, "monitor_mbs_grad": True, "ops": OPS}, 2),
    "four micro-batches": ({**GRADIENTS, "monitor_mbs_grad": True, "ops": ["max", "min"]}, 4),
    "the last micro-batch": ({**GRADIENTS, "ops": ["norm", "mean"], "collect_times": 2}, 2),
    "forward only": ({**CELLS, "forward_only": True, "ops": ["max"]}, 1),
    "backward only": ({**CELLS, "backward_only": True, "ops": ["max"]}, 1),
    "gradients": ({**GRADIENTS, "ops": ["mean", "max"]}, 1),
    "parameters": ({**PARAMETERS, "ops": OPS}, 1),
    "parameters of a target": ({**PARAMETERS, "targets": {"0:layers.0.fc": {}}, "ops": OPS}, 1),
    "from a step on": ({**PARAMETERS, **GRADIENTS, "start_step": 2, "ops": ["max"]}, 1),
    "two measured steps": (
        {**PARAMETERS, "step_interval": 2, "collect_times": 2, "ops": ["max"]},
        1,
    ),
    "one file of four steps": ({**GRADIENTS, "step_count_per_record": 4, "ops": ["min"]}, 1),
    "few decimals": ({**GRADIENTS, "ndigits": 3, "ops": ["norm", "max"]}, 1),
    "zeros by eps": ({**GRADIENTS, "eps": 0.01, "ops": ["zeros", "max"]}, 1),
    "every Cell beside a target": (
        {**CELLS, "all_xy": True, "targets": {"head": {}}, "ops": ["mean", "max"]},
        1,
    ),
    "one Cell": ({**CELLS, "targets": {"0:layers.1.ln": {}}, "ops": OPS}, 1),
    "Cells of three micro-batches": ({**CELLS, "targets": {"head": {}}, "ops": ["norm", "max"]}, 3),
    "this rank": ({**GRADIENTS, "module_ranks": [0, 2], "ops": ["max"]}, 1),
    "an unknown number": ({**PARAMETERS, "ops": ["median", "max"]}, 1),
    "Adam": ({"ur_distribution": True, "mg_direction": True, **PARAMETERS, "ops": ["max"]}, 1),
    "attention": (features("attention_hook"), 1),
    "attention of samples first": (features("attention_hook", sa_order="b,s,h,d"), 1),
    "attention of two micro-batches": (features("attention_hook"), 2),
    "stable rank": (features("linear_hook"), 1),
    "stable rank of two micro-batches": (features("linear_hook", step_interval=2), 2),
    "weights of routers": (features("moe_router_weight_hook"), 1),
    "logits of routers": (features("moe_router_logit_hook", ndigits=5), 1),
    "logits of two micro-batches": (
        features("moe_router_logit_hook", start_step=1, step_count_per_record=3),
        2,
    ),
    "all features": (features(**ALL, ops=["norm", "max"]), 1),
    "features of two steps": (features(collect_times=2), 2),
    "stacks": ({"stack_info": True, **GRADIENTS, "ops": ["max"]}, 1),
    "structure": ({"print_struct": True}, 1),
    "appended": (
        {"append_output": ["Jan01_00-00-00", "Dec31_23-59-59"], **GRADIENTS, "ops": ["max"]},
        1,
    ),
}
#: numbers of many operations, whose order differs
LOOSE = (
    "sr",
    "kernel_norm",
    "entropy",
    "softmax",
    "router_weight_similarity",
    "per_token_expert_entropy",
)
#: files that msprobe does not write on MindSpore
OURS = ("ur_distribution", "mg_direction", "tokens_per_expert")


def run(python, tool, config, accumulated, folder):
    """Return name of a csv file -> its rows."""
    folder.mkdir(mode=0o750)
    path = folder / "monitor.json"
    path.write_text(json.dumps({"ndigits": 12, **config}))
    if "append_output" in config:
        (folder / "out" / "Mar05_10-11-12-rank0-abcdef01").mkdir(parents=True, mode=0o750)
        (folder / "out").chmod(0o750)
    path.chmod(0o640)
    command = [
        *program("conformance.monitor_steps", python=python),
        "--tool",
        tool,
        "--config",
        str(path),
    ]
    command += ["--net", "decoder" if "l2_targets" in config else "dense"]
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
    own = (
        [name for name in os.listdir(folder / "out") if "-rank0-" in name]
        if (folder / "out").exists()
        else []
    )
    assert len(own) <= 1
    found = {}
    for file in (folder / "out").glob("*-rank0-*/*.csv"):
        with file.open(newline="") as opened:
            found[file.name] = list(csv.reader(opened))
    return found


def keyed(rows):
    """Return (stage, name, step, micro_step) -> the numbers."""
    count = 4 if "micro_step" in rows[0] else 3
    return {tuple(row[:count]): dict(zip(rows[0][count:], row[count:])) for row in rows[1:]}


def with_part(file, rows):
    """Return the rows of linear_hook with the column that its rows have and msprobe's header has not."""
    return (
        [[*rows[0][:3], "micro_step", *rows[0][3:]], *rows[1:]]
        if file.startswith("linear_hook")
        else rows
    )


def agrees(op, ours, theirs):
    if op in ("shape", "dtype"):
        return ours == theirs
    a, b = float(ours), float(theirs)
    return math.isclose(a, b, rel_tol=1e-5 if op in LOOSE else 2e-6, abs_tol=2e-7) or (
        math.isnan(a) and math.isnan(b)
    )


@pytest.mark.parametrize("name", list(CASES))
def test_the_csv_files_are_those_of_msprobe(name, tmp_path, capsys):
    config, accumulated = CASES[name]
    ours = run(sys.executable, "probe", config, accumulated, tmp_path / "ours")
    theirs = run(PYTHON, "msprobe", config, accumulated, tmp_path / "theirs")
    assert sorted(file for file in ours if not file.startswith(OURS)) == sorted(theirs)
    wrong, compared = [], 0
    stacks, others = dict(ours.pop("stack_info.csv", ())), dict(theirs.pop("stack_info.csv", ()))
    assert stacks.keys() == others.keys()
    for cell, stack in stacks.items():
        in_training = [
            [line for line in one.split("\n") if "monitor_steps.py" in line]
            for one in (stack, others[cell])
        ]
        assert in_training[0] == in_training[1], cell
    structures = [
        {
            path.relative_to(tmp_path / tool): json.loads(path.read_text())
            for path in (tmp_path / tool).rglob("module_*.json")
        }
        for tool in ("ours", "theirs")
    ]
    assert structures[0] == structures[1]
    for file, given in theirs.items():
        rows = with_part(file, given)
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
    assert compared >= 6 or len(structures[0]) == 1
