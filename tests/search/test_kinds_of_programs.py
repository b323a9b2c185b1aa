# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe find`` of programs that go on from a checkpoint, of Model.train, of several ranks, and of own backwards."""

from __future__ import annotations

import pytest

from probe.search.resumed_start import resumed_start
from tests.reading.report.rows import healthy, write_rows
from tests.search.programs import (
    FITTED,
    HEALTHY,
    LATE,
    NAN,
    OWN_BACKWARD_RIGHT,
    OWN_BACKWARD_WRONG,
    RANKS,
    training,
)
from tests.search.running import find, outcomes
from tests.support.launched import start

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.proof]


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    """Return the lines of a search whose runs go on from a checkpoint after the first."""
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "mine.py").write_text(LATE)
    assert start(folder, "mine.py").returncode == 0
    (folder / "out.txt").unlink()
    return find(folder, "--resume", "mine.py 4", "mine.py")[1]


def test_the_runs_after_the_first_go_on_from_the_checkpoint(resumed):
    watched = resumed[1]
    assert watched["experiment"] == "watch_resumed"
    assert watched["learned"]["facts"]["start"]["facts"]["step"] == 4
    answer = resumed[-1]
    assert (answer["cause"]["step"], answer["cause"]["source"]) == (2, "x = ops.log(x)")
    assert "0 is step 4 of the first run" in answer["symptom"]["sentence"]


def test_a_checkpoint_behind_the_symptom_is_told(tmp_path):
    _, lines = find(tmp_path, "--resume", "other.py", "mine.py", mine=NAN, other=HEALTHY)
    assert outcomes(lines)["watch_resumed"] == "lost"
    assert "find.resumed" in [item["key"] for item in lines[-1]["unseen"]]
    assert lines[-1]["symptom"]["facts"]


def test_a_program_that_cannot_go_on_is_told_with_its_last_line(tmp_path):
    _, lines = find(tmp_path, "--resume", "mine.py 5", "mine.py", mine=LATE)
    assert outcomes(lines) == {"watch": "symptom", "watch_resumed": "no_steps"}
    assert "before_5.ckpt" in " ".join(item["sentence"] for item in lines[-1]["unseen"])


def test_the_first_step_from_a_checkpoint_on_is_found_by_its_losses(tmp_path):
    write_rows(tmp_path / "first", healthy, steps=12)
    write_rows(tmp_path / "resumed", lambda step, rank: healthy(step + 5, rank), steps=6)
    write_rows(tmp_path / "short", lambda step, rank: healthy(step + 5, rank), steps=1)
    write_rows(tmp_path / "other", lambda step, rank: healthy(step + 40, rank), steps=6)
    places = [
        resumed_start(str(tmp_path / "first"), str(tmp_path / name))
        for name in ("resumed", "short", "other")
    ]
    assert places == [5, None, None]


def test_a_loss_of_model_train_is_named_with_its_line(tmp_path):
    _, lines = find(tmp_path, "mine.py", mine=FITTED)
    assert lines[-1]["cause"]["source"] == "return (ops.log(x) - y).mean()"


@pytest.mark.parametrize(
    ("text", "outcome", "answer"),
    [(OWN_BACKWARD_WRONG, "wrong", "cause"), (OWN_BACKWARD_RIGHT, "right", "nothing")],
)
def test_a_backward_of_the_programs_own_is_compared_with_central_differences(
    tmp_path, text, outcome, answer
):
    _, lines = find(tmp_path, "mine.py", mine=text)
    assert (outcomes(lines)["gradients"], lines[-1]["answer"]) == (outcome, answer)
    if outcome == "wrong":
        cause = lines[-1]["cause"]
        assert (cause["source"], cause["reader"]) == ("return (dout * x * 2.0 * 0.5,)", "replay")
    else:
        assert "find.no_gradient" in [item["key"] for item in lines[-1]["excluded"]]


def test_rows_that_a_program_with_an_error_lacks_exclude_nothing(tmp_path):
    good = training("x = ops.reshape(x, (5, 8))")
    fails = training("x = ops.reshape(x, (8, 5))")
    _, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=fails, good=good)
    assert outcomes(lines)["watch_golden"] == "unknown"
    answer = lines[-1]
    assert answer["cause"]["source"] == "x = ops.reshape(x, (8, 5))"
    assert "find.no_difference" not in [item["key"] for item in answer["excluded"]]


def test_a_golden_program_with_fewer_steps_leaves_the_others_unknown(tmp_path):
    texts = {"good": HEALTHY, "mine": HEALTHY.replace("range(4)", "range(9)")}
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", **texts)
    assert (done.returncode, lines[-1]["answer"]) == (2, "unknown")
    assert "A lacks rows of step" in lines[-1]["sentence"]
    assert "find.no_difference" not in [item["key"] for item in lines[-1]["excluded"]]


def test_an_alarm_that_the_golden_program_has_too_is_told_so(tmp_path):
    raised = "if step == 24: optimizer.learning_rate.set_data(Tensor(0.9, ms.float32))"
    texts = {
        name: training(fault, raised).replace("range(4)", "range(26)")
        for name, fault in (("good", "x = x * 1.0"), ("mine", "x = x * 1.5"))
    }
    _, lines = find(tmp_path, "--golden", "good.py", "mine.py", **texts)
    assert lines[-1]["symptom"]["key"] == "find.golden_too"
    assert lines[-1]["cause"]["source"] == "x = x * 1.5"


def test_a_program_that_never_updates_is_one_step(tmp_path):
    text = HEALTHY.replace("    optimizer(gradients)", "    if step > 9: optimizer(gradients)")
    _, lines = find(tmp_path, "mine.py", mine=text)
    assert "find.one_step" in [item["key"] for item in lines[-1]["remarks"]]


def test_an_option_behind_the_program_and_its_own_error_are_told(tmp_path):
    text = f"import argparse\nargparse.ArgumentParser().parse_args()\n{HEALTHY}"
    done, lines = find(tmp_path, "mine.py", "--yes", mine=text)
    assert "--yes behind mine.py is the program's own; options of probe find" in done.stderr
    assert "error: unrecognized arguments: --yes" in lines[-1]["sentence"]


def test_a_difference_that_the_program_has_from_itself_is_no_cause(tmp_path):
    text = HEALTHY.replace("default_rng(step)", "default_rng()")
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=text, good=text)
    assert outcomes(lines)["repeat"] == "varies"
    answer = lines[-1]
    assert (done.returncode, answer["answer"], answer["cause"]) == (2, "unknown", None)
    assert "does not repeat its own bits" in answer["sentence"]
    assert answer["next"]["key"] == "find.do_repeat"


@pytest.mark.xdist_group("ranks")
def test_several_ranks_are_searched_together(tmp_path):
    _, lines = find(tmp_path, "--ranks", "2", "mine.py", "bad", mine=RANKS)
    answer = lines[-1]
    assert answer["cause"]["source"] == "x = ops.log(x)"
    assert "find.ranks_unseen" in [item["key"] for item in answer["unseen"]]
    assert answer["next"]["command"].startswith("probe show")


def test_a_program_of_several_ranks_that_is_started_alone_gets_the_command_with_ranks(tmp_path):
    _, lines = find(tmp_path, "mine.py", "bad", mine=RANKS)
    assert lines[-1]["answer"] == "unknown"
    assert lines[-1]["next"]["command"] == "probe find --minutes 30 --ranks 2 mine.py bad"


def test_a_start_on_each_rank_is_refused_at_once(tmp_path):
    done, lines = find(tmp_path, "mine.py", variables={"RANK_SIZE": "2", "RANK_ID": "1"}, mine=NAN)
    assert (done.returncode, lines) == (2, [])
    assert "probe find --ranks 2 train.py" in done.stderr
    assert not (tmp_path / "probe_find").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--ranks", "0", "mine.py"), "a whole number above 0"),
        (("--resume", "nowhere.py 3", "mine.py"), "nowhere.py: no such file"),
        (("--resume", "mine.py", "folder"), "--resume is for a program"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(tmp_path, words, told):
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "folder").mkdir()
    done = start(tmp_path, "-m", "probe", "find", *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "probe_find").exists()


UNSEEDED = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

ms.set_device("CPU")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(6, 8), nn.Dense(8, 3)

    def construct(self, x):
        x = ops.tanh(self.first(x))
        FAULT
        return self.last(x)


net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
for _ in range(4):
    loss, gradients = gradient(ms.Tensor(np.random.randn(16, 6).astype(np.float32)))
    optimizer(gradients)
    print(float(loss))
"""


@pytest.mark.parametrize(("fault", "status"), [("x = x * 1.5", 1), ("pass", 0)])
def test_programs_without_a_seed_are_searched_once_more_with_one(tmp_path, fault, status):
    texts = {"good": UNSEEDED.replace("FAULT", "pass"), "mine": UNSEEDED.replace("FAULT", fault)}
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", **texts)
    answer = lines[-1]
    assert done.returncode == status
    outcomes_of = [(line["experiment"], line["outcome"]) for line in lines[:-1]]
    assert outcomes_of.count(("repeat", "varies")) == 1
    assert "find.seed_unseen" in [item["key"] for item in answer["unseen"]]
    if status:
        assert outcomes_of[-1] == ("repeat", "repeats")
        assert answer["cause"]["source"] == fault
        assert answer["cause"]["strength"] == "bits"
    else:
        assert outcomes_of[-1] == ("record_golden", "no_cause")
        assert answer["cause"] is None
    assert find(tmp_path, "--golden", "good.py", "mine.py")[1][-1] == answer


def test_a_program_without_a_seed_is_searched_once_alone(tmp_path):
    done, lines = find(tmp_path, "mine.py", mine=UNSEEDED.replace("FAULT", "x = ops.log(x)"))
    names = [line["experiment"] for line in lines[:-1]]
    assert done.returncode == 1
    assert names.count("watch") == 1
    assert lines[-1]["cause"]["source"] == "x = ops.log(x)"
