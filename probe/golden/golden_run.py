# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The golden run on disk: which of its folders belongs to a step of this process, or why there is none."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from probe.errors import UsageError
from probe.reading.compare.answer.comparison import Comparison, Request, compare_runs
from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import Options
from probe.reading.dumps.document import Document
from probe.reading.dumps.folders import DumpFolder, find_folders
from probe.reading.dumps.run import shortened
from probe.reading.dumps.values import record_sharer
from probe.series.series import find_series
from probe.store.dump_writer import DumpWriter

#: so many ranks are compared together; of more each is compared alone
_MOST_RANKS = 16


class KeptStep(NamedTuple):
    """A step of this run whose entries are in memory."""

    step: int
    writer: DumpWriter


class _HeldSource(NamedTuple):
    """Reads the entries that a writer keeps in memory."""

    writer: DumpWriter

    def read(self, folder: str) -> Document:
        """Read them as they are now; see ``FolderKind``."""
        header, text, stacks, construct = self.writer.documents.held()
        return Document(header, json.loads(text, object_hook=record_sharer([])), lambda: stacks, lambda: construct, [])


class GoldenRun:
    """The dump of a golden run, for one rank of this run.

    Raises:
        UsageError: when there is none that this rank can be compared with; the message says what to do instead.
    """

    def __init__(self, path: str, rank: int | None, world_size: int) -> None:
        self.path, self._rank = path, rank
        folders = _folders(path)
        ranks = list(dict.fromkeys(folder.rank for folder in folders))
        is_lone = len(ranks) == 1 and world_size == 1
        if not is_lone and (rank not in ranks or len(ranks) > world_size):
            raise UsageError(
                f"golden: {path} has ranks {shortened(ranks)}, this is rank {rank} of {world_size}. Record this run "
                'with task "statistics" instead, and give both to probe compare: it takes --layout-a and --layout-b'
            )
        if any(folder.tree for folder in folders):
            raise UsageError(f"golden: {path} has compiled Cells. Record this run too, and give both to probe compare")
        self._world_size = world_size
        self._by_step = {folder.step: folder for folder in folders if is_lone or folder.rank == rank}

    def folder(self, step: int) -> DumpFolder | None:
        """Return the golden run's folder of a step; None where it has no such step."""
        return self._by_step.get(None) or self._by_step.get(step)

    def has_after(self, step: int) -> bool:
        """Return whether the golden run has a step behind this one."""
        return any(other is not None and other > step for other in self._by_step)

    def differs(self, kept: KeptStep) -> bool:
        """Return whether ``probe compare`` names a difference in a step.

        Raises:
            UsageError: when the golden run's step cannot be read, or is of another model.
        """
        golden = self.folder(kept.step)
        if golden is None:
            return False
        unit = compare_unit(
            golden, DumpFolder(kept.writer.folder, kept.step, self._rank, "", _HeldSource(kept.writer)), Options()
        )
        found = Comparison((self.path, ""), [unit], ([], []), [], Options())
        if not found.is_comparable:
            reason = unit.error or "fewer than half of the calls are the same: is it of another model?"
            raise UsageError(f"golden: {golden.path} cannot be compared: {reason}")
        return bool(unit.origins.first or unit.counts.differs)

    def compare(self, root: str, steps: Sequence[int]) -> Comparison:
        """Compare steps of this run that are on disk; see ``probe.compare``.

        Those of other ranks are compared too, as far as they are on disk. Raise UsageError when that cannot be.
        """
        chosen = "" if None in self._by_step else ",".join(map(str, steps))
        rank = "" if self._world_size <= _MOST_RANKS else str(self._rank)
        return compare_runs(self.path, root, Request(step=chosen, rank=rank))


def _folders(path: str) -> list[DumpFolder]:
    """Return the rank folders of a dump; raise UsageError when there is none."""
    try:
        return find_folders(path)
    except UsageError as error:
        if os.path.isdir(path) and find_series(path):
            raise UsageError(
                f"golden: {path} holds series of the monitor and no dump. Record the golden run with task "
                '"statistics", or watch this run with task "monitor" and compare both with probe watch'
            ) from None
        raise UsageError(f"golden: {error}") from None
