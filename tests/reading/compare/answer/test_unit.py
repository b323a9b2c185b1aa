# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The summary of one step of one rank: what is counted, its origins and its collectives."""

from __future__ import annotations

import pytest

from probe.errors import UsageError
from probe.reading.compare.answer.unit import compare_unit, header_differences
from probe.reading.compare.judging.judged_pairs import Options
from tests.reading.builders import calls, dump, forward, named, tensor


def unit(a, b, trees=({}, {}), headers=({}, {}), **options):
    folders = (dump(data, tree, **head).folder for data, tree, head in zip((a, b), trees, headers))
    return compare_unit(*folders, Options(**options))


def test_pairs_and_verdicts_are_counted():
    a, b = (
        calls("relu x -> a", "exp a -> b", "log b -> c:1"),
        calls("relu x -> a", "relu a -> d", "exp a -> b'"),
    )
    counts = unit(a, b).counts
    assert counts.pairs == {"exact": 2, "": 2}
    assert counts.verdicts == {"equal numbers": 3, "differs": 1}
    assert (counts.only, counts.only_a, counts.only_b) == (
        (1, 1),
        ("Functional.log.0.forward",),
        ("Functional.relu.1.forward",),
    )
    assert (counts.paired, counts.differs, counts.is_exact) == (2, 1, False)


@pytest.mark.parametrize(
    ("words", "exact", "differs"),
    [(("y", "y"), True, 0), (("y", "y~"), False, 0), (("y", "z"), False, 1)],
)
def test_a_step_without_noise_is_exact(words, exact, differs):
    counts = unit(*(calls(f"relu x -> {word}") for word in words)).counts
    assert (counts.is_exact, counts.differs) == (exact, differs)


def test_a_cell_has_the_number_of_its_tensors_that_differ_and_the_greatest_distance():
    cell = "Cell.fc.Dense.forward.0"
    tree = {f"Functional.f.{number}.forward": cell for number in (0, 1)} | {cell: None}

    def data(*factors):
        made = [[tensor(norm=3.0 * factor, Max=2.0 * factor)] for factor in factors]
        return {
            "Functional.f.0.forward": forward([named("x")], [*made[0], *made[1]]),
            "Functional.f.1.forward": forward([named("u")], made[2]),
            cell: forward([named("x")], [named("y")]),
            "Functional.g.0.forward": forward([named("v")], made[3]),
        }

    cells = unit(data(1.0, 1.0, 1.0, 1.0), data(1.25, 2.0, 4.0, 1.25), (tree, tree)).counts.cells
    assert {name: count for name, (count, _) in cells.items()} == {"fc.Dense": 3, "": 1}
    assert 0.75 <= cells["fc.Dense"][1] < 0.8
    assert 0.2 <= cells[""][1] < 0.3


def test_what_a_rank_sends_into_a_collective():
    reduce = "Distributed.all_reduce"
    a = calls(f"{reduce} x -> y", "relu u -> a", f"{reduce} a -> b")
    b = calls(f"{reduce} x -> y", "relu u -> a'", f"{reduce} a' -> b'")
    found = unit(a, b).origins.collectives
    assert [(item.key, item.sent_off, item.origin) for item in found] == [
        (("world", reduce, 1), False, False),
        (("world", reduce, 2), True, False),
    ]
    b = calls(f"{reduce} x -> y'", "relu u -> a", f"{reduce} a -> b")
    assert [item.origin for item in unit(a, b).origins.collectives] == [True, False]


def test_many_parameters_that_differ_are_one_origin():
    names = [f"Cell.fc{place}.Dense.forward.0" for place in range(5)]
    a, b = (
        {
            name: {
                **forward([named("x")], [named(f"y{name}{side}")]),
                "parameters": {"w": named(f"w{name}{side}")},
            }
            for name in names
        }
        for side in "ab"
    )
    (first,) = unit(a, b).origins.first
    assert (first.kind, len(first.more)) == ("parameter", 4)


def test_a_dump_that_cannot_be_read_is_an_error():
    class Broken:
        def read(self, folder):
            raise UsageError("it is cut")

    folder = dump({}).folder
    broken = folder._replace(source=Broken())
    assert str(compare_unit(broken, folder, Options()).error) == "it is cut"


@pytest.mark.parametrize(
    ("a", "b", "count"),
    [
        ({"run": {"seed": 1}}, {"run": {"seed": 1}}, 0),
        ({"run": {"seed": 1}}, {"run": {"seed": 2}}, 1),
        ({"run": {"rank": 0, "host": "a"}}, {"run": {"rank": 1, "host": "b"}}, 0),
        ({"run": {"seed": 1}}, {}, 0),
        ({"level": "L0"}, {"level": "L1"}, 1),
        ({"run": {"seed": 1}}, {"run": {}}, 1),
    ],
)
def test_headers_differ_in_what_makes_a_run_another(a, b, count):
    assert len(header_differences(dump({}, **a), dump({}, **b))) == count
