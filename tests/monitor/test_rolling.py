# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rolling records: a share of the calls of each step, with the numbers that a dump has, and nothing changed."""

from __future__ import annotations

import glob
import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from probe import SettingsError
from probe.__main__ import main
from probe.series.series import open_series
from tests.support import processes
from tests.support.paths import ROOT, environment, program

pytestmark = pytest.mark.medium

STEPS = 12
LONG = 3000  # seconds, for a proof on a slow machine
ZEROS = ms.Tensor(np.zeros((4, 3), np.float32))


class Net(nn.Cell):
    """Calls of each kind: Cells, listed functions, methods of Tensor, Primitives; one more from step ``late`` on."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(6, 8), nn.Dense(8, 3)
        self.product = ops.MatMul()
        self.step, self.late, self.every = 0, 10**9, 1

    def construct(self, x):
        x = ops.gelu(self.first(x))
        x = self.product(x, x.T) @ x
        if self.step >= self.late and self.step % self.every == 0:
            x = ops.sinh(x * 0.1)
        y = self.second(x)
        return ops.softmax(y, -1) + ops.square(y) * 0.1


class Loop:
    """A training; ``run`` returns the bytes of losses and parameters."""

    def __init__(self, tmp_path, name, level="mix", task="statistics", top=None, **own):
        ms.set_seed(1)
        np.random.seed(1)
        self.net = Net()
        self.optimizer = nn.Adam(self.net.trainable_params(), 0.01)
        self.grad = ms.value_and_grad(
            lambda x: ops.mse_loss(self.net(x), ZEROS), None, self.optimizer.parameters
        )
        self.random = np.random.default_rng(0)
        self.path = tmp_path / name
        self.debugger = None
        if task:
            settings = {"task": task, "level": level, "dump_path": str(self.path), task: own}
            settings.update(top or {})
            config = tmp_path / f"{name}.json"
            config.write_text(json.dumps(settings))
            self.debugger = probe.PrecisionDebugger(config_path=str(config))

    def run(self, steps=STEPS, before=lambda step: None):
        found = []
        for step in range(steps):
            self.net.step = step
            before(step)
            x = ms.Tensor(self.random.normal(size=(4, 6)).astype(np.float32))
            if self.debugger is not None:
                self.debugger.start(self.net)
            loss, gradients = self.grad(x)
            self.optimizer(gradients)
            if self.debugger is not None:
                self.debugger.stop()
                self.debugger.step()
            found += [loss.asnumpy().tobytes(), *(it.asnumpy().tobytes() for it in gradients)]
        return found + [it.asnumpy().tobytes() for it in self.net.trainable_params()]

    def calls(self):
        """Return step -> entry -> column -> value."""
        found = {}
        for step, records in open_series(str(self.path))[0].calls.records():
            found[step] = {
                head.entry: dict(zip(head.columns, values.tolist())) for head, values in records
            }
        return found


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_nothing_changes_and_each_number_is_that_of_a_dump(tmp_path, level):
    bare = Loop(tmp_path, "bare", task="").run()
    assert Loop(tmp_path, "dumped", level).run() == bare
    rolled = Loop(tmp_path, "rolled", level, rolling=5)
    assert rolled.run() == bare
    seen = set()
    for step, calls in rolled.calls().items():
        (file,) = glob.glob(f"{tmp_path}/dumped/step{step}/rank*/dump.json")
        data = json.loads(Path(file).read_text())["data"]
        assert calls.keys() <= data.keys()
        seen |= calls.keys()
        for entry, row in calls.items():
            for side in ("input", "output"):
                records = [*_records(data[entry].get(f"{side}_args", data[entry].get(side)))]
                numbers = [
                    (row[place], row[place.replace("norm", "max")])
                    for place in row
                    if place.startswith(side) and place.endswith(".norm")
                ]
                known = [(it["Norm"], it["Max"]) for it in records]
                assert np.allclose(numbers, known, rtol=1e-6)
    wanted = {name for name in data if "parameters_grad" not in name and "optimizer" not in name}
    assert seen == wanted


def _records(value):
    if isinstance(value, dict) and "Max" in value:
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _records(item)


def test_a_step_records_a_share_and_a_round_records_each_call_once(tmp_path):
    loop = Loop(tmp_path, "rolled", rolling=5)
    loop.run(11)
    calls = loop.calls()
    forward = [name for step in range(1, 6) for name in calls.get(step, {}) if "forward" in name]
    assert len(forward) == len(set(forward))
    again = [name for step in range(6, 11) for name in calls.get(step, {}) if "forward" in name]
    assert sorted(again) == sorted(forward)
    assert max(len(calls.get(step, ())) for step in range(1, 6)) < len(forward)


def test_functions_are_their_own_after_each_step(tmp_path):
    loop = Loop(tmp_path, "rolled", rolling=3)
    loop.run(1)
    functions = [ops.gelu, ops.softmax, nn.Cell.__call__, ms.Tensor.__pow__, type(loop.net.product)]
    codes = [getattr(item, "__code__", None) for item in functions]
    loop.run(4)
    assert functions == [
        ops.gelu, ops.softmax, nn.Cell.__call__, ms.Tensor.__pow__, type(loop.net.product)
    ]  # fmt: skip
    assert codes == [getattr(item, "__code__", None) for item in functions]


@pytest.mark.parametrize("every", [1, 7])
def test_a_call_that_comes_late_or_seldom_is_recorded_too(tmp_path, every):
    loop = Loop(tmp_path, "rolled", level="L1", rolling=5)
    loop.net.late, loop.net.every = 7, every
    loop.run(7 + 2 * 5 * every)
    found = [step for step, calls in loop.calls().items() if "Functional.sinh.0.forward" in calls]
    assert found and all(step >= 7 and step % every == 0 for step in found)


def test_the_series_of_a_call_are_read_by_its_name_and_number(tmp_path):
    loop = Loop(tmp_path, "rolled", rolling=3)
    loop.run(10)
    series = probe.open(str(loop.path)).series("Functional.gelu", 0)
    steps, values = series["forward.output.0.norm"]
    assert len(steps) >= 3 and (np.diff(steps) == 3).all() and (values > 0).all()
    assert "backward.input.0.norm" in series
    assert "forward.input.0.max" in probe.open(str(loop.path)).series("Cell.first.Dense", 0)
    with pytest.raises(probe.UsageError, match=r"Functional\.gelu"):
        probe.open(str(loop.path)).series("Functional.gelu", 1)


def entries_of(loop):
    return {entry for calls in loop.calls().values() for entry in calls}


def test_the_monitor_has_both(tmp_path):
    loop = Loop(tmp_path, "watched", task="monitor", level="mix", rolling=3)
    bare = Loop(tmp_path, "bare", task="").run()
    assert loop.run() == bare
    series = open_series(str(loop.path))[0]
    assert {"loss", "first.weight.grad"} <= set(series.names)
    alone = Loop(tmp_path, "alone", task="statistics", level="mix", rolling=3)
    alone.run()
    assert entries_of(loop) == entries_of(alone)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"rolling": 1}, "from 2"),
        ({"rolling": 0.5}, "from 2"),
        ({"budget": 2}, "between 0 and 1"),
        ({"rolling": 5, "budget": 0.1}, "one of rolling and budget"),
        ({"roling": 5}, "rolling"),
    ],
)
def test_a_wrong_setting_says_what_is_allowed(tmp_path, own, said):
    with pytest.raises(SettingsError, match=said):
        Loop(tmp_path, "wrong", **own)


def alarms_of(loop):
    lines = (loop.path / "monitor/rank/alarms.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def planted(function, effect):
    """Return a function of MindSpore with another code, whose results have an effect."""
    original = type(function)(function.__code__, function.__globals__, "original")
    original.__defaults__ = function.__defaults__
    function.__globals__["_planted"] = lambda *args, **kwargs: effect(original(*args, **kwargs))
    return (lambda *args, **kwargs: _planted(*args, **kwargs)).__code__  # noqa: F821


@pytest.mark.parametrize("task", ["monitor", "statistics"])
def test_an_alarm_names_the_call_and_records_the_next_steps_as_a_whole(tmp_path, monkeypatch, task):
    loop = Loop(tmp_path, "watched", task=task, rolling=3, alarm_steps=1)
    alarms = []
    if task == "monitor":
        loop.debugger.on_alarm(alarms.append)

    def before(step):
        if step == 40:
            monkeypatch.setattr(ops.gelu, "__code__", planted(ops.gelu, lambda x: x * 0))

    loop.run(60, before)
    told = alarms_of(loop)
    first = next(item for item in told if item["rule"] == "call zeros")
    assert first["series"] == "Functional.gelu.0.forward.output.0.norm"
    assert 40 <= first["step"] < 40 + 2 * 3 + 1
    dumps = sorted(loop.path.glob("step*/rank/dump.json"))
    assert dumps and "Functional.gelu.0.forward" in json.loads(dumps[0].read_text())["data"]
    step = int(dumps[0].parent.parent.name[len("step") :])
    calls = loop.calls()
    assert step not in calls
    share = calls[step - 6].keys()  # two rounds before
    assert share <= calls[step + 1].keys(), "the share of a step that was left out comes later"


def test_a_step_once_more_has_no_rows_of_its_own(tmp_path, monkeypatch):
    loop = Loop(tmp_path, "watched", task="monitor", level="mix", rolling=3, on_alarm="again")

    def before(step):
        if step == 40:
            monkeypatch.setattr(ops.gelu, "__code__", planted(ops.gelu, lambda x: x * np.nan))

    loop.run(50, before)
    told = alarms_of(loop)
    assert "again" in {item["rule"] for item in told}
    makers = {item["series"] for item in told if item["rule"] == "call NaN/Inf"}
    assert not any(series.startswith("Cell.") for series in makers), "its weights are NaN"
    series = open_series(str(loop.path))[0]
    assert series.steps == list(range(50))


def factor_from(monkeypatch, begin, factor):
    """Return what multiplies the results of gelu by a factor from a step on."""

    def before(step):
        if step == begin:
            code = planted(ops.gelu, lambda x: x * factor)
            monkeypatch.setattr(ops.gelu, "__code__", code)

    return before


@pytest.mark.parametrize("task", ["statistics", "monitor"])
def test_beside_a_golden_run_the_first_call_that_differs_is_told_and_recorded(
    tmp_path, monkeypatch, task
):
    golden = Loop(tmp_path, "golden", rolling=3)
    golden.run(30)
    golden.debugger.stop()
    loop = Loop(tmp_path, "mine", task=task, top={"golden": str(golden.path)}, rolling=3)
    loop.run(30, factor_from(monkeypatch, 15, 1.1))
    (told,) = (item for item in alarms_of(loop) if item["rule"] == "golden")
    assert 15 <= told["step"] < 15 + 4
    assert sorted(path.name for path in loop.path.glob("step*"))[0] == f"step{told['step'] + 1}"


def test_an_equal_run_beside_a_golden_one_tells_nothing(tmp_path):
    golden = Loop(tmp_path, "golden", rolling=3)
    golden.run(12)
    loop = Loop(tmp_path, "mine", top={"golden": str(golden.path)}, rolling=3)
    loop.run(12)
    assert not (loop.path / "monitor/rank/alarms.jsonl").exists()
    assert not list(loop.path.glob("step*"))


def test_a_difference_ends_the_training_where_that_is_wanted(tmp_path, monkeypatch):
    golden = Loop(tmp_path, "golden", rolling=3)
    golden.run(30)
    top = {"golden": str(golden.path), "on_difference": "raise"}
    loop = Loop(tmp_path, "mine", top=top, rolling=3)
    with pytest.raises(probe.DifferenceError, match="golden run"):
        loop.run(30, factor_from(monkeypatch, 15, 1.1))
    assert 15 <= loop.net.step < 20


def test_a_golden_run_without_rows_of_calls_is_refused(tmp_path):
    golden = Loop(tmp_path, "golden", task="monitor", level="L1")
    golden.run(3)
    loop = Loop(tmp_path, "mine", top={"golden": str(golden.path)}, rolling=3)
    with pytest.raises(SettingsError, match="rolling"):
        loop.run(1)


def test_two_runs_are_compared_and_the_call_and_the_next_step_are_told(
    tmp_path, monkeypatch, capsys
):
    golden = Loop(tmp_path, "golden", rolling=3)
    golden.run(30)
    loop = Loop(tmp_path, "mine", rolling=3)
    loop.run(30, factor_from(monkeypatch, 15, 1.1))
    assert main(["compare", str(golden.path), str(golden.path)]) == 0
    assert "numbers of the rows agree" in capsys.readouterr().out
    assert main(["compare", str(golden.path), str(loop.path), "--lang", "en"]) == 1
    told = capsys.readouterr().out
    assert "Functional.gelu.0.forward differs" in told and '"step": [1' in told


def test_md5_has_the_bits_of_a_dump_and_names_the_call_that_changes_one(
    tmp_path, monkeypatch, capsys
):
    own = {"summary_mode": "md5"}
    Loop(tmp_path, "dumped", **own).run(30)
    golden = Loop(tmp_path, "golden", rolling=3, **own)
    golden.run(30)
    for step, calls in golden.calls().items():
        (file,) = glob.glob(f"{tmp_path}/dumped/step{step}/rank*/dump.json")
        data = json.loads(Path(file).read_text())["data"]
        for entry, row in calls.items():
            halves = list(row.values())
            bits = [
                f"{int(high):04x}{int(low):04x}" for high, low in zip(halves[::2], halves[1::2])
            ]
            assert set(bits) <= set(_checksums(data[entry])), entry
    gelu = "Functional.gelu.0.forward"
    begin = next(step for step, calls in golden.calls().items() if step > 9 and gelu in calls)
    loop = Loop(tmp_path, "mine", rolling=3, **own)
    loop.run(30, factor_from(monkeypatch, begin, 1.0000001))
    assert not (loop.path / "monitor/rank/alarms.jsonl").exists()
    assert main(["compare", str(golden.path), str(golden.path)]) == 0
    assert main(["compare", str(golden.path), str(loop.path), "--lang", "en"]) == 1
    assert f"{gelu} has equal inputs and another output" in capsys.readouterr().out
    monkeypatch.undo()
    other = Loop(tmp_path, "other", rolling=3, **own)
    other.run(30, factor_from(monkeypatch, begin + 1, 1.0000001))  # behind it weights differ too
    assert main(["compare", str(golden.path), str(other.path), "--lang", "en"]) == 1
    told = capsys.readouterr().out
    assert "none has equal inputs and another output" in told and "[" in told


def _checksums(value):
    if isinstance(value, dict) and "md5" in value:
        yield value["md5"]
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _checksums(item)


def test_an_alarm_is_only_told_where_that_is_wanted(tmp_path, monkeypatch):
    loop = Loop(tmp_path, "watched", rolling=3, on_alarm="log")

    def before(step):
        if step == 40:
            monkeypatch.setattr(ops.gelu, "__code__", planted(ops.gelu, lambda x: x * 0))

    loop.run(60, before)
    assert alarms_of(loop) and not list(loop.path.glob("step*"))


def test_alarms_without_a_monitor_and_without_rolling_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="rolling"):
        Loop(tmp_path, "wrong", on_alarm="dump")


def test_runs_are_compared_by_their_rows_where_alarms_have_dumped_other_steps(
    tmp_path, monkeypatch, capsys
):
    golden = Loop(tmp_path, "golden", rolling=3)
    golden.run(60)
    loop = Loop(tmp_path, "mine", rolling=3)
    loop.run(60, factor_from(monkeypatch, 40, 0.0))
    assert list(loop.path.glob("step*/rank/dump.json")), "an alarm has recorded steps"
    assert main(["compare", str(golden.path), str(loop.path), "--lang", "en"]) == 1
    assert "Functional.gelu.0.forward differs" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills", [4, pytest.param(100, marks=[pytest.mark.thorough, pytest.mark.proof])]
)
def test_a_process_that_is_killed_at_any_moment_has_the_calls_of_all_ended_steps(kills):
    command = program("monitor.kills", "--rolling", "--kills", kills, "--seed", kills)
    done = processes.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=True,
        timeout=LONG,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    every = max((one["calls"] for one in found), key=len)  # each child trains alike
    assert len(found) == kills and len(every) > 9
    for one in found:
        assert one["whole"] and one["same"]
        assert one["calls"] == every[: len(one["calls"])]
        assert {step for step in every if step < one["told"]} <= set(one["calls"])


@pytest.mark.thorough
@pytest.mark.proof
def test_ten_thousand_steps_hold_no_more_memory_and_a_file_of_moderate_size():
    command = program("monitor.long", "--steps", 10_000, "--rolling", 50)
    done = processes.run(
        command,
        fresh="memory is measured",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=True,
        timeout=LONG,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == 10_000
    assert found["python"] <= 200_000, found
    assert found["watched"] - max(found["bare"], 0) <= 6_000_000, found
    assert found["calls"] <= 2_000_000, found


def test_the_rounds_are_noted_and_a_budget_changes_them(tmp_path):
    given = Loop(tmp_path, "given", rolling=5)
    given.run(3)
    noted = json.loads((given.path / "monitor/rank/rolling.json").read_text())
    assert noted == {"budget": None, "seed": 0, "rounds": [{"step": 0, "every": 5, "round": 5}]}
    loop = Loop(tmp_path, "adapted", budget=0.9)  # a small net: recording costs less than that
    loop.run(300)
    rounds = json.loads((loop.path / "monitor/rank/rolling.json").read_text())["rounds"]
    assert len(rounds) > 1 and rounds[-1]["every"] < rounds[0]["every"]
    steps = [step for step in loop.calls() if step >= rounds[-1]["step"]]
    assert rounds[-1]["every"] < 24
    assert all(step % 20 for step in steps), "some steps stay bare, to be measured"


@pytest.mark.parametrize(
    "own", [{"list": ["relu"]}, {"exclude": ["relu"]}, {"summary_mode": ["max", "min"]}]
)
def test_a_setting_that_rolling_does_not_serve_is_refused(tmp_path, own):
    with pytest.raises(SettingsError, match="rolling"):
        Loop(tmp_path, "wrong", rolling=5, **own)


def test_two_models_that_train_in_turn_are_both_recorded(tmp_path):
    loop = Loop(tmp_path, "rolled", rolling=3)
    other = nn.Dense(6, 6)
    start = loop.debugger.start
    loop.debugger.start = lambda net: start(net if net.step % 2 else other)
    loop.run(40)
    steps = loop.calls()
    assert {step % 2 for step in steps} == {0, 1}
    assert any("Functional.gelu.0.forward" in calls for calls in steps.values())


def test_a_cell_that_a_model_gets_later_is_recorded(tmp_path):
    loop = Loop(tmp_path, "rolled", level="L0", rolling=3)
    loop.run(5)
    loop.net.first = nn.SequentialCell(loop.net.first)
    loop.run(60)
    assert "Cell.first.SequentialCell.forward.0" in entries_of(loop)


def test_models_that_are_given_as_a_new_list_in_each_step_are_the_same(tmp_path):
    loop = Loop(tmp_path, "rolled", rolling=3)
    start = loop.debugger.start
    loop.debugger.start = lambda net: start([net])
    loop.run(10)
    assert len(loop.calls()) > 5


def test_runs_that_have_recorded_other_calls_are_not_said_to_agree(tmp_path, capsys):
    first, other = Loop(tmp_path, "first", rolling=7), None
    first.run(20)
    other = Loop(tmp_path, "other", rolling=7, rolling_seed=5)
    other.run(20)
    assert main(["compare", str(first.path), str(other.path), "--lang", "en"]) == 2
    assert "rolling_seed differ" in capsys.readouterr().out
