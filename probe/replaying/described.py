# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A call as it is handed to another process, and its result. It needs numpy alone: the script holds a copy.

A value of a call is described by plain JSON: ``{"array": …, "dtype": …, "shape": …}`` is a tensor, ``{"dtype": …}``
a dtype, ``{"slice": […]}`` a slice, ``{"ellipsis": true}``, ``{"numpy": "float32", "value": …}`` a number of numpy,
``{"items": {…}}`` a dict; all others stand for themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Union

from probe.findings.sentence import Sentence, say
from probe.replaying.judging import NOT_REPLAYED, Judged

#: outputs that are plain numbers -> the dtype in which they are judged
PLAIN_DTYPES = {bool: "Bool", int: "Int64", float: "Float32"}
#: (number of a step, of its output), (-1, number of an input), or None for a constant, whose values were recorded
Wire = Union[tuple[int, int], None]


class CannotReplayError(Exception):
    """A call cannot be made again; key and facts say why."""

    def __init__(self, key: str, /, **facts: Any) -> None:
        self.reason = say(key, **facts)
        super().__init__(self.reason)


class Made(NamedTuple):
    """The outputs that another device has made."""

    outputs: list[Any]  # their descriptions; None for others than tensors and numbers
    as_list: bool  # whether lists are lists
    mixed: str  # the dtype to which mixed precision has cast the inputs, or ""
    notes: list[dict[str, Any]]  # remarks, as JSON has sentences


class CallDescription(NamedTuple):
    """A call that can be made again."""

    key: str  # the name of its entry without number and direction
    args: list[Any]  # its positional arguments
    kwargs: dict[str, Any]  # its other arguments
    attributes: dict[str, Any]  # those of a Primitive
    unsure: str  # the place of a value that the record does not hold, or ""
    #: its recorded outputs, of a backward the gradients of its inputs; None for those that are not judged
    expected: list[Any]
    places: list[str]  # the places of these
    sens: list[Any] | None = None  # of a backward the gradients of its outputs
    here: Made | None = None  # its outputs of another device; None lets the process make them


class ReplayResult(NamedTuple):
    """The result of a call."""

    verdict: str  # that of its worst output, or "not replayable"
    reason: Sentence  # why it is not replayable, or NOTHING
    golden: str  # how the golden outputs were made
    outputs: list[Judged]  # the verdict on each output


class Program(NamedTuple):
    """A function that is put together of recorded calls, and recorded gradients of its inputs."""

    steps: list[dict[str, Any]]  # the descriptions of the calls, as mappings
    wires: list[list[Wire]]  # of each step, where each of its tensors comes from
    inputs: list[dict[str, Any]]  # the tensors that are varied
    gradients: list[list[dict[str, Any]]]  # of each, the recorded gradients; they are added
    places: list[str]  # the places of these
    outputs: list[Wire]  # the outputs that have gradients
    sens: list[dict[str, Any]]  # these gradients
    outside: str  # a tensor that no recorded call made, or ""


def not_replayed(reason: Sentence) -> ReplayResult:
    """Return the result of a call that cannot be made again."""
    return ReplayResult(NOT_REPLAYED, reason, "", [])
