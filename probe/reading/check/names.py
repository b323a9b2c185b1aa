# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which parameter of A is which of B, where their names differ: by content, and by the end of the name."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence, say
from probe.reading.check.difference import both


class Matched(NamedTuple):
    """The partners of parameters.

    Attributes:
        pairs: name in A -> name in B, in the order of A.
        renamed: those of other names.
        only: the names that only A has, and only B.
    """

    pairs: dict[str, str]
    renamed: dict[str, str]
    only: tuple[list[str], list[str]]


def match_names(
    a: Mapping[str, Any], b: Mapping[str, Any], content: Mapping[str, Hashable], content_b: Mapping[str, Hashable],
    shape: Mapping[str, Hashable], shape_b: Mapping[str, Hashable],
) -> Matched:  # fmt: skip
    """Return the partners of all parameters.

    Args:
        a: the parameters of A.
        b: those of B.
        content: name in A -> shape and checksum; names without one are left out.
        content_b: likewise.
        shape: name in A -> shape.
        shape_b: likewise.
    """
    left, right = [name for name in a if name not in b], [name for name in b if name not in a]
    renamed: dict[str, str] = {}
    for key_a, key_b in ((content, content_b), (shape, shape_b)):
        taken = set(renamed.values())
        _pair_by(
            [name for name in left if name not in renamed], [name for name in right if name not in taken],
            key_a, key_b, renamed, by_name=key_a is shape,
        )  # fmt: skip
    taken = set(renamed.values())
    pairs = {name: renamed.get(name, name) for name in a if name in b or name in renamed}
    return Matched(
        pairs, {name: renamed[name] for name in a if name in renamed},
        ([name for name in left if name not in renamed], [name for name in right if name not in taken]),
    )  # fmt: skip


def _pair_by(
    left: list[str], right: list[str], key_a: Mapping[str, Hashable], key_b: Mapping[str, Hashable],
    found: dict[str, str], by_name: bool,
) -> None:  # fmt: skip
    """Pair names of one key whose ends are most alike; ``by_name`` asks for one equal part at least."""
    groups: dict[Hashable, list[str]] = {}
    for name in right:
        if name in key_b:
            groups.setdefault(key_b[name], []).append(name)
    for name in left:
        partners = groups.get(key_a[name], []) if name in key_a else []
        scored = [(common_end(name, other), -place) for place, other in enumerate(partners)]
        best = max(scored, default=(0, 0))
        if scored and (best[0] or not by_name):
            found[name] = partners.pop(-best[1])


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
