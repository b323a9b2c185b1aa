# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training beside a golden run: nothing is written while they agree, and the first difference is that of compare."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from probe import DifferenceError, PrecisionDebugger, SettingsError
from tests.support import processes
from tests.support.paths import ROOT, environment

pytestmark = pytest.mark.medium


class Net(nn.Cell):
    """Two layers with a scale between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.scale = nn.Dense(8, 16), nn.Dense(16, 4), 1.0

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)) * self.scale).sum()


def train(folder, name, steps=3, change=None, first=0, **settings):
    """Train under a debugger; ``change(net, step)`` comes before each step. Return the losses, as bytes."""
    ms.set_seed(1)
    np.random.seed(1)
    net = Net()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(net, None, optimizer.parameters)
    own = {
        key: settings.pop(key)
        for key in ("summary_mode", "diff_nums", "bench_path")
        if key in settings
    }
    task = settings.setdefault("task", "statistics")
    config = folder / f"{name}.json"
    config.write_text(
        json.dumps({"level": "mix", "dump_path": str(folder / name), **settings, task: own})
    )
    debugger, losses = PrecisionDebugger(config_path=str(config)), []
    random = np.random.RandomState(0)
    try:
        for step in range(first + steps):
            x = ms.Tensor(random.randn(4, 8).astype(np.float32))
            if change is not None:
                change(net, step)
            debugger.start(net)
            loss, gradients = gradient(x)
            optimizer(gradients)
            losses.append(loss.asnumpy().tobytes())
            debugger.stop()
            debugger.step()
    finally:
        debugger.close()
    return losses


def scaled(at):
    """Return a change: from this step on there is another scale."""

    def change(net, step):
        net.scale = 1.5 if step >= at else 1.0

    return change


def shown(origin):
    """Return a finding without the lines of this test."""
    return {key: value for key, value in origin.items() if key != "stack"}


def documents(path):
    """Return the documents of a dump, and its journals."""
    names = ("dump.json", "stack.json", "construct.json", "dump.journal", "golden.json")
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.name in names)


@pytest.fixture(params=["statistics", "md5"])
def golden(request, tmp_path):
    """Record a golden run; return its folder and the settings of its records."""
    own = {"summary_mode": request.param} if request.param == "md5" else {}
    train(tmp_path, "golden", **own)
    return str(tmp_path / "golden"), own


def test_nothing_is_written_while_the_runs_agree(golden, tmp_path, caplog):
    path, own = golden
    with caplog.at_level(logging.INFO, "probe"):
        bare = train(tmp_path, "bare", steps=6, dump_enable=False)
        watched = train(tmp_path, "mine", steps=6, golden=path, **own)
    assert watched == bare
    assert documents(tmp_path / "mine") == []
    assert f"3 steps agree with the golden run {path}, 0 differ" in caplog.text


@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_first_difference_is_the_one_of_compare(golden, at, tmp_path, caplog):
    path, own = golden
    train(tmp_path, "whole", change=scaled(at), **own)
    train(
        tmp_path, "mine", change=scaled(at), golden={"path": path, "on_difference": "stop"}, **own
    )
    expected = shown(probe.compare(path, tmp_path / "whole").first.to_dict())
    found = shown(probe.compare(path, tmp_path / "mine").first.to_dict())
    told = shown(
        json.loads((tmp_path / f"mine/step{at}/rank/golden.json").read_text())["origins"][0]
    )
    assert (expected["step"], expected["kind"]) == (at, "argument")
    assert told == found == expected
    assert (
        f"step {at} differs from the golden run. First difference: {expected['sentence']}"
        in caplog.text
    )
    assert f"{expected['file']}:{expected['line']}: {expected['source']}" in caplog.text
    assert sorted(os.listdir(tmp_path / "mine")) == sorted(
        {"step0", f"step{max(at - 1, 0)}", f"step{at}"}
    )


def test_arrays_of_the_call_and_of_its_makers_are_written(golden, tmp_path):
    path, own = golden
    train(tmp_path, "mine", change=scaled(1), golden=path, **own)
    dump = probe.open(tmp_path / "mine")[1]
    call = dump[probe.compare(path, tmp_path / "mine").first.name]
    given, made = call.inputs["0"].array(), call.outputs["0"].array()
    assert np.array_equal(made, given * np.float32(1.5))
    maker = call.inputs["0"].producer
    assert np.array_equal(maker.outputs["0"].array(), given)
    assert np.allclose(np.tanh(maker.inputs["0"].array()), given, atol=1e-5)
    tensors = [tensor for other in dump for tensor in other.tensors()]
    assert sum(tensor.path is not None for tensor in tensors) < len(tensors) / 2


def test_an_array_is_as_it_was_before_a_call_wrote_it(tmp_path):
    def run(name, factor, **settings):
        config = tmp_path / f"{name}.json"
        config.write_text(
            json.dumps(
                {"level": "L1", "dump_path": str(tmp_path / name), "statistics": {}, **settings}
            )
        )
        debugger = PrecisionDebugger(config_path=str(config))
        x = ms.Tensor(np.arange(1000, dtype=np.float32))
        debugger.start()
        y = ops.square(x)
        y.add_(ms.Tensor(np.full(1000, factor, np.float32)))
        ops.tanh(y)
        debugger.stop()
        debugger.step()
        debugger.close()

    run("golden", 1.0)
    run("mine", 1e6, golden=str(tmp_path / "golden"))
    dump = probe.open(tmp_path / "mine")[0]
    square = dump["Functional.square.0.forward"].outputs["0"]
    assert np.array_equal(square.array(), np.arange(1000, dtype=np.float32) ** 2)


@pytest.mark.parametrize(("way", "steps"), [("record", [0, 1, 2]), ("stop", [0, 1])])
def test_the_training_goes_on_after_a_difference(golden, way, steps, tmp_path):
    path, own = golden
    losses = train(
        tmp_path, "mine", change=scaled(1), golden={"path": path, "on_difference": way}, **own
    )
    assert losses == train(tmp_path, "bare", change=scaled(1), dump_enable=False)
    assert [
        file.split("/")[0] for file in documents(tmp_path / "mine") if file.endswith("dump.json")
    ] == [f"step{step}" for step in steps]
    assert not list((tmp_path / "mine").rglob("dump_error_info.log"))


def test_the_training_ends_at_step_with_an_error_that_tells_the_finding(golden, tmp_path):
    path, own = golden
    with pytest.raises(
        DifferenceError, match=r"differs from the golden run\. First difference: Tensor\.__mul__"
    ):
        train(
            tmp_path,
            "mine",
            change=scaled(1),
            golden={"path": path, "on_difference": "raise"},
            **own,
        )
    assert len(probe.open(tmp_path / "mine")[1]) > 10


def test_names_of_msprobe_mean_the_same(golden, tmp_path):
    path, _ = golden
    train(tmp_path, "mine", change=scaled(1), task="tensor", bench_path=path, diff_nums=2)
    found = [file for file in documents(tmp_path / "mine") if file.endswith("golden.json")]
    assert found == ["step1/rank/golden.json", "step2/rank/golden.json"]


def test_an_entry_that_only_one_run_has_is_judged_as_by_compare(golden, tmp_path):
    path, own = golden
    name = next((tmp_path / "golden/step1").rglob("dump.json"))
    document = json.loads(name.read_text())
    del document["data"]["Functional.tanh.0.forward"]
    name.write_text(json.dumps(document, indent=1))
    train(tmp_path, "whole", **own)
    train(tmp_path, "mine", golden=path, **own)
    assert bool(documents(tmp_path / "mine")) != probe.compare(path, tmp_path / "whole").ok


@pytest.mark.parametrize("indent", [None, 4])
def test_a_golden_dump_in_another_form_of_json_agrees(golden, indent, tmp_path):
    path, own = golden
    for file in (tmp_path / "golden").rglob("dump.json"):
        file.write_text(json.dumps(json.loads(file.read_text()), indent=indent))
    train(tmp_path, "mine", golden=path, **own)
    assert documents(tmp_path / "mine") == []


def test_differences_within_the_tolerance_are_none(golden, tmp_path):
    path, own = golden

    def nearly(net, step):
        if not step:
            for parameter in net.get_parameters():
                noise = 1 + 1e-7 * np.random.RandomState(3).randn(*parameter.shape)
                parameter.set_data(ms.Tensor((parameter.asnumpy() * noise).astype(np.float32)))

    train(tmp_path, "near", change=nearly, **own)
    train(tmp_path, "mine", change=nearly, golden=path, **own)
    assert probe.compare(path, tmp_path / "near").ok
    assert documents(tmp_path / "mine") == []


@pytest.mark.parametrize("harm", ["missing", "empty", "cut", "other model", "no entries", "series"])
def test_a_golden_run_that_cannot_be_used_is_one_line(harm, tmp_path, caplog):
    train(tmp_path, "golden")
    path = tmp_path / "golden"
    for file in path.rglob("dump.json"):
        if harm == "cut":
            file.write_bytes(file.read_bytes()[:3000])
        elif harm == "other model":
            file.write_text(
                file.read_text().replace("Functional.", "Mint.").replace("Cell.", "Cell.other.")[:]
            )
        elif harm == "no entries":
            file.write_text("[]")
    if harm in ("missing", "empty", "series"):
        shutil.rmtree(path)
    if harm == "empty":
        path.mkdir()
    if harm == "series":
        (path / "monitor/rank").mkdir(parents=True)
        (path / "monitor/rank/series.bin").write_bytes(b"")
    caplog.clear()
    bare = train(tmp_path, "bare", dump_enable=False)
    assert train(tmp_path, "mine", golden=str(path)) == bare
    told = [record.getMessage() for record in caplog.records if "golden" in record.getMessage()]
    if harm == "other model":  # its backwards are paired
        return
    assert len(told) == 1
    assert told[0].endswith("The training goes on, and nothing more is compared")
    assert documents(tmp_path / "mine") == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"golden": {"on_difference": "raise"}}, "golden: .* is not allowed"),
        (
            {"golden": {"path": "g", "on_difference": "rise"}},
            "golden.on_difference: 'rise' .*Did you mean 'raise'",
        ),
        (
            {"golden": {"path": "g", "array": 3}},
            "unknown key 'golden.array'.*Did you mean 'arrays'",
        ),
        ({"golden": "g", "task": "structure"}, "golden: .*only with task"),
        ({"golden": "g", "level": "L2"}, "golden: .*only with task"),
    ],
)
def test_a_wrong_setting_is_one_error(settings, message, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"dump_path": str(tmp_path / "dump"), **settings}))
    with pytest.raises(SettingsError, match=message):
        PrecisionDebugger(config_path=str(config))


_PROGRAM = """
import sys
import mindspore as ms
import numpy as np
from mindspore import nn
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
optimizer = nn.SGD(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
for step in range(3):
    x = ms.Tensor(np.ones((2, 3), np.float32) * (2.0 if "other" in sys.argv and step == 1 else 1.0))
    loss, gradients = gradient(x)
    optimizer(gradients)
    print("step", step, flush=True)
    if "wait" in sys.argv and step == 1:
        sys.stdin.read()
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(_PROGRAM)
    command = [sys.executable, "-m", "probe", "run", "--level", "mix"]
    done = processes.run(
        [*command, "--dump-path", str(tmp_path / "golden"), str(file)], cwd=ROOT, env=environment()
    )
    assert done.returncode == 0
    return [
        *command,
        "--golden",
        str(tmp_path / "golden"),
        "--dump-path",
        str(tmp_path / "mine"),
    ], str(file)


@pytest.mark.slow
def test_probe_run_takes_a_golden_run(program, tmp_path):
    command, file = program
    options = {"cwd": ROOT, "env": environment(), "capture_output": True, "text": True}
    same = processes.run([*command, "--on-difference", "raise", file], **options)
    assert (same.returncode, documents(tmp_path / "mine")) == (0, [])
    other = processes.run([*command, "--on-difference", "raise", file, "other"], **options)
    assert other.returncode == 1
    assert "probe.errors.DifferenceError: step 1 differs from the golden run" in other.stderr
    assert "step 2" not in other.stdout


@pytest.mark.slow
def test_a_killed_training_leaves_the_difference_readable(program, tmp_path):
    command, file = program
    words = [*command, file, "other", "wait"]
    with processes.Popen(
        words, cwd=ROOT, env=environment(), stdin=-1, stdout=-1, text=True
    ) as training:
        while "step 1" not in training.stdout.readline():
            pass
        training.send_signal(signal.SIGKILL)
    first = probe.compare(tmp_path / "golden", tmp_path / "mine").first
    assert (first.kind, first.step) == ("data", 1)
