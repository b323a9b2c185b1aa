# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger: the public API."""

from __future__ import annotations

import atexit
import logging
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Union

from probe.config.config_file import ConfigFile
from probe.config.loading import PathLike
from probe.errors import UsageError, raised_at_caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from mindspore import nn

    from probe.series.alarm import Alarm
    from probe.session.session import Session, StepObserver

    Models = Union[
        nn.Cell, list[nn.Cell], tuple[nn.Cell, ...]
    ]  # the Cell whose calls are recorded, or several

_log = logging.getLogger("probe")


class PrecisionDebugger:
    """Records the calls of a training, with their values, in ``{dump_path}/step{N}/rank{R}/``.

    A process has one debugger. With equal settings, a new debugger continues the old one. With different settings it
    replaces the old one, whose files are completed first, also between start and stop. All methods work on the object
    and on the class, so another file can call ``PrecisionDebugger.stop()``.

    Args:
        config_path: a settings file in msprobe's form, .json or .yaml; without it the defaults apply.
        task: "statistics", "tensor", "structure", "nan_check" or "monitor". This and the arguments below override the
            file.
        dump_path: the folder of the dump.
        level: "L0" for Cells, "L1" for APIs and Primitives, "mix" for both, "L2" for kernels by MindSpore's own dump,
            "debug" for values that ``save`` names.
        step: the steps to record: numbers, texts like "3", and ranges like "4-6".

    Raises:
        SettingsError: when a setting is wrong, or ``dump_path`` cannot be written; the message names the key, the
            value and the allowed values.
        UsageError: when processes were launched together and ``dump_path`` holds another run's dump.

    Example::

        debugger = PrecisionDebugger(config_path="config.json")
        for x, y in data:
            debugger.start(model)
            loss, gradients = train_one_step(x, y)
            debugger.stop()
            debugger.step()
    """

    #: the current session; used by class-level calls such as PrecisionDebugger.stop()
    _living: ClassVar[weakref.ref[Session] | None] = None

    @raised_at_caller
    def __init__(
        self,
        config_path: PathLike | None = None,
        task: str | None = None,
        dump_path: PathLike | None = None,
        level: str | None = None,
        step: Any = None,
    ) -> None:
        source = ConfigFile(config_path, task=task, dump_path=dump_path, level=level, step=step)
        self._session = open_session(source)

    def __repr__(self) -> str:
        settings = self._session.settings
        state = self._session.state.value
        named = (
            f"task={settings.task!r}, level={settings.level!r}, dump_path={settings.dump_path!r}"
        )
        return f"PrecisionDebugger({named}, {state})"

    @classmethod
    @raised_at_caller
    def start(
        cls,
        model: Models | None = None,
        token_range: list[int] | None = None,
        rank_id: int | None = None,
    ) -> None:
        """Begin to record, if the settings select this step and rank.

        Args:
            model: the Cell, or list of Cells, whose Cells and Primitives are recorded. The first start at level L0 or
                mix needs it; later starts keep it.
            token_range: ``[a, b]``: record only the forwards a to b of the model after this start, both included,
                counted from 0. For loops that generate tokens.
            rank_id: the number of the rank folder, instead of the rank of the launcher or communicator.

        Raises:
            UsageError: for arguments that are not allowed, for settings that GRAPH_MODE does not support, if the model
                is compiled already, and if ``dump_path`` holds another run's dump.
        """
        session_of_process().start(model, token_range, rank_id)

    @classmethod
    def recording(
        cls,
        model: Models | None = None,
        token_range: list[int] | None = None,
        rank_id: int | None = None,
    ) -> RecordingBlock:
        """Record inside a ``with`` block: ``start`` on entry, ``stop`` on exit, also on an exception.

        ``step`` stays yours. The arguments and errors are those of ``start``.

        Example::

            for x, y in data:
                with debugger.recording(model):
                    loss, gradients = train_one_step(x, y)
                debugger.step()
        """
        return RecordingBlock(cls, model, token_range, rank_id)

    @classmethod
    @raised_at_caller
    def stop(cls) -> None:
        """End the recording and write the documents; ``start`` may follow, in the same step or the next.

        MindSpore is then in its original state, except for communication handles that are still in flight. Until
        ``step``, a later backward still adds its entries, and waiting for such a handle still adds the output.
        """
        session_of_process().stop()

    @classmethod
    @raised_at_caller
    def forward_backward_dump_end(cls) -> None:
        """Do the same as ``stop``: its name in older versions of msprobe."""
        session_of_process().stop()

    @classmethod
    @raised_at_caller
    def step(cls) -> None:
        """End the step: its documents are complete, and the next start belongs to the next step. Implies ``stop``."""
        session_of_process().step()

    @classmethod
    @raised_at_caller
    def set_init_step(cls, step: int) -> None:
        """Number the next step ``step``, for a training that was resumed.

        Raises:
            UsageError: when ``step`` is no whole number from 0, and between start and stop.
        """
        session_of_process().begin_at(step)

    @classmethod
    @raised_at_caller
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Record a value under a name, at level "debug"; at other levels do nothing. Needs no start and stop.

        Args:
            variable: a tensor, number or text, or lists and dicts of them. Its present value is recorded.
            name: its name in debug.json. Each further save of this name in a step gets the next number.
            save_backward: whether the gradients that arrive at its tensors are recorded too.

        Raises:
            UsageError: when ``name`` is no text, or ``dump_path`` holds another run's dump.

        Example::

            debugger = PrecisionDebugger(level="debug", dump_path="./dump")
            PrecisionDebugger.save(logits, "logits")
            PrecisionDebugger.step()
        """
        session_of_process().save(variable, name, save_backward)

    @classmethod
    @raised_at_caller
    def log(cls, name: str, number: float) -> None:
        """Add a number of yours to this step's row of the monitor; with other tasks do nothing.

        Args:
            name: the name of the series.
            number: its value in this step: a number, or a tensor of one element.

        Raises:
            UsageError: when ``name`` is no text, or ``number`` no number.

        Example::

            debugger.log("validation loss", 0.31)
        """
        session_of_process().ask(lambda recording: recording.log(name, number))

    @classmethod
    @raised_at_caller
    def on_alarm(cls, function: Callable[[Alarm], object] | None) -> None:
        """Call a function for each alarm of the monitor, besides the setting ``on_alarm``; None calls none.

        Args:
            function: it takes the alarm, which has ``rule``, ``series``, ``step`` and ``sentence``.

        Example::

            debugger.on_alarm(lambda alarm: print(alarm.sentence))
        """
        session_of_process().ask(lambda recording: recording.set_alarm_function(function))

    @classmethod
    @raised_at_caller
    def note(cls, **values: Any) -> None:
        """Note hyper-parameters of your own in run.jsonl, for ``probe check``: numbers, texts, dicts, argparse's.

        Secrets are cut: values with such a name, and texts that look like tokens or carry a password.

        Raises:
            UsageError: without values.

        Example::

            PrecisionDebugger.note(learning_rate=3e-4, config=args)
        """
        session_of_process().note(values)

    @classmethod
    @raised_at_caller
    def estimate(cls) -> int:
        """Return the bytes on disk that a step like the last one would take with task "tensor", on this rank.

        With task "monitor" and ``on_alarm`` "again" it is the memory of the copies that the last step has held.
        Else it needs a finished step of task "statistics". The settings ``when``, ``slice`` and ``sample_mode`` are not
        considered; they would make the dump smaller.

        Raises:
            UsageError: when no step of this task has been written yet.

        Example::

            print(f"{PrecisionDebugger.estimate() / 1e9:.1f} GB a step")
        """
        return session_of_process().estimate()

    @classmethod
    @raised_at_caller
    def register_custom_api(cls, module: Any, api_name: str, api_prefix: str | None = None) -> None:
        """Record the calls of your own function too, at levels L1 and mix, from the next start on.

        Args:
            module: the module or class that it is called from.
            api_name: its name there.
            api_prefix: the first part of its entries' names; by default the name of ``module``.

        Raises:
            UsageError: when there is no such function.

        Example::

            PrecisionDebugger.register_custom_api(attention, "flash", "Mine")  # Mine.flash.0.forward
        """
        session_of_process().register(module, api_name, api_prefix)

    @classmethod
    @raised_at_caller
    def restore_custom_api(cls, module: Any, api_name: str) -> None:
        """Stop recording a function that was registered with ``register_custom_api``.

        Raises:
            UsageError: when it was not registered.
        """
        session_of_process().restore(module, api_name)

    @classmethod
    @raised_at_caller
    def close(cls) -> None:
        """Complete the open step and release everything. It may be called twice; all other methods then raise.

        Example::

            PrecisionDebugger.close()
            debugger = PrecisionDebugger(config_path="config.json")  # a new one
        """
        session = living_session()
        if session is not None:
            session.close()  # at exit it is closed again, and so it lives: it knows the folders of this process


class RecordingBlock:
    """The context that ``PrecisionDebugger.recording`` returns; it has the arguments of ``start``."""

    def __init__(self, debugger: type[PrecisionDebugger], *arguments: Any) -> None:
        self._debugger = debugger
        self._arguments = arguments

    @raised_at_caller
    def __enter__(self) -> None:
        self._debugger.start(*self._arguments)

    @raised_at_caller
    def __exit__(self, *error: object) -> None:
        self._debugger.stop()


def open_session(source: ConfigFile, observer: StepObserver | None = None) -> Session:
    """Return the session of this process with these settings: a new one, or that which has them already.

    ``observer`` is told the steps of a new one.
    """
    from probe.golden.golden_recording import GoldenRecording
    from probe.monitor.monitor_recording import MonitorRecording  # imports MindSpore
    from probe.session.dump_recording import DumpRecording
    from probe.session.kernel_recording import KernelRecording
    from probe.session.recording import State
    from probe.session.session import Session

    settings = source.load()
    before = living_session()
    is_open = before is not None and before.state is not State.CLOSED
    # only dump_enable differs: keep the session; the next start() reads the file again
    if (
        before
        and is_open
        and replace(before.settings, dump_enable=settings.dump_enable) == settings
    ):
        before.continue_again()
        return before
    is_monitor = settings.task == "monitor" or settings.is_rolling
    plain = GoldenRecording if settings.golden else DumpRecording
    kind = KernelRecording if settings.level == "L2" else MonitorRecording if is_monitor else plain
    session = Session(settings, source, kind, before, observer)
    if before:
        atexit.unregister(before.close)
    if before and is_open:
        before.hand_over()
        fate = "the dump of the one before in %s is complete"
        if settings.dump_path == before.folder:
            fate = "so did the one before: steps of the same number in %s are replaced"
        _log.warning(
            f"a new PrecisionDebugger records into %s; {fate}",
            settings.dump_path,
            before.folder,
        )
    atexit.register(session.close)
    PrecisionDebugger._living = weakref.ref(session)
    return session


def session_of_process() -> Session:
    """Return the session of this process; raise UsageError where no debugger was made."""
    session = living_session()
    if session is None:
        raise UsageError(
            "there is no PrecisionDebugger yet: make one with PrecisionDebugger(config_path=...)"
        )
    return session


def living_session() -> Session | None:
    """Return the session of this process, or None."""
    return PrecisionDebugger._living() if PrecisionDebugger._living is not None else None
