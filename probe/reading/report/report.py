# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes a report: reads the dumps in as many processes as there are cores, and writes the page.

One step of one rank is one part of it, of one run alone or of two. The page is one HTML file that needs neither
network, server nor Python.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Sequence
from typing import IO, Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.reading.check.snapshot import RunSnapshot, Snapshots
from probe.reading.compare.answer.comparison import Request, pair_folders
from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.alignment import NONE, Pair
from probe.reading.dumps.document import paused_gc
from probe.reading.dumps.dump import Call, Dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.tables import create_whole
from probe.reading.dumps.values import Record, has_nonfinite, is_tensor, leaves, real
from probe.reading.dumps.work import Workers, run_units
from probe.reading.one_run.coverage import looked_at
from probe.reading.one_run.health.rows import Rows, gaps_of as gaps_of_rows, read_rows, said_of
from probe.reading.one_run.health.run_check import (
    findings_of,
    gaps_of,
    look_into as look_into_step,
    trends_of,
)
from probe.reading.one_run.nan import LARGEST, NEAR, Found, look_into
from probe.reading.one_run.rank_digest import digest_of
from probe.reading.report import part as kinds
from probe.reading.report.content import Content, ContentMaker, Sources
from probe.reading.report.headline import OneRun
from probe.reading.report.part import (
    CALL_COLUMNS,
    ROW_COLUMNS,
    ROW_NUMBERS,
    Part,
    PartMaker,
    add_numbers,
    producer_of,
)
from probe.reading.report.row_pairs import compare_rows
from probe.series.file import RankSeries

_PLAIN = {"input_args": "input", "input_kwargs": "kwargs"}
#: how much larger the difference of an output is than that of the inputs, before it counts as grown
_GROWN = 10.0
_FLOOR = 1e-7
#: bins from 1e-12 to 1e0; the first holds all that is less, the last all that is more, and NaN
BINS = 24
_LOWEST = -12.0
_HIGHEST = 0.0
_MOST = 6
_MOST_ELEMENTS = 1 << 24
#: above this size a page is slow to open, and mails refuse it
LARGE = 30_000_000
_HERE = os.path.dirname(os.path.abspath(__file__))
#: the script that draws curves, and those of the page, in the order in which they are joined
LIBRARY = "vendor/uPlot.iife.min.js"
SCRIPTS = (
    "page/language.js", "page/data.js", "page/elements.js", "page/strip.js",
    "page/table.js", "page/lines.js", "page/monitor.js", "page/overview.js", "page/tree.js", "page/calls.js",
    "page/call.js", "page/steps.js", "page/ranks.js", "page/follow.js", "page/main.js",
)  # fmt: skip
STYLES = ("vendor/uPlot.min.css", "page/page.css")


def run_part(folder: DumpFolder, snapshots: Snapshots | None = None) -> Part:
    """Read one step of one rank, and return its part of the report; ``snapshots`` are those of its run."""
    part = Part(folder.step, folder.rank)
    dump = Dump(folder)
    try:
        with paused_gc():
            _look_alone(part, dump, snapshots.of_rank(folder.rank) if snapshots else None)
            _read_run(part, dump)
            add_numbers(part.series, "b", dump)
    except (UsageError, RecursionError) as error:
        part.found = Found(folder.step, folder.rank, [], [], reason_of(error))
    finally:
        dump.release()
    return part


def _read_run(part: Part, dump: Dump) -> None:
    maker = PartMaker(part)
    flow = dump.flow
    calls = {place: place for place in range(len(dump))}
    for place, call in enumerate(dump):
        before = len(maker.rows)
        maker.add_call(dump, flow, place, _rows(maker, place, call, calls), before)
    maker.finish(flow.names, dump.construct)


def _rows(maker: PartMaker, place: int, call: Call, calls: dict[int, int]) -> int:
    state = kinds.OK
    known = False
    for tensor in call.tensors():
        record = tensor.record
        producer = producer_of(call.dump.flow, place, tensor.place, record, calls)
        maker.add_row(tensor.place, None, record, producer)
        known = known or record.get("Max") is not None
        state = max(state, _tensor_state(record))
    for key, word in _PLAIN.items() if isinstance(call.entry, dict) else ():
        for inner, leaf in leaves(call.entry.get(key)):
            if not is_tensor(leaf):
                maker.add_row(f"{word}.{inner}", None, leaf, -1)
    return state if known or state else kinds.UNKNOWN


def _tensor_state(record: Record) -> int:
    if has_nonfinite(record):
        return kinds.NAN
    largest = LARGEST.get(str(record.get("dtype")))
    if (
        largest
        and max(abs(real(record.get(key)) or 0.0) for key in ("Max", "Min")) > NEAR * largest
    ):
        return kinds.NEAR
    return kinds.OK


def pair_part(
    folder_a: DumpFolder, folder_b: DumpFolder, options: Options, snapshots: Snapshots | None = None
) -> Part:
    """Compare one step of one rank, and return its part of the report; ``snapshots`` are those of B."""
    part = Part(folder_b.step, folder_b.rank)
    snapshot = snapshots.of_rank(folder_b.rank) if snapshots else None
    part.summary = compare_unit(
        folder_a, folder_b, options, lambda comparing: _fill(part, comparing, snapshot)
    )
    return part


def _fill(part: Part, comparing: JudgedPairs, snapshot: RunSnapshot | None) -> None:
    read_pairs(part, comparing)
    for side, dump in (("a", comparing.a), ("b", comparing.b)):
        add_numbers(part.series, side, dump)
    _look_alone(part, comparing.b, snapshot)
    add_histograms(part, comparing)


def _look_alone(part: Part, dump: Dump, snapshot: RunSnapshot | None) -> None:
    """Add what the readers of one run say about a dump."""
    part.found = look_into(dump)
    part.extras.looked = look_into_step(dump, snapshot, part.found)
    part.digest = digest_of(dump, snapshot)


def read_pairs(part: Part, comparing: JudgedPairs) -> None:
    """Turn a comparison into columns."""
    maker = PartMaker(part)
    flows = comparing.alignment.flows
    sides = ([pair[:2][side] for pair in comparing.pairs] for side in (0, 1))
    calls = [
        {place: number for number, place in enumerate(places) if place != NONE} for places in sides
    ]
    for pair, slots in zip(comparing.pairs, comparing.slots):
        before = len(maker.rows)
        side, dump, place = (0, comparing.a, pair.a) if pair.b == NONE else (1, comparing.b, pair.b)
        for slot in slots:
            is_given = slot.is_input and is_tensor(slot.b)
            producer = (
                producer_of(flows[1], pair.b, slot.place, slot.b, calls[1]) if is_given else NONE
            )
            maker.add_row(slot.place, slot.a, slot.b, producer, slot)
        if not slots and NONE in (pair.a, pair.b):  # a call without a partner
            for tensor in dump[flows[side].names[place]].tensors():
                a, b = (None, tensor.record) if side else (tensor.record, None)
                producer = producer_of(flows[side], place, tensor.place, tensor.record, calls[side])
                maker.add_row(tensor.place, a, b, producer)
        name_a = flows[0].names[pair.a] if side and pair.a != NONE else None
        name_a = None if name_a == flows[side].names[place] else name_a
        maker.add_call(dump, flows[side], place, _pair_state(pair, slots), before, pair.how, name_a)
    maker.finish(flows[1].names, comparing.a.construct, comparing.b.construct)


def _pair_state(pair: Pair, slots: list[Slot]) -> int:
    if pair.b == NONE:
        return kinds.ONLY_A
    if pair.a == NONE:
        return kinds.ONLY_B
    given = [
        slot.distance.rel_l2 or 0.0 for slot in slots if slot.is_input and slot.verdict in HARD
    ]
    made = [
        slot.distance.rel_l2 or 0.0 for slot in slots if not slot.is_input and slot.verdict in HARD
    ]
    if made and max(made) > _GROWN * max(max(given, default=0.0), _FLOOR):
        return kinds.GROWN
    if made or given:
        return kinds.CARRIED
    if any(slot.verdict == "argument" for slot in slots):
        return kinds.ARGUMENT
    judged = [slot.verdict for slot in slots if slot.verdict]
    return kinds.UNKNOWN if judged and all(verdict == "unknown" for verdict in judged) else kinds.OK


def add_histograms(part: Part, comparing: JudgedPairs) -> None:
    """Add the histograms of the arrays that differ first, and of those that differ most, in one step of one rank."""
    if not (comparing.a.header.get("dump_data_dir") and comparing.b.header.get("dump_data_dir")):
        return
    found = []
    row = 0
    for pair, slots in zip(comparing.pairs, comparing.slots):
        if not slots and NONE in (pair.a, pair.b):
            side, dump = (0, comparing.a) if pair.b == NONE else (1, comparing.b)
            row += len([*dump[comparing.alignment.flows[side].names[pair[:2][side]]].tensors()])
        for slot in slots:
            if slot.verdict in HARD and slot.distance.exact:
                found.append((slot.distance.rel_l2 or 0.0, row, pair, slot.place))
            row += 1
    flow_a, flow_b = comparing.alignment.flows
    worst = sorted(found, key=lambda item: -item[0])[:_MOST]
    for _, number, pair, where in {item[1]: item for item in (*found[:_MOST], *worst)}.values():
        left = _array(comparing.a, flow_a.names[pair.a], where)
        right = _array(comparing.b, flow_b.names[pair.b], where)
        counts = None if left is None or right is None else histogram(left, right)
        if counts:
            part.extras.histograms[number] = counts


def _array(dump: Any, name: str, place: str) -> Any:
    tensor = next((tensor for tensor in dump[name].tensors() if tensor.place == place), None)
    try:
        return tensor.array() if tensor else None
    except UsageError:
        return None


def histogram(a: Any, b: Any) -> list[int] | None:
    """Return the counts of elements by the logarithm of their error relative to the root mean square of A.

    >>> import numpy as np
    >>> sum(histogram(np.ones(5), np.ones(5) * 1.01))
    5
    """
    import numpy as np

    if (
        a.size != b.size
        or not 0 < a.size <= _MOST_ELEMENTS
        or a.dtype.kind == "c"
        or b.dtype.kind == "c"
    ):
        return None
    x = a.reshape(-1).astype(np.float64)
    y = b.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        scale = (
            float(np.sqrt(np.nanmean(np.square(x[np.isfinite(x)]))))
            if np.isfinite(x).any()
            else 0.0
        )
        error = np.log10(np.abs(y - x) / (scale or 1.0))
    error = np.where(np.isnan(error), _HIGHEST, error)
    places = np.clip((error - _LOWEST) * BINS / (_HIGHEST - _LOWEST), 0, BINS - 1).astype(int)
    return [int(count) for count in np.bincount(places, minlength=BINS)]


class Wishes(NamedTuple):
    """The wishes of the user for a report."""

    request: Request = (
        Request()
    )  # which steps and ranks, the processes that work, and the settings of the comparison
    with_code: bool = True  # whether source lines and folders of the code are kept
    everything: bool = False  # whether all rows are kept, however many there are
    language: str = ""  # "en", "zh", or "" for that of the browser


class Outcome(NamedTuple):
    """The outcome of a report."""

    status: int  # 0 nothing found, 1 something found, 2 not comparable
    size: int  # the size of the page in bytes
    calls: int  # how many calls it tells about
    dropped: int  # how many of them others stand for
    unread: Sequence[Sentence] = ()  # why dumps could not be read
    headline: Sentence = NOTHING  # the heaviest finding, or what was looked at


def report(
    a: str | os.PathLike[str] | Run,
    b: str | os.PathLike[str] | Run | None = None,
    path: str | os.PathLike[str] = "report.html",
    step: str = "",
    rank: str = "",
    jobs: int = 1,
    scheduler: str = "",
    lang: str = "",
) -> Outcome:
    """Write one HTML page about one run, or about two and where they begin to differ.

    Args:
        a: the run; with ``b`` it is A, the golden one.
        b: B, yours.
        path: the page.
        step: which steps, as "0,4-6".
        rank: which ranks, likewise.
        jobs: how many processes work; more than 1 only from a script with ``if __name__ == "__main__"``.
        scheduler: the address of a Dask scheduler, whose workers do it instead.
        lang: "en" or "zh"; "" for the language of the browser.

    Raises:
        UsageError: when there is no dump, nothing can be compared, or the page cannot be written.

    Example::

        outcome = probe.report("golden", "mine", path="report.html")
        print(outcome.status, outcome.calls)
    """
    sides = [
        side.path if isinstance(side, Run) else os.fspath(side)
        for side in (a, b)
        if side is not None
    ]
    if lang not in ("", "en", "zh"):
        raise UsageError(f'lang: {lang!r} is not "en", "zh" or ""')
    wishes = Wishes(Request(step=step, rank=rank, workers=Workers(jobs, scheduler)), language=lang)
    return make_report(path, sides[-1], sides[0] if b is not None else "", wishes)


def make_content(path: str, golden: str = "", wishes: Wishes | None = None) -> Content:
    """Return the content of the report of one run or two; raise UsageError when there is nothing to show."""
    wishes = wishes or Wishes()
    step = wishes.request.step
    rank = wishes.request.rank
    workers = wishes.request.workers
    run = open_run(path)
    snapshots = Snapshots(path)
    rows = Rows() if not golden else read_rows(golden), read_rows(path)
    alone: tuple[list[Any], list[Any]] = ([], [])
    row_pairs = None
    if golden and _have_rows_alone(rows, golden, run):
        read = []
        parts = []
        row_pairs = compare_rows(rows[0].ranks, rows[1].ranks, wishes.request.options.factor)
    elif golden:
        pairs, alone = pair_folders(open_run(golden), run, step, rank)
        units = [(*pair, wishes.request.options, snapshots) for pair in pairs]
        parts = list(run_units(pair_part, units, workers))
        read = [pair[1] for pair in pairs]
    else:
        read = [] if rows[1].ranks and not run.folders else folders(run, step, rank)
        parts = list(
            run_units(
                run_part, [(folder, snapshots) for folder in read], workers, say("progress.reading")
            )
        )
    if parts and all(part.error for part in parts):
        raise UsageError(parts[0].error)
    if not parts and not rows[1].ranks:
        raise UsageError(rows[1].unread[0])
    maker = ContentMaker(
        Sources((golden, path), parts, alone, rows, row_pairs), wishes.with_code, wishes.everything
    )
    return maker.content(_answers(parts, read, snapshots, rows[1].ranks))


def _have_rows_alone(rows: tuple[Rows, Rows], golden: str, run: Run) -> bool:
    """Return whether two runs have rows of the monitor, and neither has a dump."""
    have_rows = all(side.ranks for side in rows)
    return have_rows and not run.folders and not open_run(golden).folders


def _answers(
    parts: Sequence[Part],
    read: Sequence[DumpFolder],
    snapshots: Snapshots,
    ranks: Sequence[RankSeries],
) -> OneRun:
    """Return the answers about one run alone: of its dumps, and of its rows of the monitor."""
    looked = [part.extras.looked for part in parts if part.extras.looked]
    scope = looked_at((item.step, item.rank, item.coverage) for item in looked)
    gaps = gaps_of(scope, snapshots) if parts else []
    gaps += gaps_of_rows(ranks) if ranks else []
    rows = said_of(ranks) if ranks else NOTHING
    return OneRun(
        findings_of(looked, snapshots, read), scope, gaps, rows, trends_of(looked, snapshots)
    )


def make_report(
    output: str | os.PathLike[str], path: str, golden: str = "", wishes: Wishes | None = None
) -> Outcome:
    """Write the report of a run, beside ``golden`` if given; raise UsageError when it is empty or cannot be written."""
    wishes = wishes or Wishes()
    return save(output, make_content(path, golden, wishes), wishes.language)


def save(
    output: str | os.PathLike[str], content: Content, language: str = "", follow: int = 0
) -> Outcome:
    """Write a page in the place of the one before; raise UsageError when it cannot be written.

    Args:
        output: the page.
        content: its content.
        language: "en", "zh", or "" for that of the browser.
        follow: after how many seconds the page reads itself again; 0 for never.
    """
    content.description["follow"] = follow
    try:
        with create_whole(output, "\n") as file:
            write(file, content, language)
        size = os.path.getsize(output)
    except OSError as error:
        raise UsageError(
            say("error.unwritable", path=os.fspath(output), reason=reason_of(error))
        ) from error
    calls = content.description["counts"]["calls"]
    return Outcome(
        content.head.status, size, calls, content.merged.dropped, content.unread, content.head.whole
    )


def read(name: str) -> str:
    """Return the text of a file that lies beside this module."""
    with open(os.path.join(_HERE, *name.split("/")), encoding="utf-8") as file:
        return file.read()


def script(language: str) -> str:
    """Return the whole script of the page; the language "" leaves it to the browser."""
    joined = "\n".join(read(name) for name in SCRIPTS)
    constants = f"const TEXTS = {read('page/texts.json').strip()};\nconst LANGUAGE = {json.dumps(language)};\n"
    whole = f'{read(LIBRARY)}\n(() => {{\n"use strict";\n{constants}{joined}\n}})();\n'
    return whole.replace("</script", "<\\/script")


def write(file: IO[str], content: Content, language: str = "") -> None:
    """Write the page into a file; the language "" leaves it to the browser."""
    code = script(language)
    style = "\n".join(map(read, STYLES))
    description = content.description
    title = f"{description['a']} | {description['b']}" if description["two"] else description["b"]
    head, _, rest = read("page/page.html").partition("@DATA@")
    head = head.replace("@LANGUAGE@", language or "en")
    head = (
        head.replace("@STYLE_HASH@", _hash(style))
        .replace("@SCRIPT_HASH@", _hash(code))
        .replace("@STYLE@", style)
    )
    file.write(head.replace("@TITLE@", html.escape(title)))
    _column(file, "description", "json", kinds.packed_text(description))
    for group, columns, names in (
        ("call", content.merged.calls, (*CALL_COLUMNS, "index")),
        ("row", content.merged.rows, (*ROW_COLUMNS, *ROW_NUMBERS)),
    ):
        for name in names:
            base = (
                columns.get(f"{name[:-1]}a") if name.endswith("_b") and description["two"] else None
            )
            column = columns[name]
            is_changed = (
                base is not None and base.typecode == column.typecode and len(base) == len(column)
            )
            kind = column.typecode + "^" * is_changed
            _column(file, f"{group}-{name}", kind, kinds.packed(column, base))
    file.write(rest.replace("@SCRIPT@", code))


def _column(file: IO[str], name: str, kind: str, letters: str) -> None:
    file.write(
        f'<script type="text/plain" id="data-{name}" data-kind="{kind}">{letters}</script>\n'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode(
        "ascii"
    )
