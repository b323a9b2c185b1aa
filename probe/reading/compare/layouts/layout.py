# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A parallel layout: how many ranks share a tensor, how many stages and replicas there are, and who is who."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.reading.dumps.folders import DumpFolder
from probe.store import file_names as files
from probe.store.file_names import Rank

ALLOWED = "Allowed: tp, pp, dp, vpp with a number from 1, and order, as tp=8,pp=2,order=tp-cp-ep-dp-pp."
_SIZES = ("tp", "pp", "dp", "vpp")
_AXES = ("tp", "dp", "pp")
#: Megatron's order: neighbours in a tensor-parallel group have neighbouring ranks
_ORDER = "tp-cp-ep-dp-pp"
_HEAD = 1 << 16


class Layout(NamedTuple):
    """The sizes of the groups of ranks.

    Attributes:
        tp: how many ranks share the tensors of a layer.
        pp: the number of pipeline stages.
        dp: the number of replicas; 0 means as many as there are ranks for.
        vpp: how many chunks of layers a stage holds.
        order: the axes, the one whose neighbours have neighbouring ranks first.

    >>> Layout(tp=2, pp=2, dp=2).rank(tp=1, dp=0, pp=1)
    5
    """

    tp: int = 1
    pp: int = 1
    dp: int = 0
    vpp: int = 1
    order: tuple[str, ...] = _AXES

    @property
    def world(self) -> int:
        """The number of ranks."""
        return self.tp * self.pp * max(self.dp, 1)

    def rank(self, **places: int) -> int:
        """Return the rank at a place: tp=1, dp=0, pp=0."""
        found, stride = 0, 1
        for axis in self.order:
            found += stride * places[axis]
            stride *= max(getattr(self, axis), 1)
        return found

    def __str__(self) -> str:
        return f"tp={self.tp}, pp={self.pp}, dp={self.dp}" + (f", vpp={self.vpp}" if self.vpp > 1 else "")


def parse_layout(given: str | Mapping[str, Any], option: str) -> Layout:
    """Return the layout that a text, or an object of a header, means.

    Args:
        given: as "tp=8,pp=2".
        option: the name of the option, for the message.

    >>> str(parse_layout("tp=8, pp=2", "--layout-a"))
    'tp=8, pp=2, dp=0'

    Raises:
        UsageError: when it means none.
    """
    pairs: list[tuple[str, str]] = []
    if isinstance(given, Mapping):
        pairs = [(str(key), str(value)) for key, value in given.items()]
    else:
        for part in str(given).replace(",", " ").split():
            key, _, value = part.partition("=")
            pairs.append((key, value))
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise UsageError(f"{option}: {key} is given twice. {ALLOWED}")
        if key == "order":
            found[key] = _order(value, option)
        elif key in _SIZES and value.isascii() and value.isdigit() and 0 < len(value) < 7 and int(value):
            found[key] = int(value)
        else:
            raise UsageError(f"{option}: {key + '=' + value if value else key!r} is not allowed. {ALLOWED}")
    if not found:
        raise UsageError(f"{option}: {given!r} is not allowed. {ALLOWED}")
    return Layout(**found)


def _order(text: str, option: str) -> tuple[str, ...]:
    words = text.split("-")
    if sorted({*words, *_AXES}) != sorted({*words}) or len({*words}) != len(words) or {*words} - {*_ORDER.split("-")}:
        raise UsageError(f"{option}: order={text} is not allowed. Allowed: tp, dp and pp in any order, as {_ORDER}.")
    return tuple(word for word in words if word in _AXES)


def complete(layout: Layout, ranks: list[Rank], side: str) -> Layout:
    """Return a layout with the number of replicas that the ranks of a run leave.

    Args:
        layout: the layout as it was given.
        ranks: the ranks of the run.
        side: "A" or "B".

    Raises:
        UsageError: when the ranks do not fit the layout.
    """
    numbers = rank_numbers(ranks)
    shown = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    if len(numbers) != len(ranks):
        raise UsageError(f"{side}: a layout needs folders rank0, rank1, ...; there are {shown}")
    one = layout.tp * layout.pp
    if not layout.dp:
        if len(numbers) % one:
            raise UsageError(
                f"{side}: tp={layout.tp} times pp={layout.pp} is {one}, and {len(numbers)} ranks ({shown}) are no "
                f"multiple of it. Allowed: sizes whose product is the number of ranks"
            )
        layout = layout._replace(dp=len(numbers) // one)
    missing = [rank for rank in range(layout.world) if rank not in numbers]
    if missing or len(numbers) > layout.world:
        reason = f"rank {missing[0]} is missing" if missing else f"there are {len(numbers)} ranks"
        raise UsageError(
            f"{side}: {layout} needs the {layout.world} ranks 0 to {layout.world - 1}, and {reason} ({shown}). "
            f"Allowed: sizes whose product is the number of ranks"
        )
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
    before, found, _ = head.partition('"data"')
    try:
        header = json.loads(before.rstrip().rstrip(",") + "}") if found else json.loads(head)
    except (ValueError, RecursionError):
        return None
    run = header.get("run") if isinstance(header, dict) else None
    given = run.get("layout") if isinstance(run, dict) else None
    return given if isinstance(given, (str, dict)) and given else None
