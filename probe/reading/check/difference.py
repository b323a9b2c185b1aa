# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One difference of two runs, and those of their circumstances: Cells, optimizers, seeds, settings, machines."""

from __future__ import annotations

import enum
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import ENGLISH, NOTHING, Finding, Sentence, say
from probe.reading.check.snapshot import RunSnapshot, flat, mapping
from probe.reading.dumps.text import safe, shorten
from probe.reading.dumps.updates import UNREAD

#: variables that name a place, and differ from run to run of one experiment
_PLACE = re.compile(r"_(PORT|HOST|IP|IFNAME|ADDR|DIR|PATH|FILE|ID)$|^DEVICE_ID$|^MS_NODE_ID$")
#: variables and keys of MindSpore's context that decide whether a run repeats itself
_REPEATS = frozenset(
    ("PYTHONHASHSEED", "HCCL_DETERMINISTIC", "deterministic", "pynative_synchronize")
)
#: how many differences of one kind have a line of their own
_LINES = 6


class Importance(enum.IntEnum):
    """The kinds of differences; the first explains most."""

    PARAMETERS = 1
    DATA = 2
    STRUCTURE = 3
    OPTIMIZER = 4
    SEEDS = 5
    CIRCUMSTANCES = 6


@dataclass(frozen=True)
class Difference(Finding):
    """One difference."""

    importance: Importance  # its kind
    subject: (
        Sentence | str
    )  # the thing that differs: "parameters", "note config.lr"; a sentence where it has words
    said: Sentence  # how it differs
    ranks: tuple[int | None, ...] = ()  # the ranks that have it; empty where there is one

    @property
    def line(self) -> Sentence:
        """Subject and sentence."""
        return say("check.line", subject=self.subject, said=self.said)

    def text(self, language: str) -> str:
        """Return it on one line."""
        ranks = say("check.ranks", ranks=listed(self.ranks)) if len(self.ranks) > 1 else NOTHING
        return shorten(safe(self.line.text(language)), 230) + ranks.text(language)

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def to_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {
            **super().to_dict(),
            "importance": int(self.importance),
            "kind": self.importance.name.lower(),
            "subject": str(self.subject),
            "ranks": list(self.ranks),
        }


def listed(items: Iterable[Any], most: int = 3) -> Any:
    """Return the first items of a list, and how many more there are, as a fact.

    >>> str(say("check.values", values=listed("abcde")))
    'a, b, c and 2 more'
    """
    found = list(items)
    return (
        found
        if len(found) <= most
        else say("check.more", items=found[:most], count=len(found) - most)
    )


def pair(a: Any, b: Any) -> Sentence:
    """Return two values beside each other.

    >>> str(pair(0.1, None)), str(pair([2, 3], "x"))
    ('0.1 / not set', '[2, 3] / x')
    """
    return both(_value(a), _value(b))


def both(a: Any, b: Any) -> Sentence:
    """Return two facts beside each other."""
    return say("check.pair", left=a, right=b)


def named(name: Any, values: Any) -> Sentence:
    """Return a name before its values."""
    return say("check.named", name=name, values=values)


def _value(value: Any) -> Any:
    """Return a value of JSON as a fact: a number where JSON and Python write it alike, else a text."""
    if value is None:
        return say("check.none")
    text = value if isinstance(value, str) else json.dumps(value)
    text = shorten(safe(text), 60) if text else '""'
    return value if isinstance(value, (int, float)) and str(value) == text else text


def are_equal(a: Any, b: Any) -> bool:
    """Return whether two values of JSON are equal; true is not 1, and NaN is NaN.

    >>> are_equal(1, 1.0), are_equal(True, 1), are_equal(float("nan"), float("nan"))
    (True, False, True)
    """
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124


def only(names: Iterable[Any], side: str, most: int = 3) -> Sentence:
    """Return which names only one side has."""
    return say("check.only", side=side, names=listed(names, most))


def check_cells(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield which Cells were added, removed or replaced, or stand in another order."""
    left = a.cells
    right = b.cells
    other = [
        named(path or say("check.model"), both(kind, right[path]))
        for path, kind in left.items()
        if path in right and right[path] != kind
    ]
    if other:
        yield _cells(say("check.replaced", cells=listed(other)))
    for side, mine, theirs in (("A", left, right), ("B", right, left)):
        names = [path for path in mine if path not in theirs]
        outermost = [path for path in names if path.rpartition(".")[0] not in names]
        if names:
            yield _cells(
                only((say("check.cell", path=path, kind=mine[path]) for path in outermost), side)
            )
    if {*left} == {*right} and list(left) != list(right):
        first = next((x, y) for x, y in zip(left, right) if x != y)
        yield _cells(say("check.cells_moved", first=pair(*first)))


def _cells(said: Sentence) -> Difference:
    return Difference(Importance.STRUCTURE, say("check.cells"), said)


def check_cell_values(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield which numbers and texts of Cells differ, such as the rate of a dropout: one line for equal changes."""
    found: dict[tuple[str, str, Sentence], list[Any]] = {}
    left = a.cell_values
    right = b.cell_values
    kinds = b.cells
    for path, kind in a.cells.items() if a.cell_values and b.cell_values else ():
        x = left.get(path, {})
        y = right.get(path, {})
        for name in {**x, **y} if kinds.get(path) == kind else ():
            if not are_equal(x.get(name), y.get(name)):
                found.setdefault((kind, name, pair(x.get(name), y.get(name))), []).append(
                    path or say("check.model")
                )
    for (kind, name, values), paths in list(found.items())[:_LINES]:
        yield _cells(
            say("check.cell_value", name=name, cells=listed(paths), kind=kind, values=values)
        )


def check_optimizers(
    a: RunSnapshot, b: RunSnapshot, renamed: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield how the optimizers differ, in the order of their updates; ``renamed``: name in A -> another one in B."""
    if not a.optimizers or not b.optimizers:
        for side, mine in (("A", a.optimizers), ("B", b.optimizers)):
            if mine:
                yield _optimizer(only(map(_kind, mine), side))
        return
    if len(a.optimizers) != len(b.optimizers):
        count = both(len(a.optimizers), len(b.optimizers))
        yield Difference(Importance.OPTIMIZER, say("check.optimizers"), count)
    for (name, x), (other, y) in zip(a.optimizers.items(), b.optimizers.items()):
        if _kind(name) != _kind(other):
            yield _optimizer(pair(_kind(name), _kind(other)))
        yield from _numbers(_kind(name), x, y, renamed)


def same_update(a: RunSnapshot, b: RunSnapshot) -> Sentence:
    """Return which steps have the same update of a training, if one run goes on from a checkpoint of the other.

    MindSpore's optimizers count their updates in ``global_step``. A step is taken for one update.
    """
    for (name, x), (other, y) in zip(a.optimizers.items(), b.optimizers.items()):
        counts: list[Any] = [x.get("global_step"), y.get("global_step")]
        steps: list[Any] = [a.first_updates.get(name), b.first_updates.get(other)]
        if not all(type(number) is int for number in (*counts, *steps)) or counts[0] == counts[1]:
            continue
        later = counts[1] - counts[0]
        step_a = steps[0] + max(later, 0)
        step_b = steps[1] + max(-later, 0)
        if step_a in a.inputs and step_b in b.inputs:
            return say("check.same_update", number=max(counts), step=step_a, other=step_b)
    return NOTHING


def _optimizer(said: Sentence, kind: str | None = None) -> Difference:
    subject = say("check.optimizer") if kind is None else say("check.one_optimizer", kind=kind)
    return Difference(Importance.OPTIMIZER, subject, said)


def _kind(name: str) -> str:
    return name.rpartition(".")[2]


def _numbers(
    kind: str, x: dict[str, Any], y: dict[str, Any], renamed: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield which numbers of one optimizer differ; all of them in one line."""
    groups = [(item, *_groups(item)) for item in (x, y)]
    names_a, names_b = (
        [str(name) for it in found for name in it.get("parameters") or ()] for found in groups
    )
    names_a = [renamed.get(name, name) for name in names_a]
    left, right = (_readings(item) for item in (x, y))
    keys = [key for key in {**left, **right} if not are_equal(left.get(key), right.get(key))]
    if keys:
        values = listed(
            (named(key, both(_reading(left, key), _reading(right, key))) for key in keys), 4
        )
        yield _optimizer(say("check.values", values=values), kind)
    for side, mine, theirs in (("A", names_a, names_b), ("B", names_b, names_a)):
        alone = [name for name in mine if name not in theirs]
        if alone:
            yield _optimizer(say("check.updates", only=only(alone, side)), kind)
    if names_a != names_b and sorted(names_a) == sorted(names_b):
        yield _optimizer(
            say("check.other_groups") if _groups(x) else say("check.parameters_moved"), kind
        )


def _readings(item: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of an optimizer by their places; of one that could not be read the reason, as a sentence."""
    found = {key: value for key, value in flat(item).items() if ".parameters" not in f".{key}"}
    reasons = {key: found.pop(key) for key in list(found) if f".{UNREAD}." in f".{key}"}
    for key, reason in reasons.items():
        place = f".{key}".replace(f".{UNREAD}.", ".", 1)[1:]
        found[place] = say("check.no_number", reason=str(reason))
    return found


def _reading(numbers: Mapping[str, Any], key: str) -> Any:
    found = numbers.get(key)
    return found if isinstance(found, Sentence) else _value(found)


def _groups(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(group) for group in item.get("groups") or ()]


class Texts:
    """Texts of a run without its places: dump_path and the working folder, as run.json has them."""

    def __init__(self, run: Mapping[str, Any]) -> None:
        folder, dump = (str(run.get(key) or "") for key in ("folder", "dump_path"))
        places = {dump: "{dump_path}", folder: "{folder}"}
        if dump and folder:
            near = os.path.relpath(dump, folder)
            places.update({near: "{dump_path}", f"./{near}": "{dump_path}"})
        own = (item for item in places.items() if item[0] not in ("", "/", "."))
        self._places = sorted(own, key=lambda item: -len(item[0]))

    def plain(self, value: Any) -> Any:
        """Return a value in which a text that begins with a place, or an option's, has the place's word instead."""
        if not isinstance(value, str):
            return value
        option, sign, rest = value.partition("=") if value.startswith("-") else ("", "", value)
        for place, word in self._places:
            if rest.rstrip("/") == place or rest.startswith(f"{place}/"):
                return f"{option}{sign}{word}{rest[len(place) :].rstrip('/')}"
        return value


def check_notes(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield which of the user's own values differ."""
    texts = Texts(a.run), Texts(b.run)
    left, right = (
        {key: text.plain(value) for key, value in run.notes.items()}
        for run, text in zip((a, b), texts)
    )
    yield from _values(Importance.OPTIMIZER, say("check.own_note"), left, right)


def check_seeds(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how seeds and determinism differ."""
    yield from _values(Importance.SEEDS, NOTHING, *(_repeats(run) for run in (a, b)))


def _repeats(snapshot: RunSnapshot) -> dict[str, Any]:
    run = snapshot.run
    known = {**mapping(run.get("environment")), **mapping(run.get("context"))}
    return {"seed": run.get("seed"), **{key: known.get(key) for key in sorted(_REPEATS)}}


def check_circumstances(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield how versions, device, environment, code and command differ."""
    kind = Importance.CIRCUMSTANCES
    yield from _values(kind, NOTHING, *(_machine(run) for run in (a, b)))
    packages = [mapping(run.run.get("packages")) for run in (a, b)]
    versions = [
        {"python": run.run.get("python"), **mapping(run.run.get("versions"))} for run in (a, b)
    ]
    yield from _values(kind, say("check.version"), *versions)
    names = [
        name
        for name in {**packages[0], **packages[1]}
        if name not in versions[0] and packages[0].get(name) != packages[1].get(name)
    ]
    if names:
        shown = (
            named(name, pair(packages[0].get(name), packages[1].get(name)))
            for name in sorted(names)
        )
        yield Difference(kind, say("check.packages"), say("check.values", values=listed(shown)))
    variables = [
        {
            name: value
            for name, value in mapping(run.run.get("environment")).items()
            if name not in _REPEATS and not _PLACE.search(name)
        }
        for run in (a, b)
    ]
    yield from _values(kind, say("check.environment"), *variables)
    code = [mapping(run.run.get("code")) for run in (a, b)]
    yield from _values(kind, say("check.code"), *({"commit": it.get("commit")} for it in code))
    files = [mapping(it.get("files")) for it in code]
    other = [name for name in {**files[0], **files[1]} if files[0].get(name) != files[1].get(name)]
    if other:
        yield Difference(kind, say("check.code"), say("check.files", names=listed(other)))
    commands = [_command(run) for run in (a, b)]
    if commands[0] != commands[1]:
        yield Difference(kind, say("check.command"), _words(*commands))


def _machine(snapshot: RunSnapshot) -> dict[str, Any]:
    context = mapping(snapshot.run.get("context"))
    known = (*_REPEATS, "device_target")
    machine = {key: snapshot.run.get(key) for key in ("device", "world_size", "jit")}
    return {**machine, **{key: value for key, value in context.items() if key not in known}}


def _command(snapshot: RunSnapshot) -> list[str]:
    texts = Texts(snapshot.run)
    dump = os.path.basename(str(snapshot.run.get("dump_path") or "").rstrip("/"))
    words = snapshot.run.get("command") or []
    rest = ("{dump_path}" if word == dump else texts.plain(word) for word in words[1:])
    return [*map(os.path.basename, words[:1]), *rest]


def _words(a: list[str], b: list[str]) -> Sentence:
    """Return how two command lines differ."""
    if a[:1] != b[:1]:
        return pair(a[0] if a else None, b[0] if b else None)
    alone = [[word for word in mine if word not in theirs] for mine, theirs in ((a, b), (b, a))]
    if not any(alone):
        return pair(" ".join(a), " ".join(b))
    left, right = (
        {x: y for x, y in zip(words, words[1:]) if x.startswith("-")} for words in (a, b)
    )
    options = [
        named(key, pair(x, right[key]))
        for key, x in left.items()
        if key in right and right[key] != x
    ]
    if options:
        return say("check.values", values=listed(options))
    return pair(" ".join(alone[0]), " ".join(alone[1]))


def _values(
    importance: Importance, kind: Sentence, left: Mapping[str, Any], right: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield a line for each value that differs; the last stands for all that follow."""
    keys = [key for key in {**left, **right} if not are_equal(left.get(key), right.get(key))]
    for key in keys[:_LINES]:
        subject = named(kind, key) if kind and key else kind or key
        yield Difference(importance, subject, pair(left.get(key), right.get(key)))
    if len(keys) > _LINES:
        rest = say("check.more_differ", count=len(keys) - _LINES, names=listed(keys[_LINES:]))
        yield Difference(importance, kind or say("check.others"), rest)
