# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The circumstances of a run, as the headers of its documents have them."""

from __future__ import annotations

import importlib
import os
from typing import Any

from probe.process.rank import sibling_count

#: rises when a reader has to know of a change of the files
FORMAT = 1


def run_header(rank: int | None) -> dict[str, Any]:
    """Return format, versions, ranks, device, seed and determinism of this run; rank is None in a lone process."""
    import mindspore
    import numpy
    from mindspore.communication import GlobalComm, get_group_size

    context = mindspore.get_context
    size = int(get_group_size()) if getattr(GlobalComm, "INITED", False) else sibling_count()
    # the package itself is imported by its name: imports in it point down
    packages = {"probe": importlib.import_module("probe"), "mindspore": mindspore, "numpy": numpy}
    process = {"tool": "probe", "format": FORMAT, "world_size": size, "rank": rank, "device": context("device_target")}
    repeats = {"seed": mindspore.get_seed(), "deterministic": context("deterministic") == "ON"}
    mode = {"jit": "off"} if os.environ.get("MS_JIT") == "0" else {}
    return {**process, **mode, "versions": {name: package.__version__ for name, package in packages.items()}, **repeats}
