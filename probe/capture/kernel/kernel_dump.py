# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""MindSpore's kernel dump of this process: its configuration, the number of the step, and the arrays to measure.

Two runs never share its folder, and a resumed run continues its own.
"""

from __future__ import annotations

import glob
import itertools
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable
from typing import Any

from probe.capture.kernel.configuration import (
    CPU,
    LAST_STEP,
    Configuration,
    Platform,
    configuration,
    warn_of_unknown,
)
from probe.capture.kernel.measuring import ArrayMeasurer, FolderWatcher, arrays_in, step_folders
from probe.config.settings import Settings
from probe.errors import UsageError
from probe.executor import found_in, pynative_executor
from probe.process.rank import RankResolver, has_siblings, run_header
from probe.reading.dumps.kernels.tables import RUN
from probe.series.file import last_step
from probe.store import file_io, file_names, journal
from probe.store.run_folders import aside, refusal

_log = logging.getLogger("probe")

VARIABLE = "MINDSPORE_DUMP_CONFIG"
_NO_STEP = LAST_STEP + 1  # the number of an iteration that no configuration selects


def current_platform() -> Platform:
    """Return where MindSpore runs kernels now."""
    import mindspore
    from mindspore import context

    level = (
        context.get_jit_config().get("jit_level") if hasattr(context, "get_jit_config") else None
    )
    return Platform(
        mindspore.get_context("device_target"), level or mindspore.get_context("jit_level") or "O0"
    )


class KernelDump:
    """Level L2, one in a process: MindSpore reads its configuration once. Raise SettingsError for refused settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = ""  # the folder of the run, from the first start on
        self.is_foreign = bool(os.environ.get(VARIABLE))  # the user's own configuration is in force
        self.is_configured = False  # MindSpore has its configuration
        self.is_empty = True  # no kernel was dumped yet
        self.rank_folder = ""
        self._net_name = "Net"
        self._described: Any = self  # no model yet
        self._watcher: FolderWatcher | None = None
        self._lock = -1
        self._sizes: dict[int, int] = {}  # of the arrays of each finished step
        self._is_full = False
        if not self.is_foreign:
            configuration(settings, current_platform(), settings.dump_path)
            warn_of_unknown(settings)

    # -- the configuration ------------------------------------------------------------------------------------------

    def configure(self, rank: int | None, step: int) -> None:
        """Write the configuration and let MindSpore read it, before it compiles anything.

        Raise UsageError when it is too late, or ``dump_path`` holds another run's dump, and SettingsError for settings
        that this platform refuses.
        """
        self.is_configured = self.is_foreign
        if self.is_foreign:
            text = "%s is set to %s: MindSpore uses that file, and the settings of level L2 have no effect"
            _log.warning(text, VARIABLE, os.environ.get(VARIABLE))
            return
        _refuse_late_start()
        settings = self.settings
        platform = current_platform()
        root = choose_root(
            settings.dump_path, step, settings.overwrite, steps_aside=not has_siblings()
        )
        of_cpu = (
            rank is not None and platform.device == CPU
        )  # on CPU MindSpore gives every rank the number 0
        path = os.path.join(root, f"rank{rank}") if of_cpu else root
        found = configuration(settings, platform, path)
        self.rank_folder = os.path.join(path, f"rank_{0 if of_cpu else rank or 0}")
        self._net_name = found.common["net_name"]
        self._lock = lock(self.rank_folder)
        if root != settings.dump_path:
            _log.warning("%s", aside(settings.dump_path, root))
        self._load(found, path, step, platform)
        self.root = root
        self.is_configured = True
        measures = settings.task == "statistics" and found.common["saved_data"] == "tensor"
        if measures or settings.max_disk is not None:
            measurer = ArrayMeasurer(found.common["statistic_category"]) if measures else None
            folder = os.path.join(self.rank_folder, self._net_name)
            self._watcher = FolderWatcher(folder, measurer, settings.keep_arrays, self._note_size)

    def _load(self, found: Configuration, path: str, step: int, platform: Platform) -> None:
        """Let MindSpore read the file now. The variable is set no longer than needed: child processes would inherit it.

        On CPU this is one call. Whether other platforms look at it again was never tried: there it stays until ``end``.
        """
        file = os.path.join(path, found.file_name)
        found.common["initial_iteration"] = step
        with file_io.atomic_write(file) as text:
            json.dump(found.content(), text, indent=1)
        os.environ[VARIABLE] = file
        try:
            _set_iteration(_NO_STEP)
        finally:
            if platform.device == CPU:
                del os.environ[VARIABLE]

    def _withdraw(self) -> None:
        """Remove the variable, if it is still ours."""
        if self.root and os.environ.get(VARIABLE, "").startswith(self.root + os.sep):
            del os.environ[VARIABLE]

    def describe(
        self,
        models: Any,
        ranks: RankResolver,
        iter_cells: Callable[[Any], Iterable[tuple[str, Any]]],
    ) -> None:
        """Write the settings and the Cells of the model beside the dump: readers find the Cell of a kernel by them."""
        if not self.root or self._described is models:
            return
        self._described = models
        roots = {id(model) for model in (models if isinstance(models, (list, tuple)) else [models])}
        cells = iter_cells(models) if models is not None else ()
        content = {
            "task": self.settings.task,
            "keep_arrays": self.settings.keep_arrays,
            "run": run_header(ranks),
            "cells": {path: type(cell).__name__ for path, cell in cells if id(cell) not in roots},
        }
        with file_io.atomic_write(os.path.join(self.rank_folder, RUN)) as file:
            json.dump(content, file, indent=1)

    # -- the steps --------------------------------------------------------------------------------------------------

    def begin(self, step: int) -> None:
        """Dump the kernels that run from now on, as those of a step."""
        if self.is_foreign or self._is_full:
            return
        if (
            step in self._sizes
        ):  # as at the other levels, a step that this process wrote itself is replaced
            del self._sizes[step]
            for folder in self._folders(step):
                shutil.rmtree(folder)
        _set_iteration(step)
        if self._watcher is not None:
            self._watcher.begin(step)

    def end(self) -> None:
        """Dump no more kernels, once those that were started have run. Errors of the training are raised."""
        if self.is_foreign:
            return
        try:
            pynative_executor().sync()
        finally:
            _set_iteration(_NO_STEP)
            self._withdraw()

    def finish_step(self, step: int) -> bool:
        """Measure the arrays of a step; return whether any kernel of it was dumped."""
        if self.is_foreign:
            return False
        if self._watcher is not None:
            self._watcher.finish_step()
        folders = self._folders(step)
        self._sizes[step] = sum(
            entry.stat().st_size for folder in folders for entry in arrays_in(folder)
        )
        self._note_size(max(self._sizes.values()))  # a further step of this size
        self.is_empty &= not folders
        return bool(folders)

    def _folders(self, step: int) -> list[str]:
        return step_folders(os.path.join(self.rank_folder, self._net_name), step)

    def _note_size(self, size: int) -> None:
        """Let MindSpore write no more arrays where this many further bytes are beyond ``max_disk``."""
        most = self.settings.max_disk
        if most is None or self._is_full or sum(self._sizes.values()) + size <= most:
            return
        _set_iteration(_NO_STEP)
        self._is_full = True
        _log.warning("max_disk of %d bytes is reached: no more kernels are dumped", most)

    def close(self) -> None:
        """Measure the rest, and release everything."""
        self._withdraw()
        if self._watcher is not None:
            self._watcher.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def detach(self) -> None:
        """Forget everything in a forked child: the dump is the parent's."""
        self.root = ""
        self._watcher = None
        self.is_foreign = True
        self.close()


def _set_iteration(step: int) -> None:
    from mindspore import _c_expression

    _c_expression._set_init_iter(step)


def _refuse_late_start() -> None:
    """Raise a UsageError where MindSpore would not read a configuration any more."""
    from mindspore.communication import GlobalComm

    reason = "communication was initialised" if GlobalComm.INITED else ""
    if found_in("function_phases") or found_in("ms_compile_cache"):  # the first is never emptied
        reason = "a graph was compiled"
    if reason:
        raise UsageError(
            f"start(): too late for level L2, {reason} before. MindSpore reads its dump configuration then, and only "
            "once. Call the first start() before, right after PrecisionDebugger(...)."
        )


def choose_root(dump_path: str, first_step: int, overwrite: bool, steps_aside: bool) -> str:
    """Return the folder that a run writes in place of ``dump_path``.

    The run continues there if its first step is above every step on disk. ``overwrite`` replaces the dump of another
    run. ``steps_aside`` writes beside it, in ``{dump_path}-2``, ``-3``, …. If neither is allowed, UsageError is raised.
    """
    for number in itertools.count(1):
        root = dump_path if number == 1 else f"{dump_path}-{number}"
        steps = _steps(root)
        if overwrite and first_step <= max(steps, default=0):
            _remove(root, has_steps=bool(steps))
        if overwrite or first_step > max(steps, default=-1):
            return root
        if not steps_aside:
            break
    raise UsageError(refusal(dump_path))


def lock(folder: str) -> int:
    """Make a folder and lock it while this process lives; return the file that holds the lock, or raise UsageError."""
    try:
        file = os.open(file_io.make_dirs(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from error
    if not journal.lock(file):
        os.close(file)
        raise UsageError(journal.another_process(folder))
    return file


def _kernel_folders(root: str) -> list[str]:
    root = glob.escape(root)
    return glob.glob(os.path.join(root, "rank_*")) + glob.glob(
        os.path.join(root, "rank[0-9]*", "rank_*")
    )


def _steps(root: str) -> list[int]:
    """Return the steps that are in a folder, of kernels, of other levels and of the monitor."""
    found = glob.glob(file_names.rank_folder(glob.escape(root), "*", "*"))
    steps = [file_names.step_of(os.path.basename(os.path.dirname(folder))) for folder in found]
    kernels = itertools.chain(*map(file_names.kernel_steps, _kernel_folders(root)))
    rows = glob.glob(
        os.path.join(file_names.monitor_folder(glob.escape(root), "*"), file_names.SERIES)
    )
    return [step for step in (*steps, *kernels, *map(last_step, rows)) if step is not None]


def _remove(root: str, has_steps: bool) -> None:
    """Remove the kernel dump, the steps and the monitor's files of another run."""
    trees = [
        os.path.join(glob.escape(root), tree, "step[0-9]*") for tree in ("", *file_names.TREES)
    ]
    # without any steps, the folders of kernels may be those of a rank that has just begun
    steps = [*_kernel_folders(root), *itertools.chain(*map(glob.glob, trees))] if has_steps else []
    for folder in (*steps, *glob.glob(os.path.join(glob.escape(root), file_names.MONITOR))):
        if not os.path.islink(folder):
            shutil.rmtree(folder)
