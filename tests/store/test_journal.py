# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The journal: records come back as they were appended, and damage takes nothing of those before it along."""

from __future__ import annotations

import errno
import json
import os
import resource
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.errors import UsageError
from probe.store.journal import MAGIC, Journal, read
from tests.support.examples import MANY

HEADER = {"header": {"task": "statistics"}, "extra_info": True}
RECORDS = [{"name": "a", "entry": {"x": [1, None, "ä\n"]}}, {"name": "b", "entry": None}, {"name": "c" * 60}]


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
    assert read(str(path)) == ([HEADER, *RECORDS], "")


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
    assert read(str(path)) == ([HEADER], "")


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
    assert read(str(path)) == ([HEADER, *RECORDS], "")


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
    assert read(str(path)) == ([HEADER, *RECORDS], "")


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
    assert read(str(path)) == ([HEADER, *RECORDS], "")


# -- damage --------------------------------------------------------------------------------------------------------


def ends(content):
    """Return the length of the file after MAGIC and after each record."""
    found = [len(MAGIC)]
    while found[-1] < len(content):
        found.append(found[-1] + 8 + int.from_bytes(content[found[-1] : found[-1] + 4], "little"))
    return found


def test_a_journal_that_is_cut_at_any_byte_keeps_its_whole_records(journal, path):
    append(journal)
    journal.close()
    content, records = path.read_bytes(), [HEADER, *RECORDS]
    borders = ends(content)
    assert borders[-1] == len(content)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        whole = sum(border <= length for border in borders[1:])
        found, damage = read(str(path))
        assert found == records[:whole], length
        if length <= len(MAGIC) or length in borders:
            assert damage == ""
        else:
            assert damage == f"the last {length - borders[whole]} of {length} bytes were damaged or cut off"


def test_a_byte_that_is_wrong_spoils_no_record_before_it_and_passes_in_none(journal, path):
    append(journal)
    journal.close()
    content, records = path.read_bytes(), [HEADER, *RECORDS]
    borders = ends(content)
    for place in range(len(MAGIC), len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x20]) + content[place + 1 :])
        found, damage = read(str(path))
        assert found == records[: sum(border <= place for border in borders[1:])], place
        assert damage


@pytest.mark.slow
@MANY
@given(tail=st.binary(max_size=60))
def test_whatever_stands_at_the_end_takes_nothing_along(tmp_path_factory, tail):
    folder = tmp_path_factory.mktemp("journal")
    journal = Journal(str(folder), json.dumps(HEADER))
    append(journal)
    journal.close()
    with open(folder / "dump.journal", "ab") as file:
        file.write(tail)
    found, damage = read(str(folder / "dump.journal"))
    assert found == [HEADER, *RECORDS]
    assert bool(damage) == bool(tail)


@pytest.mark.parametrize("payload", [b"[1]", b"3", b"null", b"{", b"\xff", b"[" * 100_000])
def test_a_record_that_is_no_json_object_is_damage(journal, path, payload):
    append(journal)
    journal.close()
    with open(path, "ab") as file:
        file.write(struct.pack("<II", len(payload), zlib.crc32(payload)) + payload)
    found, damage = read(str(path))
    assert found == [HEADER, *RECORDS]
    assert damage.startswith(f"the last {len(payload) + 8} of ")


@pytest.mark.parametrize("content", [b"{}", b"probe journal 2\n", b"\x00" * 40])
def test_a_file_that_is_no_journal_is_named(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UsageError, match="file is no journal of probe"):
        read(str(tmp_path / "file"))


@pytest.mark.parametrize("length", [0, 1, len(MAGIC)])
def test_a_journal_whose_process_died_while_it_began_is_empty(tmp_path, length):
    (tmp_path / "file").write_bytes(MAGIC[:length])
    assert read(str(tmp_path / "file")) == ([], "")


def test_a_journal_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"missing cannot be read: .*No such file"):
        read(str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="cannot be read"):
        read(str(tmp_path))
