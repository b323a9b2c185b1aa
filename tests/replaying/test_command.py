# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe replay``: its lines and files, its processes, its scripts, and dumps that nobody wrote in good faith."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import probe
from probe.__main__ import main
from probe.errors import UsageError
from probe.replaying.describing import describe
from probe.replaying.replay import Pool, choose
from probe.replaying.script import write_script
from tests.replaying.device import Device, number, record
from tests.support import processes
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """A dump of a precise device with one fault."""
    made = record(tmp_path_factory.mktemp("device") / "dump", "Float32")
    path = made.arrays / "Functional.softmax.0.forward.output.0.npy"
    np.save(path, np.load(path) * np.float32(1.001))
    made.data["Cell.fc.Dense.forward.0"] = {"input_args": [], "input_kwargs": {}, "output": []}
    made.write()
    return made


def test_all_calls_have_a_line_and_files(device, tmp_path, capsys):
    table, document = tmp_path / "a.csv", tmp_path / "a.json"
    status = main(
        [
            "replay",
            str(device.path),
            "--all",
            "--jobs",
            "1",
            "--csv",
            str(table),
            "--json",
            str(document),
        ]
    )
    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert len(lines) == len(device.data) + 1
    wrong = [line for line in lines if line.endswith(": wrong")]
    assert len(wrong) == 1
    assert wrong[0].startswith("Functional.softmax.0.forward.output.0: recorded 1.0e-03 off, here ")
    assert (
        lines[-1] == f"{len(device.data) - 2} ok, 0 worse than expected, 1 wrong, 1 not replayable"
    )
    with open(table) as file:
        rows = list(csv.DictReader(file))
    assert {row["call"] for row in rows} == set(device.data)
    assert [row["call"] for row in rows if row["verdict"] == "wrong"] == [
        "Functional.softmax.0.forward"
    ]
    found = json.loads(document.read_text())
    assert [call["name"] for call in found] == list(device.data)
    assert next(call for call in found if "Cell" in call["name"])["reason"]


def test_a_name_without_direction_means_both_entries(device):
    calls = probe.replay(device.path, "Functional.matmul.0", jobs=1)
    assert [call.name for call in calls] == [
        "Functional.matmul.0.forward",
        "Functional.matmul.0.backward",
    ]
    assert calls.status == 0
    assert calls.counts["ok"] == 2
    assert not calls.found
    assert {item.place for item in calls[1].outputs} == {"output.0", "output.1"}


def test_in_bfloat16_the_fault_is_within_its_roundings(device):
    assert probe.replay(device.path, "Functional.softmax", jobs=1)[0].verdict == "wrong"
    assert (
        probe.replay(device.path, "Functional.softmax", jobs=1, dtype="bfloat16")[0].verdict == "ok"
    )


def test_the_calls_of_another_device_are_judged_on_the_cpu(device):
    here = probe.replay(device.path, jobs=1)
    there = probe.replay(device.path, jobs=1, device="CPU")
    assert [call.to_dict() for call in here] == [call.to_dict() for call in there]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a call, or --all"),
        (["Functional.no.0"], "no call 'Functional.no.0'"),
        (["--all", "--dtype", "int8"], "'int8' is not allowed"),
        (["--all", "--limit", "0"], "--limit"),
        (["--all", "--script", "a.py"], "--script: it takes one call"),
        (["--all", "--step", "7"], "no dump of step 7"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(device, words, said, capsys):
    assert main(["replay", str(device.path), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_dump_without_arrays_says_so(debug, capsys):
    import mindspore as ms

    x = ms.Tensor(np.ones(3, np.float32))
    debug.record(lambda: ms.ops.relu(x), level="L1", task="statistics")
    assert main(["replay", str(debug.dump_path), "--all"]) == 2
    assert "input.0 has no array" in capsys.readouterr().out


def children():
    """Return the processes that this process has started."""
    listed = (
        Path("/proc/self/task") / thread / "children" for thread in os.listdir("/proc/self/task")
    )
    return {int(word) for path in listed for word in path.read_text().split()}


def test_a_process_that_is_killed_loses_one_call(device):

    before = children()
    call = describe(next(choose(device.path, "Functional.matmul.0.forward")))
    results = []
    for item in Pool(1, {"device": "CPU", "dtype": ""}, 60.0).run([call] * 300):
        results.append(item[1])
        if len(results) == 1:
            (worker,) = children() - before
            os.kill(worker, signal.SIGKILL)
    assert len(results) == 300
    lost = [result for result in results if result.verdict == "not replayable"]
    assert [str(result.reason) for result in lost] == ["its process ended by signal 9"]


def test_a_call_that_hangs_loses_itself_alone(tmp_path):

    made = Device(tmp_path / "dump")
    # a product of these takes minutes
    many = np.ones((6000, 6000), np.float32)
    made.forward("Functional.matmul", [many, many], [many], "Float32")
    made.forward("Functional.square", [np.ones(3)], [np.ones(3)], "Float32")
    made.write()
    slow, quick = (
        describe(next(choose(made.path, f"Functional.{key}"))) for key in ("matmul", "square")
    )
    found = dict(Pool(1, {"device": "CPU", "dtype": ""}, 2.0).run([slow, quick]))
    assert str(found[0].reason) == "it did not end within 2 s"
    assert found[1].verdict == "ok"


SCRIPTED = [
    "Functional.softmax.0.forward", "Functional.matmul.0.backward", "MintFunctional.layer_norm.0.forward",
    "Functional.exp.0.forward", "Functional.tanh.0.forward", "Functional.square.0.forward",
    "Functional.relu.0.forward", "Functional.matmul.0.forward", "Tensor.__add__.0.forward",
    "Functional.transpose.0.forward", "Functional.cumsum.0.forward", "Functional.add.0.forward",
    "Functional.argmax.0.forward",
]  # fmt: skip


@pytest.mark.parametrize("name", thorough_but(SCRIPTED[:2], SCRIPTED))
def test_a_script_needs_mindspore_and_numpy_alone_and_has_the_same_verdict(device, name, tmp_path):
    script = tmp_path / "repro.py"
    assert main(["replay", str(device.path), name, "--script", str(script)]) == 0
    text = script.read_text()
    assert "import probe" not in text
    assert "from probe" not in text
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = processes.run(
        [sys.executable, str(script)], cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    verdict = probe.replay(device.path, name, jobs=1)[0].verdict
    assert f"verdict: {verdict}" in done.stdout, done.stderr
    assert done.returncode == int(verdict != "ok")


HOSTILE = {
    "Functional.__import__.0.forward": [number("os")],
    "Functional.relu; import os.0.forward": [number(1)],
    "Tensor.__class__.0.forward": [number(1)],
    "Tensor.__init__.0.forward": [number(1)],
    "Primitive.x.os.system.0.forward": [number("touch harm")],
    "Primitive.fn:f.Custom.0.forward": [number("harm")],
    "Primitive.fn:f.TensorDump.0.forward": [number("harm")],
    "Primitive.f.Primitive.0.forward": [number("harm")],
    "Functional.print_.0.forward": [number("harm")],
    "Numpy.load.0.forward": [number("harm")],
    "os.system.0.forward": [number("touch harm")],
}


@pytest.mark.parametrize("as_script", [False, True])
def test_names_and_values_of_a_hostile_dump_never_become_code(tmp_path, monkeypatch, as_script):
    monkeypatch.chdir(tmp_path)
    made = Device(tmp_path / "dump")
    for name, inputs in HOSTILE.items():
        made.forward(name.rpartition(".0.")[0], inputs, [np.ones(3)], "Float32")
    made.write()
    for name in HOSTILE:
        if as_script:
            with pytest.raises(UsageError):
                write_script(next(choose(made.path, name)), str(tmp_path / "repro.py"))
    if not as_script:
        calls = probe.replay(made.path, jobs=1)
        assert {call.verdict for call in calls} == {"not replayable"}
        assert len(calls) == len(HOSTILE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump"]


def test_strange_records_and_texts_are_literals(tmp_path):
    made = Device(tmp_path / "dump")
    evil = '"""\nimport os\nos.system("touch harm")\n"""'
    made.forward("Functional.square", [np.ones(3)], [np.ones(3)], "Float32", {"x": number(evil)})
    made.forward(
        "Functional.exp",
        [{"type": "mindspore.Tensor", "dtype": evil, "shape": [3], "data_name": "a.npy"}],
        [np.ones(3)],
        "Float32",
    )
    made.forward(
        "Functional.abs",
        [
            {
                "type": "mindspore.Tensor",
                "dtype": "Float32",
                "shape": [3],
                "data_name": "../../../secret.npy",
            }
        ],
        [np.ones(3)],
        "Float32",
    )
    np.save(made.arrays / "a.npy", np.ones(3, np.float32))
    made.write()
    assert {call.verdict for call in probe.replay(made.path, jobs=1)} == {"not replayable"}
    script = tmp_path / "repro.py"
    assert main(["replay", str(made.path), "Functional.square", "--script", str(script)]) == 0
    done = processes.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert "not replayable" in done.stdout
    assert not (tmp_path / "harm").exists()
