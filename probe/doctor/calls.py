# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks that nothing is missed: each way to call MindSpore has its entry, and each gradient its own."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probe.capture.autograd.nodes import AutogradNodes
from probe.doctor.bench import FAILED, OK, WARNING, Bench, CheckResult, RecordedDump, told
from probe.measure.tensor_reader import to_numpy

#: a way to call MindSpore: the forward entry of its call in ``nets.EveryWay``
_WAYS: dict[str, str] = json.loads((Path(__file__).parent / "ways.json").read_text(encoding="utf-8"))
#: the second run of a recomputed Cell is no new call
_REPEATED = "Cell.heavy.Dense.forward.1"
_COMPILED = "Jit.scaled.0.forward"


def forward_entries(bench: Bench) -> CheckResult:
    """Record a step that uses every way into MindSpore, and look for the forward entry of each."""
    recorded = _every_way(bench, "calls", data_mode=["forward"])
    problem = _problem("call", _WAYS, recorded)
    if problem:
        return problem
    if _REPEATED in recorded.data:
        return CheckResult(FAILED, "the second run of a recomputed Cell is recorded as a new call")
    return CheckResult(OK, f"calls in all {len(_WAYS)} ways into MindSpore are recorded", {"ways": list(_WAYS)})


def gradients(bench: Bench) -> CheckResult:
    """Test the node API, then compare recorded gradients with those that the training gets."""
    nodes = AutogradNodes()
    if not nodes.works:
        return CheckResult(FAILED, f"graph nodes cannot be watched, backward entries will be missing: {nodes.reason}")
    recorded = _every_way(bench, "gradients")
    ways = {way: _backward(entry) for way, entry in _WAYS.items() if entry in recorded.data}
    cells = {f"parameters of {name}": f"Cell.{name}.Dense.parameters_grad.0" for name in ("hidden", "hooked", "heavy")}
    problem = _problem("gradient", {**ways, **cells}, recorded)
    if problem:
        return problem
    wrong, count = [], len(recorded.result)
    for name, gradient in recorded.result.items():
        cell, _, parameter = name.partition(".")
        (record,) = recorded.data[f"Cell.{cell}.Dense.parameters_grad.0"][parameter]
        if not _same(record, to_numpy(gradient)):
            wrong.append(name)
    if wrong:
        return CheckResult(FAILED, f"{len(wrong)} of {count} gradients have wrong numbers: {', '.join(wrong)}")
    fact = f"graph nodes pass their self-test; backward entries in {len(ways)} ways, {count} gradients of parameters"
    return CheckResult(OK, fact, {"ways": list(ways), "parameters": count})


def compiled(bench: Bench) -> CheckResult:
    """Record a call of a compiled function."""
    from probe.doctor import nets

    if os.environ.get("MS_JIT") == "0":
        return CheckResult(WARNING, "the variable MS_JIT is 0: MindSpore compiles nothing, and nothing was tried")
    x = nets.values(7, 2, 4)
    try:
        bare = to_numpy(nets.scaled(x)).tobytes()
    except (OSError, RuntimeError, TypeError, ValueError) as error:  # MindSpore's own: some cannot compile
        return CheckResult(WARNING, f"MindSpore cannot compile a function here: {told(error)}")
    recorded = bench.record("compiled", lambda: nets.scaled(x), level="L1")
    problem = _problem("call", {"compiled functions": _COMPILED}, recorded)
    if problem:
        return problem
    if to_numpy(recorded.result).tobytes() != bare:
        return CheckResult(FAILED, "a compiled function gives other bits while it is recorded")
    return CheckResult(OK, "a compiled function is recorded as one call, with the same bits")


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


def _problem(noun: str, ways: Mapping[str, str], recorded: RecordedDump) -> CheckResult | None:
    missing = {way: entry for way, entry in ways.items() if entry not in recorded.data}
    if recorded.error:
        return CheckResult(FAILED, f"probe had an error while it recorded: {recorded.error}", {"missing": missing})
    if not missing:
        return None
    return CheckResult(FAILED, f"no {noun} is recorded of: {', '.join(missing)}", {"missing": missing})


def _backward(forward: str) -> str:
    """Return the name of the backward entry.

    >>> _backward("Cell.hidden.Dense.forward.0"), _backward("Primitive.fn:Doubled.backward.0.forward")
    ('Cell.hidden.Dense.backward.0', 'Primitive.fn:Doubled.backward.0.backward')
    """
    head, _, tail = forward.rpartition("forward")
    return f"{head}backward{tail}"


def _same(record: Any, array: Any) -> bool:
    found = (float(record["Max"]), float(record["Min"]), float(record["Norm"]))
    expected = (float(array.max()), float(array.min()), math.sqrt(float((array.astype("float64") ** 2).sum())))
    return all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) for a, b in zip(found, expected))
