# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which parameter of A is which of B, where names differ: their content and the ends of their names tell it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from probe.findings.sentence import Sentence, say
from probe.reading.check.difference import both, listed
from probe.reading.dumps.values import grouped


class Key(NamedTuple):
    """The things that tell which parameter is which."""

    #: its shape and checksum; None where the checksum is not known, or is that of many
    content: Hashable | None
    shape: Hashable


class Matched(NamedTuple):
    """The partners of parameters."""

    pairs: dict[str, str]  # name in A -> name in B, in the order of A
    renamed: dict[str, str]  # those of other names
    only: tuple[list[str], list[str]]  # the names that only A has, and only B
    keys: tuple[Mapping[str, Key], Mapping[str, Key]]  # name -> key, in A and in B

    def exchanged(self, names: Sequence[str]) -> dict[str, str]:
        """Return those of some parameters that have the values of another one of them in B -> that one."""
        keys_a, keys_b = self.keys
        owners = {keys_a[name].content: name for name in names}
        exchanged = {}
        for name in names:
            content_in_b = keys_b[self.pairs[name]].content
            owner = owners.get(content_in_b)
            if owner is not None and owner != name and keys_a[owner].content:
                exchanged[name] = owner
        return exchanged


def match_names(a: Mapping[str, Key], b: Mapping[str, Key]) -> Matched:
    """Return the partners of all parameters of A and B: first by content, then by shape."""
    only_a = _without(list(a), b)
    only_b = _without(list(b), a)
    renamed: dict[str, str] = {}
    for kind in ("content", "shape"):
        free = _without(only_b, renamed.values())
        partners = grouped((getattr(b[name], kind), name) for name in free)
        partners.pop(None, None)
        for name in _without(only_a, renamed):
            alike = partners.get(getattr(a[name], kind), [])
            _pair(name, alike, renamed, by_name=kind == "shape")
    pairs = {}
    for name in a:
        if name in b or name in renamed:
            pairs[name] = renamed.get(name, name)
    return Matched(
        pairs=pairs,
        renamed={name: renamed[name] for name in a if name in renamed},
        only=(_without(only_a, renamed), _without(only_b, renamed.values())),
        keys=(a, b),
    )


def _without(names: list[str], taken: Iterable[str]) -> list[str]:
    """Return the names that are not taken, in their order."""
    others = set(taken)
    return [name for name in names if name not in others]


def _pair(name: str, partners: list[str], renamed: dict[str, str], by_name: bool) -> None:
    """Pair a name with that partner whose end is most alike; ``by_name`` asks for one equal part at least."""
    if not partners:
        return
    # the first of those that are equally alike
    shared, place = max((common_end(name, other), -place) for place, other in enumerate(partners))
    if shared or not by_name:
        renamed[name] = partners.pop(-place)


def exchange(found: Mapping[str, str], most: int = 3) -> Sentence:
    """Return which parameters have the values of others in B."""
    parts = (say("check.has_values", name=name, other=other) for name, other in found.items())
    return say("check.in_b", names=listed(parts, most))


def common_end(a: str, b: str) -> int:
    """Return how many dotted parts two names share at their ends.

    >>> common_end("net.fc.weight", "fc.weight")
    2
    """
    shared = 0
    for x, y in zip(reversed(a.split(".")), reversed(b.split("."))):
        if x != y:
            break
        shared += 1
    return shared


def renaming(renamed: Mapping[str, str]) -> Sentence:
    """Return how names were changed.

    >>> str(renaming({"fc.w": "net.fc.w", "fc.b": "net.fc.b"}))
    '2 names have the prefix "net." in B'
    """
    names_a = list(renamed)
    names_b = list(renamed.values())
    count = len(renamed)
    for side, short, long in (("B", names_a, names_b), ("A", names_b, names_a)):
        prefix = _common_prefix(short, long)
        if prefix is not None:
            return say("check.prefix", count=count, prefix=prefix, side=side)
    return say("check.names_differ", count=count, first=both(names_a[0], names_b[0]))


def _common_prefix(short: list[str], long: list[str]) -> str | None:
    """Return the one prefix that makes long names of short ones; None if there is none, or several."""
    prefixes = set()
    for end, name in zip(short, long):
        if not name.endswith(end):
            return None
        prefixes.add(name[: -len(end)])
    return prefixes.pop() if len(prefixes) == 1 else None
