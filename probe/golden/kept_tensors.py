# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The tensors of the last entries, by reference; those of a call that differs, and of its makers, as copies."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from probe.entry import Entry, Kind
from probe.measure.measurer import ITEM, ArraySink, Measurer, Role, ScalarRecord, TensorRecord
from probe.measure.storage import memory_of
from probe.measure.tensor_reader import Array, to_storable
from probe.naming import written_inputs
from probe.pytree import leaves, tree_map

#: the parts of an entry that hold tensors -> how their places begin
_PARTS = {
    "input_args": "input", "input_kwargs": "kwargs", "parameters": "parameters", "input": "input", "output": "output",
    "output_kwargs": "output_kwargs",
}  # fmt: skip
_MADE = ("output", "output_kwargs")
_MOST = 64  # at most so many tensors of one entry are kept: an update has those of the whole model


class Held:
    """One entry whose arrays are kept: copies, by the identity of their records."""

    def __init__(self, entry: Entry, arrays: dict[int, Array]) -> None:
        self.entry = entry
        self._arrays = arrays

    def write(self, sink: ArraySink) -> Entry:
        """Write the arrays; return the parts of the entry with the names of their files."""

        def named(record: Any, place: str) -> Any:
            array = self._arrays.get(id(record))
            saved = "" if array is None else sink(f"{self.entry.name}.{place}", array)[0]
            return record.with_key(f'"data_name": {json.dumps(saved)}') if saved else record

        return self.entry.further(
            {
                key: tree_map(named, part, _PARTS.get(key, key), TensorRecord)
                for key, part in self.entry.parts.items()
                if key in _PARTS or self.entry.kind is Kind.PARAMETER_GRADIENT
            }
        )


class KeptTensors:
    """Keeps the tensors of the last ``most`` entries, and copies of as many that may be the first difference."""

    def __init__(self, most: int, exact: bool) -> None:
        self.held: dict[
            str, Held
        ] = {}  # name -> an entry that may differ, or a maker of its inputs
        self._most = most
        self._exact = exact
        self._tensors: deque[list[tuple[Any, Any]]] = deque([[]], maxlen=most + 1)
        self._entries: deque[Entry] = deque(maxlen=most)
        self._suspects = 0

    def add(self, record: Any, tensor: Any) -> None:
        """Keep a tensor, or an array that nobody writes, by reference."""
        own = self._tensors[-1]
        if len(own) < _MOST:
            own.append((record, tensor))

    def end(self, entry: Entry) -> None:
        """End an entry: its tensors are those that were added since the one before."""
        self._entries.append(entry)
        self._tensors.append([])

    def protect(self, tensor: Any, read: Callable[[Any], Array]) -> None:
        """Copy the kept tensors that share memory with one that is about to be written."""
        memory = memory_of(tensor)
        for own in self._tensors:
            for place, (record, kept) in enumerate(own):
                if not isinstance(kept, np.ndarray) and memory_of(kept).overlaps(memory):
                    own[place] = record, np.array(read(kept))

    def hold(self, entry: Entry, measurer: Measurer) -> None:
        """Copy the tensors of an entry that may differ, and of the entries that made its inputs."""
        if self._suspects >= self._most:
            return
        self._suspects += 1
        known = {id(record): (record, tensor) for own in self._tensors for record, tensor in own}
        given = {
            record.text(ITEM)
            for key in entry.parts
            if key not in _MADE
            for record in _records(entry, (key,))
        }
        makers = [
            it
            for it in self._entries
            if any(record.text(ITEM) in given for record in _records(it, _MADE))
        ]
        for one in (entry, *makers):
            if one.name not in self.held:
                found = {
                    id(record): known[id(record)]
                    for record in _records(one, one.parts)
                    if id(record) in known
                }
                copies = {key: self._copy(*pair, measurer) for key, pair in found.items()}
                self.held[one.name] = Held(
                    one, {key: copy for key, copy in copies.items() if copy is not None}
                )

    def _copy(self, record: Any, tensor: Any, measurer: Measurer) -> Array | None:
        """Return the values that a record describes; None where something has written them since."""
        array = np.array(tensor if isinstance(tensor, np.ndarray) else measurer.read(tensor))
        known = json.loads(record.text(""))
        if (
            not json.loads(measurer.array(array, known["dtype"], "", None).text("")).items()
            <= known.items()
        ):
            return None
        return to_storable(array, self._exact)


def _records(entry: Entry, keys: Any) -> Iterator[Any]:
    for key in keys:
        for leaf in leaves(entry.parts.get(key)):
            if isinstance(leaf, TensorRecord) and not isinstance(leaf, ScalarRecord):
                yield leaf


class KeepingMeasurer:
    """Measures as another measurer does, and keeps each tensor."""

    def __init__(self, kept: KeptTensors, measurer: Measurer) -> None:
        self.is_immediate = measurer.is_immediate
        self.read = measurer.read
        self.forget = measurer.forget
        self._kept = kept
        self._measurer = measurer

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of a tensor; see ``Measurer``."""
        record = self._measurer.tensor(tensor, name, sink, role)
        values = tensor
        if role is not Role.OUTPUT and self.is_immediate and written_inputs(_key(name)):
            self._kept.protect(tensor, self.read)
            values = np.array(self.read(tensor))
        self._kept.add(record, values)
        return record

    def array(self, array: Array, dtype: str, name: str, sink: ArraySink | None) -> Any:
        """Return the record of an array, as of a sum of gradients; see ``Measurer``."""
        record = self._measurer.array(array, dtype, name, sink)
        self._kept.add(record, array)
        return record


def _key(name: str) -> str:
    """Return the key of the call at whose place a tensor is.

    >>> _key("Tensor.add_.0.forward.input.0"), _key("Functional.relu.12.forward")
    ('Tensor.add_', 'Functional.relu')
    """
    return name.partition(".forward")[0].rpartition(".")[0]
