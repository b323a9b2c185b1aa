# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every private name of MindSpore that probe uses, in one table: a new MindSpore may take any of them away.

The table is private_names.json. It has for each part of probe what is lost without the names, and the names, as words
for the ``*`` in a place. A name is written ``module:dotted.name``. ``|`` divides the places in different versions, and
``?`` at the end marks a name that only some versions have. ``Cell()`` is an instance, and the module ``node`` is the
class of graph nodes.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from probe.executor import pynative_executor

Made = TypeVar("Made")

TESTED = ("2.7.2", "2.11")  # the first MindSpore that was tested, and the first that was not


@dataclass(frozen=True)
class PrivatePart:
    """The private names that one part of probe needs."""

    part: str
    loss: str  # the data that are lost without these names
    names: tuple[str, ...]  # the names; see the module


def _parts() -> Iterator[PrivatePart]:
    for part, row in json.loads(
        (Path(__file__).parent / "private_names.json").read_text(encoding="utf-8")
    ).items():
        places = row["names"].items()
        names = (
            place.replace("*", word) for place, words in places for word in words.split() or [""]
        )
        yield PrivatePart(part, row["loss"], tuple(names))


PRIVATE_PARTS = tuple(_parts())


def is_between(version: str, first: str, end: str) -> bool:
    """Return whether a version is at least the first, and below the end.

    >>> is_between("2.10.0", "2.7.2", "2.11"), is_between("2.11.0rc1", "2.7.2", "2.11")
    (True, False)
    """
    numbers, low, high = (
        [int(part) for part in re.findall(r"\d+", text)[:3]] for text in (version, first, end)
    )
    return low <= numbers < high


@functools.lru_cache(1)
def installed_parts() -> Parts:
    """Return the parts of this process."""
    return Parts()


class Parts:
    """The parts of probe that the installed MindSpore allows: all, at a version that was tested."""

    def __init__(self) -> None:
        import mindspore

        self.version = str(mindspore.__version__)
        self.is_tested = is_between(self.version, *TESTED)
        self._lacking: dict[str, list[str]] = {}
        self._failed: dict[str, str] = {}
        self._told = ""
        for part, name in () if self.is_tested else missing_names():
            self._lacking.setdefault(part.part, []).append(name.partition(":")[2])

    def make(self, part: str, make: Callable[[], Made], otherwise: Made) -> Made:
        """Return an object of a part, or the result of its self-test; ``make`` raises where the part does not work.

        ``otherwise`` is the result where the part is off, because it lacks a private name or fails now.
        """
        if part in self._lacking:
            return otherwise
        try:
            made = make()
        except Exception as error:  # a new MindSpore may raise anything: the other parts go on
            self._failed[part] = f"{type(error).__name__}: {error}"
            return otherwise
        self._failed.pop(part, None)
        return made

    def reason(self, part: str) -> str:
        """Return why a part is off; "" where it is on."""
        return ", ".join(self._lacking.get(part, ())) or self._failed.get(part, "")

    def tell(self, log: Callable[[str], None]) -> None:
        """Say which parts are off, and that the version was not tested: nothing where all is well, nothing twice."""
        if self.is_tested and not self._failed:
            self._told = ""
            return
        text = str(self)
        if text != self._told:
            self._told = text
            log(text)

    def __str__(self) -> str:
        tested = f"MindSpore {self.version} was not tested with this probe, but versions from {TESTED[0]} and below "
        tested = "" if self.is_tested else f"{tested}{TESTED[1]} were. "
        off = {row.part: row.loss for row in PRIVATE_PARTS if self.reason(row.part)}
        if not off:
            return f"{tested}All parts passed their self-tests. `probe doctor` checks more."
        said = "; ".join(f"{part} ({loss}: {self.reason(part)})" for part, loss in off.items())
        return f"{tested}These parts are off: {said}. `probe doctor` checks more."


def missing_names() -> Iterator[tuple[PrivatePart, str]]:
    """Yield each name that the installed MindSpore lacks, and its part."""
    for part in PRIVATE_PARTS:
        for name in part.names:
            if not name.endswith("?") and not any(_exists(place) for place in name.split("|")):
                yield part, name.partition("|")[0]


def _exists(place: str) -> bool:
    module, _, dotted = place.partition(":")
    try:
        owner = _node_class() if module == "node" else importlib.import_module(module)
        for word in dotted.split("."):
            found = getattr(owner, word.removesuffix("()"))
            owner = found() if word.endswith("()") else found
    except (ImportError, AttributeError):
        return False
    return True


def _node_class() -> type:
    """Return the class of graph nodes, which no module names."""
    import mindspore

    found: list[type] = []

    def function(x: Any) -> Any:
        found.append(
            type(getattr(x * 2, "_grad_node", None))
        )  # an error here would leave MindSpore differentiating
        return x

    executor = pynative_executor()
    has_flag = bool(getattr(executor, "grad_flag", bool)())
    differentiate: Callable[..., Any] = mindspore.grad(function)
    differentiate(mindspore.Tensor([1.0], mindspore.float32))
    if has_flag:  # a training may have it on for good, and MindSpore has switched it off now
        executor.set_grad_flag(True)
    return found[0]
