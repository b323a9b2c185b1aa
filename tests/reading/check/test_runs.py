# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - the answers have Chinese punctuation
"""probe check of two runs: each planted difference is named first, in one line."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import probe
from probe.__main__ import main
from probe.reading.check.difference import Importance
from tests.reading.check.snapshots import Experiment, arrays, batches, pair
from tests.support.chinese import english_left


def weight(it, name, change):
    array, dtype, trainable = it.parameters[name]
    array = array.copy()
    it.parameters[name] = [change(array), dtype, trainable]


def plus(array):
    array.flat[0] += 1
    return array


def exchange(it, one, other):
    it.parameters[one], it.parameters[other] = it.parameters[other], it.parameters[one]


def reseed(it):
    it.run["seed"] = 2
    for name, array in arrays(1).items():
        it.parameters[name][0] = array


def other_checkpoint(it):
    for name, array in arrays(1).items():
        it.parameters[name][0] = array


def upper_layers(it):
    for block in (2, 3):
        weight(it, f"blocks.{block}.fc.weight", plus)
        weight(it, f"blocks.{block}.norm.gamma", plus)


def half(it):
    for item in it.parameters.values():
        item[0], item[1] = item[0].astype(np.float16), "Float16"


def turned(it):
    weight(it, "head.weight", lambda array: np.ascontiguousarray(array.T))


def renamed(it):
    it.parameters = {f"net.{name}": item for name, item in it.parameters.items()}
    it.numbers["parameters"] = list(it.parameters)


def drop(it, name):
    del it.parameters[name]


def add_cell(it):
    it.run["cells"].append(["head2", "Dense"])


def other_epsilon(it):
    for path in ("blocks.0.norm", "blocks.2.norm"):
        it.run["cell_values"][path] = {"epsilon": 1e-7}


def set_in(key, value, inner=None):
    def change(it):
        if inner is None:
            it.run[key] = value
        else:
            it.run[key][inner] = value

    return change


def batch(it, step, change):
    it.steps[step] = change(it.steps[step].copy())


def shuffled(it):
    random.Random(1).shuffle(it.steps)


def freeze(it):
    it.parameters["head.weight"][2] = False


def other_class(it):
    it.run["cells"][3] = ["blocks.0.fc", "MyDense"]


def more_rows(it):
    weight(it, "head.weight", lambda array: np.concatenate([array, array[:1]]))


def number(it, name, value):
    it.numbers[name] = value


#: name, change of B, importance, words of the first line
PLANTED = [
    (
        "one element of one layer",
        lambda it: weight(it, "blocks.1.fc.weight", plus),
        1,
        "1 of 13 differ, first blocks.1.fc.weight in Cell blocks.1.fc (Dense)",
    ),
    ("seed", reseed, 1, "all 5 differ: another seed (1 / 2)"),
    ("checkpoint", other_checkpoint, 1, "all 5 differ: another seed or another checkpoint"),
    ("some layers", upper_layers, 1, "4 of 13 differ, only blocks.2 to blocks.3"),
    (
        "exchanged layers",
        lambda it: exchange(it, "blocks.0.fc.weight", "blocks.3.fc.weight"),
        1,
        "exchanged: in B blocks.0.fc.weight has the values of blocks.3.fc.weight",
    ),
    ("dtype", half, 1, "13 of 13 have another dtype, first blocks.0.norm.gamma: Float32 / Float16"),
    ("transposed", turned, 1, "transposed in B, the elements are the same: head.weight"),
    (
        "rows in another order",
        lambda it: weight(it, "head.weight", lambda array: array[::-1].copy()),
        1,
        "the same elements in another order: head.weight",
    ),
    (
        "one batch",
        lambda it: batch(it, 3, lambda array: array * 2),
        2,
        "step 3, input 0 (Int32 4x8) differs; only step 3 differs",
    ),
    (
        "one element of one batch",
        lambda it: batch(it, 5, plus),
        2,
        "step 5, input 0 (Int32 4x8) differs",
    ),
    (
        "all batches",
        lambda it: setattr(it, "steps", batches(6, 9)),
        2,
        "step 0, input 0 (Int32 4x8) differs; 6 of 6 steps differ",
    ),
    (
        "a batch that comes again",
        lambda it: setattr(it, "steps", [*it.steps[:4], it.steps[1], it.steps[0]]),
        2,
        "2 of 6 steps differ; step 4 of B has the batch of step 1",
    ),
    (
        "batches in another order",
        shuffled,
        2,
        "the same batches in another order: step 0 of A is step",
    ),
    (
        "batches one step later",
        lambda it: setattr(it, "steps", [batches(1, 8)[0], *it.steps[:-1]]),
        2,
        "the same batches in another order: step n of A is step n+1 of B",
    ),
    (
        "batch size",
        lambda it: batch(it, 0, lambda array: array[:2]),
        2,
        "step 0, input 0 has another shape: 4x8 / 2x8",
    ),
    (
        "order inside of a batch",
        lambda it: batch(it, 1, lambda array: array[::-1].copy()),
        2,
        "the same elements in another order; only step 1",
    ),
    (
        "a value of two Cells",
        other_epsilon,
        3,
        "epsilon of blocks.0.norm, blocks.2.norm (LayerNorm): 1e-05 / 1e-07",
    ),
    ("Cell added", add_cell, 3, "Cells: only in B: head2 (Dense)"),
    ("Cell replaced", other_class, 3, "Cells: replaced: blocks.0.fc Dense / MyDense"),
    ("shape", more_rows, 3, "head.weight 4x8 / 5x8"),
    ("frozen parameter", freeze, 3, "trainable: only in A: head.weight"),
    (
        "missing parameter",
        lambda it: drop(it, "blocks.3.fc.bias"),
        3,
        "parameters: only in A: blocks.3.fc.bias",
    ),
    ("prefix", renamed, 3, '13 names have the prefix "net." in B'),
    (
        "learning rate",
        lambda it: number(it, "learning_rate", 0.02),
        4,
        "optimizer Adam: learning_rate 0.01 / 0.02",
    ),
    (
        "optimizer",
        lambda it: setattr(it, "optimizer", "Cell.optimizer.AdamWeightDecay"),
        4,
        "optimizer: Adam / AdamWeightDecay",
    ),
    (
        "parameters of the optimizer",
        lambda it: number(it, "parameters", list(arrays())[:-1]),
        4,
        "optimizer Adam: updates only in A: head.weight",
    ),
    ("note", lambda it: it.notes["config"].update(epochs=4), 4, "note config.epochs: 3 / 4"),
    ("determinism", set_in("context", "ON", "deterministic"), 5, "deterministic: OFF / ON"),
    ("seed without an effect", set_in("seed", 3), 5, "seed: 1 / 3"),
    ("MindSpore", set_in("versions", "2.9.0", "mindspore"), 6, "version mindspore: 2.10.0 / 2.9.0"),
    ("package", set_in("packages", "12.0.0", "pillow"), 6, "packages: pillow 13.0.0 / 12.0.0"),
    (
        "environment",
        set_in("environment", "4", "OMP_NUM_THREADS"),
        6,
        "environment OMP_NUM_THREADS: 2 / 4",
    ),
    ("commit", set_in("code", "b" * 40, "commit"), 6, "code commit: aaaa"),
    (
        "changed code",
        set_in("code", {"train.py": "01", "model.py": "0"}, "files"),
        6,
        "code: files differ: model.py",
    ),
    (
        "command",
        set_in("command", ["train.py", "--out", "golden", "--lr", "0.1"]),
        6,
        "command: --lr 0.01 / 0.1",
    ),
    ("mode", set_in("context", 0, "mode"), 6, "mode: 1 / 0"),
    ("device", set_in("device", "Ascend"), 6, "device: CPU / Ascend"),
]


@pytest.mark.parametrize(
    ("change", "importance", "words"), [it[1:] for it in PLANTED], ids=[it[0] for it in PLANTED]
)
def test_a_planted_difference_is_named_first(tmp_path, change, importance, words):
    result = probe.check(*pair(tmp_path, change))
    assert words in str(result.differences[0])
    assert result.differences[0].importance == importance
    assert not result.ok
    assert len(result.lines()) == 1 or words in {"all 5 differ: another seed (1 / 2)"}, (
        result.lines()
    )


def test_there_are_thirty_planted_differences_over_all_ranks_of_importance():
    assert len(PLANTED) >= 30
    assert {it[2] for it in PLANTED} == set(map(int, Importance))


def combinations():
    """Return three at once, of three kinds each, chosen from all but those that change most of the model."""
    whole = {"seed", "checkpoint", "dtype", "prefix"}
    single = [it for it in PLANTED if it[0] not in whole]
    rng = random.Random(3)
    for _ in range(20):
        kinds = rng.sample(range(1, 7), 3)
        yield [rng.choice([it for it in single if it[2] == kind]) for kind in kinds]


@pytest.mark.parametrize(
    "chosen", list(combinations()), ids=lambda chosen: ", ".join(it[0] for it in chosen)
)
def test_several_planted_differences_come_in_the_order_of_importance(tmp_path, chosen):
    def change(it):
        for _, one, _, _ in chosen:
            one(it)

    for count in (2, 3):
        some = chosen[:count]
        result = probe.check(
            *pair(tmp_path / str(count), lambda it, some=some: [one(it) for _, one, _, _ in some])
        )
        kinds = [int(item.importance) for item in result.differences]
        assert kinds == sorted(kinds)
        assert set(kinds) == {importance for _, _, importance, _ in some}
        for _, _, _, words in some:
            assert any(words in line for line in result.lines()), (words, result.lines())


def elsewhere(it):
    it.run.update(host="two", process=99, folder="/other", dump_path="/other/mine", rank=None)
    it.run["command"] = ["/other/train.py", "--out", "mine", "--lr", "0.01"]
    it.run["environment"]["MS_SCHED_PORT"] = "9999"
    it.notes["config"]["out"] = "mine"


def test_the_same_run_elsewhere_agrees(tmp_path, capsys):
    paths = pair(tmp_path, elsewhere)
    result = probe.check(*paths)
    assert result.ok, result
    assert main(["check", *map(str, paths)]) == 0
    assert (
        "no difference in what is known: 13 parameters, the inputs of the model in 6 steps, and labels"
        in capsys.readouterr().out
    )


def test_an_argument_that_is_the_name_of_the_folder_is_no_difference(tmp_path):
    def of(name, argument):
        experiment = Experiment(tmp_path / name)
        experiment.run.update(
            dump_path=f"/data/runs/{name}", command=["train.py", argument, "--lr", "0.01"]
        )
        return experiment.write()

    assert probe.check(of("golden", "golden"), of("mine", "mine")).ok
    assert any(
        "command" in line for line in probe.check(of("golden", "golden"), of("mine", "sgd")).lines()
    )


def test_the_structure_comes_first_where_it_explains_the_values(tmp_path):
    def change(it):
        other_checkpoint(it)
        add_cell(it)

    lines = probe.check(*pair(tmp_path, change)).lines()
    assert lines[0] == "Cells: only in B: head2 (Dense)"
    assert lines[1].startswith("parameters: all 5 differ")


def test_the_exit_status_and_the_json_tell_the_same(tmp_path, capsys):
    paths = pair(tmp_path, PLANTED[0][1])
    assert main(["check", *map(str, paths), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    assert found["differences"][0]["kind"] == "parameters"
    assert (
        main(["check", str(paths[0])]) == 2
    )  # without a dump nothing can be known but the circumstances
    assert "13 parameters with 352 elements" in capsys.readouterr().out
    assert main(["check", str(paths[0]), str(tmp_path / "none")]) == 2
    assert main(["check", str(tmp_path)] * 3) == 2


def test_many_differences_have_at_most_25_lines(tmp_path):
    def change(it):
        it.notes.update({f"note{n}": n for n in range(50)})
        for _, one, _, _ in PLANTED:
            if one is not renamed:
                one(it)

    assert len(str(probe.check(*pair(tmp_path, change))).split("\n")) <= 25


@pytest.mark.parametrize("part", ["step0", "step0/rank", "step0/rank/run.json", "step3/rank"])
def test_any_folder_of_a_run_leads_to_its_snapshot(tmp_path, part):
    golden, mine = pair(tmp_path)
    (golden / "step3" / "rank").mkdir(parents=True)
    assert probe.check(golden / part, mine).ok


def test_a_run_may_lie_in_a_folder_whose_name_begins_like_that_of_a_rank(tmp_path, capsys):
    golden, other = Experiment(tmp_path / "golden").write(), Experiment(tmp_path / "rank_0_again")
    reseed(other)
    mine = other.write()
    assert main(["check", str(mine)]) == 2
    assert "13 parameters" in capsys.readouterr().out
    assert probe.check(golden, mine).lines()[0].startswith("parameters: all 5 differ")


def test_ranks_are_compared_with_each_other(tmp_path):
    for side in ("golden", "mine"):
        for rank in range(3):
            it = Experiment(tmp_path / side)
            it.run.update(rank=rank, world_size=3)
            it.steps = batches(4, rank)
            if side == "mine" and rank:
                number(it, "learning_rate", 0.5)
            it.write()
    result = probe.check(tmp_path / "golden", tmp_path / "mine")
    assert result.lines() == ["optimizer Adam: learning_rate 0.01 / 0.5 (ranks 1, 2)"]


def test_a_line_that_a_kill_has_cut_is_left_out_and_said(tmp_path):
    golden, mine = pair(tmp_path)
    lines = mine / "step0" / "rank" / "run.jsonl"
    text = lines.read_text()
    lines.write_text(
        text[: text.index('"optimizer"') - 3]
        + "\n"
        + text[text.index('{"step": 0, "optimizer"') :][:40]
    )
    result = probe.check(golden, mine)
    assert any("is cut or broken" in str(line) for line in result.remarks)
    assert [str(item.subject) for item in result.differences] == ["optimizer"]


def test_a_line_that_is_nested_deeply_is_left_out(tmp_path):
    golden, mine = pair(tmp_path)
    with (mine / "step0" / "rank" / "run.jsonl").open("a") as file:
        file.writelines(
            '{"note": ' + '{"a": ' * depth + "1" + "}" * depth + "}\n"
            for depth in (900, 980, 100_000)
        )
    assert "is cut or broken" in str(probe.check(golden, mine))


HOSTILE = [
    "",
    "[]",
    "{",
    '{"parameters": 3}',
    '{"a": ' * 5000,
    "\x00\xff",
    '{"parameters": {"a": 1}, "cells": 7}',
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_wrong_file_is_one_clear_line(tmp_path, capsys, content):
    golden, mine = pair(tmp_path)
    (mine / "step0" / "rank" / "run.json").write_text(content)
    status = main(["check", str(golden), str(mine)])
    said = capsys.readouterr()
    assert status == 2 and len(said.err.splitlines()) == 1 if said.err else status == 1


def test_odd_values_at_every_place_raise_nothing(tmp_path):
    odd = [None, 3, "x", [], {}, [[]], {"a": None}, True, 1e400, "\x1b[2J"]
    golden, mine = pair(tmp_path)
    file = mine / "step0" / "rank" / "run.json"
    content = json.loads(file.read_text())
    for key in content:
        for value in odd:
            if key == "parameters" and not isinstance(value, dict):
                continue
            file.write_text(json.dumps({**content, key: value}))
            assert "\x1b" not in str(probe.check(golden, mine))
            main(["check", str(mine)])


def test_a_failed_assertion_shows_the_differences(tmp_path, capsys):
    result = probe.check(*pair(tmp_path, reseed))
    assert not result.ok
    assert "all 5 differ" in capsys.readouterr().out


# -- languages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [it[1] for it in PLANTED], ids=[it[0] for it in PLANTED])
def test_a_planted_difference_is_told_in_chinese(tmp_path, capsys, change):
    golden, mine = map(str, pair(tmp_path, change))
    assert main(["check", golden, mine, "--lang", "zh"]) == 1
    said = capsys.readouterr().out
    assert len(said.splitlines()) > 2
    assert english_left(said, golden, mine) == []
    assert main(["check", mine, "--lang", "zh"]) == 2
    described = capsys.readouterr().out
    assert "个参数" in described
    assert english_left(described, mine) == []


def test_many_differences_at_once_are_told_in_chinese(tmp_path):
    def change(it):
        it.notes.update({f"note{n}": n for n in range(50)})
        it.run["environment"].update({f"OMP_{n}": str(n) for n in range(9)})
        it.run["first_step"], it.run["packages"] = (
            4,
            {"numpy": "1.26.4", **{f"package{n}": "1.0" for n in range(9)}},
        )
        for _, one, _, _ in PLANTED:
            if one is not renamed:
                one(it)

    golden, mine = pair(tmp_path, change)
    with (mine / "step0" / "rank" / "run.jsonl").open("a") as file:
        file.write("{")
    result = probe.check(golden, mine)
    said = result.text("zh")
    assert english_left(said, golden, mine) == []
    assert "说明：" in said
    assert "--json 列出全部" in said
    whole = "\n".join(result.lines("zh"))
    assert english_left(whole, golden, mine) == []
    assert "另外" in whole


def test_ranks_remarks_and_an_equal_run_are_told_in_chinese(tmp_path):
    for side in ("golden", "mine"):
        for rank in range(6):
            it = Experiment(tmp_path / side)
            it.run.update(rank=rank, world_size=6)
            if side == "mine" and rank:
                number(it, "learning_rate", 0.5)
                it.parameters = {}
            if side == "mine" or rank != 5:
                it.write()
    result = probe.check(tmp_path / "golden", tmp_path / "mine")
    assert "（rank 1，2，3 以及另外 1 个）" in result.text("zh")
    assert "rank：仅在 B 中：5" in result.lines("zh")
    assert english_left(result.text("zh"), tmp_path) == []
    equal = probe.check(tmp_path / "golden", tmp_path / "golden").text("zh")
    assert "在已知的内容中没有差异：65 个参数" in equal
    assert english_left(equal, tmp_path) == []


def test_json_has_key_and_facts_beside_the_english_sentence_in_every_language(tmp_path, capsys):
    paths = list(map(str, pair(tmp_path, PLANTED[0][1])))
    found = []
    for language in ("en", "zh"):
        main(["check", *paths, "--json", "--lang", language])
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    [item] = found[0]["differences"]
    assert item["key"] == "check.some_differ"
    assert (item["facts"]["count"], item["facts"]["all"]) == (1, 13)
    assert item["sentence"].startswith("1 of 13 differ, first blocks.1.fc.weight")


def test_the_finder_of_english_finds_it():
    assert english_left("张量 only in 仅 A，fc.weight rank 3 `probe show DIR`") == ["only in"]
    assert english_left("备注：my own text", "my own text") == []


def test_a_folder_that_is_called_ranks_has_no_snapshot_of_its_neighbour(tmp_path):
    Experiment(tmp_path / "other").write()
    (tmp_path / "ranks").mkdir()
    with pytest.raises(probe.UsageError):
        probe.check(tmp_path / "ranks", tmp_path / "other")


def test_a_parameter_of_a_group_counts_once(tmp_path):
    runs = (Experiment(tmp_path / "golden"), Experiment(tmp_path / "mine"))
    for run, names in zip(runs, (list(arrays()), list(arrays())[:-1])):
        number(run, "parameters", names)
        number(run, "groups", [{"lr": 0.01, "parameters": names}])
    golden, mine = (run.write() for run in runs)
    assert probe.check(golden, mine).lines() == ["optimizer Adam: updates only in A: head.weight"]


def test_a_file_with_another_name_and_the_same_content_is_no_difference(tmp_path):
    golden = Experiment(tmp_path / "golden")
    set_in("code", {"good.py": "01", "model.py": "02"}, "files")(golden)
    mine = Experiment(tmp_path / "mine")
    set_in("code", {"mine.py": "01", "model.py": "02"}, "files")(mine)
    assert probe.check(golden.write(), mine.write()).differences == []
