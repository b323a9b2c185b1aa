# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rank of a process that a launcher started, before and without communication."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from tests.support import processes
from tests.support.dumps import Dump

pytestmark = pytest.mark.slow

LAUNCHED = """
import os, signal, sys
import mindspore as ms
from mindspore import Tensor, ops
from probe import PrecisionDebugger
ms.set_device("CPU")
debugger = PrecisionDebugger(config_path=sys.argv[3], dump_path=sys.argv[1])
original = ops.relu.__code__
debugger.start()
print(ops.relu.__code__ is original)
ops.relu(Tensor([1.0]))
debugger.stop()
if sys.argv[2] == "again":
    debugger.start()
    ops.exp(Tensor([0.0]))
if sys.argv[2] == "step":
    debugger.step()
os.kill(os.getpid(), signal.SIGKILL)
"""


def launched(tmp_path, how, rank=()):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"rank": rank, "journal": "each"}))
    environment = {
        **os.environ,
        "RANK_SIZE": "2",
        "RANK_ID": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", LAUNCHED, str(tmp_path / "dump"), how, str(config)]
    done = processes.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.parametrize("how", ["stopped", "again", "step"])
def test_a_launched_process_without_communication_has_the_rank_of_its_environment(tmp_path, how):
    assert launched(tmp_path, how) == ["False"]
    if how != "step":
        command = [sys.executable, "-m", "probe", "recover", str(tmp_path / "dump")]
        processes.run(command, capture_output=True, text=True, check=True)
    assert os.listdir(tmp_path / "dump" / "step0") == ["rank1"]
    dump = Dump(tmp_path / "dump" / "step0" / "rank1")
    names = ["Functional.relu.0.forward"] + ["Functional.exp.0.forward"] * (how == "again")
    assert list(dump.data) == names
    assert sorted(os.listdir(dump.folder)) == [
        "construct.json",
        "dump.json",
        "run.json",
        "run.jsonl",
        "stack.json",
    ]
    assert [name for some, _ in dump.stack.values() for name in some] == names


def test_a_launched_process_whose_rank_is_not_recorded_writes_nothing(tmp_path):
    assert launched(tmp_path, "step", [0]) == ["True"]
    assert not (tmp_path / "dump").exists()


def test_a_foreign_file_in_the_ranks_folder_is_kept(tmp_path):
    folder = tmp_path / "dump" / "step0" / "rank1"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    launched(tmp_path, "step")
    assert os.listdir(tmp_path / "dump" / "step0") == ["rank1"]
    assert list(Dump(folder).data) == ["Functional.relu.0.forward"]
    assert (folder / "notes.txt").read_text() == "mine"
