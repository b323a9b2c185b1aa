# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compiled trainings on two ranks under MindSpore's own launcher, at L0."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.dumps import Dump
from tests.support.launch import launch
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

TREES = {"GRAPH_MODE": [""], "PYNATIVE_MODE": ["graph", "pynative"]}
COMPILED = {
    f"Cell.part.{cell}" for cell in ("Compiled", "inner.Inner", "inner.dense.Dense", "last.Dense")
}
PLAIN = {
    f"Cell.{cell}" for cell in ("first.Dense", "end.Inner", "end.dense.Dense", "part.Compiled")
}


@pytest.fixture(scope="module", params=thorough_but([], list(TREES)))
def trained(request, tmp_path_factory):
    """Return the mode, the folder, and the digests of each rank."""
    folder = tmp_path_factory.mktemp(request.param)
    launch("compiled.py", 2, folder, request.param)
    return (
        request.param,
        folder,
        [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)],
    )


@pytest.mark.parametrize("case", ["statistics", "tensor", "one"])
def test_every_rank_trains_bitwise_as_without_probe(trained, case):
    _, _, said = trained
    assert [rank[case] for rank in said] == [rank["bare"] for rank in said]
    assert said[0]["bare"][1] != said[1]["bare"][1]  # each rank has losses of its own


@pytest.mark.parametrize("case", ["statistics", "tensor"])
def test_every_rank_has_its_trees_complete(trained, case):
    mode, folder, _ = trained
    assert sorted(os.listdir(folder / case)) == (["step1"] if mode == "GRAPH_MODE" else TREES[mode])
    for tree in TREES[mode]:
        step = folder / case / tree / "step1"
        assert sorted(os.listdir(step)) == ["rank0", "rank1"]
        cells = {"": COMPILED | PLAIN, "graph": COMPILED, "pynative": PLAIN}[tree]
        dumps = [Dump(step / f"rank{rank}") for rank in (0, 1)]
        assert dumps[0].construct == dumps[1].construct
        for rank, dump in enumerate(dumps):
            names = {
                name
                for name in dump.construct
                if name.startswith("Cell.") and ".optimizer." not in name
            }
            assert {name.rsplit(".", 2)[0] for name in names} == cells
            assert {f"{cell}.{way}.0" for cell in cells for way in ("forward", "backward")} <= set(
                dump.data
            )
            assert dump.header["run"]["rank"] == rank
            assert not [entry for entry in dump.data.values() if "error" in entry]
            assert sorted({*os.listdir(dump.folder)} - {"run.json", "run.jsonl"}) == [
                "construct.json",
                "dump.json",
                *(["dump_tensor_data"] if case == "tensor" else []),
                "stack.json",
            ]
        own = [name for name in dumps[0].data if ".forward." in name and ".optimizer." not in name]
        assert all(dumps[0].data[name] != dumps[1].data[name] for name in own)


def test_gradients_are_the_means_over_the_ranks_where_they_enter_the_optimizer(trained):
    mode, folder, _ = trained
    for tree in TREES[mode]:
        dumps = [Dump(folder / "statistics" / tree / "step1" / f"rank{rank}") for rank in (0, 1)]
        gradients = [
            {n: e for n, e in dump.data.items() if ".parameters_grad." in n} for dump in dumps
        ]
        assert set(gradients[0]) == set(gradients[1]) != set()
        is_mean = tree != "pynative"  # there each rank has its own, as they leave the backward
        assert {gradients[0][name] == gradients[1][name] for name in gradients[0]} == {is_mean}


def test_a_rank_that_is_left_out_writes_nothing(trained):
    mode, folder, _ = trained
    for tree in TREES[mode]:
        assert os.listdir(folder / "one" / tree / "step1") == ["rank1"]
        recorded, whole = (
            Dump(folder / name / tree / "step1" / "rank1").data for name in ("one", "statistics")
        )
        assert recorded == whole
