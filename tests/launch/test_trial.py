# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""`probe run` tries its settings before the program begins, says which options are the program's, numbers steps."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.launched import RUN, dump, place, start
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: a statistic of the user's own, in a module that must not run before the program
STATISTICS = """
print("the module of statistics runs")
from math import fsum
spread = lambda array: float(array.max() - array.min())
class Named:
    @staticmethod
    def total(array): return fsum(array.ravel())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = place(tmp_path_factory.mktemp("trial") / "here", recorded=False)
    (made / "a_file").write_text("")
    (made / "empty").mkdir()
    (made / "own_statistics.py").write_text(STATISTICS)
    (made / "broken.py").write_text("def (\n")
    return made


REFUSED = {
    "a file is in the way": (["--dump-path", "a_file"], "dump_path", "a_file is no folder"),
    "no golden": (["--golden", "nowhere"], "golden", "nowhere: no such folder"),
    "an empty golden": (["--golden", "empty"], "golden", "no dump.json in it or below it"),
    "no module": (
        ["--summary-mode", "max,no_such:spread"],
        "summary_mode",
        "there is no module 'no_such'",
    ),
    "no package": (
        ["--summary-mode", "max,own_statistics.a:spread"],
        "summary_mode",
        "no module 'own_statistics.a'",
    ),
    "no function": (
        ["--summary-mode", "max,own_statistics:spraed"],
        "summary_mode",
        "has no 'spraed'",
    ),
    "a wrong step": (["--first-step", "-1"], "--first-step", "Allowed: a whole number from 0"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("task", thorough_but(["statistics"], ["statistics", "tensor"]))
def test_a_setting_that_cannot_be_used_ends_the_command_before_the_program_begins(
    folder, case, task
):
    options, name, reason = REFUSED[case]
    done = start(folder, *RUN, "--task", task, *options, "loop.py")
    assert (done.returncode, done.stdout) == (2, "")
    (told,) = [line for line in done.stderr.splitlines() if name in line]
    assert reason in told
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("task", thorough_but(["monitor"], ["nan_check", "structure", "monitor"]))
def test_a_file_in_the_way_ends_the_command_in_each_task(folder, task):
    done = start(folder, *RUN, "--task", task, "--dump-path", "a_file", "loop.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "dump_path: " in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into every folder")
def test_a_folder_that_may_not_be_written_ends_the_command(folder):
    (folder / "closed").mkdir(mode=0o500)
    done = start(folder, *RUN, "--dump-path", "closed/dump", "loop.py")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_settings_file_is_tried_too(folder):
    (folder / "settings.json").write_text(
        json.dumps({"statistics": {"summary_mode": ["max", "no_such:f"]}})
    )
    done = start(folder, *RUN, "--config", "settings.json", "loop.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no module 'no_such'" in done.stderr


def test_a_run_that_records_nothing_tries_nothing(folder):
    done = start(folder, *RUN, "--no-dump-enable", "--golden", "nowhere", "loop.py")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "source", ["own_statistics:spread", "own_statistics:Named.total", "own_statistics:fsum"]
)
def test_a_function_that_is_there_is_accepted_and_does_not_run_before_the_program(folder, source):
    print_first = "import sys; print('first', 'own_statistics' in sys.modules)\n"
    (folder / "first.py").write_text(print_first)
    done = start(folder, *RUN, "--summary-mode", f"max,{source}", "first.py")
    assert (done.returncode, done.stdout) == (0, "first False\n"), done.stderr


def test_a_module_that_cannot_be_parsed_is_left_to_the_run(folder):
    (folder / "first.py").write_text("print('first')\n")
    done = start(folder, *RUN, "--summary-mode", "max,broken:f", "first.py")
    assert (done.returncode, done.stdout) == (0, "first\n"), done.stderr


@pytest.mark.parametrize("words", [["--level", "L0"], ["--level=L0"], ["x", "--task", "nan_check"]])
def test_an_option_behind_the_program_is_told(folder, words):
    (folder / "words.py").write_text("import sys; print(sys.argv[1:])\n")
    done = start(folder, *RUN, "words.py", *words)
    assert done.stdout == f"{words}\n"
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("probe: ")]
    option = next(word for word in words if word.startswith("--"))
    assert (
        told
        == f"probe: {option} behind words.py is the program's own; options of probe run stand before it"
    )


@pytest.mark.parametrize("words", [["--lr", "0.1"], ["--help"], ["x"], ["-m"]])
def test_other_words_behind_the_program_are_not_told(folder, words):
    (folder / "words.py").write_text("import sys; print(sys.argv[1:])\n")
    done = start(folder, *RUN, "words.py", *words)
    assert done.stdout == f"{words}\n"
    assert not [line for line in done.stderr.splitlines() if line.startswith("probe: ")]


@pytest.mark.parametrize("program", ["loop.py", "model_train.py"])
def test_the_first_step_of_a_resumed_run_has_its_number(folder, tmp_path, program):
    place(tmp_path / "run", recorded=False)
    done = start(
        tmp_path / "run", *RUN, "--dump-path", "dump", "--first-step", "6", "--step", "6-7", program
    )
    assert done.returncode == 0, done.stderr
    steps = {path.split("/")[1] for path in dump(tmp_path / "run") if path.startswith("dump/step")}
    assert steps == {"step6", "step7"}


TRACED = """
import mindspore as ms
from mindspore import nn

ms.set_seed(1)
net = nn.Dense(3, 1)
optimizer = nn.SGD(net.trainable_params(), 0.1)


def total_of_squares(x):
    return (x * x).sum()


traced = ms.jit(total_of_squares, capture_mode="trace")
gradient = ms.value_and_grad(lambda x: traced(net(x)), None, optimizer.parameters)
for _ in range(2):
    loss, gradients = gradient(ms.ops.ones((2, 3)))
    optimizer(gradients)
    print(loss)
"""


def test_a_capture_by_trace_finds_a_source_for_each_frame(folder):
    """MindSpore 2.10 reads the source of every frame; that of ``python -m`` has none."""
    (folder / "traced.py").write_text(TRACED)
    frames = "the frames of python -m are those of a process of its own"
    bare = start(folder, "traced.py", fresh=frames)
    done = start(folder, *RUN, "--dump-path", "traced", "traced.py", fresh=frames)
    assert (done.returncode, done.stdout) == (0, bare.stdout), done.stderr
    assert len(list((folder / "traced").rglob("dump.json"))) == 2
