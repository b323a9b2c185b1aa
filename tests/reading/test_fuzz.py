# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A part of `make fuzz`: changed files of every kind under every command."""

from __future__ import annotations

import json
import random
import sys

import numpy as np
import pytest

from tests.programs.fuzz import mutations
from tests.programs.fuzz.__main__ import judge
from tests.programs.fuzz.without_checks import REMOVED
from tests.support import processes
from tests.support.paths import ROOT, environment
from tests.support.planting import module_path, replaced


@pytest.mark.slow
def test_no_changed_file_ends_in_a_traceback_or_in_silence(tmp_path):
    words = ["--cases", 150, "--seed", 7, "--seeds", tmp_path / "seeds"]
    command = [sys.executable, "-m", "tests.programs.fuzz", *map(str, words)]
    done = processes.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, fresh="no MindSpore"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout


@pytest.mark.parametrize("number", range(len(REMOVED)))
def test_each_check_that_is_taken_out_is_there_once(number):
    removed = REMOVED[number]
    code = module_path(ROOT / "probe", removed.place).read_text("utf-8")
    compile(replaced(code, removed.place, removed.code, removed.instead), "without", "exec")


def test_there_are_thirty():
    assert len({(removed.place, removed.code, removed.instead) for removed in REMOVED}) >= 30


def test_every_change_is_the_same_again(tmp_path):
    for name, content in {
        "a.json": b'{"a": [1, {"b": 2}]}',
        "a.csv": b"x,y\n1,2\n",
        "a.pt": b"0123456789",
    }.items():
        made = []
        for _ in range(2):
            path = tmp_path / name
            path.write_bytes(content)
            chosen = random.Random("1-3")
            made.append(
                (mutations.change(chosen, path), path.read_bytes() if path.is_file() else None)
            )
        assert made[0] == made[1]


def test_changes_of_documents_are_of_every_kind():
    chosen, content = (
        random.Random(1),
        json.dumps({"data": {"a": {"output": [{"type": "t", "Max": 1.0}]}}}).encode(),
    )
    made = {mutations.json_change(chosen, content) for _ in range(300)}
    assert len(made) > 200
    assert any(b"[[[[" in it for it in made)
    assert any(b"9" * 400 in it for it in made)


def test_changes_of_arrays_keep_the_elements(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    content = (tmp_path / "a.npy").read_bytes()
    assert mutations.npy_change(random.Random(2), content).endswith(content[-24:])


@pytest.mark.parametrize(
    ("status", "output", "silent", "reason"),
    [
        (0, "", False, ""),
        (1, "probe: x cannot be read", False, ""),
        (0, "", True, "silent"),
        (
            2,
            "probe: there is not enough memory\n",
            False,
            "last resort: probe: there is not enough memory",
        ),
        (2, "", True, ""),
        (-14, "", False, "time"),
        (-8, "", False, "signal 8"),
        (70, "", False, "status 70"),
        (
            99,
            'Traceback (most recent call last)\n  File "/a/probe/b.py", line 3\nKeyError: 1',
            False,
            "traceback: KeyError: 1 @ probe/b.py:3",
        ),
    ],
)
def test_ends_are_judged(status, output, silent, reason):
    assert judge(status, output, silent) == reason
