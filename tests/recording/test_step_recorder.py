# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""StepRecorder: how often one call enters it, and where errors of the tool end."""

from __future__ import annotations

import json
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger, UsageError
from probe.capture.autograd.gradient_hooks import GradientHooks
from probe.entry import Kind
from probe.measure.host import HostMeasurer
from probe.recording import step_recorder
from probe.recording.call_stacks import CallStacks
from probe.recording.step_recorder import NameFilter, StepRecorder
from probe.store.journal import Journal
from probe.tasks.values import ValuesTask
from tests.support.dumps import Debug
from tests.support.tensors import tensor

X = tensor(np.arange(6.0).reshape(2, 3))


@pytest.fixture
def crossings(monkeypatch):
    """The public methods of StepRecorder in the order in which others called them; its own calls do not count."""
    called = []

    def counted(name, method):
        def run(self, *args, **kwargs):
            if sys._getframe(1).f_code.co_filename != step_recorder.__file__:
                called.append(name)
            return method(self, *args, **kwargs)

        return run

    for name, method in list(vars(StepRecorder).items()):
        if callable(method) and not name.startswith("_"):
            monkeypatch.setattr(StepRecorder, name, counted(name, method))
    return called


@pytest.fixture
def tough(tmp_path):
    """A maker of debuggers that may leave dump_error_info.log behind."""
    yield Debug(tmp_path)
    PrecisionDebugger.close()


def fail(error):
    def stand_in(*args, **kwargs):
        raise error

    return stand_in


# -- crossings -----------------------------------------------------------------------------------------------------


def test_a_call_enters_the_recorder_by_begin_and_end(debug, crossings):
    debugger = debug(level="L1", data_mode=["forward"])
    debugger.start()
    crossings.clear()
    ops.relu(X)
    assert crossings == ["begin", "end"]
    debugger.stop()
    assert list(debug.dump().data) == ["Functional.relu.0.forward"]


@pytest.mark.parametrize("task", ["statistics", "tensor", "structure", "nan_check"])
def test_a_call_whose_gradients_are_watched_enters_it_no_more_often(debug, crossings, task):
    debugger = debug(level="L1", task=task, saved_tensors=False)
    forward, backward = [], []

    def function(x):
        crossings.clear()
        y = ops.relu(x)
        forward.extend(crossings)
        crossings.clear()
        return y

    debugger.start(nn.ReLU())  # task "structure" needs a model
    ms.grad(function)(X)
    backward.extend(crossings)
    debugger.step()
    assert [name for name in forward if name != "safely"] == ["begin", "end"]
    assert forward.count("safely") == 2
    assert [name for name in backward if name != "safely"] == ["begin_backward", "end_backward"]


def test_a_call_inside_a_call_does_not_enter_it(debug, crossings, monkeypatch):
    monkeypatch.setattr(ops, "tanh", lambda x: ops.relu(ops.exp(x)))
    debugger = debug(level="L1", data_mode=["forward"])
    debugger.start()
    crossings.clear()
    ops.tanh(X)
    assert crossings == ["begin", "end"]
    debugger.stop()


def test_a_call_that_no_filter_chooses_enters_it_once(debug, crossings):
    debugger = debug(level="L1", list=["exp"])
    debugger.start()
    crossings.clear()
    ops.relu(X)
    assert crossings == ["begin"]
    ops.exp(X)
    debugger.stop()


def test_a_call_that_raises_enters_it_by_begin_and_fail(debug, crossings):
    debugger = debug(level="L1", data_mode=["forward"])
    debugger.start()
    crossings.clear()
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        ops.concat((X, X), axis=7)
    assert crossings == ["begin", "fail"]
    debugger.stop()
    entry = debug.dump().data["Functional.concat.0.forward"]
    assert entry["raised"] and "output" not in entry


def test_an_error_that_comes_up_while_waiting_for_the_result_is_the_calls(
    debug, crossings, monkeypatch
):
    debugger = debug(level="L1", data_mode=["forward"])
    debugger.start()
    waits = []

    def wait():
        waits.append(1)
        if len(waits) == 2:
            raise RuntimeError("the training's own")

    monkeypatch.setattr(
        debugger._session._parts.window.open_step.recorder.queue._work, "_wait", wait
    )
    crossings.clear()
    with pytest.raises(RuntimeError, match="the training's own"):
        ops.relu(X)
    assert crossings == ["begin", "fail"]
    debugger.stop()
    assert (
        debug.dump().data["Functional.relu.0.forward"]["raised"]
        == "RuntimeError: the training's own"
    )


def test_outside_of_start_and_stop_no_call_enters_it(debug, crossings):
    debugger = debug(level="L1")
    ops.relu(X)
    debugger.start()
    debugger.stop()
    crossings.clear()
    ops.relu(X)
    assert crossings == []


# -- errors of the tool --------------------------------------------------------------------------------------------


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layer = nn.Dense(3, 2)

    def construct(self, x):
        return ops.relu(self.layer(x))


#: where an error is put, what was being done as the user is told, the entries that then say so
PARTS = [
    (
        CallStacks,
        "number",
        "recording a call",
        {"Functional.relu.0.forward", "Cell.layer.Dense.forward.0"},
    ),
    (
        ValuesTask,
        "inputs",
        "recording a call",
        {"Functional.relu.0.forward", "Cell.layer.Dense.forward.0"},
    ),
    (
        HostMeasurer,
        "tensor",
        "recording a call",
        {"Functional.relu.0.forward", "Functional.relu.0.backward"},
    ),
    (
        ValuesTask,
        "outputs",
        "recording a result",
        {"Functional.relu.0.forward", "Cell.layer.Dense.forward.0"},
    ),
    (
        GradientHooks,
        "find_inputs",
        "watching the gradients of a call",
        {"Functional.relu.0.forward"},
    ),
    (GradientHooks, "attach", "watching the gradients of a call", {"Functional.relu.0.forward"}),
    (ValuesTask, "gradient", "reading a gradient", {"Functional.relu.0.backward"}),
    (ValuesTask, "backward", "reading a gradient", {"Functional.relu.0.backward"}),
]


@pytest.mark.parametrize(
    ("owner", "name", "operation", "noted"), PARTS, ids=[name for _, name, *_ in PARTS]
)
def test_an_error_of_the_tool_is_noted_in_its_entry_and_the_training_goes_on(
    tough, monkeypatch, owner, name, operation, noted
):
    net = Net()
    function = ms.value_and_grad(net, None, net.trainable_params())
    bare = [item.asnumpy().tobytes() for item in (function(X)[0], *function(X)[1])]
    debugger = tough(level="mix")
    debugger.start(net)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail(ZeroDivisionError("a mistake of ours")))
        value, gradients = function(X)
    assert [item.asnumpy().tobytes() for item in (value, *gradients)] == bare
    ops.exp(X)  # recorded as ever
    debugger.step()
    dump = tough.dump()
    texts = {entry: parts["error"] for entry, parts in dump.data.items() if "error" in parts}
    assert noted <= set(texts)
    assert set(texts.values()) == {"ZeroDivisionError: a mistake of ours"}
    assert dump.data["Functional.exp.0.forward"]["output"][0]["shape"] == [2, 3]
    log = (dump.folder / "dump_error_info.log").read_text()
    assert operation in log and "a mistake of ours" in log and "Traceback" in log


@pytest.mark.parametrize(
    ("owner", "name"),
    [(NameFilter, "begin"), (NameFilter, "may_record_backward"), (Kind, "__hash__")],
)
def test_a_call_that_cannot_even_begin_is_left_out_and_reported_under_its_key(
    tough, monkeypatch, owner, name
):
    debugger = tough(
        level="L1", list=["relu"], data_mode=["forward", "backward", "input", "output"]
    )
    debugger.start()
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail(ZeroDivisionError("a mistake of ours")))
        assert ops.relu(X).shape == (2, 3)
    ops.relu(X)
    debugger.step()
    data = tough.dump().data
    assert "output" in data[max(data)]
    assert (
        "recording a call (Functional.relu"
        in (tough.dump().folder / "dump_error_info.log").read_text()
    )


def test_an_error_at_the_end_of_a_call_leaves_the_following_calls_alone(tough, monkeypatch):
    debugger = tough(level="L1")
    debugger.start()
    with monkeypatch.context() as patched:
        patched.setattr(NameFilter, "end", fail(ZeroDivisionError("a mistake of ours")))
        ops.relu(X)
    ops.relu(X)
    debugger.step()
    assert [name for name, entry in tough.dump().data.items() if "output" in entry] == [
        "Functional.relu.0.forward",
        "Functional.relu.1.forward",
    ]


def test_a_raising_call_keeps_its_own_error_where_that_has_no_text(tough, monkeypatch):
    class Unprintable(Exception):
        def __str__(self):
            raise ZeroDivisionError("no text")

    error = Unprintable()
    monkeypatch.setattr(ops, "tanh", fail(error))
    debugger = tough(level="L1")
    debugger.start()
    with pytest.raises(Unprintable) as raised:
        ops.tanh(X)
    assert raised.value is error
    ops.relu(X)
    debugger.step()
    data = tough.dump().data
    assert data["Functional.tanh.0.forward"]["error"] == "ZeroDivisionError: no text"
    assert "output" in data["Functional.relu.0.forward"]


@pytest.mark.parametrize(("owner", "name"), [(ValuesTask, "inputs"), (ValuesTask, "outputs")])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(3), UsageError("a task of the user's")], ids=repr
)
def test_an_error_that_is_not_a_mistake_of_the_tool_passes(tough, monkeypatch, owner, name, error):
    debugger = tough(level="L1")
    debugger.start()
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fail(error))
        with pytest.raises(type(error)) as raised:
            ops.relu(X)
    assert raised.value is error
    ops.exp(X)
    debugger.step()
    dump = tough.dump()
    assert "output" in dump.data["Functional.exp.0.forward"]
    assert not (dump.folder / "dump_error_info.log").exists()


def test_an_error_of_the_journal_is_in_no_entry(tough, monkeypatch):
    debugger = tough(level="L1")
    debugger.start()
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", fail(OSError(5, "Input/output error")))
        ops.relu(X)
    debugger.step()
    text = (tough.dump().folder / "dump.json").read_text()
    assert "output" in json.loads(text)["data"]["Functional.relu.0.forward"]
    assert "error" not in text
