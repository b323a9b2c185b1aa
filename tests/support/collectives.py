# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Stand-ins for collectives that have no kernel on CPU, and the dump of a call of one."""

from __future__ import annotations

import numpy as np
import pytest
from mindspore import Tensor, nn

from tests.support.dumps import Dump


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


def install(monkeypatch, module, name, function):
    if not hasattr(module, name):
        pytest.skip(f"this MindSpore has no {module.__name__}.{name}")
    function.__name__ = name
    monkeypatch.setattr(module, name, function)


def numbers(dump, record):
    return dump.array(record["data_name"]).tolist()


def arrays(dump, value):
    return (
        [numbers(dump, item) for item in value] if isinstance(value, list) else numbers(dump, value)
    )


def lists(value):
    return (
        [item.asnumpy().tolist() for item in value]
        if isinstance(value, list)
        else value.asnumpy().tolist()
    )


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
