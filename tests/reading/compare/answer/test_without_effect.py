# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Other calls are no origin where no value that both runs have differs, and all updates give the same results."""

from __future__ import annotations

import pytest

from probe.findings.sentence import say
from probe.reading.compare.answer.summary import ComparisonResult
from probe.reading.compare.origins.origin import CodeLine, Kind, Origin, Site
from probe.reading.compare.origins.unit_summary import UnitCounts, UnitOrigins, UnitSummary


def origin(said, kind, name, step):
    call = f"Functional.{name}.0.forward"
    return Origin(
        kind, Site(call, "output.1", step=step, calls=(call, "")), said, CodeLine([], None)
    )


def unit(step=0, kind=Kind.CALLS, verdicts=(), updates=True, settled=True, later=()):
    """Return a step in which A alone stops a gradient, for a part that no optimizer holds."""
    said = say("compare.differs")
    first = origin(said, kind, "stop_gradient", step)
    behind = [origin(said, other, other, step) for other in later]
    counts = {"same": 840, "one side": 1, **dict(verdicts)}
    return UnitSummary(
        step,
        None,
        counts=UnitCounts(pairs={"exact": 297}, verdicts=counts, only=(1, 4)),
        origins=UnitOrigins(
            first=(first,), later=tuple(behind), updates=updates, settled=settled, before="same"
        ),
    )


def compared(*units):
    return ComparisonResult(("a", "b"), list(units), ([], []))


def test_other_calls_that_change_no_value_are_no_origin():
    result = compared(unit(0, later=(Kind.GRADIENT,)), unit(1))
    assert (result.agrees, result.status, result.origins, result.later) == (True, 0, [], [])
    assert [item.is_harmless for item in result.soft] == [True]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": Kind.WIRING},
        {"verdicts": {"differs": 1}},
        {"verdicts": {"shape": 1}},
        {"updates": False},  # nothing tells that the gradients are of no use
        {"settled": False},
    ],
    ids=str,
)
def test_they_stay_an_origin_where_something_differs_or_is_not_known(change):
    result = (
        compared(unit(0), unit(1, **change)) if "kind" not in change else compared(unit(**change))
    )
    assert (result.agrees, result.status) == (False, 1)
    assert result.first is not None
    assert result.without_effect == []
