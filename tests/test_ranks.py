# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Several ranks under MindSpore's own launcher."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest
from conftest import Dump

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks"))

from launch import launch

RANKS = (2, 4)


@pytest.fixture(scope="module", params=RANKS, ids=[f"{ranks}_ranks" for ranks in RANKS])
def trained(request, tmp_path_factory):
    """Return the number of ranks, the folder, and what every rank says of its trainings."""
    folder = tmp_path_factory.mktemp(f"ranks{request.param}")
    launch("training.py", request.param, folder)
    said = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(request.param)]
    return request.param, folder, said


WATCHED = ["by_hand-L1-statistics", "by_hand-L1-tensor", "by_hand-mix-statistics", "by_hand-mix-tensor", "reducer-mix-statistics"]


def dumps(trained, case, step=0):
    ranks, folder, _ = trained
    return [Dump(folder / case / f"step{step}" / f"rank{rank}") for rank in range(ranks)]


@pytest.mark.parametrize("case", WATCHED)
def test_every_rank_trains_bitwise_as_without_probe(trained, case):
    _, _, said = trained
    bare = case.partition("-")[0] + "-bare"
    assert [rank[case] for rank in said] == [rank[bare] for rank in said]
    assert len({rank[bare][1] for rank in said}) == len(said)  # each has losses of its own


@pytest.mark.parametrize("case", WATCHED)
def test_every_rank_has_a_complete_folder(trained, case):
    ranks, folder, _ = trained
    for step in (0, 1):
        assert sorted(os.listdir(folder / case / f"step{step}")) == [f"rank{rank}" for rank in range(ranks)]
    every = [dump for step in (0, 1) for dump in dumps(trained, case, step)]
    first = every[0]
    for dump in every:
        assert list(dump.data) == list(first.data)
        assert dump.construct == first.construct
        assert not any("error" in entry for entry in dump.data.values())
        assert not (dump.folder / "dump_error_info.log").exists()
        if dump.header["task"] == "tensor":
            assert dump.header["dump_data_dir"] == str(dump.folder / "dump_tensor_data")
            named = {record["data_name"] for record in records(dump.data)}
            assert named == set(os.listdir(dump.folder / "dump_tensor_data"))
    if "mix" in case:
        gradients = [name for name in first.data if ".parameters_grad." in name]
        assert len(gradients) == len({name.partition(".forward")[0] for name in first.data if has_parameters(first, name)})
        assert first.names("Cell.", ".backward.")


def has_parameters(dump, name):
    return bool(dump.data[name].get("parameters"))


def records(value):
    """Yield every tensor's record."""
    if isinstance(value, dict) and value.get("type") == "mindspore.Tensor":
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records(item)


@pytest.mark.parametrize("case", [case for case in WATCHED if "by_hand" in case])
def test_the_reductions_hold_what_the_ranks_gave(trained, case):
    every = dumps(trained, case)
    names = every[0].names("MintDistributed.all_reduce.")
    assert len(names) == 8  # of the net's parameters
    for name in names:
        entries = [dump.data[name] for dump in every]
        outputs = [entry["output"] for entry in entries]
        if "tensor" in case:
            outputs = [[{**item, "data_name": ""} for item in output] for output in outputs]
            given = [dump.array(dump.data[name]["input_args"][0]["data_name"]) for dump in every]
            made = [dump.array(dump.data[name]["output"][0]["data_name"]) for dump in every]
            assert all(np.array_equal(array, made[0]) for array in made)
            total = np.sum(given, axis=0, dtype=np.float64)
            np.testing.assert_allclose(made[0], total, rtol=1e-5, atol=1e-6 * np.abs(given).max())
        else:
            mean = sum(entry["input_args"][0]["Mean"] for entry in entries)
            largest = max(abs(entry["input_args"][0][end]) for entry in entries for end in ("Max", "Min"))
            assert outputs[0][0]["Mean"] == pytest.approx(mean, rel=1e-5, abs=1e-6 * largest)
        assert all(output == outputs[0] for output in outputs)
