# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore prints the same warnings with and without probe."""

from __future__ import annotations

import re
import sys

import pytest

from tests.support import processes
from tests.support.paths import environment
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

TRAINING = """
import sys
import mindspore as ms
from tests.support import nets
from probe import PrecisionDebugger

with_probe, settings = sys.argv[1] == "with", eval(sys.argv[2])
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
net, step = nets.build("gpt")
if with_probe:
    import json
    with open("config.json", "w") as file:
        json.dump({**settings, "quiet": True}, file)
    debugger = PrecisionDebugger(config_path="config.json")
for i in range(2):
    if with_probe:
        debugger.start(net)
    step(i)
    if with_probe:
        debugger.save(net.trainable_params()[0], "weight")
        debugger.stop()
        debugger.step()
"""
#: processes, threads, times, places of the same warning differ from run to run
CHANGES = re.compile(
    r"\([\d:.,\w\s]*\)|\[mindspore[^]]*\]|\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d[.\d]*|0x[0-9a-f]+"
)

SETTINGS = [
    {"level": "mix", "task": "tensor", "dump_path": "mix"},
    {"level": "L1", "measure": "device", "dump_path": "device"},
    {"level": "L1", "async_dump": True, "dump_path": "async"},
    {"level": "L1", "synchronize": True, "dump_path": "synchronize"},
    {"level": "debug", "dump_path": "debug"},
    {"level": "L1", "task": "nan_check", "dump_path": "nan_check"},
]


def warnings_of(folder, which, settings):
    done = processes.run(
        [sys.executable, "-W", "default", "-c", TRAINING, which, repr(settings)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [
        line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("probe: ")
    ]
    return {
        CHANGES.sub("", line) for line in lines if re.search("warn|deprecat", line, re.IGNORECASE)
    }


@pytest.fixture(scope="module")
def bare_warnings(tmp_path_factory):
    return warnings_of(tmp_path_factory.mktemp("bare"), "without", {})


@pytest.mark.parametrize(
    "case", thorough_but(["mix", "nan_check"], [settings["dump_path"] for settings in SETTINGS])
)
def test_probe_adds_no_warning_of_mindspore(tmp_path, bare_warnings, case):
    (settings,) = (settings for settings in SETTINGS if settings["dump_path"] == case)
    assert warnings_of(tmp_path, "with", settings) - bare_warnings == set()
