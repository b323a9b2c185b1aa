# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands ``probe try``, ``probe bisect`` and ``probe drill``: options, then a program as Python is given it."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from probe.errors import ProbeError, UsageError
from probe.findings.sentence import NOTHING, say
from probe.intervention import SHORT
from probe.intervention.bisection import CLOSENESS, add_bisect, agreement, golden_losses
from probe.intervention.change import KINDS, Change
from probe.intervention.drill import add_drill
from probe.intervention.runs import Runs, table
from probe.launch.command import count_of_options
from probe.options import OneLineParser
from probe.reading.commands.arguments import add_shared


def main(words: Sequence[str]) -> int:
    """Run a command, and return its exit status: 0, 1, or 2 for wrong use."""
    name = words[0]
    parser = OneLineParser(
        prog=f"probe {name}", usage=f"probe {name} [options] (FILE | -m MODULE) [arguments of the program]",
        description=f"THIS CHANGES THE TRAINING. {SHORT[name]}: see docs/intervention.md.", allow_abbrev=False,
    )  # fmt: skip
    run = _COMMANDS[name](parser)
    add = parser.add_argument
    add("-o", "--output", default=f"probe_{name}", metavar="FOLDER", help="where runs are kept, and taken up again")
    add("--steps", type=int, default=0, metavar="N", help="cut each run after so many steps")
    add("--ranks", type=int, default=0, metavar="N", help="start so many ranks with msrun")
    add("--step-at", choices=("optimizer", "model"), default="optimizer", help="as of probe run")
    add("--as-msprobe", action="store_true", help="as of probe run")
    add("--json", metavar="FILE", help="write the answer as JSON (- for stdout)")
    add_shared(parser, "language")
    count = count_of_options(words[1:], parser) + 1
    given, rest, module = parser.parse_args(words[1:count]), list(words[count:]), ""
    if rest and rest[0].startswith("-m"):
        module = rest.pop(0)[2:] or (rest.pop(0) if rest else "")
    path = rest.pop(0) if rest and not module else ""
    if not path and not module:
        parser.error("a program is missing: a file, or -m MODULE")
    options = {"at_model": given.step_at == "model", "as_msprobe": given.as_msprobe}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the process of the run ends too
    try:
        answer, status, text = run(given, Runs((path, module, rest), given.output, given.steps, given.ranks, options))
        as_json = json.dumps(_plain(answer), indent=1)
        print(as_json if given.json == "-" else text)
        if given.json not in (None, "-"):
            Path(given.json).write_text(as_json, encoding="utf-8")
        return status
    except ProbeError as error:
        print(f"probe: {error}", file=sys.stderr)
    except OSError as error:
        print(f"probe: {error.filename or 'the output'} cannot be written: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 2


def _plain(value: Any) -> Any:
    """Return an answer as JSON has it, which has no NaN/Inf."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


#: the answer, the exit status, the text
Answer = tuple[dict[str, Any], int, str]


def _try(parser: argparse.ArgumentParser) -> Callable[[argparse.Namespace, Runs], Answer]:
    add = parser.add_argument
    add("--float32", action="append", default=[], metavar="CELL", help="a Cell or call that computes in float32")
    add("--from", nargs=2, action="append", default=[], dest="put_in", metavar=("GOLDEN", "CALL"),
        help="a call whose output becomes that of a golden dump with arrays")  # fmt: skip
    add("--cpu", action="append", default=[], metavar="CALL", help="a call that is computed on the host")
    add("--formula", action="append", default=[], metavar="CALL", help="a call that its formula of replay computes")
    add("--skip", action="append", default=[], metavar="CELL", help="a Cell that gives back its input")
    add("--seed", type=int, help="in place of each seed of the program")
    add("--within", type=float, default=CLOSENESS, help="the part of a golden loss by which another one may differ")

    def run(given: argparse.Namespace, runs: Runs) -> Answer:
        goldens = {golden for golden, _ in given.put_in}
        named: dict[str, Any] = {name: tuple(getattr(given, name)) for name in KINDS}
        change = Change(**named, golden="".join(goldens), put_in=tuple(call for _, call in given.put_in),
                        seed=given.seed)  # fmt: skip
        if not change.sentence:
            parser.error("a change is missing: --float32, --from, --cpu, --formula, --skip or --seed")
        if len(goldens) > 1:
            parser.error("--from: only one golden dump is allowed")
        golden = golden_losses(change.golden) if change.golden else {}
        unchanged = runs.run()
        changed = runs.run(runs.calls.resolve(change))
        print(say("try.changed", change=change.sentence).text(given.lang), file=sys.stderr)
        if changed.status:
            raise UsageError(f"the changed run has failed: {changed.why} (see {changed.folder}/log.txt)")
        answer = {"change": str(change.sentence), "log": changed.folder, "golden": golden}
        columns = {"unchanged": unchanged.losses, "changed": changed.losses, **({"golden": golden} if golden else {})}
        agreed = agreement(changed.losses, golden, given.within)
        said = say("try.differs", within=given.within) if golden else NOTHING
        if agreed is not None:
            said = say("try.agrees", step=agreed, within=given.within)
        text = f"{table(columns)}\n{said.text(given.lang)}".rstrip()
        return {**answer, **columns, "agrees_from": agreed}, 0, text

    return run


_COMMANDS: dict[str, Callable[[argparse.ArgumentParser], Callable[[argparse.Namespace, Runs], Answer]]] = {
    "try": _try,
    "bisect": add_bisect,
    "drill": add_drill,
}
