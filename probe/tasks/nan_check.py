# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Where the NaN came from: the first call that makes what is not finite of what is."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from probe.errors import NonFiniteError
from probe.measure.extrema import ExtremaMeasurer, TensorExtrema
from probe.naming import COLLECTIVE

if TYPE_CHECKING:
    from probe.config.settings import Settings
    from probe.store.documents import JsonDocuments
    from probe.store.dump_writer import Entry

_log = logging.getLogger("probe")

_INPUTS = {"forward": ("input_args", "input_kwargs", "parameters"), "backward": ("input",)}
#: its kernel on CPU leaves some of its further outputs as the memory was
_FIRST_ONLY = re.compile(r"\.BatchNorm\.\d+\.forward$")
#: these give memory as it was
_UNWRITTEN = re.compile(r"\.(new_)?empty(_like|_strided)?\.\d+\.forward$")
_GRADIENTS = ".parameters_grad."
_OUTPUTS = {"forward": ("output",), "backward": ("output", "output_kwargs")}


class Sink(Protocol):
    """What is told (the recorder)."""

    theirs: BaseException | None

    def trouble(self, place: str, error: BaseException, what: str = "") -> bool:
        """End an error of the tool."""


class NanCheck:
    """Keeps the last finished calls, and writes them with the first that is to blame.

    Args:
        meter: what looked at the tensors.
        documents: where they are written.
        settings: how many calls before it are kept, and whether the training is to be stopped.
        sink: where errors of ours end, and where an error for the training is put.

    Attributes:
        found: the name of the entry that is to blame, or "".
    """

    def __init__(self, meter: ExtremaMeasurer, documents: JsonDocuments, settings: Settings, sink: Sink) -> None:
        self._meter, self._documents, self._sink = meter, documents, sink
        self._raises = settings.on_nan == "raise"
        self._most = settings.last_calls
        self._kept: dict[str, Entry] = {}
        self._stacks: dict[str, int] = {}
        self._given: set[str] = set()  # forward entries that were given what is not finite, and the Cells around them
        self._suspects: dict[str, Entry] = {}  # parameters' gradients, whose Cells' backwards are still to come
        self._passed: dict[str, bool] = {}  # Cells whose backwards have come, and whether they were given finite values
        self._outside = ""
        self.found = ""

    def take(self, entry: Entry) -> None:
        """Look at a finished entry."""
        try:
            self._take(entry)
        except Exception as error:
            self._sink.trouble("looking for what is not finite", error, entry[0])

    def close(self) -> str:
        """Return what is to be said where something was not finite and no call was to blame, or ""."""
        outside = self._outside or next((entry[0] for entry in self._suspects.values()), "")
        if not outside or self.found:
            return ""
        return f"{outside} is given what is not finite, but no call that is recorded made it of finite inputs"

    def _take(self, entry: Entry) -> None:
        name, parts, stack, _ = entry
        if self.found or not isinstance(parts, dict):
            return
        if stack >= 0:
            self._stacks[name] = stack
        if self._meter.strange and self._judged(entry):
            return
        if name.startswith("Cell.") and "input" in parts:
            clean = name.replace(".backward", ".forward") not in self._given and _all_finite(parts["input"])
            self._passed[name.partition(".backward.")[0]] = clean
        self._release(parts)
        if name in self._kept:  # further keys of an entry, as of parameters_grad
            self._kept[name][1].update(parts)
            return
        self._kept[name] = entry
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    @staticmethod
    def _release(parts: dict[str, Any]) -> None:
        for value in parts.values():
            for item in value.values() if type(value) is dict else value if type(value) is list else ():
                if type(item) is TensorExtrema:
                    item.release()
                elif type(item) is list or type(item) is dict:
                    for leaf in _leaves(item):
                        if type(leaf) is TensorExtrema:
                            leaf.release()

    def _judged(self, entry: Entry) -> bool:
        """Return whether this entry is to blame, or may turn out to be; if it is, it is written."""
        name, parts, _, _ = entry
        if _GRADIENTS in name:
            return self._gradient_judged(entry)
        backward = "input" in parts
        forward = name.replace(".backward", ".forward")
        outputs = [parts.get(key) for key in _OUTPUTS["backward" if backward else "forward"]]
        if _FIRST_ONLY.search(name):
            outputs = [part[:1] for part in outputs if part]
        suspect = self._suspects.pop(name.partition(".backward.")[0], None) if backward else None
        if _UNWRITTEN.search(name) or (suspect is None and _all_finite(outputs)):
            return False
        inputs = [parts.get(key) for key in _INPUTS["backward" if backward else "forward"]]
        if forward in self._given or not _all_finite(inputs):
            self._note_given(entry)
            return False
        if name.startswith("Cell.") and not backward and all(_meant(leaf) for leaf in _leaves(outputs)):
            return False
        if suspect is not None:
            self._kept[name] = entry
            self._release(parts)
        self._write(suspect or entry)
        return True

    def _gradient_judged(self, entry: Entry) -> bool:
        """Judge a parameter's gradient, by what the backward of its Cell was given: before it or after it."""
        name, parts, _, _ = entry
        key = name.partition(_GRADIENTS)[0]
        if _all_finite(parts) or not self._passed.get(key, True):
            return False
        if key in self._passed:
            self._write(entry)
        else:
            self._suspects.setdefault(key, entry)
        return True

    def _note_given(self, entry: Entry) -> None:
        """Note that this call is not to blame, nor are the Cells that it happened in."""
        self._outside = self._outside or entry[0]
        around = [name for place in entry[3] for name in place if name is not None]
        self._given.update(name.replace(".backward", ".forward") for name in (entry[0], *around))

    def _write(self, entry: Entry) -> None:
        self.found = entry[0]
        seen = [leaf for leaf in _leaves(entry[1]) if isinstance(leaf, TensorExtrema)]
        if [leaf for leaf in seen if not leaf.complete(self._meter.host)]:
            entry[1]["error"] = "a tensor was changed while the call ran: of it only Max and Min are known"
        for kept in (*self._kept.values(), entry):
            forward = kept[0].replace(".backward", ".forward")
            if forward in self._stacks:  # a backward is understood by the stack of its forward
                self._documents.stack(forward, self._stacks.pop(forward))
            self._documents.entry(*kept)
        self._kept.clear()
        self._documents.write()
        message = f"{self.found} is the first call that makes what is not finite of finite inputs"
        if self.found.partition(".")[0] in COLLECTIVE:
            message += ": another rank has sent it, or adding up has made it"
        _log.warning("%s; its record and the calls before it are in %s", message, self._documents.folder)
        if self._raises:
            self._sink.theirs = NonFiniteError(f"{message} ({self._documents.folder})")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        yield value
        return
    for item in value:
        yield from _leaves(item)


def _all_finite(value: Any) -> bool:
    return all(_finite(leaf) for leaf in _leaves(value))


def _meant(leaf: Any) -> bool:
    """Return whether a tensor has nothing worse than -inf, as masks have on purpose."""
    return not isinstance(leaf, TensorExtrema) or leaf.finite or leaf.low


def _finite(leaf: Any) -> bool:
    if isinstance(leaf, TensorExtrema):
        return leaf.finite
    number = getattr(leaf, "value", leaf)  # -inf as an argument: whoever gives it wants it
    return not isinstance(number, float) or math.isfinite(number)
