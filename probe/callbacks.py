# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Callbacks that call start, stop and step around every step of a training.

MsprobeStep is for Model.train, and MsprobeInitStep numbers its first step. TrainerCallback is for other trainers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mindspore.train.callback import Callback

from probe.debugger import PrecisionDebugger, session_of_process
from probe.errors import UsageError, raised_at_caller

if TYPE_CHECKING:
    from probe.session.session import Session


class SessionStep(Callback):  # type: ignore[misc]  # MindSpore has no types
    """A callback of ``Model.train`` that records every step in the session that a function returns."""

    def __init__(self, session: Callable[[], Session]) -> None:
        super().__init__()
        self._session = session
        self._network: Any = None

    def on_train_begin(self, run_context: Any) -> None:
        """Find the network. Calls recorded before training are discarded: they belong to no step."""
        arguments = run_context.original_args()
        network = getattr(arguments, "network", None)
        loss = getattr(arguments, "loss_fn", None)
        self._network = self._session().ask(
            lambda recording: recording.begin_training(network, loss)
        )

    @raised_at_caller
    def on_train_step_begin(self, run_context: Any) -> None:
        """Begin to record."""
        self._session().start(self._network)
        self._network = None  # the session keeps it

    @raised_at_caller
    def on_train_step_end(self, run_context: Any) -> None:
        """End the step."""
        self._session().stop()
        self._session().step()

    def on_train_end(self, run_context: Any) -> None:
        """Remove all hooks, also if the last step was cut short."""
        self._session().stop()


class MsprobeStep(SessionStep):
    """A callback of ``Model.train`` that records every training step.

    The model is the network of ``Model``, unless ``debugger.start(model)`` was called before training. The loss Cell of
    ``Model`` is recorded too, as ``Cell.loss_fn``.

    Args:
        debugger: the PrecisionDebugger.

    Example::

        model.train(1, data, callbacks=[MsprobeStep(PrecisionDebugger(config_path="config.json"))])
    """

    def __init__(self, debugger: PrecisionDebugger) -> None:
        _checked("MsprobeStep", debugger)
        super().__init__(session_of_process)


class MsprobeInitStep(Callback):  # type: ignore[misc]  # MindSpore has no types
    """A callback of ``Model.train`` that numbers the steps of a resumed training from those of its checkpoint.

    The number is that of the finished steps: the callback parameter ``cur_step_num``, or the optimizer's
    ``global_step``, which a checkpoint restores.

    Example::

        model.train(9, data, callbacks=[MsprobeInitStep(), MsprobeStep(debugger)], initial_epoch=7)
    """

    def on_train_begin(self, run_context: Any) -> None:
        """Number the next step."""
        arguments = run_context.original_args()
        networks = (arguments.get(name) for name in ("optimizer", "train_network"))
        optimizers = (getattr(network, "optimizer", network) for network in networks)
        counters = (getattr(optimizer, "global_step", None) for optimizer in optimizers)
        done = (int(counter.asnumpy().ravel()[0]) for counter in counters if counter is not None)
        step = max(int(arguments.get("cur_step_num") or 0), *done, 0)
        if step:
            PrecisionDebugger.set_init_step(step)


class TrainerCallback:
    """A callback that records every step of a trainer: MindFormers' in PyNative mode, or one like transformers'.

    It has every method ``on_…`` that a trainer may call. Arguments that it does not know are ignored. The model is
    that of the trainer, unless one is given here. A resumed training goes on with the trainer's number of the step.

    Args:
        debugger: the PrecisionDebugger.
        model: the Cell whose calls are recorded, or a list of Cells.

    Example::

        Trainer(…, callbacks=[TrainerCallback(PrecisionDebugger(config_path="config.json"))])
    """

    def __init__(self, debugger: PrecisionDebugger, model: Any = None) -> None:
        self._debugger = _checked("TrainerCallback", debugger)
        self._model = model

    def on_train_begin(
        self, args: Any = None, state: Any = None, *others: Any, **named: Any
    ) -> None:
        """Number the next step."""
        done = getattr(state, "global_step", 0)
        if isinstance(done, int) and done > 0:
            self._debugger.stop()
            PrecisionDebugger.set_init_step(done)

    def on_step_begin(self, *others: Any, **named: Any) -> None:
        """Begin to record."""
        self._debugger.start(named.get("model") if self._model is None else self._model)

    def on_step_end(self, *others: Any, **named: Any) -> None:
        """End the step."""
        self._debugger.stop()
        self._debugger.step()

    def on_train_end(self, *others: Any, **named: Any) -> None:
        """Remove all hooks, also if the last step was cut short."""
        self._debugger.stop()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *others, **named: None
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


def _checked(name: str, debugger: Any) -> PrecisionDebugger:
    if isinstance(debugger, PrecisionDebugger):
        return debugger
    raise UsageError(
        f"{name}(): debugger is {type(debugger).__name__}. Allowed: a PrecisionDebugger."
    )
