# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.replay``: recorded calls are made again, and their recorded outputs judged."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, Union

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, clauses, say
from probe.process.isolated import EndedError, Isolated, cores
from probe.process.progress import progress
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Call, Dump
from probe.reading.dumps.names import ALL_NAMES, Names
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import open
from probe.reading.dumps.text import safe
from probe.replaying.composing import program_of
from probe.replaying.described import (
    CallDescription,
    CannotReplayError,
    Made,
    Program,
    ReplayResult,
    not_replayed,
)
from probe.replaying.describing import describe
from probe.replaying.judging import (
    DIFFERS,
    EQUAL,
    KINK,
    LABEL,
    NOT_REPLAYED,
    OK,
    WORSE,
    WRONG,
    Judged,
)

LIMIT = 60.0  # the seconds that a call may take
_SAID = {OK: "replay.as_expected", WORSE: "replay.worse", WRONG: "replay.wrong"}
#: how golden outputs were made, where it is told
_GOLDEN = {
    "float64": "replay.own_kernel", "float64 of elementary operations": "replay.elementary",
    "float32": "replay.float32",
    "the same dtype": "replay.same_dtype",
}  # fmt: skip

_START_LIMIT = 300.0  # the seconds in which a process has to have imported MindSpore
_MOST_CALLS = 1000  # a process makes so many calls: what they leave behind does not grow
#: settings under which calls that differ are made again, in this order -> their form in a training
SETTINGS = {
    "deterministic": "mindspore.set_deterministic(True)",
    "threads": "OMP_NUM_THREADS=1, runtime_num_threads=1",
}

Answer = Union[ReplayResult, Made]  # the verdicts on a call, or its outputs on another device


@dataclass(frozen=True)
class Replayed:
    """One call that was made again.

    Attributes:
        step: the step of its dump, or None.
        rank: the rank of its dump, or None.
        name: the name of its entry.
        verdict: "ok", "worse than expected", "wrong" or "not replayable".
        said: why it is not replayable, or NOTHING.
        golden: how the golden outputs were made: "float64 of numpy", "float64 of elementary operations", "float64" (the
            same operation of MindSpore in float64), "float32" or "the same dtype".
        outputs: the verdict on each output; of a backward entry on each gradient.
    """

    step: int | None
    rank: int | str | None
    name: str
    verdict: str
    said: Sentence
    golden: str
    outputs: list[Judged]

    @property
    def reason(self) -> str:
        """The reason why it is not replayable, in English, or ""."""
        return str(self.said)

    @property
    def worst(self) -> Judged | None:
        """The output with the worst verdict, and among those the one that is furthest off."""
        order = (KINK, OK, WORSE, WRONG, DIFFERS)
        return max(
            self.outputs, key=lambda item: (order.index(item.verdict), item.roundings), default=None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON shapes: of the reason and of each note the English text, its key and its facts."""
        outputs = [_as_json(vars(item), "note", item.said) for item in self.outputs]
        return _as_json({**vars(self), "outputs": outputs}, "reason", self.said)

    @property
    def sentence(self) -> Sentence:
        """The sentence about it."""
        worst = self.worst
        if self.verdict == EQUAL:
            return say("replay.equal", name=self.name)
        if worst is None:
            return say("replay.refused", name=self.name, reason=self.said)
        golden = _GOLDEN.get(self.golden)
        remarks = clauses(
            self.said, worst.said, say("replay.golden", golden=say(golden)) if golden else NOTHING
        )
        facts = {
            "name": self.name,
            "place": worst.place,
            "off": worst.off,
            "here": worst.here,
            "remarks": say("replay.remarks", remarks=remarks) if remarks else NOTHING,
        }
        if self.verdict == DIFFERS:
            counts = {"count": int(worst.roundings), "repeats": int(worst.roundings_here)}
            return say("replay.differs", **facts, **counts, element=str(worst.element))
        if self.verdict == KINK:
            return say("replay.kink", **facts)
        is_gradient = self.golden == LABEL
        is_told = worst.element and worst.verdict != OK
        verdict = say(
            "replay.gradient_ok" if is_gradient and worst.verdict == OK else _SAID[worst.verdict]
        )
        at = say("replay.at", element=str(worst.element)) if is_told else NOTHING
        return say(
            "replay.gradient" if is_gradient else "replay.call", **facts, at=at, verdict=verdict
        )

    def __str__(self) -> str:
        return str(self.sentence)


def _as_json(fields: dict[str, Any], name: str, said: Sentence) -> dict[str, Any]:
    """Return fields with the text of a sentence in its place, and its key and facts behind all."""
    texts = {
        name if key == "said" else key: str(said) if key == "said" else value
        for key, value in fields.items()
    }
    return {**texts, **said.to_dict()}


class Replays(Sequence[Replayed]):
    """The calls that were made again, in the order of the dump."""

    def __init__(self, calls: Iterable[Replayed]) -> None:
        self._calls = list(calls)

    def __getitem__(self, index: Any) -> Any:
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def found(self) -> list[Replayed]:
        """The calls that are wrong, or worse than expected."""
        return [call for call in self._calls if call.verdict in (WRONG, WORSE, DIFFERS)]

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> how many calls have it."""
        counted = Counter(call.verdict for call in self._calls)
        return {
            verdict: counted[verdict]
            for verdict in (OK, WORSE, WRONG, NOT_REPLAYED, KINK, EQUAL, DIFFERS)
        }

    @property
    def status(self) -> int:
        """The exit status: 0 all fine, 1 something found, 2 nothing could be replayed."""
        if self.found:
            return 1
        return 0 if self.counts[OK] + self.counts[EQUAL] else 2

    def text(self, language: str) -> str:
        """Return a line for each call, and how many have each verdict, in a language: "en" or "zh"."""
        counts = dict(
            zip(
                ("ok", "worse", "wrong", "refused", "kinks", "equal", "differ"),
                self.counts.values(),
            )
        )
        key = (
            "replay.gradients"
            if any(call.golden == LABEL for call in self._calls)
            else "replay.summary"
        )
        key = "replay.repeats" if counts["equal"] or counts["differ"] else key
        sentences = [*(call.sentence for call in self._calls), say(key, **counts)]
        return "\n".join(safe(sentence.text(language)) for sentence in sentences)

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def __repr__(self) -> str:
        return self.text(ENGLISH)


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
    gradients: bool = False,
    repeat: int = 0,
    names: Names = ALL_NAMES,
    lang: str = ENGLISH,
) -> Replays:
    """Make recorded calls again in float64, and judge their outputs. The dump needs arrays: task "tensor".

    Args:
        path: a dump_path, or a step or rank folder in it.
        call: an entry; without its direction both entries; a key, as "Functional.softmax": all its calls; None: all.
        dtype: the dtype of the calls here, as "bfloat16"; "" for the recorded ones.
        device: the device of the calls here, as "Ascend"; "" for the CPU.
        jobs: how many processes work; 0 means one for each core.
        step: only these steps, as "0,4-6".
        rank: only these ranks.
        limit: the seconds that a call may take.
        gradients: compare gradients with central differences instead; without ``dtype`` and ``device``.
        repeat: make each call so many times instead, and compare bytes.
        names: only calls whose names it fits.
        lang: the language of the progress line, "en" or "zh".

    Raises:
        UsageError: when there is no such call, or an argument is wrong.

    Example::

        for call in probe.replay("dump_path").found:
            print(call)
    """
    chosen = list(choose(path, call, step, rank, names))
    options = {"device": "CPU", "dtype": known_dtype(dtype)}
    if gradients:
        chosen = [entry for entry in chosen if entry.direction == entry_name.BACKWARD]
        results = _results(
            [_described(one, program_of) for one in chosen],
            Pool(jobs, options, limit),
            say("progress.differencing"),
            lang,
        )
    elif repeat:
        options.update(device=device or "CPU", repeat=str(repeat))
        results = _repeated(chosen, options, 1 if device else jobs, limit, lang)
    else:
        results = _judged(chosen, options, device, jobs, limit, lang)
    return Replays(
        Replayed(one.dump.step, one.dump.rank, one.name, *result)
        for one, result in zip(chosen, results)
    )


def _judged(
    chosen: Sequence[Call],
    options: dict[str, str],
    device: str,
    jobs: int,
    limit: float,
    language: str,
) -> list[Any]:
    with tempfile.TemporaryDirectory(prefix="probe-replay-") as folder:
        calls = [_described(entry) for entry in chosen]
        if device:
            there = Pool(1, {**options, "device": device, "folder": folder}, limit)
            made = _results(calls, there, say("progress.replaying_on", device=device), language)
            calls = [_given(call, answer) for call, answer in zip(calls, made)]
        return _results(calls, Pool(jobs, options, limit), say("progress.replaying"), language)


def _repeated(
    chosen: Sequence[Call], options: dict[str, str], jobs: int, limit: float, language: str
) -> list[Any]:
    """Make each call several times; those that differ once more under settings that may make them equal."""
    calls = [_described(entry) for entry in chosen]
    results = _results(calls, Pool(jobs, options, limit), say("progress.repeating"), language)
    for setting, form in SETTINGS.items():
        left = [
            place
            for place, result in enumerate(results)
            if result.verdict == DIFFERS and not result.reason
        ]
        again = _results(
            [calls[place] for place in left],
            Pool(1, {**options, "setting": setting}, limit),
            say("progress.setting", name=setting),
            language,
        )
        for place, result in zip(left, again):
            if result.verdict == EQUAL:
                results[place] = results[place]._replace(reason=say("replay.helps", setting=form))
    return results


def _results(
    calls: Sequence[CallDescription | Program | ReplayResult],
    pool: Pool,
    label: Sentence,
    language: str,
) -> list[Any]:
    found: dict[int, Answer] = {
        place: call for place, call in enumerate(calls) if isinstance(call, ReplayResult)
    }
    left = {place: call for place, call in enumerate(calls) if not isinstance(call, ReplayResult)}
    if left:
        places = list(left)
        running = pool.run(list(left.values()))
        found.update(
            (places[number], result)
            for number, result in progress(running, label.text(language), len(left))
        )
    return [found[place] for place in range(len(calls))]


def _described(entry: Call, form: Callable[[Call], Any] = describe) -> Any:
    """Return the description of a call or of its function, or the result of one that cannot be made again."""
    try:
        return form(entry)
    except CannotReplayError as error:
        return not_replayed(error.reason)


def _given(call: CallDescription | ReplayResult, answer: Answer) -> CallDescription | ReplayResult:
    """Return a call with the outputs of another device, or the result of one that it could not make."""
    if isinstance(answer, Made):
        return call._replace(here=answer) if isinstance(call, CallDescription) else call
    return answer


def choose(
    path: str | os.PathLike[str],
    name: str | None,
    step: str = "",
    rank: str = "",
    names: Names = ALL_NAMES,
) -> Iterator[Call]:
    """Yield the calls of a name; see ``replay``. Raise UsageError when there is none."""
    found = 0
    for folder in folders(open(path), step, rank):
        for call in Dump(folder):
            if call.parts.kind not in (entry_name.API, entry_name.CELL):
                continue
            if not names.fits(call.name, f"{call.parts.path or ''} {call.cell or ''}"):
                continue
            above = call.name.rpartition(".")[0]
            if name is None or name in (call.name, above, call.parts.key):
                found += 1
                yield call
    if not found:
        if name is None:
            raise UsageError(say("error.replay_no_calls", path=os.fspath(path)))
        raise UsageError(say("error.replay_no_call", path=os.fspath(path), name=name))


def known_dtype(dtype: str) -> str:
    """Return the name of a dtype as a record has it; raise UsageError when it is none of floating point."""
    names = {
        "": "",
        "float16": "Float16",
        "bfloat16": "BFloat16",
        "float32": "Float32",
        "float64": "Float64",
    }
    if dtype.lower() not in names:
        raise UsageError(
            say("error.replay_bad_dtype", text=dtype, allowed=list(filter(None, names)))
        )
    return names[dtype.lower()]


class Pool:
    """Some processes that make calls again, each within a limit of seconds; of ``jobs`` 0 means one for each core."""

    def __init__(self, jobs: int, options: dict[str, str], limit: float) -> None:
        self._jobs = jobs or cores()
        self._options = options
        self._limit = limit
        #: the processes that wait for a call, and how many calls each has made
        self._idle: list[tuple[Isolated, int]] = []
        self._failure: ReplayResult | None = None

    def run(self, calls: Sequence[CallDescription | Program]) -> Iterator[tuple[int, Answer]]:
        """Yield the number of a call and its result, in the order in which they end."""
        jobs = max(1, min(self._jobs, len(calls)))
        threads = ThreadPoolExecutor(jobs)
        try:
            share = str(1 if self._options.get("setting") == "threads" else max(1, cores() // jobs))
            numbers = {
                threads.submit(self._answer, call, share): number
                for number, call in enumerate(calls)
            }
            for done in as_completed(numbers):
                yield numbers[done], done.result()
        finally:
            threads.shutdown(cancel_futures=True)
            for process, _ in self._idle:
                process.close()

    def _answer(self, call: CallDescription | Program, share: str) -> Answer:
        if self._failure:
            return self._failure
        try:
            process, count = self._idle.pop()
        except IndexError:
            process = Isolated("probe.replaying.worker:main", self._options, OMP_NUM_THREADS=share)
            count = 0
        limit = _START_LIMIT
        try:
            if not count:
                process.receive(limit)
            limit = self._limit
            count = count + 1
            process.send(_plain(call))
            answer = _read(process.receive(limit))
        except (TimeoutError, EndedError) as error:
            process.close()
            lost = not_replayed(_reason(error, limit))
            if not count:  # one that cannot start will not start later either
                self._failure = lost
            return lost
        if count < _MOST_CALLS:
            self._idle.append((process, count))
        else:
            process.close()
        return answer


def _reason(error: Exception, limit: float) -> Sentence:
    if not isinstance(error, EndedError):
        return say("replay.limit", seconds=limit)
    signal = max(-error.status, 0)
    return (
        say("replay.signal", signal=signal) if signal else say("replay.status", status=error.status)
    )


def _plain(call: CallDescription | Program) -> dict[str, Any]:
    """Return a description as JSON has it; without the parts that it has not."""
    here = {"here": call.here._asdict()} if isinstance(call, CallDescription) and call.here else {}
    return {**{name: value for name, value in call._asdict().items() if value is not None}, **here}


def _read(answer: dict[str, Any]) -> Answer:
    if "here" in answer:
        return Made(**answer["here"])
    outputs = [
        Judged(**{**item, "said": Sentence.from_dict(item["said"])}) for item in answer["outputs"]
    ]
    return ReplayResult(
        **{**answer, "reason": Sentence.from_dict(answer["reason"]), "outputs": outputs}
    )
