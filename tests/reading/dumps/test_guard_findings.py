# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The findings of a training are read back, in English and Chinese."""

from __future__ import annotations

import json

from probe.findings.sentence import NOTHING, say
from probe.reading.dumps.guard_findings import guard_findings


def finding(name="0"):
    which = say("guard.input", call="Functional.matmul.0.forward", name=name)
    place = say("guard.place", place="train.py:31")
    return say("guard.saved", which=which, cause=say("guard.written", call="Functional.assign.0.forward", place=place))


def write(folder, *lines):
    folder.mkdir(parents=True)
    (folder / "findings.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def line(said):
    return json.dumps({**said.to_dict(), "sentence": str(said)}, ensure_ascii=False)


def test_findings_are_read_in_the_order_of_steps_and_ranks(tmp_path):
    write(tmp_path / "step10" / "rank0", line(finding("0")))
    write(tmp_path / "step2" / "rank1", line(finding("1")), line(finding("2")))
    write(tmp_path / "step2" / "rank0", line(finding("3")))
    found = guard_findings(str(tmp_path))
    places = [(one.step, one.rank, one.said.facts["which"].facts["name"]) for one in found]
    assert places == [(2, 0, "3"), (2, 1, "1"), (2, 1, "2"), (10, 0, "0")]
    assert found[0].said == finding("3")
    assert guard_findings(str(tmp_path / "step10"))[0].sentence == str(finding("0"))


def test_a_finding_has_both_languages(tmp_path):
    write(tmp_path / "step0" / "rank", line(finding()))
    (found,) = guard_findings(str(tmp_path))
    assert found.sentence == (
        "the input 0 that Functional.matmul.0.forward keeps for its backward changed between forward and backward: "
        "written by Functional.assign.0.forward (train.py:31)"
    )
    assert "正向与反向之间" in found.said.text("zh")
    assert found.rank is None
    assert found.to_dict()["key"] == "guard.saved"


def test_damaged_and_unknown_lines_do_no_harm(tmp_path):
    known = say("guard.saved", which=say("guard.unknown"), cause=say("guard.written", call="x", place=NOTHING))
    later = json.dumps({"key": "guard.later", "facts": {}, "sentence": "something new"})
    write(tmp_path / "step0" / "rank", "{", "7", line(known), later, '{"key": "guard.saved", "facts": {}}')
    assert [one.sentence for one in guard_findings(str(tmp_path))] == [str(known), "something new"]


def test_a_folder_without_findings_has_none(tmp_path):
    assert guard_findings(str(tmp_path)) == []
