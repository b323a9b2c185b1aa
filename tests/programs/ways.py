# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tries each task in each way to run a training, in four events, and looks whether the promises hold.

    python -m tests.programs.ways FOLDER [--tasks statistics,monitor] [--ways loop,notebook]

The ways are a loop, ``Model.train``, ``probe run`` and a notebook. The events are a first run, a second one into the
same ``dump_path``, a kill -9 in the third step, and a settings file that is edited after it. ``make ways`` tries all.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.paths import environment

STEPS = 5
#: task -> its settings; "golden" gets the folder of a run before
TASKS: dict[str, dict[str, object]] = {
    "statistics": {"level": "mix"},
    "tensor": {"task": "tensor", "level": "mix"},
    "structure": {"task": "structure", "level": "mix"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "nan_check": {"task": "nan_check", "level": "mix"},
    "monitor": {"task": "monitor"},
    "again": {"task": "monitor", "monitor": {"on_alarm": "again"}},
    "guard": {"level": "mix", "saved_tensors": True},
    "debug": {"level": "debug"},
    "golden": {"level": "mix"},
}
#: these write nothing while all is well
_SILENT = {"nan_check", "golden"}
#: the debugger's save() is called in loops alone
_NO_SAVE = {"train", "run"}

_NET = """
import json, os, signal
import numpy as np, mindspore as ms
from mindspore import nn, ops
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(4, 8), nn.Dense(8, 2)

    def construct(self, x):
        return self.last(ops.relu(self.first(x)))

net = Net()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
numbers = np.random.RandomState(0)
batches = [[numbers.randn(*shape).astype(np.float32) for shape in ((6, 4), (6, 2))] for _ in range(%(steps)d)]
loss_of = lambda x, y: ((net(x) - y) ** 2).mean()
differentiate = ms.value_and_grad(loss_of, None, optimizer.parameters)

def event(step):
    if step == 2 and "%(event)s" == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if step == 2 and "%(event)s" == "edit":
        with open("config.json") as file:
            settings = json.load(file)
        with open("config.json", "w") as file:
            json.dump({**settings, "dump_enable": False}, file)
"""
_DEBUGGER = """
from probe import PrecisionDebugger
debugger = PrecisionDebugger(config_path="config.json")
"""
_LOOP = """
for step, (x, y) in enumerate(batches):
    debugger.start(net)
    loss, gradients = differentiate(ms.Tensor(x), ms.Tensor(y))
    debugger.save(loss, "loss")
    if step == 2 and "%(event)s" == "kill":
        event(step)
    optimizer(gradients)
    debugger.stop()
    debugger.step()
    print("loss", float(loss))
    event(step)
"""
_PLAIN = """
for step, (x, y) in enumerate(batches):
    loss, gradients = differentiate(ms.Tensor(x), ms.Tensor(y))
    if step == 2 and "%(event)s" == "kill":
        event(step)
    optimizer(gradients)
    print("loss", float(loss))
    event(step)
"""
_TRAIN = """
from probe import MsprobeStep

class Event(ms.Callback):
    def on_train_step_end(self, run_context):
        found = run_context.original_args()
        print("loss", float(found.net_outputs))
        event(found.cur_step_num - 1)

data = ms.dataset.GeneratorDataset(lambda: iter(batches), ["x", "y"], shuffle=False).batch(1).map(
    lambda value: value[0], ["x"]).map(lambda value: value[0], ["y"])
model = ms.Model(net, nn.MSELoss(), optimizer)
model.train(1, data, callbacks=[MsprobeStep(debugger), Event()], dataset_sink_mode=False)
"""
_END = """
debugger.close()
"""


class Ended(NamedTuple):
    """A run that has ended."""

    status: int
    output: str  # with standard error

    @property
    def losses(self) -> list[str]:
        """The losses that it printed."""
        return re.findall(r"^loss (\S+)", self.output, re.MULTILINE)

    @property
    def last_line(self) -> str:
        """The line of probe at the end."""
        lines = [
            line
            for line in self.output.splitlines()
            if line.startswith(("probe: ", "nothing was recorded"))
        ]
        return lines[-1] if lines else ""


class Trial:
    """A task in one way, in a folder of its own."""

    def __init__(self, folder: Path, task: str, way: str) -> None:
        self.folder = folder / f"{task}-{way}"
        self.folder.mkdir(parents=True)
        self.task = task
        self.way = way
        self.settings = dict(TASKS[task])
        if task == "golden":
            self._configure({"level": "mix"}, "golden")
            self.run()
            self.settings["golden"] = "golden"

    def _configure(self, settings: dict[str, object], dump_path: str) -> None:
        (self.folder / "config.json").write_text(
            json.dumps({**settings, "dump_path": dump_path}), encoding="utf-8"
        )

    def begin(self, dump_path: str) -> None:
        """Write the settings of the next run."""
        self._configure(self.settings, dump_path)

    def run(self, event: str = "") -> Ended:
        """Run the training to its end."""
        values = {"steps": STEPS, "event": event}
        parts = {
            "bare": [_NET, _PLAIN],
            "loop": [_NET, _DEBUGGER, _LOOP],
            "train": [_NET, _DEBUGGER, _TRAIN],
            "run": [_NET, _PLAIN],
            "notebook": [_NET, _DEBUGGER, _LOOP, _END],
        }[self.way]
        cells = [part % values for part in parts]
        if self.way == "notebook":
            return _run_notebook(cells, self.folder)
        (self.folder / "program.py").write_text("".join(cells), encoding="utf-8")
        command = [sys.executable, "program.py"]
        if self.way == "run":
            command[1:1] = ["-m", "probe", "run", "--config", "config.json"]
        return self.call(command)

    def call(self, command: list[str]) -> Ended:
        """Run a command in the folder."""
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        ended = subprocess.run(
            command, cwd=self.folder, env=environment(), text=True, check=False, **both
        )
        return Ended(ended.returncode, ended.stdout)

    def read(self, last_line: str) -> Ended:
        """Run the command that the line at the end names."""
        words = shlex.split(last_line.rpartition("look with: probe ")[2])
        return self.call([sys.executable, "-m", "probe", *words])


def _run_notebook(cells: list[str], folder: Path) -> Ended:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(made, timeout=300, resources={"metadata": {"path": str(folder)}})
    status = 0
    try:
        client.execute(env=environment())
    except DeadKernelError:
        status = -signal.SIGKILL
    except CellExecutionError:
        status = 1
    outputs = [output for cell in made.cells for output in cell.get("outputs", ())]
    texts = [output.get("text", "") or "\n".join(output.get("traceback", ())) for output in outputs]
    return Ended(status, "".join(texts))


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _broken(trial: Trial, bare: Ended) -> Iterator[str]:
    """Yield the promises that are broken."""
    is_silent = trial.task in _SILENT
    has_values = not (trial.task == "debug" and trial.way in _NO_SAVE)
    losses = bare.losses if trial.way != "train" else None

    trial.begin("dump")
    first = trial.run()
    losses = losses or first.losses
    yield from _ended(first, losses, "first")
    dump = trial.folder / "dump"
    if not has_values:
        if "nothing was recorded" not in first.output:
            yield f"first: no line says that nothing was recorded, but {first.last_line!r}"
        return
    yield from _told(trial, first, "" if is_silent else "dump", "first")

    before = _files(dump) if dump.exists() else {}
    second = trial.run()
    yield from _ended(second, losses, "second")
    yield from _told(trial, second, "" if is_silent else "dump-2", "second")
    if before != (_files(dump) if dump.exists() else {}):
        yield "second: the folder of the first run has changed"
    if not is_silent and "this run writes into" not in second.output:
        yield "second: no line says that it writes beside the first run"

    trial.begin("killed")
    killed = trial.run("kill")
    if killed.status != -signal.SIGKILL:
        yield f"kill: status {killed.status}"
    yield from _readable(trial)

    trial.begin("edited")
    edited = trial.run("edit")
    yield from _ended(edited, losses, "edit")
    if "config file changed" not in edited.output:
        yield "edit: no line tells the edited setting"
    if not is_silent:
        yield from _told(trial, edited, "edited", "edit")


def _ended(run: Ended, losses: list[str], event: str) -> Iterator[str]:
    """Yield if a run has another status or other losses than the bare one."""
    if run.status:
        yield f"{event}: status {run.status}: {run.output[-600:]}"
    elif run.losses != losses or len(losses) != STEPS:
        yield f"{event}: the losses are {run.losses}, and {losses} without probe"
    if "Traceback" in run.output:
        yield f"{event}: a traceback"


def _told(trial: Trial, run: Ended, folder: str, event: str) -> Iterator[str]:
    """Yield if the line at the end does not tell the folder and a command that can read it."""
    if not folder:
        if not re.search(rf"{STEPS} steps (looked at|agree)", run.output):
            yield f"{event}: the line at the end does not say how much was looked at: {run.last_line!r}"
        return
    if (
        not re.search(rf"/{folder}(/|;| |$)", run.last_line)
        or "look with: probe " not in run.last_line
    ):
        yield f"{event}: the line at the end does not name {folder}: {run.last_line!r}"
        return
    read = trial.read(run.last_line)
    is_short = read.status == 2 and "cannot be known" in read.output  # of few rows
    is_answer = read.status in (0, 1) or is_short
    if not is_answer or "Traceback" in read.output or not read.output.strip():
        yield f"{event}: the command of the last line has status {read.status}: {read.output[-300:]}"


def _readable(trial: Trial) -> Iterator[str]:
    """Yield if the steps before a kill cannot be read."""
    killed = trial.folder / "killed"
    if trial.task in _SILENT:
        return  # nothing was to be written
    if trial.task in ("monitor", "again"):
        from probe.series.series import open_series

        rows = open_series(str(killed))
        if not rows or len(rows[0]["loss"].values) < 2:
            yield "kill: fewer than two rows are left"
        return
    names = {"debug": "debug.json", "structure": "construct.json"}  # the tree alone
    name = names.get(trial.task, "dump.json")
    for step in range(2):
        found = [path for path in killed.rglob(name) if f"step{step}" in path.parts]
        with contextlib.suppress(ValueError):
            written = json.loads(found[0].read_text(encoding="utf-8")) if found else {}
            if written.get("data", written if trial.task == "structure" else None):
                continue
        yield f"kill: step {step} cannot be read"
    shown = trial.call([sys.executable, "-m", "probe", "show", "killed"])
    if "Traceback" in shown.output or not shown.output.strip():
        yield f"kill: probe show has status {shown.status}: {shown.output[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--ways", default="loop,train,run,notebook")
    arguments = parser.parse_args()
    bare = Trial(arguments.folder, "statistics", "bare").run()
    tried = broken = 0
    for task in arguments.tasks.split(","):
        for way in arguments.ways.split(","):
            for fault in _broken(Trial(arguments.folder, task, way), bare):
                print(f"{task}, {way}: {fault}", flush=True)
                broken += 1
            tried += 1
    print(
        f"{tried} tasks and ways tried in four events, {broken or 'no'} promises broken", flush=True
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
