# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The columns of a report: numbers, texts, the states of calls, and what one rank stands for."""

from __future__ import annotations

import base64
import gzip
import io
import math
import re
from array import array

import pytest
from hypothesis import given, settings, strategies as st

from probe.findings.sentence import say
from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.partners import Pair
from probe.reading.report import content, part as kinds
from probe.reading.report.columns import (
    MISSING_DOUBLE,
    MISSING_SINGLE,
    doubled,
    joined,
    packed,
    single,
)
from probe.reading.report.content import ContentMaker, Merged
from probe.reading.report.headline import OneRun
from probe.reading.report.html_page import write
from probe.reading.report.part import Part
from probe.reading.report.reading import _pair_state, pair_part, read_pairs, run_part
from probe.reading.report.sources import Sources
from tests.reading.builders import calls, dump, forward, tensor, value


def unpacked(letters, column):
    """Return the bytes of a column that was packed."""
    content, size = gzip.decompress(base64.b64decode(letters)), column.itemsize
    count = len(content) // size
    return b"".join(
        bytes(content[place * count + number] for place in range(size)) for number in range(count)
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, None], "f"),
        ([1e300], "d"),
        ([1e-300], "d"),
        ([-1e39], "d"),
        ([math.inf, -math.inf, math.nan, 0.0, -0.0], "f"),
    ],
)
def test_half_the_digits_are_kept_where_they_hold_the_numbers(values, kind):
    assert single(values).typecode == kind


def test_a_missing_number_stays_missing_beside_one_with_all_digits():
    whole = joined([single([1.5, None]), single([1e300, None])])
    assert whole.typecode == "d"
    assert list(whole) == [1.5, MISSING_DOUBLE, 1e300, MISSING_DOUBLE]
    assert list(single([None])) == [MISSING_SINGLE]
    assert list(doubled(single([None, 2.0]))) == [MISSING_DOUBLE, 2.0]


NUMBERS = st.lists(st.floats(width=32), min_size=1, max_size=9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(NUMBERS, NUMBERS)
def test_a_column_comes_back_from_its_letters(own, other):
    column, base = array("f", own), array("f", other)
    assert unpacked(packed(column), column) == column.tobytes()
    found = unpacked(packed(column, base), column)
    if len(base) == len(column):
        pairs = zip(found, base.tobytes())
        found = bytes(a ^ b for a, b in pairs)
    assert found == column.tobytes()


def pair_state(a, b):
    """Return the state of the only call of two dumps."""
    part = Part(0, 0)
    read_pairs(part, JudgedPairs(dump(a), dump(b), Options()))
    (state,) = part.calls["state"]
    return kinds.STATES[state]


def call(given, made):
    return {
        "Functional.f.0.forward": forward(
            [tensor(norm=given, Max=given)], [tensor(norm=made, Max=made)]
        )
    }


@pytest.mark.parametrize(
    ("b", "state"),
    [
        (call(4.0, 4.0), "ok"),
        (call(4.0 * (1 + 1e-6), 4.0 * (1 + 1e-6)), "ok"),
        (call(4.0, 4.4), "grown"),
        (call(4.4, 4.4), "carried"),
        (call(4.04, 4.8), "grown"),
        (call(4.04, 4.2), "carried"),
        (call(5.0, 4.0), "carried"),
    ],
)
def test_the_state_of_a_pair(b, state):
    assert pair_state(call(4.0, 4.0), b) == state


@pytest.mark.parametrize(("rel_l2", "state"), [(0.9e-6, "carried"), (1.1e-6, "grown")])
def test_an_output_has_not_grown_where_no_digit_of_float32_could_tell(rel_l2, state):
    slot = Slot("output.0", False, tensor(), tensor(), Distance(rel_l2, rel_l2), "differs")
    assert kinds.STATES[_pair_state(Pair(0, 0, "exact"), [slot])] == state


@pytest.mark.parametrize(
    ("numbers", "state"),
    [
        ({"Max": 1.0, "Min": -1.0}, "ok"),
        ({"Max": 64000.0}, "close_to_overflow"),
        ({"Min": -64000.0}, "close_to_overflow"),
        ({"Max": math.inf}, "nan"),
        ({"Min": math.nan}, "nan"),
        ({"Max": 64000.0, "dtype": "Float32"}, "ok"),
    ],
)
def test_the_state_of_a_call_of_one_run(numbers, state):
    record = tensor(**{"dtype": "Float16", **numbers})
    part = run_part(dump({"Functional.f.0.forward": forward([value(2)], [record])}).folder)
    assert kinds.STATES[part.calls["state"][0]] == state


def parts(ranks, lines, fault):
    """Return the parts of ranks; the last has another output of the call with this number, and a note there."""
    made = []
    for rank in range(ranks):
        a = calls(*lines)
        b = calls(*lines)
        if rank == ranks - 1:
            entry = list(b.values())[fault]
            entry["output"], entry["error"] = [tensor(norm=99.0, Max=50.0)], "it broke"
        made.append(pair_part(dump(a, rank=rank).folder, dump(b, rank=rank).folder, Options()))
    return made


@pytest.mark.parametrize("fault", [0, 2])
def test_a_rank_that_another_stands_for_keeps_its_faulty_calls_with_their_notes(monkeypatch, fault):
    monkeypatch.setattr(content, "WHOLE", 1)
    lines = ("relu x -> a", "exp x -> b", "tanh x -> c")
    merged = Merged(parts(2, lines, fault))
    assert merged.units[1]["like"] == 0
    assert (merged.dropped, len(merged.calls["name"])) == (2, 4)
    assert merged.calls["index"][3] == fault
    assert merged.notes == {3: say("report.error", text="it broke")}


def test_all_rows_are_kept_where_they_are_few_or_asked_for(monkeypatch):
    lines = ("relu x -> a", "exp x -> b")
    assert Merged(parts(2, lines, 0)).dropped == 0
    monkeypatch.setattr(content, "WHOLE", 1)
    assert Merged(parts(2, lines, 0), everything=True).dropped == 0


def test_a_column_of_b_is_told_by_its_bits_beside_a_only_where_both_have_as_many_digits():
    a, b = call(4.0, 4.0), call(4.0, 1e300)
    made = pair_part(dump(a).folder, dump(b).folder, Options())
    page = io.StringIO()
    write(page, ContentMaker(Sources(("a", "b"), [made])).content(OneRun()))
    of = dict(re.findall(r'id="data-row-(\w+)" data-kind="([^"]+)"', page.getvalue()))
    assert (of["Max_a"], of["Max_b"]) == ("f", "d")
    assert (of["Min_a"], of["Min_b"]) == ("f", "f^")
