# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Collectives without a kernel on CPU: their wrappers, with stand-ins that return and fail as the real ones do."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import threading

import mindspore as ms
import numpy as np
import pytest
import yaml
from mindspore import Tensor, nn, ops
from mindspore.communication import comm_func
from mindspore.mint import distributed

from tests.support.dumps import Dump

SECTIONS = {
    "mint.distributed": "MintDistributed",
    "communication.comm_func": "Distributed",
    "ops.communication": "Distributed",
}
#: they bring up communication, or tell of it
MANAGEMENT = frozenset(
    "init_process_group destroy_process_group get_rank get_world_size new_group get_backend get_global_rank "
    "get_process_group_ranks get_group_rank is_available is_initialized set_comm_ops_inplace".split()
)


def module_of(section):
    try:
        return importlib.import_module(f"mindspore.{section}")
    except ImportError:
        pytest.skip(f"this MindSpore has no mindspore.{section}")


def listed():
    with open("support_ops.yaml", encoding="utf-8") as file:
        return yaml.safe_load(file)


@pytest.mark.parametrize("section", SECTIONS)
def test_every_collective_is_on_the_list(section, monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)
    module = module_of(section)
    functions = {name for name in module.__all__ if not inspect.isclass(getattr(module, name))}
    assert functions - MANAGEMENT - {*listed()[section]} == set()


def tensor(start=0.0):
    return Tensor(np.arange(start, start + 4, dtype=np.float32))


def write(value, number):
    """Write a number into a tensor, or into every one of a list, as a communication would."""
    for item in value if isinstance(value, (list, tuple)) else [value]:
        item[...] = number


class Sent:
    """What is on its way: as MindSpore's own handles, it is there when it was waited for."""

    def __init__(self, target):
        self.target = target

    def wait(self):
        write(self.target, 7.0)


#: in place: function -> arguments, and which of them it writes
IN_PLACE = {
    "all_gather_into_tensor": (lambda: (tensor(), tensor(4)), 0),
    "all_gather_into_tensor_uneven": (lambda: (tensor(), tensor(4), [2, 2]), 0),
    "all_to_all": (lambda: ([tensor(), tensor(2)], [tensor(4), tensor(6)]), 0),
    "all_to_all_single": (lambda: (tensor(), tensor(4)), 0),
    "reduce": (lambda: (tensor(), 0), 0),
    "reduce_scatter": (lambda: (tensor(), [tensor(4), tensor(6)]), 0),
    "reduce_scatter_tensor": (lambda: (tensor(), tensor(4)), 0),
    "reduce_scatter_tensor_uneven": (lambda: (tensor(), tensor(4), [2, 2]), 0),
    "recv": (lambda: (tensor(), 1), 0),
    "irecv": (lambda: (tensor(), 1), 0),
}
#: these have no async_op: they always give a handle, or never
ALWAYS, NEVER = ("irecv", "isend"), ("recv", "send")


def install(monkeypatch, module, name, function):
    if not hasattr(module, name):
        pytest.skip(f"this MindSpore has no {module.__name__}.{name}")
    function.__name__ = name
    monkeypatch.setattr(module, name, function)


def numbers(dump, record):
    return dump.array(record["data_name"]).tolist()


def arrays(dump, value):
    return [numbers(dump, item) for item in value] if isinstance(value, list) else numbers(dump, value)


def lists(value):
    return [item.asnumpy().tolist() for item in value] if isinstance(value, list) else value.asnumpy().tolist()


def recorded(debug, call, task="tensor", level="L1"):
    """Make a call in a step of its own and return the dump; the call may raise, and waits for its own handles."""
    debugger = debug(task=task, level=level)
    debugger.start(nn.SequentialCell(nn.ReLU()))
    try:
        call()
    finally:
        debugger.stop()
        debugger.step()
    return Dump(debug.dump_path / "step0" / "rank")


@pytest.mark.parametrize("section", ["mint.distributed", "ops.communication"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_what_is_changed_in_place_is_the_output(debug, monkeypatch, section, name):
    module = module_of(section)
    make, place = IN_PLACE[name]
    arguments = make()
    before = lists(arguments[place])

    def stand_in(*args, group=None, async_op=False):
        if async_op or name in ALWAYS:
            return comm_func.CommHandle(Sent(args[place]))
        write(args[place], 7.0)
        return None

    install(monkeypatch, module, name, stand_in)

    def call():
        handle = getattr(module, name)(*arguments, **({} if name in NEVER + ALWAYS else {"async_op": True}))
        if handle is None:
            return
        between = ops.relu(tensor(-1.0))
        assert lists(arguments[place]) == before  # nobody has waited in our place
        handle.wait()
        assert between.asnumpy().tolist() == [0.0, 0.0, 1.0, 2.0]

    dump = recorded(debug, call)
    entry = dump.data[f"{SECTIONS[section]}.{name}.0.forward"]
    assert arrays(dump, entry["input_args"][place]) == before
    assert set(np.ravel(arrays(dump, entry["output"][place]))) == {7.0}
    assert next(iter(dump.data)) == f"{SECTIONS[section]}.{name}.0.forward"
    if name not in NEVER:
        relu = dump.data["Functional.relu.0.forward"]
        assert numbers(dump, relu["output"][0]) == [0.0, 0.0, 1.0, 2.0]
        assert not hasattr(comm_func.CommHandle.wait, "__wrapped__")


@pytest.mark.parametrize(
    "name", ["all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single_with_output_shape"]
)
@pytest.mark.parametrize("waits", [True, False])
def test_a_result_beside_a_handle_is_recorded_when_it_was_waited_for(debug, monkeypatch, name, waits):
    made = []

    def stand_in(given, group=None, async_op=False):
        result = given * 1.0
        made.append(result)
        return result, comm_func.CommHandle(Sent(result)) if async_op else None

    install(monkeypatch, comm_func, name, stand_in)

    def call():
        result, handle = getattr(comm_func, name)(tensor(), async_op=waits)
        assert result is made[0]
        if waits:
            handle.wait()

    dump = recorded(debug, call)
    entry = dump.data[f"Distributed.{name}.0.forward"]
    assert numbers(dump, entry["input_args"][0]) == [0.0, 1.0, 2.0, 3.0]
    assert numbers(dump, entry["output"][0]) == ([7.0] * 4 if waits else [0.0, 1.0, 2.0, 3.0])
    assert entry["output"][1] is None


@pytest.mark.parametrize("name", ["reduce", "scatter_tensor", "gather_into_tensor", "broadcast", "recv"])
def test_a_result_alone_is_the_output(debug, monkeypatch, name):
    install(monkeypatch, comm_func, name, lambda given, *args, **kwargs: given * 2.0)
    dump = recorded(debug, lambda: getattr(comm_func, name)(tensor(), 0))
    assert numbers(dump, dump.data[f"Distributed.{name}.0.forward"]["output"][0]) == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    "name", ["send", "isend", "recv", "all_to_all_v_c", "reduce", "barrier", "broadcast_object_list"]
)
def test_one_that_fails_says_so_and_leaves_the_next_alone(debug, monkeypatch, section, name):
    module = module_of(section)

    def stand_in(*args, **kwargs):
        raise RuntimeError("The kernel DistCommSend unregistered.")

    install(monkeypatch, module, name, stand_in)

    def call():
        with pytest.raises(RuntimeError, match="unregistered"):
            getattr(module, name)(tensor(), 1)
        ops.relu(tensor())

    dump = recorded(debug, call)
    entry = dump.data[f"{SECTIONS[section]}.{name}.0.forward"]
    assert entry["raised"] == "RuntimeError: The kernel DistCommSend unregistered."
    assert "output" not in entry
    assert "Functional.relu.0.forward" in dump.data


def test_waiting_that_fails_is_the_trainings_error_and_stands_in_the_entry(debug, monkeypatch):
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


def test_point_to_point_operations_are_described_and_land_together(debug, monkeypatch):
    def stand_in(operations):
        return [comm_func.CommHandle(Sent([item.tensor for item in operations if name_of(item) == "irecv"]))]

    def name_of(operation):
        return getattr(operation.op, "__name__", operation.op)

    install(monkeypatch, distributed, "batch_isend_irecv", stand_in)
    before = distributed.isend
    received = tensor()

    def call():
        # what it is called now and what it was called before start() are both taken for the real one
        operations = [distributed.P2POp(distributed.isend, tensor(4), 1), distributed.P2POp(before, tensor(4), 1)]
        operations.append(distributed.P2POp("irecv", received, 1))
        (handle,) = distributed.batch_isend_irecv(operations)
        handle.wait()

    dump = recorded(debug, call)
    entry = dump.data["MintDistributed.batch_isend_irecv.0.forward"]
    described = entry["input_args"][0]
    assert [item["op"] for item in described] == ["isend", "isend", "irecv"]
    assert [item["class_type"] for item in described] == ["mindspore.mint.distributed.P2POp"] * 3
    assert [item["peer"] for item in described] == [1, 1, 1]
    assert [item["tag"] for item in described] == [0, 0, 0]
    assert numbers(dump, described[2]["tensor"]) == [0.0, 1.0, 2.0, 3.0]
    assert numbers(dump, entry["output"][0][2]["tensor"]) == [7.0] * 4
    assert numbers(dump, entry["output"][0][0]["tensor"]) == [4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize("task", ["statistics", "structure", "nan_check"])
def test_other_tasks_follow_handles_too(debug, monkeypatch, task):
    target = tensor()

    class Spoiled(Sent):
        def wait(self):
            write(self.target, float("nan"))

    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Spoiled(given)))

    def call():
        handle = distributed.irecv(target, 1)
        ops.relu(tensor())
        handle.wait()
        ops.exp(tensor())

    dump = recorded(debug, call, task, "mix" if task == "structure" else "L1")
    name = "MintDistributed.irecv.0.forward"
    if task == "structure":
        assert dump.data == {}
        assert name in dump.stack["0"][0]
    else:
        assert dump.data[name]["input_args"][0]["Max"] == 3.0
        assert dump.data[name]["output"][0]["nan_count"] == 4
        assert ("Functional.exp.0.forward" in dump.data) == (task == "statistics")


@pytest.mark.parametrize("begins", ["before the backward", "between two terms of a sum"])
def test_gradients_that_arrive_while_something_is_on_its_way_are_right(debug, monkeypatch, begins):
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
        monkeypatch.setattr(distributed, "irecv", lambda given, src: stand_in if on_its_way else None)
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


def test_two_threads_of_which_one_communicates_lose_nothing(debug, monkeypatch):
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


def test_after_a_wait_that_failed_values_are_looked_at_again(debug, monkeypatch):
    class Lost:
        def wait(self):
            raise RuntimeError("the peer is gone")

    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Lost()))
    debugger = debug(level="L1")
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


def test_entries_stand_in_the_dump_while_their_numbers_are_awaited(debug, monkeypatch):
    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Sent(given)))
    debugger = debug(level="L1")
    debugger.start()
    first, second = distributed.irecv(tensor(), 1), distributed.irecv(tensor(), 1)
    ops.relu(tensor(5.0))
    debugger.stop()
    dump = debug.dump()
    expected = ["MintDistributed.irecv.0.forward", "MintDistributed.irecv.1.forward", "Functional.relu.0.forward"]
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


def test_one_handle_of_several_calls_and_one_given_twice(debug, monkeypatch):
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
    assert [dump.data[f"MintDistributed.irecv.{i}.forward"]["output"][0]["Min"] for i in (0, 1)] == [1.0, 2.0]
    assert dump.data["MintDistributed.batch_isend_irecv.0.forward"]["output"] == [[]]


LAUNCHED = """
import os, signal, sys
import mindspore as ms
from mindspore import Tensor, ops
from probe import PrecisionDebugger
ms.set_device("CPU")
debugger = PrecisionDebugger(config_path=sys.argv[3], dump_path=sys.argv[1])
original = ops.relu
debugger.start()
print(ops.relu is original)
ops.relu(Tensor([1.0]))
debugger.stop()
if sys.argv[2] == "again":
    debugger.start()
    ops.exp(Tensor([0.0]))
if sys.argv[2] == "step":
    debugger.step()
os.kill(os.getpid(), signal.SIGKILL)
"""


def launched(tmp_path, how, rank=()):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"rank": rank}))
    environment = {**os.environ, "RANK_SIZE": "2", "RANK_ID": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LAUNCHED, str(tmp_path / "dump"), how, str(config)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("how", ["stopped", "again", "step"])
def test_without_communication_a_launched_process_has_the_rank_it_was_given(tmp_path, how):
    assert launched(tmp_path, how) == ["False"]
    if how != "step":
        command = [sys.executable, "-m", "probe", "recover", str(tmp_path / "dump")]
        subprocess.run(command, capture_output=True, text=True, check=True)
    assert os.listdir(tmp_path / "dump" / "step0") == ["rank1"]
    dump = Dump(tmp_path / "dump" / "step0" / "rank1")
    names = ["Functional.relu.0.forward"] + ["Functional.exp.0.forward"] * (how == "again")
    assert list(dump.data) == names
    assert sorted(os.listdir(dump.folder)) == ["construct.json", "dump.json", "stack.json"]
    assert [name for some, _ in dump.stack.values() for name in some] == names


def test_a_launched_process_that_is_not_wanted_leaves_nothing(tmp_path):
    assert launched(tmp_path, "step", [0]) == ["True"]
    assert not (tmp_path / "dump").exists()


def test_a_folder_of_the_ranks_name_with_somebody_elses_file_takes_the_dump(tmp_path):
    folder = tmp_path / "dump" / "step0" / "rank1"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    launched(tmp_path, "step")
    assert os.listdir(tmp_path / "dump" / "step0") == ["rank1"]
    assert list(Dump(folder).data) == ["Functional.relu.0.forward"]
    assert (folder / "notes.txt").read_text() == "mine"
