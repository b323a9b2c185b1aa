# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Choosing what is recorded, and when: names, steps, tokens, functions of one's own, settings that are edited."""

from __future__ import annotations

import json
import logging
import os
import types

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger, SettingsError, UsageError
from tests.support import nets
from tests.support.tensors import tensor

X = tensor([[1.0, -2.0], [3.0, 0.5]])


# -- names ------------------------------------------------------------------------------------------------------


def test_list_takes_regular_expressions(debug):
    _, dump = debug.record(lambda: (ops.exp(X), ops.tanh(X), ops.exp(X)), list=[r"name-regex(^Functional\.exp\.[1-9])"])
    assert list(dump.data) == ["Functional.exp.1.forward"]


def test_exclude_wins_over_list(debug):
    _, dump = debug.record(
        lambda: (ops.exp(X), ops.tanh(X), ops.relu(X)), list=["Functional"], exclude=["tanh", "name-regex(rel.)"]
    )
    assert list(dump.data) == ["Functional.exp.0.forward"]


def test_exclude_of_a_cell_closes_what_runs_inside_and_its_gradients(debug):
    net, train = nets.build("digits")
    debugger = debug(level="mix", exclude=["Cell.conv"])
    debugger.start(net)
    train(0)
    debugger.step()
    dump = debug.dump()
    assert dump.names("Cell.")
    assert not dump.names("Cell.conv")
    assert not [name for name, cell in dump.construct.items() if "Cell.conv" in f"{name} {cell}"]


@pytest.mark.parametrize("key", ["list", "exclude", "tensor_list"])
def test_a_broken_regular_expression_is_named(debug, key):
    with pytest.raises(SettingsError, match=rf"statistics\.{key}: 'name-regex\(\[\)' is not allowed.*name-regex"):
        debug(**{key: ["name-regex([)"]})


def test_what_exclude_never_met_is_said(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debug.record(lambda: ops.exp(X), exclude=["no_such_call"])
    assert any("no_such_call" in message for message in caplog.messages)


# -- steps ------------------------------------------------------------------------------------------------------


def test_every_third_step_and_some_others(debug):
    debugger = debug(step=["every 3", 1, "7-8"])
    for _ in range(10):
        debugger.start()
        ops.exp(X)
        debugger.stop()
        debugger.step()
    assert sorted(int(path.name[4:]) for path in debug.dump_path.iterdir()) == [0, 1, 3, 6, 7, 8, 9]


@pytest.mark.parametrize("wrong", ["every 0", "every", "every -2", "each 3"])
def test_a_wrong_step_says_how_every_is_written(debug, wrong):
    with pytest.raises(SettingsError, match=r'step: .*"every 100"'):
        debug(step=[wrong])


# -- tokens -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_token_range_records_these_forwards_of_the_model(debug, level):
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    debugger = debug(level=level)
    call = nn.Cell.__call__
    debugger.start(net, token_range=[1, 2])
    x = X
    for token in range(5):
        x = net(ops.exp(x) if token == 1 else ops.tanh(x) if token == 2 else ops.sin(x))
    debugger.stop()
    assert nn.Cell.__call__ is call
    debugger.step()
    dump = debug.dump()
    if level != "L1":
        assert len(dump.names("Cell.0.Dense.forward")) == 2
    if level != "L0":
        assert len(dump.names("Primitive.matmul")) == 2
        assert dump.names("tanh")  # between the first forward and the last
        assert not dump.names("sin")
        assert not dump.names("exp")


def test_a_forked_child_never_writes_in_a_token_range(debug):
    net = nn.SequentialCell(nn.ReLU())
    debugger = debug(level="L0", task="tensor")
    debugger.start(net, token_range=[1, 1])
    net(X)
    child = os.fork()
    if not child:
        net(X)  # the second forward: a parent would record it
        os._exit(0)
    os.waitpid(child, 0)
    assert not list(debug.dump_path.rglob("*.npy"))
    net(X)
    debugger.step()
    assert debug.dump().names("Cell.0.ReLU.forward")


@pytest.mark.parametrize("wrong", [[2, 1], [-1, 2], [1], 3, ["1", "2"], [True, 2]])
def test_a_wrong_token_range_is_named(debug, wrong):
    with pytest.raises(UsageError, match=r"start\(\): token_range .* Allowed: \[a, b\]"):
        debug(level="L0").start(nn.SequentialCell(nn.ReLU()), token_range=wrong)


def test_token_range_needs_the_model(debug):
    with pytest.raises(UsageError, match="token_range needs the model"):
        debug().start(token_range=[0, 1])


# -- functions of one's own -------------------------------------------------------------------------------------


class Mine:
    """Functions that a user may want to see."""

    @staticmethod
    def static(x):
        return x * 2

    @classmethod
    def of_the_class(cls, x):
        return x * 3

    def method(self, x, scale=1.0):
        return ops.exp(x) * scale


def test_functions_of_a_module_and_of_a_class(debug):
    module = types.ModuleType("mine")
    module.attention = lambda q, k: ops.softmax(ops.matmul(q, k))
    functions = [(module, "attention"), (Mine, "static"), (Mine, "of_the_class"), (Mine, "method")]
    before = [vars(owner)[name] for owner, name in functions]
    debugger = debug()
    debugger.register_custom_api(module, "attention")
    for name in ("static", "of_the_class", "method"):
        PrecisionDebugger.register_custom_api(Mine, name, api_prefix="My")

    def work(x):
        y = module.attention(x, x) + Mine.static(x) + Mine.of_the_class(x) + Mine().method(x, scale=0.5)
        return y.sum()

    bare = ms.grad(work)(X).asnumpy()
    debugger.start()
    watched = ms.grad(work)(X).asnumpy()
    debugger.stop()
    assert [vars(owner)[name] for owner, name in functions] == before
    assert watched.tobytes() == bare.tobytes()
    debugger.restore_custom_api(Mine, "method")
    debugger.start()
    work(X)
    debugger.step()
    dump = debug.dump()
    for name in ("mine.attention.0", "My.static.0", "My.of_the_class.0", "My.method.0"):
        assert f"{name}.forward" in dump.data
        assert f"{name}.backward" in dump.data
    assert len(dump.data["mine.attention.0.forward"]["input_args"]) == 2
    assert dump.data["My.method.0.forward"]["input_kwargs"]["scale"]["value"] == 0.5
    assert "My.static.1.forward" in dump.data
    assert "My.method.1.forward" not in dump.data
    assert "Functional.exp.0.forward" in dump.data  # of the second run: in the first it was inside one of ours


def test_wrong_functions_are_named(debug):
    debugger = debug()
    with pytest.raises(UsageError, match="has no function 'nothing'"):
        debugger.register_custom_api(Mine, "nothing")
    with pytest.raises(UsageError, match="api_prefix 3"):
        debugger.register_custom_api(Mine, "static", 3)
    with pytest.raises(UsageError, match="was not registered"):
        debugger.restore_custom_api(types.ModuleType("mine"), "static")


# -- settings that are edited -----------------------------------------------------------------------------------


def test_recording_is_switched_on_and_off_and_survives_a_broken_edit(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(dump_enable=False)
    path = debug.path / "config.json"
    written = []

    def edit(text):
        stamp = os.stat(path).st_mtime_ns
        path.write_text(text)
        os.utime(path, ns=(stamp + 10**9, stamp + 10**9))

    settings = json.loads(path.read_text())
    edits = {
        1: {**settings, "dump_enable": True},
        3: {**settings, "dump_enable": False},
        5: "{broken",
        7: {**settings, "dump_enable": True, "level": "mix"},
    }
    for step in range(9):
        if step in edits:
            edit(edits[step] if isinstance(edits[step], str) else json.dumps(edits[step]))
        debugger.start(nn.SequentialCell(nn.ReLU()))
        ops.exp(X)
        debugger.stop()
        debugger.step()
        written.append((debug.dump_path / f"step{step}").exists())
    assert written == [False, True, True, False, False, False, False, True, True]
    assert debug.dump(1).header["level"] == "L1"
    assert debug.dump(7).header["level"] == "mix"
    messages = [message for message in caplog.messages if "edited" in message]
    assert len(messages) == 4
    assert "line 1, column 2" in messages[2]


# -- when numbers are taken -------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_async_dump_says_the_same(debug, task, tmp_path):
    def run(path, **settings):
        ms.set_seed(1)
        net, train = nets.build("lenet")  # no BatchNorm: its kernel leaves two of its outputs unwritten
        debugger = debug(task=task, level="mix", dump_path=str(tmp_path / path), **settings)
        debugger.start(net)
        loss, _ = train(0)
        debugger.step()
        debugger._session.close()
        folder = tmp_path / path / "step0" / "rank"
        files = sorted(item.name for item in folder.rglob("*.npy"))
        arrays = [np.load(folder / "dump_tensor_data" / name).tobytes() for name in files]
        data = json.loads((folder / "dump.json").read_text(), parse_float=lambda text: f"{float(text):.5e}")["data"]
        return list(data), data, files, arrays, loss.asnumpy().tobytes()

    later, now = run("later", async_dump=True), run("now")
    assert later == now  # numbers to six digits: a copy may lie in memory in another order


def test_async_dump_is_refused_with_md5(debug):
    with pytest.raises(SettingsError, match=r'async_dump: True.*summary_mode is or has "md5"'):
        debug(async_dump=True, summary_mode="md5")


def test_precision_is_accepted(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    for precision in ("low", "high"):
        debug(precision=precision)
    assert not caplog.messages
    with pytest.raises(SettingsError, match=r"precision: 'hihg'.*Did you mean 'high'"):
        debug(precision="hihg")


def _edit(path, **changes):
    stamp = os.stat(path).st_mtime_ns
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    os.utime(path, ns=(stamp + 10**9, stamp + 10**9))


@pytest.mark.parametrize(
    "wrong",
    [{"level": "mix"}, {"task": "structure"}, {"support_ops": "/nonexistent"}, {"level": "debug", "task": "structure"}],
)
def test_an_edit_that_cannot_be_used_never_reaches_the_training(debug, caplog, wrong):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(level="L1")
    for step in range(3):
        if step == 1:
            _edit(debug.path / "config.json", **wrong)
        debugger.start()  # without the model, which mix would need
        ops.exp(X)
        debugger.stop()
        debugger.step()
    assert [debug.dump(step).header["level"] for step in range(3)] == ["L1"] * 3
    assert sum("the old ones hold" in message for message in caplog.messages) == 1


def test_an_edit_to_another_runs_folder_is_refused_and_the_run_goes_on(debug, caplog, tmp_path):
    caplog.set_level(logging.WARNING, "probe")
    other = tmp_path / "other" / "step1" / "rank"
    other.mkdir(parents=True)
    (other / "dump.json").write_text("{}")
    debugger = debug()
    for step in range(2):
        if step == 1:
            _edit(debug.path / "config.json", dump_path=str(tmp_path / "other"))
        debugger.start()
        ops.exp(X)
        debugger.step()
    assert debug.dump(1).names("exp")
    assert any("holds the dump of another run" in message for message in caplog.messages)


def test_made_again_after_an_edit_it_is_the_same_run(debug):
    debugger = debug()
    for step in range(3):
        if step:
            _edit(debug.path / "config.json", dump_enable=step == 2)
        debugger = PrecisionDebugger(config_path=str(debug.path / "config.json"))
        debugger.start()
        ops.exp(X)
        debugger.step()
    assert sorted(path.name for path in debug.dump_path.iterdir()) == ["step0", "step2"]


def test_registered_functions_outlive_the_debugger_and_can_be_named_in_a_scope(debug):
    debug().register_custom_api(Mine, "static", "Old")
    debugger = debug(level="L1", task="tensor", scope=["My.static.1.forward", "My.static.1.forward"])
    debugger.register_custom_api(Mine, "static", "My")
    debugger.start()
    for _ in range(3):
        Mine.static(X)
    debugger.step()
    assert list(debug.dump().data) == ["My.static.1.forward"]


def test_classes_and_cells_are_no_functions_of_ones_own(debug):
    net = nn.SequentialCell(nn.ReLU())
    net.act = nn.ReLU()
    module = types.ModuleType("mine")
    module.Kind = type("Kind", (), {})
    for owner, name in ((module, "Kind"), (net, "act")):
        with pytest.raises(UsageError, match="has no function"):
            debug().register_custom_api(owner, name)
