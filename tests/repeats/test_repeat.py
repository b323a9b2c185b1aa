# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The step once more: an alarm's step is made again, told apart, and nothing of the training changes."""

from __future__ import annotations

import json
import logging
import random
import sys
import threading

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops
from mindspore.ops.composite import base

import probe
from probe.findings.sentence import Sentence
from probe.repeats.reached import Reached, state_of
from tests.programs.monitor import repeats
from tests.support import processes
from tests.support.paths import ROOT, environment, program
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.medium

BAD = 22


class Loop:
    """A small training under the monitor; ``forward`` is differentiated."""

    def __init__(self, folder, forward=None, **monitor):
        ms.set_seed(1)
        self.random, self.bad, self.step = np.random.default_rng(0), 0, 0
        self.net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        self.optimizer = nn.SGD(self.net.trainable_params(), 0.001)
        loss = lambda x, y: ((self.net(x) - y) ** 2).mean()  # noqa: E731
        self.forward = (lambda x, y: forward(self, loss, x, y)) if forward else loss
        self.grad = ms.value_and_grad(
            lambda x, y: self.forward(x, y), None, self.optimizer.parameters
        )
        self.path, config = folder / "watched", folder / "config.json"
        top = {key: monitor.pop(key) for key in ("measure", "level") if key in monitor}
        monitor = {"on_alarm": "again", **monitor}
        config.write_text(
            json.dumps({"task": "monitor", "dump_path": str(self.path), **top, "monitor": monitor})
        )
        self.debugger = probe.PrecisionDebugger(config_path=str(config))

    def gradients(self, x, y):
        return self.grad(x, y)

    def run(self, steps=BAD + 1, bad=BAD):
        for self.step in range(steps):
            x = self.random.normal(size=(16, 3)).astype(np.float32) * (
                1000 if self.step == bad else 1
            )
            self.debugger.start(self.net)
            _, gradients = self.gradients(ms.Tensor(x), ms.Tensor(np.ones((16, 2), np.float32)))
            self.optimizer(gradients)
            self.debugger.stop()
            self.debugger.step()
        return self

    def answers(self):
        lines = (self.path / "monitor/rank/alarms.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["rule"] == "again"]


@pytest.fixture
def loop(tmp_path, debug):
    return lambda *forward, **monitor: Loop(tmp_path, *forward, **monitor)


def flip(times, on_call=1):
    """Return a forward whose first calls in the bad step are wrong."""
    calls = []

    def forward(loop, loss, x, y):
        result = loss(x, y)
        if loop.step == BAD:
            calls.append(1)
            if len(calls) <= times:
                result = ops.abs(result * float(10 ** (6 + len(calls))))
        return result

    return forward


def test_a_bad_batch_repeats_and_its_step_is_on_disk(loop, caplog):
    ran = loop().run()
    (answer,) = ran.answers()
    assert answer["key"] == "again.repeats"
    assert answer["step"] == BAD
    assert "repeated" not in answer["sentence"]
    said = Sentence.from_dict({"key": answer["key"], "facts": answer["facts"]})
    assert f"probe nan {ran.path}" in said.text("en")
    assert "重复 2 次" in said.text("zh")
    assert f"step {BAD} once more: equal in 2 repeats" in caplog.text
    for root in (ran.path, ran.path / "repeat2"):
        dump = probe.open(str(root)).dump(BAD)
        assert "Cell.2.Dense.forward.0" in dump
        assert not list(dump.calls(like="optimizer"))
    assert probe.open(str(ran.path)).steps == [BAD]


def test_a_fault_that_came_once_is_transient_and_has_no_name_unless_the_step_was_kept(
    loop, tmp_path
):
    (answer,) = loop(flip(1)).run(bad=None).answers()
    assert answer["key"] == "again.transient_first"
    assert answer["facts"]["apart"]["facts"]["series"] == "loss"
    assert "keep_steps" in answer["sentence"]


def test_a_kept_step_names_the_call_and_its_line_also_behind_calls_of_the_same_name(loop):
    ran = loop(flip(1), keep_steps=1)
    ran.gradients = lambda x, y: ran.grad(ops.abs(x), y)  # the numbers of later calls are shifted
    (answer,) = ran.run(bad=None).answers()
    assert answer["key"] == "again.transient_first"
    apart = answer["facts"]["apart"]["facts"]
    assert apart["place"]["facts"]["file"] == "test_repeat.py"
    # the step itself has these calls, the repeats have not
    assert apart["name"].startswith(
        ("Tensor.__mul__", "Functional.reduce_mean", "Tensor.mean", "Functional.mean")
    )
    assert probe.open(str(ran.path)).steps == [BAD]
    own = ("Generator", "copy_", "Copy", "InplaceCopy", "copy")
    assert not [call for call in probe.open(str(ran.path)).dump(BAD) if call.api in own]
    for name in ("repeat1", "repeat2"):
        assert probe.open(str(ran.path / name)).steps == [BAD]


def test_a_race_is_not_repeatable_and_the_first_call_is_named(loop):
    (answer,) = loop(flip(3)).run(bad=None).answers()
    assert answer["key"] == "again.not_repeatable"
    assert answer["facts"]["apart"]["facts"]["name"].startswith("Tensor.__mul__")


def test_a_fault_in_the_first_repeat_alone_is_transient(loop):
    def forward(ran, loss, x, y, calls=[]):  # noqa: B006 -- it counts the calls
        calls += [1] if ran.step == BAD else []
        return loss(x, y) * (1e6 if len(calls) == 2 else 1.0)

    (answer,) = loop(forward).run().answers()
    assert answer["key"] == "again.transient_repeat"


def test_one_repeat_cannot_tell_a_race_from_a_fault_that_came_once(loop):
    ran = loop(flip(1), times=1).run(bad=None)
    assert [answer["key"] for answer in ran.answers()] == ["again.once"]
    assert not (ran.path / "repeat2").exists()


@pytest.mark.parametrize("measure", ["host", "device"])
def test_the_numbers_of_a_step_are_known_before_its_state_is_lost(loop, measure):
    (answer,) = loop(measure=measure).run().answers()
    assert (answer["key"], answer["step"]) == ("again.repeats", BAD)


@pytest.mark.parametrize(
    "name", thorough_but(["flip activation 3 40", "large batch"], list(repeats.CASES))
)
def test_faults_are_told_apart_and_the_training_goes_on_with_equal_bits(debug, tmp_path, name):
    found = repeats.run(name, "CPU", tmp_path)
    assert (found["told"], found["equal"], found["errors"]) == (found["wanted"], True, [])


def _iterator(numbers=iter(range(10**6))):  # noqa: B008 -- one for all calls
    return lambda ran, loss, x, y: loss(x, y) * float(next(numbers) * 0 + 1)


def _generator():
    drawn = (ms.Tensor(np.float32(1)) for _ in range(10**6))
    return lambda ran, loss, x, y: loss(x, y) * next(drawn)


def _dataset():
    data = ms.dataset.NumpySlicesDataset(np.ones((999, 1), np.float32), shuffle=False)
    drawn = []

    def forward(ran, loss, x, y):
        if not drawn:
            drawn.append([data.create_tuple_iterator()])
        return loss(x, y) * next(drawn[0][0])[0].mean()

    return forward


def _dropout(dropout=None):
    dropout = nn.Dropout(p=0.1).set_train()
    return lambda ran, loss, x, y: loss(dropout(x), y)


def _compiled():
    @ms.jit
    def twice(x):
        return x * 2

    return lambda ran, loss, x, y: loss(twice(x), y)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_iterator, "draws data"),
        (_generator, "draws data"),
        (_dataset, "draws data"),
        (_dropout, "Dropout draws random"),
        (_compiled, "runs a compiled function"),
    ],
)
def test_a_step_that_cannot_be_repeated_is_refused_once_with_the_reason(loop, caplog, make, said):
    ran = loop(make()).run()
    assert ran.answers() == []
    assert caplog.text.count("the step is not made again") == 1
    assert said in caplog.text
    assert not (ran.path / f"step{BAD}").exists()


def _in_thread(ran):
    def gradients(x, y):
        found = []
        thread = threading.Thread(target=lambda: found.append(ran.grad(x, y)))
        thread.start()
        thread.join()
        return found[0]

    return gradients


def _by_hand(ran):
    return lambda x, y: (
        None,
        tuple(ops.ones_like(own) * ran.forward(x, y) for own in ran.optimizer.parameters),
    )


@pytest.mark.parametrize(
    ("gradients", "said"),
    [
        (_in_thread, "ran in another thread"),
        (_by_hand, "no gradient function of MindSpore"),
        (None, "several ranks"),
    ],
)
def test_other_threads_several_ranks_and_unseen_gradients_are_refused(
    loop, caplog, monkeypatch, gradients, said
):
    ran = loop()
    if gradients is None:
        monkeypatch.setattr("probe.monitor.monitor_recording.world_size", lambda: 2)
    else:
        ran.gradients = gradients(ran)
    assert ran.run().answers() == []
    assert said in caplog.text


def test_an_error_in_a_repeat_ends_no_training(loop):
    norm = nn.LayerNorm((3,))  # MindSpore lacks its second gradient, which the next call would make

    def forward(ran, loss, x, y, calls=[]):  # noqa: B006 -- it counts the calls
        calls += [1] if ran.step == BAD else []
        result = loss(x, y) + norm(ran.net[0].weight).mean() * 0
        if ran.step == BAD and len(calls) == 2:
            raise ZeroDivisionError
        return result

    ran = loop(forward).run(BAD + 3)
    (answer,) = ran.answers()
    assert answer["key"] == "again.raised"
    log = ran.path / "monitor/rank/dump_error_info.log"
    assert "ZeroDivisionError" in log.read_text()
    log.unlink()  # the error of the training's own function is expected


def test_a_loss_scale_that_was_adjusted_after_the_gradients_is_put_back(loop):
    scaler = ms.amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=BAD + 1)
    ran = loop(lambda ran, loss, x, y: scaler.scale(loss(x, y)))
    scales, gradients = [], ran.gradients

    def unscaled(x, y):
        result = gradients(x, y)
        scaler.adjust(ms.Tensor(True))
        scales.append(float(scaler.scale_value.asnumpy()))
        return result

    ran.gradients = unscaled
    (answer,) = ran.run().answers()
    assert (
        answer["key"] == "again.repeats"
    )  # with the new scale the gradients would be twice as large
    assert (scales[-2], scales[-1], float(scaler.scale_value.asnumpy())) == (1024, 2048, 2048)


def test_max_alarms_limits_the_repeats_and_a_step_that_is_closed_is_not_repeated(loop):
    ran = loop(max_alarms=1).run(BAD + 1)
    ran.run(1, bad=0)
    assert len(ran.answers()) == 1


def test_mindspore_is_restored_between_steps_and_copies_are_told(loop):
    before = base._Grad.__call__, ops.operations.Dropout.__call__
    ran = loop().run(2)
    assert (base._Grad.__call__, ops.operations.Dropout.__call__) == before
    parameters = sum(parameter.nbytes for parameter in ran.net.get_parameters())
    assert ran.debugger.estimate() == parameters + 16 * 5 * 4  # and the batch


def test_a_primitive_with_attributes_of_its_own_ends_no_training(loop, caplog):
    odd = type("DropoutOfMine", (ops.ReLU,), {})()
    odd.attrs = None
    ran = loop(lambda ran, loss, x, y: loss(odd(x), y)).run()
    assert ran.step == BAD
    assert "could not be held" in caplog.text
    (ran.path / "monitor/rank/dump_error_info.log").unlink()  # the error is expected


def test_without_it_nothing_is_held(loop):
    ran = loop(on_alarm="log")
    inside = []
    ran.forward = lambda x, y, forward=ran.forward: (
        inside.append(base._Grad.__call__) or forward(x, y)
    )
    ran.run(1)
    assert inside == [base._Grad.__call__]
    with pytest.raises(probe.UsageError):
        ran.debugger.estimate()


def test_answers_reach_the_function_of_the_user(loop):
    ran, given = loop(), []
    ran.debugger.on_alarm(given.append)
    ran.run()
    assert [alarm.rule for alarm in given].count("again") == 1


def test_times_is_one_or_two(loop):
    with pytest.raises(probe.SettingsError, match=r"times: 3 is not allowed\. Allowed: 1, 2"):
        loop(times=3)


def test_a_function_leads_to_tensors_generators_and_iterators_by_closures_globals_and_attributes():
    class Holder:
        def __init__(self):
            self.tensor, self.random, self.inner = ms.Tensor(1.0), np.random.default_rng(1), None

        def method(self, x):
            return x * self.tensor

    holder, own, numbers = Holder(), random.Random(1), iter([1, 2])
    cell = nn.Dense(2, 2)
    function = lambda x: holder.method(cell(x)) * own.random() + len([numbers])  # noqa: E731
    hidden = frozenset(vars(nn.Cell()))
    reached = Reached(ms.Tensor, nn.Cell, (nn.Optimizer,), hidden, function)
    assert {id(tensor) for tensor in reached.tensors} == set(
        map(id, [holder.tensor, cell.weight, cell.bias])
    )
    assert set(map(id, reached.generators)) == {id(holder.random), id(own)}
    before = reached.positions()
    assert reached.positions() == before
    next(numbers)
    assert reached.positions() != before
    for generator in (holder.random, own, np.random.RandomState(3)):
        put = state_of(generator)
        first = generator.random()
        put()
        assert generator.random() == first


RUN = """
import mindspore as ms, numpy as np
from mindspore import nn
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
data = np.random.default_rng(0)
net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
optimizer = nn.SGD(net.trainable_params(), 0.001)
grad = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)
for step in range(24):
    loss, gradients = grad(ms.Tensor(data.normal(size=(16, 3)).astype(np.float32) * (1000 if step == 22 else 1)))
    optimizer(gradients)
print(loss.asnumpy().tobytes().hex())
"""


@pytest.mark.slow
def test_probe_run_repeats_a_step_of_a_program_that_stays_as_it_is(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(RUN)
    options = [
        "--task",
        "monitor",
        "--on-alarm",
        "again",
        "--times",
        "2",
        "--dump-path",
        str(tmp_path / "d"),
    ]
    printed = []
    for words in ([str(script)], ["-m", "probe", "run", *options, str(script)]):
        done = processes.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(),
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert "step 22 once more: equal in 2 repeats" in done.stderr


@pytest.mark.slow
def test_a_kill_in_a_repeat_leaves_the_alarm_the_series_and_a_dump_that_can_be_read():
    # in a process of its own: one that has trained has threads, which a forked child lacks
    command = program("monitor.kills", "--in-repeat", "--kills", 4)
    done = processes.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 4
    assert all(one["alarm"] and one["rows"] and one["readable"] for one in found), found
    assert not all(one["answered"] for one in found), found
    assert any(sum(one["entries"]) for one in found), (
        found
    )  # a kill may come before the first entry


def test_the_log_has_one_line_for_an_answer(loop, caplog):
    with caplog.at_level(logging.WARNING, logger="probe"):
        loop().run()
    assert sum("once more" in record.message for record in caplog.records) == 1
