# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe compare of a tensor-parallel training on two real ranks and the same training on one."""

from __future__ import annotations

import sys

import pytest

import probe
from tests.support import processes
from tests.support.launch import PROGRAMS, launch
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Return the dump of one rank."""
    folder = tmp_path_factory.mktemp("one")
    program = [sys.executable, PROGRAMS / "tensor_parallel.py", folder]
    processes.run(program, check=True, capture_output=True, env=environment(), timeout=300)
    return folder / "dump"


@pytest.mark.parametrize("arrays", ["all", "none"])
def test_two_ranks_agree_with_one(one, two, arrays):
    for sides in ((one, two), (two, one)):
        layouts = ["tp=2" if side == two else "tp=1" for side in sides]
        comparison = probe.compare(*sides, layout_a=layouts[0], layout_b=layouts[1], arrays=arrays)
        assert comparison.ok, comparison
        assert "not combined" not in comparison.verdicts
        assert set(comparison.pairs) == {"exact"}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Return the dump of two ranks."""
    folder = tmp_path_factory.mktemp("two")
    launch("tensor_parallel.py", 2, folder)
    return folder / "dump"


@pytest.mark.parametrize(
    ("fault", "cell"), [("weight", "layers.1.fc1.Column"), ("norm", "layers.1.norm.LayerNorm")]
)
def test_a_fault_of_one_rank_is_named(one, tmp_path, fault, cell):
    launch("tensor_parallel.py", 2, tmp_path, fault)
    comparison = probe.compare(one, tmp_path / "dump", layout_a="tp=1", layout_b="tp=2")
    assert (comparison.first.kind, comparison.first.cell) == ("parameter", cell), comparison
    assert (comparison.first.step, comparison.first.rank, comparison.first.ranks) == (0, 1, [])
    assert len(comparison.origins) == 1, comparison
