# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Origins that are one change: known by the calls and the lines of both sides, in both orders."""

from __future__ import annotations

from probe.findings.sentence import say
from probe.reading.compare.origins.one_change import Named, like_once, merged, of_lines, once
from probe.reading.compare.origins.origin import CodeLine, Origin, Site
from probe.reading.dumps.flow import Frame

ADD, MUL = "Functional.add.0.forward", "Functional.mul.0.forward"


def origin(calls, lines=(None, None), kind="wiring", step=0, rank=0):
    """Return an origin of a call in A and in B, each at a line; "" and None for a side without it."""
    frames = tuple(line and Frame("/me/net.py", line, "run", f"line{line}()") for line in lines)
    name, frame = (calls[1], frames[1]) if calls[1] else (calls[0], frames[0])
    site = Site(name, "input.0", None, step, rank, calls=calls)
    return Origin(kind, site, say("compare.differs"), CodeLine([], frame, frames))


def turned(item):
    """Return the same origin as the other order has it."""
    lines = [one and one.line for one in item.code.frames[::-1]]
    return origin(item.site.calls[::-1], lines, item.kind)


def add(number):
    return f"Functional.add.{number}.forward"


def loop():
    """Return two calls of one line of A, which runs twice, where B has two lines."""
    return [origin((add(0), add(0)), (5, 5)), origin((add(1), add(1)), (5, 6))]


def test_calls_of_one_line_of_either_side_are_one():
    for items in (loop(), list(map(turned, loop()))):
        assert len(like_once(items)) == 1
        (found,) = merged(items)
        assert found.more == [add(1)]


def test_calls_of_a_line_are_counted_by_their_names_on_both_sides():
    # the name that an origin has is another one in the other order
    alone, other = (
        origin((add(1), ""), (5, None), "calls"),
        origin((add(0), add(1)), (5, 5)),
    )
    for items in ([alone, other], list(map(turned, (alone, other)))):
        (found,) = merged(items)
        assert len(found.more) == 1


def test_a_call_that_two_origins_name_is_counted_once():
    items = [origin((add(1), ""), (5, None), "calls"), origin((add(1), add(0)), (5, 5))]
    for order in (items, list(map(turned, items))):
        (found,) = merged(order)
        assert found.more == []


def test_a_line_of_the_other_file_is_another_line():
    # an insertion above: the line 8 of B is the line 5 of A
    shifted = [origin((add(0), add(0)), (5, 8)), origin((add(1), add(1)), (8, 11))]
    assert len(merged(shifted)) == 2


def test_neighbouring_lines_that_were_edited_are_one_change():
    both = [origin((add(0), add(0)), (5, 6)), origin((add(1), add(1)), (6, 7))]
    for items in (both, list(map(turned, both))):
        (found,) = merged(items)
        assert found.more == [add(1)]
    apart = [both[0], origin((add(1), add(1)), (7, 8))]
    assert len(merged(apart)) == 2
    of_another_api = [both[0], origin((MUL, MUL), (6, 7))]
    assert len(merged(of_another_api)) == 2


def test_later_ones_of_the_lines_of_origins_are_told_with_them():
    first, second = loop()
    same, rest = of_lines([first], [second, origin((MUL, MUL), (9, 9))])
    assert same == [second]
    assert [item.name for item in rest] == [MUL]


def test_a_name_of_one_side_is_no_call_of_the_other():
    named = Named([origin((ADD, ""))])
    assert named.holds(origin((ADD, MUL)))
    assert not named.holds(origin(("", ADD)))
    assert not named.holds(origin((MUL, ADD)))


def test_calls_with_one_name_and_two_partners_are_two_changes():
    items = [origin((ADD, ADD)), origin((MUL, ADD), step=1), origin((ADD, ADD), step=1)]
    assert once(items) == items[:2]


def test_ranks_of_one_change_are_told_once():
    (found,) = merged([origin((ADD, ADD), rank=rank) for rank in (0, 1, 1)])
    assert found.ranks == [1]
