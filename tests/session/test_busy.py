# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A call of a session runs: a process that ends waits for it, and a budget counts its time."""

from __future__ import annotations

import threading
import time

from probe.session.recording import Busy


def work(seconds):
    """Use the processor for so many seconds."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass


def test_nested_calls_count_once_and_the_call_that_runs_counts_so_far():
    busy = Busy()
    with busy:
        work(0.1)
        with busy:
            work(0.1)
        so_far = busy.seconds()
        assert 0.2 <= so_far < 0.28  # counted twice, the inner one makes it 0.3
    assert so_far <= busy.seconds() < 0.28


def test_time_between_calls_does_not_count():
    busy = Busy()
    with busy:
        work(0.01)
    ended = busy.seconds()
    work(0.02)
    assert busy.seconds() == ended


def test_a_wait_for_other_threads_does_not_count():
    busy = Busy()
    other = threading.Thread(target=work, args=(0.2,))
    with busy:
        other.start()
        other.join()
    assert busy.seconds() < 0.1


def test_the_end_waits_for_the_outermost_call():
    busy = Busy()
    ended = []
    with busy:
        with busy:
            assert not busy.wait(lambda: ended.append("now"))
        assert not ended
    assert ended == ["now"]
    assert busy.wait(lambda: ended.append("again"))
