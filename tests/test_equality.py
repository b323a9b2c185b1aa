# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The law: losses, gradients, parameters and buffers are bitwise what they are without probe."""

from __future__ import annotations

import json

import mindspore as ms
import pytest

from tests.support import interference, processes
from tests.support.paths import ROOT, program

pytestmark = pytest.mark.slow

PROCESSORS = "libraries count the processors when they are loaded"
#: `make test` compares these; `make thorough` and `make equality` the others too
OFTEN = ("gated", "views", "shared", "recomputed", "custom", "assigns", "digits")
RARELY = tuple(name for name in (*interference.NETS, "lenet", "gpt") if name not in OFTEN)


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("synchronous", OFTEN),
        pytest.param("asynchronous", OFTEN, marks=pytest.mark.thorough),
        pytest.param("synchronous", RARELY, marks=pytest.mark.thorough),
        pytest.param("asynchronous", RARELY, marks=[pytest.mark.thorough, pytest.mark.proof]),
    ],
    ids=["often-synchronous", "often-asynchronous", "rarely-synchronous", "rarely-asynchronous"],
)
def test_trainings_are_bitwise_equal(mode, names, capsys):
    nets = ",".join(names)
    command = program(
        "equality", "--nets", nets, *(["--asynchronous"] if mode == "asynchronous" else [])
    )
    done = processes.run(
        command, fresh=PROCESSORS, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        print(
            f"\n{mode}: {found['compared']} trainings, {found['tensors']} tensors, different: {found['different']}"
        )
    assert found["different"] == []
    assert found["lost"] == []
    if mode == "synchronous":
        assert found["unsteady"] == []
    assert found["compared"] == 15 * (len(names) - len(found["unsteady"]))


@pytest.mark.thorough
def test_fifty_steps_without_dropout_are_bitwise_equal():
    command = program("equality", "--nets", "digits", "--steps", "50", "--tasks", "statistics")
    done = processes.run(
        command, fresh=PROCESSORS, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["compared"], found["different"], found["unsteady"], found["lost"]) == (
        3,
        [],
        [],
        [],
    )


def test_one_identity_node_in_the_graph_changes_the_gradients(monkeypatch):
    """The suite can fail: with one identity node, which is what other tools insert, gradients differ."""
    build = interference.NETS["gated"]
    net, step = build()
    expected = [gradient.asnumpy().tobytes() for gradient in step(0)[1]]
    net, step = build()
    block = net.blocks[1]
    block.register_backward_hook(lambda cell, given, got: None)
    found = [gradient.asnumpy().tobytes() for gradient in step(0)[1]]
    assert found != expected
    assert ms.get_context("mode") == ms.PYNATIVE_MODE
