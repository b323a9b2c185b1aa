# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A damaged journal: the damage takes nothing of the records before it along."""

from __future__ import annotations

import json
import struct
import zlib

import pytest
from hypothesis import given, strategies as st

from probe.errors import UsageError
from probe.findings.sentence import NOTHING
from probe.reading.dumps.journal_reader import read
from probe.store.journal import MAGIC, Journal
from tests.support.examples import MANY

HEADER = {"header": {"task": "statistics"}, "extra_info": True}
RECORDS = [
    {"name": "a", "entry": {"x": [1, None, "ä\n"]}},
    {"name": "b", "entry": None},
    {"name": "c" * 60},
]


def write_journal(folder):
    """Write a journal and return its path."""
    journal = Journal(str(folder), json.dumps(HEADER))
    for record in RECORDS:
        journal.append(json.dumps(record))
    journal.close()
    return folder / "dump.journal"


@pytest.fixture
def path(tmp_path):
    return write_journal(tmp_path / "step0" / "rank0")


def ends(content):
    """Return the length of the file after MAGIC and after each record."""
    found = [len(MAGIC)]
    while found[-1] < len(content):
        found.append(found[-1] + 8 + int.from_bytes(content[found[-1] : found[-1] + 4], "little"))
    return found


def test_a_journal_that_is_cut_at_any_byte_keeps_its_whole_records(path):
    content, records = path.read_bytes(), [HEADER, *RECORDS]
    borders = ends(content)
    assert borders[-1] == len(content)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        whole = sum(border <= length for border in borders[1:])
        found, damage = read(str(path))
        assert found == records[:whole], length
        if length <= len(MAGIC) or length in borders:
            assert not damage
        else:
            assert (
                str(damage)
                == f"the last {length - borders[whole]} of {length} bytes were damaged or cut off"
            )


def test_a_byte_that_is_wrong_spoils_no_record_before_it_and_passes_in_none(path):
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
    path = write_journal(tmp_path_factory.mktemp("journal"))
    with open(path, "ab") as file:
        file.write(tail)
    found, damage = read(str(path))
    assert found == [HEADER, *RECORDS]
    assert bool(damage) == bool(tail)


@pytest.mark.parametrize("payload", [b"[1]", b"3", b"null", b"{", b"\xff", b"[" * 100_000])
def test_a_record_that_is_no_json_object_is_damage(path, payload):
    with open(path, "ab") as file:
        file.write(struct.pack("<II", len(payload), zlib.crc32(payload)) + payload)
    found, damage = read(str(path))
    assert found == [HEADER, *RECORDS]
    assert str(damage).startswith(f"the last {len(payload) + 8} of ")


@pytest.mark.parametrize("content", [b"{}", b"probe journal 2\n", b"\x00" * 40])
def test_a_file_that_is_no_journal_is_named(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UsageError, match="file is no journal of probe"):
        read(str(tmp_path / "file"))


@pytest.mark.parametrize("length", [0, 1, len(MAGIC)])
def test_a_journal_whose_process_died_while_it_began_is_empty(tmp_path, length):
    (tmp_path / "file").write_bytes(MAGIC[:length])
    assert read(str(tmp_path / "file")) == ([], NOTHING)


def test_a_journal_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"missing cannot be read: .*No such file"):
        read(str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="cannot be read"):
        read(str(tmp_path))
