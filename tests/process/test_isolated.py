# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A process of its own that crashes, hangs or says half of a line is told as that, and harms nobody else."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from probe.findings.sentence import say
from probe.process.isolated import EndedError, Isolated, cores

pytestmark = pytest.mark.slow

#: seconds; only a process that hangs needs them
LONG = 100.0
SHORT = 1.0


def worker(task, requests, tell):
    """Do what each request names; the other process runs this."""
    for request in requests:
        ACTIONS[request](task, requests, tell)


def crash(*_):
    ctypes.string_at(0)


def hang(*_):
    threading.Event().wait()


def say_half(task, requests, tell):
    """Write the first half of a line and wait for a request; then write the second."""
    stream = end_of_pipe(tell)
    os.write(stream, b'{"half": ')
    next(requests)
    os.write(stream, b"2}\n")


def end_of_pipe(tell):
    """Return the file descriptor that takes the answers."""
    return inspect.getclosurevars(tell).nonlocals["answers"].fileno()


def close_pipe(task, requests, tell):
    os.close(end_of_pipe(tell))
    threading.Event().wait()


def talk(task, requests, tell):
    print('{"not": "an answer"}', flush=True)
    os.write(2, b"neither\n")
    tell(sys.stdin.read())


def fork(task, requests, tell):
    """Leave a child that holds the pipe, and end."""
    child = os.fork()
    if not child:
        threading.Event().wait()
    tell(child)
    os._exit(0)


def fail(*_):
    raise ValueError("wrong")


ACTIONS = {
    "crash": crash,
    "hang": hang,
    "half": say_half,
    "close": close_pipe,
    "talk": talk,
    "fork": fork,
    "fail": fail,
    "task": lambda task, requests, tell: tell([task, os.getcwd(), dict(os.environ)]),
    "pid": lambda task, requests, tell: tell(os.getpid()),
    "sentence": lambda task, requests, tell: tell([say("replay.limit", seconds=2.0), Path("text")]),
}


@pytest.fixture
def start():
    """Starts a process; all end with the test."""
    with contextlib.ExitStack() as cleanup:

        def started(task=None, folder="", **variables):
            return cleanup.enter_context(
                contextlib.closing(Isolated(f"{__name__}:worker", task or {}, folder, **variables))
            )

        yield started


def asked(process, request, limit=LONG):
    process.send(request)
    return process.receive(limit)


def is_alive(pid):
    """Return whether a process runs; one that has ended and waits for its parent does not."""
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_it_has_its_task_its_folder_and_no_variable_of_a_launcher(start, tmp_path, monkeypatch):
    monkeypatch.setenv("RANK_ID", "1")
    monkeypatch.setenv("KEPT", "2")
    task, folder, variables = asked(start({"a": [1]}, str(tmp_path), FURTHER="3"), "task")
    assert (task, folder) == ({"a": [1]}, str(tmp_path))
    assert (variables.get("RANK_ID"), variables["KEPT"], variables["FURTHER"]) == (None, "2", "3")


def test_a_crash_is_told_with_its_signal_and_its_innermost_frame(start, tmp_path):
    process = start(folder=str(tmp_path))
    with pytest.raises(EndedError) as ended:
        asked(process, "crash")
    assert ended.value.status == -signal.SIGSEGV
    assert (ended.value.frame[0], ended.value.frame[2]) == ("__init__.py", "string_at")


def test_without_a_folder_a_crash_has_its_signal_alone(start):
    with pytest.raises(EndedError) as ended:
        asked(start(), "crash")
    assert (ended.value.status, ended.value.frame, ended.value.words) == (-signal.SIGSEGV, (), "")


def test_an_error_is_told_with_the_status_and_the_last_words(start, tmp_path):
    with pytest.raises(EndedError) as ended:
        asked(start(folder=str(tmp_path)), "fail")
    assert (ended.value.status, ended.value.words) == (1, "ValueError: wrong")


def test_a_process_that_hangs_takes_its_limit_alone(start):
    hanging, other = start(), start()
    hanging.send("hang")
    with pytest.raises(TimeoutError):
        hanging.receive(SHORT)
    assert asked(other, "pid")


def test_half_a_line_is_no_answer_until_the_rest_comes(start):
    process = start()
    assert asked(process, "pid")
    with pytest.raises(TimeoutError):
        asked(process, "half", SHORT)
    assert asked(process, "go on") == {"half": 2}


def test_printed_text_is_no_answer_and_requests_are_read_by_nobody_else(start):
    process = start()
    assert asked(process, "talk") == ""
    assert asked(process, "pid")


def test_a_forked_child_that_holds_the_pipe_ends_with_its_parent(start):
    process = start()
    child = asked(process, "fork")
    with pytest.raises(TimeoutError):
        process.receive(SHORT)
    assert is_alive(child)
    process.close()
    end = time.monotonic() + LONG
    while is_alive(child) and time.monotonic() < end:  # the kernel takes a moment to end it
        os.sched_yield()
    assert not is_alive(child)


def test_a_process_that_closes_its_pipe_and_goes_on_is_one_that_hangs(start):
    process = start()
    pid = asked(process, "pid")
    with pytest.raises(TimeoutError):
        asked(process, "close", SHORT)
    assert is_alive(pid)


def test_a_killed_process_is_told_whenever_it_is_asked(start):
    process = start()
    os.kill(asked(process, "pid"), signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(EndedError) as ended:
            asked(process, "pid")
        assert ended.value.status == -signal.SIGKILL


def test_a_signal_to_the_group_of_its_parent_does_not_reach_it(start):
    assert os.getpgid(asked(start(), "pid")) != os.getpgid(0)


def test_a_sentence_travels_as_key_and_facts_and_other_objects_as_text(start):
    assert asked(start(), "sentence") == [
        {"key": "replay.limit", "facts": {"seconds": 2.0}},
        "text",
    ]


def test_cores_are_those_that_this_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, before)
