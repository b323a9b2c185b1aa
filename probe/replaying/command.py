# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command ``probe replay``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, say
from probe.findings.system import reason_of
from probe.reading.commands.arguments import add_commands, names
from probe.reading.dumps.tables import create

if TYPE_CHECKING:
    from probe.replaying.replay import Replays

_COLUMNS = (
    "step", "rank", "call", "place", "verdict", "off", "here", "roundings", "roundings_here", "element", "golden",
    "note",
)  # fmt: skip


def add_replay(commands: Any, language: str) -> None:
    """Add ``probe replay``."""
    add_commands(commands, {"replay": run_replay}, language)


def run_replay(given: argparse.Namespace) -> int:
    """Run ``probe replay``."""
    from probe.replaying.replay import choose, known_dtype, replay

    is_gradients = given.gradients is not None
    given.call = given.call or given.gradients
    asked = names(given)
    if (bool(given.call) == given.all) if not any(asked) else bool(given.call):
        raise UsageError(say("error.replay_needs_call"))
    if given.csv == "-" and given.json == "-":
        raise UsageError(say("error.two_outputs"))
    if not given.limit > 0:
        raise UsageError(say("error.replay_bad_limit", value=given.limit))
    if is_gradients and (given.script or given.dtype or given.device):
        raise UsageError(say("error.replay_beside_gradients"))
    if given.repeat and (given.repeat < 2 or given.script or is_gradients):
        raise UsageError(say("error.replay_bad_repeat"))
    if given.script:
        from probe.replaying.script import write_script

        if given.all:
            raise UsageError(say("error.replay_one_call"))
        call = next(choose(given.path, given.call, given.step, given.rank, asked))
        for path in write_script(call, given.script, known_dtype(given.dtype)):
            _tell_written(path, given.lang)
        return 0
    calls = replay(
        given.path,
        given.call or None,
        dtype=given.dtype,
        device=given.device,
        jobs=max(given.jobs, 0),
        step=given.step,
        rank=given.rank,
        limit=given.limit,
        gradients=is_gradients,
        repeat=given.repeat,
        names=asked,
        lang=given.lang,
    )
    if given.json == "-":
        json.dump([call.to_dict() for call in calls], sys.stdout, indent=1)
    elif given.csv != "-":
        print(calls.text(given.lang))
    write_files(calls, given.csv, given.json if given.json != "-" else None, given.lang)
    return calls.status


def write_files(
    calls: Replays, csv: str | None, as_json: str | None, language: str = ENGLISH
) -> None:
    """Write the verdicts into a table, with notes in this language, and as JSON, or raise UsageError."""
    from probe.reading.dumps.tables import table_file, write_csv

    try:
        if csv:
            with table_file(csv) as file:
                write_csv(file, _COLUMNS, rows(calls, language))
        if as_json:
            with create(as_json) as file:
                json.dump([call.to_dict() for call in calls], file, indent=1)
    except OSError as error:
        raise UsageError(say("error.file_unwritten", reason=reason_of(error))) from error
    for path in filter(None, (csv, as_json)):
        if path != "-":
            _tell_written(path, language)


def _tell_written(path: str, language: str) -> None:
    print(say("replay.written", path=path).text(language), file=sys.stderr)


def rows(calls: Replays, language: str = ENGLISH) -> list[tuple[Any, ...]]:
    """Return a row for each output, and one for each call that is not replayable."""
    found: list[tuple[Any, ...]] = []
    for call in calls:
        head = call.step, call.rank, call.name
        for item in call.outputs:
            numbers = item.off, item.here, item.roundings, item.roundings_here
            element = ",".join(map(str, item.element))
            found.append(
                (
                    *head,
                    item.place,
                    item.verdict,
                    *numbers,
                    element,
                    call.golden,
                    item.said.text(language),
                )
            )
        if not call.outputs:
            found.append(
                (*head, "", call.verdict, None, None, None, None, "", "", call.said.text(language))
            )
    return found
