# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An alarm is told and written, whatever has become of the installed package since the training began."""

from __future__ import annotations

import json
import os
import shutil
import sys

from tests.support import processes
from tests.support.paths import ROOT

PROGRAM = """
import math, os, sys
import probe
from probe.monitor.alarms import Alarms
from probe.store.error_log import ErrorLog

alarms = Alarms(sys.argv[1], ErrorLog(sys.argv[1], set()))
os.remove(os.path.join(os.path.dirname(probe.__file__), "findings", "sentences.json"))
print([alarm.rule for alarm in alarms.look(0, {"loss": math.nan})])
"""


def test_an_alarm_is_told_after_the_package_was_removed(tmp_path):
    shutil.copytree(
        ROOT / "probe", tmp_path / "lib" / "probe", ignore=shutil.ignore_patterns("__pycache__")
    )
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "out")]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    done = processes.run(
        command,
        fresh="another package",
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=variables,
    )
    assert done.stdout.strip() == "['NaN/Inf']", done.stderr
    (line,) = (tmp_path / "out" / "alarms.jsonl").read_text().splitlines()
    assert json.loads(line)["sentence"] == "NaN/Inf in step 0"
