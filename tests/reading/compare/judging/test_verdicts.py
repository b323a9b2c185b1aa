# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The words for what was judged: sharpened, permuted, a state."""

from __future__ import annotations

import pytest

from probe.reading.compare.distances.distance import SAME
from probe.reading.compare.judging.verdicts import Slot, is_permuted, is_state, sharpened
from tests.reading.builders import tensor


def slot(verdict, a=None, b=None):
    return Slot("input.0", True, a or tensor(), b or tensor(), SAME, verdict)


def test_with_every_bit_each_difference_within_the_tolerance_counts():
    verdicts = [
        "same",
        "equal numbers",
        "close",
        "other bits",
        "near zero",
        "differs",
        "unknown",
        "argument",
    ]
    found = [item.verdict for item in sharpened([slot(verdict) for verdict in verdicts])]
    assert found == [
        "same",
        "equal numbers",
        "differs",
        "differs",
        "differs",
        "differs",
        "unknown",
        "argument",
    ]


@pytest.mark.parametrize(
    ("verdict", "numbers", "permuted"),
    [
        ("other bits", {}, True),
        ("other bits", {"Max": 2.5}, False),
        ("other bits", {"Min": -1.5}, False),
        ("close", {}, False),
    ],
)
def test_a_permutation_keeps_both_ends(verdict, numbers, permuted):
    assert is_permuted(slot(verdict, tensor(), tensor(mean=0.6, **numbers))) is permuted


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("moving_mean", True),
        ("parameters.bn.running_var", True),
        ("moving_variance", True),
        ("moving_means", False),
        ("gamma", False),
    ],
)
def test_a_state_is_changed_by_the_forward(name, state):
    assert is_state(name) is state
