# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe compare of a sharded run with one on a card: placements come from the records, and faults are named."""

from __future__ import annotations

import numpy as np
import pytest

import probe
from tests.sharded import made

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    return made.one_card(tmp_path_factory.mktemp("card"))


LAYOUTS = {
    "tp": {"tp": 2}, "dp": {"dp": 2}, "both": {"dp": 2, "tp": 2}, "other order": {"dp": 2, "tp": 2, "tp_first": True},
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_harmless_layout_blames_nobody(card, tmp_path, layout):
    comparison = probe.compare(card, made.mesh(tmp_path, **layout))
    assert comparison.ok, comparison
    assert comparison.verdicts.get("not combined", 0) == 0, comparison
    assert set(comparison.pairs) == {"exact"}


def test_without_arrays_only_the_sum_is_not_combined(tmp_path):
    golden = made.one_card(tmp_path / "card", has_arrays=False)
    comparison = probe.compare(golden, made.mesh(tmp_path / "mesh", dp=2, tp=2, has_arrays=False))
    assert comparison.ok, comparison
    assert comparison.verdicts["not combined"] == 1  # the output of the second layer


def scale(key, factor, *places):
    def change(ranks):
        for place, t in ranks.items():
            if not places or place in places:
                setattr(t, key, getattr(t, key) * factor)

    return change


def both(*changes):
    def change(ranks):
        for one in changes:
            one(ranks)

    return change


def gradients(factor, entered_only=False):
    names = ("ew1", "ew2", "eb") if entered_only else ("gw1", "gw2", "gb", "ew1", "ew2", "eb")
    return both(*(scale(name, factor) for name in names))


def clip_over_one_shard(ranks):
    total = 0.0
    for (i, _), t in ranks.items():
        total += sum(np.sum(getattr(t, key) ** 2) for key in ("ew1", "ew2")) if i == 0 else 0
    total = np.sqrt(total + np.sum(ranks[0, 0].eb ** 2))
    for t in ranks.values():
        own = np.sqrt(sum(np.sum(getattr(t, key) ** 2) for key in ("ew1", "ew2", "eb")))
        for key in ("ew1", "ew2", "eb"):
            setattr(t, key, getattr(t, key) * total / own)


def add_partial_and_replicate(ranks):
    for t in ranks.values():
        t.summand, t.z, t.placements = (
            "p",
            t.p + t.b,
            {**t.placements, "z": ("Shard(0)", "Partial(sum)")},
        )


def missing_reduction(ranks):
    for t in ranks.values():
        t.summand, t.z = "p", t.p + t.b
        t.placements = {**t.placements, "p": ("Shard(0)", "Replicate")}


def swapped(key):
    def change(ranks):
        first, second = getattr(ranks[0, 0], key), getattr(ranks[0, 1], key)
        for (_, j), t in ranks.items():
            setattr(t, key, first if j else second)

    return change


def one_nan(key, *place):
    def change(ranks):
        array = getattr(ranks[place], key).copy()
        array.flat[0] = np.nan
        setattr(ranks[place], key, array)

    return change


def rate(ranks):
    ranks[0, 0].rate = 0.2


def unreduced(ranks):
    for (i, _), t in ranks.items():
        t.ew2 = t.ew2 * (1 + 0.3 * i)


#: fault -> how it is planted, entry that is named, rank that is named or None, words in the sentence
FAULTS = {
    "a shard of a column weight": (
        scale("w1", 1.5, (0, 1), (1, 1)),
        "Functional.dense.0.forward",
        1,
        "",
    ),
    "a shard of a row weight": (
        scale("w2", 1.5, (0, 0), (1, 0)),
        "Functional.matmul.0.forward",
        0,
        "",
    ),
    "a replicated parameter on one rank": (
        scale("b", 1.5, (0, 1)),
        "Tensor.__add__.0.forward",
        1,
        "",
    ),
    "other data on one part of the batch": (
        scale("x", 1.5, (1, 0), (1, 1)),
        "Functional.dense.0.forward",
        2,
        "",
    ),
    "a computation on one rank": (scale("h", 1.01, (1, 0)), "Functional.dense.0.forward", 2, ""),
    "an activation on one rank": (scale("a", 1.01, (1, 1)), "Functional.relu.0.forward", 3, ""),
    "a replicated result on one rank": (
        scale("z", 1.01, (1, 1)),
        "Tensor.__add__.0.forward",
        3,
        "",
    ),
    "NaN on one rank": (one_nan("a", 0, 1), "Functional.relu.0.forward", 1, ""),
    "shards in the wrong order": (swapped("w1"), "Functional.dense.0.forward", 0, ""),
    "a gradient of one shard": (
        scale("gw1", 3.0, (0, 1), (1, 1)),
        "Cell.fc1.Dense.parameters_grad.0",
        1,
        "",
    ),
    "a missing division": (
        gradients(2.0),
        "Cell.fc2.Dense.parameters_grad.0",
        None,
        "A's times 2: a division by 2",
    ),
    "a gradient averaged twice": (
        gradients(0.5),
        "Cell.fc2.Dense.parameters_grad.0",
        None,
        "averaged twice over 2",
    ),
    "a clip over one shard": (
        clip_over_one_shard,
        "Cell.optimizer.SGD.forward.0",
        None,
        "clipped by the norm of one",
    ),
    "Partial and Replicate added": (
        add_partial_and_replicate,
        "Tensor.__add__.0.forward",
        None,
        "the ranks of tp add the replicated term once",
    ),
    "a missing reduction": (missing_reduction, "Functional.matmul.0.forward", None, ""),
    "entered gradients that are not reduced": (unreduced, "Cell.optimizer.SGD.forward.0", 2, ""),
    "another learning rate on one rank": (rate, "Cell.optimizer.SGD.forward.0", None, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(card, tmp_path, fault):
    change, name, rank, words = FAULTS[fault]
    comparison = probe.compare(card, made.mesh(tmp_path, dp=2, tp=2, change=change))
    assert not comparison.ok, comparison
    assert comparison.first.name == name, comparison
    assert rank is None or comparison.first.rank == rank, comparison
    assert words in comparison.first.sentence, comparison
