# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters that the optimizers of the golden run update, and that no optimizer of the run holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.check.difference import listed
from probe.reading.check.parameters import ParameterCheck
from probe.reading.check.snapshot import RunSnapshot, mapping, read_snapshots
from probe.reading.compare.origins.origin import Kind
from probe.search.cause import COMPARED, HEALTH, RULE, Cause

#: the kinds of the cause: they are trainable, or frozen
UNHELD = "unheld"
FROZEN = "frozen"
#: the first steps, which are recorded twice: there equal bits before the lack prove it
_REPEATED = 2
#: the kinds of differences that follow: gradients are not computed, updates and later values are other ones
_FOLLOWING = (Kind.GRADIENT, Kind.OPTIMIZER, Kind.PARAMETER)


def unheld(path: str, golden: str, cause: Cause | None) -> Cause | None:
    """Return parameters that the optimizers lack as a cause; None where the heaviest finding is another one.

    Args:
        path: the run.
        golden: the golden run beside it.
        cause: the heaviest finding, which may follow from the lack.
    """
    is_compared = cause is not None and cause.reader == COMPARED
    if cause is not None and is_compared and cause.kind not in _FOLLOWING:
        return None
    lacking = _lacking(path, golden)
    if not lacking:
        return None
    frozen = [name for name, is_trainable in lacking.items() if not is_trainable]
    names = frozen or [*lacking]
    said = say("find.frozen" if frozen else "find.unheld", names=listed(names))
    is_early = cause is not None and is_compared and (cause.acts_in or 0) < _REPEATED
    strength = cause.strength if cause is not None and is_early else RULE
    return Cause(said, HEALTH, FROZEN if frozen else UNHELD, strength, name=names[0])


def _lacking(path: str, golden: str) -> dict[str, bool]:
    """Return such parameters, of the first rank that has some, and whether each is trainable."""
    try:
        own = {snapshot.rank: snapshot for snapshot in read_snapshots(path)}
        others = {snapshot.rank: snapshot for snapshot in read_snapshots(golden)}
    except UsageError:
        return {}
    pairs = [(snapshot, own[rank]) for rank, snapshot in others.items() if rank in own]
    found = (_lacking_of_rank(*pair) for pair in pairs)
    return next((names for names in found if names), {})


def _lacking_of_rank(golden: RunSnapshot, run: RunSnapshot) -> dict[str, bool]:
    if not golden.optimizers or not run.optimizers:
        return {}
    held = _held(golden)
    own = _held(run)
    pairs = ParameterCheck(golden, run).matched.pairs
    return {
        other: bool(run.parameters[other]["trainable"])
        for name, other in pairs.items()
        if name in held and other not in own
    }


def _held(snapshot: RunSnapshot) -> set[str]:
    """Return the parameters of all optimizers that made an update, with those of their groups."""
    names: set[str] = set()
    for numbers in snapshot.optimizers.values():
        groups: list[Mapping[str, Any]] = [mapping(group) for group in numbers.get("groups") or ()]
        for holder in (numbers, *groups):
            names.update(map(str, holder.get("parameters") or ()))
    return names
