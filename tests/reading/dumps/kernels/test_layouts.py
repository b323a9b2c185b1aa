# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Kernel dumps of all layouts, read through probe.open: names, Cells, steps and ranks against a table."""

from __future__ import annotations

import numpy as np
import pytest

import probe
from probe.reading.commands.main import run_command
from tests.reading.dumps.kernels import layouts
from tests.reading.dumps.kernels.layouts import CONV, GRADIENT, KERNELS, LAYOUTS, RELU, UPDATE

#: Cell of each kernel where the model is known
CELLS = {CONV: "conv3.Conv2d", RELU: "features.1.ReLU", GRADIENT: "conv3.Conv2d", UPDATE: None}
OTHERS = ["Constant.data-3", "Kernel.Default_Mul-op0.0.forward", "Parameter.conv3_weight"]
#: layout -> steps, ranks, dtype, whether names have the scope, whether the Cells are known, entries beside the kernels
TABLE = {
    "cpu": ([0, 1], [0], "Float32", True, True, OTHERS),
    "ascend_o1": ([5], [0], "BFloat16", False, True, ["Kernel." + "A" * 260 + "-op7.0.forward"]),
    "ascend_statistics": ([2], [0], "Float32", True, True, []),
    "ascend_o2": ([3, 4], [1], "Float32", True, True, ["Kernel." + "B" * 270 + ".0.forward"]),
    "ascend_o2_path": ([6], [2], "Float16", True, False, []),
    "ranks": ([0, 2, 11], [0, 1, 10], "Float32", True, False, []),
    "cpu_ranks": ([3], [0, 1, 10], "Float32", True, True, []),
}


@pytest.fixture(params=LAYOUTS)
def layout(request, tmp_path):
    """The name of a layout, and its folder."""
    folder = tmp_path / request.param
    LAYOUTS[request.param](folder)
    return request.param, folder


def entry(kernel, has_scope):
    return (
        f"Kernel.{kernel.replace('/', '_') if has_scope else kernel.rpartition('/')[2]}.0.forward"
    )


def test_names_cells_steps_and_ranks_are_those_of_the_table(layout):
    name, folder = layout
    steps, ranks, dtype, has_scope, has_cells, others = TABLE[name]
    run = probe.open(folder)
    assert (run.steps, run.ranks) == (steps, ranks)
    assert [(dump.step, dump.rank) for dump in run] == [
        (step, rank) for step in steps for rank in ranks
    ]
    for dump in run:
        kernels = [entry(kernel, has_scope) for kernel in KERNELS]
        assert sorted(dump.data) == sorted([*kernels, *others])
        for kernel, kind in KERNELS.items():
            call = dump[entry(kernel, has_scope)]
            assert call.cell == (CELLS[kernel] if has_cells else None), kernel
            assert call.entry["op_type"] == kind
            if name not in ("ascend_o2", "ascend_o2_path", "ranks", "cpu_ranks"):
                assert call.entry["scope"] == kernel
            assert (list(call.inputs), list(call.outputs)) == (["0", "1"], ["0"])
            for side, places in (("input", call.inputs), ("output", call.outputs)):
                for slot, tensor in places.items():
                    wanted = layouts.values(kernel, side, int(slot), dump.step, dump.rank)
                    assert (tensor.dtype, tensor.shape) == (dtype, (2, 3))
                    if not (name == "ascend_statistics" and kernel == RELU and side == "output"):
                        assert tensor.max == wanted.max() and tensor.min == wanted.min()
                        assert tensor.mean == pytest.approx(wanted.mean())
                        assert tensor.norm == pytest.approx(np.linalg.norm(wanted), rel=1e-6)
                    if tensor.path:
                        np.testing.assert_array_equal(
                            tensor.array().astype(np.float32), wanted.astype(tensor.array().dtype)
                        )
                    assert bool(tensor.path) == (name != "ascend_statistics")
        assert dump.header["level"] == "L2"


def test_the_order_is_that_of_the_timestamps(layout):
    name, folder = layout
    kernels = [call.name for call in next(iter(probe.open(folder))).calls(kind="Kernel")]
    wanted = [entry(kernel, TABLE[name][3]) for kernel in KERNELS]
    assert [kernel for kernel in kernels if kernel in wanted] == wanted


def test_probe_show_and_probe_nan_work_on_every_layout(layout, capsys):
    name, folder = layout
    assert run_command("0", ["show", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "level L2" in shown and "Kernel" in shown
    assert run_command("0", ["show", str(folder), "--name", "Conv2D", "--format", "csv"]) == 0
    assert "Conv2D-op12" in capsys.readouterr().out
    found = run_command("0", ["nan", str(folder)])
    said = capsys.readouterr()
    if name == "ascend_statistics":  # and its last line is cut
        assert found == 1
        assert f"{entry(RELU, True)} in features.1.ReLU" in said.out
        assert "makes NaN of finite inputs" in said.out
    else:
        assert found == 0 and said.out.startswith("no call makes NaN/Inf in step")


def test_a_cut_line_is_said_and_the_rest_is_read(tmp_path):
    layouts.ascend_statistics(tmp_path / "dump")
    dump = probe.open(tmp_path / "dump")[2]
    assert len(dump) == len(KERNELS)
    (note,) = dump.notes
    assert "line 14 is cut or wrong" in str(note)


def test_a_kernel_that_runs_again_is_a_further_entry(tmp_path):
    folder = tmp_path / "rank_0" / "Net" / "0" / "0"
    for run in range(3):
        for side, slot in (("input", 0), ("output", 0)):
            layouts.save(
                folder,
                f"Add.Default_Add-op1.0.0.{1000 + 10 * run}.{side}.{slot}.ND.Float32.npy",
                np.full(2, float(run)),
            )
    dump = probe.open(tmp_path)[0]
    assert list(dump.data) == [f"Kernel.Default_Add-op1.{run}.forward" for run in range(3)]
    assert [dump[name].outputs["0"].max for name in dump.data] == [0.0, 1.0, 2.0]


def test_two_graphs_with_kernels_of_one_name_are_kept_apart(tmp_path):
    for graph, slots in ((0, (0, 1)), (1, (2,))):
        for slot in slots:
            layouts.save(
                tmp_path / "rank_0" / "Net" / str(graph) / "0",
                f"Add.Default_Add-op1.0.0.{1000 + 10 * graph + slot}.input.{slot}.ND.Float32.npy",
                np.ones(1, np.float32),
            )
    dump = probe.open(tmp_path)[0]
    assert [list(dump[name].inputs) for name in dump.data] == [["0", "1"], ["0", "1", "2"]]
    assert [len(list(dump[name].tensors())) for name in dump.data] == [2, 1]


def test_recover_names_the_arrays_that_a_killed_run_left(tmp_path, capsys):
    folder = tmp_path / "dump"
    layouts.cpu(folder)
    layouts.run_file(folder / "rank_0", task="statistics", keep_arrays=False)
    assert run_command("0", ["recover", str(folder)]) == 0
    said = capsys.readouterr().out
    assert (
        f"{folder}/rank_0/Net/0/0: 13 arrays were not measured; they are measured when they are read"
        in said
    )
    assert "no journal" not in said
    (note, *_) = probe.open(folder)[0].notes
    assert "13 arrays were left unmeasured" in str(note)
    layouts.run_file(folder / "rank_0", task="statistics", keep_arrays=True)
    assert run_command("0", ["recover", str(folder)]) == 0
    assert "nothing to recover" in capsys.readouterr().out


def test_a_dump_of_kernels_can_be_compared(tmp_path, capsys):
    layouts.cpu(tmp_path / "a")
    layouts.cpu(tmp_path / "b")
    assert run_command("0", ["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    name = next((tmp_path / "b").glob("rank_0/Net/0/1/ReLU.*output.0*.npy"))
    np.save(name, np.load(name) + 50)
    capsys.readouterr()
    assert run_command("0", ["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "ReLU-op13" in capsys.readouterr().out


def test_a_slot_that_was_not_dumped_keeps_its_place(tmp_path):
    """An attribute of a kernel is an input, and no array."""
    for slot in (0, 3):
        layouts.save(
            tmp_path / "rank_0" / "Net" / "0" / "0",
            f"Add.Default_Add-op1.0.0.{1000 + slot}.input.{slot}.ND.Float32.npy",
            np.full(2, float(slot), np.float32),
        )
    dump = probe.open(tmp_path)[0]
    (entry,) = dump.data.values()
    assert [record and record["Max"] for record in entry["input_args"]] == [0.0, None, None, 3.0]
