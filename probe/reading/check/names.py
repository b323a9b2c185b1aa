# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which parameter of A is which of B, where their names differ: by content, and by the end of the name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from probe.findings.sentence import Sentence, say
from probe.reading.check.difference import both, listed


class Key(NamedTuple):
    """The things that tell which parameter is which."""

    content: Hashable | None  # its shape and checksum; None where the checksum is not known, or is that of many
    shape: Hashable


class Matched(NamedTuple):
    """The partners of parameters."""

    pairs: dict[str, str]  # name in A -> name in B, in the order of A
    renamed: dict[str, str]  # those of other names
    only: tuple[list[str], list[str]]  # the names that only A has, and only B
    keys: tuple[Mapping[str, Key], Mapping[str, Key]]  # name -> key, in A and in B

    def exchanged(self, names: Sequence[str]) -> dict[str, str]:
        """Return those of some parameters that have the values of another one of them in B -> that one."""
        owners = {self.keys[0][name].content: name for name in names}
        found = {name: owners.get(self.keys[1][self.pairs[name]].content) for name in names}
        return {
            name: owner for name, owner in found.items() if owner not in (None, name) and self.keys[0][owner].content
        }


def match_names(a: Mapping[str, Key], b: Mapping[str, Key]) -> Matched:
    """Return the partners of all parameters of A and B: first by content, then by shape."""
    left, right = [name for name in a if name not in b], [name for name in b if name not in a]
    renamed: dict[str, str] = {}
    for key in ("content", "shape"):
        taken = set(renamed.values())
        groups: dict[Hashable, list[str]] = {}
        for name in right:
            if name not in taken:
                groups.setdefault(getattr(b[name], key), []).append(name)
        groups.pop(None, None)
        for name in left:
            if name not in renamed:
                _pair(name, groups.get(getattr(a[name], key), []), renamed, by_name=key == "shape")
    taken = set(renamed.values())
    return Matched(
        {name: renamed.get(name, name) for name in a if name in b or name in renamed},
        {name: renamed[name] for name in a if name in renamed},
        ([name for name in left if name not in renamed], [name for name in right if name not in taken]), (a, b),
    )  # fmt: skip


def _pair(name: str, partners: list[str], found: dict[str, str], by_name: bool) -> None:
    """Pair a name with that partner whose end is most alike; ``by_name`` asks for one equal part at least."""
    scored = [(common_end(name, other), -place) for place, other in enumerate(partners)]
    best = max(scored, default=(0, 0))
    if scored and (best[0] or not by_name):
        found[name] = partners.pop(-best[1])


def exchange(found: Mapping[str, str], most: int = 3) -> Sentence:
    """Return which parameters have the values of others in B."""
    parts = (say("check.has_values", name=name, other=other) for name, other in found.items())
    return say("check.in_b", names=listed(parts, most))


def common_end(a: str, b: str) -> int:
    """Return how many dotted parts two names share at their ends.

    >>> common_end("net.fc.weight", "fc.weight")
    2
    """
    count = 0
    for left, right in zip(reversed(a.split(".")), reversed(b.split("."))):
        if left != right:
            break
        count += 1
    return count


def renaming(renamed: Mapping[str, str]) -> Sentence:
    """Return how names were changed.

    >>> str(renaming({"fc.w": "net.fc.w", "fc.b": "net.fc.b"}))
    '2 names have the prefix "net." in B'
    """
    for one, two, side in ((0, 1, "B"), (1, 0, "A")):
        pairs = [(pair[one], pair[two]) for pair in renamed.items()]
        prefixes = {long[: -len(short)] for short, long in pairs if long.endswith(short)}
        if len(prefixes) == 1 and all(long.endswith(short) for short, long in pairs):
            return say("check.prefix", count=len(pairs), prefix=prefixes.pop(), side=side)
    return say("check.names_differ", count=len(renamed), first=both(*next(iter(renamed.items()))))
