# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own commas
"""The commands about one run answer in the language that is asked for, or in that of the locale."""

from __future__ import annotations

import json
import math
import re

import pytest

from probe.__main__ import main
from probe.reading.one_run.rank_checks import ranks_said
from probe.series.file import SeriesFile
from probe.series.rules import RULES
from tests.reading.builders import forward, tensor, write

NAN = {"Max": math.nan, "Min": math.nan, "Mean": math.nan, "Norm": math.nan, "nan_count": 1}
INF = {"Max": math.inf, "Min": -math.inf, "Mean": math.nan, "Norm": math.inf}
#: in the order of length; these stay English in a Chinese answer
NAMES = sorted([*RULES, *(rule.source for rule in RULES.values())], key=len, reverse=True)


def english(text):
    """Return the English words in a row that a Chinese answer has."""
    for name in NAMES:
        text = text.replace(name, "")
    return re.findall(r"(?<![\w./-])[a-z]+ [a-z]+\b", text)


def made(path):
    """Write calls that make NaN and Inf in each way that a sentence exists for."""
    data = {
        "Tensor.given.0.forward": forward([tensor(norm=1.0, **NAN)], [tensor(norm=2.0, **NAN)]),
        "Tensor.made.0.forward": forward([tensor(norm=3.0)], [tensor(norm=4.0, **INF)]),
        "Tensor.of_inf.0.forward": forward([tensor(norm=5.0, **INF)], [tensor(norm=6.0, **NAN)]),
        "Tensor.near.0.forward": forward(
            [tensor(norm=7.0)], [tensor(dtype="Float16", Max=65000.0)]
        ),
        "Cell.fc.Dense.forward.0": {
            **forward([tensor(norm=8.0)], [tensor(norm=9.0, **NAN)]),
            "parameters": {"weight": tensor(norm=10.0, **NAN)},
        },
    }
    write(path / "step3" / "rank1", data)


def apart(path):
    """Write ranks that disagree in each way that a sentence exists for."""
    for rank in range(9):
        off = rank in (2, 3)
        data = {
            "Functional.f.0.forward": forward(
                [tensor(norm=10.0 if rank < 2 else 10.0 + rank)], [tensor(norm=20.0)]
            ),
            "Functional.far.0.forward": forward(
                [tensor(norm=1.0)], [tensor(norm=900.0 if rank == 7 else 2.0)]
            ),
            "Cell.fc.Dense.forward.0": {
                **forward([tensor(norm=1.0)], [tensor(norm=5.0)]),
                "parameters": {
                    f"w{i}": tensor(norm=70.0 + rank if off and i < 2 else 1.0) for i in range(6)
                },
            },
            "Distributed.all_reduce.0.forward": forward(
                [tensor(norm=5.0)], [tensor(norm=30.0 if off else 40.0)]
            ),
        }
        if rank == 5:
            data["Distributed.broadcast.0.forward"] = forward(
                [tensor(norm=5.0)], [tensor(norm=41.0)]
            )
        write(path / "step0" / f"rank{rank}", data)
        calls = {"Functional.f.0.forward": forward([tensor(norm=11.0 + rank)], [tensor(norm=20.0)])}
        if rank == 8:
            calls["Functional.more.0.forward"] = forward([tensor(norm=1.0)], [tensor(norm=1.0)])
        write(path / "step1" / f"rank{rank}", calls)


def odd(path):
    """Write steps whose series are odd."""
    for step, norm in enumerate([1.0, 1.1, 0.9, 1.05, 1.0, 0.95, 30.0]):
        entries = {
            f"Cell.fc{i}.Dense.parameters_grad.0": {"weight": [tensor(norm=norm)]}
            for i in range(50)
        }
        write(path / f"step{step}" / "rank0", {"Tensor.f.0.forward": forward([], []), **entries})


def watched(path):
    """Write the file of a monitor whose series are odd."""
    file = SeriesFile(str(path / "monitor" / "rank0"))
    for step in range(60):
        file.write(
            step,
            {
                "loss": 9.0 if step == 50 else 1 + 0.01 * (step % 3),
                "a": 1.0,
                "b": 1.0,
                "seconds": 0.1,
            },
        )
    file.write(60, {"loss": math.nan, "a": math.nan, "b": 1.0, "seconds": 0.1})
    file.close()


FOLDERS = {"nan": made, "ranks": apart, "trend": odd, "watch": watched}
#: parts of the answers in both languages
PARTS = {
    "nan": [
        ("first NaN/Inf: step 3, rank 1, Tensor.given.0.forward\n", "最早的 NaN/Inf：第 3 步，rank 1，Tensor.given"),
        (
            "is given NaN in input.0, weight of fc.Dense; no recorded call made it\n",
            "的 input.0（fc.Dense 的 weight） 中有 NaN；没有已记录的调用产生它\n",
        ),
        ("independent of it, or later: step 3, rank 1", "与它无关，或更晚：第 3 步"),
        (
            "is given NaN in parameters.weight; no recorded call made it; it was there when step 3 began\n",
            "的 parameters.weight 中有 NaN；没有已记录的调用产生它；第 3 步开始时已存在\n",
        ),
    ],
    "ranks": [
        ("step 0: data: ranks 0-1 are given the same batch", "第 0 步：数据：rank 0-1 得到同一批数据"),
        (
            "parameter fc.w0, and 1 more should be the same on all ranks: ranks 0-1, 4-8 agree, rank 2 does not",
            "参数 fc.w0 以及另外 1 个 在所有 rank 上应相同：rank 0-1, 4-8 一致，rank 2 不一致，rank 3 不一致\n",
        ),
        ("Distributed.all_reduce.0.forward should give all ranks the same: ranks 0-1, 4-8 agree, ranks 2-3 do not", ""),
        ("the collectives are not the same sequence, from Distributed.broadcast.0.forward on", "集合通信的顺序从"),
        ("outlier: Functional.far.0.forward: the norm on rank 7 is far", "离群值：Functional.far.0.forward：rank 7"),
        ("the calls are not the same, the first such is Functional.more", "调用不同，第一个是 Functional.more"),
        ("step 1: unknown: cannot be known: whether the ranks hold the same", "无法判断：各 rank 的参数是否相同"),
        ("\n6 findings in steps 0-1, ranks 0-8, 6 parameters", "\n6 条发现，范围：第 0-1 步，rank 0-8，比较了 6"),
    ],
    "trend": [
        ("over the steps", "随步变化"),
        ("  ... and 10 more: --rows 0\n", "  ... 以及另外 10 个：--rows 0\n"),
        (
            "look here: step 6, Cell.fc0.Dense.parameters_grad.0.weight.0: spike: 30 in step 6, about 1 before "
            "(threshold 6; ZClip, llm.c)\n",
            "请看这里：第 6 步，Cell.fc0.Dense.parameters_grad.0.weight.0：spike：第 6 步为 30，之前约为 1"
            "（阈值 6；ZClip, llm.c）\n",
        ),
    ],
    "watch": [
        ("rank 0: 61 steps, the newest is 60, 0.1 s a step\n", "rank 0：共 61 步，最新为第 60 步，每步 0.1 秒\n"),
        (
            "look here: spike: loss: 9 in step 50, 1.02 at most in the 20 steps before\n",
            "请看这里：spike：loss：第 50 步为 9，之前 20 步最大为 1.02\n",
        ),
        (
            "look here: NaN/Inf: loss: NaN in step 60, after 1.02 in step 59 (1 more)\n",
            "请看这里：NaN/Inf：loss：第 60 步为 NaN，第 59 步为 1.02（另有 1 个）\n",
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("command", list(FOLDERS))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_answer_is_in_one_language(tmp_path, capsys, command, language):
    FOLDERS[command](tmp_path)
    assert main([command, str(tmp_path), "--lang", language]) == 1
    said = capsys.readouterr()
    for parts in PARTS[command]:
        assert parts[language == "zh"] in said.out
    if language == "zh":
        assert english(said.out + said.err.replace("probe: ", "")) == []
        assert ("接近溢出" in said.err) == (command == "nan")


@pytest.mark.parametrize(
    ("command", "english_text", "chinese_text"),
    [
        (
            "nan",
            "no call makes NaN/Inf in step 0: 2 ranks, 2 forward and 0 backward entries\n",
            "第 0 步：2 个 rank，2 个前向条目和 0 个反向条目 中没有调用产生 NaN/Inf\n",
        ),
        (
            "ranks",
            "the ranks agree: steps 0, ranks 0-1, 1 parameters compared, 0 collectives\n",
            "各 rank 一致：第 0 步，rank 0-1，比较了 1 个参数，0 个集合通信\n",
        ),
    ],
)
def test_nothing_found_is_said_in_the_language_of_the_locale(
    tmp_path, capsys, monkeypatch, command, english_text, chinese_text
):
    for rank in (0, 1):
        call = {**forward([], [tensor(norm=1.0)]), "parameters": {"weight": tensor(norm=2.0)}}
        write(tmp_path / "step0" / f"rank{rank}", {"Cell.f.Dense.forward.0": call})
    for locale, text in (("C", english_text), ("zh_CN.UTF-8", chinese_text)):
        monkeypatch.setenv("LC_ALL", locale)
        assert main([command, str(tmp_path)]) == 0
        assert capsys.readouterr().out == text


def test_a_monitor_without_rows_says_so(tmp_path, capsys):
    file = SeriesFile(str(tmp_path / "monitor" / "rank"))
    file.write(0, {"loss": 1.0})
    file.close()
    with open(file.path, "r+b") as cut:
        cut.truncate(len(cut.readline()))
    for language, said in (("en", "0 steps, the newest is none"), ("zh", "还没有步")):
        assert main(["watch", str(tmp_path), "--lang", language]) == 2
        assert capsys.readouterr().out.splitlines()[0] == said


def test_json_has_key_facts_and_the_english_sentence(tmp_path, capsys):
    apart(tmp_path)
    assert main(["ranks", str(tmp_path), "--json", "--lang", "zh"]) == 1
    found = {item["key"]: item for item in json.loads(capsys.readouterr().out)}
    assert found["ranks.outlier"]["facts"]["ranks"] == {"key": "ranks.one", "facts": {"ranks": "7"}}
    assert found["ranks.outlier"]["sentence"].startswith(
        "Functional.far.0.forward: the norm on rank 7"
    )
    assert found["ranks.parameter"]["facts"]["more"]["facts"] == {"count": 1}


def test_one_rank_and_several_have_words_of_their_own():
    assert [str(ranks_said(ranks)) for ranks in ([3], [0, 1, 2, 5])] == ["rank 3", "ranks 0-2, 5"]
    assert ranks_said([0, 1]).text("zh") == "rank 0-1"


@pytest.mark.parametrize(("language", "said"), [("en", "1 calls"), ("zh", "1 个调用")])
def test_the_lines_of_a_report_are_in_the_language(tmp_path, capsys, language, said):
    write(
        tmp_path / "dump" / "step0" / "rank",
        {"Functional.relu.0.forward": forward([tensor()], [tensor()])},
    )
    main(
        [
            "report",
            str(tmp_path / "dump"),
            "-o",
            str(tmp_path / "page.html"),
            "--jobs",
            "1",
            "--lang",
            language,
        ]
    )
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--lang", "zh", "nan", "none"], ["nan", "none", "--lang", "zh"], ["nan", "none"]]
)
def test_an_error_is_in_the_language_of_the_option_or_the_locale(capsys, monkeypatch, words):
    monkeypatch.setenv("LC_ALL", "C.UTF-8" if "zh" in words else "zh_CN.UTF-8")
    assert main(words) == 2
    assert capsys.readouterr().err == "probe: none：没有该目录\n"
