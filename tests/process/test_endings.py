# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How a process may end, and what is readable then."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support import processes
from tests.support.paths import ROOT, program
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: how many children are killed; `make test-force` kills more
KILLS = int(os.environ.get("PROBE_KILLS", "25"))

#: the files of the first step
FILES = ["construct.json", "dump.json", "run.json", "run.jsonl", "stack.json"]


@pytest.mark.parametrize("kills", thorough_but([KILLS // 8], [KILLS // 8, KILLS]))
@pytest.mark.parametrize("journal", ["batch", "each"])
def test_sigkill_loses_no_call_that_the_journal_promises(journal, kills, capsys):
    command = program("kills", "--kills", kills, "--journal", journal)
    done = processes.run(
        command, capture_output=True, text=True, check=False, timeout=1200, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    cut = [one for one in found if not one["whole"]]
    with capsys.disabled():
        print(
            f"\n{len(found)} killed, {len(cut)} of them before the end; {sum(one['returned'] for one in found)} calls "
            f"had returned, lost: {sum(len(one['lost']) for one in found)}"
        )
    assert len(found) == kills
    assert len(cut) > kills // 3
    assert any(one["arrays"] for one in cut)
    assert [one for one in found if one["lost"] or one["wrong"]] == []
    assert [one["left"] for one in found if one["left"]] == []
    assert all("nothing to recover" in one["again"][0] for one in found)


TRAINING = """
import os, signal, sys
import mindspore as ms
import numpy as np
from mindspore import ops
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
how, folder = sys.argv[1:]
if how == "own handler":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
debugger = PrecisionDebugger(dump_path=folder, level="L1")
x = ms.Tensor(np.ones(3, np.float32))
debugger.start()
y = ops.relu(x)
z = ops.exp(y)
if how in ("SIGTERM", "own handler"):
    os.kill(os.getpid(), signal.SIGTERM)
    print("went on")
elif how == "exception":
    raise ValueError("the training's own")
else:
    sys.exit(3)
"""


@pytest.mark.parametrize(
    ("how", "status"),
    [("SIGTERM", -signal.SIGTERM), ("own handler", 7), ("exception", 1), ("sys.exit", 3)],
)
def test_a_process_that_ends_leaves_complete_documents(tmp_path, how, status):
    command = [sys.executable, "-c", TRAINING, how, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == status, done.stderr
    rank = tmp_path / "step0" / "rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    assert list(data) == ["Functional.relu.0.forward", "Functional.exp.0.forward"]
    assert "output" in data["Functional.exp.0.forward"]
    assert sorted(path.name for path in rank.iterdir()) == FILES
    assert "went on" not in done.stdout


SIGNAL = """
import signal
import mindspore as ms
from probe import PrecisionDebugger
import sys
ms.set_context(mode=ms.PYNATIVE_MODE)
before = signal.getsignal(signal.SIGTERM)
debugger = PrecisionDebugger(dump_path=sys.argv[1])
debugger.start()
during = signal.getsignal(signal.SIGTERM)
debugger.stop()
print(during != before, signal.getsignal(signal.SIGTERM) == before)
"""


def test_the_signal_handler_of_the_user_is_restored_at_stop(tmp_path):
    done = processes.run(
        [sys.executable, "-c", SIGNAL, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    assert done.stdout.split() == ["True", "True"]


CHAINS = """
import os, signal, sys
import mindspore as ms
import numpy as np
from mindspore import ops
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
how, folder = sys.argv[1:]
called = []
if how == "goes on":
    signal.signal(signal.SIGTERM, lambda *_: called.append(1))
elif how == "ignored":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
debugger = PrecisionDebugger(dump_path=folder)
x = ms.Tensor(np.ones(3, np.float32))
debugger.start()
ops.relu(x)
if how == "chained":
    before = signal.getsignal(signal.SIGTERM)
    def handler(number, frame):
        called.append(1)
        before(number, frame)
    signal.signal(signal.SIGTERM, handler)
for _ in range(2):
    os.kill(os.getpid(), signal.SIGTERM)
    ops.exp(x)
    debugger.stop()
    debugger.start()
    ops.tanh(x)
debugger.step()
print(len(called), len(os.listdir("/proc/self/fd")) < 40)
"""


@pytest.mark.parametrize(("how", "called"), [("goes on", 2), ("ignored", 0), ("chained", 2)])
def test_a_training_that_goes_on_after_sigterm_is_recorded_to_its_end(tmp_path, how, called):
    command = [sys.executable, "-c", CHAINS, how, str(tmp_path)]
    done = processes.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-2:] == [str(called), "True"]
    rank = tmp_path / "step0" / "rank"
    data = json.loads((rank / "dump.json").read_text())["data"]
    apis = [name.split(".")[1] for name in data]
    assert apis == ["relu", "exp", "tanh", "exp", "tanh"]
    assert sorted(path.name for path in rank.iterdir()) == FILES


FORKING = """
import os, sys
import mindspore as ms
import numpy as np
from mindspore import ops
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
debugger = PrecisionDebugger(dump_path=sys.argv[1])
x = ms.Tensor(np.ones(3, np.float32))
debugger.start()
ops.relu(x)
child = os.fork()
if not child:
    debugger.stop()
    debugger.start()
    debugger.step()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(sorted(os.listdir(sys.argv[1] + "/step0/rank")), sorted(os.listdir(sys.argv[1])))
ops.exp(x)
debugger.stop()
debugger.step()
"""


def test_a_forked_child_writes_nothing(tmp_path):
    done = processes.run(
        [sys.executable, "-c", FORKING, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['dump.journal', 'run.json', 'run.jsonl'] ['step0']"
    data = json.loads((tmp_path / "step0" / "rank" / "dump.json").read_text())["data"]
    assert list(data) == ["Functional.relu.0.forward", "Functional.exp.0.forward"]


WAITING = """
import sys
import mindspore as ms
import numpy as np
from mindspore import ops
from probe import PrecisionDebugger
ms.set_context(mode=ms.PYNATIVE_MODE)
folder, overwrite, config = sys.argv[1:]
open(config, "w").write('{"dump_path": "%s", "overwrite": %s}' % (folder, overwrite))
debugger = PrecisionDebugger(config_path=config)
debugger.start()
ops.relu(ms.Tensor(np.ones(3, np.float32)))
print("recording", flush=True)
sys.stdin.readline()
debugger.step()
"""


@pytest.mark.parametrize("overwrite", ["false", "true"])
def test_a_second_process_without_a_rank_is_refused(tmp_path, overwrite):
    arguments = [sys.executable, "-c", WAITING, str(tmp_path / "dump")]
    first = processes.Popen(
        [*arguments, "false", str(tmp_path / "a.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert first.stdout.readline() == "recording\n"
        second = processes.run(
            [*arguments, overwrite, str(tmp_path / "b.json")],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
    finally:
        first.communicate("\n", timeout=100)
    assert second.returncode == 1
    assert (
        f"{tmp_path}/dump/step0/rank is being written by another process"
        in second.stderr.splitlines()[-1]
    )
    assert first.returncode == 0
    assert (
        "Functional.relu.0.forward"
        in (tmp_path / "dump" / "step0" / "rank" / "dump.json").read_text()
    )
