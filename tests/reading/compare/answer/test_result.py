# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The result of all steps and ranks: whether it can be compared, whether it agrees, the exit status."""

from __future__ import annotations

import pytest

from probe.errors import UsageError
from probe.reading.compare.answer.comparison import check_rules, pair_folders
from probe.reading.compare.answer.export import STATISTICS_COLUMNS, rows
from probe.reading.compare.answer.summary import ComparisonResult
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.origins.unit_summary import UnitCounts, UnitSummary
from probe.reading.dumps.run import Run
from tests.reading.builders import calls, dump, forward, tensor


def result(*units):
    return ComparisonResult(("a", "b"), list(units), ([], []))


def unit(paired=4, only=(0, 0), error="", **verdicts):
    return UnitSummary(
        0,
        0,
        error,
        counts=UnitCounts(pairs={"exact": paired, "": sum(only)}, only=only, verdicts=verdicts),
    )


@pytest.mark.parametrize(
    ("units", "status"),
    [
        ([unit(same=4)], 0),
        ([unit(close=4)], 0),
        ([unit(differs=1)], 1),
        ([unit(shape=1)], 1),
        ([unit(error="cut")], 2),
        ([unit(), unit(error="cut")], 2),
        ([unit(paired=0)], 2),
        ([unit(4, (4, 4))], 0),
        ([unit(4, (5, 5))], 2),
        ([unit(4, (900, 0))], 0),
        ([unit(4, (0, 900))], 0),
        ([unit(1, (9, 9)), unit(40)], 0),
    ],
)
def test_the_exit_status(units, status):
    """Half of the calls of the side that has fewer must have a partner."""
    assert result(*units).status == status


def test_the_counts_of_all_units_are_summed():
    found = result(unit(4, (1, 0), same=3), unit(5, (0, 2), same=1, differs=2))
    assert found.pairs == {"exact": 9}
    assert found.verdicts == {"same": 4, "differs": 2}


def test_a_rule_that_fits_no_tensor_of_any_unit_is_told():
    units = [UnitSummary(0, 0, counts=UnitCounts(rules_used=used)) for used in ((0, 1), (0, 0))]
    with pytest.raises(UsageError, match="'typo'"):
        check_rules([("typo", "rel_l2 <= 1"), ("softmax", "rel_l2 <= 1")], units)
    check_rules(
        [("x", "rel_l2 <= 1"), ("y", "rel_l2 <= 1")],
        [*units, UnitSummary(1, 0, counts=UnitCounts(rules_used=(1, 0)))],
    )


# -- which folders are compared ---------------------------------------------------------------------------------------


def run(*places):
    return Run("run", [dump({}, step=step, rank=rank).folder for step, rank in places])


def paired(a, b):
    pairs, alone = pair_folders(run(*a), run(*b), "", "")
    return [((x.step, x.rank), (y.step, y.rank)) for x, y in pairs], alone


def test_the_only_step_and_the_only_rank_of_both_are_partners():
    assert paired([(3, 0)], [(7, 5)]) == ([((3, 0), (7, 5))], ([], []))


def test_else_steps_and_ranks_are_partners_by_their_numbers():
    both = [(step, rank) for step in (0, 1) for rank in (0, 1)]
    assert paired(both, both)[0] == [(place, place) for place in both]
    pairs, alone = paired([(0, 0), (1, 0)], [(1, 0)])
    assert pairs == [((1, 0), (1, 0))]
    assert [len(names) for names in alone] == [1, 0]
    pairs, alone = paired([(0, 0)], [(0, 0), (0, 1)])
    assert pairs == [((0, 0), (0, 0))]
    assert [len(names) for names in alone] == [0, 1]


def test_without_a_common_step_nothing_can_be_compared():
    with pytest.raises(UsageError, match="nothing can be compared"):
        pair_folders(run((0, 0), (1, 0)), run((2, 0), (3, 0)), "", "")


# -- the table of msprobe ---------------------------------------------------------------------------------------------


def table(a, b):
    made = [
        dict(zip(STATISTICS_COLUMNS, row)) for row in rows(JudgedPairs(dump(a), dump(b), Options()))
    ]
    assert all(len(row) == len(STATISTICS_COLUMNS) for row in made)
    return made


def test_npu_is_b_and_differences_are_counted_from_a():
    a = {"Functional.f.0.forward": forward([], [tensor(Max=2.0, Min=-1.0)])}
    b = {"Functional.f.0.forward": forward([], [tensor(Max=3.0, Min=-2.0)])}
    (row,) = table(a, b)
    assert (row["NPU max"], row["Bench max"], row["Max diff"], row["MaxRelativeErr"]) == (
        3.0,
        2.0,
        1.0,
        "50.000000%",
    )
    assert (row["Min diff"], row["MinRelativeErr"], row["Mean diff"]) == (-1.0, "100.000000%", 0.0)
    assert row["Result"] == "error"
    assert table(a, a)[0]["Result"] == "pass"


def test_a_call_without_a_partner_has_a_row_too():
    a, b = calls("relu x -> y"), calls("relu x -> y", "exp y -> z")
    found = [(row["NPU Name"], row["Bench Name"]) for row in table(a, b)]
    assert ("Functional.exp.0.forward", "N/A") in found
    assert ("N/A", "Functional.exp.0.forward") in [
        (row["NPU Name"], row["Bench Name"]) for row in table(b, a)
    ]
