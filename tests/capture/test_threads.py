# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls of several threads: none is lost, none is taken for another's."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from mindspore import ops

from tests.support.tensors import tensor

X = tensor(np.arange(6.0).reshape(2, 3))


def test_calls_of_four_threads_are_each_recorded_once(debug):
    debugger = debug(extra_info=True)
    debugger.start()
    failures = []

    def work(value):
        try:
            for _ in range(50):
                ops.exp(ops.tanh(tensor([value])))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(0.1 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    debugger.stop()
    data = debug.dump().data
    assert not failures
    assert (
        len([name for name in data if ".exp." in name])
        == len([name for name in data if ".tanh." in name])
        == 200
    )
    assert all(data[f"Functional.exp.{i}.forward"]["output"] for i in range(200))


def test_after_a_call_that_raises_every_thread_still_records(debug):
    debugger = debug()
    debugger.start()

    def work():
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            ops.concat((X, X), axis=7)
        ops.exp(X)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work()
    debugger.stop()
    data = debug.dump().data
    assert len([name for name in data if ".exp." in name]) == 4
    assert len([name for name in data if "raised" in data[name]]) == 4


def test_a_call_is_recorded_while_another_thread_is_inside_a_call(debug, monkeypatch):
    entered, leave = threading.Event(), threading.Event()

    def slow(x):
        entered.set()
        assert leave.wait(600)
        return ops.tanh(x)

    monkeypatch.setattr(ops, "relu", slow)
    debugger = debug()
    debugger.start()
    thread = threading.Thread(target=lambda: ops.relu(X))
    thread.start()
    assert entered.wait(600)
    ops.exp(X)  # while the other thread is inside a call
    leave.set()
    thread.join()
    debugger.stop()
    assert sorted(debug.dump().data) == ["Functional.exp.0.forward", "Functional.relu.0.forward"]
