# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""What a journal gives back, whole or damaged."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from probe.__main__ import main
from probe.reading.dumps.journal_reader import recover
from probe.store.documents import JsonDocuments
from probe.store.journal import Journal
from tests.support import processes

HEADER = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None}
STACKS = [["File a, line 1, in f, \n x()"], ["File b, line 2, in g, \n yä()"]]


def fill(folder, count=12):
    """Write a journal as a recorder does and leave it; return the offset at which each entry ends."""
    documents = JsonDocuments(str(folder), HEADER, STACKS, extra=True, journal=True, each=True)
    ends = []
    for i in range(count):
        name = f"Functional.relu.{i}.forward"
        documents.stack(name, i % 2)
        parts = {"input_args": [{"type": "float", "value": float(i)}, None], "input_kwargs": {}}
        documents.entry(
            name, parts, i % 2, [(name, "Cell.a.A.forward.0"), ("Cell.a.A.forward.0", None)]
        )
        ends.append(documents.journal.size)
    documents.entry("Functional.relu.0.forward", {"later_passes": 1})
    ends.append(documents.journal.size)
    documents.journal.close()
    return documents, ends


def test_recover_writes_the_documents_that_the_process_would_have_written(tmp_path, capsys):
    died, lived = tmp_path / "a" / "step0" / "rank", tmp_path / "b" / "step0" / "rank"
    fill(died)
    documents, _ = fill(lived)
    documents.write()
    assert main(["recover", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out == f"{died}: 12 entries recovered\n"
    for name in ("dump.json", "stack.json", "construct.json"):
        assert (died / name).read_text() == (lived / name).read_text()
    assert main(["recover", str(tmp_path / "a")]) == 0
    assert "nothing to recover" in capsys.readouterr().out


def test_entries_of_documents_written_before_are_kept(tmp_path):
    folder = tmp_path / "rank"
    documents, _ = fill(folder, 3)
    documents.write()  # the first stop()
    documents.journal.remove()
    later = JsonDocuments(str(folder), HEADER, STACKS, extra=True, journal=True, each=True)
    later.entry(
        "Functional.exp.0.forward", {"output": [1.5]}, 1, [("Functional.exp.0.forward", None)]
    )
    later.journal.close()
    recover(str(tmp_path))
    data = json.loads((folder / "dump.json").read_text())["data"]
    assert list(data) == [
        *(f"Functional.relu.{i}.forward" for i in range(3)),
        "Functional.exp.0.forward",
    ]
    stacks = json.loads((folder / "stack.json").read_text())
    assert stacks["1"] == [["Functional.relu.1.forward", "Functional.exp.0.forward"], STACKS[1]]


@pytest.mark.slow
def test_a_journal_cut_at_any_byte_gives_every_entry_before_the_cut(tmp_path):
    source = tmp_path / "source"
    _, ends = fill(source)
    whole = (source / "dump.journal").read_bytes()
    for length in range(len(whole)):
        found = attempt(tmp_path / "cut", whole[:length])
        wanted = sum(end <= length for end in ends)
        if isinstance(found, dict):
            assert len(found) == min(wanted, 12), length
            assert ("later_passes" in found.get("Functional.relu.0.forward", {})) == (wanted == 13)
        else:
            assert wanted == 0, (length, found)


@pytest.mark.slow
def test_a_journal_with_flipped_bits_gives_every_entry_before_the_damage(tmp_path):
    source = tmp_path / "source"
    _, ends = fill(source)
    whole = (source / "dump.journal").read_bytes()
    generator = random.Random(4)
    for _ in range(1000):
        place = generator.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[place] ^= 1 << generator.randrange(8)
        found = attempt(tmp_path / "flipped", bytes(damaged))
        wanted = sum(end <= place for end in ends)
        assert (len(found) if isinstance(found, dict) else 0) == min(wanted, 12), (place, found)


def attempt(folder, journal):
    """Return the entries that recover saves from these bytes, or its message."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "dump.journal").write_bytes(journal)
    (outcome,) = recover(str(folder))
    assert (folder / "dump.journal").exists() != outcome.well
    if not outcome.well:
        return outcome.text
    if not (folder / "dump.json").exists():
        return {}
    return json.loads((folder / "dump.json").read_text())["data"]


@pytest.mark.parametrize("wrong", ["nothing", "text", "number"])
def test_an_invalid_record_is_refused_and_the_journal_is_kept(tmp_path, wrong):
    first = json.dumps({"header": HEADER, "extra_info": True})
    bad = {
        "nothing": "{}",
        "text": '{"name": "a", "entry": "b"}',
        "number": '{"name": "a", "stack": "b"}',
    }[wrong]
    journal = Journal(str(tmp_path), first)
    journal.append(bad)
    journal.close()
    (outcome,) = recover(str(tmp_path))
    assert "cannot be recovered, it is kept" in outcome.text
    assert not outcome.well
    assert (tmp_path / "dump.journal").exists()


def test_recover_says_why_it_cannot_read_a_journal(tmp_path, capsys):
    assert main(["recover", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err
    (tmp_path / "dump.journal").write_bytes(b"something else")
    assert main(["recover", str(tmp_path)]) == 1
    assert "no journal of probe" in capsys.readouterr().err


HOLDING = """
import sys
from probe.store.documents import JsonDocuments
documents = JsonDocuments(sys.argv[1], {}, [], False, True, each=True)
documents.entry("a", {})
print("written", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
def test_the_journal_of_a_running_process_is_left_alone(tmp_path):
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with processes.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "written\n"
        (outcome,) = recover(str(tmp_path))
        assert "living process" in outcome.text
        assert not outcome.well
        process.communicate("\n", timeout=600)
    (outcome,) = recover(str(tmp_path))
    assert (outcome.text, outcome.well) == (f"{tmp_path}: 1 entries recovered", True)


def test_the_other_journals_are_recovered_when_one_cannot_be_read(tmp_path, capsys):
    for step, rank in enumerate(("rank0", "rank1", "rank2", "rank3")):
        fill(tmp_path / f"step{step}" / rank, 3)
    (tmp_path / "step0" / "rank0" / "dump.journal").write_bytes(b"")
    (tmp_path / "step1" / "rank1" / "dump.journal").write_bytes(b"something else")
    (tmp_path / "step2" / "rank2" / "dump.json").write_text("{")
    (tmp_path / "step3" / "rank3" / "dump.json.123.tmp").write_text("{")
    assert main(["recover", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"{tmp_path}/step0/rank0: 0 entries recovered",
        f"{tmp_path}/step2/rank2: 3 entries recovered; dump.json was damaged and is now dump.json.damaged",
        f"{tmp_path}/step3/rank3: 3 entries recovered",
    ]
    assert "no journal of probe" in said.err
    left = sorted(path.name for path in (tmp_path / "step3" / "rank3").iterdir())
    assert left == ["construct.json", "dump.json", "stack.json"]


def test_a_record_that_could_not_be_written_costs_no_other(tmp_path, monkeypatch):
    documents, _ = fill(tmp_path / "a", 0)
    (tmp_path / "a" / "dump.journal").unlink()
    documents = JsonDocuments(
        str(tmp_path / "a"), HEADER, STACKS, extra=True, journal=True, each=True
    )
    append = documents.journal.append

    def fail(*texts):
        raise OSError(28, "No space left on device")

    for i, write in enumerate((append, fail, append)):
        documents.journal.append = write
        documents.stack(f"Functional.relu.{i}.forward", 1 if i else 0)
        try:
            documents.entry(f"Functional.relu.{i}.forward", {"output": [i]}, 1 if i else 0)
        except OSError:
            assert write is fail
    documents.journal.close()
    (outcome,) = recover(str(tmp_path))
    assert outcome.well
    data = json.loads((tmp_path / "a" / "dump.json").read_text())["data"]
    assert list(data) == ["Functional.relu.0.forward", "Functional.relu.2.forward"]


def test_recovering_a_step_that_is_already_written_adds_nothing(tmp_path):
    """As after a kill between the documents and the end of the journal."""
    documents, _ = fill(tmp_path)
    journal = (tmp_path / "dump.journal").read_bytes()
    documents.write()
    before = (tmp_path / "stack.json").read_text()
    (tmp_path / "dump.journal").write_bytes(journal)
    recover(str(tmp_path))
    assert (tmp_path / "stack.json").read_text() == before
