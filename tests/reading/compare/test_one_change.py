# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The statement of the source is the unit: what changed in one statement is one finding."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import calls, write

FRAME = "File /me/net.py, line {}, in construct, \n x = f(x)"
BEFORE = ("relu i -> a", "tanh j -> b", "sin k -> c", "cos l -> d")
GOLDEN = (*BEFORE, "mul a c -> p", "mul b d -> q", "sub p q -> x", "pow x 2 -> y")
#: both products, and so both operands, are other ones
TURNED = (*BEFORE, "mul a d -> r", "mul b c -> s", "sub r s -> z", "pow z 2 -> w")


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares two runs; the calls behind the first four stand at the given lines."""

    def compare(lines):
        for name, given in (("a", GOLDEN), ("b", TURNED)):
            data = calls(*given)
            at = [5] * len(BEFORE) + [*lines]
            stack = {
                str(n): [[call], [FRAME.format(line)]]
                for n, (call, line) in enumerate(zip(data, at))
            }
            write(tmp_path / name, data, stack)
        return probe.compare(tmp_path / "a", tmp_path / "b"), probe.compare(
            tmp_path / "b", tmp_path / "a"
        )

    return compare


def test_other_operands_in_one_statement_are_one_finding(compared):
    for found in compared((7, 7, 7, 9)):
        assert found.status == 1
        assert len(found.origins) == 1, str(found)
        assert found.first.more
        assert "independent of it" not in str(found)


def test_those_of_two_statements_are_two(compared):
    for found in compared((7, 8, 7, 9)):
        assert [origin.line for origin in found.origins] == [7, 8], str(found)
