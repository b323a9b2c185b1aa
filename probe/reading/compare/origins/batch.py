# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The values from outside that are the batch."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.flow import Link, content_key, is_constant
from probe.reading.dumps.values import Record, count_of, is_tensor

_SIDES = 2
#: so many equal elements are no chance
_SEVERAL = 8


class Batch:
    """The tensors that a step is given from outside."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def holds(self, node: int, slot: Slot) -> bool:
        """Return whether a value from outside is the batch.

        The batch is integers, or the tensor that the first call is given. A tensor with as many samples is of the data
        set too if it enters an outermost Cell, or a call outside of all Cells, as the labels of a regression. One that
        is the same number everywhere is a constant.
        """
        sides = _tensors(slot)
        if any(map(_is_integer, sides)):
            return True
        first = self._given[:1]
        others = self._given[1:]
        if _share_content(sides, first):
            return True
        if len(sides) == _SIDES and all(map(_is_one_number, sides)):
            return False  # as the targets "real" and "fake" of a discriminator, which the program makes
        sizes = {_samples(given) for given in first} - {0, 1}
        if sizes.isdisjoint(map(_samples, sides)):
            return False  # as a mask, which the outermost Cells may be given too
        flow, own = self._graph.flow(node)
        is_outside = self._has_cells and flow.cells[own] is None
        return is_outside or _share_content(sides, others)

    def is_fed(self, node: int, slot: Slot) -> bool:
        """Return whether a value from outside enters an outermost Cell, or a call beside the result of another call.

        Such a call is a loss. A table that a script looks up with a batch of numbers is neither.
        """
        if _share_content(_tensors(slot), self._of_model):
            return True
        flow, own = self._graph.flow(node)
        return any(link.producer >= 0 for link in flow.links[own])

    @functools.cached_property
    def _has_cells(self) -> bool:
        """Whether Cells were recorded, so that a call outside of them is known as one."""
        nodes = range(len(self._graph.pairs))
        return any(self._graph.parts(node).kind == CELL for node in nodes)

    @functools.cached_property
    def _given(self) -> list[Record]:
        """The first input of the first call, and the inputs of all outermost Cells that no recorded call made."""
        given: list[Record] = []
        has_first = False
        for node in range(len(self._graph.pairs)):
            flow, place = self._graph.flow(node)
            links = flow.links[place]
            if links and not has_first and not self._graph.is_container(node):
                has_first = True
                given += [link.record for link in links[:1] if link.place == "input.0"]
            given += self._of_outermost(node)
        return given

    @functools.cached_property
    def _of_model(self) -> list[Record]:
        """The inputs of all outermost Cells that no recorded call made."""
        nodes = range(len(self._graph.pairs))
        return [given for node in nodes for given in self._of_outermost(node)]

    def _of_outermost(self, node: int) -> list[Record]:
        """Return the inputs of an outermost Cell that no recorded call made; of other entries nothing."""
        flow, place = self._graph.flow(node)
        parts = self._graph.parts(node)
        if parts.kind != CELL or parts.direction != FORWARD or flow.cells[place] is not None:
            return []
        return [link.record for link in flow.links[place] if _is_from_outside(link)]


def _tensors(slot: Slot) -> list[Record]:
    return [side for side in (slot.a, slot.b) if is_tensor(side)]


def _is_one_number(record: Record) -> bool:
    """Return whether a tensor of several elements has one number alone: a few samples may be equal by chance."""
    return is_constant(record) and (count_of(record) or 0) >= _SEVERAL


def _is_integer(record: Record) -> bool:
    return str(record.get("dtype")).startswith(("Int", "UInt"))


def _share_content(records: Iterable[Record], others: Iterable[Record]) -> bool:
    """Return whether a record has the content of another one, as far as contents are known."""
    contents = {content_key(record) for record in records} - {None}
    return not contents.isdisjoint(map(content_key, others))


def _is_from_outside(link: Link) -> bool:
    """Return whether no recorded call made an input, and it is no parameter."""
    is_input = link.place.startswith("input.")
    return is_input and link.producer < 0 and link.parameter is None


def _samples(record: Any) -> int:
    """Return the first dimension of a tensor; 0 where it has none, or it is not known."""
    shape = record.get("shape")
    if not isinstance(shape, list) or not shape:
        return 0
    return shape[0] if type(shape[0]) is int else 0
