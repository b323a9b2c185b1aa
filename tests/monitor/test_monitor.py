# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task "monitor": the rows hold what the training had, alarms start dumps, and nothing harms the training."""

from __future__ import annotations

import csv
import inspect
import json
import os
import shutil
import signal
import sys
import threading

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from probe import AlarmError, SettingsError, UsageError
from probe.series.series import open_series
from tests.support import processes
from tests.support.paths import ROOT, environment, program

pytestmark = pytest.mark.medium

BAD = 24


class Loop:
    """A small training under the monitor."""

    def __init__(self, tmp_path, optimizer=lambda parameters: nn.SGD(parameters, 0.001), **monitor):
        ms.set_seed(1)
        self.random = np.random.default_rng(0)
        self.net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        self.optimizer = optimizer(self.net.trainable_params())
        self.grad = ms.value_and_grad(
            lambda x, y: ((self.net(x) - y) ** 2).mean(), None, self.optimizer.parameters
        )
        tmp_path.mkdir(exist_ok=True)
        self.path = tmp_path / "watched"
        config = tmp_path / "config.json"
        top = {
            key: monitor.pop(key)
            for key in ("level", "step", "snapshot", "measure")
            if key in monitor
        }
        config.write_text(
            json.dumps({"task": "monitor", "dump_path": str(self.path), **top, "monitor": monitor})
        )
        self.config = config
        self.debugger = probe.PrecisionDebugger(config_path=str(config))
        self.losses, self.gradients, self.steps = [], [], 0

    def batch(self):
        x = self.random.normal(size=(16, 3)).astype(np.float32)
        return ms.Tensor(x), ms.Tensor(x[:, :2] * 2)

    def run(self, steps, bad=None, between=lambda gradients: gradients, debugger=True):
        for _ in range(steps):
            x, y = self.batch()
            if self.steps == bad:
                x = x * 20
            if debugger:
                self.debugger.start(self.net)
            loss, gradients = self.grad(x, y)
            gradients = between(gradients)
            self.optimizer(gradients)
            if debugger:
                self.debugger.stop()
                self.debugger.step()
            self.losses.append(float(loss.asnumpy()))
            self.gradients.append([gradient.asnumpy() for gradient in gradients])
            self.steps += 1
        return self

    def series(self):
        (series,) = open_series(str(self.path))
        return series

    def dumped(self):
        return sorted(int(name[4:]) for name in os.listdir(self.path) if name.startswith("step"))


@pytest.fixture
def loop(tmp_path, debug):
    return lambda **settings: Loop(tmp_path, **settings)


def norms(arrays):
    return [float(np.linalg.norm(array.astype(np.float64))) for array in arrays]


def test_a_row_has_the_loss_the_gradients_and_the_numbers_of_the_optimizer(loop):
    ran = loop(interval=4).run(9)
    series = ran.series()
    assert series.steps == list(range(9))
    steps, losses = series["loss"]
    assert steps.tolist() == list(range(9))
    np.testing.assert_allclose(losses, ran.losses, rtol=1e-6)
    names = [parameter.name for parameter in ran.net.trainable_params()]
    for place, name in enumerate(names):
        expected = [norms(gradients)[place] for gradients in ran.gradients]
        np.testing.assert_allclose(series[f"{name}.grad"].values, expected, rtol=1e-5)
        assert series[f"{name}.grad.max"].steps.tolist() == [0, 4, 8]
        assert series[f"{name}.param"].steps.tolist() == [0, 4, 8]
        assert f"{name}.grad_in" not in series.names  # equal to those that arrived
    total = [np.sqrt(sum(norm**2 for norm in norms(gradients))) for gradients in ran.gradients]
    np.testing.assert_allclose(series["optimizer.global_norm"].values, total, rtol=1e-5)
    np.testing.assert_allclose(series["optimizer.learning_rate"].values, 0.001, rtol=1e-6)
    after = float(np.linalg.norm(ran.net[0].weight.asnumpy()))
    assert series["0.weight.param"].values[-1] == pytest.approx(after, rel=1e-5)
    assert (series["0.weight.update"].values > 0).all()
    assert (series["seconds"].values > 0).all()
    assert series["optimizer.accum.0.weight"].steps.tolist() == [0, 4, 8]


def test_on_a_device_the_row_has_the_same_numbers_a_step_later(tmp_path, debug, loop):
    on_host = loop(interval=2).run(5).series()
    ran = Loop(tmp_path / "device", measure="device", interval=2).run(5)
    assert ran.series().steps == [0, 1, 2, 3]
    ran.debugger.close()
    series = ran.series()
    assert series.steps == [0, 1, 2, 3, 4]
    assert set(on_host.names) - set(series.names) == {
        n for n in on_host.names if n.endswith((".max", ".min"))
    }
    for name in set(series.names) - {"seconds"}:
        assert series[name].steps.tolist() == on_host[name].steps.tolist(), name
        np.testing.assert_allclose(
            series[name].values, on_host[name].values, rtol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_the_loss_is_without_the_factor_of_a_loss_scaler(loop, kind):
    scaler = (
        ms.amp.StaticLossScaler(64.0) if kind == "static" else ms.amp.DynamicLossScaler(64.0, 2, 2)
    )
    ran, losses = loop(), []

    def forward(x, y):
        losses.append(((ran.net(x) - y) ** 2).mean())
        return scaler.scale(losses[-1])

    def unscaled(gradients):
        gradients = scaler.unscale(gradients)
        scaler.adjust(ms.Tensor(True))
        return gradients

    ran.grad = ms.value_and_grad(forward, None, ran.optimizer.parameters)
    series = ran.run(6, between=unscaled).series()
    np.testing.assert_allclose(
        series["loss"].values, [float(loss.asnumpy()) for loss in losses], rtol=1e-6
    )
    assert series["loss_scale"].values[0] == 64.0
    assert "optimizer.loss_scale" not in series.names  # 1: the optimizer has none


def test_gradients_that_are_clipped_on_their_way_are_seen_as_they_enter(loop):
    ran = loop().run(3, between=lambda gradients: ops.clip_by_global_norm(gradients, 0.01))
    series = ran.series()
    assert (series["0.weight.grad_in"].values < series["0.weight.grad"].values).all()
    np.testing.assert_allclose(series["optimizer.global_norm"].values, 0.01, rtol=1e-4)


def test_gradients_that_change_in_place_are_seen_before_and_after(loop):
    def halve(gradients):
        for gradient in gradients:
            gradient.copy_(gradient * 0.5)
        return gradients

    series = loop().run(3, between=halve).series()
    np.testing.assert_allclose(
        series["0.weight.grad_in"].values, series["0.weight.grad"].values / 2, rtol=1e-5
    )


def test_the_gradients_of_two_backwards_in_one_step_are_those_of_the_last(loop):
    ran = loop()
    first, last = (ran.batch() for _ in range(2))
    ran.debugger.start(ran.net)
    ran.grad(*first)
    _, gradients = ran.grad(*last)
    ran.debugger.stop()
    ran.debugger.step()
    ran.debugger.close()
    assert ran.series()["0.weight.grad"].values[0] == pytest.approx(
        norms([gradients[0].asnumpy()])[0], rel=1e-5
    )


@pytest.mark.parametrize(
    "how", ["of weights and inputs", "of one weight", "of a parameter as input", "by GradOperation"]
)
def test_gradients_are_seen_however_they_are_asked_for(loop, how):
    ran = loop()
    x, y = ran.batch()
    weight, loss = ran.net[0].weight, nn.CrossEntropyLoss()

    def forward(x, *_):
        return loss(ran.net(x), y)

    ways = {
        "of weights and inputs": lambda: ms.grad(forward, 0, [weight])(x)[1][0],
        "of one weight": lambda: ms.grad(forward, None, weight)(x),
        "of a parameter as input": lambda: ms.grad(lambda w: (w * w).sum())(weight),
        "by GradOperation": lambda: ops.GradOperation(get_by_list=True)(ran.net)(x)[0],
    }
    ran.debugger.start(ran.net)
    gradient = ways[how]()
    ran.debugger.stop()
    ran.debugger.step()
    ran.debugger.close()
    assert ran.series()["0.weight.grad"].values[0] == pytest.approx(
        norms([gradient.asnumpy()])[0], rel=1e-5
    )


def test_a_backward_that_raises_leaves_no_gradient_to_the_next(loop):
    ran = loop()
    raising = []  # MindSpore calls a hook once when it is registered
    ran.net[0].weight.register_hook(lambda gradient: 1 / len(raising[0]) if raising else None)
    raising.append([])
    ran.debugger.start(ran.net)
    with pytest.raises(ZeroDivisionError):
        ran.grad(*ran.batch())
    raising.clear()
    ran.debugger.stop()
    ran.debugger.step()
    series = ran.run(2).series()
    assert len(series["0.weight.grad"].steps) == 2


def test_the_training_keeps_its_bits(tmp_path, debug, loop):
    watched = loop(interval=3).run(12)
    bare = Loop(tmp_path).run(12, debugger=False)
    assert watched.losses == bare.losses
    for one, other in zip(watched.net.trainable_params(), bare.net.trainable_params()):
        assert one.asnumpy().tobytes() == other.asnumpy().tobytes()


def test_the_cells_of_the_list_have_their_inputs_outputs_and_gradients(loop):
    ran = loop(list=["Cell.2.Dense"]).run(3)
    series = ran.series()
    names = [
        name
        for name in series.names
        if name.startswith("Cell.") and not name.endswith((".max", ".min"))
    ]
    forward, backward = "Cell.2.Dense.forward.0", "Cell.2.Dense.backward.0"
    assert sorted(names) == [
        f"{backward}.input.0",
        f"{backward}.output.0",
        f"{forward}.input.0",
        f"{forward}.output.0",
    ]
    assert all(series[name].steps.tolist() == [0, 1, 2] for name in names)
    x, y = ran.batch()
    hidden = ops.relu(ran.net[0](x))
    ran.debugger.start(ran.net)
    ran.grad(x, y)
    ran.debugger.stop()
    ran.debugger.step()
    series = ran.series()
    assert series[f"{forward}.input.0"].values[-1] == pytest.approx(
        norms([hidden.asnumpy()])[0], rel=1e-5
    )
    difference = 2 * (ran.net(x) - y).asnumpy() / y.size
    assert series[f"{backward}.input.0"].values[-1] == pytest.approx(
        norms([difference])[0], rel=1e-4
    )


def test_numbers_of_the_user_are_series(loop):
    ran = loop()
    for step in range(3):
        ran.debugger.start(ran.net)
        ran.debugger.log("validation loss", ms.Tensor(0.5 * step))
        ran.debugger.stop()
        ran.debugger.step()
    assert probe.open(ran.path).series("validation loss").values.tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(UsageError, match="number"):
        ran.debugger.log("name", "text")
    with pytest.raises(UsageError, match="text"):
        ran.debugger.log(3, 3)


def test_an_alarm_is_logged_written_and_given_to_the_users_function(loop, caplog):
    ran, given = loop(), []
    ran.debugger.on_alarm(given.append)
    ran.run(BAD + 3, bad=BAD)
    assert {alarm.step for alarm in given} == {BAD}
    assert {"loss", "optimizer.global_norm"} <= {alarm.series for alarm in given}
    written = [
        json.loads(line)
        for line in (ran.path / "monitor" / "rank" / "alarms.jsonl").read_text().splitlines()
    ]
    assert written == [alarm.to_dict() for alarm in given]
    lines = [
        record.getMessage() for record in caplog.records if record.getMessage().startswith("alarm:")
    ]
    assert len(lines) == len({alarm.rule for alarm in given})
    assert ran.dumped() == []


def test_an_error_in_the_users_function_is_reported_and_the_training_goes_on(loop, caplog):
    ran = loop()

    def fail(alarm):
        raise ValueError("mine")

    ran.debugger.on_alarm(fail)
    ran.run(BAD + 3, bad=BAD)
    assert ran.series().steps == list(range(BAD + 3))
    log = ran.path / "monitor" / "rank" / "dump_error_info.log"
    assert "mine" in log.read_text()
    log.unlink()


def test_an_alarm_starts_a_dump_of_the_next_steps(loop, caplog):
    ran = loop(on_alarm="dump", alarm_steps=3).run(BAD + 6, bad=BAD)
    assert ran.dumped() == [BAD + 1, BAD + 2, BAD + 3]
    dump = json.loads((ran.path / f"step{BAD + 1}" / "rank" / "dump.json").read_text())
    assert (dump["task"], dump["level"]) == ("statistics", "mix")
    assert "Cell.0.Dense.parameters_grad.0" in dump["data"]
    assert any(
        f"steps {BAD + 1} to {BAD + 3} are recorded now" in record.getMessage()
        for record in caplog.records
    )
    assert ran.series().steps == list(range(BAD + 6))


def test_kept_steps_are_those_before_the_alarm(loop):
    ran = loop(on_alarm="dump", alarm_steps=1, keep_steps=2).run(BAD + 4, bad=BAD)
    assert ran.dumped() == [BAD - 1, BAD, BAD + 1]
    of_before = json.loads((ran.path / f"step{BAD}" / "rank" / "dump.json").read_text())
    assert of_before["level"] == "L1"
    assert any(name.endswith(".backward") for name in of_before["data"])
    assert not list(ran.path.rglob("*.journal"))


def test_steps_that_are_kept_leave_nothing_without_an_alarm(loop):
    ran = loop(keep_steps=2).run(5)
    ran.debugger.close()
    assert ran.dumped() == []


def test_max_alarms_limits_the_dumps(loop):
    ran = loop(on_alarm="dump", alarm_steps=1, max_alarms=1)
    ran.run(BAD + 2, bad=BAD)
    ran.run(30, bad=BAD + 28)
    assert ran.dumped() == [BAD + 1]


def test_an_alarm_may_end_the_training(loop):
    ran = loop(on_alarm="raise")
    with pytest.raises(AlarmError, match="spike"):
        ran.run(BAD + 3, bad=BAD)
    assert ran.series().steps == list(range(BAD + 1))


def test_a_resumed_training_continues_the_file(tmp_path, loop):
    ran = loop().run(4)
    ran.debugger.close()
    path = ran.path / "monitor" / "rank" / "series.bin"
    with path.open("ab") as file:
        file.write(b"\x00" * 7)  # a row that a kill has cut
    again = Loop(tmp_path)
    again.debugger.set_init_step(4)
    again.run(3)
    series = again.series()
    assert series.steps == list(range(7))
    np.testing.assert_allclose(series["loss"].values, ran.losses + again.losses, rtol=1e-6)


def test_three_lines_of_numpy_read_the_file(loop):
    ran = loop(interval=100).run(5)
    content = (ran.path / "monitor" / "rank" / "series.bin").read_bytes()
    head, rows = content.split(b"\n", 1)
    names = json.loads(head)["names"]
    table = np.frombuffer(rows, "<f4").reshape(-1, len(names))
    np.testing.assert_allclose(table[:, names.index("loss")], ran.losses, rtol=1e-6)


def test_a_layer_that_appears_later_begins_a_section(loop):
    ran = loop()
    weight = ran.net[0].weight
    weight.requires_grad = False
    ran.run(2)
    ran.debugger.log("late", 1.0)
    ran.run(2)
    series = ran.series()
    assert series.steps == [0, 1, 2, 3]
    assert series["late"].steps.tolist() == [2]


def test_what_the_monitor_does_not_know_is_refused(loop, tmp_path):
    ran = loop()
    with pytest.raises(UsageError, match="needs the model"):
        ran.debugger.start()
    with pytest.raises(UsageError, match="token_range"):
        ran.debugger.start(ran.net, token_range=[0, 1])
    with pytest.raises(SettingsError, match="monitor"):
        Loop(tmp_path, level="mix")
    with pytest.raises(SettingsError, match="interval"):
        Loop(tmp_path, interval=0)


def test_a_full_disk_costs_rows_and_no_step(loop, monkeypatch):
    ran = loop().run(2)
    real, fails = os.write, [True]

    def write(file, content):
        if fails[0] and len(content) > 40:
            raise OSError(28, "No space left on device")
        return real(file, content)

    monkeypatch.setattr(os, "write", write)
    ran.run(2)
    fails[0] = False
    ran.run(2)
    monkeypatch.undo()
    assert ran.series().steps == [0, 1, 4, 5]
    for log in ran.path.rglob("dump_error_info.log"):
        assert "No space left" in log.read_text()
        log.unlink()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.monitor.test_monitor import Loop
loop = Loop(Path(sys.argv[1]))
loop.run(int(sys.argv[2]))
print("ran", flush=True)
loop.debugger.start(loop.net)
loop.grad(*loop.batch())
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 7])
def test_a_killed_process_has_all_rows(tmp_path, steps):
    done = processes.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(steps)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    (series,) = open_series(str(tmp_path / "watched"))
    assert series.steps == list(range(steps))


def test_watch_shows_the_series_and_the_alarms(loop, capsys):
    from probe.__main__ import main

    ran = loop().run(BAD + 3, bad=BAD)
    assert main(["watch", str(ran.path)]) == 1
    shown = capsys.readouterr().out
    assert f"{BAD + 3} steps, the newest is {BAD + 2}" in shown
    assert "look here: spike: loss: " in shown and f"in step {BAD}" in shown
    assert main(["watch", str(ran.path), "--csv", "--like", "loss"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > BAD
    assert main(["watch", str(ran.path.parent / "nothing")]) == 2


def test_gradients_of_two_optimizers_have_their_own_numbers(loop):
    ran = loop()
    first = nn.SGD(ran.net[0].trainable_params(), 0.1)
    second = nn.Adam(ran.net[2].trainable_params(), 0.02)
    for _ in range(3):
        ran.debugger.start(ran.net)
        _, gradients = ran.grad(*ran.batch())
        first(gradients[:2])
        second(gradients[2:])
        ran.debugger.stop()
        ran.debugger.step()
    series = ran.series()
    np.testing.assert_allclose(series["optimizer.learning_rate"].values, 0.1, rtol=1e-6)
    np.testing.assert_allclose(series["optimizer1.learning_rate"].values, 0.02, rtol=1e-6)


def test_an_error_of_ours_in_any_hook_never_reaches_the_training(
    tmp_path, debug, loop, monkeypatch
):
    bare = Loop(tmp_path / "bare").run(3, debugger=False)

    def fail(*args, **kwargs):
        raise ZeroDivisionError("ours")

    ran = loop()
    for name in ("differentiated", "note"):
        monkeypatch.setattr(f"probe.monitor.numbers.StepValues.{name}", fail)
    monkeypatch.setattr("probe.capture.training.events.OptimizerValues", fail)
    ran.run(3)
    assert ran.losses == bare.losses
    (log,) = ran.path.rglob("dump_error_info.log")
    assert "ours" in log.read_text()
    log.unlink()


def test_an_error_of_ours_at_the_end_of_a_step_never_reaches_the_training(
    tmp_path, debug, loop, monkeypatch, caplog
):
    bare = Loop(tmp_path / "bare").run(3, debugger=False)

    def fail(*args, **kwargs):
        raise ZeroDivisionError("ours")

    ran = loop()
    monkeypatch.setattr("probe.monitor.numbers.StepValues.end", fail)
    ran.run(2)
    monkeypatch.setattr("probe.capture.training.events.TrainingHooks.remove", fail)
    ran.run(1)
    assert ran.losses == bare.losses
    assert [
        record.getMessage()
        for record in caplog.records
        if "monitoring failed" in record.getMessage()
    ]
    monkeypatch.undo()
    ran.run(1)
    assert ran.series().steps == [3]
    for log in ran.path.rglob("dump_error_info.log"):
        assert "ours" in log.read_text()
        log.unlink()


def test_a_folder_that_is_removed_is_told_and_made_again(tmp_path, debug, loop, caplog):
    bare = Loop(tmp_path / "bare").run(6, debugger=False)
    ran = loop().run(3)
    shutil.rmtree(ran.path)
    ran.run(3)
    assert ran.losses == bare.losses
    assert ran.series().steps == [3, 4, 5]
    said = [record.getMessage() for record in caplog.records if "is gone" in record.getMessage()]
    assert len(said) == 1 and "step 3" in said[0]


class Own(ms.experimental.optim.Optimizer):
    """An optimizer of a user, without a compiled function: MindSpore compiles in one thread at a time."""

    def __init__(self, parameters, lr, around=lambda update: update()):
        super().__init__(parameters, {"lr": lr})
        self.around = around

    def construct(self, gradients):
        self.around(lambda: self.update(gradients))
        return True

    def update(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients):
            parameter.set_data(parameter - gradient * 0.1)


def test_optimizers_of_several_threads_are_watched(loop):
    ran, began, ended = loop(interval=1), threading.Event(), threading.Event()

    def during(update):
        began.set()
        assert ended.wait(60)
        update()

    first = Own(ran.net[0].trainable_params(), 0.5, during)
    second = Own(ran.net[2].trainable_params(), 0.25)

    def other(gradients):
        assert began.wait(60)
        second(gradients)
        ended.set()

    for _ in range(3):
        began.clear()
        ended.clear()
        ran.debugger.start(ran.net)
        _, gradients = ran.grad(*ran.batch())
        thread = threading.Thread(target=other, args=(gradients[2:],))
        thread.start()
        first(gradients[:2])
        thread.join()
        ran.debugger.stop()
        ran.debugger.step()
    series = ran.series()
    assert series["optimizer.learning_rate"].values.tolist() == [0.5] * 3
    assert series["optimizer1.learning_rate"].values.tolist() == [0.25] * 3
    for name in ("0.weight", "2.weight"):
        steps, values = series[f"{name}.update"]
        assert steps.tolist() == [0, 1, 2]
        np.testing.assert_allclose(values, 0.1 * series[f"{name}.grad"].values, rtol=1e-4)


def test_trend_shows_the_series_and_their_alarms(loop, capsys):
    from probe.__main__ import main

    ran = loop().run(BAD + 3, bad=BAD)
    assert main(["trend", str(ran.path)]) == 1
    shown = capsys.readouterr().out
    assert "0.weight.grad" in shown and "loss" in shown
    assert f"look here: step {BAD}, loss: spike: " in shown
    assert main(["trend", str(ran.path), "--like", "learning_rate"]) == 0
    assert "optimizer.learning_rate" in capsys.readouterr().out
    assert main(["trend", str(ran.path), "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [float(row["norm"]) for row in rows if row["tensor"] == "loss"] == pytest.approx(
        ran.losses
    )
    assert main(["trend", str(ran.path), "--like", "nothing"]) == 2


def test_watch_writes_the_columns_of_msprobe(loop, tmp_path, capsys):
    from probe.__main__ import main

    clipped = lambda gradients: ops.clip_by_global_norm(gradients, 0.01)  # noqa: E731
    ran = loop(
        interval=2, list=["Cell.2.Dense"], optimizer=lambda parameters: nn.Adam(parameters, 0.01)
    )
    ran.run(5, between=clipped)
    assert main(["watch", str(ran.path), "--msprobe-csv", str(tmp_path / "csv")]) == 0
    capsys.readouterr()
    found = {}
    for path in (tmp_path / "csv" / "rank0").iterdir():
        with path.open(newline="") as file:
            found[path.name] = list(csv.DictReader(file))
    kinds = (
        "grad_unreduced",
        "grad_reduced",
        "param_updated",
        "exp_avg",
        "exp_avg_sq",
        "actv",
        "actv_grad",
    )
    assert set(found) == {f"{kind}_0-4.csv" for kind in kinds}
    assert list(found["grad_unreduced_0-4.csv"][0]) == [
        "vpp_stage",
        "name",
        "step",
        "norm",
        "max",
        "min",
    ]
    assert list(found["actv_0-4.csv"][0])[:4] == ["vpp_stage", "name", "step", "micro_step"]
    assert {row["name"] for row in found["actv_grad_0-4.csv"]} == {"2.input", "2.output"}
    series = ran.series()
    for kind, column in (("grad_unreduced", "0.weight.grad"), ("grad_reduced", "0.weight.grad_in")):
        rows = [float(row["norm"]) for row in found[f"{kind}_0-4.csv"] if row["name"] == "0.weight"]
        np.testing.assert_allclose(rows, series[column].values, rtol=1e-6)
    assert [row["step"] for row in found["exp_avg_0-4.csv"] if row["name"] == "2.bias"] == [
        "0",
        "2",
        "4",
    ]


def test_the_report_has_the_lines_of_every_step(loop):
    from probe.reading.report.report import make_content

    ran = loop(on_alarm="dump", alarm_steps=1).run(BAD + 3, bad=BAD)
    description = make_content(str(ran.path)).description
    (line,) = next(
        curve["b"] for curve in description["curves"] if curve["name"] == "loss"
    ).values()
    assert [step for step, _ in line] == list(range(BAD + 3))
    assert [number for _, number in line] == pytest.approx(ran.losses)
    assert any(item["rule"] == "spike" and item["name"] == "loss" for item in description["trends"])


def test_a_report_needs_no_dump(loop):
    from probe.reading.report.report import make_content

    ran = loop().run(BAD + 3, bad=BAD)
    content = make_content(str(ran.path))
    assert content.head.status == 1
    assert any(
        item["rule"] == "spike" and item["name"] == "loss" for item in content.description["trends"]
    )
    assert {"loss", "optimizer.global_norm"} <= {
        curve["name"] for curve in content.description["curves"]
    }


def test_series_are_written_for_tensorboard(loop, tmp_path, capsys):
    from probe.__main__ import main

    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    ran = loop().run(4)
    assert main(["watch", str(ran.path), "--tensorboard", str(tmp_path / "board")]) == 0
    assert "tensorboard --logdir" in capsys.readouterr().out
    read = EventAccumulator(str(tmp_path / "board" / "rank"))
    read.Reload()
    found = [(event.step, event.tensor_proto.float_val[0]) for event in read.Tensors("loss")]
    assert found == [(step, pytest.approx(loss)) for step, loss in enumerate(ran.losses)]


def test_without_tensorboard_the_message_names_the_package(loop, tmp_path, capsys, monkeypatch):
    from probe.__main__ import main

    ran = loop().run(1)
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    assert main(["watch", str(ran.path), "--tensorboard", str(tmp_path / "board")]) == 2
    assert "pip install tensorboard" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills", [4, pytest.param(60, marks=[pytest.mark.thorough, pytest.mark.proof])]
)
def test_a_process_that_is_killed_at_any_moment_has_all_rows(kills):
    command = program("monitor.kills", "--kills", kills, "--seed", kills)
    done = processes.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == kills
    for one in found:
        assert one["whole"] and one["same"]
        assert one["told"] <= one["rows"] <= one["told"] + 1, one


def test_the_functions_that_it_replaces_keep_their_names_and_arguments(loop):
    made, adjust = loop(), ms.amp.DynamicLossScaler.adjust

    def described():
        calls = [type(made.optimizer).__call__, ms.amp.DynamicLossScaler.adjust]
        return [
            (call.__name__, call.__qualname__, call.__doc__, inspect.signature(call))
            for call in calls
        ]

    before = described()
    made.debugger.start(made.net)
    assert ms.amp.DynamicLossScaler.adjust is not adjust
    assert described() == before
    made.debugger.stop()
    made.debugger.step()


@pytest.mark.thorough
@pytest.mark.proof
def test_ten_thousand_steps_hold_no_more_memory_and_the_file_is_as_long_as_computed():
    command = program("monitor.long", "--steps", 10_000)
    done = processes.run(
        command,
        fresh="memory is measured",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["rows"], found["sections"]) == (10_000, 1)
    assert found["length"] == found["computed"]
    assert found["python"] <= 100_000, found
    # MindSpore keeps 10 kB of each step: equal bare trainings of 10,000 steps differed by up to 5 MB
    assert found["watched"] - max(found["bare"], 0) <= 6_000_000, found
