# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two parameters are, and in which order one holds the elements of the other; read piece by piece."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probe.errors import UsageError
from probe.reading.check.weights import weight as weights
from probe.reading.check.weights.check import WeightCheck
from probe.reading.check.weights.distance import aligned, distance
from probe.reading.check.weights.order import order
from probe.reading.check.weights.weight import Weight, in_file, numpy_dtype


def of(array, *cuts):
    """Return a parameter whose elements come in pieces, cut at these places."""
    word = {"f": "Float32", "i": "Int32"}[array.dtype.kind]
    return Weight(word, array.shape, lambda: iter(np.split(array.reshape(-1), cuts)))


X = np.array([3.0, 4.0, 0.0, 0.0], np.float32)


@pytest.mark.parametrize("cuts", [((), ()), ((1,), (3,)), ((1, 2, 3), (2,))])
def test_the_distance_is_by_the_norm_of_a(cuts):
    y = X.copy()
    y[2:] = 6.0, 8.0
    found = distance(of(X, *cuts[0]), of(y, *cuts[1]))
    assert (found.others, found.first, found.values, found.largest) == (2, 2, (0.0, 6.0), 8.0)
    assert found.relative == pytest.approx(2.0)
    assert distance(of(y, *cuts[0]), of(X, *cuts[1])).relative == pytest.approx(10 / math.sqrt(125))


def test_nan_on_both_sides_is_equal():
    x, y = (np.array([1.0, math.nan, last], np.float32) for last in (2.0, math.nan))
    assert distance(of(x), of(x)).others == 0
    found = distance(of(x), of(y))
    assert (found.others, found.first) == (1, 2)
    assert math.isnan(found.largest)


def test_zeros_and_others_have_no_ratio():
    assert distance(of(X * 0), of(X)).relative == math.inf
    assert distance(of(X * 0), of(X * 0)).relative == 0.0


def test_pieces_of_any_length_are_compared_up_to_a_place():
    pairs = list(
        aligned(iter(np.split(np.arange(9), [4])), iter(np.split(np.arange(9), [2, 7])), 6)
    )
    assert [len(one) for one, _ in pairs] == [2, 2, 2]
    assert all((one == two).all() for one, two in pairs)


@pytest.mark.parametrize("sizes", [[12], [4, 8], [5, 7], [3, 3, 3, 3], [1, 10, 1]])
@pytest.mark.parametrize("piece", [1, 5, 100])
def test_a_parameter_that_lies_in_parts_of_a_file_is_read_whole(
    tmp_path, monkeypatch, sizes, piece
):
    """An element may begin in one part and end in the next, and in one reading and the next."""
    monkeypatch.setattr(weights, "PIECE", piece)
    content, parts, place = np.array([1.5, -2.0, 3.25], np.float32).tobytes(), [], 0
    with open(tmp_path / "file", "wb") as file:
        for size in sizes:
            file.write(b"between")
            parts.append((file.tell(), size))
            file.write(content[place : place + size])
            place += size
    pieces = in_file(str(tmp_path / "file"), parts, numpy_dtype("Float32"))
    assert np.concatenate(list(pieces())).tolist() == [1.5, -2.0, 3.25]


def test_a_file_that_is_cut_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"12345678")
    with pytest.raises(UsageError, match="is cut"):
        list(in_file(str(tmp_path / "file"), [(0, 12)], numpy_dtype("Float32"))())


GRID = np.arange(12, dtype=np.float32).reshape(3, 4)
SQUARE = np.arange(9, dtype=np.float32).reshape(3, 3)


def ordered(a, b):
    return order(*(of(np.ascontiguousarray(side)).digest() for side in (a, b)))


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (GRID, GRID.T, "transposed"),
        (SQUARE, SQUARE.T, "transposed"),
        (GRID, GRID.reshape(4, 3), "shape"),
        (GRID, GRID[[0, 2, 1]], "row 1 of A is row 2 of B"),
        (GRID, GRID[:, ::-1], "the same elements in another order"),
        (GRID, GRID + 1, ""),
        (GRID, GRID, ""),
    ],
)
def test_the_order_of_the_elements(a, b, said):
    found = str(ordered(a, b))
    assert said in found and bool(found) is bool(said)


@pytest.mark.parametrize("wide", [0, 1])
def test_values_of_fewer_digits_agree_after_rounding(wide):
    values = np.array([0.1, 0.2, 0.3], np.float32)
    both = [Weight("Float16", (3,), lambda: iter([values.astype(np.float16)]))]
    both.insert(wide, of(values))
    found = list(WeightCheck({"w": both[0]}, {"w": both[1]}).differences())
    assert [str(item.subject) for item in found] == ["dtype"]
    assert "agree after rounding" in str(found[0])


def test_a_nan_in_an_early_piece_stays_the_greatest_difference():
    y = X.copy()
    y[0] = np.nan
    y[-1] += 0.5
    for cut in ((), (2,)):
        assert math.isnan(distance(of(X, *cut), of(y, *cut)).largest)
