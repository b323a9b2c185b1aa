# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A call as it is handed to another process, and its result. It needs numpy alone: the script holds a copy.

A value of a call is described by plain JSON: ``{"array": …, "dtype": …, "shape": …}`` is a tensor, ``{"dtype": …}``
a dtype, ``{"slice": […]}`` a slice, ``{"ellipsis": true}``, ``{"numpy": "float32", "value": …}`` a number of numpy,
``{"items": {…}}`` a dict; all others stand for themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.findings.sentence import Sentence, say
from probe.replaying.judging import NOT_REPLAYED, Judged


class CannotReplayError(Exception):
    """A call cannot be made again.

    Args:
        key: the key of the reason.
        **facts: the facts of the reason.

    Attributes:
        reason: says why.
    """

    def __init__(self, key: str, /, **facts: Any) -> None:
        self.reason = say(key, **facts)
        super().__init__(self.reason)


class Made(NamedTuple):
    """The outputs that another device has made.

    Attributes:
        outputs: their descriptions; None for others than tensors and numbers.
        as_list: whether lists are lists.
        mixed: the dtype to which mixed precision has cast the inputs, or "".
        notes: remarks, as JSON has sentences.
    """

    outputs: list[Any]
    as_list: bool
    mixed: str
    notes: list[dict[str, Any]]


class CallDescription(NamedTuple):
    """A call that can be made again.

    Attributes:
        key: the name of its entry without number and direction.
        args: its positional arguments.
        kwargs: its other arguments.
        attributes: those of a Primitive.
        unsure: the place of a value that the record does not hold, or "".
        expected: its recorded outputs, of a backward the gradients of its inputs; None for those that are not judged.
        places: the places of these.
        sens: of a backward the gradients of its outputs.
        here: its outputs of another device; None lets the process make them.
    """

    key: str
    args: list[Any]
    kwargs: dict[str, Any]
    attributes: dict[str, Any]
    unsure: str
    expected: list[Any]
    places: list[str]
    sens: list[Any] | None = None
    here: Made | None = None


class ReplayResult(NamedTuple):
    """The result of a call.

    Attributes:
        verdict: that of its worst output, or "not replayable".
        reason: why it is not replayable, or NOTHING.
        golden: how the golden outputs were made.
        outputs: the verdict on each output.
    """

    verdict: str
    reason: Sentence
    golden: str
    outputs: list[Judged]


def not_replayed(reason: Sentence) -> ReplayResult:
    """Return the result of a call that cannot be made again."""
    return ReplayResult(NOT_REPLAYED, reason, "", [])
