# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""NaN/Inf in gradients whose update a loss scaler skips is no symptom, as long as the training goes on."""

from __future__ import annotations

import math

import pytest

from probe.__main__ import main
from probe.monitor.alarms import Alarms
from probe.reading.one_run.health.rows import alarms_of, faults_of, nonfinite_of, skips_of
from probe.search.on_disk import look
from probe.series.series import open_series
from probe.series.skipped import StepState, normal_skips
from probe.store.error_log import ErrorLog
from tests.reading.one_run.test_health import Training
from tests.reading.report.rows import write_rows

STATES = {"G": "good", "S": "skipped", "B": "bad", "-": "other"}


@pytest.mark.parametrize(
    ("steps", "skipped"),
    [
        ("SGGGSG", {0, 4}),
        ("SSSSSSG", {0, 1, 2, 3, 4, 5}),  # the scale is found in the first steps
        ("S-G-SG", {0, 4}),
        ("SGSGSG", {0, 2, 4}),  # half of them: a scale that grows after each update
        ("GSSGSS", set()),  # more than half: the scale falls without end
        ("GSGGGSS", {1}),  # the last ones are more than ever before
        ("GSGGGS", {1, 5}),
        ("GGGGS", set()),  # nothing tells that it goes on
        ("SSS", set()),  # no update at all
        ("GSGGSB", {1}),  # NaN/Inf stays
        ("GSGBGG", {1}),  # and a step that was not skipped is none
        ("", set()),
    ],
)
def test_skips_are_normal_where_the_training_goes_on(steps, skipped):
    states = [StepState(step, STATES[letter]) for step, letter in enumerate(steps)]
    assert normal_skips(states) == skipped


def rows(folder, skipped=(2, 6), loss=(), updated=()):
    """Write rows with Inf in the gradients of some steps, without updates; of some with a loss or an update too."""

    def row(step, _):
        is_skipped = step in skipped
        found = {
            "loss": math.inf if step in loss else 3.0 - step / 100,
            "fc.weight.grad": math.inf if is_skipped else 0.4,
            "fc.weight.grad.max": math.inf if is_skipped else 0.1,
            "Cell.fc.Dense.backward.0.input.0": math.inf if is_skipped else 0.1,
        }
        if not is_skipped or step in updated:
            found.update({"optimizer.learning_rate": 0.01, "fc.weight.update": 0.01})
        return found

    return write_rows(folder, row, steps=20, ranks=1)


def strange(ranks):
    """Return the steps that readers tell as faults."""
    return {item.step for item in (*alarms_of(ranks), *faults_of(ranks))}


def test_a_skipped_update_is_a_note(tmp_path, capsys):
    folder = rows(tmp_path)
    ranks = open_series(str(folder))
    assert strange(ranks) == set()
    assert [str(item.said) for item in skips_of(ranks)] == [
        "steps 2, 6: NaN/Inf in gradients, and the 2 updates were skipped, as a loss scaler does"
    ]
    assert [item.step for item in nonfinite_of(ranks)] == [2]  # probe nan tells each NaN/Inf
    assert main(["check", str(folder), "--lang", "en"]) == 0
    assert "note: steps 2, 6: NaN/Inf in gradients" in capsys.readouterr().out
    assert main(["find", str(folder), "--lang", "en"]) == 0
    assert "remark: steps 2, 6: NaN/Inf in gradients" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({"loss": (6,)}, 6),  # the loss is Inf too
        ({"updated": (6,)}, 6),  # the update was done with Inf
        ({"skipped": range(2, 20)}, 2),  # no update ever again
        ({"skipped": [2, 6, *range(10, 20)]}, 2),  # the scale falls without end
    ],
)
def test_other_nan_stays_a_symptom(tmp_path, change, step):
    ranks = open_series(str(rows(tmp_path, **change)))
    assert min(strange(ranks)) == step
    assert main(["find", str(tmp_path)]) == 1


def overflow(training, step=1, is_forward=False):
    """Put Inf into one step of a training, and leave its update out."""
    inf = {"Max": math.inf, "inf_count": 1}
    data = training.steps[step]
    gradient = data["Functional.matmul.0.backward"]["output"]
    gradient[1] = {**gradient[1], **inf}
    if is_forward:
        made = data["Functional.cross_entropy.0.forward"]["output"]
        made[0] = {**made[0], **inf}
    del data["Cell.optimizer.SGD.forward.0"]


@pytest.mark.parametrize(("is_forward", "status"), [(False, 0), (True, 1)])
def test_a_recorded_step_that_was_skipped_has_no_cause(tmp_path, is_forward, status):
    training = Training()
    overflow(training, is_forward=is_forward)
    seen = look(training.write(tmp_path))
    assert (seen.status, seen.cause is None, bool(seen.remarks)) == (
        status,
        not status,
        not status,
    )


def test_the_first_step_that_was_not_skipped_is_named(tmp_path):
    training = Training(steps=5)
    overflow(training, 1)
    overflow(training, 3, is_forward=True)
    cause = look(training.write(tmp_path)).cause
    assert (cause.reader, cause.step) == ("nan", 3)


@pytest.mark.parametrize(("skipped", "status"), [((0, 1), 0), (range(1, 20), 1)])
def test_rows_know_more_steps_than_the_recorded_ones(tmp_path, skipped, status):
    training = Training(steps=2)
    overflow(training, 0)
    overflow(training, 1)
    watched = open_series(str(rows(tmp_path / "watch", skipped)))
    path = training.write(tmp_path / "record")
    assert look(path).status == 1  # two steps without an update tell nothing
    assert look(path, watched=watched).status == status


def scaled_row(step, is_overflow):
    row = {"loss": 1.0, "loss_scale": 1024.0, "fc.weight.grad": 0.5, "fc.weight.update": 0.1}
    if is_overflow:
        row["fc.weight.grad"] = math.inf
        del row["fc.weight.update"]
    return row


@pytest.mark.parametrize(
    ("change", "overflows", "told"),
    [
        ({}, [3], []),  # the usual search for a scale
        ({}, range(3, 40), [27]),  # a scale that falls without end
        ({"loss": math.nan}, [3], [3]),  # not the gradients alone
        ({"fc.weight.update": 0.1}, [3], [3]),  # the update was made
    ],
)
def test_the_monitor_of_a_training_that_runs_has_no_alarm_for_a_step_that_a_loss_scaler_skips(
    tmp_path, change, overflows, told
):
    alarms = Alarms(str(tmp_path), ErrorLog(str(tmp_path), set()))
    found = []
    for step in range(40):
        row = scaled_row(step, step in overflows)
        found += alarms.look(step, {**row, **(change if step in overflows else {})})
    steps = {alarm.step for alarm in found if alarm.rule == "NaN/Inf"}
    assert sorted(steps)[:1] == told
