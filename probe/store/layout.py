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
#: findings that are known while the training runs, one a line
FINDINGS = "findings.jsonl"
DUMP_FILES = (DUMP, DEBUG, STACK, CONSTRUCT, ERRORS, ARRAYS, JOURNAL, RUN, RUN_LINES, FINDINGS)

#: a rank's number; None where communication was not initialised; the folder's name where it has no number
Rank = Union[int, str, None]

#: the folder of task monitor beside those of the steps, and its file of each rank
MONITOR, SERIES = "monitor", "series.bin"

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
