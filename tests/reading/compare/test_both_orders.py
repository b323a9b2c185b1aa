# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The order of a comparison tells nothing: ``compare A B`` and ``compare B A`` have one status and name one place."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import probe
from tests.reading.builders import write
from tests.reading.compare.programs import EDITS, Statement, copies, dump_of, edited, programs
from tests.support.mirrored import facts_of, what_differs

pytestmark = pytest.mark.medium

LAW = settings(
    max_examples=int(os.environ.get("EXAMPLES", "60")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
_edits = st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 8)), max_size=2)
_lacks = st.tuples(
    st.sampled_from(["", "", "none", "no numbers", "nan", "error"]), st.integers(0, 20)
)


def both(left, right):
    """Write two dumps, and return what the two orders of their comparison do not say alike."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, steps in (("one", left), ("two", right)):
            for step, (data, stacks, construct) in enumerate(steps):
                write(Path(folder) / name / f"step{step}" / "rank0", data, stacks, construct)
            paths.append(f"{folder}/{name}")
        forth = facts_of(probe.compare(*paths))
        back = facts_of(probe.compare(*paths[::-1]))
    return what_differs(forth, back), forth, back


#: two calls with equal outputs, of which a Cell is given one, and no call
_TWINS = [
    Statement("tanh", (-1,)),
    Statement("tanh", (0,), line=1),
    Statement("tanh", (0,), line=2),
    Statement("tanh", (1,), cell="left", line=3),
    Statement("tanh", (0,), cell="left", line=4),
]


@LAW
@example(_TWINS, [], [("factor", 0)], ("", 0), False, 0, False)
@given(programs(), _edits, _edits, _lacks, st.booleans(), st.integers(0, 1), st.booleans())
def test_both_orders_say_the_same(program, edits, others, lack, md5, first, has_other_rate):
    left = right = program
    for kind, place in edits:
        left = edited(left, kind, place)
    for kind, place in others:
        right = edited(right, kind, place)
    kind, place = lack
    rate = 0.2 if has_other_rate else 0.1
    steps_a = [dump_of(left if step >= first else program, md5, step=step) for step in (0, 1)]
    steps_b = [dump_of(right if step >= first else program, md5, rate, step) for step in (0, 1)]
    data, *more = steps_b[first]
    steps_b[first] = (copies(data, place, kind), *more)
    differing, forth, back = both(steps_a, steps_b)
    assert not differing, (differing, forth, back)
