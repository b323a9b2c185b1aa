# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The life of one debugger, as a state machine: start, stop, step, close."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from probe.capture.backend import Backends, CaptureBackend
from probe.capture.pynative.cells import iter_cells, with_loss
from probe.capture.support_ops import SupportedApi
from probe.config.settings import ConfigFile, Settings
from probe.errors import ProbeError, SettingsError, UsageError
from probe.private_names import installed_parts
from probe.process.rank import is_scheduler
from probe.process.signals import SigtermHandler, call_in_forked_child
from probe.recording.step_recorder import StepRecorder
from probe.session.arguments import check_init_step, check_save, check_start, custom_api
from probe.session.run_report import RunReport
from probe.session.session_state import State, StepWindow, serialized, wants_rank
from probe.session.step_opener import StepOpener
from probe.store.run_folders import RunFolders
from probe.tasks.debug import DebugTask

_log = logging.getLogger("probe")


class Session:
    """Implements start, stop and step for one set of settings. Thread-safe.

    Args:
        settings: the settings.
        source: reads new settings, if their file is edited while the training runs.
        before: the session that this one replaces.

    Attributes:
        custom: the user's functions that are recorded too.
        state: see ``State``.
    """

    def __init__(self, settings: Settings, source: ConfigFile, before: Session | None = None) -> None:
        self.source = source
        continues = before is not None and before.state is not State.CLOSED
        self.custom: dict[tuple[int, str], SupportedApi] = dict(before.custom) if before and continues else {}
        self._report: RunReport = before._report if before and continues else RunReport()
        self._run: StepOpener = StepOpener(settings, RunFolders() if before is None else before._run.folders)
        self.state: State = State.DETACHED if is_scheduler() else State.IDLE
        self._window = StepWindow()
        self._models: Any = None
        self._backends: Backends = Backends(before._backends if before else None)
        self._recorder: StepRecorder | None = None
        self._lock = threading.RLock()
        if self.state is State.IDLE:
            self._run.check_dump_path()
            if settings.snapshot:
                self._run.folders.snapshot.prepare()
        self._sigterm = SigtermHandler(lambda: self._at_sigterm(True), lambda: self._at_sigterm(False))
        call_in_forked_child(weakref.WeakMethod(self._detach))
        if settings.synchronize:
            import mindspore

            mindspore.runtime.launch_blocking()  # without effect after the first operation of the process

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._run.settings

    @property
    def given(self) -> Settings:
        """The settings that the user gave; those in force may follow from them."""
        return self.settings

    @property
    def _capture(self) -> CaptureBackend | None:
        return self._backends.current

    @property
    def folder(self) -> str:
        """The folder of this run: ``dump_path``, or one beside it."""
        return self._run.root

    def continue_again(self) -> None:
        """Log warnings once more: the program makes its debugger again, as a notebook does."""
        self._report.is_made_again = True
        self._run.logged.clear()

    # -- start, stop, step ----------------------------------------------------------------------------------------

    @serialized
    def start(self, model: Any, token_range: Any, rank_id: Any) -> None:
        """Begin to record, if the settings select this step and rank."""
        check_start(model, token_range, rank_id)
        if model is not None:
            self._models = model
        self._run.ranks.given = rank_id
        report = self._report
        report.starts, report.has_model, report.token_range = report.starts + 1, self._models is not None, token_range
        try:
            self._with_reloaded_settings(lambda: self._start(token_range))
        except ProbeError:
            report.said = True  # the error tells it
            raise

    def _start(self, token_range: Any) -> None:
        if self._run.finished:
            self._log_once("nan_check: max_hits is reached, nothing more is watched. A new run watches again")
        if self.settings.level == "debug" or self._run.finished:
            return
        if self._models is None and (self.settings.cells or token_range is not None):
            needs = "token_range" if token_range is not None else f'level "{self.settings.level}" records Cells and'
            raise UsageError(f"start(): {needs} needs the model: debugger.start(model)")
        if wants_rank(self.settings, self._run.ranks.rank()):
            self._backends.prepare(self.settings, self._models, token_range)
        wanted = self.settings.step
        self._report.is_reached |= self.settings.dump_enable and (not wanted or self._window.step in wanted)
        runs_again = self._report.is_made_again or "ipykernel" in sys.modules
        if runs_again and isinstance(wanted, frozenset) and wanted and self._window.step > max(wanted):
            self._log_once(f"the setting step ends with {max(wanted)}: no more is recorded. set_init_step(n) goes back")
        self._unless_disabled("recording", lambda: self._begin(token_range))

    def _begin(self, token_range: Any) -> None:
        recorder = self._open_step()
        if recorder is None or self._capture is None:
            return
        self.state = State.RECORDING
        with contextlib.ExitStack() as undo:
            undo.callback(self._capture.remove)
            undo.callback(setattr, self, "state", State.PAUSED)
            if self._models is not None:
                self._capture.watch(self._models)
            cells = iter_cells(self._models) if self._models is not None else ()
            self._run.begin_snapshot(recorder, self._window.step, self._capture, cells)
            first = self._models[0] if isinstance(self._models, (list, tuple)) else self._models
            self._capture.install(recorder, first, token_range and (int(token_range[0]), int(token_range[1])))
            self._sigterm.install()
            undo.pop_all()

    def _open_step(self) -> StepRecorder | None:
        """Return the recorder of this step; None if the step is not selected, or cannot be recorded."""
        if not self._window.wants(self.settings, self._run.ranks.rank()):
            return None
        capture = self._backends.select(self.settings, self.custom.values())
        if self._recorder is None:
            self._recorder = self._run.open_step(self._window.step, self._window.init_step, capture)
        return self._recorder

    @serialized
    def stop(self) -> None:
        """Stop recording and write the documents."""
        if self.state is not State.RECORDING:
            return
        self.state = State.PAUSED
        recorder, capture = self._recorder, self._capture
        if recorder is None or capture is None:
            return
        try:
            recorder.queue.flush()  # may raise a pending error of the training
        finally:
            with recorder.guard("restoring the SIGTERM handler"):
                self._sigterm.remove()
            with recorder.guard("removing the hooks"):
                capture.remove()
            self._write(recorder)

    @serialized
    def step(self) -> None:
        """End the step: write its documents, reset the counters, begin the next step."""
        self._report.steps += 1
        try:
            self.stop()
        finally:
            try:
                self._end_step()  # may raise a pending error of the training; the step is over nevertheless
            finally:
                self._window.advance()
                if "ipykernel" in sys.modules and self._report.is_reached:  # a notebook has no end
                    self._report.say(self.settings, self._run.ranks.rank())

    @serialized
    def begin_at(self, step: Any) -> None:
        """Number the next step ``step``."""
        check_init_step(step)
        if self.state is State.RECORDING:
            raise UsageError("set_init_step(): call it before start() or after step()")
        self._end_step()
        self._window.begin_at(step)

    @serialized
    def begin_training(self, network: Any, loss: Any) -> Any:
        """Discard earlier calls; return the model for start(), or None where start() was given one."""
        has_model = self.state is State.RECORDING and self._models is not None
        self.state = State.IDLE
        if self._capture is not None:
            self._capture.remove()
            self._capture.end_step()
        if self._recorder is not None:
            self._recorder.discard()
            self._recorder = None
        return None if has_model else with_loss(network, loss)

    def close(self) -> None:
        """Complete the open step, release everything, and say where the dump is; it may be called twice."""
        with self._lock:
            is_detached = self.state is State.DETACHED
            self.hand_over()
            self._run.folders.release()
            if not is_detached:
                self._report.say(self.settings, self._run.ranks.rank())

    def hand_over(self) -> None:
        """Complete the open step: another session continues."""
        with self._lock:
            if self.state is not State.CLOSED:
                try:
                    self.stop()
                finally:
                    self._end_step(wait=False)
                    self.state, self._models = State.CLOSED, None
                    self._backends.close()

    def _end_step(self, wait: bool = True) -> None:
        """End the step; ``wait`` waits also for communications in flight."""
        recorder, self._recorder = self._recorder, None
        if recorder is None or self._capture is None:
            return
        self.state = State.IDLE
        with recorder.guard("restoring the SIGTERM handler"):
            self._sigterm.remove()
        with recorder.guard("removing the hooks"):
            self._capture.end_step()
        try:
            if wait or not recorder.queue.has_communication_in_flight:
                recorder.queue.flush(end_of_step=True)
            else:
                recorder.queue.flush_incomplete()
        finally:
            is_written = self._write(recorder)
            with recorder.guard("ending the step"):
                self._run.end_step(recorder)
                if not recorder.writer.is_empty:
                    self._report.add_step(self._window.step, self._run.root, is_written)

    def _write(self, recorder: StepRecorder) -> bool:
        """Write the documents; return whether they are on disk."""
        with recorder.guard("writing the documents"):
            if recorder.write(end_of_step=True):
                self._run.last_folder = recorder.writer.folder if self.settings.task == "statistics" else ""
                _log.info("step %d is in %s", self._window.step, recorder.writer.folder)
            return True
        return False

    # -- further methods of PrecisionDebugger -----------------------------------------------------------------------

    @serialized
    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record a value under a name at level "debug"; at other levels do nothing."""
        check_save(name, save_backward)
        self._with_reloaded_settings(lambda: self._save(variable, name, save_backward))

    def _save(self, variable: Any, name: str, save_backward: bool) -> None:
        if self.settings.level != "debug":
            return
        self._unless_disabled("saving", self._open_debug_step)
        recorder, capture = self._recorder, self._capture
        if recorder is not None and capture is not None and isinstance(recorder.task, DebugTask):
            capture.save(recorder, recorder.task, variable, name, save_backward)

    def _open_debug_step(self) -> None:
        if self._open_step() is not None:
            self._sigterm.install()

    @serialized
    def log(self, name: Any, number: Any) -> None:
        """Add a number to the row of a step; only the monitor has rows."""

    @serialized
    def set_alarm_function(self, function: Any) -> None:
        """Set the function that is called for each alarm; only the monitor has alarms."""

    @serialized
    def note(self, values: dict[str, Any]) -> None:
        """Note values of the user's own."""
        self._unless_disabled("noting", lambda: self._run.folders.snapshot.note(values))

    @serialized
    def estimate(self) -> int:
        """Return the bytes that a step like the last one would take with arrays."""
        if not self._run.last_folder:
            raise UsageError('estimate(): it needs a step of task "statistics" on disk')
        from probe.reading.dumps.estimate import estimate

        return estimate(self._run.last_folder, self.settings.exact_dtypes, self.settings.link_equal)

    @serialized
    def register(self, owner: Any, name: str, prefix: str | None) -> None:
        """Record a function of the user from now on."""
        api = self.custom[id(owner), name] = custom_api(owner, name, prefix)
        if self._capture is not None:
            self._capture.drop(owner, name)
            self._capture.add(api)

    @serialized
    def restore(self, owner: Any, name: str) -> None:
        """Stop recording a function of the user."""
        if self.custom.pop((id(owner), name), None) is None:
            raise UsageError(f"restore_custom_api(): {name!r} of {owner!r} was not registered.")
        if self._capture is not None:
            self._capture.drop(owner, name)

    # -- settings that are edited while the training runs -----------------------------------------------------------

    def _with_reloaded_settings(self, action: Callable[[], None]) -> None:
        """Run an action under the edited settings; if they cannot be applied, under the previous ones."""
        before = self._run
        reloaded = self._recorder is None and self._reload()
        try:
            if reloaded:
                self._run.check_dump_path()
            action()
        except ProbeError as error:
            if not reloaded:
                raise
            _log.warning("config file changed but cannot be applied; keeping the previous settings: %s", error)
            self._run, self._backends.current = before, None
            action()

    def _reload(self) -> bool:
        """Adopt settings that were edited since the last check; return whether they were."""
        try:
            settings = self.source.changed()
        except SettingsError as error:
            _log.warning("config file changed but is invalid; keeping the previous settings: %s", error)
            return False
        old = self.given
        if settings is None or settings == old:
            return False
        edited = sorted(name for name in vars(old) if getattr(old, name) != getattr(settings, name))
        _log.warning("config file changed: %s", ", ".join(edited))
        self._run, self._backends.current = self._run.with_settings(settings), None
        return True

    # -- the end of the process, and errors -------------------------------------------------------------------------

    def _unless_disabled(self, doing: str, action: Callable[[], None]) -> None:
        """Run an action. An error of ours is logged once; the training continues without a dump of this step."""
        try:
            action()
        except ProbeError:
            raise
        except Exception as error:
            kind = f"{doing} {type(error).__name__}"
            if kind not in self._run.logged:
                self._run.logged.add(kind)
                _log.error("%s failed and is off for this step; training continues: %s", doing, error, exc_info=error)
        finally:
            installed_parts().tell(_log.warning)

    def _log_once(self, text: str) -> None:
        if text not in self._run.logged:
            self._run.logged.add(text)
            _log.warning("%s", text)

    def _at_sigterm(self, ends: bool) -> None:
        """Complete the dump, or bring its documents up to date if the process goes on."""
        try:
            if ends:
                self.close()
            elif self._recorder is not None:
                self._recorder.write(end_of_step=False)
        except Exception as error:
            _log.error("the dump could not be written: %s: %s", type(error).__name__, error)

    def _detach(self) -> None:
        """Release everything in a forked child: the dump is the parent's."""
        self.state, self._lock = State.DETACHED, threading.RLock()
        if self._capture is not None:
            self._capture.detach()
        self._run.folders.detach()
        if self._recorder is not None:
            self._recorder.detach()
            self._recorder = None
