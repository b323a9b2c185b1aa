# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Follows the recipe of docs/automation.md on five planted faults, by answers in JSON alone.

    python -m tests.programs.automation [--keep DIR]

Each answer is held to ``probe --json-schema``. Exit status 1 if a cause is not the planted one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import jsonschema

from tests.programs.one_run.faults import FAULTS
from tests.programs.one_run.planted import record
from tests.programs.origins.planted import Recorder
from tests.support.pages import page
from tests.support.paths import ROOT, environment


class Probe:
    """The command line, as a program sees it: words in; status and JSON out."""

    def __init__(self):
        self.schemas = json.loads(self._run("--json-schema").stdout)
        self.calls = []

    def __call__(self, *words):
        """Return the exit status and the answer of a command, None where there is none."""
        done = self._run(*words, "--json")
        self.calls.append(f"probe {' '.join(map(str, words))} --json -> {done.returncode}")
        if not done.stdout:
            return done.returncode, None
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, self.schemas[words[0]])
        return done.returncode, answer

    @staticmethod
    def _run(*words):
        command = [sys.executable, "-m", "probe", *map(str, words)]
        return subprocess.run(
            command, check=False, cwd=ROOT, env=environment(), capture_output=True, text=True
        )


def recipe():
    """Return the function ``cause_of``, as it stands in docs/automation.md."""
    (block,) = [block for block in page("docs/automation.md").blocks if "def cause_of" in block]
    found = {}
    exec(block.partition("\n")[2].rpartition("```")[0], found)
    return found["cause_of"]


class Case(NamedTuple):
    """A planted fault.

    Attributes:
        name: its name in tests/programs/origins or tests/programs/one_run.
        kind: the training with a golden run, or "" for one run alone.
        command: the command that names the cause by itself.
        named: a regular expression for the call, the parameter or the Cell.
        source: one for the line of code; "" where the cause is no line.
    """

    name: str
    kind: str
    command: str
    named: str
    source: str = ""


CASES = (
    Case("scale", "gpt", "compare", r"Tensor\.__(mul|truediv)__.*Attention", r"scale|\*|/"),
    Case("learning rate", "gpt", "compare", r"^optimizer Cell\.optimizer"),
    Case("rank 1 reads the data of rank 0", "ranks", "compare", r"^data"),
    Case("sum of squares in float16", "", "nan", r"__mul__|sum|square", r"\*|sum|square"),
    Case("stop_gradient", "", "check", r"^gradient ends .*stop_gradient", r"stop_gradient"),
)


def recorded(cases, folder):
    """Record the trainings of cases; return for each the run, and the golden one where there is one."""
    recorder = Recorder(folder, "statistics", 0.0)
    for kind in dict.fromkeys(case.kind for case in cases):
        names = [case.name for case in cases if case.kind == kind]
        if kind:
            recorder.record(kind, names)
        for name in names if not kind else ():
            record(FAULTS[name].train, folder / name.replace(" ", "_"))
    return [
        [
            recorder.path(case.kind, case.name),
            *([recorder.path(case.kind, "golden")] if case.kind else []),
        ]
        for case in cases
    ]


def is_right(case, cause):
    """Return whether a cause is the planted fault: its call or parameter, and its line as it stands in the file."""
    words = [cause[key] for key in ("kind", "name", "place", "cell", "source")]
    if cause["reader"] != case.command or not re.search(
        case.named, " ".join(str(word) for word in words if word)
    ):
        return False
    if not case.source:
        return True
    line = Path(cause["file"]).read_text("utf-8").splitlines()[cause["line"] - 1]
    return line.strip() == cause["source"].strip() and bool(re.search(case.source, line))


def _told(cause):
    if cause is None:
        return "no cause"
    at = f"{cause['file']}:{cause['line']}" if cause["file"] else cause["name"]
    return f"{cause['sentence']} [{at}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", default="")
    parser.add_argument("--only", default="", help="names, with commas")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(given.keep or scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        only = set(filter(None, given.only.split(",")))
        chosen = [case for case in CASES if not only or case.name in only]
        right, cause_of = 0, recipe()
        for case, runs in zip(chosen, recorded(chosen, folder)):
            probe = Probe()
            cause = cause_of(probe, *runs)
            well = cause is not None and is_right(case, cause)
            right += well
            print(f"{'right' if well else 'WRONG'} {case.name}: {_told(cause)}")
            print(*[f"    {call}" for call in probe.calls], sep="\n", flush=True)
        print(f"{right} of {len(chosen)} causes found by the recipe")
        return int(right < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
