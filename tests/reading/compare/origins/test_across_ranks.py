# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The origins of all steps and ranks: noise, what a collective brought, what the step before left."""

from __future__ import annotations

import pytest

from probe.findings.sentence import say
from probe.reading.compare.origins.across_ranks import first_origins
from probe.reading.compare.origins.one_change import once
from probe.reading.compare.origins.origin import CodeLine, Origin, Site
from probe.reading.compare.origins.unit_summary import (
    Collective,
    UnitCounts,
    UnitOrigins,
    UnitSummary,
)

REDUCE = "Distributed.all_reduce.0.forward"


def origin(
    kind="computation", name="Functional.f.0.forward", place="output.0", step=0, rank=0, **site
):
    made = Site(name, place, None, step, rank, **site)
    return Origin(kind, made, say("compare.differs"), CodeLine([], None))


def unit(step=0, rank=0, verdicts=None, **origins):
    found = {
        key: tuple(value) if isinstance(value, list) else value for key, value in origins.items()
    }
    return UnitSummary(
        step,
        rank,
        counts=UnitCounts(verdicts=verdicts or {"same": 3}),
        origins=UnitOrigins(**found),
    )


def named(units):
    return [(item.kind, item.step, item.rank) for item in first_origins(units)[0]]


DIFFERS, CLOSE = {"differs": 1}, {"close": 1}


def test_the_first_step_that_differs_has_the_origin_and_later_ones_follow():
    units = [
        unit(0),
        unit(1, 0, DIFFERS, first=[origin(step=1)]),
        unit(2, 0, DIFFERS, first=[origin(step=2, name="g")]),
    ]
    first, later = first_origins(units)
    assert [item.step for item in first] == [1]
    assert [item.step for item in later] == [2]


def test_one_origin_on_several_ranks_is_one():
    units = [unit(0, rank, DIFFERS, first=[origin(rank=rank)]) for rank in (0, 1, 1, 2)]
    (found,), _ = first_origins(units)
    assert (found.rank, found.ranks) == (0, [1, 2])


@pytest.mark.parametrize(
    ("steps", "exact"),
    [
        ([{"same": 3}], True),  # no noise: any other bit counts
        ([CLOSE], False),
        ([CLOSE, {"same": 3}], False),  # a step with noise was there
        ([{"same": 3}, {"same": 3}], True),
        ([], False),  # nothing is known of noise
    ],
)
def test_without_noise_before_every_bit_counts(steps, exact):
    units = [unit(step, 0, verdicts) for step, verdicts in enumerate(steps)]
    root, grown = (
        origin("data", "root", step=len(steps)),
        origin("computation", "grown", step=len(steps)),
    )
    units.append(unit(len(steps), 0, DIFFERS, first=[grown], exact=[root]))
    assert [item.name for item in first_origins(units)[0]] == (["root"] if exact else ["grown"])


def collective(sent_off, is_origin, number=1, group="world", key="Distributed.all_reduce"):
    return Collective((group, key, number), sent_off, is_origin)


@pytest.mark.parametrize(
    ("other", "ranks"),
    [
        (collective(True, False), [1]),  # rank 1 has put something else into it
        (collective(False, False), [0, 1]),
        (collective(True, False, number=2), [0, 1]),  # into another call
        (collective(True, False, group="0,2"), [0, 1]),  # of another group
    ],
)
def test_a_difference_that_another_rank_has_sent_is_none_of_this_rank(other, ranks):
    mine = unit(
        0,
        0,
        DIFFERS,
        first=[origin("communication", REDUCE)],
        collectives=[collective(False, True)],
    )
    theirs = unit(0, 1, DIFFERS, first=[origin(name="culprit", rank=1)], collectives=[other])
    assert [item.rank for item in first_origins([mine, theirs])[0]] == ranks


def test_what_was_received_was_sent():
    receive, send = "Distributed.recv", "Distributed.send"
    mine = unit(
        0,
        0,
        DIFFERS,
        first=[origin("communication", f"{receive}.0.forward")],
        collectives=[collective(False, True, key=receive)],
    )
    theirs = unit(
        0,
        1,
        DIFFERS,
        first=[origin(rank=1)],
        collectives=[collective(True, False, group="0,1", key=send)],
    )
    assert named([mine, theirs]) == [("computation", 0, 1)]


def parameter(step, place="parameters.weight"):
    return origin("parameter", "Cell.fc.Dense.forward.0", place, step)


@pytest.mark.parametrize(
    ("parameters", "place", "kind"),
    [
        ((10, 10), "parameters.weight", "optimizer"),  # all of them
        ((10, 1), "parameters.weight", "parameter"),  # one alone: no optimizer does that
        ((2, 1), "parameters.weight", "optimizer"),  # half of them
        ((10, 10), "parameters.moving_mean", "parameter"),  # the forward changes it
    ],
)
def test_parameters_that_differ_after_a_step_that_agrees_are_the_optimizers(
    parameters, place, kind
):
    units = [unit(0), unit(1, 0, DIFFERS, first=[parameter(1, place)], parameters=parameters)]
    assert named(units) == [(kind, 1, 0)]


def test_in_the_first_step_they_are_parameters():
    assert named([unit(0, 0, DIFFERS, first=[parameter(0)], parameters=(9, 9))]) == [
        ("parameter", 0, 0)
    ]


@pytest.mark.parametrize(
    ("after", "found"), [(True, ("argument", 0, 0)), (False, ("optimizer", 1, 0))]
)
def test_a_change_behind_the_backward_of_the_step_before_explains_them(after, found):
    soft = origin("argument", "Functional.clip.0.forward", after_backward=after)
    units = [unit(0, 0, soft=[soft]), unit(1, 0, DIFFERS, first=[parameter(1)], parameters=(9, 9))]
    assert named(units) == [found]


def test_the_same_change_in_many_steps_is_told_once():
    found = once([origin("argument", step=0), origin("argument", step=1), origin("calls", step=1)])
    assert [(item.kind, item.step) for item in found] == [("argument", 0), ("calls", 1)]
