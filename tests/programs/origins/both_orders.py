# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares pairs of dumps in both orders: the status, the places and the number of findings must be the same.

    python -m tests.programs.origins.both_orders [DIR…] [--keep DIR] [--most 600] [--seed 1] [--jobs 2]

Each DIR has the dumps of one net, as ``forms --keep DIR`` and ``planted --keep DIR`` leave them. Without one, all forms
and all planted changes are recorded first, in three tasks. A line for each pair whose two answers differ: the facts
that differ, and both answers. The exit status is 1 where there is one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import probe
from tests.support.mirrored import facts_of, what_differs

MODES = ("statistics", "md5", "tensor")


def record_all(root: Path) -> list[Path]:
    """Record all forms and planted changes, and return the folders of the nets."""
    import mindspore as ms

    from tests.programs.origins import forms
    from tests.programs.origins.cases import FAULTS, HARMLESS
    from tests.programs.origins.planted import Recorder

    ms.set_context(mode=ms.PYNATIVE_MODE)
    folders = []
    for mode in MODES:
        folder = root / f"forms_{mode}"
        folder.mkdir(parents=True)
        for form in ("plain", *forms.FORMS):
            forms.record(form, folder / form.replace(" ", "_").replace(",", ""), mode)
        folders.append(folder)
        recorder = Recorder(root / f"planted_{mode}", mode, 0.0)
        for kind in ("gpt", "digits", "ranks"):
            changes = [case.change for case in (*FAULTS, *HARMLESS) if case.kind == kind]
            recorder.record(kind, list(dict.fromkeys(changes)))
            folders.append(recorder.folder / kind)
    return folders


def dumps_in(folder: Path) -> list[Path]:
    """Return the dumps in a folder, in the order of their names."""
    return sorted({path.parent for path in folder.glob("*/step0")})


def pairs_of(folders: list[Path], most: int, seed: int) -> list[tuple[Path, Path]]:
    """Return so many pairs of dumps of one folder each."""
    every = [pair for folder in folders for pair in itertools.combinations(dumps_in(folder), 2)]
    random.Random(seed).shuffle(every)
    return every[:most]


def judged(pair: tuple[Path, Path]) -> dict[str, object] | None:
    """Return what differs between the two orders of a pair; None where nothing does."""
    left, right = pair
    forth = facts_of(probe.compare(left, right))
    back = facts_of(probe.compare(right, left))
    differing = what_differs(forth, back)
    if not differing:
        return None
    return {
        "pair": [f"{path.parent.name}/{path.name}" for path in pair],
        "differs": differing,
        "forth": forth.shown(),
        "back": back.shown(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--most", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folders = given.folders or record_all(given.keep or Path(made))
        pairs = pairs_of(folders, given.most, given.seed)
        return show(pairs, given.jobs)


def show(pairs: list[tuple[Path, Path]], jobs: int) -> int:
    """Print a line for each pair whose orders differ, and the counts; return the exit status."""
    counts: Counter[str] = Counter()
    differing = 0
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        for row in filter(None, pool.map(judged, pairs, chunksize=4)):
            counts.update(row["differs"])
            differing += 1
            print(json.dumps(row), flush=True)
    print(json.dumps({"compared": len(pairs), "differ": differing, "in": dict(counts)}))
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
