# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""`probe run` starts a program, and lets it end, as Python does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.launched import (
    RUN,
    check,
    differences,
    dump,
    own,
    place,
    start,
    under_msrun as msrun,
)
from tests.support.paths import ROOT, environment
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow
#: an interpreter whose environment has msprobe
PEER = Path(os.environ.get("PROBE_PEER", ROOT / ".peer")) / "bin" / "python"

#: waits for MindSpore as tools do that patch it, by the loader's method
HOOKED = """
import importlib.util, sys

class Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "mindspore":
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            execute = spec.loader.exec_module

            def exec_module(module):
                del spec.loader.exec_module
                execute(module)
                print(module.__name__, "is there")

            spec.loader.exec_module = exec_module
            return spec

sys.meta_path.insert(0, Hook())
"""


SPAWNED = """
import multiprocessing

def work():
    import mindspore as ms
    from mindspore import nn
    net = nn.Dense(4, 3)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
    optimizer(gradient(ms.ops.ones((2, 4)))[1])

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
"""


#: the loss of two steps in a row is an alarm
ALARMS = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(8, 8), nn.Tanh(), nn.Dense(8, 3))
optimizer = nn.SGD(net.trainable_params(), 0.1)
data = np.random.RandomState(0).randn(28, 4, 8).astype(np.float32)
y = ms.Tensor(np.array([0, 1, 2, 0], np.int32))
for step in range(28):
    x = ms.Tensor(data[step] * (1e3 if step == 24 else 1.0))
    factor = 200.0 if step in (24, 25) else 1.0
    loss_of = lambda: ops.cross_entropy(net(x), y) * factor
    loss, gradients = ms.value_and_grad(loss_of, None, optimizer.parameters)()
    optimizer(gradients)
    print(step, float(loss))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return place(tmp_path_factory.mktemp("programs") / "here", recorded=False)


def both(folder, *words, **options):
    """Run a program by Python and by `probe run`; return both results."""
    shutil.rmtree(folder / "dump", ignore_errors=True)
    return start(folder, *words, **options), start(
        folder, *RUN, "--dump-path", "dump", *words, **options
    )


@pytest.mark.parametrize("path", ["facts.py", "./facts.py", "../here/facts.py"])
def test_a_file_sees_itself_as_under_python(path, folder):
    plain, launched = both(
        folder, path, "--step", 3, "a word", "--", "--level", fresh="the program's own globals"
    )
    assert plain.returncode == launched.returncode == 0, launched.stderr
    assert plain.stdout == launched.stdout
    assert "step=3" in plain.stdout


def test_a_program_runs_from_a_folder_and_a_zip_file(folder, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "__main__.py").write_text(
        "import sys, other\nprint(sys.argv, __name__, other.A)\n"
    )
    (tmp_path / "code" / "other.py").write_text("A = 5\n")
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as archive:
        for name in ("__main__.py", "other.py"):
            archive.write(tmp_path / "code" / name, name)
    for name in ("code", "code.zip"):
        plain, launched = both(tmp_path, name, "x", fresh="the fork server runs files alone")
        assert (plain.returncode, plain.stdout) == (0, f"['{name}', 'x'] __main__ 5\n"), (
            plain.stderr
        )
        assert (launched.returncode, launched.stdout) == (0, plain.stdout), launched.stderr


def test_a_package_runs_with_its_relative_imports(tmp_path):
    found = check(["-m", "package", "--level", "high", "--steps", "2"], tmp_path)
    assert len(found) == 6
    assert "level='high'" in start(tmp_path / "run", "-m", "package", "--level", "high").stdout


@pytest.mark.parametrize("place", ["hooked.py", "sitecustomize.py"])
def test_a_hook_of_the_program_around_the_import_of_mindspore_runs_too(tmp_path, place):
    (tmp_path / "hooked.py").write_text("import mindspore\n")
    (tmp_path / place).write_text(HOOKED + "import mindspore\n" * (place == "hooked.py"))
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"}
    plain, launched = both(
        tmp_path, "hooked.py", variables=path, fresh="MindSpore is imported once"
    )
    assert (plain.returncode, plain.stdout) == (0, "mindspore is there\n"), plain.stderr
    assert (launched.returncode, launched.stdout) == (0, plain.stdout), launched.stderr


def test_processes_that_the_program_spawns_and_forks_work(tmp_path):
    assert len(check(["workers.py"], tmp_path)) == 12


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_training_in_a_process_of_the_program_is_recorded(kind, folder):
    plain, launched = both(folder, "children.py", kind)
    assert launched.returncode == plain.returncode == 0, launched.stderr
    assert own(launched.stdout) == own(plain.stdout)
    assert own(launched.stdout)[-1] == "0"
    assert sum(path.endswith("dump.json") for path in dump(folder)) == 2


def test_a_parent_of_a_spawned_training_does_not_say_that_nothing_was_recorded(tmp_path):
    (tmp_path / "spawned.py").write_text(SPAWNED)
    done = start(
        tmp_path, *RUN, "--dump-path", "dump", "spawned.py", fresh="the parent imports no MindSpore"
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("dump.json"))) == 1
    assert "nothing was recorded" not in done.stderr


ENDINGS = ["status", "text", "raise", "inside", "interrupt", "terminate"]


@pytest.mark.parametrize("how", ENDINGS)
def test_an_end_has_the_status_and_output_of_python(how, folder):
    plain, launched = both(folder, "ends.py", how)
    assert launched.returncode == plain.returncode != 0
    assert own(launched.stdout) == own(plain.stdout)
    assert own(launched.stderr) == own(plain.stderr)
    found = dump(folder)
    assert [path for path in found if path.endswith("dump.json")] == [
        f"dump/step{n}/rank/dump.json" for n in (0, 1)
    ]
    assert not list(folder.rglob("dump.journal"))
    whole, part = (found[f"dump/step{n}/rank/dump.json"]["data"] for n in (0, 1))
    assert [name for name in whole if not name.startswith("Cell.optimizer")][: len(part)] == list(
        part
    )[: len(whole)]


PLACES = ["early", "before", "inside", "between", "after"]
WAYS = ["exit", "raise", "interrupt", "terminate", "handler", "ignored"]
TASKS = ["statistics", "tensor", "structure", "nan_check", "monitor"]
STOPS = [(place, way, "statistics") for place in PLACES for way in WAYS]
STOPS += [
    (place, "terminate", task) for place in ("before", "inside", "between") for task in TASKS[1:]
]
OFTEN = [
    *(("between", way, "statistics") for way in ("interrupt", "terminate", "handler", "ignored")),
    *(("between", "terminate", task) for task in TASKS[1:]),
    *((place, "terminate", "statistics") for place in ("early", "before", "inside", "after")),
]


@pytest.mark.parametrize(("stop", "way", "task"), thorough_but(OFTEN, STOPS))
def test_each_end_says_once_where_the_dump_is_or_why_there_is_none(stop, way, task, folder):
    shutil.rmtree(folder / "dump", ignore_errors=True)
    plain = start(folder, "stops.py", stop, way)
    launched = start(folder, *RUN, "--task", task, "--dump-path", "dump", "stops.py", stop, way)
    assert launched.returncode == plain.returncode
    assert (plain.returncode == 0) == (way == "ignored")
    assert own(launched.stdout) == own(plain.stdout)
    lines = [
        line for line in launched.stderr.splitlines() if any(word in line for word in LAST_WORDS)
    ]
    assert len(lines) == 1, launched.stderr
    goes_on = way == "ignored"
    if stop == "early" and not goes_on:
        expected = (
            "nothing was recorded: "  # the process was forked from one that has imported MindSpore
        )
    elif stop == "before" and not goes_on:
        expected = f"nothing was recorded: {EARLY[way]}"
    elif task == "nan_check":
        expected = "no NaN/Inf"
    elif task == "monitor":
        expected = "2 steps in "  # a step that the signal ends has a row too
    else:
        expected = f"{3 if goes_on or stop == 'after' else 2} steps in "
    assert expected in lines[0].replace("1 step in", "1 steps in")
    assert not list(folder.rglob("dump.journal"))


#: an end before the first step -> its reason
EARLY = {
    "exit": "the program ended before its first step: exit status 3",
    "raise": "the program ended before its first step: RuntimeError: the data are wrong",
    "interrupt": "the program ended before its first step: KeyboardInterrupt",
    "handler": "the program ended before its first step: exit status 7",
    "terminate": "no optimizer of MindSpore or torch made an update",
}
#: each line about the end of a recording has one of these
LAST_WORDS = ("look with: ", "nothing was recorded", "looked at, ")


def test_a_process_that_the_program_forks_ends_by_sigterm_and_says_nothing(folder):
    (folder / "forked.py").write_text(FORKED)
    plain, launched = both(folder, "forked.py")
    assert launched.stdout == plain.stdout == "True -15\n"
    assert launched.stderr.count("nothing was recorded") == 1


#: its child has the handler that Python has, and its parent ends it
FORKED = """
import os, signal, time
read, write = os.pipe()
child = os.fork()
if not child:
    os.write(write, b"1" if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL else b"0")
    time.sleep(100)
is_default = os.read(read, 1) == b"1"
os.kill(child, signal.SIGTERM)
print(is_default, -os.WTERMSIG(os.waitpid(child, 0)[1]))
"""


def test_a_mistake_in_the_program_is_shown_as_python_shows_it(folder):
    (folder / "wrong.py").write_text("a = (1,\n")
    (folder / "raises.py").write_text("import missing_module\n")
    for words in (["wrong.py"], ["raises.py"], ["-m", "no_such_module"]):
        plain, launched = both(folder, *words, fresh="the fork server has frames of its own")
        assert plain.returncode == launched.returncode == 1
        assert own(plain.stderr) == own(launched.stderr)


def test_a_missing_program_is_told(folder):
    plain, launched = both(folder, "nothing.py", fresh="the fork server opens the file itself")
    assert plain.returncode == launched.returncode == 2
    assert "nothing.py': " in launched.stderr and "No such file or directory" in launched.stderr
    assert "a program is missing" in start(folder, *RUN, "--level", "mix").stderr


def test_a_wrong_setting_ends_before_the_program_begins(folder):
    done = start(folder, *RUN, "--task", "statistic", "facts.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'statistics'?" in done.stderr
    done = start(folder, *RUN, "--on-nan", "raise", "facts.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'nan_check'" in done.stderr


def test_options_win_over_the_file(folder):
    (folder / "settings.json").write_text(
        '{"level": "L0", "dump_path": "elsewhere", "step": [0], "statistics": {}}'
    )
    shutil.rmtree(folder / "dump", ignore_errors=True)
    options = [
        "--config",
        "settings.json",
        "--dump-path=dump",
        "--summary-mode",
        "md5",
        "--list",
        "Dense",
    ]
    done = start(folder, *RUN, *options, "--no-extra-info", "loop.py")
    assert done.returncode == 0, done.stderr
    found = dump(folder)
    assert list(found) == ["dump/step0/rank/dump.json"]
    assert {name.split(".")[2] for name in found["dump/step0/rank/dump.json"]["data"]} == {"Dense"}
    assert '"md5"' in (folder / "dump/step0/rank/dump.json").read_text()


def test_a_program_for_msprobe_records_itself(folder):
    shutil.rmtree(folder / "dump", ignore_errors=True)
    done = start(folder, *RUN, "from_msprobe.py")
    assert done.returncode == 0, done.stderr
    assert sorted(path for path in dump(folder) if "dump.json" in path) == [
        "dump/step1/rank/dump.json"
    ]
    assert "no effect" not in done.stderr
    shutil.rmtree(folder / "dump")
    done = start(folder, *RUN, "--level", "mix", "--as-msprobe", "from_msprobe.py")
    assert done.returncode == 0, done.stderr
    assert (
        "from_msprobe.py, line 14: the program makes a PrecisionDebugger of its own: the settings"
        in done.stderr
    )


def test_a_program_under_msprobes_monitor_writes_its_files(folder):
    done = start(folder, *RUN, "--task", "structure", "trainer_mon.py")
    assert done.returncode == 0, done.stderr
    found = sorted(path.name for path in folder.glob("monitor_output/*-rank0-*/*.csv"))
    kinds = ("grad_reduced", "grad_unreduced", "param_origin", "param_updated")
    assert found == sorted(f"{kind}_{step}-{step}.csv" for kind in kinds for step in (0, 1))


@pytest.mark.skipif(not PEER.exists(), reason=f"msprobe's environment {PEER} is missing: make peer")
def test_an_installed_msprobe_is_refused_or_replaced(folder):
    shutil.rmtree(folder / "dump", ignore_errors=True)
    options = {
        "cwd": folder,
        "env": environment(),
        "capture_output": True,
        "text": True,
        "timeout": 300,
    }
    done = subprocess.run([PEER, *RUN, "from_msprobe.py"], **options, check=False)
    assert done.returncode == 1
    assert (
        "from_msprobe.py, line 14: the program makes a PrecisionDebugger"
        in done.stderr.splitlines()[-1]
    )
    subprocess.run([PEER, *RUN, "--as-msprobe", "from_msprobe.py"], **options, check=True)
    assert sorted(path for path in dump(folder) if "dump.json" in path) == [
        "dump/step1/rank/dump.json"
    ]


def test_without_settings_a_program_under_msprobes_monitor_has_no_dump(tmp_path):
    folder = place(tmp_path / "here", recorded=False)
    done = start(folder, *RUN, "trainer_mon.py")
    assert done.returncode == 0, done.stderr
    assert list(folder.glob("monitor_output/*/*.csv"))
    assert not list(folder.rglob("dump.json"))
    assert "nothing was recorded" not in done.stderr


@pytest.mark.parametrize(
    ("line", "place", "name"),
    [
        ("from msprobe.mindspore import save_grad", "msprobe.mindspore", "save_grad"),
        (
            "from msprobe.mindspore.common.utils import Other",
            "msprobe.mindspore.common.utils",
            "Other",
        ),
        ("import msprobe.pytorch", "msprobe", "pytorch"),
        ("from msprobe.core.common.const import Const", "msprobe.core", "common"),
    ],
)
def test_names_of_msprobe_that_probe_lacks_are_told(line, place, name, folder):
    (folder / "monitors.py").write_text(f"{line}\n")
    done = start(folder, *RUN, "monitors.py")
    assert done.returncode == 1
    assert (
        f"ImportError: probe serves {place} here, and has no {name}: see docs/from-msprobe.md"
        in done.stderr
    )


def test_the_check_of_msprobe_has_its_remedy(folder):
    (folder / "checked.py").write_text("from msprobe.core.config_check import ConfigChecker\n")
    done = start(folder, *RUN, "checked.py")
    assert done.returncode == 1
    said = "has no ConfigChecker: each run writes its run.json itself, and `probe check GOLDEN MINE` compares two runs"
    assert f"ImportError: probe serves msprobe.core.config_check here, and {said}" in done.stderr


def test_names_of_msprobe_are_served_where_msprobe_has_them(folder):
    (folder / "homes.py").write_text(
        """
import msprobe.mindspore
from msprobe.mindspore.common.utils import MsprobeInitStep, MsprobeStep, seed_all
from msprobe.mindspore.debugger.precision_debugger import PrecisionDebugger
from msprobe.mindspore.monitor.module_hook import TrainerMon
assert PrecisionDebugger is msprobe.mindspore.PrecisionDebugger
assert (MsprobeStep, TrainerMon) == (msprobe.mindspore.MsprobeStep, msprobe.mindspore.TrainerMon)
assert not hasattr(msprobe.mindspore, "save")
debugger = PrecisionDebugger(dump_path="homes", level="L1")
debugger.start()
import mindspore
mindspore.ops.exp(mindspore.Tensor([1.0]))
debugger.stop()
"""
    )
    done = start(folder, *RUN, "homes.py")
    assert done.returncode == 0, done.stderr
    assert (folder / "homes" / "step0" / "rank" / "dump.json").exists()


def test_a_program_with_a_debugger_of_its_own_is_refused_with_the_line(folder):
    done = start(folder, *RUN, "makes_debugger.py")
    assert done.returncode == 1
    assert done.stdout == "4\n"
    place = f"{folder / 'makes_debugger.py'}, line 11: the program makes a PrecisionDebugger of its own."
    assert place in done.stderr.splitlines()[-1]


def test_alarms_of_two_steps_in_a_row_are_both_made_again(folder):
    """The repeats of a step are no step of the program."""
    (folder / "alarms.py").write_text(ALARMS)
    monitor = {"on_alarm": "again", "times": 1}
    settings = {"task": "monitor", "dump_path": str(folder / "alarms"), "monitor": monitor}
    (folder / "alarms.json").write_text(json.dumps(settings))
    bare = start(folder, "alarms.py")
    done = start(folder, *RUN, "--config", "alarms.json", "alarms.py")
    assert done.stdout == bare.stdout
    lines = (folder / "alarms/monitor/rank/alarms.jsonl").read_text("utf-8").splitlines()
    answers = [row for row in map(json.loads, lines) if row["rule"] == "again"]
    assert [row["step"] for row in answers[:2]] == [24, 25]
    assert {row["key"] for row in answers[:2]} == {"again.repeats"}
    assert not list((folder / "alarms").rglob("dump_error_info.log"))


@pytest.mark.parametrize(
    ("options", "program", "reason"),
    [
        ((), "inference.py", "no optimizer of MindSpore or torch made an update"),
        ((), "facts.py", "this process did not import MindSpore"),
        (("--quiet",), "inference.py", ""),
    ],
)
def test_a_program_without_a_step_is_told(options, program, reason, folder):
    done = start(folder, *RUN, *options, program, fresh="MindSpore may not be imported")
    assert done.returncode == 0
    told = [line for line in done.stderr.splitlines() if "nothing was recorded" in line]
    assert len(told) == bool(reason)
    assert all(line.startswith(f"nothing was recorded: {reason}") for line in told)
    assert all(("--step-at model" in line) == ("optimizer" in reason) for line in told)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("sys.exit(2)", "exit status 2"),
        ("sys.exit('no data')", "no data"),
        ("sys.exit('no data\\nsecond line')", "no data"),
        ("raise ValueError('first\\nsecond')", "ValueError: first"),
        ("import numpy; sys.exit(numpy.zeros(2))", "exit status 1"),
        ("sys.exit('')", "exit status 1"),
        ("open('nowhere')", "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'"),
        ("sys.exit(0)", ""),
        ("sys.exit()", ""),
    ],
)
def test_a_program_that_ends_before_its_first_step_says_how(end, told, folder):
    (folder / "ends.py").write_text(f"import sys\n{end}\n")
    done = start(folder, *RUN, "ends.py")
    early = f"nothing was recorded: the program ended before its first step: {told}"
    assert (early in done.stderr.splitlines()) == bool(told)


@pytest.mark.thorough
def test_two_ranks_of_msrun_are_recorded(tmp_path):
    lines, run = place(tmp_path / "lines", recorded=True), place(tmp_path / "run", recorded=False)
    msrun(lines, "ranks.py")
    msrun(run, "python", *RUN, "--level", "mix", "--dump-path", "dump", "ranks.py")
    expected = dump(lines)
    assert sum(path.endswith("dump.json") for path in expected) == 4
    assert differences(expected, dump(run)) == []
