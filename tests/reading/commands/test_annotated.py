# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Decoded summaries are checked against the types that their classes name."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from probe.findings.sentence import NOTHING, say
from probe.reading.commands.summary_file import misfit
from probe.reading.compare.origins.across_ranks import UnitCounts, UnitOrigins, UnitSummary
from probe.reading.compare.origins.origin import CodeLine, Origin, Site
from probe.reading.one_run.nan import Found


def origin(**changes):
    site = Site("a", "output.0", None, 0, None, 3, False)
    parts = {
        "kind": "output",
        "site": site,
        "said": say("compare.transposed"),
        "code": CodeLine([], None),
        "rel_l2": 0.5,
        "more": [],
        "ranks": [0],
        "why": "",
    }
    return Origin(**{**parts, **changes})


def summary(**changes):
    counts = UnitCounts({"exact": 1}, {}, ("x",), (), (0, 1), {"a": (1, 0.5)}, (2,))
    parts = {
        "step": 0,
        "rank": 0,
        "error": NOTHING,
        "notes": [say("compare.transposed")],
        "header": [],
        "counts": counts,
        "origins": UnitOrigins((origin(),), (), (), (), (), (0, 0), False),
    }
    return UnitSummary(**{**parts, **changes})


def test_right_summaries_fit():
    assert misfit([summary(), Found(0, None, [origin()], [], NOTHING)]) == ""
    assert misfit(summary(step=None)) == ""


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (summary(step="x"), "UnitSummary.step is str"),
        (summary(step=True), "UnitSummary.step is bool"),
        (summary(notes=[1]), "UnitSummary.notes is list"),
        (summary(notes=None), "UnitSummary.notes is NoneType"),
        (summary(counts=3), "UnitSummary.counts is int"),
        (
            summary(counts=UnitCounts({"exact": "x"}, {}, (), (), (0, 1), {}, ())),
            "UnitCounts.pairs is dict",
        ),
        (summary(counts=UnitCounts({}, {}, (), (), (0, 1, 2), {}, ())), "UnitCounts.only is tuple"),
        (
            summary(counts=UnitCounts({}, {}, (), (), (0, 1), {"a": (1,)}, ())),
            "UnitCounts.cells is dict",
        ),
        (
            summary(origins=UnitOrigins((3,), (), (), (), (), (0, 0), False)),
            "UnitOrigins.first is tuple",
        ),
        ([origin(rel_l2="x")], "Origin.rel_l2 is str"),
        (origin(site=None), "Origin.site is NoneType"),
        (origin(said="text"), "Origin.said is str"),
        ({"a": (origin(code=CodeLine([1], None)),)}, "CodeLine.stack is list"),
        (Found(0, None, [origin(kind=[])], [], ""), "Found.origins is list"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(value, place):
    found = misfit(value)
    assert found == place or (place == "Found.origins is list" and found == "Origin.kind is list")


def test_objects_of_others_are_not_looked_at():
    class Other(NamedTuple):
        number: int

    assert misfit([Other("x"), object(), 3, "a", None]) == ""
