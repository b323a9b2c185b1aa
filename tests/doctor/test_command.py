# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command ``probe doctor``: its lines, its JSON, its exit status, and checks that crash or hang."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys

import mindspore as ms
import pytest

from probe.__main__ import main
from probe.doctor import calls, environment
from probe.doctor.bench import CHECKS, Bench
from probe.doctor.command import scrub
from probe.private_names import PRIVATE_PARTS, TESTED
from tests.support.pages import page
from tests.support.paths import ROOT, environment as variables

NAMES = [check.name for check in CHECKS]


def doctor(folder, *arguments, **further):
    """Run the command in a folder; return its exit status and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "probe", "doctor", *arguments],
        cwd=folder,
        env=variables(**further),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not done.stderr or done.returncode == 2, done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_every_check_has_a_line_and_nothing_personal_is_in_it(tmp_path):
    (tmp_path / "work").mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    status, text, _ = doctor(
        tmp_path / "work", "--folder", str(temporary), RANK_ID="1", RANK_SIZE="2"
    )
    assert status == 0, text
    _, *lines, last = text.splitlines()
    assert [re.split(r"  +", line)[1] for line in lines] == NAMES
    assert "watching changes nothing here: 0 of 126 tensors differ" in text
    assert re.fullmatch(r"1[0-3] ok(, [1-3] warning)?, in \d+ s", last)
    assert not [
        word
        for word in (str(tmp_path), str(ROOT), socket.gethostname(), sys.prefix)
        if word in text
    ]
    assert (list(temporary.iterdir()), list((tmp_path / "work").iterdir())) == ([], [])


CRASH_AND_HANG = """
import ctypes, threading
from probe.doctor import calls, environment, memory, training
from probe.doctor.bench import CheckResult
from probe.findings.system import foreign
memory.memory = lambda bench: ctypes.string_at(0)
calls.gradients = lambda bench: threading.Event().wait()
def fail(bench):
    raise ValueError("first line\\nsecond line")
memory.numbers = fail
left_out = lambda bench: CheckResult("ok", foreign("left out: it takes long"))
environment.two_processes = training.bits = training.time_per_call = left_out
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_a_check_that_crashes_or_hangs_takes_no_other_down(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(CRASH_AND_HANG)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    status, text, _ = doctor(tmp_path, "--json", "--limit", "15", PYTHONPATH=path)
    found = json.loads(text)
    assert status == found["status"] == 1
    assert (found["tool"], found["format"]) == ("probe doctor", 1)
    assert found["device"] == ms.get_context("device_target")
    rows = {row["name"]: row for row in found["checks"]}
    assert list(rows) == NAMES
    assert all(
        set(row) == {"name", "seconds", "device", "result", "fact", "details"}
        for row in rows.values()
    )
    failed = {
        name: row["fact"] for name, row in rows.items() if row["result"] not in ("ok", "warning")
    }
    crashed = failed.pop("memory")
    assert failed == {
        "gradients": "it did not end within 15 s",
        "numbers": "ValueError: first line",
    }
    assert re.fullmatch(
        r"its process was ended by SIGSEGV in string_at \(__init__.py, line \d+\)", crashed
    )


@pytest.mark.slow
def test_a_device_that_is_not_there_is_told_and_the_rest_is_not_run(tmp_path):
    status, text, _ = doctor(tmp_path, "--device", "GPU")
    assert status == 1
    lines = text.splitlines()
    assert lines[1].startswith("ok       versions")
    assert re.match(r"failed   device +\w+: .*GPU", lines[2])
    assert {line[:8] for line in lines[3:-1]} == {"not run "}
    assert lines[-1].startswith("1 ok, 1 failed, 11 not run, in ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--device", "ascent"],
            "'ascent' is not allowed. Allowed: CPU, GPU, Ascend. Did you mean Ascend?",
        ),
        (["--device", "x"], "'x' is not allowed. Allowed: CPU, GPU, Ascend."),
        (["--limit", "0"], "'0' is not allowed. Allowed: a number of seconds above 0."),
        (["dump"], "'dump' is one argument too many"),
    ],
)
def test_a_wrong_argument_ends_with_status_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(["doctor", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_without_any_folder_the_error_says_so(capsys, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: os.listdir("/nowhere"))
    assert main(["doctor"]) == 1
    assert (
        capsys.readouterr().err
        == "probe: no folder for temporary files can be written. Choose one with --folder.\n"
    )


def test_the_command_line_alone_imports_neither_numpy_nor_mindspore():
    program = "import sys, probe.__main__; print([name for name in ('numpy', 'mindspore') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], env=variables(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_tested_versions_are_those_of_the_package():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    python = re.search(r'requires-python = ">=([\d.]+),<([\d.]+)"', text).groups()
    packages = re.findall(r'"(numpy|ml_dtypes)>=([\d.]+),<([\d.]+)"', text)
    assert (
        f'"mindspore>={TESTED[0]}"' in text
    )  # without a limit: a new version says at start which parts are off
    expected = {
        **{name: (first, end) for name, first, end in packages},
        "python": python,
        "mindspore": TESTED,
    }
    assert {name.lower(): versions for name, versions in environment.TESTED.items()} == expected


def test_the_document_has_every_check_and_every_part():
    rows = [row[0].strip("`") for row in page("docs/doctor.md").rows]
    assert rows[rows.index("check") + 2 :][: len(NAMES)] == NAMES
    assert rows[rows.index("part") + 2 :] == [part.part for part in PRIVATE_PARTS]


@pytest.mark.parametrize(
    ("version", "is_tested"),
    [("2.7.1", False), ("2.7.2", True), ("2.10.0", True), ("2.11.0rc1", False)],
)
def test_versions_are_compared_as_numbers(version, is_tested):
    assert environment.is_between(version, *environment.TESTED["MindSpore"]) == is_tested


def test_the_version_of_cann_is_read_from_its_folder(tmp_path, monkeypatch):
    (tmp_path / "compiler").mkdir()
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert environment._cann() == "of unknown version"
    (tmp_path / "compiler" / "version.info").write_text("Version=8.5.0\ntimestamp=1\n")
    assert environment._cann() == "8.5.0"


def test_texts_lose_folders_and_the_host(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "alices-laptop")
    assert scrub("cannot open /home/alice/a.so on alices-laptop") == "cannot open …/a.so on <host>"
    assert scrub({"a": ["/tmp/x/y.so: 5", 3, None]}) == {"a": ["…/y.so: 5", 3, None]}
    assert scrub("see https://a.b/c/d and a/b") == "see https://a.b/c/d and a/b"


COUNTER = """
#include <stdio.h>
static int count;
const char *counted(void) {
  static char text[64];
  count += 7;
  snprintf(text, sizeof text, "{\\"launches\\": %d, \\"waits\\": 0}", count);
  return text;
}
"""


@pytest.mark.slow
def test_a_counter_of_the_machine_is_asked(tmp_path, monkeypatch):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "counter.c").write_text(COUNTER)
    library = tmp_path / "counter.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "counter.c"], check=True
    )
    monkeypatch.setenv(calls.COUNTERS, f"{library}:counted")
    finding = calls.launches(Bench("CPU", "", str(tmp_path)))
    assert finding.details["counter"] == {"launches": 0, "waits": 0}  # as many in both steps
    assert str(finding.fact).endswith(
        "; the counter of this machine has 0 more launches, 0 more waits"
    )
