# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Sets of files as MindSpore's documentation has them: fileName_dtype_id.npy, with an id that counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from probe.capture.graph.dumped_files import (
    END,
    ENTER,
    LEAVE,
    OF_OUTPUT,
    UPDATE,
    base_name,
    events,
    list_files,
    remove_files,
    wait_for_end,
)
from probe.capture.graph.operators import FileReplay
from probe.capture.graph.sites import OUTPUT, Leaf, Plan
from probe.store.error_log import ErrorGuard


class Folder:
    """Writes files as the host does."""

    def __init__(self, path):
        self.path, self.ids = path, itertools.count(7)

    def write(self, kind, plan, number, array=None, key="Cell.a.B", identity=None, dtype="float32"):
        array = np.full((2, 3), 1.5, np.float32) if array is None else array
        identity = next(self.ids) if identity is None else identity
        file = self.path / f"{base_name(key, kind, plan, number)}_{dtype}_{identity}.npy"
        np.save(file, array)
        file.chmod(0o400)
        return file


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


class Events:
    """Keeps the events."""

    def __init__(self):
        self.plans = PLANS
        self.got, self.errors, self.calls = [], [], itertools.count(1)

    def enter(self, plan, arrays):
        self.got.append(
            ("enter", plan, [None if array is None else float(array.sum()) for array in arrays])
        )
        return next(self.calls)

    def leave(self, call, plan, arrays):
        self.got.append(
            ("leave", call, [None if array is None else float(array.sum()) for array in arrays])
        )

    def gradient_of(self, calls, place, array):
        self.got.append(("gradient", list(calls), place))

    def update(self, plan, number, array):
        self.got.append(("update", plan, number))

    def guard(self):
        return ErrorGuard(lambda _, error: self.fail(error), "")

    def fail(self, error):
        self.errors.append(error)


def plan(key, *shapes, dtype="Float32"):
    leaves = [Leaf((0, i), dtype, shape, i) for i, shape in enumerate(shapes)]
    return Plan(key, (), leaves, list(leaves))


#: a Cell with two inputs around a Cell without tensors; its outputs; an optimizer
PLANS = [
    plan("Cell.a.B", (2, 3), (2, 3)),
    plan("Cell.a.c.C"),
    plan("Cell.a.c.C", (2, 3)),
    plan("Cell.a.B", (2, 3)),
    plan("", (2, 3), (2, 3)),
]


def replay(folder):
    got = Events()
    FileReplay(got).run(list_files(str(folder.path)))
    return got.got, [type(error).__name__ for error in got.errors]


def whole_step(folder):
    folder.write(ENTER, 0, 0)
    folder.write(ENTER, 0, 1)
    folder.write(ENTER, 1, 9999, np.zeros(1, np.int32), dtype="int32")
    folder.write(LEAVE, 2, 0)
    folder.write(LEAVE, 3, 0)
    folder.write(OF_OUTPUT, 3, 0)
    folder.write(UPDATE, 4, 0)
    folder.write(UPDATE, 4, 1)


STEP = [
    ("enter", 0, [9.0, 9.0]),
    ("enter", 1, []),
    ("leave", 2, [9.0]),
    ("leave", 1, [9.0]),
    ("gradient", [1], OUTPUT),
    ("update", 4, 0),
    ("update", 4, 1),
]


def test_a_step(folder):
    whole_step(folder)
    assert replay(folder) == (STEP, [])


def test_ids_are_numbers_and_other_files_are_left_out(folder):
    (folder.path / "user_float32_8.npy").write_bytes(b"")
    (folder.path / "Cell.a.B.enter.0.0.npy").write_bytes(b"")
    (folder.path / "Cell.a.B.enter.0.0_float32_8.npy.tmp").write_bytes(b"")
    folder.ids = itertools.count(98)  # 98, 99, 100: in another order as texts
    whole_step(folder)
    assert replay(folder) == (STEP, [])


def test_a_key_with_a_separator_and_a_very_long_one(folder):
    for key in ("Cell.a/b.C", "Cell." + "layer." * 60 + "Dense"):
        name = base_name(key, ENTER, 123, 4)
        assert "/" not in name and len(f"{name}_bfloat16_{2**40}.npy") < 255
        folder.write(ENTER, 123, 4, key=key)
    assert [(file.plan, file.number) for file in list_files(str(folder.path))] == [
        (123, 4),
        (123, 4),
    ]


def test_files_of_two_steps(folder):
    whole_step(folder)
    first = list_files(str(folder.path))
    whole_step(folder)
    got, errors = replay(folder)
    assert [event[0] for event in got] == [event[0] for event in STEP] * 2 and not errors
    remove_files(first)
    got, errors = replay(folder)
    assert got == STEP and not errors
    remove_files(first)  # gone already


def test_a_missing_file_leaves_a_gap_and_no_shift(folder):
    whole_step(folder)
    next(folder.path.glob("*enter.0.1_*")).unlink()
    got, errors = replay(folder)
    assert got == [("enter", 0, [9.0, None]), *STEP[1:]] and errors == ["FileNotFoundError"]


def test_a_missing_first_file_with_two_calls(folder):
    whole_step(folder)
    next(folder.path.glob("*enter.0.0_*")).unlink()
    whole_step(folder)
    got, errors = replay(folder)
    assert got[0] == ("enter", 0, [None, 9.0]) and got[7] == ("enter", 0, [9.0, 9.0])
    assert errors == ["FileNotFoundError"]


@pytest.mark.parametrize("kept", [0, 5, 100, 140])
def test_a_file_that_is_cut_off(folder, kept):
    whole_step(folder)
    file = next(folder.path.glob("*enter.0.1_*"))
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:kept])
    got, errors = replay(folder)
    assert got == [("enter", 0, [9.0, None]), *STEP[1:]] and len(errors) == 1


def test_an_array_of_another_tensor_is_not_taken(folder):
    folder.write(ENTER, 0, 0, np.ones((3, 2), np.float32))
    folder.write(ENTER, 0, 1, np.ones((2, 3), np.float16), dtype="float16")
    got, errors = replay(folder)
    assert got == [("enter", 0, [None, None])] and errors == ["ValueError", "ValueError"]


def test_bfloat16_is_stored_as_float32(tmp_path):
    from probe.capture.graph.sites import HostValue

    leaf = Leaf((0, 0), "BFloat16", (2,), 0)
    value = leaf.value(np.array([1.5, 2.0], np.float32))
    assert (
        isinstance(value, HostValue)
        and str(value.array.dtype) == "bfloat16"
        and value.dtype == "BFloat16"
    )


def test_a_return_without_a_call_is_an_error_and_the_rest_is_taken(folder):
    folder.write(LEAVE, 3, 0)
    whole_step(folder)
    assert replay(folder) == (STEP, ["ValueError"])


def test_gradients_between_the_files_of_one_call(folder):
    folder.write(ENTER, 0, 0)
    folder.write(OF_OUTPUT, 3, 0)
    folder.write(ENTER, 0, 1)
    got, errors = replay(folder)
    assert got == [("gradient", [], OUTPUT), ("enter", 0, [9.0, 9.0])] and not errors


def test_the_wait_ends_with_the_last_file_and_not_before_it_is_whole(folder):
    """A large tensor comes in pieces (MS_DUMP_SLICE_SIZE): its file is whole when the next one is begun."""
    whole_step(folder)
    end = folder.path / f"{base_name('', END, 0, 0)}_int32_99.npy"
    whole = folder.write(END, 0, 0, np.zeros(1, np.int32), key="x", dtype="int32").read_bytes()
    (folder.path / next(folder.path.glob("x.end*")).name).unlink()
    times = itertools.count()

    def clock():
        now = next(times)
        if now == 2:
            end.write_bytes(whole[:60])
        elif now == 4:
            assert end.exists()
            end.write_bytes(whole)
        return float(now)

    assert wait_for_end(str(folder.path), 100.0, clock).path == str(end)
    assert next(times) > 4


def test_the_wait_ends_when_nothing_more_comes(folder):
    whole_step(folder)
    times = itertools.count()

    def clock():
        now = next(times)
        if now in (5, 10):
            folder.write(UPDATE, 4, 1)  # late files prolong it
        return float(now)

    assert wait_for_end(str(folder.path), 8.0, clock) is None
    assert next(times) > 15
    assert wait_for_end(str(folder.path / "nowhere"), -1.0) is None


def test_events_without_files():
    assert list(events([], lambda plan: 1)) == []
