# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands on a Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import probe
from probe import UsageError
from probe.__main__ import main
from probe.reading.dumps import cluster as cluster_room
from probe.reading.dumps.work import Workers, run_units
from tests.reading.builders import two_runs
from tests.support.cluster import cluster

pytestmark = pytest.mark.medium

pytest.importorskip("distributed", reason="Dask (distributed) is not installed")


#: makes a process behave as one in which probe is not installed
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "probe":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
"""


def end_once(marker, number):
    """Kill the process that does this first; return the number afterwards."""
    if number == 3 and not os.path.exists(marker):
        Path(marker).write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def end_always(number):
    """Kill every process that does this."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster")) as (found, _):
        yield found


def test_the_workers_find_the_same_as_this_machine(tmp_path, address, capsys, monkeypatch):
    two_runs(tmp_path)
    monkeypatch.chdir(tmp_path)  # the workers work elsewhere
    commands = [
        ["compare", "a", "b"], ["compare", "a", "b", "--json", "-"], ["nan", "b"], ["nan", "b", "--json"],
        ["ranks", "b"], ["trend", "b"], ["trend", "b", "--csv"],
    ]  # fmt: skip
    for command in commands:
        here = main([*command]), capsys.readouterr()
        there = main([*command, "--scheduler", address]), capsys.readouterr()
        assert there == here, command
        assert here[1].out, command


def test_tables_and_pages_are_the_same(tmp_path, address, monkeypatch):
    a, b = two_runs(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, more in (("here", []), ("there", ["--scheduler", address])):
        main(["compare", a, b, "--csv", f"{name}.csv", "--jsonl", f"{name}.jsonl", *more])
        main(["report", a, b, "-o", f"{name}.html", *more])
    for end in ("csv", "jsonl", "html"):
        assert Path(f"here.{end}").read_bytes() == Path(f"there.{end}").read_bytes()
    assert len(Path("there.csv").read_text().splitlines()) == 1 + 10 * 5
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".probe")]


def test_the_python_functions_take_a_scheduler(tmp_path, address):
    a, b = two_runs(tmp_path)
    assert probe.compare(a, b, scheduler=address).first == probe.compare(a, b).first
    assert probe.first_nan(probe.open(b), scheduler=address) == probe.first_nan(probe.open(b))
    assert probe.check_ranks(probe.open(b), scheduler=address) == probe.check_ranks(probe.open(b))


def test_the_work_of_a_killed_worker_is_done_again(tmp_path, address):
    units = [(str(tmp_path / "marker"), number) for number in range(8)]
    assert list(run_units(end_once, units, Workers(scheduler=address))) == [
        number**2 for number in range(8)
    ]
    assert (tmp_path / "marker").exists()


def test_a_unit_that_kills_every_worker_ends_the_work(address):
    with pytest.raises(
        UsageError, match="workers ended again and again while they did the same dump"
    ):
        list(run_units(end_always, [(number,) for number in range(2)], Workers(scheduler=address)))


def test_workers_that_are_gone_end_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_room, "_GONE", 3)
    monkeypatch.setattr(cluster_room, "_LOOK", 1)
    with (
        cluster(tmp_path, workers=1, nanny=False) as (found, _),
        pytest.raises(UsageError, match=r"all workers are gone|ended again and again"),
    ):
        list(run_units(end_always, [(number,) for number in range(2)], Workers(scheduler=found)))


def test_a_folder_that_a_worker_does_not_see_is_named(tmp_path, address, capsys, monkeypatch):
    a, b = two_runs(tmp_path)
    run_a, run_b = probe.open(a), probe.open(b)
    for folder in Path(b).rglob("rank3"):
        folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(UsageError, match=r"the worker on .* does not see .*rank3"):
        probe.compare(run_a, run_b, scheduler=address)


def test_a_worker_without_probe_is_named(tmp_path):
    (tmp_path / "runs").mkdir()
    a, b = two_runs(tmp_path / "runs", 1)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDE)
    with (
        cluster(tmp_path, workers=1, environ={"PYTHONPATH": str(tmp_path / "hidden")}) as (
            found,
            _,
        ),
        pytest.raises(
            UsageError, match=r"probe is not installed for tcp://.*same version of pynative-probe"
        ),
    ):
        probe.compare(a, b, scheduler=found)


@pytest.mark.parametrize(
    "scheduler", ["tcp://127.0.0.1:1", "nonsense", "127.0.0.1", "tcp://", "ftp://127.0.0.1:1"]
)
def test_a_scheduler_that_is_not_there_is_a_clear_error(tmp_path, scheduler, capsys, monkeypatch):
    monkeypatch.setattr(cluster_room, "_REACH", 2)
    a, b = two_runs(tmp_path, 1)
    assert main(["compare", a, b, "--scheduler", scheduler]) == 2
    said = capsys.readouterr().err
    assert f"probe: --scheduler: '{scheduler}' cannot be reached" in said
    assert "Traceback" not in said


def test_a_scheduler_without_workers_is_a_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_room, "_WORKERS", 1)
    (tmp_path / "runs").mkdir()
    a, b = two_runs(tmp_path / "runs", 1)
    with (
        cluster(tmp_path, workers=0) as (found, _),
        pytest.raises(UsageError, match="has no worker"),
    ):
        probe.compare(a, b, scheduler=found)


def test_without_dask_the_message_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    a, b = two_runs(tmp_path, 1)
    with pytest.raises(UsageError, match=r"pip install '\.\[cluster\]'"):
        probe.compare(a, b, scheduler="tcp://127.0.0.1:8786")
