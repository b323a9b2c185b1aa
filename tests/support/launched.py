# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs of tests/launch/programs: bare, with the lines of a user, and under ``probe run``.

A line that begins with ``#| `` is of the user who records the program: it is a comment to all others.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from tests.support import msrun, processes
from tests.support.paths import ROOT, environment

PROGRAMS = ROOT / "tests" / "launch" / "programs"
RUN = ("-m", "probe", "run")


def start(folder, *words, variables=None, **options):
    """Run a command of Python in a folder; return what ``subprocess.run`` does."""
    command = [sys.executable, *map(str, words)]
    return processes.run(
        command,
        cwd=folder,
        env={**environment(), **(variables or {})},
        capture_output=True,
        text=True,
        **options,
    )


def own(text):
    """Return the lines of a program's output that are its own, without MindSpore's log and the last line of probe."""
    return [
        line
        for line in text.splitlines()
        if not re.match(r"\[(WARNING|ERROR|INFO|CRITICAL)\]|probe: |nothing was recorded: ", line)
    ]


def place(folder, *, recorded):
    """Copy the programs; ``recorded`` makes the user's lines lines of the program."""
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in folder.rglob("*.py"):
        if recorded:
            path.write_text(
                re.sub(r"^( *)#\| ", r"\1", path.read_text("utf-8"), flags=re.MULTILINE), "utf-8"
            )
    return folder


def dump(folder):
    """Return each document of a dump by its path, without the folder of the program in its stacks."""
    found = {}
    for path in sorted(Path(folder, "dump").rglob("*.json")):
        if path.name == "run.json":  # it tells the command line
            continue
        text = path.read_text("utf-8").replace(str(folder), "").replace("#| ", "")
        document = json.loads(text)
        if path.name == "stack.json":  # without the frames that start a program
            for item in document.values():
                item[1] = [
                    line for line in item[1] if not re.match("File .*(fork_server.py|runpy)", line)
                ]
        found[path.relative_to(folder).as_posix()] = document
    return found


def circumstances(folder):
    """Return model, parameters and lines of each snapshot of a dump by its folder."""
    found = {}
    for path in sorted(Path(folder, "dump").rglob("run.json")):
        document = json.loads(path.read_text("utf-8"))
        kept = {key: document[key] for key in ("first_step", "cells", "cell_values", "parameters")}
        lines = path.with_name("run.jsonl").read_text("utf-8").splitlines()
        found[path.parent.relative_to(folder).as_posix()] = (kept, lines)
    return found


def differences(expected, found):
    """Return in words how two dumps differ."""
    told = [f"{path}: only one dump has it" for path in sorted(expected.keys() ^ found.keys())]
    for path in expected.keys() & found.keys():
        a, b = expected[path], found[path]
        if path.endswith("dump.json"):
            a, b = a["data"], b["data"]
            told += [f"{path}: {name} is missing" for name in a if name not in b]
            told += [f"{path}: {name} is too much" for name in b if name not in a]
            told += [f"{path}: the order differs"] * (a.keys() == b.keys() and list(a) != list(b))
            told += [
                f"{path}: {name} differs"
                for name in a
                if name in b and repr(a[name]) != repr(b[name])
            ]
        elif repr(a) != repr(b):
            told.append(f"{path}: differs")
    return told


def check(words, folder, options=()):
    """Run a program bare, with the user's lines, and under ``probe run``; return the dump, which is the same twice."""
    plain, lines, run = (
        place(folder / name, recorded=name == "lines") for name in ("plain", "lines", "run")
    )
    done = [start(plain, *words), start(lines, *words)]
    done.append(start(run, *RUN, "--level", "mix", "--dump-path", "dump", *options, *words))
    for one in done:
        assert one.returncode == 0, one.stderr
    bare, _, launched = (own(one.stdout) for one in done)
    assert launched == bare
    expected, found = dump(lines), dump(run)
    assert differences(expected, found) == []
    assert circumstances(run) == circumstances(lines)
    return found


def under_msrun(folder, *words):
    """Run a program on two ranks."""
    job = msrun.run(2, folder, *words)
    assert job.status == 0, job.words()
