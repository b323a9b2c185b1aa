# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Collectives without a kernel on CPU: their wrappers, with stand-ins that return and fail as the real ones do."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest
import yaml
from mindspore import ops
from mindspore.communication import comm_func
from mindspore.mint import distributed

from tests.support.collectives import Sent, arrays, install, lists, numbers, recorded, tensor, write

pytestmark = pytest.mark.medium

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


@pytest.mark.parametrize("section", ["mint.distributed", "ops.communication"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_tensor_that_a_collective_changes_is_its_output(debug, monkeypatch, section, name):
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
        handle = getattr(module, name)(
            *arguments, **({} if name in NEVER + ALWAYS else {"async_op": True})
        )
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
    "name",
    [
        "all_reduce",
        "all_gather_into_tensor",
        "reduce_scatter_tensor",
        "all_to_all_single_with_output_shape",
    ],
)
@pytest.mark.parametrize("waits", [True, False])
def test_a_result_beside_a_handle_is_recorded_when_it_was_waited_for(
    debug, monkeypatch, name, waits
):
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


@pytest.mark.parametrize(
    "name", ["reduce", "scatter_tensor", "gather_into_tensor", "broadcast", "recv"]
)
def test_a_result_without_a_handle_is_the_output(debug, monkeypatch, name):
    install(monkeypatch, comm_func, name, lambda given, *args, **kwargs: given * 2.0)
    dump = recorded(debug, lambda: getattr(comm_func, name)(tensor(), 0))
    assert numbers(dump, dump.data[f"Distributed.{name}.0.forward"]["output"][0]) == [
        0.0,
        2.0,
        4.0,
        6.0,
    ]


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    "name",
    ["send", "isend", "recv", "all_to_all_v_c", "reduce", "barrier", "broadcast_object_list"],
)
def test_a_collective_that_raises_has_an_entry_with_its_error_and_the_next_call_is_recorded(
    debug, monkeypatch, section, name
):
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


def test_point_to_point_operations_are_described_and_have_their_outputs_after_one_wait(
    debug, monkeypatch
):
    def stand_in(operations):
        return [
            comm_func.CommHandle(
                Sent([item.tensor for item in operations if name_of(item) == "irecv"])
            )
        ]

    def name_of(operation):
        return getattr(operation.op, "__name__", operation.op)

    install(monkeypatch, distributed, "batch_isend_irecv", stand_in)
    before = distributed.isend
    received = tensor()

    def call():
        # what it is called now and what it was called before start() are both taken for the real one
        operations = [
            distributed.P2POp(distributed.isend, tensor(4), 1),
            distributed.P2POp(before, tensor(4), 1),
        ]
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
def test_every_task_reads_outputs_after_the_wait(debug, monkeypatch, task):
    target = tensor()

    class Spoiled(Sent):
        def wait(self):
            write(self.target, float("nan"))

    install(
        monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(Spoiled(given))
    )

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
