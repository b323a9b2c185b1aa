# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The content of a report: columns and a short description, from the same objects as the other commands.

The parts of all steps and ranks are put together: one table of texts, one column for each kind of number. Each frame of
the code is there once, with paths that tell nothing about the machine.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import CHINESE, Sentence, as_json, say
from probe.reading.compare.answer.summary import harmless
from probe.reading.compare.origins.origin import Origin
from probe.reading.dumps.flow import Frame, parse
from probe.reading.dumps.text import safe, shorten
from probe.reading.one_run.health.step import HealthFinding
from probe.reading.one_run.rank_checks import RankChecks, RankFinding
from probe.reading.one_run.trend import TrendFinding
from probe.reading.report import part as kinds
from probe.reading.report.columns import Column, Texts, joined
from probe.reading.report.curves import curves_of
from probe.reading.report.headline import Headline, OneRun, headline
from probe.reading.report.part import (
    CALL_COLUMNS,
    ROW_COLUMNS,
    ROW_NUMBERS,
    TABLES,
    Part,
    rank_text,
)
from probe.reading.report.sources import Sources, readers_of
from probe.reading.report.told_search import ToldSearch, told

#: this many rows are kept as they are; above it, one rank of each group stands for the others
WHOLE = 300_000
_HARD = frozenset(
    kinds.VERDICTS.index(verdict) for verdict in ("differs", "shape", "one side", "argument")
)
_MOST = 200
_LINES = ("loss", "norm", "learning_rate", "global_norm")  # of the recorded steps
_PACKAGES = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
_LIBRARY = re.compile(r"^.*[/\\]lib[/\\]python3(?:\.\d+)?[/\\]")
_INSTALLED = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python3(?:\.\d+)?)[/\\]")
_LONG = 500


class Merged:
    """The columns of a whole report."""

    def __init__(self, parts: list[Part], everything: bool = False) -> None:
        self.texts = {
            table: Texts() for table in dict.fromkeys(TABLES.values())
        }  # the tables of texts
        self.notes: dict[int, Sentence] = {}  # call -> remark
        self.histograms: dict[int, list[int]] = {}  # row -> histogram
        #: for each part where its calls and rows are: step, rank, calls, rows, and the unit that stands for it
        self.units: list[dict[str, Any]] = []
        self.dropped = 0  # how many calls others stand for
        rows = sum(len(part.rows.get("place", ())) for part in parts)
        stands_for = [-1] * len(parts) if everything or rows <= WHOLE else groups(parts)
        columns: dict[str, list[Column]] = {
            name: [] for name in (*CALL_COLUMNS, *ROW_COLUMNS, *ROW_NUMBERS, "index")
        }
        first_call = first_row = 0
        for number, part in enumerate(parts):
            kept = self._add(part, columns, first_call, first_row, stands_for[number])
            self.units.append(
                {
                    "step": part.step,
                    "rank": part.rank,
                    "calls": [first_call, first_call + kept[0]],
                    "rows": [first_row, first_row + kept[1]],
                    "like": stands_for[number],
                    "error": part.error,
                }
            )
            first_call = first_call + kept[0]
            first_row = first_row + kept[1]
        self.calls = {
            name: joined(columns[name]) for name in (*CALL_COLUMNS, "index")
        }  # the columns of all calls
        self.rows = {
            name: joined(columns[name]) for name in (*ROW_COLUMNS, *ROW_NUMBERS)
        }  # the columns of all places

    def _add(
        self,
        part: Part,
        columns: dict[str, list[Column]],
        first_call: int,
        first_row: int,
        like: int,
    ) -> tuple[int, int]:
        """Add a part; return how many calls and rows of it were kept."""
        calls = part.calls
        rows = part.rows
        if not calls:
            return 0, 0
        places = list(range(len(calls["name"])))
        row_places = None
        if like >= 0:
            places, row_places = marked(part)
            self.dropped += len(calls["name"]) - len(places)
            calls = {
                name: array(column.typecode, [column[i] for i in places])
                for name, column in calls.items()
            }
            rows = {
                name: array(column.typecode, [column[i] for i in row_places])
                for name, column in rows.items()
            }
        numbers = {table: self.texts[table].numbers(texts) for table, texts in part.tables.items()}
        for name, column in {**calls, **rows}.items():
            if name in TABLES:
                table = numbers[TABLES[name]]
                columns[name].append(
                    array(column.typecode, [table[int(place)] for place in column])
                )
            else:
                columns[name].append(column)
        columns["index"].append(array("i", places))
        where = {place: first_call + at for at, place in enumerate(places)}
        self.notes.update(
            (where[place], note) for place, note in part.extras.notes.items() if place in where
        )
        rows_at = (
            range(len(rows["place"]))
            if row_places is None
            else {row: at for at, row in enumerate(row_places)}
        )
        for place, counts in part.extras.histograms.items():
            self.histograms[first_row + rows_at[place]] = counts
        return len(places), len(rows["place"])


def groups(parts: list[Part]) -> list[int]:
    """Return for each part the one that stands for it, -1 for those that stand for themselves.

    Ranks that make the same calls in a step are a group, and its first one is whole. If that is still too much, the
    first and the last step of each group are whole.
    """
    found = _groups(parts, [part.step for part in parts])
    rows = sum(len(part.rows.get("place", ())) for part, like in zip(parts, found) if like < 0)
    if rows <= WHOLE:
        return found
    steps = [part.step for part in parts]
    last = steps[-1] if steps else None
    return _groups(parts, [step == last and last != steps[0] for step in steps])


def _groups(parts: list[Part], keys: list[Any]) -> list[int]:
    first: dict[Any, int] = {}
    pairs = enumerate(zip(parts, keys))
    found = [
        first.setdefault((key, part.names_key or number), number) for number, (part, key) in pairs
    ]
    return [-1 if other == number else other for number, other in enumerate(found)]


def marked(part: Part) -> tuple[list[int], list[int]]:
    """Return the calls that are not as they should be, and their rows."""
    calls: list[int] = []
    rows: list[int] = []
    verdicts = part.rows["verdict"]
    start = 0
    for place, (state, count) in enumerate(zip(part.calls["state"], part.calls["rows"])):
        own = range(start, start + int(count))
        start += int(count)
        if (
            state != kinds.OK
            or place in part.extras.notes
            or any(verdicts[row] in _HARD for row in own)
        ):
            calls.append(place)
            rows += own
    return calls, rows


@dataclass
class Content:
    """The content of a report."""

    description: dict[
        str, Any
    ]  # all that is no column: the runs, the origins, the findings, the tables of texts
    merged: Merged  # the columns
    head: Headline  # the heaviest finding, and the exit status
    unread: list[Sentence]  # the parts of dumps that could not be read


class ContentMaker:
    """Makes the content of a report."""

    def __init__(self, sources: Sources, with_code: bool = True, everything: bool = False) -> None:
        self._sources = sources
        self._paths, self._parts, self._alone, self._rows, self._row_pairs = sources
        self._result = sources.compared()
        self._merged = Merged(self._parts, everything)
        self._code = Code(self._merged.texts["stacks"], with_code)
        self._with_code = with_code
        self._chinese: dict[str, str] = {}
        self._moved: Counter[int] = (
            Counter()
        )  # state -> by how many calls findings change its number
        self._names = {name: number for number, name in enumerate(self._merged.texts["names"])}
        self._find = {(unit["step"], str(unit["rank"])): unit for unit in self._merged.units}

    def content(self, answers: OneRun, search: ToldSearch | None = None) -> Content:
        """Return the content; ``answers`` has the findings in one run alone, ``search`` led to these runs."""
        health = [self._short(item) for item in answers.health]
        answers = answers._replace(health=health)
        result = self._result
        merged = self._merged
        readers = readers_of(self._sources, result, answers)
        origins = result.origins if result else readers.nan
        later = result.later if result else []
        trends = readers.trends
        self._mark(origins, readers.nan, answers.faults)
        head = headline(readers)
        curves = curves_of([side.ranks for side in self._rows], {item.name for item in trends})
        tables = {table: list(texts) for table, texts in merged.texts.items() if table != "stacks"}
        names = short_paths(*self._paths)
        parents = {cell: above for part in self._parts for cell, above in part.parents.items()}
        description = {
            "a": names[0],
            "b": names[1],
            "two": bool(self._paths[0]),
            "units": [{**unit, "error": self._said(unit["error"])} for unit in merged.units],
            "states": kinds.STATES,
            "verdicts": kinds.VERDICTS,
            "tables": tables,
            "frames": self._code.frames,
            "stacks": self._code.stacks,
            "parents": parents,
            "histograms": merged.histograms,
            "notes": {call: self._said(note) for call, note in merged.notes.items()},
            "origins": [self._origin(origin) for origin in origins[:_MOST]],
            "later": [self._origin(origin) for origin in later[:_MOST]],
            "health": [self._said(said) for said in readers.by_itself][:_MOST],
            "soft": list(
                dict.fromkeys(
                    self._said(item.said) for item in (harmless(result) if result else [])
                )
            )[:20],
            "series": self._series(),
            "trends": [self._fields(item) for item in trends[:_MOST]],
            **self._ranks(readers.ranks),
            "dropped": merged.dropped,
            "counts": self._counts(),
            "remarks": self._remarks(),
            "code": self._with_code,
            "headline": {"text": self._said(head.said), "tone": head.tone, "others": head.others},
            "gaps": [] if result else [self._said(gap) for gap in self._gaps(answers)],
            "rows": self._said(answers.rows),
            "search": told(search, self._said) if search is not None else None,
            "curves": curves.shown,
            "curves_left_out": curves.left_out,
            "chinese": self._chinese,
        }
        return Content(description, merged, head, list(readers.unread))

    def _gaps(self, answers: OneRun) -> list[Sentence]:
        """Return the parts that cannot be known: of one run, and of rows that one of two runs lacks."""
        lacks = self._row_pairs.lacks if self._row_pairs is not None else ()
        return [*lacks, *answers.gaps]

    def _clean(self, text: str) -> str:
        return without_paths(text, self._paths)

    def _said(self, said: Sentence | str) -> str:
        """Return a sentence in English, and keep its Chinese; a text of a broken file has none."""
        english = self._clean(str(said))
        if isinstance(said, Sentence) and said:
            self._chinese[english] = self._clean(said.text(CHINESE))
        return english

    def _short(self, item: HealthFinding) -> HealthFinding:
        """Return a finding whose file is as the report shows it."""
        return dataclasses.replace(item, file=self._code.file(item.file)) if item.file else item

    def _mark(
        self, origins: Sequence[Origin], nan: Sequence[Origin], faults: Iterable[HealthFinding]
    ) -> None:
        """Give calls the state of the finding that names them; "origin" stands at the first difference alone."""
        for item in faults:
            self._mark_call(item.name, item.step, [item.rank], kinds.FINDING)
        for origin in nan:
            self._mark_call(origin.name, origin.step, [origin.rank, *origin.ranks], kinds.NAN)
        for origin in origins[1:] if self._result else ():
            self._mark_call(
                origin.name, origin.step, [origin.rank, *origin.ranks], kinds.INDEPENDENT
            )
        for origin in origins[:1]:
            self._mark_call(origin.name, origin.step, [origin.rank, *origin.ranks], kinds.ORIGIN)

    def _mark_call(self, name: str, step: int | None, ranks: Iterable[Any], state: int) -> None:
        number = self._names.get(safe(name))
        states = self._merged.calls["state"]
        for rank in ranks:
            unit = self._find.get((step, str(rank)))
            calls = range(*unit["calls"]) if unit is not None else ()
            place = next(
                (place for place in calls if self._merged.calls["name"][place] == number), None
            )
            if place is not None:
                before = int(states[place])
                states[place] = max(before, state)
                self._moved[before] -= 1
                self._moved[int(states[place])] += 1

    def _origin(self, origin: Origin) -> dict[str, Any]:
        frame: Frame | None = origin.code.frame
        return {
            "kind": origin.kind,
            "name": safe(origin.name),
            "place": safe(origin.place),
            "cell": safe(origin.cell or ""),
            "step": origin.step,
            "rank": origin.rank,
            "ranks": origin.ranks,
            "sentence": self._said(origin.said),
            "code": self._code.place(frame) if frame else None,
            "rel": as_json(origin.rel_l2),
            "more": [safe(name) for name in origin.more],
        }

    def _series(self) -> dict[str, Any]:
        """Return loss, norm of the gradients, and numbers of updates in the recorded steps: side -> rank -> points."""
        shown: dict[str, dict[str, dict[str, list[Any]]]] = {
            key: {"a": {}, "b": {}} for key in _LINES
        }
        name = ""
        for part in self._parts:
            series = part.series
            name = name or next((call for call, _ in series.losses.values()), "")
            found = [("loss", side, value) for side, (_, value) in series.losses.items()]
            for side, norms in series.norms.items():
                found += (
                    [("norm", side, math.sqrt(sum(norm * norm for norm in norms.values())))]
                    if norms
                    else []
                )
            found += [
                (key, side, value)
                for side, numbers in series.updates.items()
                for key, value in numbers.items()
            ]
            for key, side, value in found:
                shown[key][side].setdefault(rank_text(part.rank), []).append(
                    [part.step, as_json(value)]
                )
        return {"loss_name": safe(name), **shown}

    def _fields(self, finding: TrendFinding | RankFinding) -> dict[str, Any]:
        """Return the fields of a finding; the page has its sentence as text."""
        fields = finding.to_dict()
        del fields["key"], fields["facts"]
        return {**fields, "name": safe(finding.name), "sentence": self._said(finding.said)}

    def _ranks(self, checks: RankChecks | None) -> dict[str, Any]:
        """Return the answer about the ranks: the findings, and a sentence about all of it."""
        if checks is None:
            return {"ranks": [], "ranks_said": "", "ranks_status": 0}
        said = say("ranks.none" if checks.status == 0 else "ranks.not_known", looked=checks.looked)
        if checks.findings:
            said = say("ranks.count", looked=checks.looked, count=len(checks.findings))
        found = [self._fields(item) for item in checks.all[:_MOST]]
        return {"ranks": found, "ranks_said": self._said(said), "ranks_status": checks.status}

    def _counts(self) -> dict[str, Any]:
        counts = Counter(
            int(state) for part in self._parts for state in part.calls.get("state", ())
        )
        counts.update(self._moved)
        states = {kinds.STATES[state]: count for state, count in counts.items() if count}
        result = self._result
        return {
            "states": states,
            "calls": sum(states.values()),
            "tensors": sum(
                1 for part in self._parts for kind in part.rows.get("type_b", ()) if kind >= 0
            ),
            "rows": sum(len(part.rows.get("place", ())) for part in self._parts),
            "verdicts": result.verdicts if result else {},
            "pairs": result.pairs if result else {},
            "only": [sum(unit.counts.only[side] for unit in result.units) for side in (0, 1)]
            if result
            else [0, 0],
        }

    def _remarks(self) -> list[str]:
        """Return remarks for the reader: how the runs differ, dumps that could not be read or compared."""
        sides = [(side, label) for side, labels in zip("AB", self._alone) for label in labels[:20]]
        found: list[Sentence | str] = [
            say("report.only_in", side=side, name=label) for side, label in sides
        ]
        for part in self._parts:
            if part.summary:
                found += [
                    say("compare.runs_differ", difference=line) for line in part.summary.header
                ]
                found += part.summary.notes
            if part.found:
                found += [say("report.overflow", name=name) for name in part.found.near[:3]]
            found += filter(None, (part.error, part.lost))
        return [self._said(line) for line in list(dict.fromkeys(found))[:30]]


class Code:
    """All frames of a report."""

    def __init__(self, stacks: Iterable[str], with_source: bool) -> None:
        self._with_source = with_source  # whether source lines and folders are kept
        self._frames: dict[tuple[Any, ...], int] = {}
        parsed = [[frame for frame in map(parse, json.loads(stack)) if frame] for stack in stacks]
        self._base = common_folder([frame.file for frames in parsed for frame in frames])
        #: the stacks of all calls, each a JSON list of frames
        known = self._frames
        self.stacks = [
            [known.setdefault(self.place(frame), len(known)) for frame in frames]
            for frames in parsed
        ]

    def place(self, frame: Frame) -> tuple[Any, ...]:
        """Return file, line, function and source of a frame, as the report shows them."""
        source = shorten(safe(frame.source), _LONG) if self._with_source else ""
        is_own = not _INSTALLED.search(frame.file)
        return self.file(frame.file), frame.line, safe(frame.function), source, int(is_own)

    def file(self, path: str) -> str:
        """Return the part of a path that the report shows."""
        if not self._with_source:
            return safe(re.split(r"[/\\]", path)[-1])
        short = _LIBRARY.sub("", _PACKAGES.sub("", path))
        if short == path and self._base and path.startswith(self._base):
            short = path[len(self._base) :].lstrip("/\\")
        return safe(short.lstrip("/"))

    @property
    def frames(self) -> list[tuple[Any, ...]]:
        """All frames: file, line, function, source, and whether it is the user's own."""
        return list(self._frames)


def common_folder(files: Sequence[str]) -> str:
    """Return the folder that all files of the user lie in.

    >>> common_folder(["/home/me/net/train.py", "/home/me/net/model/block.py", "/x/site-packages/a.py"])
    '/home/me/net'
    """
    own = sorted(
        {
            os.path.dirname(file)
            for file in files
            if os.path.isabs(file) and not _INSTALLED.search(file)
        }
    )
    return os.path.commonpath(own) if own else ""


def short_paths(a: str, b: str) -> tuple[str, str]:
    """Return the names of two runs without the folders above both.

    >>> short_paths("/data/me/golden", "/data/me/mine"), short_paths("/x/a/dump", "/x/b/dump"), short_paths("", "/x/y")
    (('golden', 'mine'), ('a/dump', 'b/dump'), ('', 'y'))
    """
    full = [os.path.abspath(path) if path else "" for path in (a, b)]
    known = [path for path in full if path]
    base = os.path.commonpath([os.path.dirname(path) for path in known])
    short = [os.path.relpath(path, base) if path else "" for path in full]
    return safe(short[0]), safe(short[1])


def without_paths(text: str, paths: Sequence[str]) -> str:
    """Return a remark in which no path of the machine is left.

    >>> without_paths("/data/run/step0/dump.json cannot be read: cut", ["/data/run"])
    'run/step0/dump.json cannot be read: cut'
    """
    forms = {form for path in paths if path for form in (path, os.path.abspath(path))}
    for form in sorted(forms, key=len, reverse=True):
        if len(form) > 1:
            text = text.replace(form, os.path.basename(form.rstrip("/")) or "dump")
    return safe(text)
