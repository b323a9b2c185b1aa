# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A process that is killed in a step: every value whose report had returned is recovered."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys

import numpy as np
import pytest

from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.sites import OUTPUT
from probe.reading.dumps.folders import JournalSource
from tests.capture.graph.test_own_loop import build
from tests.support import processes
from tests.support.dumps import Dump
from tests.support.paths import ROOT, program
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: the files of the first step
FILES = ["construct.json", "dump.json", "run.json", "run.jsonl", "stack.json"]


def run(folder, when, kind="graph"):
    """Return the exit status of the training."""
    command = program("killed_graph", folder, when, kind)
    return processes.run(
        command, capture_output=True, check=False, timeout=200, cwd=ROOT
    ).returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of the training that lives."""
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder, "never") == 0
    return folder


#: the Cells whose call goes on while the process dies
OPEN = {"Cell.outer.Outer", "Cell.outer.deadly.Deadly"}
FORWARD_BEFORE = {
    f"Cell.{cell}" for cell in ("first.Inner", "first.dense.Dense", "outer.inner.Inner")
}
FORWARD_BEFORE.add("Cell.outer.inner.dense.Dense")


@pytest.mark.parametrize("when", ["forward", "backward", "updated"])
def test_every_value_whose_report_had_returned_is_recovered(whole, when, tmp_path):
    assert run(tmp_path, when) == -signal.SIGKILL
    step = tmp_path / "step1" / "rank"
    assert os.listdir(step) == ["dump.journal"]
    assert sorted(os.listdir(tmp_path / "step0" / "rank")) == FILES
    unrecovered = JournalSource().read(str(step))
    command = [sys.executable, "-m", "probe", "recover", str(tmp_path)]
    processes.run(command, check=True, cwd=ROOT)
    complete, recovered = Dump(whole / "step1" / "rank"), Dump(step)
    assert unrecovered.data == recovered.data
    forward = {f"{cell}.forward.0" for cell in FORWARD_BEFORE}
    backward, begun = set(), {f"{cell}.forward.0" for cell in OPEN}
    if when == "backward":
        forward |= {*begun, "Cell.last.Dense.forward.0"}
        backward, begun = {"Cell.last.Dense.backward.0"}, {f"{cell}.backward.0" for cell in OPEN}
    if when == "updated":  # nothing is open
        assert set(recovered.data) == set(complete.data)
        assert recovered.construct == complete.construct
        assert any(".parameters_grad." in name for name in recovered.data)
        begun = set()
    else:
        assert set(recovered.data) == forward | backward | begun
    for name in begun:  # its inputs, or the gradients of its outputs
        expected = (
            dict(complete.data[name], output=[None])
            if when == "backward"
            else dict(complete.data[name])
        )
        if when == "forward":
            del expected["output"], expected["parameters"]
        assert json.dumps(recovered.data[name]) == json.dumps(expected)
    ended = [name for name in complete.data if name in recovered.data and name not in begun]
    assert list(recovered.data)[: len(ended)] == ended
    assert [json.dumps(recovered.data[name]) for name in ended] == [
        json.dumps(complete.data[name]) for name in ended
    ]
    assert {n for names, _ in recovered.stack.values() for n in names} == {
        n for n in recovered.data if ".forward." in n
    }
    assert recovered.construct == {name: complete.construct[name] for name in recovered.construct}


@pytest.fixture(scope="module")
def whole_jit(tmp_path_factory):
    """Return the folder of the training in PyNative mode that lives."""
    folder = tmp_path_factory.mktemp("jit")
    assert run(folder, "never", "jit") == 0
    return folder


@pytest.mark.parametrize("when", ["forward", "backward"])
def test_a_compiled_cell_of_a_pynative_training_is_recovered(whole_jit, when, tmp_path):
    assert run(tmp_path, when, "jit") == -signal.SIGKILL
    processes.run([sys.executable, "-m", "probe", "recover", str(tmp_path)], check=True, cwd=ROOT)
    ended = {"Cell.outer.inner.dense.Dense.forward.0", "Cell.outer.inner.Inner.forward.0"}
    begun = {f"Cell.outer.{cell}.{when}.0" for cell in ("Compiled", "deadly.Deadly")}
    before = "Cell.first.Inner.forward.0"
    if when == "backward":
        ended |= {name.replace("backward", "forward") for name in begun}
        before = "Cell.last.Dense.backward.0"
    complete, recovered = (
        Dump(folder / "graph" / "step1" / "rank").data for folder in (whole_jit, tmp_path)
    )
    assert set(recovered) == ended | begun
    for name in begun:
        expected = {**complete[name], "output": [None]}
        if when == "forward":
            del expected["output"], expected["parameters"]
        assert json.dumps(recovered[name]) == json.dumps(expected)
    assert [json.dumps(recovered[name]) for name in ended] == [
        json.dumps(complete[name]) for name in ended
    ]
    complete, recovered = (
        Dump(folder / "pynative" / "step1" / "rank").data for folder in (whole_jit, tmp_path)
    )
    assert before in recovered
    assert recovered == {name: complete[name] for name in recovered}


@pytest.mark.usefixtures("graph_mode")
@pytest.mark.parametrize(
    "name", thorough_but(["many", "unknown"], ["digits", "many", "sizes", "brain", "unknown"])
)
def test_the_journal_has_each_value_when_its_report_returns(debug, name, tmp_path, monkeypatch):
    seen = []

    def journal():
        copy = tmp_path / "copy"
        copy.mkdir(exist_ok=True)
        shutil.copy(debug.dump_path / "step0" / "rank" / "dump.journal", copy)
        return JournalSource().read(str(copy)).data

    def after(method, check):
        original = getattr(GraphCalls, method)

        def report(self, *arguments):
            result = original(self, *arguments)
            check(self, result, *arguments)
            return result

        monkeypatch.setattr(GraphCalls, method, report)

    def entered(graphs, number, plan, arrays):
        entry = journal()[graphs._calls[number].call.forward]
        assert len(entry["input_args"]) == 1 and entry["input_args"][0]["Max"] is not None
        seen.append("inputs")

    def left(graphs, _, number, plan, arrays):
        assert "output" in journal()[graphs._calls[number].call.forward]
        seen.append("outputs")

    def arrived(graphs, _, number, place, array):
        found = graphs._calls[number]
        way, index = ("input", place - OUTPUT) if place >= OUTPUT else ("output", place)
        assert journal()[found.call.backward][way][index]["Max"] == pytest.approx(
            float(np.max(array)), rel=1e-2
        )
        seen.append("gradient" if found.outputs else "early gradient")

    after("enter", entered)
    after("leave", left)
    after("gradient", arrived)
    net, step = build(name)
    debugger = debug(level="L0")
    debugger.start(net)
    step(0)
    debugger.stop()
    debugger.step()
    assert {"inputs", "outputs", "gradient"} <= set(seen)
