# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The fixture of nearly all tests: debuggers that are closed after the test, and must not have failed.

``--device Ascend`` runs the tests on the simulated CANN of tests/ascend.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

# OpenMP reads it when MindSpore is loaded. Its threads spin while they wait: beside other work a small training took
# up to twenty times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.update({"LC_ALL": "C.UTF-8"})  # answers are in the language of the locale
# A rank that asks the scheduler too early asks again after 3 to 5 seconds, which is half of a small job of msrun.
os.environ.setdefault("MS_RETRY_INTERVAL_LOWER", "1")
os.environ.setdefault("MS_RETRY_INTERVAL_UPPER", "2")

import mindspore as ms
import pytest

from tests.support.dumps import Debug
from tests.support.paths import ROOT

#: tests that do not run on the simulated Ascend, each with its reason
CPU_ONLY = ROOT / "tests" / "ascend" / "cpu_only.txt"
#: the files that take longest come first, so that no process of pytest-xdist is left alone with one of them
LONGEST = (
    "test_equality.py search/test_programs.py test_ranks.py reading/report/test_browser.py whitelist/test_whitelist.py "
    "capture/kernel/test_trainings.py monitor/test_monitor.py launch/test_programs.py capture/graph/test_ranks.py "
    "monitor/test_troubles.py reading/compare/layouts/test_real_ranks.py capture/graph/test_own_loop.py test_docs.py "
    "capture/test_cells.py reading/report/test_cost.py"
).split()


def pytest_addoption(parser):
    parser.addoption(
        "--device", choices=["CPU", "Ascend"], default="CPU", help="where the tests' trainings run"
    )


def _take_a_share_of_the_processors():
    """Keep this process of pytest-xdist, and the programs it starts, on processors that the others leave alone.

    MindSpore's threads hand each kernel over, and spin while they wait. Two trainings on the same two processors took
    four times as long as on one processor each. ``tests/programs/equality.py`` takes all processors.
    """
    name, count = (
        os.environ.get("PYTEST_XDIST_WORKER", ""),
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    )
    if not name.startswith("gw") or not hasattr(os, "sched_setaffinity"):  # one process; macOS
        return
    processors, number = sorted(os.sched_getaffinity(0)), int(name[2:])
    os.sched_setaffinity(0, processors[number::count] or {processors[number % len(processors)]})


def pytest_configure(config):
    _take_a_share_of_the_processors()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # so a shell starts what stands before its `&`; programs of tests would ignore interrupts too
        signal.signal(signal.SIGINT, signal.default_int_handler)
    device = config.getoption("--device")
    if device == "Ascend":
        _start_on_simulator(config)
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device(device)


def _start_on_simulator(config):
    """Start pytest again where it does not run on the simulator: the variables must stand before a process starts."""
    from tests.ascend import simulator

    if simulator.is_running():
        return
    environment = simulator.environment(simulator.build())
    config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
    command = [sys.executable, "-m", "pytest", *map(str, config.invocation_params.args)]
    os.execve(sys.executable, command, environment)


def pytest_collection_modifyitems(config, items):
    order = {ROOT / "tests" / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))
    on_ascend = config.getoption("--device") == "Ascend"
    reasons = (
        dict(line.split("\t") for line in CPU_ONLY.read_text().splitlines()) if on_ascend else {}
    )
    for item in items:
        ends = (
            "\n",
            "-",
            "[",
            "::",
        )  # all of the name, to the first part of the parameters, the test, the file
        reason = next(
            filter(None, (reasons.get(item.nodeid.partition(end)[0]) for end in ends)), ""
        )
        if item.get_closest_marker("ascend") and not on_ascend:
            reason = "needs --device Ascend (make ascend)"
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish():
    """Leave MindSpore and the collected tests out of later garbage collections: they took a fifth of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _objects_of_earlier_files():
    """Leave what a file of tests has left behind out of later garbage collections too, and out of ``living``."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _gradients_that_an_error_has_ended():
    """Let MindSpore forget a gradient whose function raised outside of Cells: else the next is one of second order.

    LayerNorm has no such gradient: "For LayerNormGrad, the index 7 is out of range".
    """
    from probe.executor import pynative_executor

    yield
    pynative_executor().clear_res()


@pytest.fixture(autouse=True)
def _variables_of_the_environment():
    """Take out what a test has changed: seed_all sets variables, and other tests start programs with them."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    before.pop("PYTEST_CURRENT_TEST", None)
    os.environ.update(before)


@pytest.fixture
def debug(tmp_path):
    from probe import PrecisionDebugger

    yield Debug(tmp_path)
    session = PrecisionDebugger._living and PrecisionDebugger._living()
    if session is not None:
        session.close()
        errors = list(tmp_path.rglob("dump_error_info.log"))
        assert not errors, errors[0].read_text()
