# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The monitor names a trouble by its series and step, and says nothing of healthy trainings."""

from __future__ import annotations

import json

import pytest

import probe
from tests.monitor import trainings
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow


def alarms_of(training, steps, folder, first=0):
    config = folder / "config.json"
    config.write_text(
        json.dumps({"task": "monitor", "dump_path": str(folder / "dump"), "quiet": True})
    )
    debugger, found = probe.PrecisionDebugger(config_path=str(config)), []
    debugger.on_alarm(found.append)
    for step in range(first, steps):
        debugger.start(training.net)
        training.step(step)
        debugger.stop()
        debugger.step()
    debugger.close()
    return found


@pytest.mark.parametrize("name", thorough_but(["NaN in one batch"], list(trainings.TROUBLES)))
def test_a_trouble_is_named_by_its_series_and_step(tmp_path, debug, name):
    training, parts, late = trainings.TROUBLES[name]()
    first = alarms_of(training, trainings.TROUBLE + late + 1, tmp_path)[0]
    assert trainings.TROUBLE <= first.step <= trainings.TROUBLE + late
    assert any(part in first.series for part in parts), first


@pytest.mark.thorough
@pytest.mark.parametrize("name", list(trainings.HEALTHY))
def test_a_healthy_training_raises_no_alarm(tmp_path, debug, name):
    assert alarms_of(trainings.HEALTHY[name](), 500, tmp_path) == []
