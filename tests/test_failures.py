# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Failures of the disk and of the tool itself: the training goes on with the right numbers, and the user is told."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import shutil
import subprocess
import sys

import pytest

from probe import SettingsError
from tests.support import nets, processes
from tests.support.dumps import Dump
from tests.support.faults import DISK, TOOL, owner_of
from tests.support.paths import environment
from tests.support.training import bytes_of, steps_of

pytestmark = pytest.mark.slow

ERRORS = {
    "ENOSPC": OSError(errno.ENOSPC, "No space left on device"),
    "EIO": OSError(errno.EIO, "Input/output error"),
    "bug": ZeroDivisionError("a mistake of ours"),
}
CASES = [(place, kind) for place in DISK for kind in ("ENOSPC", "EIO")] + [
    (place, "bug") for place in TOOL + DISK
]


def train(debugger=None, after_first=None):
    """Return the bytes of two steps' losses, gradients and parameters."""
    seen = []
    for number, (_, tensors) in enumerate(steps_of(nets.build("digits"), 2, debugger)):
        seen += bytes_of(tensors)
        if after_first is not None and not number:
            after_first()
    return seen


@pytest.fixture(scope="module")
def bare():
    return train()


@pytest.fixture
def tough(tmp_path):
    """A maker of debuggers that may leave a dump_error_info.log behind."""
    from probe import PrecisionDebugger
    from tests.support.dumps import Debug

    yield Debug(tmp_path)
    PrecisionDebugger._living().close()


@pytest.mark.parametrize(("place", "kind"), CASES)
def test_a_failure_in_any_function_never_reaches_the_training(
    tough, bare, caplog, monkeypatch, place, kind
):
    debugger = tough(level="mix", task="tensor")
    owner, name = owner_of(place)
    failed = []

    def fail(*args, **kwargs):
        failed.append(name)
        raise ERRORS[kind]

    with caplog.at_level(logging.WARNING, "probe"), monkeypatch.context() as patched:
        patched.setattr(owner, name, fail)
        assert train(debugger, after_first=patched.undo) == bare
    assert failed, "never called: the list is out of date"
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert told
    assert len(told) <= 18, [record.message for record in told]
    later = tough.dump(1)
    assert "Cell.conv.Conv2d.forward.0" in later.data
    assert not any("error" in entry for entry in later.data.values())


def test_a_call_that_could_not_be_recorded_is_marked_and_the_others_are_recorded(
    tough, monkeypatch
):
    from probe.measure.describe import ValueDescriber

    value = ValueDescriber.value

    def fail(self, item, name, sink, role):
        if "tanh" in name:
            raise ZeroDivisionError("a mistake of ours")
        return value(self, item, name, sink, role)

    debugger = tough(level="L1")
    monkeypatch.setattr(ValueDescriber, "value", fail)
    net, step = nets.build("digits")
    debugger.start(net)
    step(0)
    debugger.step()
    data = tough.dump().data
    assert data["Functional.tanh.0.forward"]["error"] == "ZeroDivisionError: a mistake of ours"
    assert [name for name, entry in data.items() if "error" in entry] == [
        "Functional.tanh.0.forward"
    ]
    assert "Functional.tanh.0.backward" in data
    text = (tough.dump().folder / "dump_error_info.log").read_text()
    assert "Traceback" in text
    assert "a mistake of ours" in text


def test_an_error_that_cannot_be_written_to_its_file_is_logged(tough, bare, caplog, monkeypatch):
    from probe.measure.host import HostMeasurer
    from probe.store import file_io

    def fail(*args):
        raise ERRORS["bug"]

    def full(*args):
        raise ERRORS["ENOSPC"]

    debugger = tough(level="L0")
    monkeypatch.setattr(HostMeasurer, "tensor", fail)
    monkeypatch.setattr(file_io, "append", full)
    assert train(debugger) == bare
    assert "Traceback" in caplog.text
    assert "a mistake of ours" in caplog.text


@pytest.mark.parametrize("what", ["removed", "file", "read_only", "link"])
def test_a_folder_that_is_removed_or_replaced_between_steps_changes_no_bit(
    tough, bare, caplog, what
):
    debugger = tough(level="mix", task="tensor")
    rank = tough.dump_path / "step1" / "rank"
    outside = tough.path / "outside"
    outside.mkdir()

    def spoil():
        rank.parent.mkdir()
        if what == "removed":
            shutil.rmtree(tough.dump_path)
        elif what == "file":
            rank.write_text("in the way")
        elif what == "link":
            rank.symlink_to(outside)
        elif what == "read_only":
            subprocess.run(["chattr", "+i", str(rank.parent)], check=True)

    if what == "read_only" and not immutable(tough.path):
        pytest.skip("this file system or user cannot make a folder immutable (chattr +i)")
    try:
        assert train(debugger, after_first=spoil) == bare
    finally:
        if what == "read_only":
            subprocess.run(["chattr", "-i", str(rank.parent)], check=True)
    assert list(outside.iterdir()) == []
    errors = [record.message for record in caplog.records if record.levelno >= logging.ERROR]
    if what == "removed":
        assert not errors
        assert "Cell.conv.Conv2d.forward.0" in Dump(rank).data
    else:
        assert errors
        assert len(set(errors)) <= 4


def immutable(folder):
    done = (
        subprocess.run(["chattr", "+i", str(folder)], capture_output=True, check=False)
        if has("chattr")
        else None
    )
    if done is None or done.returncode:
        return False
    subprocess.run(["chattr", "-i", str(folder)], check=True)
    return True


def has(program):
    return shutil.which(program) is not None


def test_a_folder_that_is_removed_in_the_middle_of_a_step_is_made_again(tough, bare):
    debugger = tough(level="mix", task="tensor")
    net, step = nets.build("digits")
    debugger.start(net)
    step(0)
    shutil.rmtree(tough.dump_path)
    step(1)
    debugger.step()
    dump = tough.dump()
    assert "Cell.conv.Conv2d.forward.0" in dump.data
    assert dump.array("Cell.conv.Conv2d.forward.1.output.0.npy").shape == (32, 8, 8, 8)


SMALL_DISK = """
import hashlib, json, sys
import mindspore as ms
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
import logging
logging.basicConfig(level=logging.WARNING, format="%(name)s %(message)s")
from tests.support import nets
net, step = nets.build("gpt")
if sys.argv[1]:
    from probe import PrecisionDebugger
    debugger = PrecisionDebugger(task="tensor", level="mix", dump_path=sys.argv[1])
    debugger.start(net)
digest = hashlib.sha256()
for i in range(1):
    loss, gradients = step(i)
    if sys.argv[1]:
        debugger.step()
    for tensor in (loss, *gradients):
        digest.update(tensor.asnumpy().tobytes())
print(digest.hexdigest())
"""


@pytest.mark.parametrize(
    ("size", "message"), [("5m", "nearly full"), ("100m,nr_inodes=300", "room for only")]
)
def test_a_full_disk_leaves_the_statistics_complete(tmp_path, size, message):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        command = [sys.executable, "-c", SMALL_DISK]
        plain = processes.run(
            [*command, ""],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
            env=environment(),
        )
        watched = processes.run(
            [*command, str(disk / "dump")],
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
            env=environment(),
        )
        dump = Dump(disk / "dump" / "step0" / "rank")
        arrays = len(list((dump.folder / "dump_tensor_data").iterdir()))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert watched.stdout == plain.stdout
    said = [line for line in watched.stderr.splitlines() if line.startswith("probe ")]
    assert len(said) == 1
    assert message in said[0]
    records = [record for entry in dump.data.values() for record in records_of(entry)]
    assert len(dump.data) == 298
    assert all(
        record["Norm"] is not None for record in records if record["dtype"].startswith("Float")
    )
    assert 10 < arrays == sum("data_name" in record for record in records) < len(records)
    assert len(dump.stack) > 10
    assert len(dump.construct) > 270


def test_a_full_disk_at_task_statistics_keeps_the_documents_before_and_names_the_steps_without(
    tough, caplog
):
    disk = tough.path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        debugger = tough(
            level="L1", dump_path=str(disk / "dump"), snapshot=False
        )  # its size differs
        x = nets.Tensor(1.0)
        for step in range(12):
            if step == 9:
                shutil.rmtree(disk / "dump" / "step0")
                shutil.rmtree(disk / "dump" / "step1")
            debugger.start()
            for _ in range(100):
                x * 2.0
            debugger.step()
        debugger.close()
        whole = []
        for step in range(12):
            with contextlib.suppress(FileNotFoundError):
                whole += (
                    [step] if len(Dump(disk / "dump" / f"step{step}" / "rank").data) == 100 else []
                )
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    lost = [step for step in range(2, 12) if step not in whole]
    assert len(lost) > 5
    assert 9 in whole  # the first step after there was room again
    said = [record.message for record in caplog.records if "no documents" in record.message]
    assert said[0] == f"step {lost[0]} has no documents: they could not be written"
    ranges = (
        said[1]
        .removeprefix("these steps have no documents, they could not be written: ")
        .split(", ")
    )
    ends = [(int(text.partition("-")[0]), int(text.rpartition("-")[2])) for text in ranges]
    assert [step for first, last in ends for step in range(first, last + 1)] == lost
    assert len(said) == 2


def records_of(value):
    if isinstance(value, dict) and "Norm" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records_of(item)


def test_max_disk_stops_the_arrays_and_says_so_once(tough, bare, caplog):
    debugger = tough(level="mix", task="tensor", max_disk="300KB")
    assert train(debugger) == bare
    assert [r.message for r in caplog.records if "max_disk" in r.message] == [
        "max_disk of 300000 bytes is reached: no more arrays are written; everything else continues"
    ]
    files = [path.stat() for path in tough.dump_path.rglob("*.npy")]
    assert 200_000 < sum({file.st_ino: file.st_size for file in files}.values()) < 330_000
    second = [record for entry in tough.dump(1).data.values() for record in records_of(entry)]
    assert second
    assert not any("data_name" in record for record in second)


@pytest.mark.parametrize("value", ["", "many", -3, 0, "-2GB", "5XB", True, [1]])
def test_max_disk_refuses_values_that_are_not_a_size(tmp_path, value):
    from probe.config.loading import load

    config = tmp_path / "config.json"
    config.write_text(json.dumps({"max_disk": value}))
    with pytest.raises(SettingsError, match="max_disk"):
        load(config)


def test_files_of_small_arrays_leave_room_for_the_documents(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        command = [sys.executable, "-c", SCALARS, str(disk / "dump")]
        done = processes.run(command, capture_output=True, text=True, check=True, timeout=100)
        dumps = [Dump(disk / "dump" / f"step{step}" / "rank") for step in (0, 1)]
        left = sorted(path.name for path in dumps[1].folder.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert [line for line in done.stderr.splitlines() if line.startswith("probe ")] == [
        line for line in done.stderr.splitlines() if "nearly full" in line
    ]
    assert [len(dump.data) for dump in dumps] == [400, 100]
    assert "dump.journal" not in left


SCALARS = """
import sys, logging
import mindspore as ms
from mindspore import ops
logging.basicConfig(level=logging.WARNING, format="%(name)s %(message)s")
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
from probe import PrecisionDebugger
debugger = PrecisionDebugger(task="tensor", dump_path=sys.argv[1])
x = ms.Tensor(2.0)
for calls in (400, 100):
    debugger.start()
    for _ in range(calls):
        ops.relu(x)
    debugger.step()
"""


def test_documents_that_cannot_be_written_leave_no_file_open(tough):
    debugger = tough(level="L1")
    x = nets.Tensor(1.0)
    counts = []
    for step in range(6):
        debugger.start()
        x * 2.0
        (tough.dump_path / f"step{step}" / "rank" / "dump.json").mkdir(parents=True)
        debugger.step()
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] == counts[0]


def test_a_dump_path_that_is_a_link_to_another_disk_is_followed(tough):
    target = tough.path / "big"
    target.mkdir()
    tough.dump_path.symlink_to(target)
    debugger = tough(level="L1")
    debugger.start()
    nets.Tensor(1.0) * 2.0
    debugger.step()
    assert (target / "step0" / "rank" / "dump.json").exists()
