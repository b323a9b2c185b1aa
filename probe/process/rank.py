# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rank of this process: the launcher tells it, else the communicator once it is initialised.

The circumstances of a run are as the headers of its documents have them.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

_NUMBER = re.compile(r"[0-9]{1,9}")
FORMAT = 1  # rises when a reader has to know of a change of the files


def is_scheduler() -> bool:
    """Return whether this is msrun's scheduler process, which runs the training's script too."""
    return os.environ.get("MS_ROLE") == "MS_SCHED"


def sibling_count() -> int:
    """Return how many processes a launcher has started together, this one included."""
    sizes = (
        os.environ.get(name, "") for name in ("RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE")
    )
    return max((int(size) for size in sizes if _NUMBER.fullmatch(size)), default=1)


def has_siblings() -> bool:
    """Return whether a launcher has started this process together with others."""
    return sibling_count() > 1


def launched_rank() -> int | None:
    """Return the rank that a launcher has given this process among several, or None where it has not."""
    # under msrun RANK_ID is not this process's where MindSpore is to give out the ranks
    names = ("MS_NODE_ID",) if "MS_ROLE" in os.environ else ("RANK_ID", "OMPI_COMM_WORLD_RANK")
    ranks = (os.environ.get(name, "") for name in names)
    return (
        next((int(rank) for rank in ranks if _NUMBER.fullmatch(rank)), None)
        if has_siblings()
        else None
    )


def communicator_rank() -> int | None:
    """Return the rank in an initialised communicator, or None."""
    from mindspore.communication import GlobalComm, get_rank

    return int(get_rank()) if getattr(GlobalComm, "INITED", False) else None


class RankResolver:
    """The rank of this process, as the name of its folder has it."""

    def __init__(self) -> None:
        self.given: int | None = None  # the number that the user has given to ``start``, or None
        self.added: dict[str, Any] = {}  # what the headers of this run say besides

    def rank(self) -> int | None:
        """Return the rank: the given one, else the launcher's, else that in the communicator, else None."""
        if self.given is not None:
            return self.given
        launched = launched_rank()
        return communicator_rank() if launched is None else launched

    def disagreement(self) -> str:
        """Return a warning if the communicator reports another rank than the launcher, or ""."""
        launched = launched_rank()
        reported = communicator_rank()
        if self.given is not None or None in (launched, reported) or launched == reported:
            return ""
        return f"the launcher says rank {launched}, the communicator rank {reported}; the folder stays rank{launched}"


def world_size() -> int:
    """Return the number of ranks: that of an initialised communicator, else the launcher's."""
    from mindspore.communication import GlobalComm, get_group_size

    return int(get_group_size()) if getattr(GlobalComm, "INITED", False) else sibling_count()


def run_header(ranks: RankResolver) -> dict[str, Any]:
    """Return format, versions, ranks, device, seed and determinism of this run; rank is None in a lone process."""
    import mindspore
    import numpy

    context = mindspore.get_context
    # the package itself is imported by its name: imports in it point down
    packages = {"probe": importlib.import_module("probe"), "mindspore": mindspore, "numpy": numpy}
    process = {"tool": "probe", "format": FORMAT, "world_size": world_size(), "rank": ranks.rank()}
    process["device"] = context("device_target")
    repeats = {
        "seed": mindspore.get_seed(),
        "deterministic": context("deterministic") == "ON",
        **ranks.added,
    }
    mode = {"jit": "off"} if os.environ.get("MS_JIT") == "0" else {}
    return {
        **process,
        **mode,
        "versions": {name: package.__version__ for name, package in packages.items()},
        **repeats,
    }
