# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The memory of tensors in their records, and tensors that share memory without a view."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.communication import comm_func
from mindspore.mint import distributed

from tests.support.collectives import install, tensor
from tests.support.nets import build


def inputs(dump, name):
    return dump.data[name]["input_args"]


def findings(debug):
    path = debug.dump_path / "step0" / "rank" / "findings.jsonl"
    return (
        [json.loads(line)["sentence"] for line in path.read_text().splitlines()]
        if path.exists()
        else []
    )


def test_views_have_the_number_of_their_memory_with_stride_and_offset(debug):
    def run():
        x = ops.exp(Tensor(np.ones((2, 3), np.float32)))
        return ops.relu(x), ops.abs(x[1]), ops.tanh(x.T)

    _, dump = debug.record(run, storage=True)
    whole, row, turned = (
        inputs(dump, f"Functional.{name}.0.forward")[0] for name in ("relu", "abs", "tanh")
    )
    assert (whole["stride"], whole["storage_offset"]) == ([3, 1], 0)
    assert (row["stride"], row["storage_offset"]) == ([1], 3)
    assert turned["stride"] == [1, 3]
    assert whole["storage"] == row["storage"] == turned["storage"]
    assert dump.data["Functional.relu.0.forward"]["output"][0]["storage"] != whole["storage"]
    assert findings(debug) == []


def test_records_have_no_memory_by_default(debug):
    _, dump = debug.record(lambda: ops.relu(Tensor([1.0])))
    assert "storage" not in inputs(dump, "Functional.relu.0.forward")[0]


def test_an_output_in_the_memory_of_another_tensor_is_told(debug, monkeypatch):
    kept = ops.exp(Tensor(np.ones((2, 3), np.float32)))

    def wrong(x):
        return kept.view(6)[2:4]

    monkeypatch.setattr(ops, "sinc", wrong)
    debug.record(lambda: (ops.relu(kept), ops.sinc(Tensor([2.0]))), storage=True)
    assert findings(debug) == [
        "Functional.relu.0.forward and Functional.sinc.0.forward.output.0 share memory although no view joins them"
    ]


def test_operations_in_place_share_memory_with_their_input(debug):
    def run():
        x = ops.exp(Tensor(np.ones((2, 3), np.float32)))
        y = x.view(-1)
        y.add_(1)
        ops.relu(x)
        return x

    debug.record(run, storage=True)
    assert findings(debug) == []


@pytest.mark.medium
@pytest.mark.parametrize("name", ["lenet", "gpt", "digits"])
def test_trainings_have_no_finding_and_keep_their_bits(debug, name):
    model, train = build(name)
    bare = train(0)[0].asnumpy()
    model, train = build(name)
    (loss, *_), dump = debug.record(lambda: train(0), model, level="mix", storage=True)
    assert loss.asnumpy().tobytes() == bare.tobytes()
    assert findings(debug) == []
    forward = [
        entry["output"]
        for name, entry in dump.data.items()
        if ".forward" in name and "output" in entry
    ]
    records = [
        item for output in forward for item in output if isinstance(item, dict) and "dtype" in item
    ]
    assert len(records) > 15
    assert all(
        "storage" in record or record.get("unwritten") or 0 in record["shape"] for record in records
    )


def test_records_of_a_device_have_their_memory_too(debug):
    _, dump = debug.record(lambda: ops.relu(Tensor([1.0, 2.0])), storage=True, measure="device")
    assert inputs(dump, "Functional.relu.0.forward")[0]["storage"] == 0


@pytest.mark.parametrize("writes", ["in flight", "after the wait", "elsewhere", "nothing"])
def test_a_buffer_that_is_written_while_in_flight_is_told(debug, monkeypatch, writes):
    buffer, other = tensor() * 1, tensor() * 1
    sent = type("Sent", (), {"wait": lambda self: None})
    install(monkeypatch, distributed, "irecv", lambda given, src: comm_func.CommHandle(sent()))

    def run():
        handle = distributed.irecv(buffer, 1)
        if writes == "after the wait":
            handle.wait()
        if writes == "nothing":
            ops.relu(buffer)
        else:
            ops.assign(other if writes == "elsewhere" else buffer, tensor(5.0))
        handle.wait()

    debug.record(run, storage=True)
    told = "the memory of MintDistributed.irecv.0.forward was written while in flight: by Functional.assign.0.forward"
    assert findings(debug) == ([told] if writes == "in flight" else [])
