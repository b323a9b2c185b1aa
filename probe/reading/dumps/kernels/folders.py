# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The folders of MindSpore's kernel dump in each layout, and the rank and the step that they belong to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from probe.reading.dumps.kernels.names import CONSTANTS, MAPPING, STATISTICS, parse
from probe.store.file_names import number_of, rank_of, step_of

#: MindSpore's words before the numbers of ranks and steps
_RANK, _STEP = "rank_", "step_"
_NUMBER, _TIME = re.compile(r"\d{1,18}"), re.compile(r"\d{14,20}")


class Place(NamedTuple):
    """The place of one folder in a kernel dump."""

    path: str
    rank_folder: str  # the folder of its rank, which holds the execution order too; "" where the layout has none
    rank: int | None
    step: int | None  # its step, or None; of constants None
    run: str  # tells runs of one step apart
    graph: str  # the number of its graph, or ""
    is_constants: bool = False  # whether it holds the constants of its graph


def is_kernel_folder(files: Iterable[str]) -> bool:
    """Return whether a folder with these files holds arrays or statistics of kernels."""
    found = set(files)
    if STATISTICS in found or any(name.endswith(".npy") and parse(name) is not None for name in found):
        return True
    return MAPPING in found and any(name.endswith(".npy") for name in found)


def locate(path: str) -> Place:
    """Return the place of a folder, by the folders around it.

    >>> locate("/d/rank_3/Net/0/7")[1:6]
    ('/d/rank_3', 3, 7, '', '0')
    >>> locate("/d/rank_1/20241224103808/step_4")[2:5]
    (1, 4, '20241224103808')
    >>> locate("/d/5/20241224103808/2/ge_default_1/1/0")[2:5]
    (2, 5, '20241224103808')
    """
    parts = os.path.abspath(path).split(os.sep)
    is_constants = parts[-1] == CONSTANTS
    found = _by_graph(path, parts, is_constants) or _by_step(path, parts) or _by_model(path, parts)
    found = found or Place(path, "", None, None, "", "", is_constants)
    # those of our own tree, around MindSpore's, win: MindSpore calls every rank on CPU 0
    outer = parts[-3::-1]
    rank = next((number for part in outer if (number := rank_of(part)) is not None), found.rank)
    step = next((number for part in outer if (number := step_of(part)) is not None), found.step)
    return found._replace(rank=rank, step=step)


def _by_graph(path: str, parts: list[str], is_constants: bool) -> Place | None:
    """``rank_{rank}/{net}/{graph}/{step}``: kernel by kernel."""
    if len(parts) < 5 or not _NUMBER.fullmatch(parts[-2]):
        return None
    rank = number_of(parts[-4], _RANK)
    if rank is None or not (is_constants or _NUMBER.fullmatch(parts[-1])):
        return None
    step = None if is_constants else int(parts[-1])
    return Place(path, os.sep.join(parts[:-3]), rank, step, "", parts[-2], is_constants)


def _by_step(path: str, parts: list[str]) -> Place | None:
    """``rank_{rank}/{time}/step_{step}``: whole graphs on Ascend."""
    step, rank = number_of(parts[-1], _STEP), number_of(parts[-3], _RANK) if len(parts) > 3 else None
    if step is None or rank is None:
        return None
    return Place(path, os.sep.join(parts[:-2]), rank, step, parts[-2], "")


def _by_model(path: str, parts: list[str]) -> Place | None:
    """``{step}/{time}/{device}/{model}/{model id}/{iteration}``: whole graphs, configured without msprobe."""
    if len(parts) < 7:
        return None
    step, time, device, _, model, iteration = parts[-6:]
    if not all(map(_NUMBER.fullmatch, (step, device, model, iteration))) or not _TIME.fullmatch(time):
        return None
    return Place(path, os.sep.join(parts[:-6]), int(device), int(step), time, model)
