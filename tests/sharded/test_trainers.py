# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""TrainerCallback in trainers with the documented signatures of MindFormers' and of transformers' callbacks."""

from __future__ import annotations

from types import SimpleNamespace

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from probe import UsageError
from probe.callbacks import TrainerCallback
from probe.capture.autograd.nodes import AutogradNodes
from probe.executor import pynative_executor
from probe.private_names import missing_names
from tests.support.dumps import Dump


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x):
        return ops.relu(self.fc(x)).sum()


def net():
    ms.set_seed(1)
    return Net()


class Trainer:
    """The loop that all trainers share.

    Args:
        model: a Cell, or a list of Cells.
        callbacks: the callbacks.
        done: the number of steps that a checkpoint has.
    """

    def __init__(self, model, callbacks, done=0):
        self.model, self.callbacks = model, callbacks
        self.cell = model[0] if isinstance(model, list) else model
        self.state = SimpleNamespace(global_step=done, epoch=0)
        self.optimizer = nn.SGD(self.cell.trainable_params(), 0.1)
        self.differentiate = ms.value_and_grad(self.cell, None, self.cell.trainable_params())

    def event(self, name, **named):
        raise NotImplementedError

    def one_step(self):
        loss, gradients = self.differentiate(Tensor(np.ones((2, 4), np.float32)))
        self.optimizer(gradients)
        return loss

    def train(self, steps):
        losses = []
        for name in self.before:
            self.event(name)
        for _ in range(steps):
            self.event("on_step_begin")
            losses.append(float(self.one_step()))
            self.state.global_step += 1
            self.event("on_step_end", loss=losses[-1])
        for name in self.after:
            self.event(name)
        return losses


class MindFormersTrainer(Trainer):
    """Calls ``callback.on_…(args, state, model=…, optimizer=…, lr_scheduler=…, train_dataset=…, eval_dataset=…)``."""

    before, after = (
        ("on_begin", "on_train_begin", "on_epoch_begin"),
        ("on_epoch_end", "on_train_end", "on_end"),
    )

    def event(self, name, **named):
        for callback in self.callbacks:
            getattr(callback, name)(
                SimpleNamespace(),
                self.state,
                model=self.model,
                optimizer=self.optimizer,
                lr_scheduler=None,
                train_dataset=None,
                eval_dataset=None,
                **named,
            )


class TransformersTrainer(Trainer):
    """Calls ``callback.on_…(args, state, control, model=…, …)``, and takes another control that one returns."""

    before = ("on_init_end", "on_train_begin", "on_epoch_begin")
    after = (
        "on_substep_end",
        "on_pre_optimizer_step",
        "on_log",
        "on_save",
        "on_epoch_end",
        "on_train_end",
    )

    def event(self, name, **named):
        control = SimpleNamespace(should_training_stop=False)
        for callback in self.callbacks:
            made = getattr(callback, name)(
                SimpleNamespace(),
                self.state,
                control,
                model=self.model,
                processing_class=None,
                optimizer=self.optimizer,
                lr_scheduler=None,
                train_dataloader=None,
                eval_dataloader=None,
                **named,
            )
            assert made is None
        return control


@pytest.mark.parametrize("kind", [MindFormersTrainer, TransformersTrainer])
def test_a_trainer_records_every_step(debug, kind):
    bare = kind(net(), []).train(2)
    assert kind(net(), [TrainerCallback(debug(level="mix"))]).train(2) == bare
    assert sorted(path.name for path in debug.dump_path.iterdir()) == ["step0", "step1"]
    for step in (0, 1):
        data = debug.dump(step).data
        assert {
            "Cell.fc.Dense.forward.0",
            "Cell.fc.Dense.parameters_grad.0",
            "Cell.optimizer.SGD.forward.0",
        } <= set(data)


def test_a_list_of_cells_and_a_resumed_training(debug):
    MindFormersTrainer([net()], [TrainerCallback(debug(level="L0"))], done=7).train(1)
    assert [path.name for path in debug.dump_path.iterdir()] == ["step7"]
    assert "Cell.0.fc.Dense.forward.0" in debug.dump(7).data


def test_a_model_given_to_the_callback_is_the_one_recorded(debug):
    model = net()
    TransformersTrainer(
        model, [TrainerCallback(debug(level="L0"), model=nn.SequentialCell(model))]
    ).train(1)
    assert "Cell.0.fc.Dense.forward.0" in debug.dump().data


def test_other_events_are_ignored_and_other_names_are_none(debug):
    callback = TrainerCallback(debug(level="L0"))
    assert callback.on_some_future_event(1, 2, three=3) is None
    with pytest.raises(AttributeError, match="has no attribute 'step'"):
        callback.step()
    with pytest.raises(UsageError, match="debugger is str"):
        TrainerCallback("config.json")


class FlagTrainer(MindFormersTrainer):
    """Has the gradient flag on in every event and every forward, as MindFormers with hyper-parallel."""

    def __init__(self, model, callbacks):
        super().__init__(model, callbacks)
        self.differentiate = ms.value_and_grad(lambda x: model(x), None, model.trainable_params())

    def event(self, name, **named):
        pynative_executor().set_grad_flag(True)
        super().event(name, **named)
        assert pynative_executor().grad_flag()


def test_the_gradient_flag_may_be_on_for_good(debug):
    try:
        bare = FlagTrainer(net(), []).train(2)
        assert FlagTrainer(net(), [TrainerCallback(debug(level="mix"))]).train(2) == bare
    finally:
        pynative_executor().set_grad_flag(False)
    data = Dump(debug.dump_path / "step1" / "rank").data
    assert {"Cell.fc.Dense.backward.0", "Cell.fc.Dense.parameters_grad.0"} <= set(data)


def test_the_self_test_runs_where_the_flag_is_on(monkeypatch):
    monkeypatch.setattr(
        AutogradNodes, "newest_sequence_nr", lambda self: -1
    )  # as in a MindSpore that has changed
    pynative_executor().set_grad_flag(True)
    try:
        assert not AutogradNodes().works
        assert list(missing_names()) == []
        assert pynative_executor().grad_flag()
    finally:
        pynative_executor().set_grad_flag(False)
    assert not AutogradNodes().works
