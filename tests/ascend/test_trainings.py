# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings on the simulated Ascend have the entries and, nearly, the numbers of CPU; and probe changes no bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.ascend.trainings import MORE_WAYS, TRAININGS, WAYS
from tests.measure.test_device import records_of
from tests.support.agreement import differences
from tests.support.dumps import Dump
from tests.support.paths import ROOT, environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: every level, task and place of measuring: `make ascend-all`
ALL = bool(os.environ.get("PROBE_ASCEND_ALL"))
CHOSEN = {**WAYS, **MORE_WAYS} if ALL else WAYS
NAMES = [*TRAININGS, "model"]
#: half floats are rounded after operations that differ in their order
BOUNDS = {"amp": 2e-2}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The dumps of all trainings on both devices."""
    made = {}
    for device in ("CPU", "Ascend"):
        made[device] = tmp_path_factory.mktemp(device)
        command = [
            sys.executable,
            "-m",
            "tests.ascend.trainings",
            device,
            str(made[device]),
            *["--all"] * ALL,
        ]
        subprocess.run(
            command, cwd=ROOT, env=environment(), check=True, timeout=1800 if ALL else 300
        )
    return made


def dump(folders, device, name, way, step=0):
    return Dump(folders[device] / name / way / f"step{step}" / "rank")


@pytest.mark.parametrize("name", NAMES)
def test_probe_changes_no_bit(folders, name):
    results = json.loads((folders["Ascend"] / name / "results.json").read_text())
    assert len(results) == len(CHOSEN) + 2
    assert {way for way, (digest, _) in results.items() if digest != results["bare"][0]} == set()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("adamw", "model")])
def test_losses_are_those_of_cpu(folders, name):
    ours, theirs = (
        json.loads((folders[device] / name / "results.json").read_text())
        for device in ("Ascend", "CPU")
    )
    assert ours["bare"][1] == pytest.approx(theirs["bare"][1], rel=1e-4)


@pytest.mark.parametrize("way", [way for way in CHOSEN if "nan_check" not in way])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "adamw"])
def test_entries_are_those_of_cpu(folders, name, way):
    """Gradients may come a little earlier or later in the order: MindSpore's engine runs other nodes there."""
    ours, theirs = (dump(folders, device, name, way) for device in ("Ascend", "CPU"))
    assert sorted(ours.data) == sorted(theirs.data)
    calls = [[entry for entry in one.data if "forward" in entry] for one in (ours, theirs)]
    assert calls[0] == calls[1]
    if "structure" in way or "md5" in way:
        return
    bound = BOUNDS.get(name, 1e-4)
    found = [
        text
        for key in theirs.data
        for text in differences(ours.data[key], theirs.data[key], bound, key, 1e-6)
    ]
    if name == "amp":  # numbers near zero are rounding errors of half floats
        found = [
            text
            for text in found
            if "Mean" not in text and "Min" not in text and "backward" not in text
        ]
    assert found == []


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_device_and_host_agree(folders, name):
    host, device = (
        dump(folders, "Ascend", name, f"mix-{measure}") for measure in ("host", "device")
    )
    assert list(host.data) == list(device.data)
    compared = 0
    for key, entry in host.data.items():
        for (place, ours), (other, theirs) in zip(records_of(entry), records_of(device.data[key])):
            compared += 1
            assert place == other and (ours["Max"], ours["Min"]) == (
                theirs["Max"],
                theirs["Min"],
            ), (key, place)
            if ours["Mean"] is not None:
                largest = max(abs(ours["Max"]), abs(ours["Min"]))
                assert theirs["Mean"] == pytest.approx(ours["Mean"], rel=0, abs=1e-6 * largest), (
                    key,
                    place,
                )
                assert theirs["Norm"] == pytest.approx(ours["Norm"], rel=1e-6), (key, place)
    assert compared > 40
