# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program of torch on MindSpore is recorded as msprobe records it, and keeps its bits. ``make torch`` runs this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("mindtorch", reason="mindtorch is not installed here; `make torch` has it")

import torch
from torch import nn

import probe
from probe.errors import UsageError
from probe.series.series import open_series
from tests.layers.torch_net import Momentum, Trained, loss_of, weights
from tests.support.dumps import Dump
from tests.support.paths import ROOT

#: a name -> the settings
SETTINGS = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "tensor": {"level": "mix", "task": "tensor"},
    "md5": {"level": "mix", "summary_mode": "md5"},
    "nan_check": {"level": "mix", "task": "nan_check"},
    "structure": {"level": "mix", "task": "structure"},
    "monitor": {"level": "L1", "task": "monitor"},
    "saved_tensors": {"level": "mix", "saved_tensors": True},
    "debug": {"level": "debug"},
    "rolling": {"level": "mix", "rolling": 2},
}


@pytest.fixture(scope="module")
def bare():
    """Return the losses and the parameters of a training without probe."""
    training = Trained()
    return loss_of(training), weights(training)


@pytest.mark.parametrize("name", SETTINGS)
def test_watching_changes_no_bit(bare, debug, name):
    training = Trained()
    losses = loss_of(training, debug(**SETTINGS[name]))
    assert (losses, weights(training)) == bare


def test_a_golden_run_of_the_same_program_agrees(debug, tmp_path, capsys):
    loss_of(Trained(), debug(level="mix", dump_path=str(tmp_path / "golden")))
    debugger = debug(level="mix", golden=str(tmp_path / "golden"), dump_path=str(tmp_path / "mine"))
    loss_of(Trained(), debugger)
    debugger.close()
    assert "probe: 3 steps agree with the golden run" in capsys.readouterr().err
    assert not list((tmp_path / "mine").glob("step*/*/dump.json"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a training that was recorded with its arrays, and its second step."""
    folder = tmp_path_factory.mktemp("torch")
    (folder / "config.json").write_text(
        json.dumps({"task": "tensor", "level": "mix", "dump_path": str(folder / "dump")})
    )
    debugger = probe.PrecisionDebugger(config_path=str(folder / "config.json"))
    training = Trained()
    called = []
    handles = [
        module.register_forward_hook(lambda module, args, output: called.append(module))
        for module in training.net.modules()
    ]
    gradients = []
    for _ in range(2):
        called.clear()
        debugger.start(training.net)
        training.gradient()
        gradients = {
            name: p.grad.numpy() for name, p in training.net.named_parameters() if p.requires_grad
        }
        training.optimizer.step()
        for p in training.trained:
            p.grad = None
        debugger.stop()
        debugger.step()
    for handle in handles:
        handle.remove()
    debugger.close()
    return training, called, gradients, Dump(folder / "dump/step1/rank")


def test_each_call_of_a_module_has_an_entry_forward_and_backward(recorded):
    training, called, _, dump = recorded
    paths = {id(module): path for path, module in training.net.named_modules()}
    counts = {}
    expected = []
    for module in called:
        path = paths[id(module)]
        if path:
            key = f"Module.{path}.{type(module).__name__}"
            number = counts[key] = counts.get(key, -1) + 1
            expected.append(f"{key}.forward.{number}")
    own = [name for name in dump.names("Module.", ".forward.") if "optimizer" not in name]
    assert own == expected
    backwards = {name.replace("forward", "backward") for name in expected}
    assert backwards == set(dump.names("Module.", ".backward."))


def test_what_probe_runs_itself_is_no_entry(debug, tmp_path):
    names = {}
    for level in ("L1", "mix"):
        folder = tmp_path / level
        loss_of(Trained(), debug(level=level, dump_path=str(folder)))
        names[level] = set(Dump(next(folder.glob("step1/rank*"))).data)
    own = {name for name in names["mix"] if not name.startswith("Module.")}
    assert own == {name for name in names["L1"] if not name.startswith("Module.")}


def test_rolling_records_have_each_entry_of_a_dump(debug, tmp_path):
    folder = tmp_path / "rolled"
    loss_of(Trained(), debug(level="mix", rolling=2, dump_path=str(folder)), steps=6)
    content = open_series(str(folder))[0].calls
    seen = {head.entry for _, records in content.records() for head, _ in records}
    whole = tmp_path / "whole"
    loss_of(Trained(), debug(level="mix", dump_path=str(whole)))
    data = Dump(next(whole.glob("step1/rank*"))).data
    calls = {name for name in data if "parameters_grad" not in name and "optimizer" not in name}
    assert seen == {name for name in calls if '"Norm"' in json.dumps(data[name])}


def test_each_gradient_of_a_parameter_is_that_of_the_program(recorded):
    _, _, gradients, dump = recorded
    found = {}
    for name in dump.names("parameters_grad"):
        path = name.split(".", 1)[1].rsplit(".", 3)[0]
        for parameter, records in dump.data[name].items():
            found[f"{path}.{parameter}"] = dump.array(records[0]["data_name"])
    assert set(found) == set(gradients)
    for name, value in gradients.items():
        np.testing.assert_array_equal(found[name], value)


def test_functions_have_the_names_of_a_dump_of_pytorch(recorded):
    dump = recorded[3]
    assert dump.header["framework"] == "mindtorch"
    expected = (
        "Functional.layer_norm.0",
        "Functional.linear.0",
        "Functional.relu.1",
        "Torch.tanh.1",
        "Functional.cross_entropy.0",
    )
    names = {f"{name}.{way}" for name in expected for way in ("forward", "backward")}
    assert names <= set(dump.data)


def test_the_tree_has_the_module_around_each_call(recorded):
    dump = recorded[3]
    assert dump.construct["Functional.relu.0.forward"] is None
    assert dump.construct["Functional.linear.0.forward"] == "Module.blocks.0.Linear.forward.0"


def test_an_update_has_its_gradients_numbers_and_states(recorded, debug):
    dump = recorded[3]
    update = dump.data["Module.optimizer.Momentum.forward.0"]
    numbers = update["input_kwargs"]
    assert numbers["learning_rate"]["value"] == 0.1
    assert numbers["momentum"]["value"] == 0.9
    assert len(update["input_args"][0]) == len(recorded[0].trained)
    training = Trained()
    debugger = debug(level="L1", optimizer="states")
    loss_of(training, debugger)
    states = debug.dump(2).data["Module.optimizer.Momentum.forward.0"]["parameters"]
    assert "momentum_buffer.out.weight" in states


def test_a_pre_hook_of_the_training_changes_the_recorded_input(debug):
    training = Trained()
    handle = training.net.out.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
    loss_of(training, debug(level="L0"), steps=1)
    handle.remove()
    assert not training.net.out._forward_pre_hooks
    entry = debug.dump().data["Module.out.Linear.forward.0"]
    assert entry["input_args"][0]["Max"] == 0


def test_a_pre_hook_that_calls_its_own_module_gets_the_same_result(debug):
    training = Trained()
    module = training.net.out
    busy = []

    def scale(module, args):
        if busy:
            return None
        busy.append(True)
        factor = module(args[0]).sum()
        busy.clear()
        return (args[0] * factor,)

    handle = module.register_forward_pre_hook(scale)
    bare = training.net(training.x).numpy()
    debugger = debug(level="L0")
    debugger.start(training.net)
    watched = training.net(training.x).numpy()
    debugger.stop()
    debugger.step()
    handle.remove()
    assert watched.tobytes() == bare.tobytes()
    assert not module._forward_pre_hooks
    outer = debug.dump().data["Module.out.Linear.forward.1"]
    inner = debug.dump().data["Module.out.Linear.forward.0"]
    assert outer["input_args"][0]["Norm"] != inner["input_args"][0]["Norm"]


def test_calls_of_one_module_in_two_threads_have_their_own_inputs(debug):
    training = Trained()
    module = training.net.out
    meet = threading.Barrier(2)
    forward = module.forward
    # two kernels at once crash MindSpore's synchronous mode, with probe or without
    turn = threading.Lock()

    def wait(module, args):
        meet.wait(60)

    def forward_in_turn(x):
        with turn:
            return forward(x)

    module.forward = forward_in_turn
    handle = module.register_forward_pre_hook(wait)
    inputs = [training.x * 0, training.x * 0 + 1]
    errors = []

    def call(x):
        try:
            module(x)
        except BaseException as error:
            errors.append(error)

    debugger = debug(level="L0")
    debugger.start(training.net)
    threads = [threading.Thread(target=call, args=(x,)) for x in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    debugger.stop()
    debugger.step()
    handle.remove()
    assert not errors
    assert not module._forward_pre_hooks
    found = [entry["input_args"][0]["Max"] for entry in debug.dump().data.values()]
    assert sorted(found) == [0.0, 1.0]


def test_an_error_of_a_module_reaches_the_program_and_the_hooks_go(debug):
    training = Trained()

    def fail(module, args):
        raise ValueError("of the program")

    handle = training.net.out.register_forward_pre_hook(fail)
    call = nn.Module.__dict__["__call__"]
    debugger = debug(level="mix")
    debugger.start(training.net)
    with pytest.raises(ValueError, match="of the program"):
        training.net(training.x)
    debugger.stop()
    debugger.step()
    handle.remove()
    assert not training.net.out._forward_pre_hooks
    assert nn.Module.__dict__["__call__"] is call


def test_functions_stay_the_objects_that_they_are(debug):
    before = nn.functional.relu, torch.tanh, Momentum.step
    seen = []
    training = Trained()
    training.net.out.register_forward_hook(
        lambda *_: seen.append((nn.functional.relu, torch.tanh, Momentum.step))
    )
    loss_of(training, debug(level="mix"), steps=1)
    assert seen[0][0] is before[0] and seen[0][2] is before[2]


def test_the_step_of_an_alarm_is_made_again(tmp_path):
    """The batch of the second step is NaN; its calls are repeated bit for bit."""

    def run(training, debugger=None):
        found = loss_of(training, debugger, steps=1)
        training.x = training.x * float("nan")
        return found + loss_of(training, debugger, steps=1)

    settings = {"task": "monitor", "dump_path": str(tmp_path / "dump")}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**settings, "monitor": {"on_alarm": "again", "times": 2}}))
    debugger = probe.PrecisionDebugger(config_path=str(config))
    assert run(Trained(), debugger) == run(Trained())
    debugger.close()
    lines = (tmp_path / "dump/monitor/rank/alarms.jsonl").read_text("utf-8").splitlines()
    answers = [row["key"] for row in map(json.loads, lines) if row["rule"] == "again"]
    assert answers == ["again.repeats"]


def test_run_json_knows_the_parameters_and_the_modules(debug):
    loss_of(Trained(), debug(level="L0"))
    found = json.loads((debug.dump_path / "step0/rank/run.json").read_text())
    assert ["shared", "Linear"] in found["cells"]
    assert found["parameters"]["frozen.weight"]["trainable"] is False
    assert found["parameters"]["blocks.1.bias"]["trainable"] is True


def test_a_model_of_another_kind_is_refused_in_one_line(debug):
    debugger = debug(level="L0")
    with pytest.raises(UsageError, match=r"Allowed: .*Cells; a torch\.nn\.Module, or"):
        debugger.start(object())


def test_functions_of_torch_are_not_taken_for_those_of_mindspore(debug):
    loss_of(Trained(), debug(level="mix", task="tensor"), steps=1)
    reasons = {one.name: one.reason for one in probe.replay(str(debug.dump_path))}
    for name in ("Functional.cross_entropy.0.forward", "Torch.tanh.0.forward"):
        assert reasons[name] == "a function of torch: replay knows those of MindSpore"


def command(*words, folder):
    """Run a program in a folder; return what it did."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=600, env=environment,
    )  # fmt: skip


@pytest.mark.slow
def test_probe_run_records_the_program_as_it_is(tmp_path):
    words = ["-m", "tests.layers.torch_net"]
    bare = command(*words, folder=ROOT)
    options = ["--level", "mix", "--dump-path", str(tmp_path / "dump")]
    done = command("-m", "probe", "run", *options, *words, folder=ROOT)
    assert done.returncode == bare.returncode == 0, done.stderr
    assert done.stdout == bare.stdout
    assert "probe: 3 steps in" in done.stderr
    dump = Dump(tmp_path / "dump/step2/rank")
    assert "Module.out.Linear.backward.0" in dump.data
    assert "Module.optimizer.Momentum.forward.0" in dump.data


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """Return the dump of the program, with arrays."""
    folder = tmp_path_factory.mktemp("golden") / "dump"
    options = ["--level", "mix", "--task", "tensor", "--dump-path", folder]
    done = command("-m", "probe", "run", *options, "-m", "tests.layers.torch_net", folder=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


def tried(folder, *words):
    """Return what ``probe try`` says of the program whose block 1 is scaled."""
    program = ["-m", "tests.layers.torch_net", 3, 1.5]
    done = command("-m", "probe", "try", *words, "-o", folder / "try", *program, folder=ROOT)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["blocks.1", pytest.param("Module.blocks.1.Linear.forward.0", marks=pytest.mark.thorough)],
)
def test_golden_outputs_of_the_faulty_module_heal_the_losses(golden, tmp_path, name):
    status, said = tried(tmp_path, "--from", golden, name)
    first = next(line for line in said.splitlines() if line.split()[:1] == ["0"])
    _, unchanged, changed, losses = first.split()
    assert status == 0, said
    assert changed == losses != unchanged


def found(folder, *words):
    """Return the answer of ``probe find``."""
    done = command("-m", "probe", "find", "--json", *words, folder=folder)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.thorough
def test_a_search_beside_a_golden_program_proves_the_faulty_module(tmp_path):
    program = ["-m", "tests.layers.torch_net", 5]
    answer = found(tmp_path, "--golden", " ".join(map(str, program)), *program, 1.5)
    assert answer["cause"]["source"] == "module.forward = lambda x: forward(x) * factor"
    assert answer["cause"]["strength"] == "experiment"


@pytest.mark.thorough
def test_a_search_alone_names_the_call_that_makes_nan(tmp_path):
    text = (ROOT / "tests" / "layers" / "torch_net.py").read_text()
    text = text.replace("return self.out(x)", "x = torch.log(x - 2.0)\n        return self.out(x)")
    (tmp_path / "mine.py").write_text(text)
    answer = found(tmp_path, "mine.py", 4)
    assert answer["cause"]["source"] == "x = torch.log(x - 2.0)"


@pytest.mark.thorough
def test_an_update_gets_the_parameters_of_the_golden_run(golden, tmp_path):
    status, said = tried(tmp_path, "--from", golden, "Module.optimizer.Momentum")
    assert status == 0, said
    assert "THE TRAINING WAS CHANGED: the output of Module.optimizer.Momentum" in said


@pytest.mark.slow
def test_a_module_is_left_out(tmp_path):
    status, said = tried(tmp_path, "--skip", "blocks.1")
    assert status == 0, said
    assert "THE TRAINING WAS CHANGED: blocks.1 left out" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--cpu", "--cpu: Functional.linear.0.forward cannot be computed on the host"),
        pytest.param(
            "--formula",
            "--formula: Functional.linear has no formula",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_functions_of_torch_have_no_twin_of_mindspore(tmp_path, option, words):
    status, said = tried(tmp_path, option, "Functional.linear.0")
    assert status == 2
    assert f"probe: the changed run has failed: {words}" in said


@pytest.mark.thorough
def test_a_drill_names_each_fault_of_the_largest_size(tmp_path):
    words = ["--steps", 12, "-o", tmp_path / "drill", "--json", tmp_path / "answer.json"]
    done = command("-m", "probe", "drill", *words, "-m", "tests.layers.torch_net", 12, folder=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The clean run has 0 alarms" in done.stdout
