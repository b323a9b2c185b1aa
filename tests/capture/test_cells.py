# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Cells: names, nesting, parameters, and every form of input and output."""

from __future__ import annotations

import copy
import gc
import json
import logging
import threading
from collections import Counter

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe.capture.autograd.gradient_hooks import BackwardEntry
from probe.capture.pynative.thread_state import OpenCall
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder
from probe.store.documents import JsonDocuments
from tests.support import interference, nets, processes
from tests.support.dumps import Dump
from tests.support.paths import ROOT, program
from tests.support.tensors import tensor
from tests.support.thorough import thorough_but

X = tensor(np.arange(6.0).reshape(2, 3))


class Inner(nn.Cell):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def construct(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Outer(nn.Cell):
    """Calls its inner Cell in a given way."""

    def __init__(self, function, call):
        super().__init__()
        self.inner = Inner(function)
        self.call = call

    def construct(self, x):
        return self.call(self.inner, x)


def record(debug, function, call, **settings):
    net = Outer(function, call)
    gradient = ms.grad(net)
    expected = gradient(X).asnumpy()
    result, dump = debug.record(lambda: gradient(X), net, **{"level": "L0", **settings})
    np.testing.assert_array_equal(result.asnumpy(), expected)
    return dump


def test_a_dict_that_a_cell_returns_is_recorded_with_its_keys(debug):
    dump = record(
        debug, lambda x: {"a": x * 2.0, "b": x * 3.0}, lambda inner, x: sum(inner(x).values()).sum()
    )
    assert set(dump.data["Cell.inner.Inner.forward.0"]["output"][0]) == {"a", "b"}
    backward = dump.data["Cell.inner.Inner.backward.0"]
    assert backward["input"][0]["a"]["Max"] == 1.0
    assert backward["output"][0]["Max"] == 5.0


def test_a_list_that_a_cell_returns_is_one_output(debug):
    dump = record(debug, lambda x: [x * 2.0, x * 3.0], lambda inner, x: sum(inner(x)).sum())
    assert [len(item) for item in dump.data["Cell.inner.Inner.forward.0"]["output"]] == [2]


def test_a_cell_that_returns_none_has_no_backward_entry(debug):
    dump = record(debug, lambda x: None, lambda inner, x: (inner(x), x.sum())[1])
    assert dump.data["Cell.inner.Inner.forward.0"]["output"] == [None]
    assert "Cell.inner.Inner.backward.0" not in dump.data


def test_keyword_inputs_of_a_cell_are_recorded_apart(debug):
    dump = record(
        debug,
        lambda x, y, scale=1: x * y * scale,
        lambda inner, x: inner(x, y=x + 1, scale=2.0).sum(),
    )
    forward = dump.data["Cell.inner.Inner.forward.0"]
    assert set(forward["input_kwargs"]) == {"y", "scale"}
    backward = dump.data["Cell.inner.Inner.backward.0"]
    assert len(backward["output"]) == 1 and set(backward["output_kwargs"]) == {"y"}


def test_the_last_forward_of_a_shared_cell_has_the_first_backward(debug):
    dump = record(debug, lambda x: ops.tanh(x), lambda inner, x: inner(inner(x)).sum())
    assert list(dump.data) == [
        "Cell.inner.Inner.forward.0",
        "Cell.inner.Inner.forward.1",
        "Cell.inner.Inner.backward.1",
        "Cell.inner.Inner.backward.0",
    ]


def test_a_cell_that_raises_has_an_entry_with_its_error_and_later_calls_have_the_right_parent(
    debug,
):
    def fails(x):
        raise ValueError("planted")

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.bad, self.good = (
                Outer(fails, lambda inner, x: inner(x)),
                Inner(lambda x: ops.exp(x)),
            )

        def construct(self, x):
            with pytest.raises(ValueError, match="planted"):
                self.bad(x)
            return self.good(x).sum()

    net = Net()
    _, dump = debug.record(lambda: net(X), net, level="mix")
    assert dump.construct["Cell.good.Inner.forward.0"] is None
    assert dump.construct["Functional.exp.0.forward"] == "Cell.good.Inner.forward.0"
    assert dump.data["Cell.bad.Outer.forward.0"]["raised"] == "ValueError: planted"
    assert dump.construct["Cell.bad.inner.Inner.forward.0"] == "Cell.bad.Outer.forward.0"


def test_a_cell_that_is_interrupted_has_an_entry_with_its_error_and_later_calls_have_the_right_parent(
    debug,
):
    def interrupt(x):
        raise KeyboardInterrupt

    net = nn.SequentialCell(Inner(interrupt))

    def work():
        with pytest.raises(KeyboardInterrupt):
            net(X)
        net[0].function = ops.exp
        ops.tanh(X)
        net(X)

    _, dump = debug.record(work, net, level="mix")
    assert dump.data["Cell.0.Inner.forward.0"]["raised"].startswith("KeyboardInterrupt")
    assert dump.construct["Functional.tanh.0.forward"] is None
    assert dump.construct["Cell.0.Inner.forward.1"] is None


def test_a_copy_of_a_cell_made_while_recording_has_no_hooks(debug):
    net = nn.SequentialCell(nn.Dense(3, 2), Inner(ops.tanh))

    def work():
        net(X)
        shallow = copy.copy(net[1])
        shallow.function = ops.exp
        return copy.deepcopy(net), shallow(X)

    (deep, result), dump = debug.record(work, net, level="mix")
    assert not deep[0]._forward_pre_hook
    assert not deep[0]._forward_hook
    assert type(deep[0].matmul) is type(net[0].matmul) is ops.MatMul
    assert vars(deep[0]).keys() == vars(net[0]).keys()
    np.testing.assert_array_equal(result.asnumpy(), ops.exp(X).asnumpy())
    assert dump.names("Inner.forward") == ["Cell.1.Inner.forward.0"]


class CopiesItself(nn.Cell):
    """Copies its Primitive itself."""

    def __init__(self):
        super().__init__()
        self.multiply = ops.MatMul()

    def construct(self, x):
        return self.multiply(x, x.T)

    def __deepcopy__(self, memo):
        made = CopiesItself()
        made.multiply = copy.deepcopy(self.multiply, memo)
        return made


def test_a_primitive_that_is_copied_while_recording_has_its_own_class(debug):
    net = nn.SequentialCell(CopiesItself())
    made, dump = debug.record(
        lambda: [copy.deepcopy(net)[0](X), copy.deepcopy(net[0]), net(X)], net, level="mix"
    )
    assert type(made[1].multiply) is ops.MatMul
    assert dump.names("MatMul", "forward") == [
        "Primitive.fn:CopiesItself.MatMul.0.forward",
        "Primitive.multiply.MatMul.0.forward",
    ]


class CopiesNothing(ops.Primitive):
    """Returns itself where it is copied."""

    def __init__(self):
        super().__init__("Nothing")

    def __call__(self, x):
        return x

    def __deepcopy__(self, memo):
        return self


def test_a_primitive_that_is_its_own_copy_stays_recorded(debug):
    net = nn.SequentialCell(nn.ReLU())
    net[0].nothing = CopiesNothing()

    def work():
        assert copy.deepcopy(net[0].nothing) is net[0].nothing
        net[0].nothing(X)

    _, dump = debug.record(work, net, level="mix")
    assert dump.names("nothing") == ["Primitive.nothing.CopiesNothing.0.forward"]
    assert type(net[0].nothing) is CopiesNothing


class SlowToCopy:
    """Says that its copy has begun, and waits until it may end."""

    def __init__(self):
        self.begun, self.may_end = threading.Event(), threading.Event()

    def __deepcopy__(self, memo):
        self.begun.set()
        assert self.may_end.wait(600)
        return self


def test_a_copy_in_another_thread_does_not_stop_the_recording(debug):
    slow = SlowToCopy()
    net = nn.SequentialCell(Inner(ops.tanh))
    net[0].slow = slow

    def work():
        thread = threading.Thread(target=copy.deepcopy, args=(net[0],))
        thread.start()
        assert slow.begun.wait(600)
        net(X)
        slow.may_end.set()
        thread.join()
        net(X)

    _, dump = debug.record(work, net, level="L0")
    assert dump.names("forward") == ["Cell.0.Inner.forward.0", "Cell.0.Inner.forward.1"]


@pytest.mark.slow
def test_a_model_can_be_exported_while_recording(debug, tmp_path):
    net = nn.SequentialCell(nn.Dense(3, 2), nn.ReLU())

    def work():
        net(X)
        ms.export(net, X, file_name=str(tmp_path / "net"), file_format="MINDIR")
        return net(X)

    _, dump = debug.record(work, net, level="mix")
    assert (tmp_path / "net.mindir").exists()
    assert "Cell.0.Dense.forward.1" in dump.data


@pytest.mark.parametrize(
    ("scope", "parameters"),
    [
        (["Cell.0.Dense.forward.0", "Cell.1.Dense.forward.0"], []),
        (["Cell.1.Dense.backward.0", "Cell.0.Dense.backward.0"], ["Cell.0.Dense", "Cell.1.Dense"]),
    ],
)
def test_parameter_gradients_are_recorded_while_the_scope_is_open(debug, scope, parameters):
    net = nn.SequentialCell(nn.Dense(3, 2), nn.Dense(2, 1))
    run = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    _, dump = debug.record(lambda: run(X), net, level="L0", scope=scope)
    assert sorted(dump.names("parameters_grad")) == [
        f"{name}.parameters_grad.0" for name in parameters
    ]
    assert set(scope) <= set(dump.data)


def test_cells_of_several_models_have_the_number_of_their_model(debug):
    nets_ = [Outer(lambda x: x * 2.0, lambda inner, x: inner(x)) for _ in range(2)]
    _, dump = debug.record(lambda: nets_[1](nets_[0](X)), nets_, level="L0")
    assert list(dump.data) == ["Cell.0.inner.Inner.forward.0", "Cell.1.inner.Inner.forward.0"]


def test_frozen_parameters_are_recorded_and_have_no_gradient(debug):
    net = nn.SequentialCell(nn.Dense(3, 2), nn.Dense(2, 1))
    net[0].weight.requires_grad = False
    run = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    _, dump = debug.record(lambda: run(X), net, level="L0", task="tensor")
    assert set(dump.data["Cell.0.Dense.forward.0"]["parameters"]) == {"weight", "bias"}
    assert list(dump.data["Cell.0.Dense.parameters_grad.0"]) == ["bias"]
    weight = dump.data["Cell.0.Dense.forward.0"]["parameters"]["weight"]
    assert weight["data_name"] == "Cell.0.Dense.forward.0.parameters.weight.npy"
    gradient = dump.data["Cell.1.Dense.parameters_grad.0"]["weight"][0]
    assert gradient["data_name"] == "Cell.1.Dense.parameters_grad.0.weight.npy"


def test_each_backward_has_its_own_parameter_gradients(debug):
    net = nn.SequentialCell(nn.Dense(3, 2))
    run = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    _, dump = debug.record(lambda: (run(X), run(X)), net, level="L0")
    assert dump.names("parameters_grad") == [
        "Cell.0.Dense.parameters_grad.0",
        "Cell.0.Dense.parameters_grad.1",
    ]


def test_an_optimizer_inside_the_model_is_one_entry_below_its_path(debug):
    net = nn.SequentialCell(nn.Dense(3, 2))
    loss = nn.WithLossCell(net, nn.MSELoss())
    step = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    step.set_train()
    y = tensor(np.ones((2, 2)))
    _, dump = debug.record(lambda: step(X, y), step, level="mix")
    update = "Cell.optimizer.Momentum.forward.0"
    assert [name for name in dump.data if "optimizer" in name or "Momentum" in name] == [update]
    assert dump.construct[update] is None
    assert "Cell.network._backbone.0.Dense.backward.0" in dump.data


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_every_parent_in_construct_json_is_a_key_and_the_tree_is_that_of_the_model(debug, level):
    net, train = nets.build("gpt")
    _, dump = debug.record(lambda: train(0), net, level=level)
    tree = dump.construct
    assert all(parent is None or parent in tree for parent in tree.values())
    assert (
        tree["Cell.blocks.0.attention.q.Dense.forward.0"]
        == "Cell.blocks.0.attention.Attention.forward.0"
    )
    assert (
        tree["Cell.blocks.0.attention.q.Dense.backward.0"]
        == "Cell.blocks.0.attention.Attention.backward.0"
    )
    assert tree["Cell.blocks.0.Block.backward.0"] is None
    expected = {name for name in dump.data if "parameters_grad" not in name}
    assert expected <= set(tree)


def test_a_cell_comes_after_its_children_in_both_directions(debug):
    net, train = nets.build("gpt")
    _, dump = debug.record(lambda: train(0), net, level="mix")
    place = {name: i for i, name in enumerate(dump.data)}
    for child, parent in dump.construct.items():
        if parent is not None and child in place and parent in place:
            assert place[child] < place[parent], (child, parent)


def test_the_second_forward_of_recompute_has_no_entries_and_the_first_has_its_backward(debug):
    build = interference.NETS["recomputed"]
    net, step = build()
    _, dump = debug.record(lambda: step(0), net, level="mix", task="tensor")
    assert not [
        name for name in [*dump.data, *dump.construct] if "ecompute" in name or "WrapCell" in name
    ]
    assert (
        len(dump.names("Cell.heavy.Gate.forward"))
        == len(dump.names("Functional.sigmoid", "forward"))
        == 1
    )
    for name in ("Cell.heavy.Gate", "Cell.heavy.value.Dense"):
        assert f"{name}.backward.0" in dump.data
    assert dump.construct["Functional.sigmoid.0.backward"] == "Cell.heavy.Gate.backward.0"
    net, step = build()
    net.heavy._recompute_cell = None  # the same net without recompute has the same gradients
    debugger = debug(dump_path=str(debug.path / "plain"), level="mix", task="tensor")
    debugger.start(net)
    step(0)
    debugger.step()
    plain = Dump(debug.path / "plain" / "step0" / "rank")
    for name in (
        "Cell.heavy.Gate.backward.0",
        "Functional.sigmoid.0.backward",
        "Cell.heavy.gate.Dense.backward.0",
    ):
        ours, expected = (
            each.array(each.data[name]["output"][0]["data_name"]) for each in (dump, plain)
        )
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_recompute_without_reentry_records_each_call_once(debug):
    import inspect

    if "use_reentrant" not in inspect.signature(ms.recompute).parameters:
        pytest.skip(f"MindSpore {ms.__version__} has no recompute without reentry")
    net = Inner(lambda x: ops.tanh(ops.exp(x)))
    gradient = ms.grad(lambda x: ms.recompute(net, x, use_reentrant=False).sum())
    expected = gradient(X).asnumpy()
    result, dump = debug.record(lambda: gradient(X), level="L1")
    np.testing.assert_array_equal(result.asnumpy(), expected)
    assert len(dump.names("tanh", "forward")) == len(dump.names("exp", "forward")) == 1
    assert len(dump.names("tanh", "backward")) == 1


def test_a_cell_with_two_names_is_recorded_under_the_first_without_a_warning(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    net, step = interference.NETS["shared"]()
    _, dump = debug.record(lambda: step(0), net, level="L0")
    names = [name for name in dump.data if ".forward." in name]
    assert names == [
        *(f"Cell.one.Dense.forward.{i}" for i in range(3)),
        "Cell.optimizer.Adam.forward.0",
    ]
    assert caplog.messages == []


@pytest.mark.slow
def test_parameters_that_the_forward_or_the_optimizer_updates_are_as_without_probe(debug):
    for name in ("assigns", "norms"):
        values = []
        for watched in (False, True):
            net, step = interference.NETS[name]()
            debugger = debug(level="mix", task="tensor", overwrite=True) if watched else None
            for i in range(4):
                if debugger:
                    debugger.start(net)
                step(i)
                if debugger:
                    debugger.step()
            values.append({p.name: p.asnumpy().tobytes() for p in net.get_parameters()})
        assert values[0] == values[1]


def test_the_backward_of_a_cell_with_bprop_is_recorded(debug):
    net, step = interference.NETS["custom"]()
    _, dump = debug.record(lambda: step(0), net, level="mix", task="tensor")
    assert dump.construct["Cell.own.OwnBackward.forward.0"] is None
    assert dump.construct["Tensor.__add__.0.forward"] is None
    given, got = (
        dump.data["Cell.own.OwnBackward.backward.0"][key][0] for key in ("input", "output")
    )
    np.testing.assert_array_equal(
        dump.array(got["data_name"]), dump.array(given["data_name"]) * 3.0
    )


#: of which nothing may be left when the step is over
OURS = (BackwardEntry, Call, OpenCall, StepRecorder, JsonDocuments)


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but(["digits"], ["digits", "gpt"]))
@pytest.mark.parametrize("task", thorough_but(["statistics"], ["statistics", "structure"]))
def test_no_object_of_a_step_outlives_it(debug, name, task):
    net, train = nets.build(name)
    debugger = debug(level="mix", task=task)

    def is_counted(kind):
        return kind is ms.Tensor or str(kind.__module__).startswith("probe.")

    def alive():
        gc.collect()
        kinds = Counter(type(thing) for thing in gc.get_objects())
        return {kind: number for kind, number in kinds.items() if is_counted(kind)}

    counts = [alive()]
    for step in range(4):
        debugger.start(net)
        train(step)
        debugger.stop()
        debugger.step()
        counts.append(alive())
    # other tests of this process may have left some
    assert [[count.get(kind, 0) for kind in OURS] for count in counts[1:]] == [
        [counts[0].get(kind, 0) for kind in OURS]
    ] * 4
    assert counts[2] == counts[3] == counts[4]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.proof
def test_a_thousand_steps_take_no_more_memory_than_without_probe(capsys):
    grown = {}
    for tool in ("bare", "probe"):
        done = processes.run(
            program("memory", tool, 1000),
            fresh="memory is counted",
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        grown[tool] = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        print(f"\n{grown}")
    assert grown["probe"]["memory"] - grown["bare"]["memory"] <= 2e6
    assert (grown["probe"]["objects"], grown["probe"]["files"], grown["probe"]["threads"]) == (
        0,
        0,
        0,
    )
