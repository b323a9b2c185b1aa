# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A parallel layout: how many ranks share a tensor, how many stages and replicas there are, and who is who."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.dumps.folders import DumpFolder
from probe.store import file_names as files
from probe.store.file_names import Rank

_SIZES = ("tp", "pp", "dp", "vpp")
_AXES = ("tp", "dp", "pp")
#: Megatron's order: neighbours in a tensor-parallel group have neighbouring ranks
_ORDER = "tp-cp-ep-dp-pp"
_HEAD = 1 << 16
_SIZE = re.compile("[0-9]{1,6}")
#: so many ranks stand in a sentence
_SHOWN = 8


class Layout(NamedTuple):
    """The sizes of the groups of ranks.

    >>> Layout(tp=2, pp=2, dp=2).rank(tp=1, dp=0, pp=1)
    5
    """

    tp: int = 1  # how many ranks share the tensors of a layer
    pp: int = 1  # the number of pipeline stages
    dp: int = 0  # the number of replicas; 0 means as many as there are ranks for
    vpp: int = 1  # how many chunks of layers a stage holds
    #: the axes, the one whose neighbours have neighbouring ranks first
    order: tuple[str, ...] = _AXES

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.tp * self.pp * max(self.dp, 1)

    def rank(self, **places: int) -> int:
        """Return the rank at a place: tp=1, dp=0, pp=0."""
        number = 0
        stride = 1
        for axis in self.order:
            number += stride * places[axis]
            stride *= max(getattr(self, axis), 1)
        return number

    def __str__(self) -> str:
        chunks = f", vpp={self.vpp}" if self.vpp > 1 else ""
        return f"tp={self.tp}, pp={self.pp}, dp={self.dp}{chunks}"


def parse_layout(given: str | Mapping[str, Any], option: str) -> Layout:
    """Return the layout that a text, or an object of a header, means; raise UsageError when it means none.

    >>> str(parse_layout("tp=8, pp=2", "--layout-a"))
    'tp=8, pp=2, dp=0'
    """
    fields: dict[str, Any] = {}
    for key, value in _pairs(given):
        if key in fields:
            raise UsageError(say("error.layout_twice", option=option, text=key))
        if key == "order":
            fields[key] = _order(value, option)
        elif key in _SIZES and _SIZE.fullmatch(value) and int(value):
            fields[key] = int(value)
        else:
            text = f"{key}={value}" if value else key
            raise UsageError(say("error.layout", option=option, text=text))
    if not fields:
        raise UsageError(say("error.layout", option=option, text=str(given)))
    return Layout(**fields)


def _pairs(given: str | Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the keys and values of a layout as it is given."""
    if isinstance(given, Mapping):
        return [(str(key), str(value)) for key, value in given.items()]
    pairs = []
    for word in str(given).replace(",", " ").split():
        key, _, value = word.partition("=")
        pairs.append((key, value))
    return pairs


def _order(text: str, option: str) -> tuple[str, ...]:
    words = text.split("-")
    own = set(words)
    known = set(_ORDER.split("-"))
    is_order = len(own) == len(words) and own.issuperset(_AXES) and own <= known
    if not is_order:
        raise UsageError(say("error.layout_order", option=option, text=text, order=_ORDER))
    return tuple(word for word in words if word in _AXES)


def complete(layout: Layout, ranks: list[Rank], side: str) -> Layout:
    """Return a layout with the number of replicas that ranks leave; raise UsageError when they do not fit it."""
    numbers = rank_numbers(ranks)
    more = ", ..." if len(ranks) > _SHOWN else ""
    shown = ", ".join(map(str, ranks[:_SHOWN])) + more
    if len(numbers) != len(ranks):
        raise UsageError(say("error.layout_folders", side=side, shown=shown))
    one = layout.tp * layout.pp
    if not layout.dp:
        if len(numbers) % one:
            sizes = {"tp": layout.tp, "pp": layout.pp, "product": one}
            found = {"count": len(numbers), "ranks": shown}
            raise UsageError(say("error.layout_product", side=side, **sizes, **found))
        layout = layout._replace(dp=len(numbers) // one)
    missing = [rank for rank in range(layout.world) if rank not in numbers]
    facts = {
        "side": side,
        "layout": str(layout),
        "count": layout.world,
        "last": layout.world - 1,
        "ranks": shown,
    }
    if missing:
        raise UsageError(say("error.layout_missing", rank=missing[0], **facts))
    if len(numbers) > layout.world:
        raise UsageError(say("error.layout_several", found=len(numbers), **facts))
    return layout


def rank_numbers(ranks: list[Rank]) -> dict[int, Rank]:
    """Return the ranks by their numbers; the only rank of a run is rank 0.

    >>> rank_numbers([None]), rank_numbers([0, 1])
    ({0: None}, {0: 0, 1: 1})
    """
    if len(ranks) == 1:
        return {0: ranks[0]}
    return {rank: rank for rank in ranks if isinstance(rank, int)}


def header_layout(folder: DumpFolder) -> str | Mapping[str, Any] | None:
    """Return the layout that the header of a dump names; None where it names none. Its entries are not read."""
    try:
        with open_text(os.path.join(folder.path, files.DUMP)) as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return None
    before, has_data, _ = head.partition('"data"')
    text = before.rstrip().rstrip(",") + "}" if has_data else head
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        return None
    run = header.get("run") if isinstance(header, dict) else None
    given = run.get("layout") if isinstance(run, dict) else None
    return given if isinstance(given, (str, dict)) and given else None
