# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two sequences of keys: what is inserted in one shifts nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from probe.reading.compare.pairing.sequence import match

KEYS = st.lists(st.integers(0, 5), max_size=30)


@pytest.mark.parametrize("seed", range(20))
def test_inserted_items_shift_nothing(seed):
    rng = np.random.RandomState(seed)
    a = list(rng.randint(0, 30, 3500 if seed == 0 else 60))
    b = list(a)
    for _ in range(3):
        b.insert(rng.randint(len(b)), 99)
    pairs = match(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(x < y and u < v for (x, u), (y, v) in zip(pairs, pairs[1:]))
    assert len(pairs) == len(a)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("count", [1, 3])
def test_a_long_sequence_that_lacks_items_meets_the_other_again(side, count):
    """Beyond some thousand keys the two are walked along, and no longer compared as a whole."""
    whole = list(range(4000))
    short = [key for key in whole if not 1000 <= key < 1000 + count]
    pair = (["first", *short, "end of A"], ["begin", *whole, "end of B"])
    pairs = match(*pair) if side == 0 else match(*pair[::-1])
    assert len(pairs) == len(short)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(KEYS, KEYS)
def test_pairs_are_equal_and_in_order_in_both(a, b):
    pairs = match(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(x < y and u < v for (x, u), (y, v) in zip(pairs, pairs[1:]))
    assert [(j, i) for i, j in match(a, a)] == [(place, place) for place in range(len(a))]
