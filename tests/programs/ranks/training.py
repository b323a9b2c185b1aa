# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The digits on several ranks: bare, then at levels and tasks; what came out of each goes into rank{R}.json."""

from __future__ import annotations

import itertools
import json
import os
import sys

from probe import PrecisionDebugger
from tests.programs.ranks.digits import RANK, train

OUT = sys.argv[1]

result = {}
for by_hand in (True, False):
    way = "by_hand" if by_hand else "reducer"
    result[f"{way}-bare"] = train(None, by_hand)
    cases = itertools.product(("L1", "mix"), ("statistics", "tensor"))
    for level, task in cases if by_hand else [("mix", "statistics")]:
        name = f"{way}-{level}-{task}"
        path = os.path.join(OUT, f"{name}.{RANK}.json")
        with open(path, "w") as file:
            json.dump(
                {"task": task, "level": level, "dump_path": os.path.join(OUT, name), task: {}}, file
            )
        result[name] = train(PrecisionDebugger(config_path=path), by_hand)
with open(os.path.join(OUT, f"rank{RANK}.json"), "w") as file:
    json.dump(result, file)
