# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level L2 on two ranks of a launched training."""

from __future__ import annotations

import pytest

import probe
from tests.support.launch import launch

pytestmark = pytest.mark.slow


@pytest.mark.thorough
def test_each_rank_has_a_dump_of_its_own(tmp_path):
    launch("kernels.py", 2, tmp_path)
    run = probe.open(tmp_path / "dump")
    assert [(dump.step, dump.rank) for dump in run] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for dump in run:
        (relu,) = [call for call in dump.calls(kind="Kernel") if call.entry["op_type"] == "ReLU"]
        assert relu.outputs["0"].max == 1.0 + dump.rank
        (add,) = [call for call in dump.calls(kind="Kernel") if call.entry["op_type"] == "Add"]
        assert add.outputs["0"].max == 2.0 + 2 * dump.rank
