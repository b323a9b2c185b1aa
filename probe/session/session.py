# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The life of one debugger, as a state machine: start, stop, step, close."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

from probe.capture.support_ops import SupportedApi
from probe.config.config_file import ConfigFile
from probe.config.settings import Settings
from probe.config.validators import is_range
from probe.errors import ProbeError, SettingsError, UsageError
from probe.findings.sentence import say
from probe.layers.layer import is_model, refusal
from probe.naming import custom_key
from probe.process.rank import has_siblings, is_scheduler
from probe.process.signals import SigtermHandler, call_in_forked_child
from probe.session.recording import (
    Busy,
    Recording,
    SessionParts,
    State,
    is_notebook,
    serialized,
    tell,
    wants_rank,
)
from probe.snapshot.snapshot import Snapshot
from probe.store import file_io, file_names

_log = logging.getLogger("probe")


class StepObserver:
    """Is told the steps of a session, as they happen. This one does nothing."""

    def begin(self, models: Any) -> None:
        """A step of these models begins, or goes on."""

    def pause(self) -> None:
        """The recording ends, the step may go on."""

    def end(self) -> int:
        """Return how many of the next steps the monitor is to record as a whole; the step ends."""
        return 0


class Session:
    """Implements start, stop and step for one set of settings, as the session ``before`` did. Thread-safe."""

    def __init__(
        self,
        settings: Settings,
        source: ConfigFile,
        kind: type[Recording],
        before: Session | None = None,
        observer: StepObserver | None = None,
    ) -> None:
        self.source = source  # reads new settings, if their file is edited while the training runs
        self._observer = observer or StepObserver()
        self._lock = threading.RLock()
        #: DETACHED or CLOSED; None while there is a recording
        self._ended: State | None = State.DETACHED if is_scheduler() else None
        sigterm = SigtermHandler(lambda: self.at_sigterm(True), lambda: self.at_sigterm(False))
        continues = before is not None and before.state is not State.CLOSED
        shared = before._parts if before else None
        self._parts: SessionParts = SessionParts(settings.dump_path, sigterm, shared, continues)
        self._parts.ranks.added = source.header
        if self._ended is None:
            self._check_dump_path(settings)
            if settings.snapshot:
                self._parts.snapshot.prepare()
        self._recording = (Recording if self._ended else kind)(settings, self._parts)
        call_in_forked_child(weakref.WeakMethod(self._detach))
        if settings.synchronize:
            import mindspore

            mindspore.runtime.launch_blocking()  # without effect after the first operation of the process

    @property
    def state(self) -> State:
        """See ``State``."""
        return self._ended or self._parts.window.state

    @property
    def busy(self) -> Busy:
        """Whether a call runs."""
        return self._parts.busy

    @property
    def settings(self) -> Settings:
        """The settings in force, as the user gave them."""
        return self._recording.settings

    @property
    def folder(self) -> str:
        """The folder of this run: ``dump_path``, or one beside it."""
        return self._parts.root

    def continue_again(self) -> None:
        """Log warnings once more, and say the step: the program makes its debugger again, as a notebook does."""
        self._parts.report.is_made_again = True
        self._parts.logged.clear()
        said = f"the debugger is made again with equal settings: it goes on with step {self._parts.window.step}"
        if not is_notebook():
            _log.info("%s", said)
        elif not self.settings.quiet and not self._parts.ranks.rank():
            tell(said)

    def _check_dump_path(self, settings: Settings) -> None:
        """Make sure that ``dump_path`` can be written, if this rank records; else raise SettingsError.

        Raise UsageError when processes were launched together and it holds another run's dump of this rank.
        """
        path = settings.dump_path
        rank = self._parts.ranks.rank()
        if not wants_rank(settings, rank):
            return
        problem = file_io.why_unwritable(path)
        if problem:
            raise SettingsError(say("run.dump_path", path=path, reason=problem))
        if has_siblings() and not settings.overwrite:
            self._parts.folders.refuse_other_runs(path, file_names.rank_name(rank))

    # -- start, stop, step ----------------------------------------------------------------------------------------

    @serialized
    def start(self, model: Any, token_range: Any = None, rank_id: Any = None) -> None:
        """Begin to record, if the settings select this step and rank."""
        check_start(model, token_range, rank_id)
        parts = self._parts
        report = self._parts.report
        if model is not None:
            parts.models = model
        parts.ranks.given = rank_id
        report.starts = report.starts + 1
        report.has_model = parts.models is not None
        report.token_range = token_range
        try:
            self._with_reloaded_settings(lambda: self._recording.start(token_range))
        except ProbeError:
            report.said = True  # the error tells it
            raise
        self._observer.begin(parts.models)

    @serialized
    def stop(self) -> None:
        """Stop recording and write the documents."""
        self._observer.pause()
        self._recording.stop()

    @serialized
    def step(self) -> None:
        """End the step: write its documents, reset the counters, begin the next step."""
        report = self._parts.report
        report.steps += 1
        further = self._observer.end()
        if further:
            self._recording.record_next(further)
        try:
            self.stop()
        finally:
            try:
                self._recording.end_step()  # may raise a pending error of the training; the step is over nevertheless
            finally:
                self._parts.window.advance()
                if is_notebook() and report.is_reached:  # a notebook has no end
                    self._say()

    @serialized
    def begin_at(self, step: Any) -> None:
        """Number the next step ``step``; at level L2, between start and stop, the step that is open."""
        check_init_step(step)
        is_open = self.state is State.RECORDING
        if is_open and not self._recording.may_renumber:
            raise UsageError("set_init_step(): call it before start() or after step()")
        if is_open:
            self.stop()
        self._recording.end_step()
        self._parts.window.begin_at(step)
        if is_open:
            self._recording.start(None)

    def close(self) -> None:
        """Complete the open step, release everything, and say where the dump is; it may be called twice."""
        with self._lock, self.busy:
            is_detached = self._ended is State.DETACHED
            is_open = self._ended is None
            self.hand_over()
            if is_open:
                self._recording.close()
            self._parts.folders.release()
            if not is_detached:
                self._parts.report.end(self._recording.last_line())
                self._say()

    def hand_over(self) -> None:
        """Complete the open step: another session continues."""
        with self._lock, self.busy:
            if self._ended is not State.CLOSED:
                try:
                    self.stop()
                    self._observer.end()  # a program without an update has one step, which ends here
                finally:
                    self._recording.end_step(is_last=True)
                    self._ended = State.CLOSED
                    self._parts.models = None
                    self._parts.recorded = None
                    self._parts.backends.close()

    def _say(self) -> None:
        self._parts.report.say(self.settings, self._parts.ranks.rank(), self._recording.last_line())

    # -- further methods of PrecisionDebugger -----------------------------------------------------------------------

    @serialized
    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record a value under a name at level "debug"; at other levels do nothing."""
        check_save(name, save_backward)
        self._with_reloaded_settings(lambda: self._recording.save(variable, name, save_backward))

    @serialized
    def ask(self, function: Callable[[Recording], Any]) -> Any:
        """Call a function with the recording."""
        return function(self._recording)

    @serialized
    def note(self, values: dict[str, Any]) -> None:
        """Note values of the user's own."""
        self._parts.unless_disabled("noting", lambda: self._parts.snapshot.note(values))

    @serialized
    def estimate(self) -> int:
        """Return the bytes that a step like the last one would take: with arrays, or as copies in memory."""
        held = self._recording.held_bytes()
        if held is not None:
            return held
        folder = self._parts.last_folder
        if not folder:
            raise UsageError('estimate(): it needs a step of task "statistics" on disk')
        from probe.reading.dumps.run import estimate

        return estimate(folder, self.settings.exact_dtypes, self.settings.link_equal)

    @serialized
    def register(self, owner: Any, name: str, prefix: str | None) -> None:
        """Record a function of the user from now on."""
        self._parts.backends.add(custom_api(owner, name, prefix))

    @serialized
    def restore(self, owner: Any, name: str) -> None:
        """Stop recording a function of the user."""
        if not self._parts.backends.drop(owner, name):
            raise UsageError(f"restore_custom_api(): {name!r} of {owner!r} was not registered.")

    # -- settings that are edited while the training runs -----------------------------------------------------------

    def _with_reloaded_settings(self, action: Callable[[], None]) -> None:
        """Run an action under the edited settings; if they cannot be applied, under the previous ones."""
        before = self._recording
        edited = self._edited()
        if edited is not None:
            self._recording = before.with_settings(edited)
            try:
                self._check_dump_path(edited)
                action()
                return
            except ProbeError as error:
                _log.warning(
                    "config file changed but cannot be applied; keeping the previous settings: %s",
                    error,
                )
                self._recording = before
                self._parts.backends.current = None
        action()

    def _edited(self) -> Settings | None:
        if self._parts.window.open_step is not None:
            return None
        try:
            settings = self.source.changed()
        except SettingsError as error:
            _log.warning(
                "config file changed but is invalid; keeping the previous settings: %s", error
            )
            return None
        old = self.settings
        if settings is None or settings == old:
            return None
        if self._recording.unchangeable:
            _log.warning("config file changed: %s", self._recording.unchangeable)
            return None
        edited = sorted(name for name in vars(old) if getattr(old, name) != getattr(settings, name))
        _log.warning("config file changed: %s", ", ".join(edited))
        return settings

    # -- the end of the process --------------------------------------------------------------------------------------

    def at_sigterm(self, ends: bool) -> None:
        """Complete the dump, or bring its documents up to date if the process goes on."""
        try:
            if ends:
                self.close()
            elif self._parts.window.open_step is not None:
                self._parts.window.open_step.write(end_of_step=False)
        except Exception as error:
            _log.error("the dump could not be written: %s: %s", type(error).__name__, error)

    def _detach(self) -> None:
        """Release everything in a forked child: the dump is the parent's."""
        self._ended = State.DETACHED
        self._lock = threading.RLock()
        self._parts.busy = Busy()
        self._recording.detach()
        self._parts.folders.detach()
        self._parts.snapshot = Snapshot()


# -- the arguments of PrecisionDebugger's methods: each error names the allowed values -------------------------------


def check_start(model: Any, token_range: Any, rank_id: Any) -> None:
    """Check the arguments of ``start``."""
    if token_range is not None and not is_range(token_range):
        raise UsageError(
            f"start(): token_range {token_range!r} is not allowed. Allowed: [a, b], the first and the last forward "
            "of the model to record, counted from 0."
        )
    if model is not None and not is_model(model):
        raise UsageError(f"start(): model is {type(model).__name__}. {refusal(model)}")
    if rank_id is not None and not _is_number(rank_id):
        raise UsageError(
            f"start(): rank_id {rank_id!r} is not allowed. Allowed: a whole number from 0."
        )


def check_init_step(step: Any) -> None:
    """Check the argument of ``set_init_step``."""
    if not _is_number(step):
        raise UsageError(
            f"set_init_step(): {step!r} is not allowed. Allowed: a whole number from 0."
        )


def check_save(name: Any, save_backward: Any) -> None:
    """Check the arguments of ``save``."""
    if not isinstance(name, str) or not name:
        raise UsageError(f"save(): name {name!r} is not allowed. Allowed: a text.")
    if not isinstance(save_backward, bool):
        raise UsageError(
            f"save(): save_backward {save_backward!r} is not allowed. Allowed: True, False."
        )


def custom_api(owner: Any, name: Any, prefix: Any) -> SupportedApi:
    """Return the function that the arguments of ``register_custom_api`` name."""
    prefix = getattr(owner, "__name__", "Custom") if prefix is None else prefix
    if not isinstance(prefix, str) or not prefix:
        raise UsageError(
            f"register_custom_api(): api_prefix {prefix!r} is not allowed. Allowed: a text."
        )
    function = getattr(owner, name, None) if isinstance(name, str) else None
    if not callable(function) or isinstance(function, type) or is_model(function):
        raise UsageError(f"register_custom_api(): {owner!r} has no function {name!r}.")
    return SupportedApi(owner, name, custom_key(prefix, name))


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
