# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe find DIR [GOLDEN]``: the heaviest finding of all readers, how strong it is, and the command to type next."""

from __future__ import annotations

import json

import pytest

from probe.__main__ import main
from probe.search.on_disk import look
from tests.reading.builders import calls, forward, tensor, write
from tests.reading.report.rows import healthy, spike, write_rows

NAN = {"Max": float("nan"), "Min": float("nan"), "Mean": float("nan")}
LINES = ("linear x w -> h", "gate h -> y", "mix x -> t", "linear y v -> z")


def find(capsys, *words):
    """Return the exit status and the answer of the command."""
    status = main(["find", *map(str, words), "--json"])
    return status, json.loads(capsys.readouterr().out)


#: a call that draws random numbers, and the same with other numbers
DRAWING = (*LINES, "dropout z -> dropped")
DRAWN = (*LINES, "dropout z -> other")


def write_seed(run, seed):
    """Write the seed of MindSpore into a run of two steps."""
    (run / "step0" / "rank" / "run.json").write_text(json.dumps({"seed": seed, "parameters": {}}))


def two(folder, change, md5=True, more=(), golden=LINES):
    """Write two runs of two steps; the second is changed in both."""
    for name, lines in (("golden", golden), ("mine", change)):
        for step in (0, 1):
            rank = folder / name / f"step{step}" / "rank"
            write(rank, calls(*lines, *(more if name == "mine" else ()), md5=md5))
    return folder / "mine", folder / "golden"


def test_a_call_that_makes_nan_is_the_cause_and_its_inputs_are_shown_next(tmp_path, capsys):
    data = {"Functional.log.0.forward": forward([tensor(Min=-1.0)], [tensor(**NAN)])}
    folder = write(tmp_path / "run" / "step3" / "rank", data).parent.parent
    status, answer = find(capsys, folder)
    assert (status, answer["answer"]) == (1, "cause")
    cause = answer["cause"]
    assert (cause["reader"], cause["strength"], cause["step"]) == ("nan", "rule", 3)
    assert cause["name"] == "Functional.log.0.forward"
    shown = answer["next"]["command"].split()
    assert shown[:3] == ["probe", "show", str(folder)]
    assert main(shown[1:]) == 0
    assert "Functional.log.0.forward" in capsys.readouterr().out


def test_rows_of_the_monitor_tell_a_symptom_and_the_steps_to_record(tmp_path, capsys):
    folder = write_rows(tmp_path / "watch", spike, ranks=1)
    status, answer = find(capsys, folder)
    assert (status, answer["answer"], answer["cause"]) == (1, "symptom", None)
    assert "--step 44-45" in answer["next"]["command"]
    main(["find", str(folder), "--lang", "en"])
    said = capsys.readouterr().out
    assert "symptom: step 45: loss" in said
    assert "The cause cannot be known from this" in said
    assert "next: record this step" in said


def test_a_run_of_several_ranks_is_recorded_again_under_msrun(tmp_path, capsys):
    _, answer = find(capsys, write_rows(tmp_path / "watch", spike, ranks=2))
    command = answer["next"]["command"]
    assert command.startswith(
        "msrun --worker_num=2 --local_worker_num=2 --join=True python -m probe"
    )
    assert "--step 44-45" in command


@pytest.mark.parametrize(("steps", "lacks"), [(30, 0), (12, 1)])
def test_rows_that_one_of_two_runs_lacks_are_known(tmp_path, steps, lacks):
    golden = write_rows(tmp_path / "golden", healthy, ranks=1, steps=30)
    mine = write_rows(tmp_path / "mine", healthy, ranks=1, steps=steps)
    assert len(look(str(mine), str(golden)).lacks) == lacks


def test_a_training_that_goes_well_has_no_cause(tmp_path, capsys):
    status, answer = find(capsys, write_rows(tmp_path / "watch", healthy, ranks=1))
    assert (status, answer["answer"], answer["evidence"]) == (0, "nothing", [])
    assert answer["next"]["command"].startswith("probe run --level mix --step 0-2")


def test_too_few_rows_cannot_be_known(tmp_path, capsys):
    status, answer = find(capsys, write_rows(tmp_path / "watch", healthy, steps=2, ranks=1))
    assert (status, answer["answer"]) == (2, "unknown")


def test_equal_bits_before_a_difference_prove_it(tmp_path, capsys):
    change = (LINES[0], "gate h -> other", LINES[2], "linear other v -> far")
    status, answer = find(capsys, *two(tmp_path, change))
    assert (status, answer["cause"]["strength"]) == (1, "bits")
    assert answer["cause"]["name"] == "Functional.gate.0.forward"
    assert answer["evidence"][0]["strength"] == "bits"


def test_nan_stands_before_weights_that_differ_after_steps_without_a_record(tmp_path, capsys):
    for name, scale in (("golden", 1.0), ("mine", 1.5)):
        for step in (2, 35):
            weight = tensor(norm=scale if step == 35 else 1.0)
            fc = {**forward([tensor()], [tensor()]), "parameters": {"weight": weight}}
            last = NAN if (name, step) == ("mine", 35) else {}
            log = forward([tensor(Min=-1.0)], [tensor(**last)])
            data = {"Cell.fc.Dense.forward.0": fc, "Functional.log.0.forward": log}
            write(tmp_path / name / f"step{step}" / "rank", data)
    status, answer = find(capsys, tmp_path / "mine", tmp_path / "golden")
    assert (status, answer["cause"]["reader"]) == (1, "nan")
    assert (answer["cause"]["name"], answer["excluded"]) == ("Functional.log.0.forward", [])


def test_numbers_without_bits_prove_nothing(tmp_path, capsys):
    change = (LINES[0], "gate h -> other", LINES[2], "linear other v -> far")
    status, answer = find(capsys, *two(tmp_path, change, md5=False))
    assert (status, answer["cause"]["strength"]) == (1, "rule")


def test_two_differences_that_are_independent_prove_neither(tmp_path, capsys):
    change = (LINES[0], "gate h -> other", "mix x -> another", "linear other v -> far")
    status, answer = find(capsys, *two(tmp_path, change))
    assert (status, answer["cause"]["strength"]) == (1, "rule")
    assert answer["others"] >= 1


@pytest.mark.parametrize(
    ("seeds", "key"), [((3, 3), "find.do_repeat_random"), ((), "find.do_seed")]
)
def test_a_random_call_whose_inputs_and_seeds_agree_is_no_cause(tmp_path, capsys, seeds, key):
    mine, golden = two(tmp_path, DRAWN, golden=DRAWING)
    for run, seed in zip((mine, golden), seeds):
        write_seed(run, seed)
    status, answer = find(capsys, mine, golden)
    assert (status, answer["answer"], answer["cause"]) == (2, "unknown", None)
    assert answer["sentence"].startswith("Functional.dropout.0.forward draws random numbers")
    assert answer["next"]["key"] == key


def test_a_random_call_of_two_seeds_is_a_cause(tmp_path, capsys):
    mine, golden = two(tmp_path, DRAWN, golden=DRAWING)
    write_seed(mine, 3)
    write_seed(golden, 4)
    status, answer = find(capsys, mine, golden)
    assert (status, answer["cause"]["kind"]) == (1, "random")
    assert answer["next"]["key"] == "find.do_same_seed"


def test_two_runs_that_agree_have_no_cause(tmp_path, capsys):
    status, answer = find(capsys, *two(tmp_path, LINES))
    assert answer["cause"] is None
    assert status in (0, 2)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_line_of_an_answer_is_one_line(tmp_path, capsys, language):
    data = {"Functional.log.0.forward": forward([tensor(Min=-1.0)], [tensor(**NAN)])}
    folder = write(tmp_path / "run" / "step3" / "rank", data).parent.parent
    assert main(["find", str(folder), "--lang", language]) == 1
    said = capsys.readouterr().out
    assert "\\x0a" not in said
    assert f"    probe show {folder} --step 3 --name Functional.log.0" in said.splitlines()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (0, "look at the initial weights"),
        (1, "look at what the program writes into this parameter between the optimizer and"),
    ],
)
def test_the_advice_about_a_weight_follows_the_step_in_which_it_differs(
    tmp_path, capsys, step, words
):
    for name, scale in (("golden", 1.0), ("mine", 1.5)):
        for number in (0, 1):
            norms = dict.fromkeys(("weight", "bias", "gamma"), 1.0 + number / 10)
            norms["weight"] *= scale if number >= step else 1.0
            held = {key: tensor(norm=norm) for key, norm in norms.items()}
            data = {
                "Cell.fc.Dense.forward.0": {**forward([tensor()], [tensor()]), "parameters": held}
            }
            write(tmp_path / name / f"step{number}" / "rank", data)
    _, answer = find(capsys, tmp_path / "mine", tmp_path / "golden")
    assert answer["cause"]["kind"] == "parameter"
    assert answer["cause"]["step"] == step
    assert answer["next"]["sentence"].startswith(words)
    for run in ("mine", "golden"):
        write_seed(tmp_path / run, 3)
    _, answer = find(capsys, tmp_path / "mine", tmp_path / "golden")
    assert ", the seed" not in answer["next"]["sentence"]  # both have set the same one


def test_the_source_of_a_rule_is_for_probe_trend(tmp_path, capsys):
    for step in range(6):
        data = {"Functional.mix.0.forward": forward([tensor()], [tensor()])}
        if step < 5:
            weight = tensor(norm=2.0 + step / 10)
            data["Cell.fc.Dense.parameters_grad.0"] = {"weight": [weight]}
        write(tmp_path / "run" / f"step{step}" / "rank", data)
    _, answer = find(capsys, tmp_path / "run")
    assert "missing: not recorded in step 5, but before" in answer["sentence"]
    assert "threshold" not in answer["sentence"]
    main(["trend", str(tmp_path / "run"), "--lang", "en"])
    assert "(threshold 1; OLMo issue 266)" in capsys.readouterr().out
