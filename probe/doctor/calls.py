# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks that nothing is missed: each way to call MindSpore has its entry, and each gradient its own; and of the cost.

The cost inside a step is the operations that probe adds, and its waits, with ``"measure": "device"``. Python's profiler
counts the operations that are handed to MindSpore; it works on any device. If something counts the launches themselves,
the variable ``COUNTERS`` names it: the path of a library and, after a colon, a function of C
``const char *function(void)``. It returns a JSON object: ``{"launches": 12, "copies": 3, "waits": 1}``, from the
begin of the process on.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from probe.capture.autograd.nodes import AutogradNodes
from probe.doctor.bench import FAILED, OK, WARNING, Bench, CheckResult, RecordedDump, told
from probe.findings.sentence import say
from probe.findings.system import foreign
from probe.measure.tensor_reader import to_numpy

#: a way to call MindSpore: the forward entry of its call in ``nets.EveryWay``
_WAYS = {
    "Cells": "Cell.hidden.Dense.forward.0",
    "Cells with a pre-hook": "Cell.hooked.Dense.forward.0",
    "recomputed Cells": "Cell.heavy.Dense.forward.0",
    "Primitives of the model": "Primitive.act.ReLU.0.forward",
    "listed functions": "Functional.tanh.0.forward",
    "methods of Tensor": "Tensor.__sub__.0.forward",
    "pyboost functions": "Primitive.fn:EveryWay.Sigmoid.0.forward",
    "pyboost classes": "Primitive.fn:cat.Concat.0.forward",
    "overloaded functions": "Primitive.fn:add.add.0.forward",
    "the executor": "Primitive.fn:EveryWay.ReduceSum.0.forward",
    "Cells with their own backward": "Primitive.fn:OwnBackward.bprop.0.forward",
    "functions with their own backward": "Primitive.fn:Doubled.backward.0.forward",
}
#: the second run of a recomputed Cell is no new call
_REPEATED = "Cell.heavy.Dense.forward.1"
_COMPILED = "Jit.scaled.0.forward"
COUNTERS = "PROBE_DOCTOR_COUNTERS"
_CALLS = 10  # calls
_TENSORS = 20  # tensors that probe measures in them: input and output of each
#: the most operations for one tensor, on CPU and on a device: CPU lacks the kernel of a norm
_MOST = {True: 5, False: 4}
_TOOL = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_WAITS = frozenset(["sync", "synchronize", "asnumpy", "item"])  # functions of MindSpore


def forward_entries(bench: Bench) -> CheckResult:
    """Record a step that uses every way into MindSpore, and look for the forward entry of each."""
    recorded = _every_way(bench, "calls", data_mode=["forward"])
    problem = _problem("doctor.no_call", _WAYS, recorded)
    if problem:
        return problem
    if _REPEATED in recorded.data:
        return CheckResult(FAILED, say("doctor.recomputed"))
    return CheckResult(OK, say("doctor.calls", count=len(_WAYS)), {"ways": list(_WAYS)})


def gradients(bench: Bench) -> CheckResult:
    """Test the node API, then compare recorded gradients with those that the training gets."""
    nodes = AutogradNodes()
    if not nodes.works:
        return CheckResult(FAILED, say("doctor.no_nodes", reason=foreign(nodes.reason)))
    recorded = _every_way(bench, "gradients")
    ways = {way: _backward(entry) for way, entry in _WAYS.items() if entry in recorded.data}
    cells = {
        f"parameters of {name}": f"Cell.{name}.Dense.parameters_grad.0"
        for name in ("hidden", "hooked", "heavy")
    }
    problem = _problem("doctor.no_gradient", {**ways, **cells}, recorded)
    if problem:
        return problem
    wrong = []
    count = len(recorded.result)
    for name, gradient in recorded.result.items():
        cell, _, parameter = name.partition(".")
        (record,) = recorded.data[f"Cell.{cell}.Dense.parameters_grad.0"][parameter]
        if not _same(record, to_numpy(gradient)):
            wrong.append(name)
    if wrong:
        said = say("doctor.wrong_gradients", count=len(wrong), all=count, names=wrong)
        return CheckResult(FAILED, said)
    fact = say("doctor.gradients", ways=len(ways), count=count)
    return CheckResult(OK, fact, {"ways": list(ways), "parameters": count})


def compiled(bench: Bench) -> CheckResult:
    """Record a call of a compiled function."""
    from probe.doctor import nets

    if os.environ.get("MS_JIT") == "0":
        return CheckResult(WARNING, say("doctor.no_jit"))
    x = nets.values(7, 2, 4)
    try:
        bare = to_numpy(nets.scaled(x)).tobytes()
    except (
        OSError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:  # MindSpore's own: some cannot compile
        return CheckResult(WARNING, say("doctor.cannot_compile", reason=told(error)))
    recorded = bench.record("compiled", lambda: nets.scaled(x), level="L1")
    problem = _problem("doctor.no_call", {"compiled functions": _COMPILED}, recorded)
    if problem:
        return problem
    if to_numpy(recorded.result).tobytes() != bare:
        return CheckResult(FAILED, say("doctor.compiled_bits"))
    return CheckResult(OK, say("doctor.compiled"))


def _every_way(bench: Bench, name: str, **settings: Any) -> RecordedDump:
    import mindspore

    from probe.doctor import nets

    net = nets.EveryWay()
    parameters = net.trainable_params()
    differentiate = mindspore.value_and_grad(net, None, parameters)
    x = nets.values(7, 2, 4)

    def train() -> dict[str, Any]:
        return dict(zip((parameter.name for parameter in parameters), differentiate(x)[1]))

    train()  # the first forward of a process runs operations of its own
    # else a function that was imported early is an API, and its own way into MindSpore is not tried
    return bench.record(name, train, net, early_names=False, statistics=settings)


def _problem(key: str, ways: Mapping[str, str], recorded: RecordedDump) -> CheckResult | None:
    missing = {way: entry for way, entry in ways.items() if entry not in recorded.data}
    if recorded.error:
        said = say("doctor.error", reason=foreign(recorded.error))
        return CheckResult(FAILED, said, {"missing": missing})
    if not missing:
        return None
    return CheckResult(FAILED, say(key, names=list(missing)), {"missing": missing})


def _backward(forward: str) -> str:
    """Return the name of the backward entry.

    >>> _backward("Cell.hidden.Dense.forward.0"), _backward("Primitive.fn:Doubled.backward.0.forward")
    ('Cell.hidden.Dense.backward.0', 'Primitive.fn:Doubled.backward.0.backward')
    """
    head, _, tail = forward.rpartition("forward")
    return f"{head}backward{tail}"


def _same(record: Any, array: Any) -> bool:
    found = (float(record["Max"]), float(record["Min"]), float(record["Norm"]))
    expected = (
        float(array.max()),
        float(array.min()),
        math.sqrt(float((array.astype("float64") ** 2).sum())),
    )
    return all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) for a, b in zip(found, expected))


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
        before = read()
        found = collections.Counter[str]()
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
    each = added["operations"] / _TENSORS
    most = _MOST[on_cpu]
    counted = [say("doctor.more", count=count, name=name) for name, count in sorted(device.items())]
    counter = say("doctor.counter", counted=counted) if device else say("doctor.no_counter")
    fact = say("doctor.launches", each=each, most=most, waits=added["waits"], counter=counter)
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
