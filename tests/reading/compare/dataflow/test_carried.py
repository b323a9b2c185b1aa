# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Differences that calls carry on, kernels that round in another way, and calls that add a difference."""

from __future__ import annotations

import numpy as np
import pytest

from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.distances.net_noise import NetNoise
from probe.reading.compare.judging.judged_pairs import Options
from tests.reading.builders import dump, forward, record

#: the noise of each tensor of these nets
NOISE = 1e-7


def chain(names, offs, seed=0):
    """Return the entries of calls in a row; each output is off by so much in all its elements."""
    rng, data, counts = np.random.RandomState(seed), {}, {}
    given = record(rng.rand(4, 8).astype(np.float64))
    for name, off in zip(names, offs):
        number = counts[name] = counts.get(name, -1) + 1
        made = record(rng.rand(4, 8) * (1 + off))
        data[f"Functional.{name}.{number}.forward"] = forward([given], [made])
        given = made
    return data


def compared(names, offs):
    a, b = dump(chain(names, [0.0] * len(names))), dump(chain(names, offs))
    noise = {f"{name}.{place}": NOISE for name in a.data for place in ("input.0", "output.0")}
    return compare_unit(a.folder, b.folder, Options(noise={(a.step, a.rank): NetNoise(noise)}))


def named(unit):
    return [origin.name.split(".")[1] for origin in unit.origins.first]


NET = ("matmul", "tanh", "matmul", "tanh", "softmax", "matmul", "tanh", "exp")


def test_roundings_are_no_difference():
    assert compared(NET, [5e-7] * 8).counts.differs == 0


def test_what_a_call_carries_on_is_no_difference_and_the_call_that_adds_it_is_the_origin():
    unit = compared(NET, [0, 0, 0, 0, 1e-2, 1e-2, 2e-2, 1e-2])
    assert named(unit) == ["softmax"] and unit.counts.kernels == ()


def test_products_that_all_round_in_another_way_are_a_note():
    unit = compared(NET, [3e-4, 3e-4, 4e-4, 4e-4, 4e-4, 4e-4, 4e-4, 4e-4])
    assert (
        named(unit) == []
        and unit.counts.kernels == ("products of matrices",)
        and unit.counts.differs == 0
    )
    assert "kernel difference: products of matrices round in another way in all 3 calls" in str(
        unit.notes[-1]
    )


def test_a_wrong_kernel_behind_them_is_named():
    unit = compared(NET, [3e-4, 3e-4, 4e-4, 4e-4, 2e-2, 2e-2, 2e-2, 2e-2])
    assert named(unit) == ["softmax"] and unit.counts.kernels == ("products of matrices",)


def test_a_call_that_stands_out_above_its_kind_is_named():
    unit = compared(NET, [3e-4, 3e-4, 1e-2, 1e-2, 1e-2, 1e-2, 1e-2, 1e-2])
    assert named(unit) == ["matmul"] and unit.origins.first[0].name == "Functional.matmul.1.forward"


def test_a_small_difference_of_one_call_of_many_is_named():
    unit = compared(NET, [0, 0, 0, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3])
    assert named(unit) == ["tanh"] and unit.counts.kernels == ()


def test_a_parameter_is_not_excused_by_the_differences_before_it():
    def data(factor, off):
        rng = np.random.RandomState(1)
        x, w, y, z = (rng.rand(4, 4) for _ in range(4))
        return {
            "Functional.matmul.0.forward": forward([record(x)], [record(y * (1 + off))]),
            "Functional.mul.0.forward": forward(
                [record(y * (1 + off)), record(w * factor)], [record(z * factor)]
            ),
            "Functional.matmul.1.forward": forward(
                [record(z * factor)], [record(x * 3 * (1 + off))]
            ),
        }

    a, b = dump(data(1.0, 0.0)), dump(data(1.01, 3e-4))
    noise = {
        f"{name}.{place}": NOISE for name in a.data for place in ("input.0", "input.1", "output.0")
    }
    unit = compare_unit(a.folder, b.folder, Options(noise={(a.step, a.rank): NetNoise(noise)}))
    assert [(origin.name.split(".")[1], origin.place) for origin in unit.origins.first] == [
        ("mul", "input.1")
    ]


@pytest.mark.parametrize("factor", [1.0, 100.0])
def test_the_factor_of_all_tolerances_counts(factor):
    a, b = dump(chain(NET, [0.0] * 8)), dump(chain(NET, [0, 0, 0, 0, 3e-6, 3e-6, 3e-6, 3e-6]))
    noise = {f"{name}.{place}": NOISE for name in a.data for place in ("input.0", "output.0")}
    unit = compare_unit(
        a.folder, b.folder, Options(noise={(a.step, a.rank): NetNoise(noise)}, factor=factor)
    )
    assert bool(unit.origins.first) is (factor == 1.0)
