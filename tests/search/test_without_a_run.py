# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Experiments of ``probe find`` without a run: they compare the step of the symptom with recorded steps before."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

import probe
from probe.findings.sentence import say
from probe.search.lab import Lab
from probe.search.ledger import Ledger, Result
from probe.search.new_lines import guessed, new_lines
from probe.search.new_numbers import guessed_number, new_numbers
from probe.search.new_values import guessed_value, new_values
from probe.search.repeating import can_repeat, chance, have_equal_bits, suspect
from probe.search.wishes import Training, Wishes
from tests.reading.builders import forward, tensor, value, write
from tests.reading.report.rows import write_rows

RELU = "Functional.relu.0.forward"
GELU = "Functional.gelu.0.forward"
ADAM = "Cell.optimizer.Adam.forward.0"


@pytest.fixture
def lab(tmp_path):
    """Return a lab in which the first experiment has seen an alarm in step 3."""
    ledger = Ledger(str(tmp_path))
    ledger.add(Result("watch", "symptom", say("find.no_symptom"), facts={"alarm": 3}))
    wishes = Wishes(Training("train.py", "", ()), None, "", str(tmp_path), 30.0)
    return Lab(wishes, ledger, time.monotonic() + 3600)


def record(lab, entries, stack=None):
    """Write steps 0, 1, 2 and 3; ``entries`` makes those of a step."""
    for step in range(4):
        rank = f"step{step}/rank"
        lines = stack(step) if stack else None
        write(Path(lab.place("record", "dump")) / rank, entries(step), lines)


def frames(line):
    """Return the stack of one call, in a line of a program."""
    return [f"File /home/me/net.py, line {line}, in construct, \n x = f{line}(x)"]


def test_a_line_that_runs_in_the_step_of_the_symptom_alone_is_a_guess(lab):
    def entries(step):
        call = forward([tensor()], [tensor(norm=3.0)])
        return {RELU: call, **({GELU: call} if step == 3 else {})}

    def stack(step):
        own = {"0": [[RELU], frames(5)]}
        return {**own, "1": [[GELU], frames(9)]} if step == 3 else own

    record(lab, entries, stack)
    cause = guessed(new_lines(lab))
    assert (cause.name, cause.line, cause.strength) == (GELU, 9, "guess")


def test_lines_that_run_in_each_step_are_none(lab):
    record(
        lab,
        lambda step: {RELU: forward([tensor()], [tensor()])},
        lambda _: {"0": [[RELU], frames(5)]},
    )
    assert guessed(new_lines(lab)) is None


@pytest.mark.parametrize(("skipped", "expected"), [([0, 1, 2], []), ([0, 1], [GELU])])
def test_the_lines_of_an_update_are_not_new_behind_steps_that_skipped_it(lab, skipped, expected):
    def row(step, rank):
        if step in skipped:
            return {"loss": 1.0, "loss_scale": 1024.0, "w.grad": math.inf}
        return {"loss": 1.0, "loss_scale": 1024.0, "w.grad": 1.0, "w.update": 0.1}

    write_rows(lab.place("watch", "dump"), row, steps=4, ranks=1)
    call = forward([tensor()], [tensor(norm=3.0)])
    record(
        lab,
        lambda step: {RELU: call, **({GELU: call} if step == 3 else {})},
        lambda step: {"0": [[RELU], frames(5)], "1": [[GELU], frames(9)]},
    )
    cause = guessed(new_lines(lab))
    assert ([] if cause is None else [cause.name]) == expected


def update(rate):
    """Return the entry of an update with a learning rate."""
    numbers = {"parameters": [value("w")], "learning_rate": value(rate)}
    return {"input_args": [{"w": tensor()}], "input_kwargs": numbers, "output": []}


def test_a_number_of_the_optimizer_that_changed_is_a_guess(lab):
    record(lab, lambda step: {ADAM: update(0.0 if step == 3 else 0.01)})
    cause = guessed_number(new_numbers(lab))
    assert (cause.name, cause.strength) == (ADAM, "guess")
    assert "learning_rate" in cause.sentence
    assert "is 0 in step 3, and 0.01 in the first steps" in cause.sentence


def test_the_first_recorded_step_with_the_new_number_is_told(lab):
    lab.ledger.add(Result("watch", "symptom", say("find.no_symptom"), facts={"alarm": 5}))
    for step in (0, 1, 2, 4, 5):
        folder = Path(lab.place("record", "dump")) / f"step{step}/rank"
        write(folder, {ADAM: update(0.2 if step > 3 else 0.01)})
    cause = guessed_number(new_numbers(lab))
    assert cause.step == 4
    assert "is 0.2 in step 4, and 0.01 in the first steps" in cause.sentence


@pytest.mark.parametrize("rate", [lambda step: 0.01, lambda step: 0.01 / (step + 1)])
def test_a_constant_rate_and_a_schedule_are_none(lab, rate):
    record(lab, lambda step: {ADAM: update(rate(step))})
    assert guessed_number(new_numbers(lab)) is None


@pytest.mark.parametrize(
    ("rate", "is_guess"),
    [(0.0021, False), (0.049, False), (0.051, True), (0.0019, True), (0.0, True), (-0.01, True)],
)
def test_a_constant_number_may_fall_by_a_schedule_and_not_leap(lab, rate, is_guess):
    record(lab, lambda step: {ADAM: update(rate if step == 3 else 0.01)})
    assert (guessed_number(new_numbers(lab)) is not None) is is_guess


@pytest.mark.parametrize(("checksum", "is_equal"), [("0a", True), ("0b", False)])
def test_unwritten_memory_is_no_difference_of_two_runs(tmp_path, checksum, is_equal):
    batch_norm = "Primitive.bn_train.BatchNorm.0.forward"
    for name, found in (("a", "0a"), ("b", checksum)):
        unwritten = {
            "type": "mindspore.Tensor",
            "dtype": "Float32",
            "shape": [2],
            "unwritten": True,
        }
        made = [tensor(md5=found), unwritten]
        write(tmp_path / name / "step0" / "rank0", {batch_norm: forward([tensor(md5="0c")], made)})
    assert have_equal_bits(probe.compare(tmp_path / "a", tmp_path / "b")) is is_equal


@pytest.mark.parametrize(("largest", "is_guess"), [(21.0, True), (19.0, False)])
def test_a_batch_that_is_ten_times_larger_is_a_guess(lab, largest, is_guess):
    def entries(step):
        batch = tensor(norm=50.0 + step, Max=largest if step == 3 else 2.0)
        return {RELU: forward([batch], [tensor(norm=3.0)])}

    record(lab, entries)
    cause = guessed_value(new_values(lab))
    assert (cause is not None) is is_guess
    if is_guess:
        assert (cause.name, cause.place, cause.kind) == (RELU, "input.0", "data")


@pytest.mark.parametrize(
    ("rates", "is_guess"),
    [
        ((0.01, 0.02, 0.03, 0.153), True),  # 5.1 times
        ((0.01, 0.02, 0.03, 0.147), False),  # 4.9 times
        ((0.03, 0.02, 0.1, 0.0196), True),  # 5.1 times less; 5.0 times before
        ((0.01, 0.06, 0.1, 0.51), False),  # 6.0 times before
        ((0.0, 0.01, 0.02, 0.03), False),  # a schedule begins with 0
        ((0.01, 0.02, 0.03, 0.0), False),  # and ends with it
    ],
)
def test_a_number_that_leaps_beyond_its_schedule_is_a_guess(lab, rates, is_guess):
    record(lab, lambda step: {ADAM: update(rates[step])})
    cause = guessed_number(new_numbers(lab))
    assert (cause is not None) is is_guess
    if is_guess:
        assert f"is {rates[3]:g} in step 3, and {rates[2]:g} in the step before" in cause.sentence


def test_runs_that_differ_without_a_cause_are_recorded_once_more(lab):
    lab.wishes = replace(lab.wishes, golden=Training("good.py", "", ()))
    lab.ledger.add(Result("watch_golden", "differs", say("find.no_difference"), facts={"step": 3}))
    for name in ("record", "record_golden"):
        for step in range(4):
            call = {"Functional.add.0.forward": forward([tensor()], [tensor(norm=3.0 + step)])}
            write(Path(lab.place(name, "dump")) / f"step{step}/rank", call)
        lab.ledger.add(Result(name, "no_cause", say("find.no_difference")))
    assert suspect(lab) is None
    assert can_repeat(lab)
    assert not chance(lab)
    facts = {"name": "Cell.drop.Dropout.forward.0", "kind": "random", "is_later": False}
    lab.ledger.add(Result("repeat", "varies", say("find.last_bits"), facts=facts))
    assert str(chance(lab)).endswith("Dropout.forward.0 does not repeat its own bits")
