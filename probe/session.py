# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One debugger's life: what is open, what is installed, when the documents are written."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

from probe.capture.pynative.cells import is_cell_or_cells
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.capture.pynative.synchronous import enable_synchronous_execution
from probe.capture.pynative.token_range import TokenRange
from probe.capture.support_ops import SupportedApi
from probe.config.config_file import ConfigFile
from probe.config.settings import Settings
from probe.config.validators import is_range
from probe.errors import ProbeError, SettingsError, UsageError
from probe.naming import custom_key
from probe.process.rank import RankResolver, is_scheduler
from probe.process.signals import SigtermHandler, call_in_forked_child
from probe.recording.step_recorder import StepRecorder
from probe.run import Run
from probe.store.folder_lock import FolderLocks
from probe.tasks.debug import DebugTask
from probe.tasks.structure import StructureTask
from probe.window import StepWindow, check_mode

_log = logging.getLogger("probe")


class Session:
    """Serves the words start, stop and step for one set of settings. Words from several threads wait for each other.

    Args:
        settings: the settings.
        source: tells of new ones, where they came from a file that may be edited while the training runs.
        custom: functions of the user's own that are to be recorded too.
    """

    def __init__(
        self, settings: Settings, source: ConfigFile, custom: dict[tuple[int, str], SupportedApi] | None = None
    ) -> None:
        self.settings = settings
        self.source = source
        self.custom = dict(custom or {})
        self._ranks = RankResolver()
        self._found = False
        self._written, self._weight = "", 0
        self.running = False
        self._window = StepWindow(settings)
        self._models: Any = None
        self._collection: PyNativeCapture | None = None
        self._recorders = Run(settings, self._ranks)
        self._recorder: StepRecorder | None = None
        self._said: set[str] = set()
        self._lock = threading.RLock()
        self._orphaned = is_scheduler()
        self._termination = SigtermHandler(self._finish, self._save)
        call_in_forked_child(weakref.WeakMethod(self._orphan))
        if settings.synchronize and not enable_synchronous_execution():
            _log.warning(
                "synchronize: too late, MindSpore has run an operation before. Make the PrecisionDebugger first, or "
                "call mindspore.set_context(pynative_synchronize=True) at the top of the program"
            )

    @property
    def has_model(self) -> bool:
        """Whether a model was given to ``start``."""
        return self._models is not None

    def start(self, model: Any, token_range: Any, rank_id: Any) -> None:
        """Begin to record, if the settings want this step and rank."""
        with self._lock:
            if self._orphaned:
                return
            self._check(model, token_range, rank_id)
            if model is not None:
                self._models = model
            self._ranks.given = rank_id
            self._renewed(lambda: self._start(token_range))

    def _renewed(self, action: Callable[[], None]) -> None:
        """Do something under settings that may have been edited; where they cannot be used, under the old ones."""
        before = self.settings, self._recorders.claims
        renewed = not self._orphaned and self._renew()
        try:
            action()
        except ProbeError as error:
            if not renewed:
                raise
            _log.warning("the settings were edited but cannot be used, the old ones hold: %s", error)
            self._use(*before)
            action()

    def _start(self, token_range: Any) -> None:
        if self.settings.level == "debug" or self._found:  # only what is saved by name; nothing more to find
            return
        if self._models is None and (self.settings.cells or token_range is not None):
            needs = "token_range" if token_range is not None else f'level "{self.settings.level}" records Cells and'
            raise UsageError(f"start(): {needs} needs the model: debugger.start(model)")
        check_mode()
        try:
            if self._window.wants(self._ranks.expected()):
                first = self._models[0] if isinstance(self._models, (list, tuple)) else self._models
                self._begin(None if token_range is None else TokenRange(first, *map(int, token_range)))
        except ProbeError:
            raise
        except Exception as error:  # of our own: the training goes on without a dump of this step
            self._cannot("record here", error)

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record a value under a name at level "debug"; at other levels do nothing."""
        with self._lock:
            if not isinstance(name, str) or not name:
                raise UsageError(f"save(): name {name!r} is not allowed. Allowed: a text.")
            if not isinstance(save_backward, bool):
                raise UsageError(f"save(): save_backward {save_backward!r} is not allowed. Allowed: True, False.")
            self._renewed(lambda: self._save_value(variable, name, save_backward))

    def _save_value(self, variable: Any, name: str, save_backward: bool) -> None:
        if self._orphaned or self.settings.level != "debug":
            return
        try:
            recorder = self._open() if self._window.wants(self._ranks.expected()) else None
            self._termination.install()
        except ProbeError:
            raise
        except Exception as error:
            self._cannot("save here", error)
            return
        if isinstance(recorder, DebugTask) and self._collection is not None:
            self._collection.saver.save(recorder, variable, name, save_backward)

    def estimate(self) -> int:
        """Return how many bytes a step like the last one would take with arrays."""
        with self._lock:
            if not self._written:
                raise UsageError('estimate(): it needs a step of task "statistics" or "structure" on disk')
            from probe.reading.estimate import documents, estimate

            if self._weight:
                return self._weight + documents(self._written)
            return estimate(self._written, self.settings.exact_dtypes)

    def register(self, owner: Any, name: str, prefix: str | None) -> None:
        """Record a function of the user's own from now on."""
        with self._lock:
            prefix = getattr(owner, "__name__", "Custom") if prefix is None else prefix
            if not isinstance(prefix, str) or not prefix:
                raise UsageError(f"register_custom_api(): api_prefix {prefix!r} is not allowed. Allowed: a text.")
            function = getattr(owner, name, None) if isinstance(name, str) else None
            if not callable(function) or isinstance(function, type) or is_cell_or_cells(function):
                raise UsageError(f"register_custom_api(): {owner!r} has no function {name!r}.")
            api = self.custom[id(owner), name] = SupportedApi(owner, name, custom_key(prefix, name))
            if self._collection is not None:
                self._collection.drop(owner, name)
                self._collection.add(api)

    def restore(self, owner: Any, name: str) -> None:
        """Leave a function of the user's own alone again."""
        with self._lock:
            if self.custom.pop((id(owner), name), None) is None:
                raise UsageError(f"restore_custom_api(): {name!r} of {owner!r} was not registered.")
            if self._collection is not None:
                self._collection.drop(owner, name)

    def stop(self) -> None:
        """End the recording for now and write what there is."""
        with self._lock:
            if not self.running:
                return
            self.running = False
            recorder = self._recorder
            if recorder is None or self._collection is None:
                return
            try:
                recorder.finish()  # a pending error of the training is the training's
            finally:
                self._attempt(recorder, "giving the signal back", self._termination.remove)
                self._attempt(recorder, "taking the hooks out", self._collection.remove)
                self._write(recorder)

    def step(self) -> None:
        """End the step: everything of it is written, counters begin again, the next step begins."""
        with self._lock:
            try:
                self.stop()
            finally:
                try:
                    self._end()  # may raise an error of the training that was pending; the step is over nevertheless
                finally:
                    self._window.next()

    def begin_at(self, step: Any) -> None:
        """Number the next step ``step``."""
        with self._lock:
            if isinstance(step, bool) or not isinstance(step, int) or step < 0:
                raise UsageError(f"set_init_step(): {step!r} is not allowed. Allowed: a whole number from 0.")
            if self.running:
                raise UsageError("set_init_step(): call it before start() or after step()")
            self._end()
            self._window.begin_at(step)

    def discard(self) -> None:
        """Forget what was recorded in this step so far and end the recording; nothing of it is written."""
        with self._lock:
            self.running = False
            if self._collection is not None:
                self._collection.remove()
                self._collection.end_step()
            if self._recorder is not None:
                self._recorder.discard()
                self._recorder = None

    def close(self) -> None:
        """Finish whatever is open: the process ends, or another debugger takes over."""
        with self._lock:
            try:
                self.stop()
            finally:
                self._end(waits=False)
                self._recorders.claims.release()

    def _finish(self) -> None:
        """Close, whatever comes: the process is told to end."""
        try:
            self.close()
        except Exception as error:
            _log.error("the dump could not be finished: %s: %s", type(error).__name__, error)

    def _save(self) -> None:
        """Write what there is, in the middle of whatever goes on."""
        try:
            if self._recorder is not None:
                self._recorder.write(ends=False)
        except Exception as error:
            _log.error("the dump could not be written: %s: %s", type(error).__name__, error)

    def _orphan(self) -> None:
        """Let go of everything in a forked child: the dump is the parent's."""
        self._orphaned, self.running, self._lock = True, False, threading.RLock()
        if self._collection is not None:
            self._collection.orphan()
        self._recorders.claims.release()
        if self._recorder is not None:
            self._recorder.orphan()
            self._recorder = None

    def _cannot(self, what: str, error: Exception) -> None:
        """Say once that nothing is recorded."""
        kind = f"{what} {type(error).__name__}"
        if kind not in self._said:
            self._said.add(kind)
            _log.error("probe cannot %s, the training goes on without it: %s", what, error, exc_info=error)

    def _renew(self) -> bool:
        """Take over settings that were edited since the last look, at the begin of a step; return whether they were."""
        if self._recorder is not None:
            return False
        try:
            settings = self.source.changed()
        except SettingsError as error:
            _log.warning("the settings were edited but are wrong, the old ones hold: %s", error)
            return False
        if settings is None or settings == self.settings:
            return False
        _log.warning("the settings were edited: %s", ", ".join(sorted(_differences(self.settings, settings))))
        same = settings.dump_path == self.settings.dump_path
        self._use(settings, self._recorders.claims if same else FolderLocks())
        return True

    def _use(self, settings: Settings, claims: FolderLocks) -> None:
        self.settings = self._window.settings = settings
        self._recorders.use(settings, claims)
        self._found = False
        self._collection = None

    def _open(self) -> StepRecorder | None:
        """Return the recorder of this step; None where that cannot be."""
        if self._collection is None:
            self._collection = PyNativeCapture(self.settings)
            for api in self.custom.values():
                self._collection.add(api)
        if self._recorder is None:
            self._recorder = self._recorders.open(self._window.step, self._collection.wait)
        return self._recorder

    def _begin(self, tokens: TokenRange | None) -> None:
        recorder = self._open()
        if recorder is None or self._collection is None:
            return
        self.running = True
        try:
            if self._models is not None:
                self._collection.watch(self._models)
            self._collection.install(recorder, tokens)
            self._termination.install()
        except BaseException:
            self.running = False
            self._collection.remove()
            raise

    def _end(self, waits: bool = True) -> None:
        """End the step; with ``waits``, wait also for communications that the training has not waited for."""
        recorder, self._recorder = self._recorder, None
        if recorder is None or self._collection is None:
            return
        self._attempt(recorder, "giving the signal back", self._termination.remove)
        self._attempt(recorder, "taking the hooks out", self._collection.end_step)
        kept = True
        try:
            if waits or not recorder.is_awaiting:
                recorder.finish(ends=True)
            else:
                recorder.give_up()
        finally:
            try:
                kept = self._recorders.name(recorder, self._window)
            except Exception as error:
                recorder.trouble("naming the folder after its rank", error)
            if kept:
                self._write(recorder)
            self._attempt(recorder, "ending the step", lambda: self._say_unmatched(recorder))
            if recorder.first is not None:
                self._found = bool(recorder.first.found)
                outside = recorder.first.close()
                if outside and "outside" not in self._said:
                    self._said.add("outside")
                    _log.warning("%s", outside)

    def _attempt(self, recorder: StepRecorder, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:
            recorder.trouble(what, error)

    def _say_unmatched(self, recorder: StepRecorder) -> None:
        unmatched = [name for name in recorder.close() if name not in self._said]
        if unmatched and self.settings.level != "debug":
            self._said.update(unmatched)
            _log.warning("nothing matched these names of scope, list, exclude or tensor_list: %s", ", ".join(unmatched))

    def _write(self, recorder: StepRecorder) -> None:
        try:
            if recorder.write():
                self._written = recorder.folder if self.settings.task in ("statistics", "structure") else ""
                self._weight = recorder.weight if isinstance(recorder, StructureTask) else 0
                _log.info("step %d is in %s", self._window.step, recorder.folder)
        except Exception as error:
            recorder.trouble("writing the documents", error)

    def _check(self, model: Any, token_range: Any, rank_id: Any) -> None:
        if token_range is not None and not is_range(token_range):
            raise UsageError(
                f"start(): token_range {token_range!r} is not allowed. Allowed: [a, b], the first and the last forward "
                "of the model to record, counted from 0."
            )
        if model is not None and not is_cell_or_cells(model):
            raise UsageError(
                f"start(): model is {type(model).__name__}. Allowed: a mindspore.nn.Cell, or a list or tuple of Cells."
            )
        if rank_id is not None and (isinstance(rank_id, bool) or not isinstance(rank_id, int) or rank_id < 0):
            raise UsageError(f"start(): rank_id {rank_id!r} is not allowed. Allowed: a whole number from 0.")


def _differences(old: Settings, new: Settings) -> list[str]:
    return [name for name in vars(old) if getattr(old, name) != getattr(new, name)]
