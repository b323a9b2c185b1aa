# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""HookGroup: hooks are installed, removed and suspended together, in every order of these."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from probe.capture.patches import HookGroup

pytestmark = pytest.mark.medium


class Hooks:
    """Notes in a list that is shared what is done with it; both may be called twice."""

    def __init__(self, name, log):
        self.name, self.log, self.is_installed = name, log, False

    def install(self):
        self.is_installed = True
        self.log.append(f"+{self.name}")

    def remove(self):
        self.is_installed = False
        self.log.append(f"-{self.name}")


@pytest.fixture
def log():
    return []


@pytest.fixture
def three(log):
    """A group of three hooks, not installed, and the hooks."""
    group, hooks = HookGroup(), [Hooks(name, log) for name in "abc"]
    for one in hooks:
        group.add(one)
    return group, hooks


def test_hooks_are_installed_in_their_order_and_removed_in_the_reverse_order(three, log):
    group, _ = three
    group.install()
    group.remove()
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


def test_hooks_that_are_added_are_installed_if_the_others_are(three, log):
    group, _ = three
    assert log == []
    group.install()
    del log[:]
    group.add(Hooks("d", log))
    group.suspend()
    group.add(Hooks("e", log))
    group.resume()
    assert log == ["+d", "-d", "-c", "-b", "-a", "+a", "+b", "+c", "+d", "+e"]


def test_hooks_that_are_discarded_are_removed_and_forgotten(three, log):
    group, (_, b, _) = three
    group.install()
    del log[:]
    group.discard(b)
    group.discard(b)
    group.discard(None)
    group.discard(Hooks("stranger", log))
    assert log == ["-b"]
    group.remove()
    assert log == ["-b", "-c", "-a"]


def test_suspended_hooks_come_back_also_after_an_error(three):
    group, hooks = three
    group.install()

    def fail():
        with group.suspended():
            assert group.is_suspended
            assert not any(one.is_installed for one in hooks)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not group.is_suspended
    assert all(one.is_installed for one in hooks)


@pytest.mark.parametrize("suspends", [True, False])
def test_suspended_inside_suspended_leaves_the_outer_one_as_it_is(three, suspends):
    group, hooks = three
    group.install()
    if suspends:
        group.suspend()
    with group.suspended():
        with group.suspended():
            assert not any(one.is_installed for one in hooks)
        assert not any(one.is_installed for one in hooks)
    assert [one.is_installed for one in hooks] == [not suspends] * 3
    assert group.is_suspended == suspends


def test_hooks_that_are_removed_while_they_are_suspended_stay_removed(three):
    group, hooks = three
    group.install()
    with group.suspended():
        group.remove()
    group.resume()
    assert not any(one.is_installed for one in hooks)
    group.install()
    assert all(one.is_installed for one in hooks)


def test_a_group_that_is_not_installed_cannot_be_suspended(three, log):
    group, _ = three
    group.suspend()
    group.resume()
    with group.suspended():
        assert not group.is_suspended
    assert log == []


class Orders(RuleBasedStateMachine):
    """Every order of the methods, against two truths: whether the group is installed, and whether it is suspended."""

    def __init__(self):
        super().__init__()
        self.group, self.hooks, self.forgotten, self.log = HookGroup(), [], [], []
        self.is_installed = self.is_suspended = False

    @rule()
    @precondition(lambda self: len(self.hooks) < 5)
    def add(self):
        hooks = Hooks(len(self.log), self.log)
        self.hooks.append(hooks)
        self.group.add(hooks)

    @rule(data=st.data())
    @precondition(lambda self: self.hooks)
    def discard(self, data):
        hooks = data.draw(st.sampled_from(self.hooks))
        self.hooks.remove(hooks)
        self.forgotten.append(hooks)
        self.group.discard(hooks)

    @rule()
    def install(self):
        self.is_installed, self.is_suspended = True, False
        self.group.install()

    @rule()
    def remove(self):
        self.is_installed = self.is_suspended = False
        self.group.remove()

    @rule()
    def suspend(self):
        self.is_suspended = self.is_installed
        self.group.suspend()

    @rule()
    def resume(self):
        self.is_suspended = False
        self.group.resume()

    @rule(removes=st.booleans())
    def suspended(self, removes):
        before = self.is_suspended
        with self.group.suspended():
            assert not any(hooks.is_installed for hooks in self.hooks)
            if removes:
                self.group.remove()
        if removes:
            self.is_installed = self.is_suspended = False
        else:
            assert self.is_suspended == before

    @invariant()
    def hooks_are_in_place_where_they_should_be(self):
        expected = self.is_installed and not self.is_suspended
        assert [hooks.is_installed for hooks in self.hooks] == [expected] * len(self.hooks)
        assert not any(hooks.is_installed for hooks in self.forgotten)
        assert self.group.is_suspended == self.is_suspended


TestOrders = Orders.TestCase
TestOrders.settings = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
