# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The description of a run by its snapshot: its command, code, versions, device, model and optimizers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.difference import listed, named
from probe.reading.check.snapshot import RunSnapshot, mapping
from probe.reading.dumps import text

#: keys of run.json whose values stand in sentences
_KEYS = ("folder", "host", "process", "python", "device", "world_size", "seed", "deterministic")
#: how many numbers or notes are shown
_MOST = 12
#: the longest line
_WIDTH = 400


def describe(snapshots: list[RunSnapshot], language: str) -> str:
    """Return the description of a run: that of its first rank."""
    first = snapshots[0]
    more = len(snapshots) - 1
    ranks = say("check.more_ranks", count=more) if more else NOTHING
    lines = [
        say("check.run", path=first.path, ranks=ranks),
        *_surroundings(first),
        *_model(first),
    ]
    if first.damage:
        lines.append(say("check.note", note=first.damage))
    shown = [text.safe(line.text(language)) for line in lines]
    return "\n".join(text.shorten(line, _WIDTH) for line in shown)


def _surroundings(snapshot: RunSnapshot) -> Iterator[Sentence]:
    """Yield the command, the place, the code, the versions and the device of a run."""
    run = snapshot.run
    facts = {key: str(run.get(key)) for key in _KEYS}
    yield say("check.whole_command", words=" ".join(run.get("command") or ()))
    yield say("check.folder", **facts)
    code = snapshot.part("code")
    commit = code.get("commit")
    of_commit = say("check.commit", commit=str(commit)) if commit else say("check.no_commit")
    files = mapping(code.get("files"))
    yield say("check.files_of_code", count=len(files), commit=of_commit)
    versions = _named_texts(snapshot.part("versions"))
    packages = snapshot.part("packages")
    yield say("check.versions", **facts, versions=versions, count=len(packages))
    is_graph = snapshot.part("context").get("mode") == 0
    mode = "GRAPH_MODE" if is_graph else say("check.pynative")
    yield say("check.device", **facts, mode=mode)
    yield say("check.seed", **facts)


def _named_texts(values: dict[str, Any]) -> list[Sentence]:
    return [named(name, str(value)) for name, value in values.items()]


def _model(snapshot: RunSnapshot) -> Iterator[Sentence]:
    """Yield the size of the model, the steps, and the numbers of optimizers and of the user."""
    parameters = list(snapshot.parameters.values())
    shapes = [item["shape"] for item in parameters if item.get("shape") is not None]
    trainable = [item for item in parameters if item.get("trainable") is True]
    yield say(
        "check.the_model",
        cells=len(snapshot.cells),
        count=len(parameters),
        elements=sum(map(math.prod, shapes)),
        trainable=len(trainable),
    )
    first = str(snapshot.run.get("first_step"))
    yield say("check.steps", first=first, count=len(snapshot.inputs))
    for name, values in snapshot.optimizers.items():
        _, _, kind = name.rpartition(".")
        numbers = [
            named(key, value) for key, value in values.items() if isinstance(value, (int, float))
        ]
        yield say("check.optimizer_numbers", kind=kind, numbers=listed(numbers, _MOST))
    if snapshot.notes:
        notes = _named_texts(snapshot.notes)
        yield say("check.notes", notes=listed(notes, _MOST))
