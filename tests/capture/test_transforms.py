# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore's compiler never meets a hook of probe: trainings with each transform are bitwise as without probe."""

from __future__ import annotations

import json
import sys

import mindspore as ms
import pytest

from probe.capture.autograd.leaf_hooks import LeafHooks
from probe.launch.program import show_runpy
from tests.support import processes
from tests.support.paths import ROOT, environment
from tests.support.thorough import thorough_but
from tests.support.transforms import NAMES, Net, Transforms, X, train

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


def _prepare(name):
    """Skip a transform that this Python lacks; let the trace find the source of each frame of ``python -m pytest``."""
    if name == "jit_by_trace":
        show_runpy()
    if name == "jit_of_bytecode" and sys.version_info >= (3, 12):
        pytest.skip("MindSpore's bytecode capture does not support Python 3.12")


@pytest.mark.parametrize("name", thorough_but(_OFTEN, NAMES))
@pytest.mark.parametrize("level", thorough_but(["mix"], ["L0", "L1", "mix"]))
def test_a_training_with_a_transform_is_as_without_probe(debug, bare, name, level):
    _prepare(name)
    assert train(name, debug(level=level, step=[0, 1])) == bare(name)
    assert debug.dump(1).names("parameters_grad") if level != "L1" else debug.dump(1).names("forward")


TASKS = {
    "nan_check": {"task": "nan_check"},
    "monitor": {"task": "monitor", "level": "L1"},
    "tensor": {"task": "tensor"},
    "guard": {"saved_tensors": True},
    "debug": {"level": "debug"},
}


@pytest.mark.parametrize("name", thorough_but(["jvp"], NAMES))
@pytest.mark.parametrize("task", thorough_but(["monitor", "debug", "guard"], list(TASKS)))
def test_a_training_with_a_transform_is_as_without_probe_in_each_task(debug, bare, name, task):
    _prepare(name)
    assert train(name, debug(**{"level": "mix", **TASKS[task]})) == bare(name)


@pytest.mark.parametrize("name", thorough_but(["jvp"], NAMES))
def test_a_training_with_a_transform_is_as_without_probe_beside_a_golden_run(debug, bare, name):
    _prepare(name)
    golden = debug(level="mix", dump_path=str(debug.path / "golden"))
    assert train(name, golden) == bare(name)
    assert train(name, debug(level="mix", golden=str(debug.path / "golden"))) == bare(name)


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
    places = {place for name in debug.dump().names("parameters_grad") for place in debug.dump().data[name]}
    assert places == {"weight", "bias"}


def test_after_step_the_compiler_has_its_own_methods(debug):
    from probe.executor import found_in

    executors = [found_in("_JitExecutor"), found_in("_CellGraphExecutor")]
    before = [dict(vars(executor)) for executor in executors]
    train("jvp", debug(level="mix", step=[0]))
    assert [dict(vars(executor)) for executor in executors] == before


#: runs some transforms where PyNative is asynchronous, which the first operation of a process settles
ASYNCHRONOUS = """
import json, sys
from probe import PrecisionDebugger
from tests.support.transforms import train

for name in sys.argv[2:]:
    bare = train(name)
    for level in ("L0", "L1", "mix"):
        debugger = PrecisionDebugger(dump_path=f"{sys.argv[1]}/{name}-{level}", level=level)
        assert train(name, debugger) == bare, (name, level)
print("equal")
"""


@pytest.mark.thorough
@pytest.mark.parametrize("names", ["jvp jit_of_a_parameter", "jacfwd jit_of_gradient hessian vjp"])
def test_an_asynchronous_training_with_a_transform_is_as_without_probe(tmp_path, names):
    command = [sys.executable, "-c", ASYNCHRONOUS, str(tmp_path), *names.split()]
    done = processes.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "equal"
    assert not list(tmp_path.rglob("dump_error_info.log"))


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
