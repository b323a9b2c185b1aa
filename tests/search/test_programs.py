# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""``probe find FILE``: experiments on trainings in processes of their own, from the symptom to the cause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.search.programs import CUT, FACTOR, HEALTHY, NAN, UNCUT, UNIT, training
from tests.search.running import find, outcomes
from tests.support.launched import start
from tests.support.paths import environment
from tests.support.schemas import all_keys, keys

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """Return a folder in which the cause of a NaN was found, and the lines of the answer."""
    folder = tmp_path_factory.mktemp("searched")
    (folder / "out.txt").write_text("mine")
    done, lines = find(folder, "mine.py", mine=NAN)
    assert done.returncode == 1, done.stderr
    return folder, lines


def test_a_call_that_makes_nan_is_named_with_its_line_and_the_kernel_is_excluded(searched):
    folder, lines = searched
    *_, answer = lines
    assert answer["answer"] == "cause"
    assert outcomes(lines)["watch"] == "symptom"
    assert outcomes(lines)["replay"] == "right"
    cause = answer["cause"]
    assert cause["source"] == "x = ops.log(x)"
    assert cause["file"] == str(folder / "mine.py")  # the user's file, not that of the copy
    assert cause["strength"] == "rule"  # no experiment has made the symptom go
    assert "find.no_kernel" in [item["key"] for item in answer["excluded"]]
    assert "NaN" in answer["symptom"]["sentence"]
    (recorded,) = [line["learned"] for line in lines[:-1] if line["experiment"] == "record"]
    assert recorded["sentence"].count("step") == 1, recorded["sentence"]
    seen = set().union(*(keys("find", line) for line in lines))
    assert all_keys("find") - seen == set()


def test_files_of_the_training_are_not_overwritten(searched):
    assert (searched[0] / "out.txt").read_text() == "mine"


def test_a_second_start_does_nothing_twice(searched):
    folder, first = searched
    second = find(folder, "mine.py")[1]
    assert not any(line["was_kept"] for line in first[:-1])
    assert all(line["was_kept"] for line in second[:-1])
    assert second[-1] == first[-1]


def test_a_change_of_the_program_begins_a_new_search(searched):
    folder, _ = searched
    done = start(folder, "-m", "probe", "find", "--plan", "mine.py")
    assert "(done)" in done.stdout
    (folder / "mine.py").write_text(NAN + "\n")
    done = start(folder, "-m", "probe", "find", "--plan", "mine.py")
    assert "(done)" not in done.stdout
    assert "1 watch: does it end" in done.stdout


def test_a_golden_program_proves_the_line_that_differs(tmp_path):
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=FACTOR, good=UNIT)
    answer = lines[-1]
    assert (done.returncode, outcomes(lines)["graft"]) == (1, "goes"), done.stderr
    assert answer["cause"]["source"] == "x = x * 1.5"
    assert [item["strength"] for item in answer["evidence"]][:2] == ["experiment", "bits"]


@pytest.mark.thorough
def test_another_learning_rate_of_some_parameters_is_proved_though_their_values_differ_too(
    tmp_path,
):
    groups = """[
    {"params": net.last.trainable_params(), "lr": RATE}, {"params": net.first.trainable_params()}
]"""
    text = HEALTHY.replace("net.trainable_params(), 0.1", f"{groups}, 0.1")
    good, mine = (text.replace("RATE", rate) for rate in ("0.05", "0.2"))
    _, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=good)
    cause = lines[-1]["cause"]
    assert (cause["kind"], cause["strength"]) == ("optimizer", "experiment")
    assert "learning_rate" in cause["sentence"]


@pytest.mark.thorough
def test_a_call_that_one_side_lacks_is_told_in_the_first_step_that_lacks_it(tmp_path):
    _, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=UNCUT, good=CUT)
    cause = lines[-1]["cause"]
    assert (cause["step"], cause["acts_in"]) == (0, 2)
    assert "only A has Functional.clamp.0.forward" in cause["sentence"]
    assert "the first value that differs by it is in step 2" in cause["sentence"]
    assert cause["strength"] in ("bits", "experiment")  # up to step 2 the program repeats its bits
    assert lines[-1]["next"]["key"] == "find.do_line"
    assert (cause["file"], cause["is_golden"]) == (str(tmp_path / "good.py"), True)


@pytest.mark.thorough
def test_a_call_that_does_not_heal_beside_others_of_its_line_excludes_itself_alone(tmp_path):
    line = "x = ops.tanh(x * FIRST) + x * SECOND"
    good = training(line.replace("FIRST", "1.0").replace("SECOND", "0.5"))
    mine = training(line.replace("FIRST", "1.5").replace("SECOND", "0.8"))
    _, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=good)
    answer = lines[-1]
    assert answer["cause"]["source"] == line.replace("FIRST", "1.5").replace("SECOND", "0.8")
    assert outcomes(lines)["graft"] == "stays"
    (excluded,) = [
        item
        for item in answer["excluded"]
        if "this call as the only difference" in item["sentence"]
    ]
    assert excluded["sentence"].endswith("its line has more calls: 3")


@pytest.mark.thorough
@pytest.mark.parametrize("is_given", [True, False], ids=["gradients", "no gradients"])
def test_parameters_that_no_optimizer_holds_are_the_cause(tmp_path, is_given):
    good = HEALTHY
    mine = HEALTHY.replace("nn.SGD(net.trainable_params()", "nn.SGD(net.last.trainable_params()")
    if is_given:  # the gradients of all parameters are computed, and those of the last ones enter
        mine = mine.replace("None, optimizer.parameters)", "None, net.trainable_params())")
        mine = mine.replace("optimizer(gradients)", "optimizer(gradients[2:])")
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=good)
    answer = lines[-1]
    assert (done.returncode, answer["answer"], answer["cause"]["kind"]) == (1, "cause", "unheld")
    assert "update first.weight, first.bias, and no optimizer of this one" in answer["sentence"]
    assert answer["cause"]["strength"] in ("rule", "bits")
    assert answer["next"]["key"] == "find.do_hold"
    assert not any("updates only in A" in item["sentence"] for item in answer["evidence"])


@pytest.mark.thorough
def test_parameters_that_are_frozen_here_alone_are_the_cause(tmp_path):
    freeze = (
        "for item in net.first.trainable_params():\n    item.requires_grad = False\noptimizer ="
    )
    mine = HEALTHY.replace("optimizer =", freeze)
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=HEALTHY)
    answer = lines[-1]
    assert (done.returncode, answer["answer"], answer["cause"]["kind"]) == (1, "cause", "frozen")
    assert "update first.weight, first.bias, and they are frozen in this one" in answer["sentence"]
    assert answer["next"]["key"] == "find.do_thaw"
    assert not any("only in A" in item["sentence"] for item in answer["evidence"])


#: the loss of step 31 is far above those before
JUMP = HEALTHY.replace("range(4):", "range(40):").replace(
    "    optimizer(gradients)",
    """    optimizer(gradients)
    if step == 30:
        net.first.weight.set_data(net.first.weight * 1e4)
    assert step < LAST, "too late\"""",
)


@pytest.mark.thorough
def test_an_alarm_that_the_golden_program_has_too_is_no_cause(tmp_path):
    program = JUMP.replace("LAST", "40")
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=program, good=program)
    answer = lines[-1]
    assert outcomes(lines)["watch"] == "symptom", lines
    assert (done.returncode, answer["answer"], answer["cause"]) == (0, "nothing", None)
    assert "the golden program shows the same" in answer["sentence"]
    assert answer["next"]["key"] == "find.do_other_golden"


@pytest.mark.thorough
def test_an_error_that_ends_both_programs_is_a_symptom(tmp_path):
    text = HEALTHY.replace("    optimizer(gradients)", "    assert step < 3, 'too late'")
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=text, good=text)
    assert (done.returncode, lines[-1]["answer"]) == (1, "symptom")
    assert "too late" in lines[-1]["sentence"]


@pytest.mark.thorough
def test_a_program_that_ends_with_an_error_behind_its_symptom_is_told(tmp_path):
    _, lines = find(tmp_path, "mine.py", mine=JUMP.replace("LAST", "35"))
    said = [item["sentence"] for item in lines[-1]["remarks"]]
    assert any("with an error (steps seen: 36): AssertionError: too late" in line for line in said)


@pytest.mark.thorough
def test_a_program_of_another_folder_and_data_above_are_found(tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "data.txt").write_text("1.0")
    text = training("x = x * float(open('../data.txt').read())")
    (tmp_path / "old" / "good.py").write_text(text)
    path = tmp_path / "new" / "mine.py"
    lines = find(path.parent, "--golden", "../old/good.py", path, mine=text)[1]
    assert outcomes(lines)["watch_golden"] == "agrees"
    assert outcomes(lines)["record_golden"] == "no_cause"


def test_a_healthy_training_has_no_cause_and_says_what_was_looked_at(tmp_path):
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=HEALTHY, good=HEALTHY)
    answer = lines[-1]
    assert answer["cause"] is None
    assert answer["answer"] in ("nothing", "unknown")
    assert done.returncode in (0, 2)
    assert "find.no_difference" in [item["key"] for item in answer["excluded"]]
    assert answer["looked"]["facts"]["experiments"] == [*outcomes(lines)]
    assert "probe compare" in answer["looked"]["sentence"]
    assert answer["next"]["key"] == "find.do_elsewhere"


def test_a_training_that_writes_to_an_absolute_path_is_told(tmp_path):
    last = f'open("{tmp_path}/ckpt.txt", "a").write("x")'
    _, lines = find(tmp_path, "mine.py", mine=training(last=last))
    (said,) = [item for item in lines[-1]["unseen"] if item["key"] == "find.touched"]
    assert "ckpt.txt" in said["sentence"]


def test_a_search_that_was_killed_goes_on_and_its_training_has_ended(tmp_path):
    (tmp_path / "runs").mkdir()
    mark = f'open("{tmp_path}/runs/" + str(__import__("os").getpid()), "w")'
    (tmp_path / "mine.py").write_text(training("x = ops.log(x)", mark))
    words = [sys.executable, "-m", "probe", "find", "--json", "mine.py"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    )
    first = json.loads(process.stdout.readline())  # the first experiment has ended
    while len(os.listdir(tmp_path / "runs")) < 2:  # the second one trains
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    rest = find(tmp_path, "mine.py")[1]
    assert [line["was_kept"] for line in rest[:2]] == [True, False]
    assert rest[0]["learned"] == first["learned"]
    assert rest[-1]["cause"]["source"] == "x = ops.log(x)"


def test_a_budget_that_is_used_up_is_told_and_the_next_command_goes_on(tmp_path):
    slow = training(last="__import__('time').sleep(60)")
    done, lines = find(tmp_path, "--minutes", "0.1", "mine.py", mine=slow)
    answer = lines[-1]
    assert (done.returncode, answer["answer"]) == (2, "unknown")
    assert answer["next"]["command"] == "probe find --minutes 0.2 mine.py"
    assert "find.left_out" in [item["key"] for item in answer["unseen"]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise ValueError('no data here')", "no data here"),
        ("print('no training')", "did not import MindSpore"),
    ],
)
def test_a_program_without_a_step_is_told_with_its_last_line(tmp_path, text, told):
    done, lines = find(tmp_path, "mine.py", mine=text)
    assert (done.returncode, lines[-1]["answer"]) == (2, "unknown")
    assert told in lines[-1]["sentence"]


def test_a_program_that_ends_with_an_error_has_this_symptom(tmp_path):
    last = "assert step < 2, 'the disk is gone'"
    done, lines = find(tmp_path, "mine.py", mine=training(last=last))
    assert (done.returncode, lines[-1]["answer"]) == (1, "symptom")
    assert "the disk is gone" in lines[-1]["sentence"]


def test_the_plan_has_all_experiments_and_does_none(tmp_path):
    (tmp_path / "mine.py").write_text("raise SystemExit(3)")
    done = start(tmp_path, "-m", "probe", "find", "--plan", "mine.py")
    assert done.returncode == 0
    assert "1 watch: does it end" in done.stdout
    assert os.listdir(tmp_path) == ["mine.py"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nowhere.py",), "nowhere.py: no such file"),
        (("--golden", "nowhere.py", "mine.py"), "nowhere.py: no such file"),
        (("--minutes", "0", "mine.py"), "Allowed: a number above 0"),
        (("--golden", ".", "mine.py"), "no dump.json in it or below it"),
        (("-m",), "a program is missing"),
        (("--mintes", "3", "mine.py"), "Did you mean --minutes?"),
    ],
)
def test_wrong_use_is_one_clear_error(tmp_path, words, told):
    (tmp_path / "mine.py").write_text("")
    done = start(tmp_path, "-m", "probe", "find", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_each_experiment_is_told_before_it_is_done(tmp_path):
    (tmp_path / "mine.py").write_text(HEALTHY)
    done = start(tmp_path, "-m", "probe", "find", "--lang", "zh", "mine.py")
    assert "1 watch：它能否结束，是否有症状？" in done.stdout
    assert "下一步：" in done.stdout
