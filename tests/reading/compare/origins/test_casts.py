# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A run in float32 beside one in mixed precision: its casts carry the difference, and none of them is the origin."""

from __future__ import annotations

import numpy as np

from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import Options
from tests.reading.builders import dump, forward, record, value


def net(off=0.0, is_half=True, factor=2.0):
    """Return the entries of a net; with casts its two products are off, the second one more."""
    rng = np.random.RandomState(0)
    x, y, z, u = (rng.rand(4, 8) for _ in range(4))
    data, half = {}, {"dtype": "Float16"} if is_half else {}
    for number, (given, made, own) in enumerate([(x, y, off), (y * (1 + off), z, 5 * off)]):
        wide = record(given)
        if is_half:
            data[f"Tensor.to.{2 * number}.forward"] = forward(
                [wide], [record(given * (1 + 1e-4), **half)]
            )
            wide = record(given * (1 + 1e-4), **half)
        out = record(made * (1 + own), **half)
        data[f"Functional.matmul.{number}.forward"] = forward([wide], [out])
        if is_half:
            data[f"Tensor.to.{2 * number + 1}.forward"] = forward([out], [record(made * (1 + own))])
    data["Functional.mul.0.forward"] = forward(
        [record(z * (1 + 5 * off)), value(factor)], [record(u * factor)]
    )
    return data


def compared(a, b):
    return compare_unit(dump(a).folder, dump(b).folder, Options())


def test_the_cast_that_adds_most_comes_first():
    casts = compared(net(is_half=False), net(3e-3)).origins.casts
    assert [cast["name"] for cast in casts] == ["Tensor.to.2.forward", "Tensor.to.0.forward"]
    assert [casts[0][key] for key in ("before", "after", "side")] == ["Float32", "Float16", "B"]
    assert casts[0]["adds"] > casts[1]["adds"] > 2e-3


def test_the_side_may_be_the_golden_one():
    casts = compared(net(3e-3), net(is_half=False)).origins.casts
    assert [cast["side"] for cast in casts] == ["A", "A"]


def test_no_cast_is_the_origin():
    unit = compared(net(is_half=False), net(0.05))
    assert unit.counts.differs and unit.origins.first == ()


def test_a_fault_beside_the_casts_is_named():
    unit = compared(net(is_half=False), net(1e-4, factor=3.0))
    assert [(origin.kind, origin.name) for origin in unit.origins.first] == [
        ("argument", "Functional.mul.0.forward")
    ]


def test_a_single_cast_in_a_run_in_float32_is_an_origin():
    rng = np.random.RandomState(0)
    x, y, z = (rng.rand(4, 8) for _ in range(3))
    plain = {
        "Functional.tanh.0.forward": forward([record(x)], [record(y)]),
        "Functional.mul.0.forward": forward([record(y), value(2.0)], [record(z)]),
    }
    half = record(y * 1.01, dtype="Float16")
    cast = {
        **plain,
        "Tensor.to.0.forward": forward([record(y)], [half]),
        "Tensor.to.1.forward": forward([half], [record(y * 1.01)]),
        "Functional.mul.0.forward": forward([record(y * 1.01), value(2.0)], [record(z * 1.01)]),
    }
    order = (
        "Functional.tanh.0.forward",
        "Tensor.to.0.forward",
        "Tensor.to.1.forward",
        "Functional.mul.0.forward",
    )
    unit = compared(plain, {name: cast[name] for name in order})
    assert [(origin.kind, origin.name[:9]) for origin in unit.origins.first] == [
        ("calls", "Tensor.to")
    ]
    assert unit.origins.casts == ()


def test_a_single_call_in_half_precision_is_an_origin():
    rng = np.random.RandomState(0)
    x, y = rng.rand(4, 8), rng.rand(4, 8)
    sides = [
        {"Functional.tanh.0.forward": forward([record(x)], [made])}
        for made in (record(y), record(y * 1.01, dtype="Float16"))
    ]
    unit = compared(*sides)
    assert [origin.name for origin in unit.origins.first] == ["Functional.tanh.0.forward"]


def test_two_runs_in_mixed_precision_have_none():
    assert compared(net(1e-4), net(2e-4)).origins.casts == ()
