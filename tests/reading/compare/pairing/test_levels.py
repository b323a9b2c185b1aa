# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps of two levels: the calls that only one of them records are no difference."""

from __future__ import annotations

import pytest

from probe.reading.compare.pairing.levels import leave_out_unrecorded
from probe.reading.compare.pairing.normal_dump import NormalDump
from tests.reading.builders import calls, dump

CELLS = "Cell.fc.Dense x -> y"
BOTH = (CELLS, "relu x -> y")


@pytest.mark.parametrize("swapped", [False, True])
def test_calls_that_the_other_level_lacks_go(swapped):
    more, fewer = (
        NormalDump(dump(calls(*BOTH), level="mix")),
        NormalDump(dump(calls(CELLS), level="L0")),
    )
    assert leave_out_unrecorded(*((fewer, more) if swapped else (more, fewer)))
    assert list(more.data) == list(fewer.data) == ["Cell.fc.Dense.forward.0"]


@pytest.mark.parametrize(
    ("levels", "lines"),
    [
        (("mix", "mix"), (BOTH, (CELLS,))),
        (("L0", "L1"), ((CELLS,), ("relu x -> y",))),
        ((None, "L0"), (BOTH, (CELLS,))),
    ],
    ids=["one level", "nothing in common", "unknown"],
)
def test_else_all_stay(levels, lines):
    dumps = [NormalDump(dump(calls(*own), level=level)) for own, level in zip(lines, levels)]
    assert not leave_out_unrecorded(*dumps)
    assert [len(found) for found in dumps] == [len(own) for own in lines]
