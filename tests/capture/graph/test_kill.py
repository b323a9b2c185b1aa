# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A process that is killed in a step: every value whose report had returned is recovered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from probe.reading.source import JournalSource
from tests.support.dumps import Dump
from tests.support.paths import ROOT, program

pytestmark = pytest.mark.slow


def run(folder, when):
    """Return the exit status of the training."""
    command = program("killed_graph", folder, when)
    return subprocess.run(command, capture_output=True, check=False, timeout=200, cwd=ROOT).returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of the training that lives."""
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder, "never") == 0
    return folder


#: the Cells whose call goes on while the process dies
OPEN = {"Cell.outer.Outer", "Cell.outer.deadly.Deadly"}
FORWARD_BEFORE = {f"Cell.{cell}" for cell in ("first.Inner", "first.dense.Dense", "outer.inner.Inner")}
FORWARD_BEFORE.add("Cell.outer.inner.dense.Dense")


@pytest.mark.parametrize("when", ["forward", "backward", "updated"])
def test_every_value_whose_report_had_returned_is_recovered(whole, when, tmp_path):
    assert run(tmp_path, when) == -signal.SIGKILL
    step = tmp_path / "step1" / "rank"
    assert os.listdir(step) == ["dump.journal"]
    assert sorted(os.listdir(tmp_path / "step0" / "rank")) == ["construct.json", "dump.json", "stack.json"]
    unrecovered = JournalSource().read(str(step))
    command = [sys.executable, "-m", "probe", "recover", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT)
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
        expected = dict(complete.data[name], output=[None]) if when == "backward" else dict(complete.data[name])
        if when == "forward":
            del expected["output"], expected["parameters"]
        assert json.dumps(recovered.data[name]) == json.dumps(expected)
    ended = [name for name in complete.data if name in recovered.data and name not in begun]
    assert list(recovered.data)[: len(ended)] == ended
    assert [json.dumps(recovered.data[name]) for name in ended] == [json.dumps(complete.data[name]) for name in ended]
    assert {n for names, _ in recovered.stack.values() for n in names} == {
        n for n in recovered.data if ".forward." in n
    }
    assert recovered.construct == {name: complete.construct[name] for name in recovered.construct}
