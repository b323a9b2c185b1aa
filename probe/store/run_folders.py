# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The folders of one process: two runs never share one. A second run writes beside the first, or replaces it."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import shutil
from collections.abc import Callable, Iterable

from probe.errors import UsageError
from probe.store import file_names as names, journal


class RunFolders:
    """Finds the folder of each step, and locks the first one while the process lives or until ``release``.

    ``last_row`` returns the last step of a file of the monitor, or -1.
    """

    def __init__(self, last_row: Callable[[str], int]) -> None:
        self._last_row = last_row
        self._roots: dict[
            tuple[str, str], str
        ] = {}  # dump_path, name of the rank folder -> where this run writes
        self._written: set[str] = set()
        self._locks: list[int] = []

    def root(
        self,
        dump_path: str,
        name: str,
        step: int,
        first_step: int,
        overwrite: bool,
        steps_aside: bool,
    ) -> tuple[str, bool]:
        """Return the folder that this run writes in place of ``dump_path``, and whether it is chosen just now.

        Another run has left a dump there, rows of the monitor, or kernels. ``first_step`` is the number that
        set_init_step() gave, or -1. Above every step on disk the run continues there. ``overwrite`` replaces the other
        run; ``steps_aside`` writes beside it: ``{dump_path}-2``, ``-3``, …
        Raise UsageError when neither is allowed, or its process lives.
        """
        known = self._roots.get((dump_path, name))
        if known != dump_path and overwrite:
            known = None  # an earlier debugger of this process wrote beside; this one may replace
        if known is not None and not self._is_of_other_run(names.rank_folder(known, step, name)):
            return known, False
        for number in itertools.count(1):
            root = dump_path if number == 1 else f"{dump_path}-{number}"
            found = self._of_other_runs(root, name)
            if found and min(first_step, step) > max(found.values()):
                break
            if overwrite and (found or first_step < 0):
                self._replace(root, name, found)
            if overwrite or not found:
                break
            if not steps_aside:
                raise UsageError(refusal(max(found, key=lambda folder: found[folder])))
        self._roots[dump_path, name] = root
        return root, True

    def note(self, folder: str) -> None:
        """Note a folder that this process writes: files in it are of this run."""
        self._written.add(folder)

    def _replace(self, root: str, name: str, found: Iterable[str]) -> None:
        """Remove all that another run has left of a rank: dumps of steps and kernels, and the monitor's files."""
        for folder in found:
            if _is_step(folder):
                _remove_dump(folder)
        for folder in names.kernel_folders(root, name):
            is_ours = folder in self._written or os.path.islink(folder)
            if not is_ours and os.path.isfile(os.path.join(folder, names.KERNEL_RUN)):
                shutil.rmtree(folder)
        monitor = names.monitor_folder(root, name)
        if monitor not in self._written and not any(
            map(os.path.islink, (monitor, os.path.dirname(monitor)))
        ):
            _remove_files(
                monitor,
                [file for file in names.MONITOR_FILES if os.path.lexists(f"{monitor}/{file}")],
            )

    def refuse_other_runs(self, dump_path: str, name: str) -> None:
        """Raise a UsageError if there is the dump of another run."""
        found = self._of_other_runs(dump_path, name)
        if found:
            raise UsageError(refusal(max(found, key=lambda folder: found[folder])))

    def step_folder(self, root: str, step: int, name: str) -> str:
        """Return the rank folder of a step; one that this process has written before is replaced."""
        folder = names.rank_folder(root, step, name)
        if folder in self._written and os.path.isdir(folder):
            _remove_dump(folder)
        self._written.add(folder)
        return folder

    def forget(self, dump_path: str, name: str) -> None:
        """Give up a folder: another process was quicker."""
        self._roots.pop((dump_path, name), None)

    def lock(self, folder: str) -> None:
        """Lock the first folder of a rank, so that no later process takes the run for a finished one."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        journal.lock(file)
        self._locks.append(file)

    def release(self) -> None:
        """Release all locks: the run is over."""
        while self._locks:
            os.close(self._locks.pop())

    def detach(self) -> None:
        """Forget everything in a forked child: the folders are the parent's."""
        self.release()
        self._roots.clear()
        self._written.clear()

    def _is_of_other_run(self, folder: str) -> bool:
        return folder not in self._written and os.path.isdir(folder) and bool(_dump_files(folder))

    def _of_other_runs(self, root: str, name: str) -> dict[str, int]:
        """Return the folders of a rank that this process has not written, each with its last step."""
        found = {}
        roots = [
            os.path.join(glob.escape(root), tree) for tree in ("", *names.TREES, *names.REPEATS)
        ]
        for folder in itertools.chain(
            *(glob.glob(names.rank_folder(root, "*", name)) for root in roots)
        ):
            step = names.step_of(os.path.basename(os.path.dirname(folder)))
            if step is None or not self._may_be_of_other_run(folder):
                continue
            if _is_locked(folder) or _is_locked(os.path.join(folder, names.JOURNAL)):
                raise UsageError(journal.another_process(folder))
            if self._is_of_other_run(folder):
                found[folder] = step
        monitor = names.monitor_folder(root, name)
        if self._may_be_of_other_run(monitor):
            if _is_locked(monitor):
                raise UsageError(journal.another_process(monitor))
            rows = os.path.join(monitor, names.SERIES)
            if os.path.isfile(rows):
                found[monitor] = self._last_row(rows)
        for folder in names.kernel_folders(root, name):
            if self._may_be_of_other_run(folder) and os.path.isfile(
                os.path.join(folder, names.KERNEL_RUN)
            ):
                found[folder] = max(names.kernel_steps(folder), default=-1)
        return found

    def _may_be_of_other_run(self, folder: str) -> bool:
        """Return whether a folder is there, and not of this process. A link may lead anywhere."""
        is_link = os.path.islink(folder) or os.path.islink(os.path.dirname(folder))
        return not is_link and folder not in self._written and os.path.isdir(folder)


def refusal(folder: str) -> str:
    """Return the message for a folder that holds files of another run."""
    crashed = os.path.exists(os.path.join(folder, names.JOURNAL))
    return (
        f"{folder} holds {_content(folder)} of another run. Choose another dump_path, remove the folder, or set "
        '"overwrite": true: it replaces the dump, or with set_init_step() above its last step continues it.'
        + (
            " That run was killed: run `probe recover` to complete its last step."
            if crashed
            else ""
        )
    )


def aside(dump_path: str, root: str) -> str:
    """Return the message of a run that writes into ``root``, as ``dump_path`` holds another run."""
    has_dump = bool(glob.glob(names.rank_folder(glob.escape(dump_path), "*", "*")))
    content = "the dump" if has_dump else "files"
    return (
        f"{dump_path} holds {content} of another run; "
        f'this run writes into {root} ("overwrite": true would replace it)'
    )


def _content(folder: str) -> str:
    if os.path.basename(os.path.dirname(folder)) == names.MONITOR:
        return "the monitor's rows"
    return "the dump" if _is_step(folder) else "the kernels"


def _is_step(folder: str) -> bool:
    return names.step_of(os.path.basename(os.path.dirname(folder))) is not None


def _is_locked(path: str) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not journal.lock(file)
    finally:
        os.close(file)


def _dump_files(folder: str) -> list[str]:
    return [
        name
        for name in os.listdir(folder)
        if name in names.DUMP_FILES or name.endswith(names.TEMP_SUFFIX)
    ]


def _remove_dump(folder: str) -> None:
    _remove_files(folder, _dump_files(folder))


def _remove_files(folder: str, found: list[str]) -> None:
    for name in found:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        os.rmdir(os.path.dirname(folder))
