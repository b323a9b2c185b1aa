# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Names of the folders and files of a dump."""

from __future__ import annotations

import os
from typing import Union

DUMP, DEBUG, STACK, CONSTRUCT = "dump.json", "debug.json", "stack.json", "construct.json"
ARRAYS, MAPPING, JOURNAL, ERRORS = "dump_tensor_data", "mapping.csv", "dump.journal", "dump_error_info.log"
#: the snapshot of the run, in the folder of its first step
RUN, RUN_LINES = "run.json", "run.jsonl"
DUMP_FILES = (DUMP, DEBUG, STACK, CONSTRUCT, ERRORS, ARRAYS, JOURNAL, RUN, RUN_LINES)

#: a rank's number; None where communication was not initialised; the folder's name where it has no number
Rank = Union[int, str, None]

#: the folder of task monitor beside those of the steps, and its files of each rank
MONITOR, SERIES, ALARMS = "monitor", "series.bin", "alarms.jsonl"
MONITOR_FILES = (SERIES, ALARMS, ERRORS)

#: describes a kernel dump of this tool, in the folder of its rank
KERNEL_RUN = "kernel_run.json"

#: folders above those of the steps, where a training in PyNative mode has compiled Cells
PYNATIVE, GRAPH = TREES = ("pynative", "graph")

#: how the name of a file ends that is being written beside its place
TEMP_SUFFIX = ".tmp"


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


def kernel_folders(dump_path: str, name: str) -> list[str]:
    """Return the folders in which MindSpore writes the kernels of a rank: on CPU it gives every rank the number 0.

    >>> kernel_folders("/d", "rank3"), kernel_folders("/d", "rank")
    (['/d/rank_3', '/d/rank3/rank_0'], ['/d/rank_0'])
    """
    number = name[len("rank") :]
    own = [os.path.join(dump_path, name, "rank_0")] if number else []
    return [os.path.join(dump_path, f"rank_{number or 0}"), *own]
