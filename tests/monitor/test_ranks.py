# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The monitor on two ranks that MindSpore's launcher starts."""

from __future__ import annotations

import json

import pytest

from probe.series.series import open_series
from tests.support.launch import launch

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

STEPS, DRIFT = 60, 20


@pytest.fixture(scope="module")
def monitored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitored")
    launch("monitored.py", 2, folder)
    return folder, [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]


def test_both_ranks_keep_their_bits_and_have_all_rows(monitored):
    folder, said = monitored
    assert [one["bits"] for one in said] == [True, True]
    assert [one["healthy"] for one in said] == [[], []]
    ranks = open_series(str(folder / "healthy"))
    assert [series.rank for series in ranks] == [0, 1]
    assert all(series.steps == list(range(STEPS)) for series in ranks)


def test_a_rank_that_drifts_is_named_with_its_step(monitored):
    _, said = monitored
    found = [alarm for one in said for alarm in one["drifting"] if alarm["rule"] == "ranks apart"]
    assert found
    assert DRIFT <= min(alarm["step"] for alarm in found) <= DRIFT + 20
    assert {"on rank0", "on rank1"} & {
        word for alarm in found for word in ("on rank0", "on rank1") if word in alarm["sentence"]
    }


def test_only_the_first_rank_of_a_data_parallel_group_writes_reduced_gradients(monitored):
    _, said = monitored
    collectives = ["cc_distribution_0-0.csv", "cc_distribution_1-1.csv"]
    arrived = ["grad_unreduced_0-0.csv", "grad_unreduced_1-1.csv"]
    assert said[0]["csv"] == [
        *collectives,
        "grad_reduced_0-0.csv",
        "grad_reduced_1-1.csv",
        *arrived,
    ]
    assert said[1]["csv"] == [*collectives, *arrived]


def test_collectives_have_rows_of_their_tensors_before_and_after(monitored):
    _, said = monitored
    for one in said:
        head, *rows = one["collectives"]
        assert head == "vpp_stage,name,step,norm,shape,dtype"
        names = [row.split(",")[1] for row in rows]
        assert names[:2] == ["all_reduce.0.input_0", "all_reduce.0.output_0"] and len(names) == 16
    last = [[row for row in one["collectives"] if "output" in row] for one in said]
    assert last[0] == last[1]  # the sum over the ranks
