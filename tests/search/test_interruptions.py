# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe find`` after a kill, on a full disk, beside another search: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.search.full_disk import is_full
from probe.search.ledger import Ledger, Result
from probe.search.one_search import only_search
from tests.search.programs import RANKS, training
from tests.search.running import find, outcomes
from tests.support.paths import environment

#: the line of a program that is killed, under a condition
KILLED = "if {when}: import os; open('{mark}', 'w'); os.kill(os.getpid(), 9)"
#: the lines of a program whose second run fills its disk
FILLING = """
import os
with open("{count}", "a+") as file:
    file.write("x")
    file.seek(0)
    runs = len(file.read())
if runs == 2:
    left = os.statvfs(".")
    with open("large.bin", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize)
"""


def killed(folder, when):
    """Return a training that is killed in its third step."""
    line = KILLED.format(when=when, mark=folder / "mark")
    return training(last=f"if step == 2:\n        {line}")


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_that_is_killed_once_is_made_again(tmp_path):
    when = f"not __import__('os').path.exists('{tmp_path / 'mark'}')"
    text = killed(tmp_path, when)
    _, lines = find(tmp_path, "mine.py", mine=text)
    assert (tmp_path / "mark").exists()
    assert outcomes(lines)["watch"] == "quiet"
    assert lines[-1]["answer"] == "nothing"


@pytest.mark.slow
def test_a_program_that_is_killed_each_time_has_this_symptom(tmp_path):
    done, lines = find(tmp_path, "mine.py", mine=killed(tmp_path, "True"))
    assert (done.returncode, outcomes(lines)["watch"]) == (1, "fails")
    assert lines[-1]["symptom"]["facts"]["said"]["key"] == "find.killed"


@pytest.mark.slow
def test_an_interrupted_search_says_how_it_goes_on(tmp_path):
    mark = tmp_path / "mark"
    text = training(last=f"open('{mark}', 'w')").replace("range(4)", "range(100000)")
    (tmp_path / "mine.py").write_text(text)
    words = [sys.executable, "-m", "probe", "find", "--minutes", "7", "mine.py", "--lr", "3"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not mark.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    told = "interrupted. The same command goes on: probe find --minutes 7 mine.py --lr 3"
    assert told in errors.decode()


@pytest.fixture
def disk(tmp_path):
    """Return a folder on a small disk."""
    path = tmp_path / "disk"
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", str(path)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_the_search_and_the_same_command_goes_on(tmp_path, disk):
    text = FILLING.format(count=tmp_path / "count") + training("x = ops.log(x)")
    done, lines = find(disk, "mine.py", mine=text)
    assert done.returncode == 2
    assert "is full" in done.stderr
    assert [line["experiment"] for line in lines] == ["watch"]
    (state,) = disk.glob("probe_find/*/state.json")
    assert [row["name"] for row in json.loads(state.read_text())] == ["watch"]
    done, lines = find(disk, "mine.py")
    assert [line["was_kept"] for line in lines[:2]] == [True, False]
    assert lines[-1]["cause"]["source"] == "x = ops.log(x)"


@pytest.mark.parametrize(
    ("text", "is_refusal"),
    [
        ("files\nOSError: [Errno 28] No space left on device", True),
        ("files\nOSError: [Errno 27] File too large", True),
        ("the gradient\nValueError: [Errno 2]", False),
    ],
)
def test_a_dump_that_a_disk_has_refused_is_not_used(tmp_path, text, is_refusal):
    (tmp_path / "dump" / "step0").mkdir(parents=True)
    assert not is_full(str(tmp_path))
    (tmp_path / "dump" / "step0" / "dump_error_info.log").write_text(text)
    assert is_full(str(tmp_path)) is is_refusal


def test_a_result_that_cannot_be_kept_is_no_result(tmp_path):
    (tmp_path / "file").write_text("")
    ledger = Ledger(str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot be written"):
        ledger.add(Result("watch", "quiet", say("find.no_symptom")))
    assert not ledger.results


def test_two_searches_never_work_in_one_folder(tmp_path):
    with (
        only_search(str(tmp_path)),
        pytest.raises(UsageError, match="another search works in"),
        only_search(str(tmp_path), patience=0.0),
    ):
        pass
    with only_search(str(tmp_path), patience=0.0) as held:
        assert held > 0


def is_there(pid):
    """Return whether a process runs; one that has ended, and waits for its parent, does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.thorough
@pytest.mark.xdist_group("ranks")
def test_all_ranks_end_with_a_search_that_is_killed(tmp_path):
    text = (
        RANKS
        + f"\n    open(f'{tmp_path}/{{get_rank()}}', 'w').write(str(__import__('os').getpid()))"
    )
    (tmp_path / "mine.py").write_text(text.replace("range(4)", "range(100000)"))
    words = [sys.executable, "-m", "probe", "find", "--ranks", "2", "--json", "mine.py"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    )
    places = [tmp_path / "0", tmp_path / "1"]
    while not all(place.exists() and place.read_text() for place in places):
        assert process.poll() is None
        time.sleep(0.01)
    pids = [int(place.read_text()) for place in places]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    end = time.monotonic() + 300
    while any(map(is_there, pids)):
        assert time.monotonic() < end
        time.sleep(0.01)
