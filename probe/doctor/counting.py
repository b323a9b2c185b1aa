# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The check of the cost inside a step: the operations that probe adds, and its waits, with ``"measure": "device"``.

Python's profiler counts the operations that are handed to MindSpore; it works on any device. If something counts the
launches themselves, the variable ``COUNTERS`` names it: the path of a library and, after a colon, a function of C
``const char *function(void)``. It returns a JSON object: ``{"launches": 12, "copies": 3, "waits": 1}``, from the
begin of the process on.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from probe.doctor.bench import FAILED, OK, Bench, CheckResult

COUNTERS = "PROBE_DOCTOR_COUNTERS"
_CALLS, _TENSORS = 10, 20  # calls, and tensors that probe measures in them: the input and the output of each
#: the most operations for one tensor, on CPU and on a device: CPU lacks the kernel of a norm
_MOST = {True: 5, False: 4}
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_WAITS = frozenset(["sync", "synchronize", "asnumpy", "item"])  # functions of MindSpore


def _count(found: collections.Counter[str], frame: Any, event: str, argument: Any) -> None:
    if event == "c_call":
        name = argument.__name__
    elif event == "call" and not frame.f_code.co_filename.startswith(_TOOL):
        name = frame.f_code.co_name
    else:
        return
    if name.startswith("pyboost_") or name in ("run_op_async", "real_run_op"):
        found["operations"] += 1
    elif name in _WAITS:
        found["waits"] += 1


def launches(bench: Bench) -> CheckResult:
    """Count the operations and waits that probe adds to a step."""
    from mindspore import ops

    from probe.doctor import nets

    tensors = [nets.values(seed, 60, 50) for seed in range(_CALLS)]
    read = _counters()

    def step() -> Any:
        return [ops.relu(x) for x in tensors]

    def counted() -> tuple[collections.Counter[str], dict[str, int]]:
        _drain()
        before, found = read(), collections.Counter[str]()
        sys.setprofile(functools.partial(_count, found))
        try:
            step()
        finally:
            sys.setprofile(None)
        _drain()  # as many waits in both steps
        after = read()
        return found, {name: after[name] - before.get(name, 0) for name in after}

    step()
    bare, bare_device = counted()
    dump = bench.record("launches", counted, level="L1", measure="device")
    if incomplete := dump.incomplete(_CALLS):
        return incomplete
    recorded, recorded_device = dump.result
    added = {name: recorded[name] - bare[name] for name in ("operations", "waits")}
    device = {name: recorded_device[name] - bare_device.get(name, 0) for name in recorded_device}
    return _judge(bench.device == "CPU", added, device)


def _judge(on_cpu: bool, added: dict[str, int], device: dict[str, int]) -> CheckResult:
    each, most = added["operations"] / _TENSORS, _MOST[on_cpu]
    counted = ", ".join(f"{count} more {name}" for name, count in sorted(device.items()))
    fact = f"{each:.1f} operations for each tensor that the device measures (at most {most}), {added['waits']} waits"
    fact += f"; the counter of this machine has {counted}" if device else "; nothing counts launches here"
    waits = added["waits"] + device.get("waits", 0)
    is_dear = each > most or waits > 0 or device.get("launches", 0) > most * _TENSORS
    details = {"added": added, "tensors": _TENSORS, "counter": device or None}
    return CheckResult(FAILED if is_dear else OK, fact, details)


def _drain() -> None:
    """Wait until MindSpore has run everything that was handed to it."""
    import mindspore

    from probe.executor import pynative_executor

    pynative_executor().sync()
    if mindspore.get_context("device_target") != "CPU":
        mindspore.runtime.synchronize()


def _counters() -> Callable[[], dict[str, int]]:
    """Return a function that reads the counters of this machine; they are empty where there are none."""
    library, _, name = os.environ.get(COUNTERS, "").rpartition(":")
    if not library:
        return dict
    function = getattr(ctypes.CDLL(library), name)
    function.restype = ctypes.c_char_p
    return lambda: {str(key): int(count) for key, count in json.loads(function()).items()}
