# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger: the public API."""

from __future__ import annotations

import atexit
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from probe.config.config_file import ConfigFile
from probe.config.settings import PathLike
from probe.errors import UsageError

if TYPE_CHECKING:
    from mindspore import nn

    from probe.session import Session


class PrecisionDebugger:
    """Records what a training computes, call by call, into ``{dump_path}/step{N}/rank{R}/``.

    A process has one debugger. Making it again with equal settings gives the same one under another name. With
    different settings the new debugger replaces the old one; the old one's files are completed first. Its methods work
    on the object and on the class alike, so that another file can say ``PrecisionDebugger.stop()``.

    Args:
        config_path: a settings file in msprobe's form, .json or .yaml; without one the defaults hold.
        task: "statistics", "tensor" or "structure"; like the arguments below it wins over the file.
        dump_path: the folder that the dump goes to.
        level: "L0" for Cells, "L1" for APIs and Primitives, "mix" for both.
        step: the steps to record: numbers, texts like "3", and ranges like "4-6".

    Raises:
        SettingsError: when a setting is wrong; the message names the key, the value and what is allowed.
        UsageError: when another debugger with other settings is just recording.

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

    def __init__(
        self,
        config_path: PathLike | None = None,
        task: str | None = None,
        dump_path: PathLike | None = None,
        level: str | None = None,
        step: Any = None,
    ) -> None:
        from probe.session import Session, State  # imports MindSpore

        source = ConfigFile(config_path, task=task, dump_path=dump_path, level=level, step=step)
        settings = source.load()
        before = self._living_session()
        if before is not None and before.state is State.CLOSED:
            before = None
        # only dump_enable differs: keep the session; the next start() reads the file again
        if before is not None and replace(before.settings, dump_enable=settings.dump_enable) == settings:
            self._session = before
            return
        if before is not None:
            if before.state is State.RECORDING:
                raise UsageError(
                    "a PrecisionDebugger with other settings is recording; call its stop() before making another"
                )
            before.close()
            atexit.unregister(before.close)
        self._session = Session(settings, source, before.custom if before is not None else None)
        atexit.register(self._session.close)
        PrecisionDebugger._living = weakref.ref(self._session)

    def __repr__(self) -> str:
        settings, state = self._session.settings, self._session.state.value
        return (
            f"PrecisionDebugger(task={settings.task!r}, level={settings.level!r}, dump_path={settings.dump_path!r}, "
            f"{state})"
        )

    @classmethod
    def start(
        cls,
        model: nn.Cell | list[nn.Cell] | tuple[nn.Cell, ...] | None = None,
        token_range: list[int] | None = None,
        rank_id: int | None = None,
    ) -> None:
        """Begin to record, where the settings want this step and rank.

        Args:
            model: the Cell, or Cells, whose Cells and Primitives are recorded; needed at levels L0 and mix by the
                first start, and kept for the following ones.
            token_range: ``[a, b]``: record only from the a-th to the b-th forward of the model after this start, both
                included, counted from 0; for loops that make one token after the other.
            rank_id: the number of the rank folder, in place of the rank of the communicator.

        Raises:
            UsageError: for arguments that cannot be served, in GRAPH_MODE, and where ``dump_path`` holds another
                run's dump.
        """
        cls._session_of_process().start(model, token_range, rank_id)

    @classmethod
    def stop(cls) -> None:
        """End the recording and write the documents; ``start`` may follow, in the same step or the next.

        MindSpore is then as it was, but for the handles of communications that are on their way. A backward that runs
        later still completes what was recorded, and so does waiting for such a handle, until ``step``.
        """
        cls._session_of_process().stop()

    @classmethod
    def step(cls) -> None:
        """End the step: its documents are complete, the next start belongs to the next step. Implies ``stop``."""
        cls._session_of_process().step()

    @classmethod
    def set_init_step(cls, step: int) -> None:
        """Number the next step ``step``, for a training that was resumed.

        Raises:
            UsageError: when ``step`` is no whole number from 0, and between start and stop.
        """
        cls._session_of_process().begin_at(step)

    @classmethod
    def save(cls, variable: Any, name: str, save_backward: bool = True) -> None:
        """Record a value under a name, at level "debug"; at other levels do nothing. Needs no start and stop.

        Args:
            variable: a tensor, number or text, or lists and dicts of such. What is recorded is what it is now.
            name: its name in debug.json; saved again in the same step it gets the next number.
            save_backward: whether the gradients that arrive at its tensors are recorded too.

        Raises:
            UsageError: when ``name`` is no text, or where ``dump_path`` holds another run's dump.

        Example::

            debugger = PrecisionDebugger(level="debug", dump_path="./dump")
            PrecisionDebugger.save(logits, "logits")
            PrecisionDebugger.step()
        """
        cls._session_of_process().save(variable, name, save_backward)

    @classmethod
    def estimate(cls) -> int:
        """Return how many bytes on disk one step like the last one would take with task "tensor", on this rank.

        It is known after a step of task "statistics". The settings ``when``, ``slice`` and ``sample_mode`` would make
        it less.

        Raises:
            UsageError: when no step of this task has been written yet.

        Example::

            print(f"{PrecisionDebugger.estimate() / 1e9:.1f} GB a step")
        """
        return cls._session_of_process().estimate()

    @classmethod
    def register_custom_api(cls, module: Any, api_name: str, api_prefix: str | None = None) -> None:
        """Record the calls of a function of your own too, at levels L1 and mix, from the next start on.

        Args:
            module: the module or class that it is called from.
            api_name: its name there.
            api_prefix: what its entries' names begin with; by default the name of ``module``.

        Raises:
            UsageError: when there is no such function.

        Example::

            PrecisionDebugger.register_custom_api(attention, "flash", "Mine")  # Mine.flash.0.forward
        """
        cls._session_of_process().register(module, api_name, api_prefix)

    @classmethod
    def restore_custom_api(cls, module: Any, api_name: str) -> None:
        """Stop recording a function that was registered with ``register_custom_api``.

        Raises:
            UsageError: when it was not registered.
        """
        cls._session_of_process().restore(module, api_name)

    @classmethod
    def close(cls) -> None:
        """Complete the open step and release everything. It may be called twice; all other methods then raise.

        Example::

            PrecisionDebugger.close()
            debugger = PrecisionDebugger(config_path="config.json")  # a new one
        """
        session = cls._living_session()
        if session is not None:
            session.close()
            atexit.unregister(session.close)

    @classmethod
    def forward_backward_dump_end(cls) -> None:
        """Do the same as ``stop``, under the name it once had."""
        cls._session_of_process().stop()

    @classmethod
    def _session_of_process(cls) -> Session:
        session = cls._living_session()
        if session is None:
            raise UsageError("there is no PrecisionDebugger yet: make one with PrecisionDebugger(config_path=...)")
        return session

    @staticmethod
    def _living_session() -> Session | None:
        return PrecisionDebugger._living() if PrecisionDebugger._living is not None else None
