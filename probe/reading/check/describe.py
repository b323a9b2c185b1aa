# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One run alone in a few lines: what `probe check A` says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.difference import listed, named
from probe.reading.check.snapshot import RunSnapshot, mapping
from probe.reading.dumps import text


def describe(snapshots: list[RunSnapshot], language: str) -> str:
    """Return the description of a run: that of its first rank."""
    first, more = snapshots[0], len(snapshots) - 1
    ranks = say("check.more_ranks", count=more) if more else NOTHING
    lines = [say("check.run", path=first.path, ranks=ranks), *_surroundings(first.run), *_model(first)]
    lines += [say("check.note", note=first.damage)] if first.damage else []
    return "\n".join(text.shorten(text.safe(line.text(language)), 400) for line in lines)


def _surroundings(run: dict[str, Any]) -> Iterator[Sentence]:
    """Yield the command, the place, the code, the versions and the device of a run."""
    facts = {
        key: str(run.get(key))
        for key in ("folder", "host", "process", "python", "device", "world_size", "seed", "deterministic")
    }
    words, code = run.get("command"), mapping(run.get("code"))
    commit = say("check.commit", commit=str(code["commit"])) if code.get("commit") else say("check.no_commit")
    versions = [named(name, str(version)) for name, version in mapping(run.get("versions")).items()]
    is_graph = mapping(run.get("context")).get("mode") == 0
    yield say("check.whole_command", words=" ".join(words or ()))
    yield say("check.folder", **facts)
    yield say("check.files_of_code", count=len(mapping(code.get("files"))), commit=commit)
    yield say("check.versions", **facts, versions=versions, count=len(mapping(run.get("packages"))))
    yield say("check.device", **facts, mode="GRAPH_MODE" if is_graph else say("check.pynative"))
    yield say("check.seed", **facts)


def _model(snapshot: RunSnapshot) -> Iterator[Sentence]:
    """Yield the numbers of the model, the steps, the optimizers and the user's own values."""
    parameters = snapshot.parameters
    sizes = [math.prod(item["shape"]) for item in parameters.values() if item.get("shape") is not None]
    yield say(
        "check.the_model", cells=len(snapshot.cells), count=len(parameters), elements=sum(sizes),
        trainable=sum(item.get("trainable") is True for item in parameters.values()),
    )  # fmt: skip
    yield say("check.steps", first=str(snapshot.run.get("first_step")), count=len(snapshot.inputs))
    for name, numbers in snapshot.optimizers.items():
        shown = (named(*item) for item in numbers.items() if isinstance(item[1], (int, float)))
        yield say("check.optimizer_numbers", kind=name.rpartition(".")[2], numbers=listed(shown, 12))
    if snapshot.notes:
        shown = (named(key, str(value)) for key, value in snapshot.notes.items())
        yield say("check.notes", notes=listed(shown, 12))


def to_dict(snapshots: list[RunSnapshot]) -> list[dict[str, Any]]:
    """Return the snapshots of a run as values of JSON."""
    return [{"run": item.run, "notes": item.notes, "optimizers": item.optimizers, "inputs": item.inputs,
             "damage": str(item.damage)} for item in snapshots]  # fmt: skip
