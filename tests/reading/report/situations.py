# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Situations in which a page is made: the runs, and the exit status that its headline must agree with."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tests.reading.builders import record
from tests.reading.lacking import LACKS, STEPS, change, documents, healthy
from tests.reading.one_run.test_health import WEIGHT, Training, zero_gradient
from tests.reading.report.rows import broken, spike, write_rows
from tests.reading.report.runs import faulty


class Situation(NamedTuple):
    """A way to make the folders of a page, and the answer that is right."""

    make: Any  # folder -> the runs of the command
    status: int
    said: str  # a part of the headline in English


def _whole(folder):
    return [healthy(folder / "run")]


def _lacking(lack):
    def make(folder):
        run = healthy(folder / "run")
        LACKS[lack](run)
        return [run]

    return make


def _nan(document):
    output = document["data"]["Functional.matmul.0.forward"]["output"][0]
    output.update(Max=math.nan, Min=math.nan, Mean=math.nan, Norm=math.nan)


def _with_nan(folder, name="run"):
    run = healthy(folder / name)
    for path in documents(run, step=1):
        change(path, _nan)
    return [run]


def _fault_of_check(folder):
    training = Training()
    zero_gradient(training)
    return [training.write(folder / "run")]


def _ranks_apart(folder):
    run = healthy(folder / "run")

    for step in range(STEPS):
        weight = record(WEIGHT * (3 + step / 1000))
        for path in documents(run, step, rank=1):
            change(path, lambda document, weight=weight: _set_weight(document["data"], weight))
    return [run]


def _set_weight(data, weight):
    data["Cell.fc.Dense.forward.0"]["parameters"]["weight"] = weight
    data["Functional.matmul.0.forward"]["input_args"][1] = weight


def _rule_in_series(folder):
    training = Training(8)
    for number, step in enumerate(training.steps):
        gradient = record(WEIGHT * 0.1 * 20**number)
        step["Functional.matmul.0.backward"]["output"][1] = gradient
        step["Cell.fc.Dense.parameters_grad.0"] = {"weight": [gradient]}
        step["Cell.optimizer.SGD.forward.0"]["input_args"][0] = [gradient]
    return [training.write(folder / "run")]


def _two_equal(folder):
    return [healthy(folder / "golden"), healthy(folder / "mine")]


def _two_with_alarm(folder):
    runs = _two_equal(folder)
    write_rows(runs[1], spike)
    return runs


def _two_without_numbers(folder):
    runs = _two_equal(folder)
    LACKS["numbers"](runs[1])
    return runs


SITUATIONS = {
    "a healthy run": Situation(
        _whole, 0, "No fault is seen in steps 0-2: 2 ranks, 18 forward and 18 backward"
    ),
    "NaN": Situation(
        _with_nan, 1, "step 1, rank 0: Functional.matmul.0.forward makes NaN of finite inputs"
    ),
    "a fault of check": Situation(
        _fault_of_check, 1, "fault: the backward of Functional.matmul.0.forward gives zeros"
    ),
    "ranks that disagree": Situation(
        _ranks_apart, 1, "step 0: parameter fc.weight should be the same on all ranks"
    ),
    "ranks that cannot be known": Situation(_lacking("parameters"), 2, "cannot be known: "),
    "a rule in a series": Situation(
        _rule_in_series, 1, "step 4: Cell.fc.Dense.parameters_grad.0.weight.0: growing"
    ),
    "an alarm of the monitor": Situation(
        lambda folder: [write_rows(folder / "run", spike)], 1, "step 45: loss: spike"
    ),
    "two runs that are equal": Situation(
        _two_equal, 0, "No difference beyond tolerance in steps 0-2: 2 ranks, 18"
    ),
    "two runs that differ": Situation(
        lambda folder: [*faulty(folder, 2, 2)],
        1,
        "differs; first: argument at step 0, 2 ranks (0, 1), Tensor.__mul__",
    ),
    "a rank that lacks": Situation(
        _lacking("a rank"), 2, "cannot be known: 1 of 2 ranks have no dump here"
    ),
    "gradients that were not recorded": Situation(
        _lacking("backwards"), 2, "cannot be known: no gradient is recorded"
    ),
    "a broken file": Situation(_lacking("half of one dump.json"), 2, "dump.json"),
    "a healthy monitor": Situation(
        lambda folder: [write_rows(folder / "run")], 0, "No fault is seen in 120 rows"
    ),
    "NaN in the monitor": Situation(
        lambda folder: [write_rows(folder / "run", broken)],
        1,
        "step 50: loss: NaN/Inf: Inf in step 50, after",
    ),
    "few rows": Situation(
        lambda folder: [write_rows(folder / "run", steps=2)], 2, "cannot be known: most rules need"
    ),
    "two equal runs with NaN": Situation(
        lambda folder: [*_with_nan(folder, "a"), *_with_nan(folder, "b")],
        1,
        "No difference beyond tolerance. B shows a finding, which is no difference from A: ",
    ),
    "two equal runs with an alarm": Situation(
        _two_with_alarm, 1, "no difference from A: step 45: loss: spike"
    ),
    "two runs without numbers": Situation(
        _two_without_numbers, 2, "cannot be known: no tensor has numbers"
    ),
}
