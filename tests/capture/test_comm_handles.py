# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Handles of asynchronous communication: outputs are read after wait(), and nothing is read before."""

from __future__ import annotations

import threading

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops
from mindspore.communication import comm_func
from mindspore.mint import distributed

from tests.support.collectives import Sent, install, numbers, recorded, tensor
from tests.support.dumps import Dump


def test_an_error_of_wait_reaches_the_training_and_is_in_the_entry(debug, monkeypatch):
    class Lost:
        def wait(self):
            raise RuntimeError("the peer is gone")

    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Lost()))

    def call():
        handle = distributed.irecv(tensor(), 1)
        with pytest.raises(RuntimeError, match="the peer is gone"):
            handle.wait()
        ops.relu(tensor())

    dump = recorded(debug, call)
    entry = dump.data["MintDistributed.irecv.0.forward"]
    assert entry["raised"] == "RuntimeError: the peer is gone"
    assert numbers(dump, entry["input_args"][0]) == [0.0, 1.0, 2.0, 3.0]
    assert "output" in dump.data["Functional.relu.0.forward"]


@pytest.mark.parametrize("begins", ["before the backward", "between two terms of a sum"])
def test_gradients_that_arrive_during_a_communication_are_right(debug, monkeypatch, begins):
    """As with reductions begun by hooks of the backward: nobody may look, sums are of terms read and copied."""
    buffer, handles = tensor(), []
    labels = Tensor([1], ms.int32)

    def begin(gradient=None):
        handles.append(distributed.irecv(buffer, 1))

    class Twice(nn.Cell):
        def construct(self, x):
            first, second = x * 2, x * 3
            if begins != "before the backward":
                first.register_hook(begin)  # the second's contribution to x has come by then
            return first + second

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.twice = Twice()

        def construct(self, x):
            loss = ops.cross_entropy(ops.softmax(self.twice(x)).reshape(1, 4), labels)
            if begins == "before the backward":
                begin()
            return loss

    net = Net()

    def dump(name, on_its_way):
        stand_in = comm_func.CommHandle(Sent(buffer) if on_its_way else None)
        monkeypatch.setattr(
            distributed, "irecv", lambda given, src: stand_in if on_its_way else None
        )
        debugger = debug(task="tensor", level="mix", dump_path=str(debug.path / name))
        debugger.start(net)
        gradient = ms.grad(net)(tensor(0.5))
        for handle in handles:
            if handle is not None:
                handle.wait()
        handles.clear()
        debugger.stop()
        debugger.step()
        return gradient.asnumpy().tolist(), Dump(debug.path / name / "step0" / "rank")

    monkeypatch.setattr(distributed, "irecv", lambda given, src: None)
    bare = ms.grad(net)(tensor(0.5)).asnumpy().tolist()
    handles.clear()
    gradient, expected = dump("expected", False)
    watched, seen = dump("seen", True)
    assert watched == gradient == bare
    backward = [name for name in expected.data if ".backward" in name]
    assert {"Functional.cross_entropy.0.backward", "Cell.twice.Twice.backward.0"} <= set(backward)
    assert expected.data["Cell.twice.Twice.backward.0"]["output"][0]["Max"] != 0
    for name in backward:
        assert seen.data[name] == expected.data[name]
    (name,) = seen.names("irecv")
    assert numbers(seen, seen.data[name]["output"][0]) == [7.0] * 4


def test_calls_of_two_threads_are_complete_while_one_of_them_communicates(debug, monkeypatch):
    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Sent(given)))
    calls, stop = 300, threading.Event()

    def communicate():
        while not stop.is_set():
            distributed.irecv(tensor(), 1).wait()

    def call():
        other = threading.Thread(target=communicate)
        other.start()
        try:
            for i in range(calls):
                ops.relu(tensor(i))
        finally:
            stop.set()
            other.join()

    dump = recorded(debug, call, "statistics")
    assert len(dump.names("irecv")) > 1
    for i in range(calls):
        entry = dump.data[f"Functional.relu.{i}.forward"]
        assert [entry[part][0]["Min"] for part in ("input_args", "output")] == [i, i]
    for name in dump.names("irecv"):
        assert dump.data[name]["input_args"][0]["Max"] == 3.0
        assert "output" in dump.data[name] or "pending" in dump.data[name]


def test_values_are_read_at_once_again_after_a_wait_that_raised(debug, monkeypatch):
    class Lost:
        def wait(self):
            raise RuntimeError("the peer is gone")

    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Lost()))
    debugger = debug(level="L1", journal="each")
    debugger.start()
    with pytest.raises(RuntimeError, match="gone"):
        distributed.irecv(tensor(), 1).wait()
    ops.relu(tensor(5.0))
    journal = (debug.dump_path / "step0" / "rank" / "dump.journal").read_bytes()
    debugger.stop()
    debugger.step()
    last = journal[journal.index(b"Functional.relu.0.forward") :]  # as it stands before stop()
    assert b'"Max": 8.0' in last
    assert b"null" not in last


def test_entries_are_in_the_dump_before_their_outputs_are_known(debug, monkeypatch):
    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Sent(given)))
    debugger = debug(level="L1")
    debugger.start()
    first, second = distributed.irecv(tensor(), 1), distributed.irecv(tensor(), 1)
    ops.relu(tensor(5.0))
    debugger.stop()
    dump = debug.dump()
    expected = [
        "MintDistributed.irecv.0.forward",
        "MintDistributed.irecv.1.forward",
        "Functional.relu.0.forward",
    ]
    assert list(dump.data) == expected
    assert dump.data[expected[2]]["output"] == [None]
    assert [name for names, _ in dump.stack.values() for name in names] == expected
    second.wait()
    first.wait()
    debugger.step()
    dump = debug.dump()
    assert list(dump.data) == expected
    assert dump.data[expected[2]]["output"][0]["Max"] == 8.0
    assert [dump.data[name]["output"][0]["Mean"] for name in expected[:2]] == [7.0, 7.0]


def test_calls_that_share_a_handle_are_all_completed_by_one_wait(debug, monkeypatch):
    shared = comm_func.CommHandle()
    install(monkeypatch, distributed, "irecv", lambda given, src: shared)
    install(monkeypatch, distributed, "batch_isend_irecv", lambda operations: [shared, shared])

    def call():
        distributed.irecv(tensor(1.0), 1)
        distributed.irecv(tensor(2.0), 1).wait()
        (handle, _) = distributed.batch_isend_irecv([])
        handle.wait()
        handle.wait()

    dump = recorded(debug, call, "statistics")
    assert [
        dump.data[f"MintDistributed.irecv.{i}.forward"]["output"][0]["Min"] for i in (0, 1)
    ] == [1.0, 2.0]
    assert dump.data["MintDistributed.batch_isend_irecv.0.forward"]["output"] == [[]]
