# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore's compiler never meets a hook of probe: trainings with each transform are bitwise as without probe."""

from __future__ import annotations

import json
import sys

import mindspore as ms
import pytest

from probe.capture.autograd.leaf_hooks import LeafHooks
from tests.programs.transforms import SETTINGS
from tests.support import processes
from tests.support.paths import ROOT, environment
from tests.support.transforms import Net, Transforms, X, train

pytestmark = pytest.mark.slow

#: those that do not compile a gradient, or take seconds to compile
_OFTEN = "jvp jit_of_gradient jit_of_a_parameter".split()


@pytest.fixture(scope="module")
def bare():
    """Return the results of a training without probe, made once for each transform."""
    known = {}

    def results(name):
        if name not in known:
            known[name] = train(name)
        return known[name]

    return results


@pytest.mark.parametrize("name", _OFTEN)
def test_a_training_with_a_transform_is_as_without_probe(debug, bare, name):
    assert train(name, debug(level="mix", step=[0, 1])) == bare(name)
    assert debug.dump(1).names("parameters_grad")


@pytest.mark.parametrize("task", ["monitor", "debug", "guard"])
def test_a_training_with_a_transform_is_as_without_probe_in_each_task(debug, bare, task):
    assert train("jvp", debug(**SETTINGS[task])) == bare("jvp")


def test_a_parameter_that_is_saved_at_level_debug_can_be_compiled(debug):
    net = Net()
    x = ms.Tensor(X, ms.float32)
    transforms = Transforms(net)
    expected = transforms.jit_of_gradient(x).asnumpy().tobytes()
    debugger = debug(level="debug")
    gradient = ms.grad(transforms.total, None, [net.first.weight])
    gradient(x)
    debugger.save(net.first.weight, "weight")
    assert transforms.jit_of_gradient(x).asnumpy().tobytes() == expected
    (found,) = gradient(x)
    debugger.step()
    saved = json.loads((debug.dump_path / "step0" / "rank" / "debug.json").read_text())["data"]
    assert saved["weight_grad.0.debug"]["Max"] == pytest.approx(found.asnumpy().max())


def test_gradients_are_recorded_after_a_compilation(debug):
    """The hooks are back: each gradient that arrives after the compilation has its record."""
    train("jvp", debug(level="L0", task="statistics", step=[0]), steps=1)
    places = {
        place for name in debug.dump().names("parameters_grad") for place in debug.dump().data[name]
    }
    assert places == {"weight", "bias"}


def test_after_step_the_compiler_has_its_own_methods(debug):
    from probe.executor import found_in

    executors = [found_in("_JitExecutor"), found_in("_CellGraphExecutor")]
    before = [dict(vars(executor)) for executor in executors]
    train("jvp", debug(level="mix", step=[0]))
    assert [dict(vars(executor)) for executor in executors] == before


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ("L0,L1,mix", "jvp,jit_of_a_parameter"),
        ("golden,nan_check,tensor", "jvp"),
    ],
)
def test_a_program_with_transforms_is_as_without_probe(tmp_path, settings, names):
    """Here PyNative is asynchronous, and MindSpore's trace finds the source of each frame; not so under pytest.

    ``make transforms`` compares all transforms, with all settings.
    """
    program = [sys.executable, "-m", "tests.programs.transforms"]
    command = [*program, str(tmp_path), "--settings", settings, "--names", names]
    done = processes.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("trainings compared, none different")


def test_an_error_of_ours_at_a_compilation_never_reaches_the_training(debug, monkeypatch, caplog):
    expected = train("jit_of_gradient", steps=1)
    debugger = debug(level="L0")
    register = ms.Parameter.register_hook
    is_planted = []

    def fail(parameter, hook):
        if is_planted:
            raise ValueError("planted")
        return register(parameter, hook)

    compiled = LeafHooks._turn_off

    def plant(hooks):
        is_planted.append(True)
        compiled(hooks)

    monkeypatch.setattr(ms.Parameter, "register_hook", fail)
    monkeypatch.setattr(LeafHooks, "_turn_off", plant)
    assert train("jit_of_gradient", debugger, steps=1) == expected
    assert is_planted
    assert "putting hooks on parameters after a compilation failed" in caplog.text
