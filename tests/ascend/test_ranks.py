# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two and four ranks on the simulated Ascend, which talk over its HCCL."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.dumps import Dump
from tests.support.launch import launch

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

RANKS = [2, 4] if os.environ.get("PROBE_ASCEND_ALL") else [2]
COLLECTIVES = ("AllReduce", "AllGather", "ReduceScatter", "broadcast", "all_reduce", "send", "recv")


def run(folder, ranks, measure, **options):
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps({"measure": "host" if measure == "host" else "device"})
    )
    launch("on_ascend.py", ranks, folder, measure, **options)


def digests(folder, ranks):
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", RANKS)
def test_collectives_are_recorded_and_no_bit_changes(tmp_path, ranks):
    run(tmp_path / "bare", ranks, "bare")
    for measure in ("device", "host"):
        folder = tmp_path / measure
        run(folder, ranks, measure)
        assert digests(folder, ranks) == digests(tmp_path / "bare", ranks)
        assert not list(folder.rglob("dump_error_info.log"))
        for rank in range(ranks):
            dump = Dump(folder / "dump" / "step1" / f"rank{rank}")
            for name in COLLECTIVES:
                found = dump.names(f".{name}.", "forward")
                assert found, (name, list(dump.data))
            total = dump.data[dump.names(".AllReduce.", "forward")[0]]["output"][0]
            assert total["Max"] == ranks * (4 * ranks - 1) + sum(range(ranks))


def test_a_rank_that_fails_keeps_what_it_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("ASCEND_SIM_TIMEOUT", "5")
    run(tmp_path / "fails", 2, "fails", dies=True)
    for rank in range(2):
        assert len(Dump(tmp_path / "fails" / "dump" / "step0" / f"rank{rank}").data) > 10
    # the calls before the failure; msrun kills the other rank while it waits for this one
    assert Dump(tmp_path / "fails" / "dump" / "step1" / "rank1").data
