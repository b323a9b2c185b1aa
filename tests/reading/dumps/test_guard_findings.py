# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The findings of a training are read back, in English and Chinese."""

from __future__ import annotations

import json

import mindspore as ms
from mindspore import Parameter

from probe.__main__ import main
from probe.findings.sentence import NOTHING, say
from probe.reading.one_run.health.run_check import check_run
from probe.reading.report.report import make_content
from tests.support.saved_hooks import needs_hooks


def finding(name="0"):
    which = say("guard.input", call="Functional.matmul.0.forward", name=name)
    place = say("guard.place", place="train.py:31")
    return say(
        "guard.saved",
        which=which,
        cause=say("guard.written", call="Functional.assign.0.forward", place=place),
    )


def write(folder, *lines):
    folder.mkdir(parents=True)
    (folder / "findings.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def line(said):
    return json.dumps({**said.to_dict(), "sentence": str(said)}, ensure_ascii=False)


def guards(path):
    return [one for one in check_run(str(path)).findings if one.rule == "guard"]


def test_findings_are_read_in_the_order_of_steps_and_ranks(tmp_path):
    write(tmp_path / "step10" / "rank0", line(finding("0")))
    write(tmp_path / "step2" / "rank1", line(finding("1")), line(finding("2")))
    write(tmp_path / "step2" / "rank0", line(finding("3")))
    found = guards(tmp_path)
    places = [(one.step, one.rank, one.said.facts["which"].facts["name"]) for one in found]
    assert places == [(2, 0, "3"), (2, 1, "1"), (2, 1, "2"), (10, 0, "0")]
    assert found[0].said == finding("3")
    assert guards(tmp_path / "step10")[0].sentence == str(finding("0"))


def test_a_finding_has_both_languages(tmp_path):
    write(tmp_path / "step0" / "rank", line(finding()))
    (found,) = guards(tmp_path)
    assert found.sentence == (
        "the input 0 that Functional.matmul.0.forward keeps for its backward changed between forward and backward: "
        "written by Functional.assign.0.forward (train.py:31)"
    )
    assert "前向与反向之间" in found.said.text("zh")
    assert found.rank is None
    assert found.to_dict()["key"] == "guard.saved"


def test_a_finding_that_returns_in_later_steps_is_told_once(tmp_path):
    for step in range(3):
        write(tmp_path / f"step{step}" / "rank", line(finding()))
    assert [one.step for one in guards(tmp_path)] == [0]


def test_damaged_and_unknown_lines_do_no_harm(tmp_path):
    known = say(
        "guard.saved",
        which=say("guard.unknown"),
        cause=say("guard.written", call="x", place=NOTHING),
    )
    later = json.dumps({"key": "guard.later", "facts": {}, "sentence": "something new"})
    write(
        tmp_path / "step0" / "rank",
        "{",
        "7",
        line(known),
        later,
        '{"key": "guard.saved", "facts": {}}',
    )
    assert [one.sentence for one in guards(tmp_path)] == [str(known), "something new"]


def test_shared_memory_is_only_suspicious(tmp_path, capsys):
    write(tmp_path / "step0" / "rank", line(say("guard.shared", first="a", second="b")))
    assert main(["check", str(tmp_path)]) == 2  # without run.json not all can be known
    assert "suspicious: a and b share memory" in capsys.readouterr().out


def recorded(debug, **settings):
    """Record a weight that is written before the backward, and return the folder and the sentence."""
    weight = Parameter(ms.ops.ones((2, 2)), name="w")

    def function(x):
        y = ms.ops.matmul(x, weight)
        ms.ops.assign(weight, ms.ops.ones((2, 2)) * 3)
        return y.sum()

    debugger = debug(level="L1", **(settings or {"saved_tensors": True}))
    debugger.start()
    ms.grad(function)(ms.ops.ones((2, 2)))
    debugger.stop()
    debugger.step()
    return str(debug.dump_path)


@needs_hooks
def test_nan_check_and_report_tell_the_findings(debug, capsys):
    folder = recorded(debug)
    (found,) = guards(folder)
    assert main(["nan", folder]) == 1
    assert f"step 0: {found.sentence}" in capsys.readouterr().out
    assert main(["nan", folder, "--lang", "zh", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[-1]["sentence"] == found.sentence
    assert main(["check", folder, "--lang", "zh"]) == 1
    assert found.said.text("zh") in capsys.readouterr().out
    content = make_content(folder)
    assert f"fault: {found.sentence}" in content.description["health"]
    assert content.head.status == 1


@needs_hooks
def test_a_step_of_nan_check_without_nan_has_its_findings(debug, capsys):
    folder = recorded(debug, task="nan_check")
    (found,) = guards(folder)
    assert main(["nan", folder]) == 1
    assert f"step 0: {found.sentence}" in capsys.readouterr().out
    assert main(["check", folder]) == 1
    assert f"fault: {found.sentence}" in make_content(folder).description["health"]
