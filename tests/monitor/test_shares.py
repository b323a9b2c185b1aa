# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The share of the calls that a step records."""

import pytest

from probe.monitor.rolling.shares import Shares, round_of
from probe.monitor.rolling.stride import StepTimes, Stride, apart


def times(seconds, own, is_recorded):
    """Return the times of a step whose own part lies in it."""
    return StepTimes(seconds, own, own, is_recorded)


@pytest.mark.parametrize("every", [2, 3, 4, 10, 50, 1000])
def test_a_round_is_a_prime_number_of_steps_not_above_the_setting(every):
    steps = round_of(every)
    assert steps <= every and all(steps % part for part in range(2, steps))


@pytest.mark.parametrize("every", [2, 7, 50, 1000])
def test_each_call_of_a_program_is_recorded_once_in_a_round(every):
    shares = Shares(every)
    shares.know({"Functional.relu": 30, "Tensor.add": 3, "Cell.fc.Dense": 1}, [])
    met = [
        (key, number)
        for step in range(1000, 1000 + shares.steps)
        for key, numbers in shares.of(step).items()
        for number in numbers
        if number < {"Functional.relu": 30, "Tensor.add": 3, "Cell.fc.Dense": 1}[key]
    ]
    assert len(met) == len(set(met)) == 34


def test_a_call_that_runs_in_each_seventh_step_is_recorded_within_seven_rounds():
    shares = Shares(50)
    shares.know({"Functional.exp": 1}, [])
    begin = 3
    steps = range(begin, begin + 7 * shares.steps, 7)
    assert any("Functional.exp" in shares.of(step) for step in steps)


def test_ranks_choose_alike_and_another_seed_chooses_others():
    known = {f"Functional.f{number}": 1 for number in range(200)}
    first, same, other = Shares(50), Shares(50), Shares(50, seed=1)
    for shares in (first, same, other):
        shares.know(known, [])
    assert [first.of(step) for step in range(47)] == [same.of(step) for step in range(47)]
    assert [first.of(step) for step in range(47)] != [other.of(step) for step in range(47)]


def test_a_key_that_never_ran_is_looked_for_once_in_a_round():
    shares = Shares(11)
    shares.know({}, ["Functional.late"])
    assert sum("Functional.late" in shares.of(step) for step in range(11)) == 1


@pytest.mark.parametrize(("price", "expected"), [(0.408, 288), (0.0425, 30), (0.0085, 6)])
def test_a_budget_chooses_the_number_of_steps_that_it_pays_for(price, expected):
    """A step that records a twelfth of the calls costs ``price`` of a bare one: its aim is 0.85 of 0.02."""
    stride = Stride(None, 0.02)
    for step in range(4000):
        is_recorded = step % apart(stride.every) == 0 and not stride.is_bare(step)
        share = apart(stride.every) / stride.every
        stride.take(times(1.0 + 12 * price * share * is_recorded, 0.0, is_recorded))
    assert stride.every == pytest.approx(expected, rel=0.2)


def test_a_step_that_a_checkpoint_makes_long_does_not_change_the_number():
    stride = Stride(None, 0.02)
    every = apart(stride.every)
    changes = []
    for step in range(400):
        is_recorded = step % every == 0
        seconds = 30.0 if step % (7 * every) == 0 else 1.0 + 0.017 * every * is_recorded
        changes.append(stride.take(times(seconds, 0.0, is_recorded)))
    assert not any(changes)


@pytest.mark.parametrize("costly", [1.0, 2.5])
def test_one_costly_call_of_a_round_counts(costly):
    """One of the six steps of a round costs more than the others: the part of all of them keeps the promise."""
    stride = Stride(None, 0.02)
    spent = bare = 0.0
    for step in range(30_000):
        every = apart(stride.every)
        is_recorded = step % every == 0
        factor = costly if step // every % 6 == 5 else 1.0
        price = 0.9 * factor * every / stride.every * is_recorded
        stride.take(times(1.0 + price, 0.0, is_recorded))
        if step >= 10_000:
            spent += price
            bare += 1.0
    assert spent / bare == pytest.approx(0.85 * 0.02, rel=0.15)


def test_what_each_step_costs_is_a_part_of_the_budget():
    numbers = []
    for own in (0.0, 0.0085):
        stride = Stride(None, 0.02)
        for step in range(2000):
            is_recorded = step % apart(stride.every) == 0
            stride.take(times(1.0 + own + 0.48 * is_recorded, own, is_recorded))
        numbers.append(stride.every)
    assert numbers[1] == pytest.approx(2 * numbers[0], rel=0.15)


def test_what_lies_outside_the_step_is_a_part_of_the_budget_too():
    numbers = []
    for overhead in (0.0, 0.0085):
        stride = Stride(None, 0.02)
        for step in range(2000):
            is_recorded = step % apart(stride.every) == 0
            stride.take(StepTimes(1.0 + 0.48 * is_recorded, 0.0, overhead, is_recorded))
        numbers.append(stride.every)
    assert numbers[1] == pytest.approx(2 * numbers[0], rel=0.15)


def test_a_given_number_of_steps_stays():
    stride = Stride(50, None)
    assert not any(stride.is_bare(step) for step in range(100))
    assert all(stride.take(times(9.0, 0.0, True)) is None for _ in range(100))
    assert stride.every == 50
