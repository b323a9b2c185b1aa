# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe run`` on the simulated Ascend; ``probe check``, ``probe replay`` and ``probe recover`` of its dumps."""

from __future__ import annotations

import json
import signal
import sys

import numpy as np
import pytest

from probe.__main__ import main
from tests.support import processes
from tests.support.dumps import Dump
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: the argument is the learning rate; prints the digest of losses, gradients and parameters
PROGRAM = """
import hashlib, sys
import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
from mindspore import nn
from tests.ascend.trainings import mlp

net, step = mlp(nn.Adam, learning_rate=float(sys.argv[1]))
digest = hashlib.sha256()
for i in (0, 1):
    loss, gradients = step(i)
    for tensor in (loss, *gradients, *net.get_parameters()):
        digest.update(tensor.asnumpy().tobytes())
print(digest.hexdigest())
"""
#: name of the run -> its options, and the learning rate
RUNS = {
    "arrays": (["--task", "tensor"], 0.01),
    "golden": (["--measure", "device"], 0.01),
    "again": (["--measure", "device"], 0.01),
    "other": (["--measure", "device"], 0.02),
}

#: is killed before the end of its second step; the arguments are a folder, and where numbers are obtained
KILLED = """
import os, signal, sys
from pathlib import Path
import mindspore as ms

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("Ascend")
from probe import PrecisionDebugger
from tests.ascend.trainings import mlp, write_settings

net, step = mlp()
settings = {"level": "mix", "measure": sys.argv[2], "journal": "each"}
debugger = PrecisionDebugger(write_settings(Path(sys.argv[1]), settings))
for i in (0, 1):
    debugger.start(net)
    step(i)
    if i == 1:
        ms.runtime.synchronize()
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.stop()
    debugger.step()
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the dumps of the runs, and what each run and the bare program have printed."""
    folder = tmp_path_factory.mktemp("commands")
    program = folder / "train.py"
    program.write_text(PROGRAM)
    printed = {}
    for name, (options, rate) in {"bare": (None, 0.01), **RUNS}.items():
        launcher = (
            []
            if options is None
            else ["-m", "probe", "run", "--level", "mix", "--dump-path", name, *options]
        )
        command = [sys.executable, *launcher, str(program), str(rate)]
        done = processes.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr[-3000:]
        printed[name] = done.stdout.splitlines()[-1]
    return folder, printed


def test_a_launched_training_is_recorded_and_no_bit_changes(made):
    folder, printed = made
    assert {printed[name] for name in ("arrays", "golden", "again")} == {printed["bare"]}
    assert printed["other"] != printed["bare"]
    assert not list(folder.rglob("dump_error_info.log"))
    for name in RUNS:
        steps = sorted(path.name for path in (folder / name).glob("step*"))
        assert steps == ["step0", "step1"]
        for step in steps:
            dump = Dump(next((folder / name / step).glob("rank*")))
            assert dump.names("Cell.hidden.", "forward")
            assert dump.names("Cell.hidden.", "backward")


def test_the_circumstances_of_two_runs_are_compared(made, capsys):
    folder, _ = made
    assert main(["check", str(folder / "golden"), str(folder / "again")]) == 0
    assert main(["check", str(folder / "golden"), str(folder / "other")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "optimizer Adam: learning_rate 0.01 / 0.02" in lines
    main(["check", str(folder / "golden")])
    assert "Ascend" in capsys.readouterr().out


def test_calls_of_the_device_are_replayed_on_the_cpu(made, capsys):
    folder, _ = made
    found = folder / "replay.json"
    words = ["replay", str(folder / "arrays"), "--all", "--step", "0", "--jobs", "1", "--json"]
    assert main([*words, str(found)]) == 0, capsys.readouterr().out
    calls = json.loads(found.read_text())
    names = [call["name"] for call in calls if call["verdict"] == "ok"]
    assert len(names) > 10, [(call["name"], call.get("reason")) for call in calls]
    chosen = next(name for name in names if "gelu" in name and "forward" in name)
    rank = next((folder / "arrays" / "step0").glob("rank*"))
    path = rank / "dump_tensor_data" / Dump(rank).data[chosen]["output"][0]["data_name"]
    values = np.load(path)
    path.unlink()  # equal arrays are one file
    np.save(path, values * np.float32(1.001))
    assert main([*words, str(found)]) == 1
    assert chosen in [
        call["name"] for call in json.loads(found.read_text()) if call["verdict"] == "wrong"
    ]


@pytest.mark.parametrize("measure", ["host", "device"])
def test_a_killed_process_leaves_the_steps_before_and_what_did_not_wait(tmp_path, capsys, measure):
    command = [sys.executable, "-c", KILLED, str(tmp_path), measure]
    done = processes.run(command, env=environment(), capture_output=True, text=True, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    step = tmp_path / "step1" / "rank"
    assert main(["recover", str(tmp_path)]) == 0
    whole, recovered = Dump(tmp_path / "step0" / "rank"), Dump(step)
    assert capsys.readouterr().out == f"{step}: {len(recovered.data)} entries recovered\n"
    if measure == "host":
        assert set(recovered.data) == set(whole.data)
        assert "null" not in json.dumps(recovered.data[recovered.names("Cell.out.", "forward")[0]])
    else:  # fewer than 1,024 tensors were waiting
        assert not recovered.data
