# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The greatest distance that is agreement: by dtype, by a rule of the user, by noise."""

from __future__ import annotations

import math

import pytest

from probe.reading.compare.distances.distance import UNKNOWN, Distance
from probe.reading.compare.distances.rule import ToleranceRule
from probe.reading.compare.distances.tolerances import NOISE_FACTOR, Tolerances

FAR = Distance(1e-3, 1e-3)


def test_a_distance_up_to_the_tolerance_agrees():
    plain = Tolerances()
    assert plain.agrees("x", FAR, 1e-3)
    assert not plain.agrees("x", FAR, 0.9e-3)
    assert plain.agrees("x", UNKNOWN, 0.0)


def test_the_factor_multiplies_the_tolerance():
    assert Tolerances(factor=10).agrees("x", FAR, 1e-4)
    assert not Tolerances(factor=0.5).agrees("x", FAR, 1e-3)


@pytest.mark.parametrize(
    ("noise", "agrees"), [(1e-3 / NOISE_FACTOR, True), (0.9e-3 / NOISE_FACTOR, False), (0.0, False)]
)
def test_noise_raises_the_tolerance_of_its_tensor_and_lowers_none(noise, agrees):
    tolerances = Tolerances(noise={"x": noise})
    assert tolerances.agrees("x", FAR, 1e-5) is agrees
    assert tolerances.agrees("x", FAR, 1e-2)
    assert not tolerances.agrees("y", FAR, 1e-5)


def test_the_first_rule_that_fits_decides():
    tolerances = Tolerances([("soft", "rel_l2 <= 1"), ("max", "rel_l2 <= 1e-9")])
    assert tolerances.agrees("softmax", FAR, 0.0)
    assert not tolerances.agrees("argmax", FAR, 1.0)
    assert tolerances.agrees("relu", FAR, 1e-3)
    assert tolerances.used() == [1, 1]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("rel_l2 <= 0.001", True),
        ("rel_l2 < 0.001", False),
        ("max_abs >= 0.001", True),
        ("max_abs > 0.001", False),
        ("rel_l2 == 0.001", True),
        ("rel_l2 <= 0 or max_abs <= 1", True),
        ("rel_l2 <= 0 and max_abs <= 1", False),
    ],
)
def test_the_condition_of_a_rule(condition, holds):
    assert ToleranceRule("x", condition).holds(FAR) is holds


def test_of_an_unknown_distance_every_condition_holds():
    assert ToleranceRule("x", "rel_l2 <= 0").holds(UNKNOWN)
    assert not ToleranceRule("x", "rel_l2 <= 1e9").holds(Distance(math.inf, math.inf))
