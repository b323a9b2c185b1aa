# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A place where a difference begins, and the kinds of such places."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from probe.findings.sentence import Finding, Sentence
from probe.reading.dumps.flow import Frame
from probe.store.file_names import Rank

_JSON_KEYS = (
    "kind", "name", "place", "cell", "step", "rank", "sentence", "stack", "file", "line", "source", "rel_l2", "more",
    "ranks", "why",
)  # fmt: skip


class Kind:
    """The kinds of origins."""

    OUTSIDE = "outside value"
    DATA = "data"
    PARAMETER = "parameter"
    OPTIMIZER = "optimizer"
    ARGUMENT = "argument"
    WIRING = "wiring"
    CALLS = "calls"
    COMPUTATION = "computation"
    GRADIENT = "gradient"
    COMMUNICATION = "communication"
    RANDOM = "random"
    FORM = "another form"  # of the same: no origin, but a change that is told


class Site(NamedTuple):
    """A place in a dump."""

    name: str  # the entry in B (in A if it is only there)
    place: str = ""  # the place in the call: "input.0"
    cell: str | None = None  # path and class of the Cell around it
    step: int | None = None
    rank: Rank = None
    order: int = 0  # the position of the call in its step
    after_backward: bool = False  # whether the call comes after the first backward
    #: the entries in A and in B; "" where there is none, or a parameter is the place
    calls: tuple[str, str] = ("", "")


class CodeLine(NamedTuple):
    """The code that made a call."""

    stack: list[str]  # the frames of the call, innermost first
    frame: Frame | None  # the innermost frame of the user's code
    frames: tuple[Frame | None, Frame | None] = (None, None)  # that in A and in B


@dataclass(frozen=True)
class Origin(Finding):
    """A place where a difference begins. Who knows more about it makes a new one."""

    kind: str  # a ``Kind``
    site: Site  # the place
    said: Sentence  # one sentence about it
    code: CodeLine  # the code that made the call
    rel_l2: float | None = None  # the distance of the values
    #: further places of the same kind; this origin stands for them
    more: Sequence[str] = field(default_factory=list)
    ranks: Sequence[Rank] = field(default_factory=list)  # further ranks with the same origin
    why: str = ""  # the rule by which it was found
    is_harmless: bool = False  # it is a change that is proved to change no value
    is_uncompared: bool = False  # it was made in steps that are not compared
    later: int | None = None  # the first step in which a value differs by it; None for its own step
    #: the content in A and B of a value that no recorded call made, where it is known
    given: tuple[Hashable, ...] = ()
    #: the content in A and B of a value that its place alone makes the batch: it may be a constant
    first_value: tuple[Hashable, ...] = ()

    name = property(attrgetter("site.name"), doc="The entry in B (in A if it is only there).")
    place = property(attrgetter("site.place"), doc='The place in the call: "input.0".')
    cell = property(attrgetter("site.cell"), doc="Path and class of the Cell around it.")
    step = property(attrgetter("site.step"), doc="The step.")
    rank = property(attrgetter("site.rank"), doc="The rank.")
    stack = property(
        attrgetter("code.stack"), doc="The frames of the code that made the call, innermost first."
    )
    file = property(
        lambda self: self.code.frame and self.code.frame.file,
        doc="The file of the user's own code.",
    )
    line = property(
        lambda self: self.code.frame and self.code.frame.line, doc="The number of its line."
    )
    source = property(
        lambda self: self.code.frame and self.code.frame.source, doc="The text of the line."
    )

    @property
    def acts_in(self) -> int | None:
        """The first step in which a value differs by it."""
        step: int | None = self.step
        return step if self.later is None else self.later

    def __hash__(self) -> int:
        return hash((self.kind, self.site))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**{key: getattr(self, key) for key in _JSON_KEYS}, **self.said.to_dict()}
