# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The words start, stop and step: what is on disk after each, and what is installed in between."""

from __future__ import annotations

import json
import logging
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from probe import PrecisionDebugger, UsageError
from tests.support import processes
from tests.support.tensors import tensor
from tests.support.watched import is_watched


class Two(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(3, 4), nn.Dense(4, 2)

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))


X = tensor(np.arange(6.0).reshape(2, 3))


def test_a_step_gives_the_documents_with_their_headers(debug):
    net = Two()
    _, dump = debug.record(lambda: net(X), net, level="mix")
    assert dump.header.pop("run")["tool"] == "probe"
    assert dump.header == {
        "task": "statistics",
        "level": "mix",
        "framework": "mindspore",
        "dump_data_dir": None,
    }
    assert dump.data["Functional.tanh.0.forward"]["output"][0]["shape"] == [2, 4]
    assert list(dump.data["Functional.tanh.0.forward"]["input_args"][0]) == [
        "type",
        "dtype",
        "shape",
        "Max",
        "Min",
        "Mean",
        "Norm",
    ]
    assert dump.construct["Primitive.matmul.MatMul.0.forward"] == "Cell.first.Dense.forward.0"
    assert dump.construct["Cell.first.Dense.forward.0"] is None


def test_tensor_task_writes_the_arrays_it_names(debug):
    _, dump = debug.record(lambda: ops.exp(X), task="tensor")
    record = dump.data["Functional.exp.0.forward"]["output"][0]
    assert record["data_name"] == "Functional.exp.0.forward.output.0.npy"
    np.testing.assert_array_equal(dump.array(record["data_name"]), ops.exp(X).asnumpy())
    assert dump.header["dump_data_dir"] == str(dump.folder / "dump_tensor_data")


def test_structure_task_has_stacks_and_tree_but_no_data(debug):
    net = Two()
    _, dump = debug.record(lambda: net(X), net, task="structure", level="mix")
    assert dump.data == {}
    assert "Functional.tanh.0.forward" in dump.construct
    assert any("Functional.tanh.0.forward" in names for names, _ in dump.stack.values())


def test_extra_info_false_leaves_out_stack_and_construct(debug):
    _, dump = debug.record(lambda: ops.exp(X), extra_info=False)
    assert dump.stack is None and dump.construct is None


def test_segments_of_one_step_share_counters_and_each_stop_writes(debug):
    debugger = debug()
    debugger.start()
    ops.exp(X)
    debugger.stop()
    assert list(debug.dump().data) == ["Functional.exp.0.forward"]
    ops.exp(X)
    debugger.start()
    ops.exp(X)
    debugger.stop()
    assert list(debug.dump().data) == ["Functional.exp.0.forward", "Functional.exp.1.forward"]
    debugger.step()
    debugger.start()
    ops.exp(X)
    debugger.step()  # without stop
    assert list(debug.dump(1).data) == ["Functional.exp.0.forward"]
    assert len(debug.dump(0).data) == 2


def test_gradients_that_come_after_stop_are_recorded_until_step(debug):
    net = Two()
    debugger = debug(level="mix")

    def forward(x):
        debugger.start(net)
        y = net(x).sum()
        debugger.stop()
        return y

    ms.value_and_grad(forward, None, net.trainable_params())(X)
    debugger.step()
    dump = debug.dump()
    for name in (
        "Functional.tanh.0.backward",
        "Cell.first.Dense.backward.0",
        "Cell.first.Dense.parameters_grad.0",
        "Primitive.matmul.MatMul.1.backward",
    ):
        assert name in dump.data
    assert set(dump.data["Cell.first.Dense.parameters_grad.0"]) == {"weight", "bias"}


def test_start_and_step_work_on_the_class(debug):
    keep = debug()
    PrecisionDebugger.start()
    ops.exp(X)
    PrecisionDebugger.forward_backward_dump_end()
    assert "Functional.exp.0.forward" in debug.dump().data
    PrecisionDebugger.step()
    assert keep


def test_equal_settings_give_the_same_debugger_and_others_take_over(debug, tmp_path):
    first = debug()
    first.start()
    ops.exp(X)
    debug().stop()
    assert "Functional.exp.0.forward" in debug.dump().data
    first.step()
    second = debug(dump_path=str(tmp_path / "other"))
    second.start()
    ops.exp(X)
    debug()
    assert (tmp_path / "other" / "step0" / "rank" / "dump.json").exists()
    assert "closed" in repr(second)
    assert not is_watched(ops.exp)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"model": "net"}, "model is str"),
        ({"model": []}, "model is list"),
        ({"model": [1]}, "model is list"),
        ({"token_range": [0, 1]}, "token_range"),
        ({"rank_id": -1}, "rank_id -1"),
        ({"rank_id": True}, "rank_id True"),
    ],
)
def test_a_wrong_argument_of_start_is_named(debug, arguments, word):
    with pytest.raises(UsageError, match=word):
        debug().start(**arguments)


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_cells_need_a_model_at_the_first_start_only(debug, level):
    net = Two()
    debugger = debug(level=level)
    with pytest.raises(UsageError, match=r"debugger\.start\(model\)"):
        debugger.start()
    for _ in range(2):
        debugger.start(net)
        net(X)
        debugger.step()
    debugger.start()
    net(X)
    debugger.step()
    assert "Cell.first.Dense.forward.0" in debug.dump(2).data


def test_graph_mode_is_refused(debug):
    debugger = debug()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        with pytest.raises(UsageError, match="GRAPH_MODE"):
            debugger.start()
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_one_message_says_where_the_files_are_and_there_is_no_other(debug, caplog):
    caplog.set_level(logging.DEBUG, "probe")
    debug.record(lambda: ops.exp(X))
    assert caplog.messages == [f"step 0 is in {debug.dump_path / 'step0' / 'rank'}"]


def test_a_name_in_list_that_matched_nothing_is_warned_about_once(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    debugger = debug(list=["exp", "rleu"])
    for _ in range(3):
        debugger.start()
        ops.exp(X)
        debugger.step()
    (message,) = caplog.messages
    assert "rleu" in message and "exp" not in message.replace("rleu", "")


@pytest.mark.slow
def test_importing_probe_imports_nothing_heavy():
    code = (
        "import sys, probe; print([m for m in ('mindspore', 'numpy', 'yaml') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = processes.run(
        command, fresh="imports are counted", capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_a_process_that_ends_without_stop_writes_its_dump(tmp_path):
    code = f"""
import mindspore as ms, numpy as np
ms.set_context(mode=ms.PYNATIVE_MODE); ms.set_device("CPU")
from probe import PrecisionDebugger
PrecisionDebugger(dump_path={str(tmp_path / "dump")!r})
PrecisionDebugger.start()
ms.ops.exp(ms.Tensor(np.ones(2, np.float32)))
raise SystemExit(7)
"""
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert (
        "Functional.exp.0.forward"
        in json.loads((tmp_path / "dump/step0/rank/dump.json").read_text())["data"]
    )
