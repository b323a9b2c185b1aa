# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump of GRAPH_MODE beside the dump of the same training in PyNative mode, by ``probe compare``."""

from __future__ import annotations

import mindspore as ms
import pytest

import probe
from probe.__main__ import main
from tests.support import nets
from tests.support.dumps import Dump
from tests.support.thorough import thorough_but

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

STEP = 1


def record(debugger, name):
    """Record one step of a training that runs three."""
    net, train = nets.build(name)
    for i in range(3):
        debugger.start(net)
        train(i)
        debugger.stop()
        debugger.step()


@pytest.mark.usefixtures("graph_mode")
@pytest.mark.parametrize("name", thorough_but(["digits"], ["lenet", "digits"]))
@pytest.mark.parametrize("task", thorough_but(["statistics"], ["statistics", "tensor"]))
def test_every_cell_is_paired_and_nothing_differs(debug, name, task, tmp_path, capsys):
    folders = {}
    for mode in ("graph", "pynative"):
        ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
        folders[mode] = tmp_path / mode
        settings = {
            "level": "L0",
            "task": task,
            "step": [STEP],
            "optimizer": "off",
        }  # a graph shows no update
        record(debug(**settings, dump_path=str(folders[mode])), name)
    graph, pynative = (Dump(folder / f"step{STEP}" / "rank") for folder in folders.values())
    found = probe.compare(folders["graph"], folders["pynative"])
    assert found.ok and found.status == 0
    assert found.only_a == found.only_b == []
    calls = [entry for entry in pynative.data if ".parameters_grad." not in entry]
    assert len(calls) == len(pynative.construct) and set(graph.data) == set(pynative.data)
    assert sum(found.pairs.values()) == found.pairs["exact"] >= len(calls)
    rows = list(found.table())
    assert {entry for entry in graph.data if tensors(graph.data[entry])} <= {
        row["call_a"] for row in rows
    }
    assert [
        row
        for row in rows
        if row["rel_l2"] is None or row["rel_l2"] > 1e-5 or row["verdict"] == "differs"
    ] == []
    assert main(["compare", str(folders["graph"]), str(folders["pynative"])]) == 0
    assert "no difference beyond tolerance" in capsys.readouterr().out


def tensors(value):
    """Return how many tensors an entry has."""
    if isinstance(value, dict) and "dtype" in value:
        return 1
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(tensors, items))
