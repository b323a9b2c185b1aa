# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A call that is given a value which the other run gives to another call: neither batch nor parameter differs."""

from __future__ import annotations

import pytest

import probe
from tests.reading.builders import calls, write


def first_of(folder, a, b):
    """Return the first finding of compare of two runs, and how many there are."""
    for name, lines in (("a", a), ("b", b)):
        write(folder / name, calls(*lines) if isinstance(lines, tuple) else lines)
    found = probe.compare(folder / "a", folder / "b")
    return found.first, len(found.origins)


def test_the_other_call_that_has_the_value_is_named(tmp_path):
    a = ("take x s -> p", "scatter p t -> q", "gather q t -> o")
    b = ("take x s -> p", "scatter p s -> q'", "gather q' t -> o'")
    for sides in ((a, b), (b, a)):
        first, count = first_of(tmp_path / str(sides is None or sides[0] is a), *sides)
        assert (first.kind, first.name, count) == ("wiring", "Functional.scatter.0.forward", 1)
        assert "B gives the one that A gives to Functional." in str(first.said)


def test_two_values_that_are_exchanged_everywhere_are_one_finding(tmp_path):
    a = ("take x s -> p", "scatter p t -> q")
    b = ("take x t -> p'", "scatter p' s -> q'")
    first, count = first_of(tmp_path, a, b)
    assert (first.kind, first.name, count) == ("wiring", "Functional.take.0.forward", 1)
    assert "B gives the one that A gives to Functional.scatter.0.forward, input 1" in str(
        first.said
    )


def test_a_value_that_the_other_run_does_not_have_is_a_value_from_outside(tmp_path):
    a = ("relu x -> p", "add p m -> q", "add q m -> r")
    b = ("relu x -> p", "add p m -> q", "add q other -> r'")
    first, count = first_of(tmp_path, a, b)
    assert (first.kind, count) == ("outside value", 1)


def embedding(name, table, given, made):
    """Return the calls of an embedding, as a Cell and the call inside it."""
    data = calls(f"gather {table} {given} -> {made}")
    [inner] = data.values()
    held = inner["input_args"][0]
    return {
        f"Cell.{name}.Embedding.forward.0": {
            "input_args": inner["input_args"][1:],
            "input_kwargs": {},
            "output": inner["output"],
            "parameters": {"table": held},
        }
    }


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_call_of_the_wrong_table_is_no_other_parameter(tmp_path, is_swapped):
    source = embedding("source", "ts", "i", "a")
    right = {**source, **embedding("target", "tt", "j", "b"), **calls("add a b -> c")}
    again = {
        "Cell.source.Embedding.forward.1": embedding("source", "ts", "j", "b'")[next(iter(source))]
    }
    wrong = {**source, **again, **calls("add a b' -> c'")}
    sides = (wrong, right) if is_swapped else (right, wrong)
    first, count = first_of(tmp_path, *sides)
    assert count == 1
    assert first.kind != "parameter", first
