# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that are made several times: those whose bytes differ are named, with the setting that helps."""

from __future__ import annotations

import itertools

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from probe.__main__ import main
from probe.reading.dumps.run import open as open_run
from probe.replaying import functions, replay as replaying
from probe.replaying.described import CannotReplayError
from probe.replaying.describing import describe
from probe.replaying.functions import Function
from probe.replaying.worker import replay_call

pytestmark = pytest.mark.medium

X = Tensor(np.random.RandomState(0).randn(3, 4).astype(np.float32))


def changed(function, times=(1,)):
    """Return a stand-in for ``ops.exp`` that changes its output, as an array, in some of its calls."""
    numbers = itertools.count()

    def run(x):
        out = np.exp(x.asnumpy())
        if next(numbers) in times:
            function(out)
        return Tensor(out)

    return run


def bits(place, add):
    def change(array):
        array.view(np.int32).reshape(-1)[place] += add

    return change


def fixed(value):
    """Return a stand-in that has the same special number in each call."""

    def run(x):
        out = np.exp(x.asnumpy())
        out[1, 2] = value
        return Tensor(out)

    return run


def of_zero(sign):
    def change(array):
        array[2, 3] = sign * 0.0

    return change


def of_nan(payload):
    def change(array):
        array.view(np.uint32)[0, 1] = 0x7FC00000 + payload

    return change


def in_turn(*changes):
    numbers = itertools.count()

    def run(x):
        out = np.exp(x.asnumpy())
        changes[next(numbers) % len(changes)](out)
        return Tensor(out)

    return run


def from_another_stream():
    """Return a stand-in that waits for nothing: other work between two calls changes it."""
    seen = []
    matmul = ops.matmul

    def run(x):
        out = np.exp(x.asnumpy())
        out[0, 0] += len(seen) * 1e-3
        return Tensor(out)

    def counted(*args):
        seen.append(1)
        return matmul(*args)

    run.matmul = counted
    return run


#: name -> stand-in, first element that differs, repeats of 4 that differ
DIFFERENT = {
    "the last bit, once": (changed(bits(7, 1), (2,)), [1, 3], 1),
    "one element, always another": (
        in_turn(bits(0, 0), bits(0, 1), bits(0, 2), bits(0, 3), bits(0, 4)),
        [0, 0],
        4,
    ),
    "the sign of zero": (in_turn(of_zero(1), of_zero(-1)), [2, 3], 2),
    "the payload of NaN": (in_turn(of_nan(0), of_nan(5)), [0, 1], 2),
    "all elements": (changed(lambda array: array.__imul__(1.5), (3,)), [0, 0], 1),
    "other work": (from_another_stream(), [0, 0], 4),
}
EQUAL = {
    "exp": ops.exp,
    "NaN": fixed(np.nan),
    "minus zero": fixed(-0.0),
    "infinity": fixed(np.inf),
}


@pytest.fixture
def call(debug):
    """The description of one call of exp."""
    debug.record(lambda: ops.exp(X), level="L1", task="tensor")
    (found,) = (
        call
        for call in next(iter(open_run(str(debug.dump_path))))
        if call.name == "Functional.exp.0.forward"
    )
    return describe(found)


def replaced(monkeypatch, stand_in):
    monkeypatch.setattr(functions, "find", lambda call: Function(stand_in, ""))
    if hasattr(stand_in, "matmul"):
        monkeypatch.setattr(ms.ops, "matmul", stand_in.matmul)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_call_that_differs_is_named_with_its_first_element(call, name, monkeypatch):
    stand_in, element, count = DIFFERENT[name]
    replaced(monkeypatch, stand_in)
    result = replay_call(call, times=5)
    assert result.verdict == "differs"
    (found,) = result.outputs
    assert (found.element, found.roundings, found.roundings_here) == (element, count, 4)
    assert (found.off > 0) == (name not in ("the sign of zero", "the payload of NaN"))


@pytest.mark.parametrize("name", EQUAL)
def test_a_call_that_repeats_is_always_equal(call, name, monkeypatch):
    replaced(monkeypatch, EQUAL[name])
    assert replay_call(call, times=5).verdict == "always equal"


def test_a_call_of_a_random_operation_is_not_verified(debug):
    debug.record(lambda: ops.dropout(X, 0.5), level="L1", task="tensor")
    (found,) = (
        call for call in next(iter(open_run(str(debug.dump_path)))) if "dropout" in call.name
    )
    with pytest.raises(CannotReplayError, match="random"):
        describe(found)


def test_the_setting_that_helps_is_named(debug, monkeypatch, capsys):
    debug.record(lambda: [ops.exp(X), ops.relu(X), ops.tanh(X)], level="L1", task="tensor")
    needed = {"Functional.exp": "deterministic", "Functional.relu": "threads"}

    class Here:
        """Makes the calls in this process; exp and relu repeat only with a setting."""

        def __init__(self, jobs, options, limit):
            self._options = options

        def run(self, calls):
            for number, call in enumerate(calls):
                setting = needed.get(call.key)
                stand_in = (
                    ops.exp
                    if setting in (None, self._options.get("setting"))
                    else changed(bits(1, 1))
                )
                monkeypatch.setattr(
                    functions, "find", lambda call, stand_in=stand_in: Function(stand_in, "")
                )
                yield number, replay_call(call, times=int(self._options["repeat"]))

    monkeypatch.setattr(replaying, "Pool", Here)
    assert main(["replay", str(debug.dump_path), "--all", "--repeat", "3", "--lang", "en"]) == 1
    exp, relu, tanh, counts = capsys.readouterr().out.splitlines()
    assert exp.endswith("first at [0, 1] (equal with mindspore.set_deterministic(True))")
    assert "differs in 1 of 2 repeats" in relu
    assert relu.endswith("(equal with OMP_NUM_THREADS=1, runtime_num_threads=1)")
    assert tanh == "Functional.tanh.0.forward: always equal"
    assert counts == "1 always equal, 2 differ, 0 not verified"


def test_gradients_are_repeated_too_by_the_command(debug, capsys):
    debug.record(
        lambda: ms.grad(lambda x: (ops.dropout(ops.exp(x)) * x).sum())(X), level="L1", task="tensor"
    )
    assert (
        main(
            [
                "replay",
                str(debug.dump_path),
                "--all",
                "--repeat",
                "2",
                "--jobs",
                "1",
                "--lang",
                "en",
            ]
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert "Functional.exp.0.backward: always equal" in lines
    assert any("dropout" in line and "random" in line for line in lines)
    assert main(["replay", str(debug.dump_path), "--all", "--repeat", "1"]) == 2
