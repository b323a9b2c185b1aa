# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe.open: runs, dumps, calls and tensors, of every kind of folder."""

from __future__ import annotations

import sys

import mindspore as ms
import ml_dtypes
import numpy as np
import pytest
from mindspore import ops

import probe
from probe import UsageError
from probe.reading.dumps.entry_view import TensorNumbers
from probe.store.documents import JsonDocuments
from tests.reading.builders import forward, tensor, value, write
from tests.support import nets, processes

pytestmark = pytest.mark.medium

HEADER = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None}


@pytest.fixture
def gpt(debug):
    """A run of two steps of the small GPT."""
    net, train = nets.build("gpt")
    debugger = debug(level="mix")
    for i in range(2):
        debugger.start(net)
        train(i)
        debugger.stop()
        debugger.step()
    return probe.open(debug.dump_path)


def test_a_run_tells_steps_ranks_and_calls(gpt):
    assert (gpt.steps, gpt.ranks, len(gpt)) == ([0, 1], [None], 2)
    assert [dump.step for dump in gpt] == [0, 1]
    call = gpt[0]["Functional.softmax.1.forward"]
    assert (call.api, call.kind, call.number, call.direction) == (
        "softmax",
        "Functional",
        1,
        "forward",
    )
    assert call.cell == "blocks.1.attention.Attention"
    assert call.parent.name == "Cell.blocks.1.attention.Attention.forward.0"
    assert "nets.py" in call.stack[0]
    assert (call.raised, call.pending) == (None, None)
    assert call.inputs["1"] == -1
    backward = gpt[0]["Functional.softmax.1.backward"]
    assert backward.stack == call.stack
    assert backward.direction == "backward"


@pytest.mark.parametrize(
    ("count", "found"), [(3, 3), (2.0, 2), (float("inf"), 0), (float("nan"), 0), (None, 0)]
)
def test_a_count_of_nan_is_a_whole_number_whatever_a_table_says(count, found):
    assert TensorNumbers({"nan_count": count}).nan_count == found


def test_a_tensor_tells_its_numbers(gpt):
    found = gpt[0]["Functional.softmax.1.forward"].outputs["0"]
    assert found.dtype == "Float32"
    assert found.shape == (4, 2, 16, 16)
    assert (found.max, found.min) == (1.0, 0.0)
    assert found.mean == pytest.approx(1 / 16)
    assert found.norm == found.stats["Norm"]
    assert (found.nan_count, found.md5, found.is_nonfinite) == (0, None, False)
    assert repr(found).startswith(
        "<Tensor Functional.softmax.1.forward.output.0 Float32 4x2x16x16: Max 1,"
    )
    assert "<th>Norm</th>" in found._repr_html_()
    with pytest.raises(UsageError, match="has no array"):
        found.array()


def test_a_notebook_shows_runs_dumps_and_calls_as_tables(gpt):
    assert gpt._repr_html_().count("<tr>") == len(gpt)
    assert (
        gpt[0]._repr_html_().count("<tr>") == 51
    )  # of more calls the first 50, and a line of dots
    shown = gpt[0]["Functional.softmax.1.forward"]._repr_html_()
    assert "<th>output.0</th><td>Float32</td><td>4x2x16x16</td><td>1</td><td>0</td>" in shown


def test_the_dataflow_links_inputs_to_the_calls_that_made_them(gpt):
    dump = gpt[0]
    softmax = dump["Functional.softmax.1.forward"]
    assert softmax.inputs["0"].producer.name == "Tensor.__add__.4.forward"
    assert [user.name for user in softmax.outputs["0"].users] == ["Functional.matmul.3.forward"]
    assert softmax.inputs["0"].producer.inputs["1"].producer is None  # the mask
    gradient = dump["Functional.softmax.1.backward"].inputs["0"]
    assert gradient.producer.name == "Functional.matmul.3.backward"
    weight = dump["Cell.head.Dense.forward.0"].parameters["weight"]
    assert weight.producer is None


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"like": "softmax"}, 4),
        ({"regex": r"softmax\.\d\.backward$"}, 2),
        ({"like": "softmax", "direction": "forward", "cell": "blocks.1"}, 1),
        ({"kind": "Cell", "cell": "blocks.0.attention.q"}, 3),
        ({"like": "no such name"}, 0),
    ],
)
def test_calls_are_found(gpt, asked, count):
    assert len(list(gpt[0].calls(**asked))) == count


def test_the_tree_of_the_cells(gpt):
    tree = gpt[0].tree
    block = tree.children["blocks.0.Block"]
    assert [path.rpartition(".")[2] for path in block.children] == [
        "LayerNorm",
        "Attention",
        "LayerNorm",
        "Dense",
        "Dense",
    ]
    assert "Functional.softmax.0.forward" in [
        call.name for call in block.children["blocks.0.attention.Attention"].calls
    ]
    assert (0, tree) in tree.walk()


def test_the_table_has_a_row_for_each_tensor(gpt, tmp_path):
    rows = list(gpt.table())
    assert {row["step"] for row in rows} == {0, 1}
    assert len(rows) == sum(len(list(call.tensors())) for dump in gpt for call in dump)
    gpt.to_csv(tmp_path / "table.csv")
    assert len((tmp_path / "table.csv").read_text().splitlines()) == len(rows) + 1
    assert gpt.to_dict()["Norm"] == [row["Norm"] for row in rows]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames_are_extras(gpt, package, monkeypatch):
    convert = getattr(gpt, f"to_{package}")
    try:
        __import__(package)
    except ImportError:
        with pytest.raises(UsageError, match=f"pip install {package}"):
            convert()
    else:
        assert len(convert()) == len(list(gpt.table()))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"pip install {package}"):
        convert()


def test_trends_over_steps(gpt):
    series = gpt.trend("head.Dense.parameters_grad", stat="norm")
    assert list(series) == ["Cell.head.Dense.parameters_grad.0.weight.0"]
    by_step = series["Cell.head.Dense.parameters_grad.0.weight.0"][None]
    assert list(by_step) == [0, 1]
    with pytest.raises(UsageError, match="no tensor"):
        gpt.trend("no such name")


def test_arrays_come_in_their_dtype_and_the_document_is_read_once(debug, monkeypatch):
    x = ms.Tensor(np.arange(6, dtype=np.float32)).astype(ms.bfloat16)
    debug.record(lambda: [ops.reshape(x, (2, 3)), x.astype(ms.float32)], task="tensor")
    run = probe.open(debug.dump_path)
    call = run[0]["Functional.reshape.0.forward"]
    array = call.outputs["0"].array()
    assert array.dtype == ml_dtypes.bfloat16
    assert array.shape == (2, 3)
    files = sorted((debug.dump_path / "step0/rank/dump_tensor_data").iterdir())
    before = {path.name: probe.load(path).dtype for path in files}
    assert before["Functional.reshape.0.forward.input.0.npy"] == ml_dtypes.bfloat16
    assert before["Tensor.to.0.forward.output.0.npy"] == np.float32
    monkeypatch.setattr(
        "probe.reading.dumps.document.read_document", None
    )  # whatever is read now was not kept
    assert {path.name: probe.load(path).dtype for path in files} == before


def test_folders_of_msprobe(tmp_path):
    entry = forward([tensor()], [tensor(mean=1.0)])
    write(tmp_path / "step0" / "proc4711", {"Functional.relu.0.forward": entry})
    run = probe.open(tmp_path)
    assert (run.steps, run.ranks) == ([0], [None])
    write(tmp_path / "step0" / "proc4712", {"Functional.relu.0.forward": entry})
    assert probe.open(tmp_path).ranks == ["proc4711", "proc4712"]


def test_names_of_an_older_recorder(tmp_path):
    folder = write(
        tmp_path / "step0" / "rank0",
        {
            "Cell.fc.Dense.parameters_grad": {"weight": [tensor()]},
            "Tensor.add.0.backward": {"grad_output": [tensor()], "grad_input": [tensor(), None]},
        },
        stack={"Tensor.add.0.forward": ["File a.py, line 1, in f, \n x + y"]},
    )
    dump = probe.open(folder)[0]
    assert dump["Cell.fc.Dense.parameters_grad"].outputs["weight.0"].norm == 2.0
    backward = dump["Tensor.add.0.backward"]
    assert list(backward.inputs) == ["0"]
    assert backward.outputs["1"] is None
    assert backward.stack == ["File a.py, line 1, in f, \n x + y"]


def test_graph_and_pynative_trees_side_by_side(tmp_path):
    for tree in ("graph", "pynative"):
        write(
            tmp_path / tree / "step0" / "rank0",
            {f"Cell.{tree}.Net.forward.0": forward([], [tensor()])},
        )
    assert [(dump.folder.tree, *dump.data) for dump in probe.open(tmp_path)] == [
        ("graph", "Cell.graph.Net.forward.0"),
        ("pynative", "Cell.pynative.Net.forward.0"),
    ]


def test_debug_documents(debug):
    debugger = debug(level="debug")
    debugger.save({"a": ms.Tensor([1.0]), "b": 3}, "x", save_backward=False)
    debugger.step()
    outputs = probe.open(debug.dump_path)[0]["x.0.debug"].outputs
    assert outputs["a"].max == 1.0
    assert outputs["b"] == 3


def test_a_journal_that_was_not_recovered(tmp_path):
    folder = tmp_path / "step0" / "rank3"
    stacks = [["File a, line 1, in f, \n x()"]]
    documents = JsonDocuments(str(folder), HEADER, stacks, extra=True, journal=True, each=True)
    name = "Functional.relu.0.forward"
    documents.entry(
        name, {"input_args": [1.5], "input_kwargs": {}}, 0, [(name, "Cell.a.A.forward.0")]
    )
    documents.entry(name, {"output": [2.5]})
    documents.journal.close()
    dump = probe.open(tmp_path)[0]
    assert dump.rank == 3
    assert dump[name].inputs == {"0": 1.5}
    assert dump[name].outputs == {"0": 2.5}
    assert dump[name].cell == "a.A"
    assert dump[name].stack == ["File a, line 1, in f, \n x()"]
    assert list(map(str, dump.notes)) == [
        f"{folder}/dump.journal was not recovered; entries may be missing. Recover it with: probe recover {folder}"
    ]


def test_values_that_are_no_tensors(tmp_path):
    arguments = [
        value(4),
        {"type": "slice", "value": [0, 2, None]},
        None,
        [value("same"), tensor()],
    ]
    folder = write(tmp_path, {"Tensor.f.0.forward": forward(arguments, [], axis=value(-1))})
    inputs = probe.open(folder).dump()["Tensor.f.0.forward"].inputs
    assert {key: item for key, item in inputs.items() if key != "3.1"} == {
        "0": 4,
        "1": slice(0, 2, None),
        "2": None,
        "3.0": "same",
        "axis": -1,
    }


BROKEN = {
    "cut": '{"task": "statistics", "data": {"a": ',
    "list": "[1, 2]",
    "no data": '{"task": "statistics"}',
    "data is text": '{"data": "a"}',
    "nested": '{"data": ' + '{"a":' * 100_000 + "1" + "}" * 100_001,
    "not UTF-8": b'{"data": {"\xff": 1}}',
}


@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_broken_document_is_one_clear_line(tmp_path, kind):
    text = BROKEN[kind]
    (tmp_path / "dump.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=r"dump\.json") as caught:
        len(probe.open(tmp_path).dump())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "entry",
    [None, 3, "text", [], [1, [2]], {"output": 5}, {"output": [{"type": 7}]}, {"input_args": "x"}],
)
def test_entries_of_wrong_types_are_read_as_far_as_they_go(tmp_path, entry):
    strange = {
        "type": "mindspore.Tensor",
        "dtype": 5,
        "shape": None,
        "Max": "a",
        "Min": [],
        "Mean": {},
        "Norm": None,
    }
    folder = write(tmp_path, {"a": entry, "Tensor.f.0.forward": forward([strange], [strange])})
    dump = probe.open(folder).dump()
    call = dump["a"]
    assert call.inputs is not None
    assert call.outputs is not None
    found = dump["Tensor.f.0.forward"].outputs["0"]
    assert (found.shape, found.max, found.min, found.norm) == (None, None, None, None)
    assert found.users == []
    assert len(list(probe.open(folder).table())) >= 2


def test_nothing_there_is_said(tmp_path):
    (tmp_path / "report.html").write_text("")
    with pytest.raises(UsageError, match=r"report\.html is no dump\. Allowed: a dump_path"):
        probe.open(tmp_path / "report.html")
    with pytest.raises(UsageError, match="no such folder"):
        probe.open(tmp_path / "none")
    with pytest.raises(UsageError, match=r"no dump\.json in it"):
        probe.open(tmp_path)


def test_opening_a_dump_imports_neither_mindspore_nor_numpy(tmp_path):
    write(tmp_path, {"Tensor.f.0.forward": forward([tensor()], [tensor()])})
    code = (
        "import probe, sys; probe.open(sys.argv[1]).dump()['Tensor.f.0.forward'].outputs['0'].max\n"
    )
    code += "print(sorted({'numpy', 'mindspore', 'pandas'} & set(sys.modules)))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = processes.run(
        command, fresh="imports are counted", capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_table_as_data_frames(gpt):
    pandas = pytest.importorskip("pandas", reason="the extra pandas is not installed")
    polars = pytest.importorskip("polars", reason="the extra polars is not installed")
    rows = list(gpt.table())
    frame = gpt.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (len(rows), len(rows[0]))
    norms = (
        frame[frame.call.str.contains("softmax") & (frame.place == "output.0")]
        .groupby("step")
        .Norm.max()
    )
    other = gpt.to_polars()
    assert isinstance(other, polars.DataFrame)
    assert other.columns == list(frame.columns)
    chosen = other.filter(
        polars.col("call").str.contains("softmax") & (polars.col("place") == "output.0")
    )
    assert sorted(chosen.group_by("step").agg(polars.col("Norm").max()).rows()) == list(
        norms.items()
    )
