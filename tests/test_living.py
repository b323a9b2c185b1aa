# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The living objects of some classes, beside threads that go on."""

from __future__ import annotations

import threading

import pytest

from probe.executor import living

pytestmark = pytest.mark.medium


class Kind:
    """A class."""


class Other(Kind):
    """A subclass."""


def test_objects_of_a_class_and_of_its_subclasses_are_found():
    made = [Kind(), Other(), Other()]
    assert {id(item) for item in living(Kind)} == {id(item) for item in made}
    assert [type(item) for item in living(Other)] == [Other, Other]


def test_a_thread_that_builds_tuples_is_not_disturbed():
    errors, ends = [], threading.Event()
    many = [[] for _ in range(300_000)]  # a look at all of them lasts longer than a thread may run

    def build():
        try:
            while not ends.is_set():
                tuple(number for number in range(500))
        except SystemError as error:  # of a tuple that another thread holds
            errors.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    for _ in range(10):
        living(Kind)
    ends.set()
    thread.join()
    assert errors == [] and many
