# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A MindSpore that nobody tested: one line says so; a part that lacks a private name is off, and all others record."""

from __future__ import annotations

import json
import re
import sys

import pytest

from probe.private_names import PRIVATE_PARTS, TESTED, Parts
from tests.support import processes
from tests.support.paths import ROOT, environment

PROGRAM = ROOT / "tests" / "sharded" / "without_a_name.py"
#: parts that a training in PyNative mode does not use
ELSEWHERE = ("GRAPH_MODE", "level L2", "probe run", "schedules")
NAMES = [(part, name) for part in PRIVATE_PARTS for name in part.names]


def train(tmp_path, *words):
    """Return what the program says: losses, kinds of entries, log."""
    done = processes.run(
        [sys.executable, PROGRAM, tmp_path / "dump", *words],
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def lines_about_the_version(log):
    return [line for line in log.splitlines() if "was not tested" in line]


@pytest.mark.slow
def test_an_untested_version_has_one_line_and_is_recorded(tmp_path):
    said, log = train(tmp_path)
    (line,) = lines_about_the_version(log)
    assert "MindSpore 99.0.0 was not tested" in line and TESTED[1] in line
    assert "All parts passed their self-tests" in line
    assert said["same"] and said["errors"] == ""
    assert {"Cell", "Functional", "backward", "parameters_grad", "optimizer"} <= set(said["kinds"])


def test_a_tested_version_says_nothing():
    told = []
    Parts().tell(told.append)
    assert told == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["_grad_node", "enable_grad", "_run_forward_pre_hook"])
def test_without_a_name_the_rest_is_recorded(tmp_path, name):
    part, full = next(
        (part, full) for part, full in NAMES if full.endswith(name) or f".{name}|" in full
    )
    check(tmp_path, part, full)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("part", "name"), NAMES, ids=lambda value: value if isinstance(value, str) else value.part
)
def test_each_name_taken_away(tmp_path, part, name):
    check(tmp_path, part, name)


def check(tmp_path, part, name):
    said, log = train(tmp_path, name)
    assert said["same"], log
    optional = name.endswith("?")
    (line,) = lines_about_the_version(log)
    if said["taken"] and not optional:
        assert part.part in line and part.loss in line, line
        assert re.search(re.escape(name.partition("|")[0].partition(":")[2]), line), line
    lost = {"Cell", "Functional", "backward", "parameters_grad", "optimizer"} - set(said["kinds"])
    if part.part in ELSEWHERE or optional:
        assert not lost, lost
    if lost:
        assert "off:" in line, lost
