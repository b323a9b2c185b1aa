# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""GRAPH_MODE and level L2 on the simulated Ascend: MindSpore's own code writes the files."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from probe.__main__ import main
from tests.capture.graph.test_jit_cells import train_odd
from tests.support import processes
from tests.support.agreement import differences
from tests.support.dumps import Dump
from tests.support.paths import ROOT, environment, program

pytestmark = [pytest.mark.slow, pytest.mark.ascend]


def train(device, folder, way):
    folder.mkdir()
    command = program("graph_on_ascend", device, folder, way)
    return processes.run(
        command, capture_output=True, text=True, env=environment(), timeout=120, cwd=ROOT
    )


def test_a_graph_has_the_documents_of_cpu_and_the_bits_of_no_tool(tmp_path):
    trainings = ("CPU on", "Ascend on", "Ascend bare")
    done = {name: train(name.split()[0], tmp_path / name, name.split()[1]) for name in trainings}
    assert [one.returncode for one in done.values()] == [0, 0, 0], [
        one.stderr[-2000:] for one in done.values()
    ]
    assert done["Ascend on"].stdout == done["Ascend bare"].stdout
    for step in ("step0", "step1"):
        ours, theirs = (
            Dump(tmp_path / f"{device} on" / "dump" / step / "rank") for device in ("Ascend", "CPU")
        )
        assert sorted(ours.data) == sorted(theirs.data)
        pairs = [(name, ours.data[name], entry) for name, entry in theirs.data.items()]
        found = [
            text for name, one, other in pairs for text in differences(one, other, 1e-4, name, 1e-6)
        ]
        # the gradient that the loss starts with is a constant of the graph: it may reach no operator there
        assert {text.split(":")[0] for text in found} <= {
            "Cell.loss.CrossEntropyLoss.backward.0.input.0"
        }, found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the last step of a training that lives."""
    folder = tmp_path_factory.mktemp("graph") / "whole"
    assert train("Ascend", folder, "on").returncode == 0
    return Dump(folder / "dump" / "step1" / "rank")


@pytest.mark.parametrize("way", ["early", "late"])
def test_a_graph_that_is_killed_leaves_the_step_before_and_every_event_that_arrived(
    tmp_path, capsys, whole, way
):
    done = train("Ascend", tmp_path / "killed", way)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    step = tmp_path / "killed" / "dump" / "step1" / "rank"
    before = Dump(step.parents[1] / "step0" / "rank").data
    assert main(["recover", str(tmp_path / "killed")]) == 0
    recovered = Dump(step).data
    assert capsys.readouterr().out == f"{step}: {len(recovered)} entries recovered\n"
    assert before.keys() == whole.data.keys() >= recovered.keys()
    assert recovered["Cell.first.Dense.forward.0"] == whole.data["Cell.first.Dense.forward.0"]
    if way == "late":  # the process has waited for the last value
        assert recovered.keys() == whole.data.keys()
        assert recovered["Cell.last.Dense.backward.0"] == whole.data["Cell.last.Dense.backward.0"]
    ended = [name for name in recovered if recovered[name].keys() == whole.data[name].keys()]
    for name in (name for name in ended if ".forward." in name):
        assert recovered[name] == whole.data[name]


def test_a_compiled_cell_with_a_loop_over_values_trains_as_without_probe(debug):
    """MindSpore compiles the backward late: an error there is the training's."""
    expected = train_odd("branches")
    found = train_odd("branches", debug(level="L0", step=[1]))
    assert [[array.tobytes() for array in step] for step in found] == [
        [a.tobytes() for a in step] for step in expected
    ]
    graph = Dump(debug.dump_path / "graph" / "step1" / "rank").data
    assert {f"Cell.part.net.again.Inner.forward.{i}" for i in range(3)} < set(graph)
    for way in ("input", "output"):
        assert graph["Cell.part.net.Branches.backward.0"][way][0]["Norm"] > 0


def test_the_script_for_a_first_run_passes():
    command = [sys.executable, "examples/check_ascend.py"]
    done = processes.run(
        command, capture_output=True, text=True, env=environment(), timeout=300, cwd=ROOT
    )
    found = {
        line["check"]: line for line in map(json.loads, filter(None, done.stdout.splitlines()))
    }
    names = [row[0].split("_")[0] for row in found["forward_and_backward"]["files"]]
    assert names == [
        "x",
        "gradient1",
        "y0",
        "gradient0",
        "y1",
        "total",
    ]  # the engine runs the gradients early
    assert found["forward_and_backward"]["files"][3][3] == found["forward_and_backward"]["gradient"]
    assert {row[1] for row in found["dtypes"]["files"]} == {"float32", "float16", "int32", "bool"}
    assert "ConditionSwitch" in found["branch"]["error"]
    assert found["pause"]["files after each run: 2, 2, 4 expected"] == [2, 2, 4]
    assert [row[1:4] for row in found["large"]["files"]] == [
        ["float32", [256, 1024, 1024], 2.0**28]
    ]
    assert found["tool"]["bitwise equal"] is True and found["tool"]["left"] == ["step1"]


KERNELS = """
import runpy
import mindspore as ms
ms.set_device("Ascend")
runpy.run_module("tests.programs.kernels", run_name="__main__", alter_sys=True)
"""


def test_level_l2_has_an_array_of_each_kernel_and_changes_no_bit(tmp_path):
    seen = []
    settings = {
        "level": "L2",
        "task": "tensor",
        "dump_path": str(tmp_path / "dump"),
        "step": [1],
        "tensor": {},
    }
    for given in ({"settings": settings}, {}):
        command = [sys.executable, "-c", KERNELS, json.dumps({"net": "lenet", "steps": 2, **given})]
        done = processes.run(
            command,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=120,
            cwd=ROOT,
            fresh="MindSpore's dump",
        )
        assert done.returncode == 0, done.stderr[-2000:]
        seen.append(json.loads(done.stdout.splitlines()[-1])["seen"])
    assert seen[0] == seen[1]
    folder = tmp_path / "dump" / "rank_0"
    orders = list(folder.glob("execution_order/ms_execution_order_graph_*.csv"))
    assert (
        orders
        and len(list(folder.glob("Net/*/1/*.npy"))) > 100
        and not list(folder.glob("Net/*/0/*.npy"))
    )
