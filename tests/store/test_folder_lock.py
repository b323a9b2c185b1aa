# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""FolderLocks: two runs never share a folder, and nothing but a dump is ever removed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from probe.errors import UsageError
from probe.store.folder_lock import FolderLocks
from probe.store.journal import Journal
from tests.support.paths import environment


@pytest.fixture
def locks():
    made = FolderLocks()
    yield made
    made.release()


def make_dump(path, step=0, rank="rank0", **files):
    """Write files of a dump, by default a dump.json, into a rank folder; return it."""
    folder = path / f"step{step}" / rank
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (files or {"dump": "{}"}).items():
        (folder / {"dump": "dump.json", "journal": "dump.journal"}.get(name, name)).write_text(text)
    return folder


def listing(path):
    return sorted(str(item.relative_to(path)) for item in path.rglob("*"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_path_without_dumps_may_be_used_and_the_rank_is_ours(locks, tmp_path, overwrite):
    assert "rank0" not in locks
    locks.check_unused(str(tmp_path / "missing"), "rank0", overwrite)
    assert "rank0" in locks
    assert "rank1" not in locks
    locks.discard("rank0")
    locks.discard("rank0")
    assert "rank0" not in locks


@pytest.mark.parametrize("step", [0, 7, "_other"])
def test_the_dump_of_another_run_is_refused_in_whatever_step_it_is(locks, tmp_path, step):
    folder = make_dump(tmp_path, step)
    before = listing(tmp_path)
    with pytest.raises(UsageError, match="holds the dump of another run") as raised:
        locks.check_unused(str(tmp_path), "rank0", overwrite=False)
    assert str(folder) in str(raised.value)
    assert "probe recover" not in str(raised.value)
    assert listing(tmp_path) == before
    assert "rank0" not in locks


def test_a_run_that_did_not_end_by_itself_is_told_to_be_recovered(locks, tmp_path):
    make_dump(tmp_path, journal="half of a record")
    with pytest.raises(UsageError, match="`probe recover`"):
        locks.check_unused(str(tmp_path), "rank0", overwrite=False)


def test_the_dumps_of_other_ranks_are_left_alone(locks, tmp_path):
    for rank in ("rank", "rank1", "rank10", "rank01"):
        make_dump(tmp_path, rank=rank)
    before = listing(tmp_path)
    locks.check_unused(str(tmp_path), "rank0", overwrite=True)
    assert listing(tmp_path) == before


def test_overwrite_removes_every_file_of_a_dump_and_nothing_else(locks, tmp_path):
    for step in (0, 3):
        folder = make_dump(tmp_path, step, dump="{}", journal="x")
        for name in ("stack.json", "construct.json", "debug.json", "dump_error_info.log", "dump.json.77.tmp"):
            (folder / name).write_text("")
        (folder / "dump_tensor_data").mkdir()
        (folder / "dump_tensor_data" / "a.npy").write_text("")
        (folder / "notes.txt").write_text("of the user")
        (folder / "dump_tensor_data_of_mine").mkdir()
    locks.check_unused(str(tmp_path), "rank0", overwrite=True)
    left = ["dump_tensor_data_of_mine", "notes.txt"]
    assert [sorted(os.listdir(tmp_path / step / "rank0")) for step in ("step0", "step3")] == [left, left]


def test_overwrite_removes_a_link_and_not_its_target(locks, tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "precious").write_text("")
    folder = make_dump(tmp_path / "dump")
    (folder / "dump_tensor_data").symlink_to(target)
    locks.check_unused(str(tmp_path / "dump"), "rank0", overwrite=True)
    assert listing(folder) == []
    assert listing(target) == ["precious"]


def test_files_of_the_user_are_no_dump(locks, tmp_path):
    make_dump(tmp_path, **{"notes.txt": ""})
    (tmp_path / "step1").mkdir()
    (tmp_path / "step1" / "rank0").write_text("a file")
    locks.check_unused(str(tmp_path), "rank0", overwrite=False)


@pytest.mark.parametrize("name", ["a[0-9]b", "what?", "all*", "with space"])
def test_a_path_is_taken_as_it_is_written(locks, tmp_path, name):
    make_dump(tmp_path / name)
    (tmp_path / "a5b").mkdir()
    with pytest.raises(UsageError, match="another run"):
        locks.check_unused(str(tmp_path / name), "rank0", overwrite=False)
    locks.check_unused(str(tmp_path / "a5b"), "rank0", overwrite=False)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("held", ["folder", "journal"])
def test_a_folder_that_a_living_run_writes_is_refused_and_free_when_it_has_ended(locks, tmp_path, overwrite, held):
    other, folder = FolderLocks(), make_dump(tmp_path, **{"notes.txt": ""})
    make_dump(tmp_path, 5)
    journal = Journal(str(folder), "{}")
    if held == "folder":
        other.lock(str(folder))
    else:
        journal.open()
    with pytest.raises(UsageError, match="is being written by another process") as raised:
        locks.check_unused(str(tmp_path), "rank0", overwrite)
    assert str(folder) in str(raised.value)
    assert (tmp_path / "step5" / "rank0" / "dump.json").exists()
    other.release()
    journal.remove()
    locks.check_unused(str(tmp_path), "rank0", overwrite=True)


HOLDS = """
import sys
from probe.store.folder_lock import FolderLocks
locks = FolderLocks()
locks.lock(sys.argv[1])
print("locked", flush=True)
sys.stdin.readline()
"""


def test_a_lock_goes_with_its_process(locks, tmp_path):
    folder = make_dump(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(UsageError, match="another process"):
            locks.check_unused(str(tmp_path), "rank0", overwrite=True)
    finally:
        process.kill()
        process.communicate(timeout=60)
    locks.check_unused(str(tmp_path), "rank0", overwrite=True)
    assert listing(folder) == []


def test_release_may_be_called_twice_and_closes_every_folder(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    made = FolderLocks()
    for step in range(3):
        made.lock(str(make_dump(tmp_path, step)))
    assert len(os.listdir("/proc/self/fd")) == before + 3
    made.release()
    made.release()
    assert len(os.listdir("/proc/self/fd")) == before
