# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trouble on one of two ranks: its disk is full, or slow, or everything in its tool raises.

python tests/programs/ranks/trouble.py OUT DISK    # DISK: a very small file system, or "" to leave that case out
"""

from __future__ import annotations

import json
import os
import sys
import time

from probe import PrecisionDebugger
from tests.programs.ranks.digits import RANK, train
from tests.support.faults import TOOL, owner_of

OUT, DISK = sys.argv[1:]


def watched(name, folder, task):
    path = os.path.join(OUT, f"{name}.{RANK}.json")
    with open(path, "w") as file:
        json.dump(
            {"task": task, "level": "mix", "dump_path": folder, "rank": [0, "1-2"], task: {}}, file
        )
    return train(PrecisionDebugger(config_path=path), True)


def slow(owner, name):
    original = getattr(owner, name)

    def slowed(*args, **kwargs):
        time.sleep(0.005)
        return original(*args, **kwargs)

    setattr(owner, name, slowed)


def broken(owner, name):
    def breaks(*args, **kwargs):
        raise ZeroDivisionError(f"a mistake of ours in {name}")

    setattr(owner, name, breaks)


result = {"bare": train(None, True), "well": watched("well", os.path.join(OUT, "well"), "tensor")}
if DISK:
    result["full"] = watched("full", DISK if RANK == 0 else os.path.join(OUT, "full"), "tensor")
if RANK == 0:
    slow(*owner_of("probe.store.journal.Journal.append"))
    slow(*owner_of("probe.store.arrays.ArrayWriter.save"))
else:
    for place in TOOL:
        broken(*owner_of(place))
result["slow_and_broken"] = watched(
    "slow_and_broken", os.path.join(OUT, "slow_and_broken"), "tensor"
)
with open(os.path.join(OUT, f"rank{RANK}.json"), "w") as file:
    json.dump(result, file)
