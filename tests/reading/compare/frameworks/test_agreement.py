# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Weights that are transposed, gradients that are summed in another order, values that tell nothing."""

from __future__ import annotations

import pytest

from probe.reading.compare.distances.distance import UNKNOWN, Distance
from probe.reading.compare.judging.foreign import is_certain, is_noise, is_told, may_be_transposed
from probe.reading.dumps.entry_name import parse
from tests.reading.builders import tensor, value

CELL, GRADIENT, API = map(
    parse, ("Cell.fc.Dense.forward.0", "Cell.fc.Dense.parameters_grad.0", "Mint.add.0.forward")
)


@pytest.mark.parametrize(
    ("parts", "place", "shapes", "may_be"),
    [
        (CELL, "parameters.weight", ([2, 3], [3, 2]), True),
        (GRADIENT, "weight.0", ([2, 3], [3, 2]), True),
        (CELL, "parameters.weight", ([2, 3], [2, 3]), False),
        (CELL, "parameters.weight", ([3, 3], [3, 3]), True),
        (CELL, "parameters.weight", ([2, 3, 4], [4, 3, 2]), False),
        (CELL, "output.0", ([2, 3], [3, 2]), False),
        (API, "input.0", ([2, 3], [3, 2]), False),
    ],
)
def test_a_matrix_of_parameters_may_be_transposed(parts, place, shapes, may_be):
    assert may_be_transposed(parts, place, *(tensor(shape=shape) for shape in shapes)) is may_be


@pytest.mark.parametrize(
    ("shape", "exact", "certain"),
    [([2, 3], False, True), ([3, 3], False, False), ([3, 3], True, True), ([2, 3], True, True)],
)
def test_only_arrays_tell_a_square_one_from_itself(shape, exact, certain):
    assert is_certain(tensor(shape=shape), Distance(0.0, 0.0, exact)) is certain


@pytest.mark.parametrize(
    ("dtypes", "rel_l2", "noise"),
    [
        (("Float32", "Float32"), 1e-4, True),
        (("Float32", "Float32"), 1.1e-4, False),
        (("Float32", "Float16"), 2e-2, True),
        (("Float16", "Float32"), 2e-2, True),
        (("Int32", "Int32"), 1e-9, False),
    ],
)
def test_gradients_may_differ_by_ten_tolerances(dtypes, rel_l2, noise):
    records = [tensor(dtype=dtype) for dtype in dtypes]
    assert is_noise(*records, Distance(rel_l2, 1.0), 1.0) is noise
    assert is_noise(*records, Distance(rel_l2, 1.0), 0.5) is False
    assert not is_noise(*records, UNKNOWN, 1.0)
    assert not is_noise(value(3), records[0], Distance(0.0, 0.0), 1.0)


@pytest.mark.parametrize(
    ("parts", "place", "a", "b", "told"),
    [
        (API, "input.1", 0.25, 0.5, True),
        (API, "input.1", 2, None, False),
        (API, "input.1", "same", "valid", False),
        (CELL, "input.0", tensor(), None, True),
        (CELL, "parameters.w", tensor(), None, False),
        (CELL, "input.0", None, "x", False),
    ],
)
def test_which_values_of_one_side_tell_anything(parts, place, a, b, told):
    assert is_told(parts, place, a, b) is told
