# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The journal: records come back as they were appended, from one writer, and never half of one."""

from __future__ import annotations

import errno
import json
import os
import resource

import pytest

from probe.errors import UsageError
from probe.findings.sentence import NOTHING
from probe.reading.dumps.journal_reader import read
from probe.store.journal import Journal

HEADER = {"header": {"task": "statistics"}, "extra_info": True}
RECORDS = [
    {"name": "a", "entry": {"x": [1, None, "ä\n"]}},
    {"name": "b", "entry": None},
    {"name": "c" * 60},
]


@pytest.fixture
def journal(tmp_path):
    made = Journal(str(tmp_path / "step0" / "rank0"), json.dumps(HEADER))
    yield made
    made.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "step0" / "rank0" / "dump.journal"


def append(journal, records=RECORDS):
    for record in records:
        journal.append(json.dumps(record))


def test_the_records_come_back_in_order_the_header_first(journal, path):
    append(journal)
    assert journal.size == path.stat().st_size
    journal.close()
    assert read(str(path)) == ([HEADER, *RECORDS], NOTHING)


def test_the_first_record_opens_the_journal_and_open_may_be_called_twice(journal, path):
    assert not path.exists()
    append(journal, RECORDS[:1])
    journal.open()
    append(journal, RECORDS[1:])
    journal.close()
    assert read(str(path))[0] == [HEADER, *RECORDS]


def test_every_record_is_in_the_file_when_append_returns(journal, path):
    for record in RECORDS:
        append(journal, [record])
        content = path.read_bytes()
        assert content.endswith(json.dumps(record).encode())
        assert len(content) == journal.size


def test_a_journal_begins_anew_over_an_old_one(journal, path):
    append(journal)
    journal.close()
    again = Journal(str(path.parent), json.dumps(HEADER))
    again.open()
    again.close()
    assert read(str(path)) == ([HEADER], NOTHING)


def test_remove_leaves_no_file_and_close_leaves_it(journal, path):
    append(journal)
    journal.close()
    journal.close()
    assert path.exists()
    append(journal)
    journal.remove()
    journal.remove()
    assert not path.exists()
    append(journal)
    path.unlink()  # by somebody else
    journal.remove()


def test_its_file_is_for_owner_and_group_only(journal, path):
    before = os.umask(0)
    try:
        journal.open()
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_second_writer_is_refused_and_the_first_goes_on(journal, path):
    append(journal, RECORDS[:1])
    before = len(os.listdir("/proc/self/fd"))
    second = Journal(str(path.parent), "{}")
    for _ in range(2):
        with pytest.raises(UsageError, match="is being written by another process"):
            second.open()
    assert len(os.listdir("/proc/self/fd")) == before
    append(journal, RECORDS[1:])
    with pytest.raises(UsageError, match="is being written by a living process"):
        read(str(path))
    journal.close()
    assert read(str(path)) == ([HEADER, *RECORDS], NOTHING)


def test_a_link_in_the_place_of_the_journal_is_not_followed(journal, path, tmp_path):
    path.parent.mkdir(parents=True)
    (tmp_path / "precious").write_text("precious")
    path.symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="Errno") as raised:
        journal.open()
    assert raised.value.errno == errno.ELOOP
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.fixture
def limit():
    """Sets how long a file may become: the system then writes a part of a record, or refuses it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 1, 7, 8, 9, 50])
def test_half_of_a_record_does_not_stay_and_later_ones_are_written(journal, path, limit, room):
    append(journal, RECORDS[:1])
    size = path.stat().st_size
    limit(size + room)
    try:
        with pytest.raises(OSError, match="Errno") as raised:
            append(journal, RECORDS[2:])
        assert path.stat().st_size == journal.size == size
    finally:
        limit(resource.RLIM_INFINITY)
    assert raised.value.errno in (errno.ENOSPC, errno.EFBIG)
    append(journal, RECORDS[1:])
    journal.close()
    assert read(str(path)) == ([HEADER, *RECORDS], NOTHING)


@pytest.mark.parametrize("room", [0, 5, 20])
def test_a_journal_that_could_not_begin_begins_later(journal, path, limit, room):
    limit(room)
    try:
        with pytest.raises(OSError, match="Errno"):
            journal.open()
    finally:
        limit(resource.RLIM_INFINITY)
    append(journal)
    journal.close()
    assert read(str(path)) == ([HEADER, *RECORDS], NOTHING)
