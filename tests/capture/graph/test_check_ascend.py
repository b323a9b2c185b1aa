# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The script for a first run on Ascend. In PyNative mode MindSpore's two operators run on CPU too."""

from __future__ import annotations

import importlib.util
import json
import os
import sys

import pytest

from tests.support import processes
from tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

SCRIPT = ROOT / "examples" / "check_ascend.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("check_ascend", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_values_and_gradients_in_the_order_of_their_ids(script, tmp_path):
    found = script.forward_and_backward(str(tmp_path))
    names = [row[0].split("_")[0] for row in found["files"]]
    assert names == ["x", "y0", "y1", "total", "gradient1", "gradient0"]
    assert found["files"][-1][3] == found["gradient"]
    ids = [int(row[0][:-4].split("_")[-1]) for row in found["files"]]
    assert ids == list(range(ids[0], ids[0] + 6))


def test_dtypes_branch_and_pause(script, tmp_path):
    rows = script.dtypes(str(tmp_path / "dtypes"))["files"]
    named = {row[0].split("_")[1]: row[1] for row in rows if row[0].startswith("x_")}
    assert named == {"bfloat16": "float32", "float16": "float16", "int32": "int32", "bool": "bool"}
    assert [row[0].split("_")[0] for row in script.branch(str(tmp_path / "branch"))["files"]] == [
        "positive"
    ]
    assert list(script.pause(str(tmp_path / "pause")).values()) == [[2, 2, 4]]


def test_each_line_is_json_and_an_error_does_not_end_it():
    command = [sys.executable, str(SCRIPT), "--device", "CPU", "--only", "branch", "tool"]
    done = processes.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env=ENVIRONMENT, timeout=200
    )
    lines = {line["check"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert list(lines) == ["versions", "branch", "tool"]
    assert "Unsupported op [TensorDump] on CPU" in lines["branch"]["error"]
    assert lines["tool"]["bitwise equal"] is True and lines["tool"]["left"] == ["step1"]
    assert "Cell.twice.Dense.backward.1" in lines["tool"]["entries"]
