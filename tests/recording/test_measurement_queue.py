# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MeasurementQueue with a measurer and a copier of a few lines: nothing here needs MindSpore."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque

import numpy as np
import pytest

from probe.entry import Entry
from probe.measure.measurer import PendingRecord, Role, resolve
from probe.measure.tensor_reader import MeasureError
from probe.recording.measurement_queue import MeasurementQueue
from tests.support import processes
from tests.support.paths import environment

#: stands in the text of every error that an operation of MindSpore raises
MINDSPORE = "C++ Call Stack"


class Value:
    """Stands for a tensor, which may change."""

    dtype = "Float32"

    def __init__(self, number):
        self.number = number


class Reading:
    """A measurer whose record is the number itself."""

    is_immediate = True
    read = staticmethod(lambda value: np.array(value.number, np.float32))

    def tensor(self, value, name, sink, role):
        return value.number

    def array(self, array, dtype, name, sink):
        return float(array)


class Copying(Reading):
    """A copier, which is also a deferred measurer."""

    is_immediate = False
    is_full = False

    def __init__(self):
        self.steps = deque()

    @property
    def has_pending(self):
        return bool(self.steps)

    def drop(self):
        self.steps.clear()

    def copy(self, value):
        return Value(value.number)

    def tensor(self, value, name, sink, role):
        copy = self.copy(value)
        return self._later(lambda: copy.number)

    def sum_later(self, total, name, sink):
        return self._later(lambda: float(total.array) if total.resolve() else None)

    def _later(self, number):
        pending = PendingRecord()
        self.steps.append((pending, number))
        return pending

    def complete(self, guard):
        while self.steps:
            pending, number = self.steps.popleft()
            with guard("measuring a tensor"):
                pending.record = number()


class Rig:
    """A queue and its surroundings: ``accepted`` and ``waits`` tell what it did, ``error`` is raised by a wait."""

    def __init__(self, deferred=False, complete_only=False):
        self.accepted, self.entries, self.errors = [], [], []
        self.waits, self.error, self.on_accept, self.on_wait = (
            0,
            None,
            lambda entry: None,
            lambda: None,
        )
        self.copier = Copying()
        measurer = self.copier if deferred else Reading()
        self.queue = MeasurementQueue(
            measurer, self.copier, self._wait, self._accept, self._guard, complete_only
        )

    def _wait(self):
        self.waits += 1
        self.on_wait()
        error, self.error = self.error, None
        if error is not None:
            raise error

    def _accept(self, entry):
        self.entries.append(entry)
        self.accepted.append((entry.name, resolve(entry.parts)))
        self.on_accept(entry)

    @contextlib.contextmanager
    def _guard(self, operation):
        try:
            yield
        except Exception as error:
            self.errors.append((operation, error))

    def measure(self, number):
        return self.queue.measure(Value(number), "", None, Role.OUTPUT)

    def put(self, name, *numbers):
        self.queue.put(Entry(name, {"output": [self.measure(number) for number in numbers]}))

    def names(self):
        return [name for name, _ in self.accepted]


def output(*numbers):
    return {"output": list(numbers)}


def test_the_queue_works_where_mindspore_cannot_be_imported():
    code = (
        "import sys; sys.modules['mindspore'] = None\n"
        "import probe.recording.measurement_queue, probe.measure.measurer\n"
        "print(probe.recording.measurement_queue.MeasurementQueue.__name__)"
    )
    command = [sys.executable, "-c", code]
    done = processes.run(
        command,
        fresh="no MindSpore",
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert (done.stdout, done.stderr) == ("MeasurementQueue\n", "")


# -- measure -------------------------------------------------------------------------------------------------------


def test_a_record_is_complete_where_reading_is_allowed():
    rig, value = Rig(), Value(1.0)
    record = rig.queue.measure(value, "", None, Role.INPUT)
    value.number = 2.0
    assert rig.queue.may_read
    assert record == 1.0


@pytest.mark.parametrize("deferred", [False, True])
def test_a_record_is_pending_where_reading_is_not_allowed_and_later_shows_the_value_of_then(
    deferred,
):
    rig, value = Rig(deferred), Value(1.0)
    if not deferred:
        rig.queue.communication_started()
    record = rig.queue.measure(value, "", None, Role.INPUT)
    value.number = 2.0
    assert not rig.queue.may_read
    assert type(record) is PendingRecord and record.record is None
    rig.queue.communication_finished(ok=True)
    rig.queue.flush()
    assert record.record == 1.0


def test_a_name_a_sink_and_a_role_reach_the_measurer_and_the_copier():
    rig, seen = Rig(), []
    for measurer in (rig.queue._measurer, rig.copier):
        measurer.tensor = lambda *arguments, kind=measurer.is_immediate: seen.append(
            (kind, *arguments)
        )
    rig.queue.measure("tensor", "name", print, Role.INPUT)
    rig.queue.communication_started()
    rig.queue.measure("tensor", "name", print, Role.CHANGEABLE_INPUT)
    assert seen == [
        (True, "tensor", "name", print, Role.INPUT),
        (False, "tensor", "name", print, Role.CHANGEABLE_INPUT),
    ]


@pytest.mark.parametrize("in_flight", [False, True])
def test_a_sum_is_measured_now_or_after_the_flush(in_flight):
    rig = Rig()
    total, empty = rig.queue.new_sum(), rig.queue.new_sum()
    if in_flight:
        rig.queue.communication_started()
    total.add(Value(1.5))
    total.add(Value(2.0))
    records = [rig.queue.measure_sum(total, "", None), rig.queue.measure_sum(empty, "", None)]
    assert (type(records[0]) is PendingRecord) == in_flight
    rig.queue.flush(end_of_step=True)
    assert resolve(records) == [3.5, None]


def test_a_sum_of_which_nothing_is_left_has_no_record():
    rig = Rig()
    total = rig.queue.new_sum()
    rig.queue.communication_started()
    total.add(Value(1.5))
    assert total.subtract_from(Value(1.5))  # as far as that is known
    rig.queue.communication_finished(ok=True)
    assert rig.queue.measure_sum(total, "", None) is None


# -- put -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_flight", [False, True])
def test_an_entry_passes_at_once_if_nothing_waits(in_flight):
    rig = Rig()
    if in_flight:
        rig.queue.communication_started()
    rig.queue.put(Entry("numbers only", {"value": 3}))
    assert rig.accepted == [("numbers only", {"value": 3})]


def test_an_entry_that_waits_passes_at_once_with_nulls_and_again_when_it_is_complete():
    rig = Rig()
    rig.put("a", 1.0)
    rig.queue.communication_started()
    rig.put("b", 2.0, 3.0)
    rig.queue.put(Entry("c", {"value": 4}))
    assert rig.accepted == [("a", output(1.0)), ("b", output(None, None)), ("c", {"value": 4})]
    rig.queue.communication_finished(ok=True)
    assert rig.accepted[3:] == [("b", output(2.0, 3.0)), ("c", {"value": 4})]
    rig.put("d", 5.0)
    rig.queue.flush()
    assert rig.names() == ["a", "b", "c", "b", "c", "d"]


def test_the_second_time_an_entry_has_neither_stack_nor_parents():
    rig = Rig()
    rig.queue.communication_started()
    rig.queue.put(Entry("a", output(rig.measure(1.0)), stack=7, parents=[("a", None)]))
    rig.queue.flush(end_of_step=True)
    assert [(entry.stack, list(entry.parents)) for entry in rig.entries] == [
        (7, [("a", None)]),
        (-1, []),
    ]


@pytest.mark.parametrize(
    ("deferred", "complete_only"), [(True, False), (False, True), (True, True)]
)
def test_an_entry_that_waits_passes_once_and_in_order_where_nulls_are_of_no_use(
    deferred, complete_only
):
    rig = Rig(deferred, complete_only)
    rig.queue.communication_started()
    rig.queue.put(Entry("a", output(rig.measure(1.0)), stack=7, parents=[("a", None)]))
    rig.queue.put(Entry("b", {"value": 2}))
    rig.put("c", 3.0)
    assert rig.accepted == []
    rig.queue.flush(end_of_step=True)
    assert rig.accepted == [("a", output(1.0)), ("b", {"value": 2}), ("c", output(3.0))]
    assert (rig.entries[0].stack, rig.entries[0].parents) == (7, [("a", None)])


@pytest.mark.parametrize("deferred", [False, True])
def test_an_entry_that_is_put_after_its_records_were_completed_is_complete(deferred):
    rig = Rig(deferred, complete_only=True)
    rig.queue.communication_started()
    early = rig.measure(1.0)
    rig.queue.communication_finished(ok=True)
    rig.queue.flush()
    rig.queue.put(Entry("a", output(early)))
    (entry,) = rig.entries
    assert entry.parts == output(1.0)  # the record, not the pending one that stood for it


# -- synchronize and flush -----------------------------------------------------------------------------------------


def test_synchronize_waits_before_values_are_read_but_not_for_a_communication():
    rig = Rig()
    rig.queue.synchronize()
    assert rig.waits == 1
    rig.queue.communication_started()
    rig.queue.synchronize()
    rig.queue.flush()
    assert rig.waits == 1


def test_synchronize_completes_entries_that_wait_where_reading_is_allowed_again():
    rig = Rig()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.queue.communication_finished(ok=False)
    assert rig.accepted == [("a", output(None))]
    rig.queue.synchronize()
    assert rig.accepted == [("a", output(None)), ("a", output(1.0))]


def test_a_deferred_measurer_is_waited_for_only_when_it_is_full():
    rig = Rig(deferred=True)
    rig.put("a", 1.0)
    rig.queue.synchronize()
    assert (rig.waits, rig.accepted) == (0, [])
    rig.copier.is_full = True
    rig.queue.synchronize()
    assert (rig.waits, rig.accepted) == (1, [("a", output(1.0))])


def test_a_full_batch_does_not_end_a_communication():
    rig = Rig(deferred=True)
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.copier.is_full = True
    rig.queue.synchronize()
    assert (rig.waits, rig.accepted) == (0, [])


@pytest.mark.parametrize("method", ["synchronize", "flush"])
def test_an_error_of_the_training_is_raised_and_entries_that_wait_pass_without_doubtful_numbers(
    method,
):
    rig = Rig()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.queue.communication_finished(ok=False)
    rig.error = RuntimeError("the training's own")
    with pytest.raises(RuntimeError, match="the training's own"):
        getattr(rig.queue, method)()
    getattr(rig.queue, method)()
    assert (
        rig.accepted == [("a", output(None))] * 2
    )  # MindSpore may have dropped the copy, nobody knows


def test_the_error_of_a_failed_device_is_raised_once_and_an_error_of_one_operation_each_time():
    rig = Rig(deferred=True)

    def fail():
        raise RuntimeError("the device")

    rig.put("a", 1.0)
    rig.on_wait = fail
    with pytest.raises(RuntimeError, match="the device"):
        rig.queue.flush()
    assert rig.accepted == [("a", output(None))]
    rig.queue.flush(end_of_step=True)  # it fails again: the training knows
    rig.on_wait = lambda: None
    rig.error = RuntimeError("another operation")
    with pytest.raises(RuntimeError, match="another operation"):
        rig.queue.flush()
    assert rig.errors == []


def test_the_end_of_a_step_waits_also_for_communications_that_the_training_has_not_waited_for():
    rig = Rig()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.queue.flush()
    assert rig.names() == ["a"]
    rig.queue.flush(end_of_step=True)
    assert rig.accepted[1:] == [("a", output(1.0))]
    assert rig.queue.may_read
    assert not rig.queue.has_communication_in_flight


def test_at_the_end_of_a_process_entries_pass_with_null_for_unknown_records_and_only_once():
    rig = Rig(deferred=True)
    rig.put("a", 1.0)
    rig.queue.put(Entry("b", {"value": 2}))
    rig.queue.flush_incomplete()
    assert rig.accepted == [("a", output(None)), ("b", {"value": 2})]
    assert rig.waits == 0
    rig.queue.flush(end_of_step=True)
    assert rig.names() == ["a", "b"]


# -- communication -------------------------------------------------------------------------------------------------


def test_tensors_are_read_again_when_every_communication_has_finished():
    rig = Rig()
    rig.queue.communication_started()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.queue.communication_finished(ok=True)
    assert rig.queue.has_communication_in_flight
    assert rig.accepted == [("a", output(None))]
    rig.queue.communication_finished(ok=True)
    assert not rig.queue.has_communication_in_flight
    assert rig.accepted == [("a", output(None)), ("a", output(1.0))]


def test_after_a_wait_that_raised_nothing_is_waited_for():
    rig = Rig()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.queue.communication_finished(ok=False)
    assert (rig.waits, rig.accepted) == (0, [("a", output(None))])
    assert rig.queue.may_read


def test_a_communication_that_finishes_after_the_end_of_its_step_is_not_counted():
    rig = Rig()
    rig.queue.communication_started()
    rig.queue.flush(end_of_step=True)
    rig.queue.communication_finished(ok=True)
    rig.queue.communication_started()
    assert rig.queue.has_communication_in_flight


def test_communication_finished_raises_the_error_of_the_training():
    rig = Rig()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.error = RuntimeError("the training's own")
    with pytest.raises(RuntimeError, match="the training's own"):
        rig.queue.communication_finished(ok=True)
    rig.queue.flush()
    assert rig.accepted[-1] == (
        "a",
        output(None),
    )  # the copy may have been dropped behind the failure


# -- errors --------------------------------------------------------------------------------------------------------


def test_a_record_that_cannot_be_measured_stays_null_and_the_others_do_not():
    rig = Rig(deferred=True)
    rig.put("a", 1.0)
    rig.copier.steps.append((PendingRecord(), lambda: 1 / 0))
    rig.put("b", 2.0)
    rig.queue.flush()
    assert rig.accepted == [("a", output(1.0)), ("b", output(2.0))]
    assert [(operation, type(error)) for operation, error in rig.errors] == [
        ("measuring a tensor", ZeroDivisionError)
    ]


def test_an_entry_that_cannot_be_accepted_does_not_stop_the_others():
    rig = Rig(deferred=True)

    def fail(entry):
        if entry.name == "a":
            raise ZeroDivisionError("a mistake of ours")

    rig.on_accept = fail
    rig.put("a", 1.0)
    rig.put("b", 2.0)
    rig.queue.flush()
    rig.put("c", 3.0)
    rig.queue.flush()
    assert rig.names() == ["a", "b", "c"]
    assert [operation for operation, _ in rig.errors] == ["completing an entry"]


@pytest.mark.parametrize("method", ["synchronize", "flush", "raise_pending"])
def test_an_error_that_is_to_be_raised_later_is_raised_once(method):
    rig = Rig()
    rig.queue.pending_error = RuntimeError("found something")
    with pytest.raises(RuntimeError, match="found something"):
        getattr(rig.queue, method)()
    getattr(rig.queue, method)()


def test_entries_are_completed_before_a_pending_error_is_raised():
    rig = Rig(deferred=True)
    rig.put("a", 1.0)
    rig.on_accept = lambda entry: setattr(
        rig.queue, "pending_error", RuntimeError("found something")
    )
    with pytest.raises(RuntimeError, match="found something"):
        rig.queue.flush()
    assert rig.names() == ["a"]


@pytest.mark.parametrize("deferred", [False, True])
def test_an_error_of_the_training_that_our_read_met_is_claimed_and_raised_at_the_next_synchronize(
    deferred,
):
    rig = Rig(deferred)
    error = RuntimeError(f"out of memory\n{MINDSPORE}")
    rig.queue.communication_started()
    assert rig.queue.claim(error)
    with pytest.raises(RuntimeError) as raised:
        rig.queue.synchronize()
    assert raised.value is error
    rig.queue.synchronize()


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("a mistake of ours"),
        MeasureError(f"copying failed\n{MINDSPORE}"),
        KeyError("C++"),
    ],
    ids=repr,
)
def test_an_error_of_ours_is_not_claimed(error):
    rig = Rig(deferred=True)
    assert not rig.queue.claim(error)
    rig.queue.synchronize()
    rig.queue.flush()


def test_no_error_is_claimed_where_reading_is_allowed():
    rig = Rig()
    assert not rig.queue.claim(RuntimeError(MINDSPORE))
    rig.queue.synchronize()


# -- threads, signals, forks ---------------------------------------------------------------------------------------


@pytest.fixture
def hurried():
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", ["in flight", "deferred", "complete only"])
def test_nothing_is_lost_while_two_threads_record_and_flush(hurried, kind):
    rig, together, failures = (
        Rig(kind == "deferred", kind == "complete only"),
        threading.Barrier(2),
        [],
    )

    def record(thread):
        together.wait(600)
        try:
            for i in range(600):
                if i % 5 == 0:
                    rig.queue.communication_started()
                rig.put(f"{thread}.{i}", float(i))
                if i % 5 == 4:
                    rig.queue.communication_finished(ok=True)
                if i % 3 == 0:
                    rig.queue.flush()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=record, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rig.queue.flush(end_of_step=True)
    assert failures == rig.errors == []
    for name in "ab":
        mine = [(entry, parts) for entry, parts in rig.accepted if entry.startswith(name)]
        last = dict(mine)
        assert last == {f"{name}.{i}": output(float(i)) for i in range(600)}
        if kind != "in flight":
            assert [entry for entry, _ in mine] == list(last)
    if kind == "in flight":
        first = list(dict.fromkeys(rig.names()))
        assert [entry for entry in first if entry[0] == "a"] == [f"a.{i}" for i in range(600)]


@pytest.mark.parametrize("method", ["flush", "flush_incomplete"])
def test_the_lock_is_held_while_entries_pass(method):
    rig, free = Rig(), []

    def attempt():
        free.append(rig.queue.lock.acquire(blocking=False))
        if free[-1]:
            rig.queue.lock.release()

    def look(entry):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

    rig.on_accept = look
    rig.put("a", 1.0)
    rig.queue.communication_started()
    rig.put("b", 2.0)
    rig.queue.communication_finished(ok=False)
    getattr(rig.queue, method)()
    assert rig.names() == ["a", "b", "b"]
    assert free == [False] * 3


def test_a_communication_that_another_thread_starts_during_the_wait_is_not_read():
    rig = Rig()
    rig.queue.communication_started()
    rig.put("a", 1.0)
    rig.queue.communication_finished(ok=False)
    rig.on_wait = rig.queue.communication_started
    rig.queue.flush()
    assert rig.accepted == [("a", output(None))]
    rig.queue.communication_finished(ok=False)
    rig.on_wait = lambda: None
    rig.queue.flush()
    assert rig.accepted[1:] == [("a", output(1.0))]


@pytest.mark.parametrize(
    ("deferred", "complete_only"), [(False, False), (True, False), (False, True)]
)
@pytest.mark.parametrize("method", ["flush", "flush_incomplete"])
@pytest.mark.parametrize("at", ["a", "b", "c"])
def test_a_signal_handler_that_ends_the_step_while_entries_pass_loses_none(
    deferred, complete_only, method, at
):
    rig, ended = Rig(deferred, complete_only), []

    def interrupt(entry):
        if rig.waits and entry.name == at and not ended:
            ended.append(True)
            getattr(rig.queue, method)()

    rig.on_accept = interrupt
    rig.queue.communication_started()
    for name in "abc":
        rig.put(name, 1.0)
    rig.queue.flush(end_of_step=True)
    assert ended
    assert rig.errors == []
    assert dict(rig.accepted) == {name: output(1.0) for name in "abc"}


def test_an_entry_that_is_put_while_entries_pass_comes_after_them():
    rig = Rig(deferred=True)
    rig.on_accept = lambda entry: (
        rig.queue.put(Entry("late", {"value": 1})) if entry.name == "a" else None
    )
    rig.put("a", 1.0)
    rig.put("b", 2.0)
    rig.queue.flush()
    rig.queue.flush()
    assert rig.names() == ["a", "b", "late"]


def test_a_forked_child_is_not_held_up_by_a_thread_of_its_parent():
    rig, holds, leave = Rig(), threading.Event(), threading.Event()

    def hold():
        with rig.queue.lock:
            holds.set()
            leave.wait(600)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(600)
    try:
        assert not rig.queue.lock.acquire(blocking=False)
        rig.queue.detach()
        assert rig.queue.lock.acquire(blocking=False)
        rig.queue.lock.release()
    finally:
        leave.set()
        thread.join()
