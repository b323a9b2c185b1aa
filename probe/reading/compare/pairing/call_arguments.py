# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The arguments of one call, with their gradients, in a form that may be changed and written back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from probe.reading.compare.pairing.normal_dump import NormalDump, move_links, sort_links
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.values import Record, is_tensor, leaves

_NONE: dict[str, Any] = {}


class Argument(NamedTuple):
    """One argument of a call."""

    place: str  # where it stands on disk: "input.1", "input.1.0", "kwargs.dim"
    value: Any
    gradient_place: str = ""  # where its gradient stands: "output.0"; "" where it has none
    gradient: Any = None

    def items(self) -> list[Argument]:
        """Return the arguments that a list holds."""
        inner = self.gradient if type(self.gradient) is list else []
        found: list[Argument] = []
        for number, value in enumerate(self.value):
            item = Argument(f"{self.place}.{number}", value)
            if number < len(inner):
                place = f"{self.gradient_place}.{number}"
                item = item._replace(gradient_place=place, gradient=inner[number])
            found.append(item)
        return found


class CallArguments:
    """A call of one side with its arguments, which may get another form."""

    def __init__(self, dump: NormalDump, flow: Flow, place: int, sources: dict[str, int]) -> None:
        self._sources = sources
        self._dump = dump
        self._flow = flow
        self._place = place
        self._backward = self._name_of_backward()
        self.entry: dict[str, Any] = dump.data[flow.names[place]]
        gradients = dump.data[self._backward] if self._backward else _NONE
        #: by their places; None where one has got a name
        self.given: list[Argument | None] = list(
            _paired_with_gradients(
                "input", enumerate(self.entry["input_args"]), gradients.get("output")
            )
        )
        named = _paired_with_gradients(
            "kwargs", self.entry["input_kwargs"].items(), gradients.get("output_kwargs")
        )
        self.named = dict(zip(self.entry["input_kwargs"], named))

    def _name_of_backward(self) -> str:
        backward = self._flow.backward_of(self._place)
        name = self._flow.names[backward] if backward is not None else ""
        return name if type(self._dump.data.get(name)) is dict else ""

    def leaves(self, argument: Argument) -> list[tuple[Any, int]]:
        """Return the values in an argument, each with the place in A of the call that made it; NONE for no call."""
        found: list[tuple[Any, int]] = []
        for key, value in leaves([argument.value]):
            found.append((value, self._sources.get(argument.place + key[1:], NONE)))
        return found

    def tensors(self) -> dict[str, Record]:
        """Return the tensors that it is given, by their places in the present form."""
        found: dict[str, Record] = {}
        for place, argument in self._places():
            for key, value in leaves([argument.value]):
                if is_tensor(value):
                    found[place + key[1:]] = value
        return found

    def plain_values(self) -> dict[str, Any]:
        """Return the values that are no tensors, by their places in the present form; None is none."""
        found: dict[str, Any] = {}
        for place, argument in self._places():
            for key, value in leaves([argument.value]):
                if value is not None and not is_tensor(value):
                    found[place + key[1:]] = value
        return found

    def _places(self) -> list[tuple[str, Argument]]:
        given = [(f"input.{n}", item) for n, item in enumerate(self.given) if item is not None]
        named = [(f"kwargs.{name}", self.named[name]) for name in sorted(self.named)]
        return [*given, *named]

    def write(self) -> None:
        """Give the entry its arguments in their new form, the backward their gradients, and the links their places."""
        while self.given and self.given[-1] is None:
            self.given.pop()
        name = self._flow.names[self._place]
        entry = self._dump.own(name)
        entry["input_args"] = [item and item.value for item in self.given]
        entry["input_kwargs"] = {key: self.named[key].value for key in sorted(self.named)}
        moved: dict[str, str] = {}
        for place, argument in self._places():
            moved.update(_moves(argument.place, place, argument.value))
        self._dump.note_moves(name, moved)
        move_links(self._flow, self._place, moved)
        sort_links(self._flow, self._place)
        if self._backward:
            self._write_gradients(self._dump.own(self._backward))

    def _write_gradients(self, entry: dict[str, Any]) -> None:
        given = [item for item in self.given if item is not None and item.gradient_place]
        named = {key: item for key, item in sorted(self.named.items()) if item.gradient_place}
        if given or "output" in entry:
            entry["output"] = [item.gradient for item in given]
        if named or "output_kwargs" in entry:
            entry["output_kwargs"] = {key: item.gradient for key, item in named.items()}
        moved: dict[str, str] = {}
        places = [(f"output.{number}", item) for number, item in enumerate(given)]
        places += [(f"output_kwargs.{key}", item) for key, item in named.items()]
        for place, item in places:
            moved.update(_moves(item.gradient_place, place, item.gradient))
        self._dump.note_moves(self._backward, moved)


def _paired_with_gradients(
    word: str, values: Iterable[tuple[Any, Any]], gradients: Any
) -> list[Argument]:
    """Return arguments with their gradients: those by place have one for each argument that holds tensors."""
    made: list[Argument] = []
    holders = 0
    for key, value in values:
        argument = Argument(f"{word}.{key}", value)
        if any(is_tensor(leaf) for _, leaf in leaves([value])):
            if type(gradients) is list and holders < len(gradients):
                place = f"output.{holders}"
                argument = argument._replace(gradient_place=place, gradient=gradients[holders])
            elif type(gradients) is dict and key in gradients:
                place = f"output_kwargs.{key}"
                argument = argument._replace(gradient_place=place, gradient=gradients[key])
            holders += 1
        made.append(argument)
    return made


def _moves(old: str, new: str, value: Any) -> dict[str, str]:
    """Return place on disk -> new one, of all values in an argument."""
    # the key of the first is "0", or begins with "0."
    inner = [key[1:] for key, _ in leaves([value])]
    return {f"{old}{key}": f"{new}{key}" for key in inner}
