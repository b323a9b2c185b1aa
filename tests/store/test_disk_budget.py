# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The byte budget of arrays."""

from __future__ import annotations

import os

import pytest

from probe.store.arrays import DiskBudget

#: what a file takes beside its array where max_disk counts it
HEADER = 128


class Disk:
    """Stands for a disk: ``os.statvfs`` tells how much of it is free, and how often that was asked."""

    def __init__(self, monkeypatch, free):
        self.free, self.looks = free, 0
        monkeypatch.setattr(os, "statvfs", self._look)

    def _look(self, folder):
        self.looks += 1
        fields = {"f_bavail": self.free // 512, "f_frsize": 512}
        return type("statvfs_result", (), fields)

    def fill(self, budget, size, most=100_000):
        """Write files of one size until the budget allows no more; return their number."""
        written = 0
        while written < most and budget.reserve("/disk", size):
            self.free -= -(-(size + HEADER) // 4096) * 4096 + 512
            written += 1
        return written


def test_arrays_are_counted_up_to_max_disk_with_their_headers(tmp_path):
    budget = DiskBudget(3 * (1000 + HEADER))
    assert [budget.reserve(str(tmp_path), 1000) for _ in range(4)] == [True, True, True, False]
    assert budget.exhausted_reason == f"max_disk of {3 * (1000 + HEADER)} bytes is reached"


def test_an_exhausted_budget_allows_nothing_however_small(tmp_path):
    budget = DiskBudget(1000)
    assert not budget.reserve(str(tmp_path), 5000)
    assert not budget.reserve(str(tmp_path), 1)


def test_an_array_that_is_refused_is_not_counted(tmp_path):
    budget = DiskBudget(5000)
    assert not budget.reserve(str(tmp_path), 6000)
    budget.allow(5001)
    assert budget.reserve(str(tmp_path), 4800)


def test_a_higher_limit_allows_more_and_what_was_written_counts(tmp_path):
    budget = DiskBudget(2 * (1000 + HEADER))
    assert [budget.reserve(str(tmp_path), 1000) for _ in range(3)] == [True, True, False]
    budget.allow(2 * (1000 + HEADER))  # the same limit again
    assert not budget.reserve(str(tmp_path), 1)
    budget.allow(3 * (1000 + HEADER))
    assert budget.exhausted_reason == ""
    assert [budget.reserve(str(tmp_path), 1000) for _ in range(2)] == [True, False]
    budget.allow(None)
    assert [budget.reserve(str(tmp_path), 1000) for _ in range(9)] == [True] * 9


def test_a_lower_limit_than_what_was_written_allows_nothing(tmp_path):
    budget = DiskBudget(None)
    assert budget.reserve(str(tmp_path), 10_000)
    budget.allow(10_000)
    assert not budget.reserve(str(tmp_path), 1)
    assert "max_disk of 10000 bytes" in budget.exhausted_reason


@pytest.mark.parametrize("size", [1, 3000, 4096, 100_000])
def test_on_a_small_disk_a_third_stays_free_for_the_documents(monkeypatch, size):
    first = 12 << 20
    disk, budget = Disk(monkeypatch, first), DiskBudget(None)
    assert disk.fill(budget, size)
    assert first // 3 <= disk.free <= first // 3 + size + 3 * 4096
    assert (
        budget.exhausted_reason
        == f"the disk of /disk is nearly full, {disk.free // 512 * 512} bytes are free"
    )


def test_on_a_large_disk_64_mib_stay_free(monkeypatch):
    disk, budget, size = Disk(monkeypatch, 1 << 40), DiskBudget(None), 1 << 30
    disk.fill(budget, size)
    assert 64 << 20 <= disk.free <= (64 << 20) + size + 2 * 4096


def test_a_disk_that_is_full_at_first_takes_no_array(monkeypatch):
    Disk(monkeypatch, 0)
    assert not DiskBudget(None).reserve("/disk", 1)


def test_the_disk_is_looked_at_rarely(monkeypatch):
    disk, budget = Disk(monkeypatch, 1 << 40), DiskBudget(None)
    disk.fill(budget, 4000, most=10_000)
    assert disk.looks == 1


def test_what_others_write_meanwhile_is_seen_before_the_reserve_is_touched(monkeypatch):
    disk, budget = Disk(monkeypatch, 400 << 20), DiskBudget(None)
    assert budget.reserve("/disk", 1 << 20)
    disk.free = 65 << 20  # another process was quick
    disk.fill(budget, 8 << 20)
    assert budget.exhausted_reason
    assert disk.looks > 1


def test_a_folder_that_cannot_be_looked_at_is_an_error_and_nothing_is_counted(tmp_path):
    budget = DiskBudget(1000)
    with pytest.raises(FileNotFoundError):
        budget.reserve(str(tmp_path / "missing"), 800)
    assert budget.reserve(str(tmp_path), 800)


@pytest.mark.parametrize(("free", "allowed"), [(90, 60), (100_000, 90_000)])
def test_some_files_are_kept_free_for_the_documents(monkeypatch, free, allowed):
    left = [free]
    monkeypatch.setattr(
        os,
        "statvfs",
        lambda folder: type("statvfs_result", (), {"f_favail": left[0], "f_files": 10**6}),
    )
    budget, made = DiskBudget(None), 0
    while budget.allows_file("/disk"):
        left[0] -= 1
        made += 1
    assert made == allowed
    assert (
        budget.exhausted_reason
        == f"the disk of /disk has room for only {free - allowed} more files"
    )
    assert not budget.reserve("/disk", 1)


def test_a_file_system_that_makes_inodes_as_it_needs_them_has_no_limit_of_files(monkeypatch):
    monkeypatch.setattr(
        os, "statvfs", lambda folder: type("statvfs_result", (), {"f_favail": 0, "f_files": 0})
    )
    budget = DiskBudget(None)
    assert all(budget.allows_file("/disk") for _ in range(1000))
