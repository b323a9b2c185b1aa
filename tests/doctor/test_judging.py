# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The verdicts of the checks of `probe doctor`: counts, numbers, dumps of two processes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from probe.doctor import calls, environment, memory
from probe.doctor.bench import FAILED, OK, RecordedDump as Dump, read_error, told
from probe.doctor.calls import _same
from probe.doctor.environment import is_between


@pytest.mark.parametrize(
    ("operations", "waits", "device", "result"),
    [
        (80, 0, {}, OK),
        (81, 0, {}, FAILED),
        (0, 1, {}, FAILED),
        (0, 0, {"waits": 1}, FAILED),
        (0, 0, {"launches": 80, "copies": 99}, OK),
        (0, 0, {"launches": 81}, FAILED),
    ],
)
def test_too_many_operations_and_any_wait_are_a_fault(operations, waits, device, result):
    """20 tensors are measured, by four operations each at most."""
    assert calls._judge(False, {"operations": operations, "waits": waits}, device).result == result


def test_the_cpu_may_take_one_operation_more():
    assert calls._judge(True, {"operations": 100, "waits": 0}, {}).result == OK
    assert calls._judge(True, {"operations": 101, "waits": 0}, {}).result == FAILED


def record(array):
    wide = array.astype(np.float64)
    return {"Max": wide.max(), "Min": wide.min(), "Mean": wide.mean(), "Norm": np.linalg.norm(wide)}


X = np.array([3.0, -1.0, 0.5], np.float32)


@pytest.mark.parametrize(
    ("key", "factor", "error"),
    [
        ("Max", 1.01, math.inf),
        ("Min", 1.01, math.inf),
        ("Mean", 1.3, 0.0833),
        ("Norm", 1.01, 0.01),
        ("Max", 1.0, 0.0),
    ],
)
def test_ends_are_exact_and_the_rest_has_an_error(key, factor, error):
    found = record(X)
    found[key] *= factor
    assert memory._error(found, X) == pytest.approx(error, abs=1e-3)


def test_numbers_of_each_kind_of_dtype():
    assert memory._error(
        record(X.astype(ml_dtypes.bfloat16)), X.astype(ml_dtypes.bfloat16)
    ) == pytest.approx(0.0, abs=1e-6)
    bools = np.array([True, False])
    assert memory._error({"Max": True, "Min": False, "Mean": None, "Norm": None}, bools) == 0.0
    assert memory._error({"Max": True, "Min": True, "Mean": None, "Norm": None}, bools) == math.inf
    odd = np.array([1.0, math.nan], np.float32)
    assert (
        memory._error({"Max": math.nan, "Min": math.nan, "Mean": math.nan, "Norm": math.nan}, odd)
        == 0.0
    )
    assert memory._error({"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": math.nan}, odd) == math.inf


OURS, OTHERS = {environment._OURS: {}}, {environment._OTHERS: {}}


def first(data=OURS, error=""):
    dump = Dump("", None)
    dump.data, dump.error = data, error
    return dump


@pytest.mark.parametrize(
    ("said", "dump", "others", "result"),
    [
        ("refused", first(), {}, OK),
        ("recorded", first(), {"shared-1": OTHERS}, OK),
        ("recorded", first(), {"shared-1": {}}, FAILED),
        (
            "recorded",
            first(),
            {"shared-1": OURS},
            FAILED,
        ),  # the second has recorded the calls of the first
        ("recorded", first(), {"shared-1": {**OTHERS, **OURS}}, FAILED),
        ("recorded", first(), {"shared-1": {}, "shared-2": OTHERS}, OK),
        ("", first(), {"shared-1": OTHERS}, FAILED),
        ("refused", first({}), {}, FAILED),
        ("refused", first({**OURS, **OTHERS}), {}, FAILED),
        ("refused", first(error="broken"), {}, FAILED),
    ],
)
def test_two_processes_keep_their_dumps_apart(said, dump, others, result):
    assert environment._judge(said, dump, others).result == result


@pytest.mark.parametrize(
    ("version", "is_tested"),
    [
        ("1.9", False),
        ("2.0", True),
        ("2.0.1", True),
        ("2.10", True),
        ("3", False),
        ("3.0rc1", False),
    ],
)
def test_a_version_between_two(version, is_tested):
    assert is_between(version, "2.0", "3") is is_tested


@pytest.mark.parametrize(
    ("key", "same"), [("Max", False), ("Min", False), ("Norm", False), ("Mean", True)]
)
def test_a_gradient_is_that_of_the_training_by_three_numbers(key, same):
    found = record(X)
    assert _same(found, X)
    found[key] = found[key] * 1.01 + 0.02
    assert _same(found, X) is same


def test_an_error_is_told_by_its_kind_and_first_line(tmp_path):
    assert str(told(ValueError("one\ntwo"))) == "ValueError: one"
    assert len(str(told(ValueError("x y " * 900)))) < 300
    folder = tmp_path / "step0" / "rank"
    folder.mkdir(parents=True)
    assert read_error(str(tmp_path)) == ""
    (folder / "dump_error_info.log").write_text(
        "while reading\nFile a.py, line 1\nValueError: bad\n"
    )
    assert read_error(str(tmp_path)) == "ValueError: bad"
