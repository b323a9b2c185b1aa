# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Something fails at one place of a recorded step: the error reaches the training, and what was recorded stays."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.support import processes
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: trains two steps with a failure planned in the second, bare and recorded; prints what was raised
PROGRAM = """
import json, sys
from pathlib import Path
import mindspore as ms
from tests.ascend import trainings
from tests.ascend.simulator import Device
from tests.support.dumps import Debug

plan, measure, mode, folder = sys.argv[1:5]
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=mode == "synchronous")
ms.set_device("Ascend")
net, step = trainings.mlp()
debugger = Debug(Path(folder))(measure=measure, level="mix") if measure != "bare" else None

def train(i):
    if debugger:
        debugger.start(net)
    try:
        step(i)[0].asnumpy()
    finally:
        if debugger:
            debugger.stop()
    if debugger:
        debugger.step()

train(0)
device = Device()
before = {place: device.count(place) for place in ("prepare", "launch", "run", "copy", "allocate", "event", "wait")}
device.plan(plan)
raised = ""
try:
    train(1)
except RuntimeError as error:
    raised = str(error)
counts = {place: device.count(place) - count for place, count in before.items()}
print(json.dumps({"raised": raised.split(chr(10))[0], "is_planned": "simulated Ascend" in raised, "counts": counts}))
"""

#: places and numbers: the n-th there fails, once or for ever. All of them is `make ascend-all`. This training prepares
#: and allocates nothing in its second step, and has one stream: these plans never strike.
PLACES = [
    f"{action} {place} * {number} {count}"
    for place, numbers in {
        "run": (1, 3, 8, 21, 40, 60, 80, 100),
        "launch": (1, 3, 8, 21, 40, 60, 80, 100),
        "copy": (1, 2, 5, 9, 12, 14),
        "wait": (1, 2, 4, 6, 100),
        "prepare": (1,),
        "allocate": (1,),
        "event": (1,),
    }.items()
    for number in numbers
    for action, count in (("fail", -1), ("fail-once", 1))
]
CHOSEN = PLACES if os.environ.get("PROBE_ASCEND_ALL") else PLACES[5:54:12]


def train(folder, plan, measure, mode):
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, plan, measure, mode, str(folder)]
    done = processes.run(command, capture_output=True, text=True, env=environment(), timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Exception ignored" not in done.stderr and "Fatal" not in done.stderr, done.stderr[
        -3000:
    ]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """Return the entries of a step without a failure."""
    folder = tmp_path_factory.mktemp("healthy") / "run"
    assert not train(folder, "fail launch * 1000000 1", "host", "synchronous")["raised"]
    return list(json.loads((folder / "dump/step0/rank/dump.json").read_text())["data"])


@pytest.mark.parametrize("plan", CHOSEN)
def test_an_error_reaches_the_training_and_what_was_recorded_stays(tmp_path, healthy, plan):
    number = PLACES.index(plan)
    mode = ("asynchronous", "synchronous")[number % 2]
    measure = ("device", "host")[number // 2 % 2]
    bare = train(tmp_path / "bare", plan, "bare", mode)
    recorded = train(tmp_path / "recorded", plan, measure, mode)
    logs = list((tmp_path / "recorded").rglob("dump_error_info.log"))
    if (
        bare["raised"] and not recorded["raised"]
    ):  # an operation of probe failed instead of one of the training
        assert "once" in plan and logs, (bare, recorded)
    elif bare["raised"]:
        assert recorded["is_planned"], (bare, recorded)
    folder = tmp_path / "recorded" / "dump" / "step0" / "rank"
    assert (
        list(json.loads((folder / "dump.json").read_text())["data"]) == healthy
    )  # the step before is whole
    second = tmp_path / "recorded" / "dump" / "step1" / "rank" / "dump.json"
    assert second.exists() and isinstance(json.loads(second.read_text())["data"], dict)
