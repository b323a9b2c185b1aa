# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""With "overwrite": true a run replaces every file of the run before it, of every task."""

from __future__ import annotations

import json
import re
import shutil
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, jit, nn

from probe import PrecisionDebugger, TrainerMon
from probe.series.series import Follower, open_series
from tests.support import processes
from tests.support.paths import ROOT, program

pytestmark = pytest.mark.slow

X = np.ones((2, 4), np.float32)
DUMP = ["construct.json", "dump.json", "run.json", "run.jsonl", "stack.json"]
#: MindSpore's, which is replaced by that of the next kernel dump; nobody else reads it
CONFIGURATION = "kernel_kbyk_dump.json"
MONITOR = ["alarms.jsonl", "series.bin"]
KERNELS = [
    CONFIGURATION,
    "kernel_run.json",
    "ms_execution_order_graph.csv",
    "ms_global_execution_order_graph.csv",
    "ms_output_trace_code_graph.ir",
    "ms_output_trace_code_graph.pb",
    "statistic.csv",
]
#: task or kind -> its settings, and the names of all files that it writes
FILES = {
    "statistics": ({"level": "mix"}, DUMP),
    "tensor": ({"task": "tensor"}, [*DUMP, "*.npy"]),
    "structure": ({"task": "structure", "level": "mix"}, DUMP),
    "nan_check": ({"task": "nan_check"}, ["construct.json", "dump.json", "stack.json", "*.npy"]),
    "debug": ({"level": "debug"}, ["debug.json"]),
    "monitor": ({"task": "monitor"}, MONITOR),
    "monitor with dumps": ({"task": "monitor", "monitor": {"on_alarm": "dump"}}, [*DUMP, *MONITOR]),
    "monitor with repeats": (
        {"task": "monitor", "monitor": {"on_alarm": "again"}},
        [*DUMP, *MONITOR],
    ),
    "graph": ({"level": "mix"}, DUMP),
    "L2": ({"level": "L2"}, KERNELS),
}


class Compiled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = nn.Dense(4, 4)

    @jit
    def construct(self, x):
        return self.inner(x)


def earlier(debug, kind, **further):
    """Leave what another process has left: this one has never written the folder."""
    path = debug.path / "earlier"
    train(debug, kind, BROKEN.get(kind, 1.0), dump_path=str(path), **further)
    shutil.copytree(path, debug.dump_path, dirs_exist_ok=True)
    shutil.rmtree(path)


def train(debug, kind, value=1.0, **further):
    """Train three steps under a task."""
    settings = {"dump_path": str(debug.dump_path), **FILES[kind][0], **further}
    if kind == "L2":
        task = {"task": "statistics", **settings}
        command = program("kernels", json.dumps({"steps": 1, "settings": task}))
        done = processes.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr[-2000:]
        return
    config = debug.path / "config.json"
    config.write_text(json.dumps(settings))
    debugger = PrecisionDebugger(config_path=str(config))
    net = nn.SequentialCell(Compiled() if kind == "graph" else nn.Dense(4, 4), nn.Dense(4, 1))
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(lambda x: net(x * x).sum(), None, optimizer.parameters)
    for _ in range(3):
        debugger.start(net)
        _, gradients = gradient(Tensor(X * value))
        optimizer(gradients)
        if kind == "debug":
            debugger.save(Tensor(X), "x")
        debugger.stop()
        debugger.step()
    PrecisionDebugger.close()


def files(debug):
    """Return the files of the run by path: their content."""
    return {
        path.relative_to(debug.dump_path).as_posix(): path.read_bytes()
        for path in debug.dump_path.rglob("*")
        if path.is_file()
    }


def names(paths):
    """Return the kinds of names: without numbers in them."""
    found = (re.sub(r".*\.npy$", "*.npy", path.rpartition("/")[2]) for path in paths)
    return sorted({re.sub(r"_\d+", "", name) for name in found})


#: their square is Inf
BROKEN = dict.fromkeys(("nan_check", "monitor", "monitor with dumps", "monitor with repeats"), 1e20)


@pytest.mark.parametrize("kind", list(FILES))
def test_the_table_has_every_file_and_a_run_with_overwrite_leaves_none(debug, kind):
    earlier(debug, kind)
    older = files(debug)
    assert names(older) == sorted(FILES[kind][1])
    for path in debug.dump_path.rglob("rank*"):  # errors are logged in each of these folders
        if path.is_dir() and kind != "L2":
            (path / "dump_error_info.log").write_text("of the older run")
    train(debug, "structure", overwrite=True)
    found = files(debug)
    found.pop(CONFIGURATION, None)
    assert names(found) == sorted(DUMP)
    assert len(found) == 11  # three documents of each step, and the snapshot of the first


@pytest.mark.parametrize("kind", ["monitor", "L2"])
def test_a_run_of_this_kind_replaces_all_others(debug, kind):
    for other in ("tensor", "graph", "monitor", "L2"):
        earlier(debug, other)
    (debug.dump_path / "mine.txt").write_text("of the user")
    (debug.dump_path / "rank_0" / "older.csv").write_text("of the older run")
    train(debug, kind, overwrite=True)
    found = files(debug)
    assert found.pop("mine.txt") == b"of the user"
    assert names(found) == (KERNELS if kind == "L2" else [CONFIGURATION, "series.bin"])


def test_a_healthy_run_has_no_alarm_of_the_run_that_it_replaces(debug):
    earlier(debug, "monitor")
    train(debug, "monitor", overwrite=True)
    (rank,) = open_series(str(debug.dump_path))
    assert (rank.steps, Follower().begin(rank)) == ([0, 1, 2], [])
    assert not list(debug.dump_path.rglob("alarms.jsonl"))


@pytest.mark.parametrize("step", [3, 2])
def test_a_resumed_run_keeps_the_rows_before_its_first_step(debug, step):
    earlier(debug, "monitor")
    config = debug.path / "config.json"
    config.write_text(
        json.dumps({"dump_path": str(debug.dump_path), "task": "monitor", "overwrite": True})
    )
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.set_init_step(step)
    net = nn.Dense(4, 1)
    debugger.start(net)
    debugger.stop()
    debugger.step()
    PrecisionDebugger.close()
    (rank,) = open_series(str(debug.dump_path))
    assert rank.steps == ([0, 1, 2, 3] if step == 3 else [2])
    assert len(list(debug.dump_path.rglob("alarms.jsonl"))) == (step == 3)


def test_trainer_mon_writes_into_a_folder_of_each_run_and_has_nothing_to_replace(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MONITOR_OUTPUT_DIR", str(tmp_path / "out"))
    config = tmp_path / "monitor.json"
    config.write_text(
        json.dumps({"targets": {}, "wg_distribution": True, "format": "csv", "ops": ["norm"]})
    )
    for _ in range(2):
        net = nn.Dense(4, 1)
        optimizer = nn.SGD(net.trainable_params(), 0.01)
        monitor = TrainerMon(str(config))
        monitor.set_monitor(net, optimizer)
        _, gradients = ms.value_and_grad(
            lambda x, net=net: net(x).sum(), None, optimizer.parameters
        )(Tensor(X))
        optimizer(gradients)
        PrecisionDebugger.close()
    assert "torch" not in sys.modules
    assert len(list((tmp_path / "out").iterdir())) == 2
