# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""RunFolders: two runs never share a folder, and nothing but a dump is ever removed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from probe.errors import UsageError
from probe.series.file import last_step
from probe.store.journal import Journal
from probe.store.run_folders import RunFolders
from tests.support import processes
from tests.support.paths import environment


@pytest.fixture
def locks():
    made = RunFolders(last_step)
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


def claim(locks, path, rank="rank0", overwrite=False, first_step=-1, steps_aside=False):
    """Return the folder that a run writes in place of a path."""
    return locks.root(str(path), rank, max(first_step, 0), first_step, overwrite, steps_aside)[0]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_path_without_dumps_is_used_as_it_is(locks, tmp_path, overwrite):
    missing = str(tmp_path / "missing")
    assert locks.root(missing, "rank0", 0, -1, overwrite, False) == (missing, True)
    assert locks.root(missing, "rank0", 0, -1, overwrite, False) == (missing, False)
    locks.forget(missing, "rank0")
    assert locks.root(missing, "rank0", 0, -1, overwrite, False) == (missing, True)


@pytest.mark.parametrize("step", [0, 7])
def test_the_dump_of_another_run_is_refused_in_whatever_step_it_is(locks, tmp_path, step):
    folder = make_dump(tmp_path, step)
    before = listing(tmp_path)
    with pytest.raises(UsageError, match="holds the dump of another run") as raised:
        claim(locks, tmp_path)
    assert str(folder) in str(raised.value)
    assert "probe recover" not in str(raised.value)
    assert listing(tmp_path) == before


def test_a_second_run_steps_aside_to_the_first_free_folder(locks, tmp_path):
    make_dump(tmp_path / "dump")
    make_dump(tmp_path / "dump-2", 9)
    (tmp_path / "dump-3").mkdir()
    before = listing(tmp_path)
    assert claim(locks, tmp_path / "dump", steps_aside=True) == str(tmp_path / "dump-3")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_begins_above_every_step_continues_and_removes_nothing(
    locks, tmp_path, overwrite
):
    for step in (0, 10, 9):
        make_dump(tmp_path, step)
    before = listing(tmp_path)
    assert claim(locks, tmp_path, overwrite=overwrite, first_step=11) == str(tmp_path)
    assert listing(tmp_path) == before


def test_a_run_that_begins_at_a_step_on_disk_does_not_continue(locks, tmp_path):
    make_dump(tmp_path / "dump", 10)
    assert claim(locks, tmp_path / "dump", first_step=10, steps_aside=True) == str(
        tmp_path / "dump-2"
    )


def test_a_step_that_this_process_wrote_is_replaced(locks, tmp_path):
    folder = locks.step_folder(str(tmp_path), 3, "rank0")
    make_dump(tmp_path, 3)
    (tmp_path / "step3" / "rank0" / "notes.txt").write_text("of the user")
    assert claim(locks, tmp_path) == str(tmp_path)
    assert locks.step_folder(str(tmp_path), 3, "rank0") == folder
    assert os.listdir(folder) == ["notes.txt"]


def test_a_run_that_did_not_end_by_itself_is_told_to_be_recovered(locks, tmp_path):
    make_dump(tmp_path, journal="half of a record")
    with pytest.raises(UsageError, match="`probe recover`"):
        claim(locks, tmp_path, overwrite=False)


def test_the_dumps_of_other_ranks_are_left_alone(locks, tmp_path):
    for rank in ("rank", "rank1", "rank10", "rank01"):
        make_dump(tmp_path, rank=rank)
    before = listing(tmp_path)
    claim(locks, tmp_path, overwrite=True)
    assert listing(tmp_path) == before


def test_overwrite_removes_every_file_of_a_dump_and_nothing_else(locks, tmp_path):
    for step in (0, 3):
        folder = make_dump(tmp_path, step, dump="{}", journal="x")
        for name in (
            "stack.json",
            "construct.json",
            "debug.json",
            "dump_error_info.log",
            "dump.json.77.tmp",
        ):
            (folder / name).write_text("")
        (folder / "dump_tensor_data").mkdir()
        (folder / "dump_tensor_data" / "a.npy").write_text("")
        (folder / "notes.txt").write_text("of the user")
        (folder / "dump_tensor_data_of_mine").mkdir()
    claim(locks, tmp_path, overwrite=True)
    left = ["dump_tensor_data_of_mine", "notes.txt"]
    assert [sorted(os.listdir(tmp_path / step / "rank0")) for step in ("step0", "step3")] == [
        left,
        left,
    ]


def test_overwrite_removes_a_link_and_not_its_target(locks, tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "precious").write_text("")
    folder = make_dump(tmp_path / "dump")
    (folder / "dump_tensor_data").symlink_to(target)
    claim(locks, tmp_path / "dump", overwrite=True)
    assert listing(tmp_path / "dump") == []
    assert listing(target) == ["precious"]


@pytest.mark.parametrize("link", ["step0", "step0/rank0"])
def test_overwrite_does_not_follow_the_link_of_a_folder(locks, tmp_path, link):
    precious = make_dump(tmp_path / "elsewhere")
    place = tmp_path / "dump" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(precious if link.endswith("rank0") else precious.parent)
    claim(locks, tmp_path / "dump", overwrite=True)
    assert listing(precious) == ["dump.json"]


def test_files_of_the_user_are_no_dump(locks, tmp_path):
    make_dump(tmp_path, **{"notes.txt": ""})
    (tmp_path / "step1").mkdir()
    (tmp_path / "step1" / "rank0").write_text("a file")
    claim(locks, tmp_path, overwrite=False)


@pytest.mark.parametrize("name", ["a[0-9]b", "what?", "all*", "with space"])
def test_a_path_is_taken_as_it_is_written(locks, tmp_path, name):
    make_dump(tmp_path / name)
    (tmp_path / "a5b").mkdir()
    with pytest.raises(UsageError, match="another run"):
        claim(locks, tmp_path / name, overwrite=False)
    claim(locks, tmp_path / "a5b", overwrite=False)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("held", ["folder", "journal"])
def test_a_folder_that_a_living_run_writes_is_refused_and_free_when_it_has_ended(
    locks, tmp_path, overwrite, held
):
    other, folder = RunFolders(last_step), make_dump(tmp_path, **{"notes.txt": ""})
    make_dump(tmp_path, 5)
    journal = Journal(str(folder), "{}")
    if held == "folder":
        other.lock(str(folder))
    else:
        journal.open()
    with pytest.raises(UsageError, match="is being written by another process") as raised:
        claim(locks, tmp_path, overwrite=overwrite)
    assert str(folder) in str(raised.value)
    assert (tmp_path / "step5" / "rank0" / "dump.json").exists()
    other.release()
    journal.remove()
    claim(locks, tmp_path, overwrite=True)


HOLDS = """
import sys
from probe.store.run_folders import RunFolders
locks = RunFolders(lambda path: -1)
locks.lock(sys.argv[1])
print("locked", flush=True)
sys.stdin.readline()
"""


def test_a_lock_goes_with_its_process(locks, tmp_path):
    folder = make_dump(tmp_path)
    process = processes.Popen(
        [sys.executable, "-c", HOLDS, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(UsageError, match="another process"):
            claim(locks, tmp_path, overwrite=True)
    finally:
        process.kill()
        process.communicate(timeout=600)
    claim(locks, tmp_path, overwrite=True)
    assert listing(tmp_path) == []


def test_release_may_be_called_twice_and_closes_every_folder(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    made = RunFolders(last_step)
    for step in range(3):
        made.lock(str(make_dump(tmp_path, step)))
    assert len(os.listdir("/proc/self/fd")) == before + 3
    made.release()
    made.release()
    assert len(os.listdir("/proc/self/fd")) == before
