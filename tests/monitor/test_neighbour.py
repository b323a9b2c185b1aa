# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Ranks that hold the same parameters are compared while they train; shards are not."""

from __future__ import annotations

import pytest

from probe.monitor.alarms import Neighbour
from probe.series.file import SeriesFile


def ranks(tmp_path, count=2):
    folders = [str(tmp_path / f"rank{rank}") for rank in range(count)]
    return folders, [SeriesFile(folder) for folder in folders]


def row(step, value):
    return step, {"loss": 0.5, "w.param": value, "shard.param": 1.0 + value}


def test_a_rank_whose_parameter_drifts_is_named_with_the_step(tmp_path):
    folders, files = ranks(tmp_path)
    one = Neighbour(folders[0])
    found = []
    for step in range(0, 60, 10):
        mine, other = row(step, 2.0), row(step, 2.0 if step < 30 else 2.01)
        other[1]["shard.param"] = 9.0
        files[0].write(*mine)
        files[1].write(*other)
        found += one.compare(*mine)
    assert [(alarm.series, alarm.step) for alarm in found] == [("w.param", 30)]
    assert "2.01 on rank1" in found[0].sentence


def test_a_rank_that_lags_is_compared_when_its_row_comes(tmp_path):
    folders, files = ranks(tmp_path)
    files[1].write(*row(0, 2.0))
    one, found = Neighbour(folders[0]), []
    for step in (0, 10, 20):
        files[0].write(*row(step, 2.0))
        found += one.compare(*row(step, 2.0))
    files[1].write(*row(10, 3.0))
    files[0].write(*row(30, 2.0))
    found += one.compare(*row(30, 2.0))
    assert [(alarm.series, alarm.step) for alarm in found] == [("w.param", 10), ("shard.param", 10)]


def test_one_rank_alone_is_compared_with_nobody(tmp_path):
    folders, files = ranks(tmp_path, 1)
    files[0].write(*row(0, 1.0))
    assert list(Neighbour(folders[0]).compare(*row(0, 1.0))) == []
    assert list(Neighbour(str(tmp_path / "rank")).compare(*row(0, 1.0))) == []


def test_a_rank_that_is_far_behind_is_compared_with_our_newest_rows(tmp_path):
    """Only some rows wait for the other rank: the oldest go."""
    folders, files = ranks(tmp_path)
    files[1].write(*row(0, 2.0))
    one, found = Neighbour(folders[0]), []
    for step in range(20):
        files[0].write(*row(step, 2.0))
        found += one.compare(*row(step, 2.0))
    for step in (11, 19):
        files[1].write(*row(step, 2.0 if step < 12 else 3.0))
    found += one.compare(*row(20, 2.0))
    assert [(alarm.series, alarm.step) for alarm in found] == [("w.param", 19), ("shard.param", 19)]


def row_of(parameter, gradient, entered=None):
    found = {"w.param": parameter, "w.grad": gradient}
    return found if entered is None else {**found, "w.grad_in": entered}


def apart(tmp_path, mine, other, steps=4):
    """Return the alarms of rank 0 whose row is ``mine``, beside a rank whose row is ``other``."""
    folders, files = ranks(tmp_path)
    one, found = Neighbour(folders[0]), []
    for step in range(steps):
        files[0].write(step, mine)
        files[1].write(step, other)
        found += one.compare(step, mine)
    return found


def test_a_rank_with_other_weights_from_the_start_is_named_by_equal_gradients(tmp_path):
    (alarm,) = apart(tmp_path, row_of(2.0, 0.3, 0.4), row_of(3.0, 0.5, 0.4))
    assert (alarm.rule, alarm.series, alarm.step) == (
        "ranks apart",
        "w.param",
        1,
    )  # 2 equal gradients
    assert alarm.sentence == "2, but 3 on rank1 in step 1; equal gradients enter the optimizers"
    assert "rank1 上为 3" in alarm.said.text("zh")


def test_equal_gradients_count_from_the_second_on(tmp_path):
    assert apart(tmp_path, row_of(2.0, 0.3, 0.4), row_of(3.0, 0.5, 0.4), steps=1) == []


@pytest.mark.parametrize(
    ("gradient", "is_found"),
    [(0.4 * (1 + 0.9e-5), True), (0.4 * (1 + 1.1e-5), False), (0.5, False)],
)
def test_gradients_are_equal_within_a_hundred_thousandth(tmp_path, gradient, is_found):
    assert bool(apart(tmp_path, row_of(2.0, 0.4), row_of(3.0, gradient))) == is_found


def test_parts_are_left_alone_and_zeros_are_no_evidence(tmp_path):
    assert apart(tmp_path / "parts", row_of(2.0, 0.3, 0.4), row_of(3.0, 0.3, 0.5)) == []
    assert apart(tmp_path / "zeros", row_of(2.0, 0.0), row_of(3.0, 0.0)) == []
    assert apart(tmp_path / "same", row_of(2.0, 0.3, 0.4), row_of(2.0, 0.5, 0.4)) == []
