# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics of one's own as series of the monitor: no rule looks at them, and the commands show them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import probe
from probe.__main__ import main
from probe.series.series import open_series
from probe.series.series_name import kind_of, parse
from tests.monitor.trainings import Training
from tests.support.own import none_registered

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _alone():
    with none_registered():
        yield


def watched(tmp_path, measure, steps=3, **settings):
    """Train beside the monitor; return its folder."""
    given = {
        "task": "monitor",
        "level": "L0",
        "dump_path": str(tmp_path / "watch"),
        "measure": measure,
        "monitor": {"interval": 2, "list": ["layers.0"], **settings},
    }
    (tmp_path / "config.json").write_text(json.dumps(given))
    training, debugger = Training(1), probe.PrecisionDebugger(config_path=tmp_path / "config.json")
    for step in range(steps):
        debugger.start(training.net)
        training.step(step)
        debugger.stop()
        debugger.step()
    debugger.close()
    return tmp_path / "watch"


@pytest.mark.parametrize("measure", ["host", "device"])
def test_gradients_and_cells_have_a_series_at_each_interval(tmp_path, measure, capsys):
    probe.register_statistic(
        "mean_square", lambda x: np.square(x).mean(), lambda x: x.square().mean()
    )
    folder = watched(tmp_path, measure, summary_mode=["max", "mean_square"])
    run = probe.open(folder)
    steps, values = run.series("layers.0.weight.grad.mean_square")
    norms = dict(zip(*(part.tolist() for part in run.series("layers.0.weight.grad"))))
    assert steps.tolist() == [0, 2]
    assert [math.sqrt(value * 16 * 32) for value in values] == pytest.approx(
        [norms[0], norms[2]], rel=1e-5
    )
    assert run.series("Cell.layers.0.Dense.forward.0.output.0.mean_square").steps.tolist() == [0, 2]
    capsys.readouterr()
    assert main(["trend", str(folder), "--stat", "mean_square", "--json"]) == 0
    names = [item["name"] for item in json.loads(capsys.readouterr().out)["series"]]
    assert "layers.0.weight.grad.mean_square" in names
    assert all(name.endswith(".mean_square") for name in names)


@pytest.mark.parametrize("measure", ["host", "device"])
def test_a_failure_and_nan_raise_no_alarm(tmp_path, measure, capsys, caplog):
    probe.register_statistic("fails", lambda x: 1 / 0, lambda x: 1 / 0)
    probe.register_statistic("nothing", lambda x: math.nan, lambda x: math.nan)
    folder = watched(tmp_path, measure, summary_mode=["fails", "nothing"])
    assert (
        len([record for record in caplog.records if "the statistic fails" in record.getMessage()])
        == 1
    )
    capsys.readouterr()
    assert main(["watch", str(folder), "--json", "--like", "nothing"]) == 2
    (rank,) = json.loads(capsys.readouterr().out)["ranks"]
    assert rank["alarms"] == []
    assert {str(value) for item in rank["series"] for value in item["values"]} == {"nan"}
    assert not any("fails" in name for name in open_series(folder)[0].names)


@pytest.mark.parametrize("name", ["fc.weight.grad.hill", "Cell.fc.Dense.forward.0.output.0.hill"])
def test_such_a_series_is_no_norm(name):
    assert kind_of(name) == "end"
    assert parse(name).statistic == "hill"
    assert kind_of(name[: -len(".hill")]) in ("grad", "cell")
