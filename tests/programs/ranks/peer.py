# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The training of ``digits`` watched by msprobe, in an interpreter that has it."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
from mindspore import mint
from msprobe.mindspore import PrecisionDebugger

from tests.programs.ranks.digits import RANK, train

OUT = sys.argv[1]

mint.norm = lambda x, *a, **k: np.linalg.norm(
    x.asnumpy().astype(np.float32)
)  # it has no CPU kernel
path = os.path.join(OUT, f"peer.{RANK}.json")
with open(path, "w") as file:
    settings = {"task": "statistics", "level": "L1", "dump_path": os.path.join(OUT, "peer")}
    json.dump({**settings, "statistics": {"summary_mode": "statistics"}}, file)
os.chmod(path, 0o640)
train(PrecisionDebugger(config_path=path), by_hand=True)
