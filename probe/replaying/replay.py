# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""``probe.replay``: recorded calls are made again, and their recorded outputs judged."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from probe.errors import UsageError
from probe.process.progress import progress
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Call, Dump
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import open
from probe.reading.dumps.text import safe
from probe.replaying.describing import describe
from probe.replaying.judging import NOT_REPLAYED, OK, WORSE, WRONG, Judged
from probe.replaying.pool import Pool
from probe.replaying.refusals import RefusedError

#: the seconds that a call may take
LIMIT = 60.0
_SAID = {OK: "as expected", WORSE: "worse than expected", WRONG: "wrong"}


@dataclass(frozen=True)
class Replayed:
    """One call that was made again.

    Attributes:
        step: the step of its dump, or None.
        rank: the rank of its dump, or None.
        name: the name of its entry.
        verdict: "ok", "worse than expected", "wrong" or "not replayable".
        reason: why it is not replayable, or "".
        golden: how the golden outputs were made: "float64", "float64 of elementary operations", "float32".
        outputs: the verdict on each output; of a backward entry on each gradient.
    """

    step: int | None
    rank: int | str | None
    name: str
    verdict: str
    reason: str
    golden: str
    outputs: list[Judged]

    @property
    def worst(self) -> Judged | None:
        """The output with the worst verdict, and among those the one that is furthest off."""
        order = (OK, WORSE, WRONG)
        return max(self.outputs, key=lambda item: (order.index(item.verdict), item.roundings), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON shapes."""
        return asdict(self)

    def __str__(self) -> str:
        worst = self.worst
        if worst is None:
            return f"{self.name}: {self.verdict}: {self.reason}"
        off = f"recorded {worst.off:.1e} off, here {worst.here:.1e}"
        where = f" at {worst.element}" if worst.element and worst.verdict != OK else ""
        notes = [worst.note] if worst.note else []
        if self.golden != "float64":
            notes.append(f"golden: {self.golden}")
        told = f" ({'; '.join(notes)})" if notes else ""
        return f"{self.name}.{worst.place}: {off}{where}: {_SAID[worst.verdict]}{told}"


class Replays(Sequence[Replayed]):
    """The calls that were made again, in the order of the dump.

    Args:
        calls: they.
    """

    def __init__(self, calls: Sequence[Replayed]) -> None:
        self._calls = list(calls)

    def __getitem__(self, index: Any) -> Any:
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def found(self) -> list[Replayed]:
        """The calls that are wrong, or worse than expected."""
        return [call for call in self._calls if call.verdict in (WRONG, WORSE)]

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> how many calls have it."""
        counted = Counter(call.verdict for call in self._calls)
        return {verdict: counted[verdict] for verdict in (OK, WORSE, WRONG, NOT_REPLAYED)}

    @property
    def status(self) -> int:
        """The exit status: 0 all fine, 1 something found, 2 nothing could be replayed."""
        if self.found:
            return 1
        return 0 if self.counts[OK] else 2

    def __str__(self) -> str:
        lines = [str(call) for call in self._calls]
        lines.append(", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()))
        return "\n".join(safe(line) for line in lines)

    __repr__ = __str__


def replay(
    path: str | os.PathLike[str],
    call: str | None = None,
    *,
    dtype: str = "",
    device: str = "",
    jobs: int = 0,
    step: str = "",
    rank: str = "",
    limit: float = LIMIT,
) -> Replays:
    """Make recorded calls again in float64, and judge their recorded outputs. The dump needs arrays: task "tensor".

    Args:
        path: a dump_path, or a step or rank folder in it.
        call: the name of an entry, "Functional.softmax.3.forward"; without its direction both entries; a key, as
            "Functional.softmax", all its calls. None takes all calls.
        dtype: the dtype of the calls here, as "bfloat16"; "" for the recorded ones.
        device: the device of the calls here, as "Ascend"; "" for the CPU.
        jobs: how many processes work; 0 means one for each core.
        step: only these steps, as "0,4-6".
        rank: only these ranks.
        limit: the seconds that a call may take.

    Raises:
        UsageError: when there is no such call, or an argument is wrong.

    Example::

        for call in probe.replay("dump_path").found:
            print(call)
    """
    chosen, options = list(choose(path, call, step, rank)), {"device": "CPU", "dtype": known_dtype(dtype)}
    described = [_described(entry) for entry in chosen]
    with tempfile.TemporaryDirectory(prefix="probe-replay-") as folder:
        if device:
            there = Pool(1, {**options, "device": device, "folder": folder}, limit)
            made = _results(described, there, f"replaying on {device}")
            described = [{**item, **result} for item, result in zip(described, made)]
        results = _results(described, Pool(jobs, options, limit), "replaying")
    return Replays([_replayed(entry, result) for entry, result in zip(chosen, results)])


def _results(described: Sequence[dict[str, Any]], pool: Pool, label: str) -> list[dict[str, Any]]:
    """Return the result of each call."""
    found = {place: item for place, item in enumerate(described) if "verdict" in item}
    places = [place for place in range(len(described)) if place not in found]
    if places:
        running = _Counted(pool.run([described[place] for place in places]), len(places))
        found.update((places[number], result) for number, result in progress(running, label))
    return [found[place] for place in range(len(described))]


def _described(entry: Call) -> dict[str, Any]:
    """Return the description of a call, or the result of one that cannot be made again."""
    try:
        return describe(entry)
    except RefusedError as error:
        return {"verdict": NOT_REPLAYED, "reason": str(error), "golden": "", "outputs": []}


class _Counted:
    """An iterator whose length is known.

    Args:
        items: the iterator.
        count: how many items it has.
    """

    def __init__(self, items: Iterator[Any], count: int) -> None:
        self._items, self._count = items, count

    def __iter__(self) -> Iterator[Any]:
        return self._items

    def __len__(self) -> int:
        return self._count


def _replayed(call: Call, result: dict[str, Any]) -> Replayed:
    outputs = [Judged(**item) for item in result["outputs"]]
    return Replayed(
        call.dump.step, call.dump.rank, call.name, result["verdict"], result["reason"], result["golden"], outputs
    )


def choose(path: str | os.PathLike[str], name: str | None, step: str = "", rank: str = "") -> Iterator[Call]:
    """Yield the calls of a name; see ``replay``.

    Raises:
        UsageError: when there is none.
    """
    found = 0
    for folder in folders(open(path), step, rank):
        for call in Dump(folder):
            if call.parts.kind not in (entry_name.API, entry_name.CELL):
                continue
            above = call.name.rpartition(".")[0]
            if name is None or name in (call.name, above, call.parts.key):
                found += 1
                yield call
    if not found:
        what = "no call" if name is None else f"no call {name!r}; probe show names them"
        raise UsageError(f"{os.fspath(path)} has {what}")


def known_dtype(dtype: str) -> str:
    """Return the name of a dtype as a record has it.

    Raises:
        UsageError: when it is none of floating point.
    """
    names = {"": "", "float16": "Float16", "bfloat16": "BFloat16", "float32": "Float32", "float64": "Float64"}
    if dtype.lower() not in names:
        raise UsageError(f"dtype: {dtype!r} is not allowed. Allowed: {', '.join(filter(None, names))}.")
    return names[dtype.lower()]
