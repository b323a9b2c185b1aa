# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names of the folders and files of a dump."""

from __future__ import annotations

import glob
import os
import re
from typing import Union

#: the documents, and the end of the name of a file that is being written beside its place
DUMP = "dump.json"
DEBUG = "debug.json"
STACK = "stack.json"
CONSTRUCT = "construct.json"
TEMP_SUFFIX = ".tmp"
ARRAYS = "dump_tensor_data"
MAPPING = "mapping.csv"
JOURNAL = "dump.journal"
ERRORS = "dump_error_info.log"
#: the snapshot of the run, in the folder of its first step; the folder of task monitor, and its files of each rank
RUN = "run.json"
RUN_LINES = "run.jsonl"
MONITOR = "monitor"
SERIES = "series.bin"
CALLS = "calls.bin"  # the calls of rolling records, beside it
ALARMS = "alarms.jsonl"
ROLLING = "rolling.json"  # the rounds of rolling records
MONITOR_FILES = (SERIES, CALLS, ROLLING, ALARMS, ERRORS)
KERNEL_RUN = "kernel_run.json"  # describes a kernel dump of this tool, in the folder of its rank
FINDINGS = "findings.jsonl"  # findings that are known while the training runs, one a line
GOLDEN = "golden.json"  # the comparison with the golden run, of a step that differs
DUMP_FILES = (
    DUMP,
    DEBUG,
    STACK,
    CONSTRUCT,
    ERRORS,
    ARRAYS,
    JOURNAL,
    RUN,
    RUN_LINES,
    FINDINGS,
    GOLDEN,
)

#: a rank's number; None where communication was not initialised; the folder's name where it has no number
Rank = Union[int, str, None]

TRAINER_CSV = re.compile(
    r"([a-z_]+)_\d+-\d+\.csv"
)  # a file of msprobe's TrainerMon: kind, first step, last step

#: folders above those of the steps: the first and the second repeat of a step that is beside its dump
REPEATS = ("repeat1", "repeat2")
#: folders above those of the steps, where a training in PyNative mode has compiled Cells
PYNATIVE, GRAPH = TREES = ("pynative", "graph")


def rank_name(rank: int | None) -> str:
    """Return the name of the folder of a rank.

    >>> rank_name(3), rank_name(None)
    ('rank3', 'rank')
    """
    return "rank" if rank is None else f"rank{rank}"


def rank_folder(dump_path: str, step: int | str, name: str) -> str:
    """Return the folder of one step and rank.

    >>> rank_folder("/d", 3, "rank0")
    '/d/step3/rank0'
    """
    return os.path.join(dump_path, f"step{step}", name)


def monitor_folder(dump_path: str, name: str) -> str:
    """Return the folder of the monitor's files of a rank.

    >>> monitor_folder("/d", "rank0")
    '/d/monitor/rank0'
    """
    return os.path.join(dump_path, MONITOR, name)


def kernel_folders(dump_path: str, name: str) -> list[str]:
    """Return the folders in which MindSpore writes the kernels of a rank: on CPU it gives every rank the number 0.

    >>> kernel_folders("/d", "rank3"), kernel_folders("/d", "rank")
    (['/d/rank_3', '/d/rank3/rank_0'], ['/d/rank_0'])
    """
    number = name[len("rank") :]
    own = [os.path.join(dump_path, name, "rank_0")] if number else []
    return [os.path.join(dump_path, f"rank_{number or 0}"), *own]


def kernel_steps(folder: str) -> list[int]:
    """Return the steps of the kernels in such a folder: names of folders, below a net and a graph."""
    found = glob.glob(os.path.join(glob.escape(folder), "*", "[0-9]*", "[0-9]*"))
    steps = (number_of(os.path.basename(path), "") for path in found)
    return [step for step in steps if step is not None]


def number_of(name: str, *words: str) -> int | None:
    """Return the number behind one of these words, which is all of the name; None where it is not there.

    >>> number_of("step12", "step"), number_of("rank_3", "rank", "rank_"), number_of("rank", "rank")
    (12, 3, None)
    """
    ends = (name[len(word) :] for word in words if name.startswith(word))
    return next(
        (int(end) for end in ends if end.isascii() and end.isdigit() and len(end) < 19), None
    )


def step_of(name: str) -> int | None:
    """Return the step that a folder's name says; None where it is no step's."""
    return number_of(name, "step")


def rank_of(name: str) -> int | None:
    """Return the rank that a folder's name says; None for other names, and where communication was not initialised."""
    return number_of(name, "rank")
