# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A command whose reader ends first, as ``head -1``, has the exit status that it has without a pipe."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.reading.lacking import LACKS, healthy, rows

COMMANDS = {
    "show": ["show", "RUN"], "show csv": ["show", "BROKEN", "--csv"], "check": ["check", "RUN", "--jobs", "1"],
    "check2": ["check", "RUN", "GOLDEN"], "compare": ["compare", "GOLDEN", "RUN", "--jobs", "1"],
    "report": ["report", "RUN", "-o", "page.html", "--jobs", "1"], "nan": ["nan", "RUN", "--jobs", "1"],
    "ranks": ["ranks", "RUN", "--jobs", "1"], "trend": ["trend", "RUN", "--jobs", "1"], "watch": ["watch", "ROWS"],
    "recover": ["recover", "RUN", "--json"],
    "replay": ["replay", "RUN", "Functional.matmul", "--jobs", "1"], "help": ["compare", "--help"],
    "schema": ["--json-schema"], "version": ["--version"],
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Write a whole run, one that differs and lacks numbers, and rows of a monitor."""
    place = tmp_path_factory.mktemp("pipe")
    found = {
        "GOLDEN": healthy(place / "golden"),
        "RUN": healthy(place / "run"),
        "ROWS": place / "rows",
    }
    found["BROKEN"] = healthy(place / "broken")
    LACKS["half of one dump.json"](found["BROKEN"])
    LACKS["numbers of one rank"](found["RUN"])
    found["ROWS"].mkdir()
    rows(3)(found["ROWS"])
    return {name: str(path) for name, path in found.items()}


def status_of(words, folder, stdout):
    done = subprocess.run(
        [sys.executable, "-m", "probe", *words],
        check=False,
        stdout=stdout,
        stderr=subprocess.PIPE,
        cwd=folder,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_cut_pipe_changes_no_status(folders, tmp_path, name):
    words = [folders.get(word, word) for word in COMMANDS[name]]
    whole, told = status_of(words, tmp_path, subprocess.DEVNULL)
    assert whole in (0, 1, 2)
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert status_of(words, tmp_path, writer) == (whole, told)
    finally:
        os.close(writer)


def test_the_three_statuses_are_among_them(folders, tmp_path):
    found = set()
    for words in (["nan", "GOLDEN"], ["show", "BROKEN"], ["nan", "RUN"]):
        given = [folders.get(word, word) for word in words]
        found.add(status_of(given, tmp_path, subprocess.DEVNULL)[0])
    assert found == {0, 1, 2}
