# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The folder of a run's kernel dump: two runs never share one, and a resumed run continues its own."""

from __future__ import annotations

import glob
import itertools
import os
import shutil

from probe.errors import UsageError
from probe.store import file_io, file_names, journal


def choose_root(dump_path: str, first_step: int, overwrite: bool, steps_aside: bool) -> str:
    """Return the folder that a run writes in place of ``dump_path``.

    The run continues there if its first step is above every step on disk. ``overwrite`` replaces the dump of another
    run. ``steps_aside`` writes beside it, in ``{dump_path}-2``, ``-3``, …

    Raises:
        UsageError: when there is the dump of another run and neither is allowed.
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
    raise UsageError(
        f"{dump_path} holds the dump of another run. Choose another dump_path, remove the folder, or set "
        '"overwrite": true: it replaces the dump, or with set_init_step() above its last step continues it.'
    )


def lock(folder: str) -> int:
    """Make a folder and lock it while this process lives; return the file that holds the lock.

    Raise UsageError when another process holds it, or the folder cannot be made.
    """
    try:
        file = os.open(file_io.make_dirs(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from error
    if not journal.lock(file):
        os.close(file)
        raise UsageError(journal.another_process(folder))
    return file


def _kernel_folders(root: str) -> list[str]:
    """Return the folders of ranks in which MindSpore writes."""
    root = glob.escape(root)
    return glob.glob(os.path.join(root, "rank_*")) + glob.glob(os.path.join(root, "rank[0-9]*", "rank_*"))


def _steps(root: str) -> list[int]:
    """Return the steps that are in a folder, of kernels and of other levels."""
    found = glob.glob(file_names.rank_folder(glob.escape(root), "*", "*"))
    names = [os.path.basename(os.path.dirname(folder)) for folder in found]
    for folder in _kernel_folders(root):
        names += map(os.path.basename, glob.glob(os.path.join(glob.escape(folder), "*", "[0-9]*", "[0-9]*")))
    return [step for name in names if (step := file_names.number_of(name, "step", "")) is not None]


def _remove(root: str, has_steps: bool) -> None:
    """Remove the kernel dump, the steps and the monitor's files of another run.

    Args:
        root: the folder.
        has_steps: there are steps. Without any, the folders of kernels may be those of a rank that has just begun.
    """
    trees = [os.path.join(glob.escape(root), tree, "step[0-9]*") for tree in ("", *file_names.TREES)]
    steps = [*_kernel_folders(root), *itertools.chain(*map(glob.glob, trees))] if has_steps else []
    for folder in (*steps, *glob.glob(os.path.join(glob.escape(root), file_names.MONITOR))):
        if not os.path.islink(folder):
            shutil.rmtree(folder)
