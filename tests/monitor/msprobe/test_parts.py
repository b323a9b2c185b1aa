# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parts of TrainerMon by themselves: alarms, names, targets, parts of a step, files."""

from __future__ import annotations

import csv
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from mindspore import Tensor, nn

from probe.monitor.alarms import Alerts
from probe.monitor.msprobe.cell_rows import CellRows
from probe.monitor.msprobe.config import TrainerConfig
from probe.monitor.msprobe.values import TrainerValues, chosen_cells, chosen_parameters, shortened
from probe.monitor.numbers import HostNumbers
from probe.series.msprobe_csv import CsvFiles
from probe.series.series_name import slot_of
from probe.store.error_log import ErrorLog

TURBULENCE = "AnomalyTurbulence", 0.5
NAME = "0:layers.0.weight"


def alarms(folder, values, op="mean", rules=(TURBULENCE,)):
    """Return the steps in which numbers of one series gave an alarm."""
    alerts = Alerts((rules, True), str(folder), 3)
    for step, value in enumerate(values):
        alerts.look(step, {"grad_reduced": {(NAME, ""): {op: value}}})
    path = folder / "anomaly_detected" / "rank3" / "anomaly.json"
    return [item["step"] for item in json.loads(path.read_text()).values()] if path.exists() else []


@pytest.mark.parametrize(
    ("values", "op", "steps"),
    [
        ([1.0, 1.4, 1.0], "mean", []),
        ([1.0, 1.6, 1.0], "mean", [1]),
        ([1.0, -1.6], "mean", [1]),
        ([-1.0, -1.6], "norm", [1]),
        ([1.0, 0.1], "mean", []),
        ([1.0, 9.0], "max", []),
        ([1.0, math.nan], "mean", []),
    ],
)
def test_a_number_far_above_its_mean_of_before_is_an_alarm(tmp_path, values, op, steps):
    assert alarms(tmp_path, values, op) == steps


@pytest.mark.parametrize(
    ("threshold", "values", "steps"),
    [(None, [1.0, math.nan, 1e30], [1]), (10.0, [1.0, -11.0, 10.0, math.nan], [1, 3])],
)
def test_nan_and_numbers_beyond_a_threshold_are_an_alarm(tmp_path, threshold, values, steps):
    assert alarms(tmp_path, values, "max", (("AnomalyNan", threshold),)) == steps


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.gate = nn.Dense(2, 2), nn.Dense(2, 2, has_bias=False)

    def construct(self, x):
        return self.gate(self.fc(x))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.CellList([Block(), Block()])
        self.head = nn.Dense(2, 1)

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ([], 8),
        (["head"], ["0:head.weight", "0:head.bias"]),
        (
            ["head", "layers.1.fc"],
            ["0:layers.1.fc.weight", "0:layers.1.fc.bias", "0:head.weight", "0:head.bias"],
        ),
        (["0:layers.0.gate"], ["0:layers.0.gate.weight"]),
        (["fc"], []),
    ],
)
def test_parameters_that_begin_with_one_of_the_targets(targets, names):
    found = list(chosen_parameters([Net()], targets))
    assert (len(found) if isinstance(names, int) else found) == names


def test_parameters_that_are_not_trained_are_left_out():
    net = Net()
    net.head.weight.requires_grad = False
    assert "0:head.weight" not in chosen_parameters([net], [])


def test_the_number_of_a_model_is_a_part_of_the_names():
    assert list(chosen_parameters([nn.Dense(2, 1), nn.Dense(2, 1)], ["1:"])) == [
        "1:weight",
        "1:bias",
    ]


def test_cells_are_chosen_by_their_names():
    found = chosen_cells([Net()], ["layers.1.fc", "0:head"], False)
    assert [name for name, _ in found.values()] == ["0:layers.1.fc", "0:head"]
    assert len(chosen_cells([Net()], [], True)) == 9


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("net.layers.0.fc", "layers.0.fc"),
        ("a.layer.0.b.layer.1", "layer.1"),
        ("net.embedding.weight", "embedding.weight"),
        ("net.final_norm", "final_norm"),
        ("fc.weight", "fc.weight"),
        ("layers.0.norm", "norm"),
    ],
)
def test_a_name_without_what_wraps_the_model(name, short):
    assert shortened(name) == short


@pytest.mark.parametrize(
    ("accumulated", "parts"),
    [(1, ["0", "0", "0", "0"]), (2, ["0", "1", "0", "1"]), (4, ["0", "1", "2", "3"])],
)
def test_calls_of_a_cell_belong_to_the_parts_of_a_step(tmp_path, accumulated, parts):
    net = nn.Dense(2, 2)
    net.set_train()
    watched = SimpleNamespace(models=[net], accumulated=accumulated)
    config = TrainerConfig(ops=["norm"], xy_distribution=True)
    numbers, errors = HostNumbers(lambda: None, on_cpu=True), ErrorLog(str(tmp_path), set())
    cells = CellRows(config, watched, numbers, errors)
    values = TrainerValues(config, watched, {}, cells, numbers, errors, lambda: None)
    for _ in range(2):
        values.is_on = True
        for call in range(4):
            values.note_cell(
                slot_of(f"Cell.0.Dense.forward.{call}.input.0"), Tensor(np.ones((1, 2), np.float32))
            )
        assert [part for _, part in values.end().tables["actv"]] == list(dict.fromkeys(parts))


def test_rows_of_several_steps_are_in_one_file(tmp_path):
    files = CsvFiles(str(tmp_path / "made"), 3, 2)
    for step in range(3):
        rows = {(NAME, ""): {"norm": 1.23456 + step}, (NAME, "1"): {"norm": math.nan}}
        files.write(step, {"grad": rows if step else {(NAME, ""): {"norm": 1.0}}})
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "grad_0-1.csv",
        "grad_2-3.csv",
    ]
    with open(tmp_path / "made" / "grad_2-3.csv") as file:
        found = list(csv.reader(file))
    assert found[0] == ["vpp_stage", "name", "step", "micro_step", "norm"]
    assert [row[-1] for row in found[1:]] == ["3.235", "nan"]


def test_zeros_are_the_part_of_the_elements_below_eps():
    numbers = HostNumbers(lambda: None, on_cpu=True)
    tensor = Tensor(np.array([[0.0, 1e-4], [-1e-4, 2.0]], np.float32))
    found = numbers.several(tensor, ["zeros", "nans", "max"], 1e-3)
    assert (found["zeros"], found["nans"], found["max"]) == (0.75, 0.0, 2.0)
