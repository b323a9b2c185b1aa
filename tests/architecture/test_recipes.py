# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The recipes of CONTRIBUTING.md are true: who follows one in a copy of the package sees the added thing work."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from tests.reading.builders import calls, write
from tests.support import processes
from tests.support.pages import Page, page
from tests.support.paths import ROOT
from tests.support.recipes import follow, steps

pytestmark = pytest.mark.medium
GUIDE = page("CONTRIBUTING.md")

RULE = """
from probe.reading.one_run.trend import findings
from probe.series.online_rules import OnlineRules

rules, found = OnlineRules(), []
for step, value in enumerate([8.0, 8.0, 8.0, 8.0, 5.0, 3.0]):
    found += rules.feed(step, {"loss_scale": value})
print([(alarm.rule, alarm.step, alarm.said.text("zh")) for alarm in found])
series = {"Cell.fc.Dense.parameters_grad.0.weight.0": {None: dict(enumerate([4.0, 3.0, 4.0, 3.0, 1.5]))}}
print([item.sentence for item in findings(series, range(5), points={})])
"""
ORIGIN = """
from probe.reading.compare.origins.finder import OriginFinder
from tests.reading.builders import calls
from tests.reading.compare.graphs import graph_of

for line in ("Tensor.to x -> a", "Functional.exp x -> a"):
    graph = graph_of(calls(line), calls(line + "'"))
    print([(it.kind, it.why) for it in OriginFinder(graph).origins()])
"""
STATISTIC = """
import json, sys
import mindspore as ms
import numpy as np
from probe import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)
x = ms.Tensor(np.tile(np.array([1.0, 2.0, 1.0, -1.0], np.float32), 100))
for measure in ("host", "device"):
    own = {"summary_mode": ["max", "one count"]}
    settings = {"task": "statistics", "level": "L1", "dump_path": measure, "measure": measure, "statistics": own}
    json.dump(settings, open("config.json", "w"))
    debugger = PrecisionDebugger(config_path="config.json")
    debugger.start()
    ms.ops.relu(x)
    debugger.stop()
    debugger.step()
    data = json.load(open(measure + "/step0/rank/dump.json"))["data"]
    print(list(data["Functional.relu.0.forward"]["input_args"][0].items())[3:])
"""
BACKEND = """
import json
import mindspore as ms
from mindspore import ops
from probe import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)
json.dump({"task": "statistics", "level": "L1", "dump_path": "dump"}, open("config.json", "w"))
before = ops.relu
debugger = PrecisionDebugger(config_path="config.json")
debugger.start()
ops.tanh(ops.relu(ms.Tensor([1.0, -2.0])))
try:
    ops.relu("no tensor")
except TypeError:
    pass
debugger.stop()
print(ops.relu is before)
debugger.step()
data = json.load(open("dump/step0/rank/dump.json"))["data"]
print({name: sorted(entry) for name, entry in data.items()})
print(data["Functional.relu.0.forward"]["output"][0]["Max"])
"""
RECORD = """
import json, sys
import mindspore as ms
from mindspore import ops
from probe import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)
json.dump({"level": "L1", "dump_path": "dump", **json.loads(sys.argv[1])}, open("config.json", "w"))
debugger = PrecisionDebugger(config_path="config.json")
debugger.start()
x = ms.Tensor([[1.0, -2.0]])
for _ in range(3):
    y = ops.tanh(ops.relu(x))
ops.is_floating_point(y)
debugger.stop()
debugger.step()
dump = json.load(open("dump/step0/rank/dump.json"))
print(json.dumps([dump["task"], dump["data"]]))
"""
DOCTOR = """
import os
from probe.doctor.bench import CHECKS, Bench

(check,) = [check for check in CHECKS if check.name == "threads"]
os.environ["OMP_NUM_THREADS"] = "3"
for _ in range(2):
    found = check.function(Bench("CPU", "", "."))
    print(f"{found.result}: {found.fact.text('zh')}")
    os.environ.pop("OMP_NUM_THREADS", None)
"""


@pytest.fixture
def run(tmp_path, request):
    """Follow the recipe of a test in a copy of the package; return what runs a program there."""
    shutil.copytree(
        ROOT / "probe", tmp_path / "probe", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "support_ops.yaml", tmp_path)
    found = steps(GUIDE, request.param)
    assert found
    for step in found:
        follow(tmp_path, step)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}

    def run(*command):
        words = [sys.executable, *map(str, command)]
        done = processes.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def recipe(heading):
    return pytest.mark.parametrize("run", [heading], indirect=True)


@recipe("… a rule on series")
def test_a_rule_on_series_is_asked_in_the_monitor_and_in_dumps(run):
    assert run("-c", RULE) == [
        "[('halved', 5, '第 5 步为 3，之前约为 8')]",
        "['halved: 1.5 in step 4, about 3.5 before (threshold 2; probe)']",
    ]


@recipe("… an origin rule of compare")
def test_an_origin_rule_decides_where_its_fact_holds_alone(run):
    assert run("-c", ORIGIN) == [
        "[('computation', 'a cast rounds in another way')]",
        "[('computation', 'the inputs agree, the output does not')]",
    ]


@recipe("… a statistic")
def test_a_statistic_is_recorded_on_the_host_and_on_the_device(run):
    assert run("-c", STATISTIC) == ["[('Max', 2.0), ('one_count', 200)]"] * 2


@recipe("… a command, or an option")
def test_a_command_answers_and_has_help_and_a_schema(run, tmp_path):
    write(tmp_path / "dump" / "step0" / "rank", calls("relu x -> a", "exp a -> b"))
    names = ["Functional.relu.0.forward", "Functional.exp.0.forward"]
    assert run("-m", "probe", "names", "dump") == names
    assert json.loads("".join(run("-m", "probe", "names", "dump", "--json"))) == names
    assert any("所有调用的名称" in line for line in run("-m", "probe", "--help", "--lang", "zh"))
    assert "把名称写成 JSON" in "".join(run("-m", "probe", "names", "--help", "--lang", "zh"))
    assert json.loads("".join(run("-m", "probe", "--json-schema")))["names"]["type"] == "array"


@recipe("… a backend")
def test_a_backend_records_its_calls_and_leaves_nothing(run):
    assert run("-c", BACKEND) == [
        "True",
        "{'Functional.relu.0.forward': ['input_args', 'input_kwargs', 'output'], "
        "'Functional.relu.1.forward': ['input_args', 'input_kwargs', 'raised']}",
        "1.0",
    ]


def test_a_block_without_a_place_is_refused():
    guide = Page(
        "guide", "## A\n\n1. `probe/entry.py`, somewhere:\n\n   ```python\n   x = 1\n   ```\n"
    )
    with pytest.raises(ValueError, match="no place of a block"):
        steps(guide, "A")


def recorded(run, **settings):
    """Return the task in the header, and the entries, of a recorded step."""
    return json.loads(run("-c", RECORD, json.dumps(settings))[-1])


@recipe("… a setting")
def test_a_setting_is_obeyed_and_has_help_and_a_message(run):
    _, data = recorded(run, task="statistics", statistics={"first_calls": 2})
    calls = ["Functional.relu.0", "Functional.tanh.0", "Functional.relu.1", "Functional.tanh.1"]
    assert list(data) == [f"{name}.forward" for name in calls]
    assert any(
        "每个名称采集的调用数" in line
        for line in run("-m", "probe", "run", "--help", "--lang", "zh")
    )


@recipe("… a task")
def test_a_task_writes_its_entries(run):
    task, data = recorded(run, task="shapes")
    assert task == "structure"
    assert len(data) == 6
    assert data["Functional.tanh.0.forward"]["output"] == [[1, 2]]


@recipe("… an API")
def test_a_listed_api_is_recorded(run):
    _, data = recorded(run, task="statistics")
    assert "Functional.is_floating_point.0.forward" in data


@recipe("… a check of `probe doctor`")
def test_a_check_of_the_doctor_stands_in_the_table_and_reports(run):
    assert run("-c", DOCTOR) == ["ok: OMP_NUM_THREADS 为 3", "warning: 未设置 OMP_NUM_THREADS"]
