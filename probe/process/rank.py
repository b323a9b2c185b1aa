# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which rank this process is, as far as that is known: MindSpore says so once communication is initialised."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable

from probe.naming import clean
from probe.store import layout

_NUMBER = re.compile(r"[0-9]{1,9}")


def is_scheduler() -> bool:
    """Return whether this process only brings the others together: msrun runs the training's script there too."""
    return os.environ.get("MS_ROLE") == "MS_SCHED"


def has_siblings() -> bool:
    """Return whether a launcher has started this process together with others."""
    sizes = (os.environ.get(name, "") for name in ("RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE"))
    return any(_NUMBER.fullmatch(size) and int(size) > 1 for size in sizes)


def launched() -> int | None:
    """Return the rank that a launcher has given this process among several, or None where it has not."""
    # under msrun RANK_ID is not this process's where MindSpore is to give out the ranks
    names = ("MS_NODE_ID",) if "MS_ROLE" in os.environ else ("RANK_ID", "OMPI_COMM_WORLD_RANK")
    ranks = (os.environ.get(name, "") for name in names)
    return next((int(rank) for rank in ranks if _NUMBER.fullmatch(rank)), None) if has_siblings() else None


class RankResolver:
    """The rank of this process, and the name of its folder.

    Attributes:
        given: the number that the user has given to ``start``, or None.
    """

    def __init__(self) -> None:
        self.given: int | None = None

    def now(self) -> int | None:
        """Return the rank: the given one, else that in the communicator, else None."""
        return self.watcher()() if self.given is None else self.given

    def folder(self) -> str:
        """Return the name of the rank folder as of now.

        A process that was launched with others, before communication is initialised, gets a name of its own until the
        step ends: they must not meet in one folder.
        """
        rank = self.now()
        if rank is None and has_siblings():
            return clean(f"{layout.PROVISIONAL}{socket.gethostname()}_{os.getpid()}")
        return layout.rank_name(rank)

    def watcher(self) -> Callable[[], int | None]:
        """Return what tells the rank in an initialised communicator, or None, very quickly."""
        from mindspore.communication import GlobalComm, get_rank

        return lambda: int(get_rank()) if GlobalComm.INITED else None

    def expected(self) -> int | None:
        """Return the rank, without communication what the launcher said."""
        rank = self.now()
        return launched() if rank is None else rank
