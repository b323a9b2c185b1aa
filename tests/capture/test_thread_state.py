# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The state of each thread: the calls that are open, and the logs of recomputed Cells."""

from __future__ import annotations

import threading

import pytest

from probe.capture.pynative.thread_state import OpenCall, ReplayLog, ThreadState
from probe.entry import Kind
from probe.recording.call import Call


def call(name="a"):
    return Call(Kind.CELL, f"Cell.{name}", 0, None)


#: stand for Cells
CELLS = {name: object() for name in "abcd"}


def opened(name):
    return OpenCall(None, call(name), False, CELLS[name])


def names(state):
    return "".join(name for one in state.cells for name, cell in CELLS.items() if one.cell is cell)


@pytest.fixture
def state():
    return ThreadState()


def test_every_thread_has_a_state_of_its_own(state):
    state.in_recorded_call = True
    state.cells.append(opened("a"))
    state.logs.append(ReplayLog())
    state.replays.append(ReplayLog())
    seen = []

    def look():
        seen.append((state.in_recorded_call, *map(len, (state.cells, state.logs, state.replays))))
        state.cells.append(opened("b"))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [(False, 0, 0, 0)]
    assert names(state) == "a"
    assert len(state.logs) == 1


def test_the_innermost_open_cell_is_the_last(state):
    assert state.cell is None
    state.cells += [opened("a"), opened("b")]
    assert state.cell is state.cells[1].call
    state.leave(1, CELLS["b"])
    assert state.cell is state.cells[0].call


def test_a_cell_is_left_with_the_calls_inside_it_that_an_exception_has_left_open(state):
    state.cells += [opened(name) for name in "abcd"]
    left = state.leave(1, CELLS["b"])
    assert left is not None and left.cell is CELLS["b"]
    assert names(state) == "a"


@pytest.mark.parametrize(("depth", "cell"), [(0, "b"), (1, "a"), (2, "c"), (7, "a")])
def test_a_cell_that_was_open_before_the_recording_began_is_not_left(state, depth, cell):
    state.cells += [opened("a"), opened("b")]
    assert state.leave(depth, CELLS[cell]) is None
    assert names(state) == "ab"


def test_a_cell_that_calls_itself_is_left_level_by_level(state):
    calls = [opened("a") for _ in range(3)]
    state.cells += calls
    assert [state.leave(depth, CELLS["a"]) for depth in (2, 1, 0)] == calls[::-1]
    assert state.cells == []


def test_cells_are_compared_by_identity(state):
    class Alike:
        def __eq__(self, other):
            return True

        __hash__ = None

    state.cells.append(OpenCall(None, call(), False, Alike()))
    assert state.leave(0, Alike()) is None
    assert state.leave(0, state.cells[0].cell) is not None


def test_a_log_gives_back_the_calls_of_each_key_in_their_order():
    log, calls = ReplayLog(), [call(str(i)) for i in range(4)]
    for key, one in zip("xyxy", calls):
        log.add(key, one)
    assert [log.pop(key) for key in "yxxy"] == [calls[1], calls[0], calls[2], calls[3]]
    assert log.pop("x") is log.pop("never seen") is None
