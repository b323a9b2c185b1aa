# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One step of one rank: its calls, their tensors, stacks and Cells, read when they are touched."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.findings.system import reason_of
from probe.reading.dumps import entry_name, text, values
from probe.reading.dumps.document import Document, paused_gc
from probe.reading.dumps.entry_view import (
    INPUTS,
    OUTPUTS,
    WORDS,
    Cell,
    EntryView,
    TensorNumbers,
    build,
)
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.text import safe
from probe.reading.dumps.values import NUMBERS, Record
from probe.store import file_names

if TYPE_CHECKING:
    import numpy as np

Result = TypeVar("Result")
Failed = TypeVar("Failed")


class Call(EntryView):
    """One entry of a dump.

    It is a call of an API or a Cell, forward or backward, or the gradients of a Cell's parameters.

    Example::

        call = dump["Functional.softmax.1.forward"]
        call.cell, call.inputs["0"].mean, call.stack[0]
    """

    __slots__ = ("dump",)

    def __init__(self, dump: Dump, name: str, entry: Any) -> None:
        super().__init__(name, entry)
        self.dump = dump

    @property
    def cell(self) -> str | None:
        """Path and class of the Cell around it: "blocks.1.attention.Attention"; None outside of every Cell."""
        return entry_name.cell_label(self.dump.construct.get(self.name))

    @property
    def parent(self) -> Call | None:
        """The call of the Cell around it."""
        name = self.dump.construct.get(self.name)
        return self.dump.get(name) if name else None

    @property
    def stack(self) -> list[str]:
        """The frames it was called in, innermost first; those of a backward are its forward's."""
        stacks = self.dump.stacks
        return stacks.get(self.name) or stacks.get(self.parts.forward) or []

    @property
    def inputs(self) -> dict[str, Any]:
        """The tensors and plain values it was given, by place: {"0": Tensor, "axis": -1}."""
        return self._values(INPUTS)

    @property
    def outputs(self) -> dict[str, Any]:
        """The tensors and plain values it gave; of parameters_grad the gradients, by parameter."""
        if self.parts.kind in (entry_name.GRADIENT, entry_name.DEBUG):
            return {key: self._value(key, leaf) for key, leaf in values.leaves(self.entry)}
        return self._values(OUTPUTS)

    @property
    def parameters(self) -> dict[str, Any]:
        """The Cell's own parameters."""
        return self._values(("parameters",))

    def tensors(self) -> Iterator[Tensor]:
        """Yield every tensor of the call, in the order of the file."""
        if values.is_tensor(self.entry):
            yield Tensor(self, "0", self.entry)
        elif isinstance(self.entry, dict):
            for key, part in self.entry.items():
                yield from (
                    Tensor(self, *item) for item in values.tensors(WORDS.get(key) or key, part)
                )
        elif isinstance(self.entry, list):
            yield from (
                Tensor(self, place[1:], record) for place, record in values.tensors("", self.entry)
            )

    def _values(self, keys: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(self.entry, dict):
            return {}
        found = ((WORDS[key], item) for key in keys for item in values.leaves(self.entry.get(key)))
        return {place: self._value(f"{word}.{place}", leaf) for word, (place, leaf) in found}

    def _value(self, place: str, leaf: Any) -> Any:
        return Tensor(self, place, leaf) if values.is_tensor(leaf) else values.plain(leaf)

    def __repr__(self) -> str:
        return safe(f"<Call {self.name}{f' in {self.cell}' if self.cell else ''}>")

    def _repr_html_(self) -> str:
        rows = (
            [
                it.place,
                it.dtype,
                text.shape(it.shape),
                *(text.number(it.record.get(key)) for key in NUMBERS),
            ]
            for it in self.tensors()
        )
        head = text.html_table([(self.name, self.cell or "")])
        return head + text.html_table([("", "dtype", "shape", *NUMBERS), *rows])


class Tensor(TensorNumbers):
    """One tensor of a call, at a place of the entry: "input.0", "output.1", "parameters.weight".

    Example::

        tensor = dump["Functional.softmax.1.forward"].outputs["0"]
        tensor.max, tensor.shape, tensor.producer
    """

    __slots__ = ("call", "place")

    def __init__(self, call: Call, place: str, record: Record) -> None:
        super().__init__(record)
        self.call = call
        self.place = place

    @property
    def name(self) -> str:
        """The entry's name and the place: "Functional.relu.0.forward.input.0"."""
        return f"{self.call.name}.{self.place}"

    @property
    def path(self) -> str | None:
        """The file of its array; None where no array was written."""
        name = values.array_name(self.record)
        if not name:
            return None
        find = self.call.dump.document.array_path
        return find(name) if find else os.path.join(self.call.dump.path, file_names.ARRAYS, name)

    def array(self) -> np.ndarray[Any, Any]:
        """Return its array, bfloat16 as ``ml_dtypes.bfloat16``.

        Raises:
            UsageError: when no array was written, or the file cannot be read.
        """
        path = self.path
        if path is None:
            raise UsageError(say("error.no_array", name=self.name))
        from probe.reading.dumps.load import load_array

        return load_array(path, self.dtype)

    @property
    def producer(self) -> Call | None:
        """The call that made this tensor; None where it comes from outside of the recorded calls."""
        dump = self.call.dump
        name = dump.flow.producer(self.call.name, self.place, self.record)
        return None if name is None else dump[name]

    @property
    def users(self) -> list[Call]:
        """The calls that were given this tensor."""
        dump = self.call.dump
        return [dump[name] for name in dump.flow.users(self.call.name, self.place, self.record)]

    def __repr__(self) -> str:
        numbers = ", ".join(f"{key} {text.number(self.record.get(key))}" for key in NUMBERS)
        return text.safe(
            f"<Tensor {self.name} {self.dtype} {text.shape(self.record.get('shape'))}: {numbers}>"
        )

    def _repr_html_(self) -> str:
        rows = {
            "name": self.name,
            "dtype": self.dtype,
            "shape": text.shape(self.record.get("shape")),
            **self.stats,
        }
        return text.html_table(rows.items())


class Dump:
    """One step of one rank, read when it is touched.

    Attributes:
        folder: the folder that was found.
        path: its path: the rank folder.
        step: the step; None where the folders do not say.
        rank: the rank; None where communication was not initialised.

    Example::

        dump = probe.open("dump_path")[0]
        dump.header["task"], len(dump), dump["Tensor.__add__.0.forward"].outputs["0"].norm
    """

    def __init__(self, folder: DumpFolder, document: Document | None = None) -> None:
        self.folder = folder
        self.path = folder.path
        self.step = folder.step
        self.rank = folder.rank
        if document is not None:
            self.document = document

    @cached_property
    def document(self) -> Document:
        """The document as it was read; UsageError is raised when it cannot be."""
        return self.folder.source.read(self.folder.path)

    @property
    def header(self) -> dict[str, Any]:
        """The keys beside "data": task, level, framework."""
        return self.document.header

    @property
    def data(self) -> dict[str, Any]:
        """Entry name -> entry, as the file has it."""
        return self.document.data

    @property
    def notes(self) -> list[str]:
        """Remarks on the folder, such as a journal that was not recovered."""
        return [str(note) for note in self.document.notes]

    @cached_property
    def stacks(self) -> dict[str, list[str]]:
        """Forward entry name -> frames, innermost first."""
        return self.document.stacks()

    @cached_property
    def construct(self) -> dict[str, str | None]:
        """Entry name -> the entry of the Cell around it."""
        return self.document.construct()

    @cached_property
    def flow(self) -> Flow:
        """Who made which tensor, and who uses it."""
        return Flow(self)

    def flow_like(self, other: Flow) -> Flow:
        """Return the dataflow; names that another one has taken apart already are not taken apart again."""
        if "flow" not in vars(self):
            self.flow = Flow(self, other)
        return self.flow

    def release(self) -> None:
        """Drop the documents, so that their memory is free at once. The next access reads them again."""
        for name in ("document", "stacks", "construct", "flow"):
            vars(self).pop(name, None)

    @property
    def tree(self) -> Cell[Call]:
        """The Cells: the root, whose children are the outermost ones."""
        return build(self, self.get)

    def __getitem__(self, name: str) -> Call:
        try:
            return Call(self, name, self.data[name])
        except KeyError:
            raise KeyError(f"{safe(name)} is not in {self.path}") from None

    def get(self, name: str) -> Call | None:
        """Return the call of this name; None where there is none."""
        return Call(self, name, self.data[name]) if name in self.data else None

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Call]:
        for name, entry in self.data.items():
            yield Call(self, name, entry)

    def __contains__(self, name: object) -> bool:
        return name in self.data

    def calls(
        self,
        like: str | None = None,
        regex: str | None = None,
        kind: str | None = None,
        direction: str | None = None,
        cell: str | None = None,
    ) -> Iterator[Call]:
        """Yield the calls that fit, in the order of the file.

        Args:
            like: a part of the name.
            regex: a regular expression that is searched for in the name.
            kind: the first word: "Functional", "Cell".
            direction: "forward" or "backward".
            cell: a part of the path of the Cell around it, or of the Cell itself.

        Example::

            for call in dump.calls(like="softmax", direction="forward", cell="blocks.1"):
                print(call)
        """
        pattern = re.compile(regex) if regex else None
        for name, entry in self.data.items():
            if (like and like not in name) or (pattern and not pattern.search(name)):
                continue
            call = Call(self, name, entry)
            if (kind and call.kind != kind) or (direction and call.direction != direction):
                continue
            if cell and cell not in (call.parts.path or "") and cell not in (call.cell or ""):
                continue
            yield call

    def tensors(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (place, record) of every tensor: ("Functional.relu.0.forward.output.0", {...})."""
        for name, entry in self.data.items():
            if type(entry) is dict and "type" not in entry:
                for key, part in entry.items():
                    yield from values.tensors(f"{name}.{WORDS.get(key, key)}", part)
            else:
                yield from values.tensors(name, entry)

    def __repr__(self) -> str:
        return safe(f"<Dump {self.folder.label} in {self.path}>")

    def _repr_html_(self) -> str:
        return text.html_table((call.name, call.cell or "") for call in self)


def look_into_dump(
    folder: DumpFolder, look: Callable[[Dump], Result], failed: Callable[[Sentence], Failed]
) -> Result | Failed:
    """Return what a function finds in a dump, released then, or what ``failed`` makes of why it cannot be read."""
    dump = Dump(folder)
    try:
        with paused_gc():
            return look(dump)
    except UsageError as error:
        return failed(reason_of(error))
    finally:
        dump.release()
