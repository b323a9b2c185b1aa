# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Exact distances of arrays, and shards that are put together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from probe.reading.compare.distances.distance import UNKNOWN
from probe.reading.compare.judging import exact
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.exact import exact_distance
from probe.reading.compare.judging.parts import Stored, best_order, joined, joined_grid, like_parts
from tests.reading.builders import tensor


def apart(a, b):
    return exact_distance(a, b).rel_l2


@pytest.mark.parametrize("place", [0, 5, 9])
@pytest.mark.parametrize("block", [4, 100])
def test_the_greatest_difference_is_that_of_all_blocks(monkeypatch, place, block):
    monkeypatch.setattr(exact, "_BLOCK", block)
    a = np.ones(10, np.float32)
    b = a.copy()
    b[place] = 3.0
    found = exact_distance(a, b)
    assert found.max_abs == 2.0
    assert found.rel_l2 == pytest.approx(2.0 / math.sqrt(18.0))
    assert found.exact


@pytest.mark.parametrize(
    ("a", "b", "rel_l2"),
    [
        ([1.0, math.nan], [1.0, math.nan], 0.0),
        ([1.0, math.nan], [math.nan, 1.0], math.inf),
        ([1.0, math.inf], [1.0, -math.inf], math.inf),
        ([1.0, math.inf], [1.0, math.inf], 0.0),
        ([3.0, 4.0, math.nan], [3.0, 3.0, math.nan], 0.2),
        ([0.0], [1.0], 1.0),
        ([], [], 0.0),
        ([1.0], [1.0, 2.0], math.inf),
    ],
)
def test_nan_and_inf_at_the_same_places_are_equal(a, b, rel_l2):
    assert apart(np.array(a), np.array(b)) == pytest.approx(rel_l2)


def folders(tmp_path, a, b):
    records = []
    for side, array in (("a", a), ("b", b)):
        folder = tmp_path / side / "dump_tensor_data"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", array)
        records.append(tensor(data_name="x.npy", shape=list(array.shape)))
    return records


def test_equal_files_have_the_same_bits_and_others_their_distance(tmp_path):
    x = np.arange(6, dtype=np.float32)
    a, b = folders(tmp_path, x, x + 1)
    assert Arrays(tmp_path / "a", tmp_path / "a").refine(a, a, UNKNOWN).rel_l2 == 0.0
    found = Arrays(tmp_path / "a", tmp_path / "b").refine(a, b, UNKNOWN)
    assert (found.max_abs, found.exact) == (1.0, True)
    assert Arrays(tmp_path / "a", tmp_path / "gone").refine(a, b, UNKNOWN) is UNKNOWN
    assert (
        Arrays(tmp_path / "a", tmp_path / "b").refine(a, {**b, "data_name": "../x.npy"}, UNKNOWN)
        is UNKNOWN
    )


def shards(tmp_path, whole, parts):
    """Save a whole array as A, and its shards as B; return the distance that Arrays finds."""
    (a, _) = folders(tmp_path, whole, whole)
    places = []
    for number, part in enumerate(parts):
        folder = tmp_path / f"rank{number}"
        (folder / "dump_tensor_data").mkdir(parents=True)
        np.save(folder / "dump_tensor_data" / "x.npy", part)
        places.append(str(folder))
    b = {**a, "stored": Stored(tuple(places), 0)}
    return Arrays(tmp_path / "a", tmp_path / "b").refine(a, b, UNKNOWN)


def random(*shape):
    return np.random.RandomState(1).randn(*shape).astype(np.float32)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_shards_of_a_fused_weight_are_the_whole_in_the_order_of_its_blocks(tmp_path, blocks):
    """Four rows a shard at 4 blocks: each block has one row in every shard."""
    whole = random(24 if blocks == 3 else 8, 3)
    parts = like_parts(whole, [np.zeros((len(whole) // 2, 3))] * 2, 0, blocks)
    assert shards(tmp_path, whole, parts).rel_l2 == 0.0


def test_shards_of_other_numbers_differ(tmp_path):
    whole = random(8, 3)
    assert shards(tmp_path, whole, [whole[:4], whole[4:] * 2]).rel_l2 > 0.1


def test_the_number_of_blocks_is_that_which_comes_nearest():
    whole = random(8, 3)
    for blocks in (1, 2, 4):
        parts = like_parts(whole, [np.zeros((4, 3))] * 2, 0, blocks)
        assert best_order([whole], parts, 0, apart, 0.0) == blocks
        assert np.array_equal(joined(parts, 0, blocks), whole)


def test_a_grid_of_parts_is_joined_along_each_axis():
    whole = random(4, 6)
    grid = {(i, j): whole[2 * i : 2 * i + 2, 3 * j : 3 * j + 3] for i in (0, 1) for j in (0, 1)}
    assert np.array_equal(joined_grid(grid, (0, 1)), whole)
    added = {(i, 0): whole for i in (0, 1)}
    assert np.allclose(joined_grid(added, (None, 0)), 2 * whole)
