# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Sums of gradient contributions: added in their order of arrival, in their own dtype."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from mindspore import Tensor, dtype as mstype, ops

from probe.measure.measurer import GradientSum
from probe.measure.tensor_reader import TensorReader, to_numpy
from tests.support.tensors import tensor

#: three numbers of each dtype whose sum depends on the order of addition: the small ones vanish beside the large one
TERMS = {
    "float16": (2048.0, 1.0, 1.0),
    "bfloat16": (256.0, 1.0, 1.0),
    "float32": (2.0**24, 1.0, 1.0),
    "float64": (2.0**53, 1.0, 1.0),
}
NUMPY = {
    **{name: np.dtype(name) for name in TERMS if name != "bfloat16"},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
NAMES = {"float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "float64": "Float64"}


def of(dtype, *numbers):
    return Tensor(np.array(numbers, np.float64)).astype(getattr(mstype, dtype))


class Gate:
    """Tells whether tensors may be read, and counts the reads and copies of a sum."""

    def __init__(self):
        self.is_open, self.reads, self.copies = True, 0, 0

    def new_sum(self):
        return GradientSum(self._read, self._copy, lambda: self.is_open)

    def _read(self, value):
        assert self.is_open
        self.reads += 1
        return to_numpy(value)

    def _copy(self, value):
        assert not self.is_open
        self.copies += 1
        return value.copy()


def in_order(dtype, numbers):
    """Return the sum of the numbers, rounded to the dtype after each addition."""
    total = np.array([numbers[0]], NUMPY[dtype])
    for number in numbers[1:]:
        total = total + np.array([number], NUMPY[dtype])
    return total


def test_the_order_of_addition_shows_in_these_numbers():
    for dtype, terms in TERMS.items():
        assert (
            len({in_order(dtype, numbers).tobytes() for numbers in itertools.permutations(terms)})
            == 2
        )


@pytest.mark.parametrize("dtype", TERMS)
@pytest.mark.parametrize("arrival", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("direct", list(itertools.product([True, False], repeat=3)), ids=str)
def test_terms_are_added_in_their_order_of_arrival_read_or_copied(dtype, arrival, direct):
    numbers, gate = [TERMS[dtype][i] for i in arrival], Gate()
    total = gate.new_sum()
    for number, gate.is_open in zip(numbers, direct):
        total.add(of(dtype, number))
    assert (gate.reads, gate.copies) == (_read_by_now(direct), direct.count(False))
    gate.is_open = True
    assert total.resolve()
    assert gate.reads == 3
    assert total.array.tobytes() == in_order(dtype, numbers).tobytes()
    assert (total.array.dtype, total.dtype) == (NUMPY[dtype], NAMES[dtype])


def _read_by_now(direct):
    """Return the number of terms that were read: copies are read with the next term that may be."""
    return max((i + 1 for i, is_direct in enumerate(direct) if is_direct), default=0)


@pytest.mark.parametrize("dtype", TERMS)
def test_a_sum_is_what_mindspore_adds(dtype):
    terms = [
        Tensor(np.random.default_rng(i).normal(size=(4, 5)) * 10).astype(getattr(mstype, dtype))
        for i in range(5)
    ]
    total = GradientSum(to_numpy, lambda tensor: tensor, lambda: True)
    for term in terms:
        total.add(term)
    expected = terms[0]
    for term in terms[1:]:
        expected = ops.add(expected, term)
    assert total.array.tobytes() == to_numpy(expected).tobytes()
    assert total.dtype == str(expected.dtype)


@pytest.mark.parametrize("is_open", [True, False])
def test_the_memory_of_a_term_may_be_reused(is_open):
    gate, term = Gate(), tensor([1.0, 2.0])
    gate.is_open = is_open
    total = GradientSum(TensorReader(), lambda value: value.copy(), lambda: gate.is_open)
    total.add(term)
    term[...] = 9.0
    gate.is_open = True
    total.resolve()
    assert total.array.tolist() == [1.0, 2.0]


def test_a_sum_is_true_as_soon_as_anything_was_added():
    gate = Gate()
    sums = [gate.new_sum() for _ in range(4)]
    assert not any(sums)
    sums[1].add(tensor([0.0]))
    gate.is_open = False
    sums[2].add(tensor([0.0]))
    sums[3].subtract_from(tensor([0.0]))
    assert [bool(total) for total in sums] == [False, True, True, True]


def test_an_empty_sum_resolves_to_nothing():
    total = GradientSum(to_numpy, lambda tensor: tensor, lambda: True)
    assert not total.resolve()
    assert (total.array, total.dtype) == (None, "")


def test_resolve_may_be_called_twice_and_terms_may_follow():
    gate = Gate()
    total = gate.new_sum()
    gate.is_open = False
    total.add(tensor([1.0]))
    gate.is_open = True
    assert total.resolve() and total.resolve()
    total.add(tensor([2.0]))
    assert total.array.tolist() == [3.0]
    assert gate.reads == 2


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)], ids=str)
def test_a_sum_keeps_the_shape_of_its_terms(shape):
    total = GradientSum(to_numpy, lambda tensor: tensor, lambda: True)
    for _ in range(2):
        total.add(tensor(np.ones(shape)))
    assert total.array.shape == shape
    assert total.array.tolist() == np.full(shape, 2.0).tolist()


# -- subtract_from -------------------------------------------------------------------------------------------------

#: whether reading is allowed while terms are added, and at subtract_from
MOMENTS = list(itertools.product([True, False], repeat=2))


@pytest.mark.parametrize(("adds", "subtracts"), MOMENTS)
@pytest.mark.parametrize("dtype", TERMS)
def test_the_difference_is_the_total_without_the_sum(dtype, adds, subtracts):
    gate = Gate()
    inner, whole = gate.new_sum(), of(dtype, 7.0, -1.0)
    gate.is_open = adds
    for _ in range(2):
        inner.add(of(dtype, 1.5, 1.0))
    gate.is_open = subtracts
    assert inner.subtract_from(whole)
    gate.is_open = True
    assert inner.resolve()
    assert inner.array.astype(float).tolist() == [4.0, -3.0]
    assert (inner.array.dtype, inner.dtype) == (NUMPY[dtype], NAMES[dtype])


@pytest.mark.parametrize(("adds", "subtracts"), MOMENTS)
@pytest.mark.parametrize("dtype", TERMS)
@pytest.mark.parametrize("special", [0.0, np.inf, np.nan])
def test_nothing_is_left_where_the_sum_is_the_total(dtype, adds, subtracts, special):
    gate = Gate()
    inner, whole = gate.new_sum(), of(dtype, 3.0, special)
    gate.is_open = adds
    inner.add(of(dtype, 1.0, special))
    inner.add(of(dtype, 2.0, special))
    gate.is_open = subtracts
    assert inner.subtract_from(whole) == (
        not subtracts
    )  # where it may not be read, that is not known yet
    gate.is_open = True
    if not subtracts:
        assert not inner.resolve()


@pytest.mark.parametrize("is_open", [True, False])
def test_an_empty_sum_becomes_the_total(is_open):
    gate = Gate()
    gate.is_open = is_open
    inner, whole = gate.new_sum(), tensor([7.0])
    assert inner.subtract_from(whole)
    whole[...] = 9.0
    gate.is_open = True
    assert inner.resolve()
    assert (inner.array.tolist(), inner.dtype) == ([7.0], "Float32")


def test_a_sum_of_which_something_else_is_left_in_one_element_is_kept():
    inner = GradientSum(to_numpy, lambda tensor: tensor, lambda: True)
    inner.add(tensor([1.0, 2.0]))
    assert inner.subtract_from(tensor([1.0, 2.5]))
    assert inner.array.tolist() == [0.0, 0.5]
