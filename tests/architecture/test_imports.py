# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The import rules of pyproject.toml: an import upwards and an import cycle break them."""

from __future__ import annotations

import re
import shutil
import sys

import pytest

from tests.support import processes
from tests.support.paths import ROOT

pytestmark = pytest.mark.medium

pytest.importorskip("importlinter", reason="import-linter is not installed: it needs Python 3.11")
CHECK = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@pytest.fixture
def copy(tmp_path):
    """A copy of probe/ and its rules."""
    shutil.copytree(
        ROOT / "probe", tmp_path / "probe", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def check(folder):
    """Return the exit code of the check, and its text with single spaces."""
    command = [sys.executable, "-c", CHECK, "--no-cache", "--no-logo"]
    done = processes.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=100
    )
    return done.returncode, re.sub(r"\s+", " ", done.stdout)


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        (
            "errors.py",
            "from probe.session.session import Session",
            "probe.errors -> probe.session.session",
        ),
        (
            "store/file_names.py",
            "def late():\n    import probe.recording.call",
            "probe.store.file_names -> probe.recording.call",
        ),
        (
            "naming.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from probe.measure import describe",
            "probe.naming -> probe.measure.describe",
        ),
        (
            "reading/dumps/load.py",
            "import mindspore",
            "probe.reading is not allowed to import mindspore",
        ),
        (
            "store/arrays.py",
            "from probe.config import settings",
            "probe.store.arrays -> probe.config.settings",
        ),
        (
            "reading/dumps/load.py",
            "import probe.replaying.judging",
            "probe.reading.dumps.load -> probe.replaying.judging",
        ),
        (
            "capture/patches.py",
            "import probe.capture.autograd.nodes",
            "probe.capture.patches -> probe.capture.autograd.nodes",
        ),
    ],
)
def test_an_import_upwards_is_found(copy, module, line, broken):
    assert broken not in check(copy)[1]
    with open(copy / "probe" / module, "a") as file:
        file.write(f"\n\n{line}\n")
    code, said = check(copy)
    assert code == 1
    assert broken in said


@pytest.fixture
def empty(tmp_path):
    """The modules of probe/ without their text, and the rules."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path in (ROOT / "probe").rglob("*.py"):
        module = tmp_path / path.relative_to(ROOT)
        module.parent.mkdir(parents=True, exist_ok=True)
        module.touch()
    return tmp_path


def test_modules_without_imports_keep_all_rules(empty):
    assert check(empty)[0] == 0


@pytest.mark.parametrize(
    ("first", "second", "package"),
    [
        ("config/settings.py", "config/validators.py", "probe.config"),
        ("store/journal.py", "store/documents.py", "probe.store"),
        ("config/settings.py", "process/rank.py", "probe"),
    ],
)
def test_an_import_cycle_is_found(empty, first, second, package):
    for importer, imported in ((first, second), (second, first)):
        name = imported.removesuffix(".py").replace("/", ".")
        (empty / "probe" / importer).write_text(f"def late():\n    import probe.{name}\n")
    code, said = check(empty)
    assert code == 1
    assert f"No cycles are allowed in {package}." in said


def test_a_module_without_a_floor_is_found(empty):
    (empty / "probe" / "extra.py").touch()
    code, said = check(empty)
    assert code == 1
    assert "- probe.extra" in said
