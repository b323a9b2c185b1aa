# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Layouts of single records: along which axes of a mesh ranks hold parts of a tensor, or terms of a sum."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from probe.door import open_text
from probe.findings.sentence import Sentence, say
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import Record
from probe.store import file_names as files

_LAYOUT = re.compile(r'^ +"layout": (\{.*\}),?$', re.MULTILINE)
_STAGES = ("pp", "stage", "pipe")
#: every rank along an axis has the whole
REPLICATE = "Replicate"
#: the axes of a grid of parts that a rank's part stands at
Part = tuple[int, ...]


def recorded_layout(folder: DumpFolder) -> dict[str, Any] | None:
    """Return the sizes of the groups that the records of a dump name; None where they name none.

    Ranks along an axis in which any tensor is split, or a term of a sum, make one whole. Those along another axis are
    replicas, and the axis "pp" has stages.
    """
    try:
        with open_text(os.path.join(folder.path, files.DUMP)) as file:
            texts = set(_LAYOUT.findall(file.read()))
    except (OSError, ValueError):
        return None
    axes: dict[str, int] = {}
    split: set[str] = set()
    for text in texts:
        try:
            layout = json.loads(text)
        except ValueError:
            continue
        mesh = layout.get("mesh")
        placements = layout.get("placements")
        if not isinstance(mesh, dict) or not isinstance(placements, list):
            continue
        if len(mesh) == len(placements):
            axes.update(mesh)
            split.update(axis for axis, _ in split_axes(mesh, placements))
    return _groups(axes, split) if axes else None


def split_axes(axes: Iterable[Any], placements: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the axes along which a tensor is split, or a term of a sum, each with its placement."""
    return [(axis, text) for axis, text in zip(axes, placements) if text != REPLICATE]


def _groups(axes: dict[str, int], split: set[str]) -> dict[str, Any]:
    """Return the sizes of the groups, and their order, by the axes of a mesh and those that split a tensor."""
    sizes = {"tp": 1, "pp": 1, "dp": 1}
    order: dict[str, None] = {}
    for axis in reversed(axes):  # the last axis has the neighbours
        if axis in _STAGES:
            group = "pp"
        else:
            group = "tp" if axis in split else "dp"
        sizes[group] *= int(axes[axis])
        order[group] = None
    order.update(dict.fromkeys(sizes))
    return {**sizes, "order": "-".join(order)}


def has_placements(record: Mapping[str, Any]) -> bool:
    """Return whether a record tells where the parts of its tensor are."""
    layout = record.get("layout")
    if not isinstance(layout, dict):
        return False
    placements = layout.get("placements")
    place = layout.get("coordinate")
    if not isinstance(placements, list) or not isinstance(place, list):
        return False
    return 0 < len(placements) == len(place)


def placements_of(record: Mapping[str, Any]) -> list[str | Sentence]:
    """Return how a tensor is laid out: "Shard(0) over dp", "Partial(sum) over tp"; none where that is not recorded."""
    if not has_placements(record):
        return []
    mesh = record["layout"].get("mesh")
    if not isinstance(mesh, dict):
        return []
    split = split_axes(mesh, record["layout"]["placements"])
    if not split:
        return [REPLICATE]
    return [say("compare.over", placement=text, axis=axis) for axis, text in split]


def part_of(record: Record) -> Part:
    """Return the place of a rank's part among the parts of its tensor: equal for replicas."""
    layout = record["layout"]
    split = split_axes(layout["coordinate"], layout["placements"])
    return tuple(int(index) for index, _ in split)
