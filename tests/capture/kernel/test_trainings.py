# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level L2 in trainings: the files of a step, its statistics, its number, and the bits of the training."""

from __future__ import annotations

import csv
import functools
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import probe
from probe.measure.statistics import statistics
from probe.reading.commands.main import run_command
from probe.reading.dumps.kernels.tables import HEAD, parse
from tests.support import processes
from tests.support.paths import ROOT, environment, program
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: MindSpore's own columns
STATISTICS = ["Max Value", "Min Value", "Avg Value", "L2Norm Value"]


def run(**given):
    """Run the training program; return its JSON line, and all that it logged."""
    command = program("kernels", json.dumps(given))
    done = processes.run(
        command, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@functools.lru_cache
def bare(net, loop, level, steps=3):
    """Return the bits of a training without a dump."""
    return run(net=net, loop=loop, level=level, steps=steps)[0]["seen"]


def dump(folder, task="tensor", own=None, **settings):
    return {"level": "L2", "task": task, "dump_path": str(folder), task: own or {}, **settings}


def arrays(folder, step):
    """Return the parts of the names of all arrays of a step, parameters apart: (kernels, parameters)."""
    names = [parse(path.name) for path in Path(folder).glob(f"rank_0/Net/*/{step}/*.npy")]
    assert all(names)
    return [name for name in names if not name.is_parameter], [
        name for name in names if name.is_parameter
    ]


_SLOT = re.compile(r"x\w+\[const vector\]")


def arguments(line):
    """Return the arguments of a node in MindSpore's text of a graph."""
    depth, texts = 0, [""]
    for letter in line[line.index("(", line.index(" = ")) :]:
        depth += (letter in "([{") - (letter in ")]}")
        if not depth:
            break
        if letter == "," and depth == 1:
            texts.append("")
        else:
            texts[-1] += letter
    return [text.strip(" (") for text in texts]


def without_number(name):
    """Return a kernel's name without its op number: MindSpore's files and execution order may differ in it."""
    return re.sub(r"-op\d+$", "", name)


def kernels_of(folder):
    """Return (graph, kernel without op number) -> (slots that nodes fill, slots of constants, outputs) of each one.

    The kernels are those of the execution order. MindSpore has no memory for some constants; others are dumped.
    """
    found = {}
    for order in Path(folder).glob("rank_0/execution_order/ms_execution_order_graph_*.csv"):
        graph = order.stem.rpartition("_")[2]
        text = (
            Path(folder) / "rank_0" / "graphs" / f"ms_output_trace_code_graph_{graph}.ir"
        ).read_text()
        sides, node, device = {}, "", ""
        for line in text.splitlines():
            if re.match(r"  %\d+\(", line):
                node, device = line, ""
            elif node and not device and not line.startswith("      "):
                node += line  # the values of a constant, in several lines
            elif node and line.lstrip().startswith(": (") and "[const vector]" in line:
                device = line
            scope = re.search(r"# Fullname with scope: \((.*)\)", line)
            if scope and device:
                left, _, right = device.partition(" -> ")
                given = arguments(node)[: len(_SLOT.findall(left))]
                filled = {slot for slot, text in enumerate(given) if text.startswith("%")}
                sides[scope[1]] = filled, set(range(len(given))) - filled, len(_SLOT.findall(right))
        names = order.read_text().splitlines()[1:]
        assert names
        for name in names:
            found.setdefault((graph, without_number(name.replace("/", "_"))), []).append(
                sides[name]
            )
    return found


def slots_of(folder, step):
    """Return (graph, kernel without op number) -> (side, slot) of all arrays of each one in a step."""
    slots = {}
    for path in Path(folder).glob(f"rank_0/Net/*/{step}/*.npy"):
        name = parse(path.name)
        if not name.is_parameter:
            seen = slots.setdefault((path.parts[-3], without_number(name.op_name)), {}).setdefault(
                name.op_name, []
            )
            assert (name.io, name.slot) not in seen
            seen.append((name.io, name.slot))
    return {key: list(named.values()) for key, named in slots.items()}


def check_step(folder, step, graph_kernels):
    """Check that a step has exactly one array for each slot of each kernel; return how many."""
    assert arrays(folder, step)[1]
    slots = slots_of(folder, step)
    assert set(slots) == set(graph_kernels)
    for key, wanted in graph_kernels.items():
        left = list(wanted)
        for one in slots[key]:
            inputs = {slot for side, slot in one if side == "input"}
            outputs = {slot for side, slot in one if side == "output"}
            (place, *_) = [
                place
                for place, (filled, constants, count) in enumerate(left)
                if inputs - constants == filled and outputs == set(range(count))
            ] or [None]
            assert place is not None, (key, one, left)
            del left[place]
        assert not left, key
    return len(arrays(folder, step)[0])


def found(kernels):
    return Counter((name.op_name, name.io, name.slot) for name in kernels)


@pytest.mark.thorough
@pytest.mark.parametrize("level", ["O0", "O1"])
@pytest.mark.parametrize("loop", thorough_but(["own"], ["own", "model"]))
@pytest.mark.parametrize("net", thorough_but(["lenet"], ["lenet", "gpt"]))
def test_every_kernel_of_every_step_has_its_slots_and_the_training_keeps_its_bits(
    tmp_path, net, loop, level
):
    folder = tmp_path / "dump"
    seen, logged = run(net=net, loop=loop, level=level, settings=dump(folder))
    assert seen["seen"] == bare(net, loop, level)
    assert "3 steps in" in logged
    kernels = kernels_of(folder)
    counts = {check_step(folder, step, kernels) for step in range(3)}
    assert len(counts) == 1 and counts.pop() > 300
    assert not arrays(folder, 3)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("net", thorough_but(["lenet"], ["lenet", "gpt"]))
def test_list_data_mode_and_step_reduce_the_files_exactly(tmp_path, net):
    everything = tmp_path / "all"
    run(net=net, settings=dump(everything))
    wanted = found(arrays(everything, 1)[0])
    names = {name for name, _, _ in wanted}

    some = tmp_path / "some"
    own = {"list": ["matmul", "name-regex(Gradients/.*Add.*)"], "data_mode": ["output"]}
    seen, _ = run(net=net, settings=dump(some, own=own, step=[1]))
    assert seen["seen"] == bare(net, "own", "O0")
    chosen = {
        name
        for name in names
        if "matmul" in name.rpartition("_")[2].lower()
        or (name.startswith("Gradients_") and "Add" in name)
    }
    assert 0 < len(chosen) < len(names)
    assert found(arrays(some, 1)[0]) == Counter(
        {key: 1 for key in wanted if key[0] in chosen and key[1] == "output"}
    )
    assert not arrays(some, 0)[0] and not arrays(some, 2)[0]

    one = sorted(name for name in names if name.startswith("Default_"))[0]
    full_name = next(
        line
        for order in everything.glob("rank_0/execution_order/ms_execution_order_graph_*.csv")
        for line in order.read_text().splitlines()
        if line.replace("/", "_") == one
    )
    single = tmp_path / "single"
    run(
        net=net,
        settings=dump(single, own={"list": [full_name], "data_mode": ["input"]}, step=["every 2"]),
    )
    inputs = Counter({key: 1 for key in wanted if key[:2] == (one, "input")})
    assert inputs
    assert [found(arrays(single, step)[0]) for step in range(3)] == [inputs, Counter(), inputs]


@pytest.mark.thorough
@pytest.mark.parametrize("loop", ["own", "model"])
def test_statistics_are_ours_of_the_same_arrays(tmp_path, loop):
    folder = tmp_path / "dump"
    seen, _ = run(loop=loop, settings=dump(folder, "statistics", keep_arrays=True))
    assert seen["seen"] == bare("lenet", loop, "O0")
    count = 0
    for table in folder.glob("rank_0/Net/*/*/statistic.csv"):
        with open(table, newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == [*HEAD, *STATISTICS]
        files = {parse(path.name).key: path for path in table.parent.glob("*.npy")}
        assert len(rows) == len(files)
        for row in rows:
            key = tuple(
                int(row[name]) if name in HEAD[2:5] or name == "Slot" else row[name]
                for name in HEAD[:7]
            )
            array = np.load(files[key])
            ours = statistics(array)
            assert (row["Data Type"], int(row["Data Size"])) == (array.dtype.name, array.nbytes)
            assert row["Shape"] == f"({','.join(map(str, array.shape))})"
            assert [row[name] for name in STATISTICS] == [
                "" if ours[name] is None else str(ours[name])
                for name in ("Max", "Min", "Mean", "Norm")
            ]
            count += 1
    assert count > 1000


@pytest.mark.thorough
@pytest.mark.proof
def test_statistics_of_50_steps_keep_the_disk_below_two_steps_and_pandas_reads_them(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    one = tmp_path / "one"
    run(loop="model", steps=1, settings=dump(one))
    step_bytes = sum(path.stat().st_size for path in one.rglob("*.npy"))
    folder = tmp_path / "dump"
    seen, _ = run(loop="model", steps=50, settings=dump(folder, "statistics"))
    assert seen["seen"] == bare("lenet", "model", "O0", 50)
    assert 0 < seen["most"] <= 2 * step_bytes
    assert not list(folder.rglob("*.npy"))
    tables = sorted(
        folder.glob("rank_0/Net/0/*/statistic.csv"), key=lambda path: int(path.parent.name)
    )
    assert [int(path.parent.name) for path in tables] == list(range(50))
    wanted = len(arrays(one, 0)[0])
    for path in tables:
        table = pandas.read_csv(path)
        assert list(table.columns) == [*HEAD, *STATISTICS]
        assert (table["Op Type"] != "Parameter").sum() == wanted


@pytest.mark.thorough
@pytest.mark.parametrize("task", thorough_but(["statistics"], ["tensor", "statistics"]))
def test_max_disk_ends_the_dump_and_not_the_training(tmp_path, task):
    one = tmp_path / "one"
    run(loop="model", steps=1, settings=dump(one))
    step_bytes = sum(path.stat().st_size for path in one.rglob("*.npy"))
    folder = tmp_path / "dump"
    seen, logged = run(
        loop="model",
        steps=4,
        settings=dump(folder, task, keep_arrays=True, max_disk=int(2.5 * step_bytes)),
    )
    assert seen["seen"] == bare("lenet", "model", "O0", 4)
    assert logged.count("no more kernels are dumped") == 1
    assert seen["most"] <= 2.5 * step_bytes
    assert len(arrays(folder, 0)[0]) == len(arrays(folder, 1)[0]) > 300
    assert not arrays(folder, 2)[0]
    small = tmp_path / "small"
    seen, logged = run(loop="model", settings=dump(small, task, max_disk="1KB"))
    assert seen["seen"] == bare("lenet", "model", "O0")
    assert logged.count("no more kernels are dumped") == 1
    assert not arrays(small, 1)[0]


def test_chosen_statistics_have_mindspores_columns(tmp_path):
    folder = tmp_path / "dump"
    own = {"summary_mode": ["max", "nan count", "zero count", "md5"]}
    run(steps=1, settings=dump(folder, "statistics", own))
    table = next(folder.glob("rank_0/Net/0/0/statistic.csv"))
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[10:] == ["Max Value", "NaN Count", "Zero Count", "MD5"]
    assert all(len(row["MD5"]) == 32 and row["NaN Count"] == "0" for row in rows)


@pytest.mark.thorough
def test_a_resumed_training_goes_on_beside_the_earlier_steps(tmp_path):
    folder = tmp_path / "dump"
    run(loop="model", steps=7, settings=dump(folder, "statistics"))
    before = {path: path.read_bytes() for path in folder.rglob("statistic.csv")}
    seen, logged = run(loop="model", steps=3, init=7, settings=dump(folder, "statistics"))
    assert len(seen["seen"]) == 3
    assert "another run" not in logged
    assert probe.open(folder).steps == list(range(10))
    assert all(path.read_bytes() == content for path, content in before.items())
    # with a loop of one's own, set_init_step does the same
    run(steps=2, first=20, settings=dump(folder, "statistics"))
    assert probe.open(folder).steps == [*range(10), 20, 21]
    assert not (tmp_path / "dump-2").exists()
    # and without a number it is another run, beside it
    _, logged = run(steps=1, settings=dump(folder, "statistics"))
    assert "holds files of another run; this run writes into" in logged
    assert probe.open(tmp_path / "dump-2").steps == [0]
    run(steps=1, settings=dump(folder, "statistics", overwrite=True))
    assert probe.open(folder).steps == [0]


@pytest.mark.thorough
def test_in_pynative_mode_compiled_parts_are_dumped_and_a_line_says_so(tmp_path):
    folder = tmp_path / "dump"
    seen, logged = run(loop="jit", settings=dump(folder))
    assert seen["seen"] == bare("lenet", "jit", "O0")
    assert (
        logged.count("MindSpore dumps the kernels of compiled functions and optimizers only") == 1
    )
    kernels = kernels_of(folder)
    types = {name.op_type for name in arrays(folder, 0)[0]}
    assert {"ReLU", "Mul", "ApplyMomentum"} <= types
    assert "Conv2D" not in types
    assert len({check_step(folder, step, kernels) for step in range(3)}) == 1


@pytest.mark.thorough
def test_child_processes_inherit_nothing(tmp_path):
    seen, _ = run(steps=1, settings=dump(tmp_path / "dump"))
    assert (seen["child"], seen["patched"]) == ("None", False)


@pytest.mark.thorough
def test_the_users_own_configuration_is_respected_and_said(tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    config = tmp_path / "mine.json"
    run(steps=1, settings=dump(tmp_path / "made"))
    content = json.loads((tmp_path / "made" / "kernel_kbyk_dump.json").read_text())
    content["common_dump_settings"].update(path=str(mine), iteration="all", initial_iteration=0)
    config.write_text(json.dumps(content))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))
    seen, logged = run(loop="model", settings=dump(tmp_path / "dump"))
    assert f"MINDSPORE_DUMP_CONFIG is set to {config}" in logged
    assert seen["child"] == str(config)
    assert probe.open(mine).steps == [0, 1, 2]
    assert not (tmp_path / "dump").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("early", "reason"),
    [("graph", "a graph was compiled"), ("communication", "communication was initialised")],
)
def test_a_first_start_that_is_too_late_is_a_clear_error(tmp_path, early, reason):
    with pytest.raises(
        RuntimeError, match=rf"UsageError: start\(\): too late for level L2, {reason} before\."
    ):
        run(early=early, settings=dump(tmp_path / "dump"))


def test_a_killed_run_loses_no_array_and_recover_names_those_unmeasured(tmp_path, capsys):
    whole, folder = tmp_path / "whole", tmp_path / "dump"
    run(settings=dump(whole))
    command = program(
        "kernels", json.dumps({"trouble": "kill", "settings": dump(folder, "statistics")})
    )
    done = processes.run(command, capture_output=True, check=False, timeout=300, cwd=ROOT)
    assert done.returncode == -9
    left = {path.parent for path in folder.rglob("*.npy")}
    assert run_command("0", ["recover", str(folder)]) == 0
    said = capsys.readouterr().out
    assert all(f"{path}: " in said and "arrays were not measured" in said for path in left)
    assert left or "nothing to recover" in said
    found, wanted = probe.open(folder), probe.open(whole)
    assert found.steps == [0, 1]
    for step in (0, 1):
        kernels = [call.name for call in wanted[step].calls(kind="Kernel")]
        assert sorted(call.name for call in found[step].calls(kind="Kernel")) == sorted(kernels)
        for name in kernels:
            assert len(list(found[step][name].tensors())) == len(list(wanted[step][name].tensors()))


@pytest.mark.parametrize("trouble", ["remove", "table"])
def test_an_error_of_the_tool_never_reaches_the_training(tmp_path, trouble):
    folder = tmp_path / "dump"
    seen, logged = run(trouble=trouble, settings=dump(folder, "statistics"))
    assert seen["seen"] == bare("lenet", "own", "O0")
    if trouble == "table":
        assert logged.count("stays unmeasured, the training continues") == 1
        assert len(list((folder / "rank_0" / "Net" / "0" / "2").glob("*.npy"))) > 300


ANOTHER = """
import logging, sys
import mindspore as ms
from mindspore import ops
from probe import PrecisionDebugger, UsageError

logging.basicConfig()
ms.set_context(mode=ms.GRAPH_MODE)
folder = sys.argv[1]


@ms.jit
def double(x):
    return ops.relu(x) + x


def step(debugger):
    debugger.start()
    double(ms.Tensor([1.0, 2.0]))
    debugger.stop()
    debugger.step()


step(PrecisionDebugger(level="L2", task="tensor", dump_path=folder))
PrecisionDebugger.close()
again = PrecisionDebugger(level="L2", task="tensor", dump_path=folder)
again.set_init_step(1)
step(again)
other = PrecisionDebugger(level="L2", task="tensor", dump_path=folder + "_other")
try:
    other.start()
except UsageError as error:
    print(error)
double(ms.Tensor([1.0, 2.0]))
"""


@pytest.mark.thorough
def test_a_process_has_one_configuration(tmp_path):
    folder = tmp_path / "dump"
    (tmp_path / "another.py").write_text(ANOTHER)
    command = [sys.executable, str(tmp_path / "another.py"), str(folder)]
    done = processes.run(
        command, check=True, env=environment(), timeout=200, capture_output=True, text=True
    )
    assert f"start(): MindSpore already dumps kernels into {folder}." in done.stdout
    assert probe.open(folder).steps == [0, 1]
    assert not (tmp_path / "dump_other").exists()


DTYPES = """
import json, sys
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from probe import PrecisionDebugger

ms.set_context(mode=ms.GRAPH_MODE)
for_dump, task = sys.argv[1:]
debugger = PrecisionDebugger(level="L2", task=task, dump_path=for_dump)


@ms.jit
def convert(x):
    half, brain = ops.cast(x, ms.float16), ops.cast(x, ms.bfloat16)
    wide, whole, small = ops.cast(x, ms.float64), ops.cast(x, ms.int64), ops.cast(x, ms.uint8)
    return half, brain, wide, whole, small, ops.isnan(x / 0), x / 0


x = Tensor(np.array([[1.5, 0, 3], [0, 2, 5]], np.float32))
debugger.start()
convert(x)
debugger.stop()
debugger.step()
"""


LONG = """
import sys
import mindspore as ms
import numpy as np
from mindspore import nn, ops
from probe import PrecisionDebugger

ms.set_context(mode=ms.GRAPH_MODE)


class Leaf(nn.Cell):
    def construct(self, x):
        return ops.relu(x) + 1


class Around(nn.Cell):
    def __init__(self, inner):
        super().__init__()
        self.a_very_long_name_of_a_cell_that_goes_on_and_on_and_on_and_on_and_on = inner

    def construct(self, x):
        return self.a_very_long_name_of_a_cell_that_goes_on_and_on_and_on_and_on_and_on(x)


net = Around(Around(Around(Around(Leaf()))))
debugger = PrecisionDebugger(level="L2", task=sys.argv[2], dump_path=sys.argv[1])
debugger.start(net)
net(ms.Tensor(np.array([[-1.0, 2.0]], np.float32)))
debugger.stop()
debugger.step()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_names_that_are_too_long_for_a_file_are_read_in_full(tmp_path, task):
    (tmp_path / "long.py").write_text(LONG)
    command = [sys.executable, str(tmp_path / "long.py"), str(tmp_path / "dump"), task]
    processes.run(command, check=True, env=environment(), timeout=200, capture_output=True)
    folder = tmp_path / "dump" / "rank_0" / "Net" / "0" / "0"
    assert len((folder / "mapping.csv").read_text().splitlines()) == 5
    dump = probe.open(tmp_path / "dump")[0]
    relu, add = dump.calls(kind="Kernel")
    assert len(relu.name) > 255 and relu.name.endswith("-Leaf_ReLU-op0.0.forward")
    assert (
        relu.cell
        == add.cell
        == ".".join(["a_very_long_name_of_a_cell_that_goes_on" + "_and_on" * 4] * 4) + ".Leaf"
    )
    assert (relu.outputs["0"].max, add.outputs["0"].max) == (2.0, 3.0)
    if task == "tensor":
        np.testing.assert_array_equal(add.outputs["0"].array(), [[1.0, 3.0]])


@pytest.mark.thorough
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_every_dtype_is_measured_and_read(tmp_path, task):
    folder = tmp_path / "dump"
    program_file = tmp_path / "dtypes.py"
    program_file.write_text(DTYPES)
    command = [sys.executable, str(program_file), str(folder), task]
    processes.run(command, check=True, env=environment(), timeout=200, capture_output=True)
    dump = probe.open(folder)[0]
    outputs = {
        tensor.dtype: tensor
        for call in dump.calls(kind="Kernel")
        if "Cast" in call.name
        for tensor in call.outputs.values()
    }
    assert set(outputs) == {"Float16", "BFloat16", "Float64", "Int64", "UInt8"}
    for dtype, tensor in outputs.items():
        wanted = [[1, 0, 3], [0, 2, 5]] if "Int" in dtype else [[1.5, 0, 3], [0, 2, 5]]
        assert (tensor.max, tensor.min, tensor.mean) == (5, 0, pytest.approx(np.mean(wanted))), (
            dtype
        )
        if task == "tensor":
            np.testing.assert_array_equal(tensor.array().astype(np.float64), wanted)
    finding = probe.first_nan(probe.open(folder))
    assert (
        finding is not None
        and "makes NaN of finite inputs" in finding.sentence
        and "Div" in finding.name
    )


@pytest.mark.thorough
def test_cells_of_kernels_are_found_by_their_scopes(tmp_path):
    folder = tmp_path / "dump"
    run(loop="model", steps=1, settings=dump(folder, "statistics"))
    cells = {call.entry["scope"]: call.cell for call in probe.open(folder)[0].calls(kind="Kernel")}
    below = "Default/network-WithLossCell/_backbone-LeNet"
    assert cells[f"{below}/features-SequentialCell/3-Conv2d/Conv2D-op0"] == "features.3.Conv2d"
    assert [cell for scope, cell in cells.items() if "optimizer-Momentum" in scope if cell] == []
    # MindSpore names the backward of equal Cells after one of them
    back = {
        cell
        for scope, cell in cells.items()
        if scope.startswith("Gradients/") and "/0-Dense/Grad_MatMul/" in scope
    }
    assert back == {"classifier.0.Dense"}
    assert cells[f"{below}/classifier-SequentialCell/4-Dense/BiasAdd-op0"] == "classifier.4.Dense"


@pytest.mark.thorough
def test_versions_of_mindspore_give_the_same_layout(tmp_path):
    """The installed MindSpore is one of those named in the limits; another one is tried where its Python is given."""
    python = os.environ.get("PROBE_OTHER_PYTHON")
    if not python:
        pytest.skip("PROBE_OTHER_PYTHON is not set to the Python of another MindSpore")
    folder = tmp_path / "dump"
    command = [python, "-m", "tests.programs.kernels", json.dumps({"settings": dump(folder)})]
    processes.run(command, check=True, cwd=ROOT, timeout=300, stdout=sys.stderr)
    assert check_step(folder, 0, kernels_of(folder)) > 300
