# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A task in each way to run a training: the first run, a second one, a killed one, and an edited settings file.

``make ways`` tries all tasks.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.programs.ways import TASKS
from tests.support.paths import environment

WAYS = ["loop", "train", "run", "notebook"]


def test_each_task_that_a_setting_chooses_is_tried():
    assert {"statistics", "tensor", "structure", "nan_check", "monitor"} <= {
        settings.get("task", "statistics") for settings in TASKS.values()
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("task", "way"),
    [*(("statistics", way) for way in WAYS), ("nan_check", "run"), ("monitor", "notebook")],
)
def test_a_task_keeps_its_promises_in_each_way(tmp_path, task, way):
    program = [
        sys.executable,
        "-m",
        "tests.programs.ways",
        str(tmp_path / "ways"),
        "--tasks",
        task,
        "--ways",
        way,
    ]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, env=environment())
    assert re.search(r"1 tasks and ways tried in four events, no promises broken", ended.stdout), (
        ended.stdout
    )
    assert ended.returncode == 0
