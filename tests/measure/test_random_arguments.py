# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Random arguments of calls: each has a record that is valid JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from probe.measure.describe import ValueDescriber
from probe.measure.host import HostMeasurer
from probe.measure.measurer import Role
from probe.store.documents import encode
from tests.support.examples import MANY

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)


class Stranger:
    """No kind of value that a record knows."""


LEAVES = SCALARS | st.sampled_from(
    [
        ...,
        slice(1, None, 2),
        np.float32(3),
        np.int64(-2),
        np.bool_(True),
        np.zeros((2, 0)),
        b"bytes",
        {1, 2},
        Stranger(),
    ]
    + [
        np.array(["text"]),
        np.array([1 + 2j]),
        np.datetime64("2026-01-01"),
        float,
        len,
        1j,
        2**80,
        "=1+1",
    ]
)
ARGUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=4)
    ),
    max_leaves=30,
)


@pytest.mark.slow
def test_random_arguments_become_valid_json():
    describe = ValueDescriber(HostMeasurer(md5=False)).value

    @MANY
    @given(ARGUMENTS)
    def attempt(argument):
        text = encode(describe(argument, "name", None, Role.INPUT), "   ")
        json.loads(text)

    attempt()


def test_a_number_too_long_for_text_is_recorded_by_its_number_of_bits():
    text = encode(
        ValueDescriber(HostMeasurer(md5=False)).value(10**5000, "name", None, Role.INPUT), ""
    )
    assert json.loads(text) == {"type": "int", "value": "a number of 16610 bits"}
