# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parts of `probe run` by themselves: rounds of optimizers, models, steps, imports, the program's traceback."""

from __future__ import annotations

import gc
import re
import sys
import types
from dataclasses import fields
from types import SimpleNamespace

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from probe.config.config_file import ConfigFile
from probe.config.settings import Settings, meanings
from probe.launch.awaited_import import AwaitedImport
from probe.launch.command import _parser
from probe.launch.models import CellRole as Role, ModelFinder as Models, Rounds, reached
from probe.launch.perturb import Perturbation
from probe.launch.program import TOOL, _show, _trimmed
from probe.launch.served_msprobe import ServedMsprobe
from probe.launch.watch import Steps, Watch


def net(*widths):
    return nn.SequentialCell([nn.Dense(a, b) for a, b in zip(widths, widths[1:])])


def sgd(model):
    return nn.SGD(model.trainable_params(), 0.1)


# -- rounds ----------------------------------------------------------------------------------------------------------


def ended(rounds, *updates):
    """Note updates in turn; return after which of them the step ended."""
    found = []
    for place, optimizer in enumerate(updates):
        rounds.note(optimizer)
        if rounds.ends_with(optimizer):
            found.append(place)
            rounds.end()
    return found


def made(*optimizers):
    rounds = Rounds()
    for optimizer in optimizers:
        rounds.add(optimizer)
    return rounds


def test_with_one_optimizer_each_update_ends_a_step():
    one = sgd(net(2, 2))
    assert ended(made(one), one, one) == [0, 1]


def test_with_several_a_step_ends_when_all_had_their_turn():
    one, two = sgd(net(2, 2)), sgd(net(2, 2))
    rounds = made(one, two)
    assert rounds.has_several
    assert ended(rounds, one, two, two, one) == [1, 3]


def test_an_optimizer_that_is_gone_is_not_waited_for():
    one, two = sgd(net(2, 2)), sgd(net(2, 2))
    rounds = made(one, two)
    assert ended(rounds, one, two) == [1]
    del two
    gc.collect()
    assert rounds.optimizers() == [one]
    assert not rounds.has_several
    assert ended(rounds, one, one) == [0, 1]


def test_only_those_of_the_last_step_are_waited_for():
    one, two, idle = (sgd(net(2, 2)) for _ in range(3))
    rounds = made(one, two, idle)
    rounds.note(one), rounds.note(two)
    rounds.end()
    assert ended(rounds, two, one) == [1]
    assert ended(rounds, idle) == [0]  # a new one is no part of the round


GRADIENT, COMPILED, UPDATE = "gradient", "compiled", "update"


@pytest.mark.parametrize(
    ("events", "names_gradient", "may_begin"),
    [
        ([], False, True),  # nothing is known yet
        ([GRADIENT, UPDATE], False, False),  # an average of weights
        ([GRADIENT, UPDATE], True, True),  # another phase of the training
        ([COMPILED, UPDATE], False, True),  # a compiled gradient
        ([GRADIENT, UPDATE, COMPILED, UPDATE], False, True),
        ([COMPILED, GRADIENT, UPDATE], False, True),  # either may be
        ([COMPILED, UPDATE, GRADIENT, UPDATE], False, True),  # two nets, one of them is compiled
        ([UPDATE], False, True),  # gradients by hand
    ],
)
def test_a_compiled_function_begins_a_step_unless_gradients_come_without_it(
    events, names_gradient, may_begin
):
    optimizer = sgd(net(2, 2))
    rounds = made(optimizer)
    for event in events:
        if event == GRADIENT:
            rounds.note_gradient()
        elif event == COMPILED:
            rounds.note_compiled(False)
        else:
            rounds.note(optimizer)
    assert rounds.note_compiled(names_gradient) is may_begin


def test_the_parameters_of_a_step_belong_to_optimizers():
    model, other = net(2, 2), net(2, 2)
    optimizer = sgd(model)
    rounds = made(optimizer)
    assert rounds.train(model.trainable_params()) and rounds.train(model.trainable_params()[0])
    assert not rounds.train(other.trainable_params())
    assert not rounds.repeats(model.trainable_params())
    rounds.note(optimizer)
    assert rounds.repeats(model.trainable_params())
    assert not rounds.repeats([*model.trainable_params(), *other.trainable_params()])


# -- models ----------------------------------------------------------------------------------------------------------


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Dense(2, 2), nn.ReLU()

    def construct(self, x):
        return self.act(self.fc(x))


def test_the_part_of_each_cell():
    model = Inner()
    optimizer = sgd(model)
    models = Models(made(optimizer), any_parameters=False)
    wrapped = nn.WithLossCell(model, nn.MSELoss())
    cells = {
        optimizer: Role.OPTIMIZER,
        nn.TrainOneStepCell(wrapped, optimizer): Role.TRAINER,
        wrapped: Role.WRAPPER,
        model: Role.MODEL,
        model.act: Role.OTHER,
        Inner(): Role.OTHER,
    }
    assert [models.role(cell) for cell in cells] == list(cells.values())
    assert models.below([nn.TrainOneStepCell(wrapped, optimizer)]) == [model]
    assert Models(Rounds(), any_parameters=True).role(Inner()) is Role.MODEL


def test_a_new_optimizer_makes_models():
    model, rounds = Inner(), Rounds()
    models = Models(rounds, any_parameters=False)
    assert models.role(model) is Role.OTHER
    optimizer = sgd(model)
    rounds.add(optimizer)
    models.forget()
    assert models.role(model) is Role.MODEL


def test_the_partners_of_a_model_hold_all_other_trained_parameters_and_few_others():
    """Of two Cells with the parameters that are left, the one without further parameters is the model."""
    first, second, third = Inner(), Inner(), Inner()
    third.update_parameters_name("third.")
    both = nn.SequentialCell([second, nn.Dense(2, 9)])  # holds parameters that nobody trains
    optimizer = nn.SGD(
        [*first.trainable_params(), *second.trainable_params(), *third.trainable_params()], 0.1
    )
    models = Models(made(optimizer), any_parameters=False)
    found = models.with_partners(first)
    assert found == [first, second, third]
    assert both not in found


def test_of_equal_cells_the_outermost_is_the_model():
    first, inner = Inner(), Inner()
    outer = nn.SequentialCell([inner])
    optimizer = nn.SGD([*first.trainable_params(), *inner.trainable_params()], 0.1)
    assert Models(made(optimizer), any_parameters=False).with_partners(first) == [first, outer]


def test_the_cells_that_a_function_names():
    model, other, unused = Inner(), Inner(), Inner()

    def loss(x):
        return other(x)

    def step(x):
        return model(x) + loss(x)

    assert {id(cell) for cell in reached(step).cells} == {id(model), id(other)}
    assert unused not in reached(step).cells
    assert not reached(step).gradients


def test_the_gradients_and_parameters_that_a_function_names():
    model = Inner()
    weights = tuple(model.trainable_params())
    by_function = ms.value_and_grad(model, None, weights)
    by_operation = ops.GradOperation(get_by_list=True)
    for function in (
        lambda x: by_function(x),
        lambda x: by_operation(model, weights)(x),
    ):
        found = reached(function)
        assert found.gradients
        assert found.has_any({id(weights[0])})
        assert not found.has_any({id(weights[1])})


# -- steps -----------------------------------------------------------------------------------------------------------


class Debugger:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def start(self, model):
        self.told.append(model)

    def stop(self):
        self.told.append("stop")

    def step(self):
        self.told.append("step")


class Partners:
    """Finds a model's partners."""

    def __init__(self, partners=()):
        self.partners, self.rounds = list(partners), Rounds()

    def with_partners(self, model):
        return [model, *self.partners]


def steps(*partners):
    debugger = Debugger()
    return Steps(
        lambda: debugger, Partners(partners), Perturbation("", ConfigFile(None)), lambda: None
    ), debugger.told


def test_a_step_begins_once_and_ends_once():
    made_steps, told = steps()
    one = nn.ReLU()
    made_steps.begin([one])
    made_steps.begin([nn.ReLU()])
    made_steps.end()
    made_steps.end()
    assert told == [one, "stop", "step"]
    assert not made_steps.is_open and not made_steps.is_due


def test_the_models_of_a_step_are_known_in_the_next():
    one, two = nn.ReLU(), nn.ReLU()
    made_steps, told = steps(two)
    made_steps.begin()
    assert made_steps.adopt(one) and not made_steps.adopt(two) and not made_steps.adopt(one)
    made_steps.end()
    made_steps.begin()
    assert told[-3:] == ["stop", "step", [one, two]]


def test_a_further_model_of_a_step_comes_to_the_others_and_one_of_a_new_step_replaces_them():
    one, two, three = nn.ReLU(), nn.ReLU(), nn.ReLU()
    made_steps, told = steps()
    made_steps.begin()
    made_steps.adopt(one)
    made_steps.adopt(two)
    assert told[-1] == [one, two]
    made_steps.end()
    made_steps.begin()
    made_steps.adopt(three)
    assert told[-1] is three


@pytest.mark.parametrize("is_called", [False, True])
def test_a_part_of_a_later_model_gives_way_to_it_unless_it_was_called_alone(is_called):
    one, part = nn.ReLU(), nn.ReLU()
    whole = nn.SequentialCell([part])
    made_steps, told = steps(part)
    made_steps.begin()
    for model in [one, *([part] if is_called else []), whole]:
        made_steps.adopt(model)
    assert told[-1] == ([one, part, whole] if is_called else [one, whole])


# -- what ends a step ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("finite", "is_left_out"), [(True, False), (False, True)])
def test_a_step_ends_where_the_loss_scaler_leaves_the_update_out(finite, is_left_out):
    scaler = ms.amp.DynamicLossScaler(1024, 2, 10)
    made_steps, told = steps()
    rounds = Rounds()
    watch = Watch(made_steps, Models(rounds, False), rounds, at_model=False)
    watch.install()
    try:
        made_steps.begin()
        scaler.adjust(Tensor(finite))
    finally:
        watch.remove()
    assert ("step" in told) is is_left_out


def test_a_training_is_cut_into_steps_and_its_model_is_found():
    made_steps, told = steps()
    rounds = Rounds()
    models = Models(rounds, False)
    made_steps._finder = models
    watch = Watch(made_steps, models, rounds, at_model=False)
    watch.install()
    try:
        model = Inner()
        optimizer = sgd(model)
        grad = ms.value_and_grad(lambda x: ops.square(model(x)).sum(), None, optimizer.parameters)
        for _ in range(2):
            _, gradients = grad(Tensor(np.ones((1, 2), np.float32)))
            optimizer(gradients)
    finally:
        watch.remove()
    assert told.count("step") == 2
    assert told[-3:] == [model, "stop", "step"]


# -- imports and the program -----------------------------------------------------------------------------------------


def test_an_import_is_waited_for(tmp_path, monkeypatch):
    (tmp_path / "awaited_module.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    awaited = AwaitedImport(
        "awaited_module", lambda: seen.append(sys.modules["awaited_module"].value)
    )
    awaited.install()
    import awaited_module  # noqa: F401

    assert seen == [3]
    assert awaited not in sys.meta_path
    AwaitedImport("awaited_module", lambda: seen.append("there")).install()
    assert seen == [3, "there"]
    del sys.modules["awaited_module"]


@pytest.mark.parametrize("is_forced", [False, True])
def test_an_msprobe_that_is_installed_is_hidden_only_on_demand(monkeypatch, is_forced):
    monkeypatch.setattr(sys, "meta_path", ["Python's"])
    served = ServedMsprobe(lambda: int, is_forced)
    served.install()
    assert sys.meta_path == ([served, "Python's"] if is_forced else ["Python's", served])
    assert served.find_spec("other.mindspore") is None
    monkeypatch.setitem(
        sys.modules, "msprobe", SimpleNamespace(__spec__=served.find_spec("msprobe"))
    )
    assert served.find_spec("msprobe.mindspore").loader is served
    with pytest.raises(ImportError, match="has no other"):
        served.find_spec("msprobe.other")
    monkeypatch.setitem(sys.modules, "msprobe", SimpleNamespace(__spec__=None))
    assert served.find_spec("msprobe.other") is None


def failing(path):
    """Return an exception whose only frame lies in a file."""
    scope = {}
    exec(compile("def fail(error):\n    raise error", path, "exec"), scope)
    error = ValueError(path)
    try:
        scope["fail"](error)
    except ValueError:
        error.__traceback__ = error.__traceback__.tb_next
    return error


def frames(error):
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return found


def test_no_exception_of_a_chain_has_frames_of_the_tool():
    # a file that exists: coverage asks for the source of each file that ran
    errors = [failing(f"{TOOL}__init__.py") for _ in range(4)]
    errors[0].__context__, errors[1].__cause__, errors[1].__context__ = (
        errors[1],
        errors[2],
        errors[3],
    )
    shown = []
    _show(
        lambda kind, error, trace: shown.append(trace),
        ValueError,
        errors[0],
        errors[0].__traceback__,
    )
    assert [frames(error) for error in errors] == [[], [], [], []]
    assert shown == [None]


def test_the_frames_of_the_program_stay():
    own = failing("/me/train.py")
    assert frames(types.SimpleNamespace(__traceback__=_trimmed(own.__traceback__))) == [
        "/me/train.py"
    ]


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            "monitor",
            ["--interval", "5", "--alarm-steps", "2", "--max-alarms", "3", "--keep-steps", "1"],
        ),
        ("nan_check", ["--last-calls", "4", "--max-hits", "2", "--no-saved-tensors"]),
        ("tensor", ["--sample-num", "7", "--max-disk", "1000000", "--saved-tensors"]),
    ],
)
def test_whole_numbers_and_switches_are_options(task, words, tmp_path):
    given = {
        name: value
        for name, value in vars(_parser().parse_args(words)).items()
        if value is not None
    }
    del given["step_at"], given["as_msprobe"], given["lang"]
    settings = ConfigFile(None, task=task, dump_path=str(tmp_path), **given).load()
    for option, value in zip(words[::2], words[1::2]):
        if not value.startswith("--"):
            assert getattr(settings, option[2:].replace("-", "_")) == int(value)
    assert settings.saved_tensors is given.get("saved_tensors")


def test_the_help_describes_every_setting():
    options = {action.dest: action.help for action in _parser()._actions}
    assert [row.name for row in fields(Settings) if not options[row.name]] == []
    assert _parser().format_help().count('"nan_check"') == len(
        re.findall('"nan_check"', " ".join(meanings().values()))
    )


def test_each_setting_that_takes_numbers_takes_them_as_options():
    parser = _parser("en")
    numeric = [
        row.name
        for row in fields(Settings)
        if not {"int", "float"}.isdisjoint(str(row.type).split(" | "))
    ]
    assert {"rolling", "budget", "interval"} <= set(numeric)
    for name in numeric:
        given = parser.parse_args([f"--{name.replace('_', '-')}", "20"])
        assert getattr(given, name) == 20, name
