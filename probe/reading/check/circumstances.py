# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The circumstances of two runs: own notes, seeds, machines, versions, environment, code and command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.difference import (
    Difference,
    Importance,
    listed,
    named,
    other_keys,
    pair,
)
from probe.reading.check.snapshot import RunSnapshot, mapping

#: variables that name a place, and differ from run to run of one experiment
_PLACE = re.compile(r"_(PORT|HOST|IP|IFNAME|ADDR|DIR|PATH|FILE|ID)$|^DEVICE_ID$|^MS_NODE_ID$")
#: variables and keys of MindSpore's context that decide whether a run repeats itself
_REPEATS = frozenset(
    ("PYTHONHASHSEED", "HCCL_DETERMINISTIC", "deterministic", "pynative_synchronize")
)
#: how many differences of one kind have a line of their own
_LINES = 6


class Texts:
    """Texts of a run without its places: dump_path and the working folder, as run.json has them."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        folder = str(run.get("folder") or "")
        dump = str(run.get("dump_path") or "")
        words = {dump: "{dump_path}", folder: "{folder}"}
        if dump and folder:
            near = os.path.relpath(dump, folder)
            words.update({near: "{dump_path}", f"./{near}": "{dump_path}"})
        own = [(place, word) for place, word in words.items() if place not in ("", "/", ".")]
        # the longest first: one place may lie inside of another
        self._places = sorted(own, key=lambda item: -len(item[0]))

    def plain(self, value: Any) -> Any:
        """Return a value in which a text that begins with a place, or an option's, has the place's word instead."""
        if not isinstance(value, str):
            return value
        option, sign, rest = value.partition("=") if value.startswith("-") else ("", "", value)
        for place, word in self._places:
            if rest.rstrip("/") == place or rest.startswith(f"{place}/"):
                below = rest[len(place) :].rstrip("/")
                return f"{option}{sign}{word}{below}"
        return value


def check_notes(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield which of the user's own values differ."""
    yield from _values(Importance.OPTIMIZER, say("check.own_note"), _notes(a), _notes(b))


def _notes(snapshot: RunSnapshot) -> dict[str, Any]:
    texts = Texts(snapshot.run)
    return {key: texts.plain(value) for key, value in snapshot.notes.items()}


def check_seeds(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how seeds and determinism differ."""
    yield from _values(Importance.SEEDS, NOTHING, _repeats(a), _repeats(b))


def _repeats(snapshot: RunSnapshot) -> dict[str, Any]:
    known = {**snapshot.part("environment"), **snapshot.part("context")}
    chosen = {key: known.get(key) for key in sorted(_REPEATS)}
    return {"seed": snapshot.run.get("seed"), **chosen}


def check_circumstances(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how versions, device, environment, code and command differ."""
    kind = Importance.CIRCUMSTANCES
    yield from _values(kind, NOTHING, _machine(a), _machine(b))
    yield from _values(kind, say("check.version"), _versions(a), _versions(b))
    yield from _packages(a, b)
    yield from _values(kind, say("check.environment"), _environment(a), _environment(b))
    yield from _code(a, b)
    command_a = _command(a)
    command_b = _command(b)
    if command_a != command_b:
        yield Difference(kind, say("check.command"), _words(command_a, command_b))


def _machine(snapshot: RunSnapshot) -> dict[str, Any]:
    run = snapshot.run
    machine = {
        "device": run.get("device"),
        "world_size": run.get("world_size"),
        "jit": run.get("jit"),
    }
    # the seeds' lines have _REPEATS, "device" has the target
    told = (*_REPEATS, "device_target")
    context = snapshot.part("context")
    machine.update({key: value for key, value in context.items() if key not in told})
    return machine


def _versions(snapshot: RunSnapshot) -> dict[str, Any]:
    return {"python": snapshot.run.get("python"), **snapshot.part("versions")}


def _packages(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield in one line the packages of other versions that are not among those with a line each."""
    left = a.part("packages")
    right = b.part("packages")
    told = _versions(a)
    others = [name for name in other_keys(left, right) if name not in told]
    if others:
        shown = []
        for name in sorted(others):
            versions = pair(left.get(name), right.get(name))
            shown.append(named(name, versions))
        said = say("check.values", values=listed(shown))
        yield Difference(Importance.CIRCUMSTANCES, say("check.packages"), said)


def _environment(snapshot: RunSnapshot) -> dict[str, Any]:
    variables = snapshot.part("environment")
    return {
        name: value
        for name, value in variables.items()
        if name not in _REPEATS and not _PLACE.search(name)
    }


def _code(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield the commits, then the files of other contents."""
    code_a = a.part("code")
    code_b = b.part("code")
    commit_a = {"commit": code_a.get("commit")}
    commit_b = {"commit": code_b.get("commit")}
    yield from _values(Importance.CIRCUMSTANCES, say("check.code"), commit_a, commit_b)
    files_a = mapping(code_a.get("files"))
    files_b = mapping(code_b.get("files"))
    others = [
        name for name in other_keys(files_a, files_b) if not _is_renamed(name, files_a, files_b)
    ]
    if others:
        said = say("check.files", names=listed(others))
        yield Difference(Importance.CIRCUMSTANCES, say("check.code"), said)


def _is_renamed(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Return whether one side alone has a file, and the other has its content in a file that is alone too."""
    own, others = (a, b) if name in a else (b, a)
    return name not in others and any(
        own[name] == content for other, content in others.items() if other not in own
    )


def _command(snapshot: RunSnapshot) -> list[str]:
    """Return the words of the command line without the run's own places."""
    run = snapshot.run
    texts = Texts(run)
    dump_path = str(run.get("dump_path") or "")
    dump = os.path.basename(dump_path.rstrip("/"))
    words = []
    for place, word in enumerate(run.get("command") or []):
        if place == 0:
            words.append(os.path.basename(word))
        else:
            words.append("{dump_path}" if word == dump else texts.plain(word))
    return words


def _words(a: list[str], b: list[str]) -> Sentence:
    """Return how two command lines differ."""
    if a[:1] != b[:1]:
        return pair(a[0] if a else None, b[0] if b else None)
    only_a = [word for word in a if word not in b]
    only_b = [word for word in b if word not in a]
    if not only_a and not only_b:
        return pair(" ".join(a), " ".join(b))
    in_b = _options(b)
    others = []
    for option, value in _options(a).items():
        other = in_b.get(option)
        if other not in (None, value):
            others.append(named(option, pair(value, other)))
    if others:
        return say("check.values", values=listed(others))
    return pair(" ".join(only_a), " ".join(only_b))


def _options(words: list[str]) -> dict[str, str]:
    """Return the words that begin with a dash -> the word behind each."""
    return {word: value for word, value in zip(words, words[1:]) if word.startswith("-")}


def _values(
    importance: Importance, kind: Sentence, left: Mapping[str, Any], right: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield a line for each value that differs; the last stands for all that follow."""
    others = other_keys(left, right)
    for key in others[:_LINES]:
        subject = named(kind, key) if kind and key else kind or key
        yield Difference(importance, subject, pair(left.get(key), right.get(key)))
    rest = others[_LINES:]
    if rest:
        said = say("check.more_differ", count=len(rest), names=listed(rest))
        yield Difference(importance, kind or say("check.others"), said)
