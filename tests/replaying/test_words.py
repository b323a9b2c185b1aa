# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001  Chinese has marks of its own
"""The sentences of ``probe replay``: in both languages, as text and as key and facts."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections import Counter

import pytest

from probe.__main__ import main
from probe.findings.sentence import NOTHING, Sentence, clauses, say, table
from probe.reading.dumps.run import open as open_run
from probe.replaying import judging
from probe.replaying.described import ReplayResult, not_replayed
from probe.replaying.judging import Judged
from probe.replaying.replay import Replayed, Replays
from probe.replaying.script import _MODULES
from tests.architecture.source import read
from tests.replaying.device import Device, number
from tests.support.paths import ROOT

#: words that are the same in Chinese: names of MindSpore, of files and of dtypes
NAMES = "API CPU Cell MindSpore NaN Inf Primitive dtype dump float32 float64 kernel rank shape"
FAR = Judged("output.0", "wrong", 1e-3, 6e-8, 8192.0, 0.5, [0, 1])


def replayed(result):
    return Replayed(0, None, "Functional.relu.0.forward", *result)


def test_all_keys_of_the_code_are_in_the_table_and_all_of_the_table_in_the_code():
    text = "".join(
        module.text for module in read(ROOT) if module.name.startswith("probe.replaying")
    )
    used = set(re.findall(r'"(replay\.\w+)"', text))
    of_entries = {
        "replay.raised",
        "replay.pending",
        "replay.error",
    }  # the key of the entry is in their names
    assert used | of_entries == {key for key in table() if key.startswith("replay.")}


@pytest.mark.parametrize("key", [key for key in table() if key.startswith("replay.")])
def test_no_english_is_left_in_chinese(key):
    english, chinese = table()[key]
    facts = re.findall(r"\{(\w+)[^}]*\}", english)
    assert sorted(facts) == sorted(re.findall(r"\{(\w+)[^}]*\}", chinese))
    words = re.findall(r"[A-Za-z]\w+", re.sub(r"\{[^}]*\}", "", chinese))
    assert set(words) <= set(NAMES.split())


@pytest.mark.parametrize(
    ("said", "golden", "english", "chinese"),
    [
        (NOTHING, "float64 of numpy", "", ""),
        (
            say("replay.kernel"),
            "float64",
            " (this machine's kernel is wrong too; golden: the same operation of MindSpore in float64)",
            "（本机的 kernel 也错误；标杆：MindSpore 的同一操作以 float64 计算）",
        ),
        (
            say("replay.inexact"),
            "float64 of numpy",
            " (the operation itself is inexact here)",
            "（该操作本身在本机不精确）",
        ),
        (NOTHING, "float32", " (golden: float32)", "（标杆：float32）"),
        (
            clauses(say("replay.tie"), say("replay.no_kernel")),
            "float64 of elementary operations",
            " (equal elements in another order; this machine has no kernel for it; "
            "golden: float64 of elementary operations)",
            "（相等的元素次序不同；本机没有它的 kernel；标杆：由基本操作组成的 float64）",
        ),
    ],
)
def test_a_line_has_the_output_its_verdict_and_remarks(said, golden, english, chinese):
    call = replayed(ReplayResult("wrong", NOTHING, golden, [dataclasses.replace(FAR, said=said)]))
    head = "Functional.relu.0.forward.output.0"
    assert str(call) == f"{head}: recorded 1.0e-03 off, here 6.0e-08 at [0, 1]: wrong{english}"
    assert (
        call.sentence.text("zh")
        == f"{head}：记录值偏差 1.0e-03，本机偏差 6.0e-08，位于 [0, 1]：错误{chinese}"
    )


def test_the_modules_that_a_script_holds_together_have_no_name_twice():
    names = Counter()
    for module in _MODULES:
        for node in ast.parse((ROOT / "probe" / f"{module}.py").read_text("utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names[node.name] += 1
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", 0)]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_last_line_counts_the_verdicts_in_both_languages():
    refused = replayed(not_replayed(say("replay.cell")))
    calls = Replays(
        [
            replayed(
                ReplayResult("ok", NOTHING, "float64", [dataclasses.replace(FAR, verdict="ok")])
            ),
            refused,
        ]
    )
    assert str(calls).splitlines()[-1] == "1 ok, 0 worse than expected, 0 wrong, 1 not replayable"
    assert calls.text("zh").splitlines()[-1] == "1 个符合预期，0 个比预期差，0 个错误，1 个不能重放"


def test_json_has_the_text_and_the_key_and_facts_that_make_it():
    outputs = [dataclasses.replace(FAR, said=say("replay.special", count=2))]
    call = json.loads(
        json.dumps(replayed(ReplayResult("wrong", NOTHING, "float64", outputs)).to_dict())
    )
    assert (call["reason"], call["key"], call["facts"]) == ("", "", {})
    (output,) = call["outputs"]
    assert output["note"] == "2 NaN/Inf where the golden output has none, or none where it has"
    assert (output["key"], output["facts"]) == ("replay.special", {"count": 2})
    refused = replayed(
        not_replayed(say("replay.raised_here", error="TypeError", message="no"))
    ).to_dict()
    assert refused["reason"] == "MindSpore raised here: TypeError: no"
    assert (
        str(Sentence.from_dict({key: refused[key] for key in ("key", "facts")}))
        == refused["reason"]
    )


@pytest.mark.slow
def test_the_command_speaks_the_language_that_is_asked_for_or_that_of_the_locale(
    tmp_path, capsys, monkeypatch
):
    made = Device(tmp_path / "dump")
    made.forward("Functional.dropout", [number(0.5)], [number(1.0)], "Float32")
    path = str(made.write())
    assert len(open_run(path).folders) == 1
    for words, variable, last in (
        ([], "C", "0 ok, 0 worse than expected, 0 wrong, 1 not replayable"),
        ([], "zh_CN.UTF-8", "0 个符合预期，0 个比预期差，0 个错误，1 个不能重放"),
        (["--lang", "en"], "zh_CN.UTF-8", "0 ok, 0 worse than expected, 0 wrong, 1 not replayable"),
        (["--lang", "zh"], "C", "0 个符合预期，0 个比预期差，0 个错误，1 个不能重放"),
    ):
        monkeypatch.setenv("LC_ALL", variable)
        assert (
            main(["replay", path, "--all", "--jobs", "1", "--csv", str(tmp_path / "a.csv"), *words])
            == 2
        )
        said = capsys.readouterr()
        assert said.out.splitlines()[-1] == last
        is_chinese = "个" in last
        reason = "随机：它抽取的随机数不在 dump 中" if is_chinese else str(say("replay.random"))
        assert reason in said.out
        assert reason in (tmp_path / "a.csv").read_text("utf-8")
        assert said.err.startswith("已写入：" if is_chinese else "written: ")


def test_the_verdicts_of_json_are_names_in_any_language():
    assert (judging.OK, judging.WORSE, judging.WRONG) == ("ok", "worse than expected", "wrong")
    assert judging.NOT_REPLAYED == "not replayable"
