# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""GRAPH_MODE in a loop of one's own: the same entries as in PyNative, and the bits of the training without probe."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from tests.support import compiled_nets, nets
from tests.support.agreement import differences, without_model_parameters
from tests.support.dumps import Dump
from tests.support.interference import NETS
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

STEPS = 3
OURS = ("lenet", "digits", "gpt")
#: nets that MindSpore trains in GRAPH_MODE
ODD = [name for name in NETS if name != "penalty"] + list(compiled_nets.NETS)
#: `make test` runs these
OFTEN = ("digits", "branches")


def build(name):
    if name in compiled_nets.NETS:
        return compiled_nets.build(name)
    return nets.build(name) if name in OURS else NETS[name]()


def train(name, debugger=None):
    """Return the loss, the gradients and the parameters of every step, as bytes."""
    net, step = build(name)
    numbers = []
    for i in range(STEPS):
        if debugger:
            debugger.start(net)
        loss, gradients = step(i)
        if debugger:
            debugger.stop()
            debugger.step()
        numbers.append(
            [tensor.asnumpy().tobytes() for tensor in (loss, *gradients, *net.get_parameters())]
        )
    return numbers


@pytest.fixture(scope="module")
def bare():
    """Return the numbers of the trainings without probe, in GRAPH_MODE."""
    known = {}

    def numbers(name):
        if name not in known:
            known[name] = train(name)
        return known[name]

    return numbers


@pytest.mark.usefixtures("graph_mode")
@pytest.mark.parametrize("name", thorough_but(OFTEN, [*OURS, *ODD]))
def test_every_cell_has_the_entries_of_pynative_and_the_training_its_bits(
    debug, bare, name, tmp_path
):
    expected = bare(name)
    assert train(name, debug(level="L0", step=[1])) == expected
    assert [path.name for path in debug.dump_path.glob("[!.]*")] == [
        "step1"
    ]  # Ascend has a folder of files too
    ms.set_context(mode=ms.PYNATIVE_MODE)
    pynative = train(
        name, debug(level="L0", step=[1], optimizer="off", dump_path=str(tmp_path / "pynative"))
    )
    graph, other = debug.dump(1), Dump(tmp_path / "pynative" / "step1" / "rank")
    assert set(graph.data) == set(other.data)
    assert graph.construct == other.construct
    assert list(graph.stack) == [str(i) for i in range(len(graph.stack))]
    assert {n for names, _ in graph.stack.values() for n in names} == {
        n for n in other.data if ".forward." in n
    }
    if name == "unknown":  # a size that depends on values is -1, and the numbers are null
        record = graph.data["Cell.chosen.Chosen.forward.0"]["output"][0]
        assert record["shape"] == [-1] and record["Max"] is None
        return
    if name == "half":  # MindSpore casts the inputs of a compiled Cell before its construct
        return
    losses = [np.frombuffer(step[0], np.float32) for run in (expected, pynative) for step in run]
    bound = 1e-5 if np.allclose(losses[:STEPS], losses[STEPS:], rtol=1e-6) else 1e-3
    assert differences(graph.data, without_model_parameters(other.data), bound, floor=1e-8) == []


class Part(nn.Cell):
    """A Cell that uses its input three times, and may have MindSpore print the gradient of it."""

    def __init__(self, watch):
        super().__init__()
        self.watch = watch

    def construct(self, x):
        if self.watch is not None:
            x = self.watch(x)
        return ops.tanh(x) * x * ops.sin(x)


class Sums(nn.Cell):
    """The gradient of its input is a sum of sums."""

    def __init__(self, watch=None):
        super().__init__()
        self.part = Part(watch)

    def construct(self, x):
        return (ops.exp(x) + ops.cos(x) * 0.3 + self.part(x) - x * x).sum()


@pytest.mark.usefixtures("graph_mode")
def test_where_last_bits_change_they_are_those_of_mindspore_printing_the_gradient(debug):
    show = ops.Print()

    def seen(gradient):
        show("gradient", gradient)
        return gradient

    x = ms.Tensor(np.random.RandomState(0).randn(64).astype(np.float32))
    bare, printed = (
        ms.grad(Sums(watch))(x).asnumpy() for watch in (None, ops.InsertGradientOf(seen))
    )
    net = Sums()
    debugger = debug(level="L0")
    debugger.start(net)
    recorded = ms.grad(net)(x).asnumpy()
    debugger.stop()
    debugger.step()
    assert recorded.tobytes() == printed.tobytes() != bare.tobytes()
    np.testing.assert_allclose(recorded, bare, rtol=0, atol=3e-7 * float(np.abs(bare).max()))


@pytest.mark.usefixtures("graph_mode")
@pytest.mark.parametrize("level", thorough_but(["O1"], ["O0", "O1"]))
@pytest.mark.parametrize("task", thorough_but(["tensor"], ["tensor", "structure"]))
def test_tasks_and_jit_levels(debug, task, level, tmp_path):
    ms.set_context(jit_level=level)
    try:
        expected = train("digits")
        assert train("digits", debug(level="L0", task=task)) == expected
    finally:
        ms.set_context(jit_level="O0")
    ms.set_context(mode=ms.PYNATIVE_MODE)
    train(
        "digits",
        debug(level="L0", task=task, optimizer="off", dump_path=str(tmp_path / "pynative")),
    )
    for step in range(STEPS):
        graph, other = debug.dump(step), Dump(tmp_path / "pynative" / f"step{step}" / "rank")
        assert graph.construct == other.construct
        assert set(graph.data) == set(other.data)
        if task == "tensor":
            arrays = sorted(path.name for path in (other.folder / "dump_tensor_data").iterdir())
            assert (
                sorted(path.name for path in (graph.folder / "dump_tensor_data").iterdir())
                == arrays
            )
            for name in arrays:
                np.testing.assert_allclose(
                    graph.array(name), other.array(name), rtol=1e-2, atol=1e-4
                )


@pytest.mark.thorough
@pytest.mark.usefixtures("graph_mode")
def test_several_runs_of_the_graph_in_one_call_are_counted(debug, tmp_path):
    """As in sink mode, where MindSpore runs the graph several times between the begin and the end of a step."""
    net, step = build("digits")
    debugger = debug(level="L0")
    debugger.start(net)
    for i in range(STEPS):
        step(i)
    debugger.stop()
    debugger.step()
    together = debug.dump(0).data
    train("digits", debug(level="L0", dump_path=str(tmp_path / "apart")))
    names = []
    for run in range(STEPS):
        apart = Dump(tmp_path / "apart" / f"step{run}" / "rank").data
        for name, entry in apart.items():
            assert name.endswith(".0")
            names.append(f"{name[:-1]}{run}")
            assert together[names[-1]] == entry
    assert set(names) == set(together)
