# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The files for contributors name versions, tools and sections that exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
import yaml

from tests.programs.planted_faults import FAULTS
from tests.support.pages import page
from tests.support.paths import ROOT, make_targets
from tests.support.planting import module_path, replaced

PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
VERSIONS = (
    re.search(r'pairs=.*?"([^"]+)"', (ROOT / "tests/programs/versions.sh").read_text("utf-8"))
    .group(1)
    .split()
)


def read(name):
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_workflow_runs_every_supported_version():
    rows = read(".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["include"]
    assert [f"{row['python']}:{row['mindspore']}" for row in rows] == VERSIONS
    classifiers = re.findall(r"Python :: (3\.\d+)\"", PROJECT)
    assert {row["python"] for row in rows} == set(classifiers)
    assert f'"mindspore>={rows[0]["mindspore"]}"' in PROJECT


def test_the_readmes_name_the_supported_versions():
    oldest, newest = VERSIONS[0].split(":"), VERSIONS[-1].split(":")
    for name in ("README.md", "README.zh-CN.md"):
        text = page(name).text
        for version in (oldest[0], oldest[1], newest[0], newest[1].removesuffix(".0")):
            assert re.search(rf"(?<![\d.]){re.escape(version)}(?![\d])", text), (name, version)


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.name
)
def test_an_issue_template_has_a_name_and_a_purpose(path):
    _, header, body = path.read_text("utf-8").split("---\n", 2)
    assert set(yaml.safe_load(header)) == {"name", "about"}
    assert body.count("**") >= 4


def test_hooks_before_a_commit_are_local_and_name_files_that_exist():
    (repository,) = read(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert '"pre-commit>=' in PROJECT
    for hook in repository["hooks"]:
        command = hook["entry"].split()
        assert command[0] in (".venv/bin/ruff", ".venv/bin/python")
        assert all((ROOT / word).exists() for word in command if word.startswith("tests/"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_has_its_place_in_the_code(fault):
    code = module_path(ROOT / "probe", fault.place).read_text("utf-8")
    compile(replaced(code, fault.place, fault.code, fault.fault), "with_fault", "exec")
    assert (ROOT / "tests" / fault.room).exists()


def test_the_makefile_has_six_targets_and_all_have_a_line():
    assert make_targets("Makefile") == ["help", "demo", "check", "format", "test", "clean"]
    assert not {*make_targets("Makefile")} & {*make_targets("lab.mk")}
    for name in ("Makefile", "lab.mk"):
        text = (ROOT / name).read_text("utf-8")
        phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", text, re.MULTILINE).group(1)
        assert sorted(re.findall(r"[a-z0-9-]+", phony)) == sorted(make_targets(name))
        assert all(re.search(rf"^{it}:.*## \S", text, re.MULTILINE) for it in make_targets(name))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is missing")
@pytest.mark.parametrize(("target", "file"), [("help", "Makefile"), ("help-lab", "lab.mk")])
def test_make_help_lists_the_targets_of_a_file(target, file):
    command = ["make", "--no-print-directory", target]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    shown = [line.split()[0] for line in done.stdout.splitlines() if "make help-lab" not in line]
    assert shown == make_targets(file)
    assert ("make help-lab" in done.stdout) == (target == "help")


def test_every_target_of_ci_exists():
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    words = " ".join(re.findall(r"^make ([^&\n]+)", text, re.MULTILINE)).split()
    named = {word for word in words if not word.startswith("-")}
    assert "test" in named
    assert named <= {*make_targets("Makefile"), *make_targets("lab.mk"), ".venv/ready"}


def test_the_changelog_keeps_its_form():
    headings = page("CHANGELOG.md").headings
    assert headings[:2] == [(1, "Changelog"), (2, "Unreleased")]
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {text for level, text in headings if level == 3} <= kinds
    for level, text in headings[2:]:
        assert level == 3 or re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", text)


def test_contributing_shows_how_to_add_each_kind_of_thing():
    found = {
        text.removeprefix("… ")
        for _, text in page("CONTRIBUTING.md").headings
        if text.startswith("… ")
    }
    assert found == {
        "a setting",
        "a statistic",
        "a task",
        "an API",
        "a backend",
        "a sentence",
        "a rule on series",
        "an origin rule of compare",
        "a command, or an option",
        "a check of `probe doctor`",
    }
