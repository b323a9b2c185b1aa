# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Random calls of two runs: where their inputs and seeds agree, other numbers are no cause."""

from __future__ import annotations

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.snapshot import read_snapshots
from probe.reading.compare.origins.origin import Kind
from probe.reading.dumps.call_kinds import is_random
from probe.reading.dumps.entry_name import parse
from probe.search.cause import Cause


def random_alone(cause: Cause | None, path: str, golden: str) -> Sentence:
    """Return that a random call is the first difference, though its inputs agree; NOTHING where seeds tell why.

    Args:
        cause: the cause that the readers name.
        path: the run.
        golden: the golden run beside it.
    """
    if cause is None or cause.kind != Kind.RANDOM:
        return NOTHING
    if have_seeds(path, golden) and not have_one_seed(path, golden):
        return NOTHING
    return say("find.random_alone", name=cause.name)


def have_seeds(path: str, golden: str) -> bool:
    """Return whether two runs are known to have set a seed."""
    seeds = [_seeds(path), _seeds(golden)]
    return all(own and None not in own for own in seeds)


def have_one_seed(path: str, golden: str) -> bool:
    """Return whether two runs are known to have set the same seed."""
    return have_seeds(path, golden) and _seeds(path) == _seeds(golden)


def is_random_call(name: str) -> bool:
    """Return whether a call draws random numbers."""
    return is_random(parse(name))


def _seeds(path: str) -> set[object]:
    """Return the seeds of MindSpore of all ranks; None stands for no seed, and nothing for an unknown one."""
    try:
        return {snapshot.run.get("seed") for snapshot in read_snapshots(path)}
    except UsageError:
        return set()
