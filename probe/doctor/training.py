# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Checks of a small training: its bits with and without probe, and the time that a recorded call takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.doctor.bench import FAILED, OK, WARNING, Bench, CheckResult
from probe.findings.sentence import NOTHING, say
from probe.measure.tensor_reader import to_numpy

if TYPE_CHECKING:
    from probe.debugger import PrecisionDebugger

_LEVELS = ("L0", "L1", "mix")
_STEPS = 2
_CALLS = 100  # calls of a round
_ROUNDS = 5  # rounds with and without probe in turn
_SLOW = 5_000  # microseconds that a recorded call adds: more is unusual
_TOO_SLOW = 50_000  # more is a fault


def bits(bench: Bench) -> CheckResult:
    """Train a net without probe twice, then at each level, and compare all bits."""
    bare = _train()
    if _train() != bare:
        return CheckResult(WARNING, say("doctor.no_repeat"))
    differences = {}
    entries = {}
    for level in _LEVELS:
        name = f"bits-{level}"
        with bench.dump(name, level=level) as dump:
            watched = _train(dump.debugger)
        differences[level] = sum(a != b for a, b in zip(watched, bare))
        entries[level] = len(dump.data)
        if dump.error or not dump.data:
            said = say("doctor.level", level=level, count=entries[level], reason=dump.reason)
            return CheckResult(FAILED, said)
    different = sum(differences.values())
    count = len(bare) * len(_LEVELS)
    fact = say("doctor.tensors_differ", count=different, all=count)
    details = {"tensors": count, "different": differences, "entries": entries}
    if different:
        return CheckResult(FAILED, say("doctor.changes", fact=fact), details)
    return CheckResult(OK, say("doctor.unchanged", fact=fact, levels=list(_LEVELS)), details)


def _train(debugger: PrecisionDebugger | None = None) -> list[bytes]:
    """Return the bytes of every loss, gradient and parameter of every step."""
    import mindspore
    from mindspore import nn

    from probe.doctor import nets

    net = nets.Gated()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    differentiate = mindspore.value_and_grad(net, None, optimizer.parameters)
    seen: list[bytes] = []
    for step in range(_STEPS):
        if debugger:
            debugger.start(net)
        loss, gradients = differentiate(nets.values(step, 8, nets.WIDTH))
        optimizer(gradients)
        if debugger:
            debugger.stop()
            debugger.step()
        seen += [to_numpy(tensor).tobytes() for tensor in (loss, *gradients, *net.get_parameters())]
    return seen


def time_per_call(bench: Bench) -> CheckResult:
    """Measure the time that recording adds to a call of a small operation."""
    from mindspore import ops

    from probe.doctor import nets

    x = nets.values(1, 4, 4)

    def calls() -> None:
        y = x
        for _ in range(_CALLS):
            y = ops.relu(y)
        y.asnumpy()

    bare = []
    recorded = []
    with bench.dump("time", level="L1") as dump:
        for _ in range(_ROUNDS):
            bare.append(_seconds(calls))
            dump.debugger.start()
            recorded.append(_seconds(calls))
            dump.debugger.stop()
            dump.debugger.step()
    if incomplete := dump.incomplete(_CALLS):
        return incomplete
    before, after = (
        min(times) / _CALLS * 1e6 for times in (bare, recorded)
    )  # other programs take time too
    added = after - before
    hint = say("doctor.synchronize") if bench.device == "CPU" and added > 500 else NOTHING
    fact = say("doctor.time", after=after, before=before, added=added, hint=hint)
    result = FAILED if added > _TOO_SLOW else WARNING if added > _SLOW else OK
    return CheckResult(
        result, fact, {"bare": round(before, 1), "recorded": round(after, 1), "unit": "µs"}
    )


def _seconds(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began
