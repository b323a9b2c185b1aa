# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The law: losses, gradients, parameters and buffers are bitwise what they are without probe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import interference
import mindspore as ms
import numpy as np
import pytest

HERE = Path(__file__).parent
TRAININGS = [*interference.NETS, "lenet", "gpt", "digits"]


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_case_01_trainings_are_bitwise_equal(mode, capsys):
    command = [sys.executable, str(HERE / "equality.py")] + (["--asynchronous"] if mode == "asynchronous" else [])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        print(f"\n{mode}: {found['compared']} trainings, {found['tensors']} tensors, different: {found['different']}")
    assert found["different"] == []
    assert found["lost"] == []
    if mode == "synchronous":
        assert found["unsteady"] == []
    assert found["compared"] == 9 * (len(TRAININGS) - len(found["unsteady"]))


#: how many tensors of each net several calls use, all of which are recorded at L1
USED_TWICE = {
    "gated": 2,
    "four_times": 1,
    "norms": 1,
    "views": 4,
    "shared": 2,
    "loop": 1,
    "recomputed": 1,
    "half": 1,
}


@pytest.mark.parametrize("name", USED_TWICE)
def test_contributions_add_up_to_the_gradient_that_arrives(debug, name):
    """What a tensor's producer gets is the sum of what the calls that used it gave."""
    net, step = interference.NETS[name]()
    _, dump = debug.record(lambda: step(0), net, level="L1", task="tensor", summary_mode="md5")
    produced, used = {}, {}
    for call, entry in dump.data.items():
        forward = call.endswith(".forward")
        backward = dump.data.get(call[: -len("forward")] + "backward") if forward else None
        if not backward:
            continue
        results = [value for value in entry["output"] if is_tensor(value)]
        if len(results) == len(backward["input"]):
            for value, gradient in zip(results, backward["input"]):
                produced.setdefault(identity(value), []).append(gradient)
        arguments = [value for value in flat(entry["input_args"]) if is_tensor(value)]
        slots = list(flat(backward["output"]))
        for value, gradient in zip(arguments, slots) if len(arguments) == len(slots) else ():
            if gradient is not None:
                used.setdefault(identity(value), []).append(dump.array(gradient["data_name"]).astype(np.float64))
    checked = 0
    for key, arrivals in produced.items():
        if len(arrivals) != 1 or arrivals[0] is None or len(used.get(key, [])) < 2:
            continue  # ambiguous: another tensor has the same bytes
        total = dump.array(arrivals[0]["data_name"]).astype(np.float64)
        terms = used[key]
        largest = max(np.abs(term).max() for term in terms)
        unit = np.finfo(np.float16 if arrivals[0]["dtype"] == "Float16" else np.float32).eps
        np.testing.assert_allclose(sum(terms), total, rtol=0, atol=2 * unit * largest, err_msg=str(key))
        checked += 1
    assert checked >= USED_TWICE[name]


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value


def is_tensor(value):
    return isinstance(value, dict) and value.get("type") == "mindspore.Tensor" and value["dtype"].startswith("Float")


def identity(value):
    return value["md5"], tuple(value["shape"])


def test_an_identity_in_the_graph_is_found(monkeypatch):
    """The suite can fail: with one identity node, which is what other tools insert, gradients differ."""
    build = interference.NETS["gated"]
    net, step = build()
    expected = [gradient.asnumpy().tobytes() for gradient in step(0)[1]]
    net, step = build()
    block = net.blocks[1]
    block.register_backward_hook(lambda cell, given, got: None)
    found = [gradient.asnumpy().tobytes() for gradient in step(0)[1]]
    assert found != expected
    assert ms.get_context("mode") == ms.PYNATIVE_MODE
