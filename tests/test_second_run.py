# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A dump_path that holds another run's dump, and a process that writes into one folder several times."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
import threading

import pytest
from mindspore import ops

from probe import PrecisionDebugger, SettingsError, UsageError
from tests.support import processes
from tests.support.dumps import Dump
from tests.support.paths import environment
from tests.support.tensors import tensor
from tests.support.watched import is_watched

pytestmark = pytest.mark.medium

X = tensor([[1.0, -2.0], [3.0, 0.5]])


def train(debugger, name="exp", steps=1):
    for _ in range(steps):
        debugger.start()
        getattr(ops, name)(X)
        debugger.stop()
        debugger.step()


@pytest.fixture
def second(debug, caplog):
    """A maker of debuggers whose dump_path has three steps of another run: exp, with arrays."""
    caplog.set_level(logging.WARNING, "probe")
    train(debug(task="tensor", dump_path=str(debug.path / "earlier")), steps=3)
    PrecisionDebugger.close()
    shutil.move(debug.path / "earlier", debug.dump_path)
    caplog.clear()
    return debug


def dumps(path):
    """Return the APIs of each step below a folder."""
    steps = sorted(path.iterdir(), key=lambda step: int(step.name[4:]))
    return {step.name: [name.split(".")[1] for name in Dump(step / "rank").data] for step in steps}


EARLIER = {"step0": ["exp"], "step1": ["exp"], "step2": ["exp"]}


def test_a_second_run_writes_beside_the_first_and_one_warning_names_its_folder(second, caplog):
    train(second(), "tanh", steps=2)
    assert dumps(second.dump_path) == EARLIER
    assert dumps(second.path / "dump-2") == {"step0": ["tanh"], "step1": ["tanh"]}
    (message,) = caplog.messages
    assert f"this run writes into {second.path}/dump-2" in message


def test_a_third_run_takes_the_next_number(second):
    shutil.copytree(second.dump_path, second.path / "dump-2")
    train(second(), "tanh")
    assert dumps(second.path / "dump-3") == {"step0": ["tanh"]}


def test_overwrite_replaces_and_leaves_no_folder_of_a_longer_run(second, caplog):
    (second.dump_path / "step1" / "mine.txt").write_text("kept")
    train(second(overwrite=True), "tanh")
    assert sorted(path.name for path in second.dump_path.rglob("*") if "step1" in str(path)) == [
        "mine.txt",
        "step1",
    ]
    shutil.rmtree(second.dump_path / "step1")
    assert dumps(second.dump_path) == {"step0": ["tanh"]}
    assert not (second.dump_path / "step0" / "rank" / "dump_tensor_data").exists()
    assert caplog.messages == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_set_init_step_above_every_step_on_disk_continues_and_deletes_nothing(
    second, caplog, overwrite
):
    debugger = second(overwrite=overwrite)
    debugger.set_init_step(3)
    train(debugger, "tanh", steps=2)
    assert dumps(second.dump_path) == {**EARLIER, "step3": ["tanh"], "step4": ["tanh"]}
    assert caplog.messages == []


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_set_init_step_at_a_step_on_disk_is_a_second_run(second, step, overwrite):
    debugger = second(overwrite=overwrite)
    debugger.set_init_step(step)
    train(debugger, "tanh", steps=2)
    written = {f"step{step}": ["tanh"], f"step{step + 1}": ["tanh"]}
    assert dumps(second.dump_path) == (written if overwrite else EARLIER)
    assert overwrite or dumps(second.path / "dump-2") == written


def test_overwrite_replaces_although_this_process_wrote_beside_before(second):
    train(second(), "tanh")
    train(second(overwrite=True), "sin")
    assert dumps(second.dump_path) == {"step0": ["sin"]}
    assert dumps(second.path / "dump-2") == {"step0": ["tanh"]}


def test_a_run_that_continued_does_not_replace_steps_of_the_other_run_later(second, tmp_path):
    debugger = second()
    debugger.set_init_step(3)
    train(debugger, "tanh")
    train(second(dump_path=str(tmp_path / "elsewhere")))
    train(second(), "tanh")  # counts from 0 again
    assert dumps(second.dump_path) == {**EARLIER, "step3": ["tanh"]}
    assert dumps(second.path / "dump-2") == {"step0": ["tanh"]}


@pytest.fixture
def launched(monkeypatch):
    monkeypatch.setenv("RANK_ID", "1")
    monkeypatch.setenv("RANK_SIZE", "2")


def _of_rank_1(second):
    for step in second.dump_path.iterdir():
        (step / "rank").rename(step / "rank1")


def test_a_launched_process_is_refused_in_the_constructor_with_both_ways_out(second, launched):
    _of_rank_1(second)
    with pytest.raises(UsageError, match="holds the dump of another run") as refused:
        second()
    assert "Choose another dump_path" in str(refused.value)
    assert '"overwrite": true' in str(refused.value)
    second(rank=[0])  # this rank does not record
    second(dump_enable=False)


def test_a_launched_process_replaces_with_overwrite_at_its_first_step(second, launched):
    _of_rank_1(second)
    debugger = second(overwrite=True)
    assert len(list(second.dump_path.rglob("dump.json"))) == 3
    train(debugger, "tanh")
    assert [path.parent.name for path in second.dump_path.rglob("dump.json")] == ["rank1"]


def test_a_launched_process_continues_with_overwrite_and_set_init_step(second, launched):
    _of_rank_1(second)
    debugger = second(overwrite=True)
    debugger.set_init_step(3)
    train(debugger, "tanh")
    assert len(list(second.dump_path.rglob("dump.json"))) == 4


# -- one process ---------------------------------------------------------------------------------------------------


def test_a_b_a_by_new_debuggers_replaces_steps_of_this_process(debug, caplog):
    caplog.set_level(logging.WARNING, "probe")
    a, b = debug.path / "a", debug.path / "b"
    train(debug(dump_path=str(a)), "exp", steps=2)
    train(debug(dump_path=str(b)), "sin")
    train(debug(dump_path=str(a)), "tanh")
    assert dumps(a) == {"step0": ["tanh"], "step1": ["exp"]}
    assert dumps(b) == {"step0": ["sin"]}
    assert not any("another run" in message for message in caplog.messages)


def test_a_debugger_made_again_after_close_replaces_steps_of_this_process(debug):
    def cell():  # nothing keeps the debugger
        train(PrecisionDebugger(dump_path=debug.dump_path))
        PrecisionDebugger.close()

    cell()
    cell()
    assert dumps(debug.dump_path) == {"step0": ["exp"]}
    assert not (debug.path / "dump-2").exists()


def test_a_second_debugger_takes_over_between_start_and_stop_and_one_warning_names_both_folders(
    debug, caplog
):
    caplog.set_level(logging.WARNING, "probe")
    first = debug(dump_path=str(debug.path / "a"))
    first.start()
    ops.exp(X)
    second = debug(dump_path=str(debug.path / "b"))
    assert dumps(debug.path / "a") == {"step0": ["exp"]}
    assert not is_watched(ops.exp)
    assert "closed" in repr(first)
    train(second, "tanh")
    assert dumps(debug.path / "b") == {"step0": ["tanh"]}
    (message,) = caplog.messages
    assert f"{debug.path}/a" in message
    assert f"{debug.path}/b" in message


def test_a_folder_of_any_name_takes_a_second_run(debug, monkeypatch):
    monkeypatch.chdir(debug.path)
    monkeypatch.setenv("HOME", str(debug.path / "home"))
    (debug.path / "home").mkdir()
    for name in ("with blank", "中文", "./relative/[x]*", "~/below"):
        folder = debug.path / name.replace("~", "home")
        train(debug(dump_path=name))
        folder.rename(folder.with_name("moved"))
        train(debug(dump_path=name), "sin")  # equal settings: the run goes on
        shutil.rmtree(folder)
        PrecisionDebugger.close()
        folder.with_name("moved").rename(folder)
        train(debug(dump_path=name, task="tensor"), "tanh")
        assert dumps(folder) == {"step0": ["tanh"]}  # a step of this process
        PrecisionDebugger.close()


def test_threads_that_record_one_after_the_other_write_one_run(debug):
    debugger = debug()
    for _ in range(3):
        thread = threading.Thread(target=train, args=(debugger,))
        thread.start()
        thread.join()
    assert dumps(debug.dump_path) == EARLIER


@pytest.mark.parametrize("step", [[], [5]])
def test_an_unusable_dump_path_is_an_error_in_the_constructor(debug, step):
    (debug.path / "file").write_text("")
    with pytest.raises(
        SettingsError, match=r"dump_path: .*/file/dump' cannot be written: .*/file is no folder"
    ):
        debug(dump_path=str(debug.path / "file" / "dump"), step=step)


def test_an_unusable_dump_path_does_not_matter_where_nothing_is_recorded(debug, monkeypatch):
    (debug.path / "file").write_text("")
    settings = {"dump_path": str(debug.path / "file"), "level": "L1"}
    debug(**settings, dump_enable=False)
    monkeypatch.setenv("RANK_ID", "1")
    monkeypatch.setenv("RANK_SIZE", "2")
    debug(**settings, rank=[0])
    monkeypatch.setenv("MS_ROLE", "MS_SCHED")
    debug(**settings)


def test_a_read_only_folder_is_an_error_in_the_constructor(debug):
    folder = debug.path / "shut"
    folder.mkdir(mode=0o500)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a read-only file system needs root")
    try:
        with pytest.raises(SettingsError, match="is not writable"):
            debug(dump_path=str(folder / "dump"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)


PROGRAM = """
import os, signal, sys
import mindspore as ms, numpy as np
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
from probe import PrecisionDebugger
open("config.json", "w").write('{"task": "statistics", "dump_path": "dump", "journal": "each"}')
os.chmod("config.json", 0o640)
debugger = PrecisionDebugger(config_path="config.json")
for step in range(2):
    debugger.start()
    ms.ops.exp(ms.Tensor(np.ones(3, np.float32)))
    if len(sys.argv) > 1 and step:
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.stop()
    debugger.step()
"""


@pytest.mark.slow
def test_a_run_after_kill_9_writes_beside_and_leaves_the_journal_to_recover(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-c", PROGRAM, *arguments]
        return processes.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )

    assert run("killed").returncode == -signal.SIGKILL
    again = run()
    assert again.returncode == 0, again.stderr
    assert f"this run writes into {tmp_path}/dump-2" in again.stderr
    assert dumps(tmp_path / "dump-2") == {"step0": ["exp"], "step1": ["exp"]}
    assert (tmp_path / "dump" / "step1" / "rank" / "dump.journal").exists()
    third = run()
    assert f"this run writes into {tmp_path}/dump-3" in third.stderr
    recovered = [sys.executable, "-m", "probe", "recover", "dump"]
    processes.run(recovered, cwd=tmp_path, env=environment(), check=True, capture_output=True)
    data = json.loads((tmp_path / "dump" / "step1" / "rank" / "dump.json").read_text())["data"]
    assert list(data) == ["Functional.exp.0.forward"]
