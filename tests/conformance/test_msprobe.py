# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Our dump beside msprobe's of the same training, by msprobe's own readers and number by number.

msprobe runs in an environment of its own (``make peer``). It is given numpy's norm, as mint.norm has no CPU kernel, and
our side is given msprobe's list of APIs, so that the calls have the same numbers.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest
from mindspore import nn

from tests.support import processes
from tests.support.launch import launch
from tests.support.paths import ROOT, program

PEER = Path(os.environ.get("PROBE_PEER", ROOT / ".peer"))
PYTHON = PEER / "bin" / "python"
#: what its programs import, in the process that is forked for each of them
IMPORTS = ("msprobe.mindspore", "msprobe.msprobe")


def missing():
    """Return what keeps the two sides from running the same training, or nothing."""
    if not PYTHON.exists():
        return f"msprobe's environment {PEER} is missing: make peer"
    code = "from importlib.metadata import version; print(version('mindspore'))"
    theirs = subprocess.run(
        [str(PYTHON), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    return (
        ""
        if theirs == version("mindspore")
        else f"msprobe's environment has MindSpore {theirs}: other kernels"
    )


MISSING = missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

UPDATE = "Cell.optimizer."
CASES = [
    (net, level, task, summary)
    for net in ("lenet", "gpt", "digits")
    for level in ("L0", "L1", "mix")
    for task, summary in (
        ("statistics", "statistics"),
        ("tensor", "statistics"),
        ("statistics", "md5"),
    )
]


def run(python, *command):
    imports = IMPORTS if python == PYTHON else ()
    command = [str(part) for part in (python, *command)]
    done = processes.run(
        command, imports=imports, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def peer_list():
    code = "import msprobe, os; print(os.path.dirname(msprobe.__file__))"
    package = Path(run(PYTHON, "-c", code).split()[-1])
    return package / "mindspore/dump/dump_processor/hook_cell/support_wrap_ops.yaml"


def dump(python, tool, case, out, *more):
    net, level, task, summary = case
    arguments = [
        "--tool",
        tool,
        "--net",
        net,
        "--level",
        level,
        "--task",
        task,
        "--summary",
        summary,
        "--out",
        out,
    ]
    run(python, *program("conformance.record_step", *arguments, *more)[1:])
    return out / "dump" / "step0" / "rank0"


def compare(ours, theirs, out):
    """Return the rows that ``msprobe compare`` writes."""
    out.mkdir(mode=0o750)
    run(
        PYTHON,
        PEER / "bin/msprobe",
        "compare",
        "-tp",
        ours / "dump.json",
        "-gp",
        theirs / "dump.json",
        "-o",
        out,
    )
    with open(next(out.glob("*.csv")), newline="") as file:
        return list(csv.DictReader(file))


def tensors(value, place):
    """Yield (place, record) of every tensor in an entry."""
    if isinstance(value, dict) and value.get("type") == "mindspore.Tensor":
        yield place, value
    elif isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors(item, f"{place}.{key}")


def document(folder):
    return json.loads((folder / "dump.json").read_text())["data"]


def identity(data, backward):
    """Whether a call gave back its input, which in the graph then has no edge of the call's own."""
    entry = data[backward.replace(".backward", ".forward")]
    same = ("dtype", "shape", "Max", "Min", "Mean", "Norm")
    given, got = entry["input_args"][0], entry["output"][0]
    return all(given[key] == got[key] for key in same)


def uninitialised(place):
    """Outputs that MindSpore's CPU kernel never writes: their memory holds anything."""
    return (
        ".BatchNorm." in place
        and any(f".output.{i}" in place for i in (1, 2, 3, 4))
        and "forward" in place
    )


def written_in_place(place):
    """Inputs that MindSpore's kernel changes. msprobe takes their md5 in a thread: on one processor it comes late."""
    return ".BatchNorm." in place and any(f".forward.input_args.{i}" in place for i in (3, 4))


def differs(ours, theirs, bits):
    """Return what is wrong with our record of a tensor, or None."""
    if (ours["dtype"], ours["shape"]) != (theirs["dtype"], theirs["shape"]):
        return "dtype or shape"
    largest = max(abs(ours["Max"] or 0), abs(ours["Min"] or 0))
    for key in ("Max", "Min", "Norm", "Mean"):
        a, b = ours[key], theirs[key]
        if a is None or b is None:
            if a is not b:
                return key
        elif not math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6 * largest if key == "Mean" else 0.0):
            return key
    return "md5" if bits and ours.get("md5") != theirs.get("md5") else None


def shared(places):
    """Leave out the model's own parameters and the updates of optimizers, which msprobe does not record."""
    return [
        item
        for item in places
        if ".model_parameters." not in item[0] and not item[0].startswith(UPDATE)
    ]


def is_compiled_optimizer(name):
    """Whether msprobe recorded the compiled body of an optimizer, as it does before 2.8: ours is the update's entry."""
    kind, _, rest = name.partition(".")
    return kind == "Jit" and issubclass(getattr(nn, rest.partition(".")[0], object), nn.Optimizer)


def primitive_backward(name):
    """msprobe lists the gradients of a Primitive's inputs in hook order, we in argument order."""
    return name.startswith("Primitive.") and ".backward" in name


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_the_dump_of_a_training_is_that_of_msprobe(case, tmp_path, capsys):
    ours = dump(sys.executable, "probe", case, tmp_path / "ours", "--support-ops", peer_list())
    theirs = dump(PYTHON, "msprobe", case, tmp_path / "theirs")
    rows = compare(ours, theirs, tmp_path / "compared")
    mine, peer = document(ours), document(theirs)
    gone = [name for name in peer if name not in mine and not is_compiled_optimizer(name)]
    assert all(name.endswith(".backward") and identity(peer, name) for name in gone), gone
    assert [name for name in mine if name not in peer and not name.startswith(UPDATE)] == []

    unpaired = [row["Bench Name"] for row in rows if row["NPU Name"] == "N/A"]
    unpaired = [name for name in unpaired if not primitive_backward(name)]
    assert [name for name in unpaired if not any(name.startswith(call) for call in gone)] == []
    alone = [
        row["NPU Name"]
        for row in rows
        if row["Bench Name"] == "N/A" and not primitive_backward(row["NPU Name"])
    ]
    filled = {place for name, entry in mine.items() for place, _ in shared(tensors(entry, name))}
    assert filled.isdisjoint(alone)  # only null slots: inputs that nobody differentiates

    moved = moves_bits(tmp_path)
    wrong, compared, exempt = [], 0, Counter()
    for name, entry in peer.items():
        if name in gone:
            exempt["identity"] += 1
            continue
        if is_compiled_optimizer(name):
            exempt["compiled optimizer"] += 1
            continue
        here, there = dict(shared(tensors(mine[name], name))), dict(tensors(entry, name))
        if primitive_backward(name):
            pairs = nearest(here, there)
            exempt["argument order"] += 1
        else:
            assert here.keys() == there.keys(), name
            pairs = [(place, here[place], record) for place, record in there.items()]
        for place, own, record in pairs:
            if uninitialised(place):
                exempt["uninitialised"] += 1
                continue
            compared += 1
            bits = (".forward" in place or not moved) and not written_in_place(place)
            what = differs(own, record, bits)
            if what:
                wrong.append((place, what, own, record))
    with capsys.disabled():
        print(
            f"\n{'-'.join(case)}: {len(rows)} rows paired by msprobe compare, {compared} records equal, {dict(exempt)}"
        )
    assert not wrong, wrong[:3]
    assert compared > 30


def nearest(here, there):
    """Pair the records of a Primitive's backward whatever their order."""
    left, pairs = dict(here), []
    for place, record in there.items():
        kind = place.rsplit(".", 1)[0]
        fits = [
            p
            for p, own in left.items()
            if p.rsplit(".", 1)[0] == kind and not differs(own, record, bits=False)
        ]
        assert fits, (place, record, left)
        pairs.append((place, left.pop(fits[0]), record))
    return pairs


def moves_bits(folder):
    """Whether msprobe has changed the gradients of the training, beside ours."""
    import numpy as np

    ours, theirs = (np.load(folder / side / "numbers.npz") for side in ("ours", "theirs"))
    return any(not np.array_equal(ours[key], theirs[key]) for key in ours.files)


def visualize(folder, out):
    """Return the names of the nodes that ``msprobe graph_visualize`` makes."""
    import sqlite3

    out.mkdir(mode=0o750)
    assert "exported successfully" in run(
        PYTHON, PEER / "bin/msprobe", "graph_visualize", "-tp", folder, "-o", out
    )
    (built,) = out.glob("*.vis.db")
    with sqlite3.connect(built) as connection:
        return {row[0] for row in connection.execute("select node_name from tb_nodes")}


@pytest.mark.parametrize("net", ["lenet", "gpt", "digits"])
def test_msprobe_reads_a_dump_made_with_our_list_of_apis(net, tmp_path, capsys):
    case = (net, "mix", "statistics", "statistics")
    ours = dump(sys.executable, "probe", case, tmp_path / "ours")
    again = dump(sys.executable, "probe", case, tmp_path / "again")
    rows = compare(ours, again, tmp_path / "compared")
    records = sum(1 for name, entry in document(ours).items() for _ in tensors(entry, name))
    named = [row for row in rows if "N/A" not in (row["NPU Name"], row["Bench Name"])]
    nodes = visualize(ours, tmp_path / "graph")
    with capsys.disabled():
        print(f"\n{net}: {len(named)} of {len(rows)} rows paired, {len(nodes)} nodes in the graph")
    assert len(named) == len(rows) >= records
    assert {name for name in document(ours) if "parameters_grad" not in name} <= nodes


@pytest.mark.parametrize(
    ("net", "task"), [("lenet", "tensor"), ("gpt", "statistics"), ("digits", "statistics")]
)
def test_msprobe_reads_a_dump_of_graph_mode(net, task, tmp_path):
    case = (net, "L0", task, "statistics")
    graph = dump(sys.executable, "probe", case, tmp_path / "graph", "--graph-mode")
    pynative = dump(sys.executable, "probe", case, tmp_path / "pynative", "--without-updates")
    rows = compare(graph, pynative, tmp_path / "compared")
    records = sum(1 for name, entry in document(graph).items() for _ in tensors(entry, name))
    assert len(rows) >= records > 20
    assert not [row for row in rows if "N/A" in (row["NPU Name"], row["Bench Name"])]
    assert {name for name in document(graph) if "parameters_grad" not in name} <= visualize(
        graph, tmp_path / "drawn"
    )


def test_msprobe_reads_the_recovered_dump_of_a_killed_process(tmp_path):
    run(*program("kills", "--kills", 5, "--keep", tmp_path / "kept"))
    folder = tmp_path / "kept" / "step0" / "rank"
    rows = compare(folder, folder, tmp_path / "compared")
    assert len(rows) >= len(document(folder)) > 5
    assert not [row for row in rows if "N/A" in (row["NPU Name"], row["Bench Name"])]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_save_writes_the_values_that_msprobe_writes(task, tmp_path):
    found = []
    for tool, python in (("probe", sys.executable), ("msprobe", PYTHON), ("probe", sys.executable)):
        out = tmp_path / f"{len(found)}-{tool}"
        run(
            python,
            *program("conformance.save_values", "--tool", tool, "--task", task, "--out", out)[1:],
        )
        found += list((out / "dump" / "step0").glob("*/debug.json"))
    ours, theirs, again = (json.loads(path.read_text())["data"] for path in found)
    assert ours.keys() == theirs.keys()
    records = dict(tensors(ours, "")), dict(tensors(theirs, ""))
    assert records[0].keys() == records[1].keys()
    assert len(records[0]) == 8
    for place, record in records[1].items():
        assert not differs(records[0][place], record, bits=False), place
        assert records[0][place].get("data_name") == record.get("data_name")
    assert ours == again
    for other in found[1:]:
        out = tmp_path / f"compared-{other.parent.parent.parent.parent.name}"
        out.mkdir(mode=0o750)
        run(PYTHON, PEER / "bin/msprobe", "compare", "-tp", found[0], "-gp", other, "-o", out)
        with open(next(out.glob("*.csv")), newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) >= 8
        assert not [row for row in rows if "N/A" in (row["NPU Name"], row["Bench Name"])]


of_ranks = pytest.mark.xdist_group("ranks")  # one process makes their dumps


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """Return the folder of the dumps of a training on two ranks, ours and msprobe's."""
    folder = tmp_path_factory.mktemp("ranks")
    launch("training.py", 2, folder)
    launch("peer.py", 2, folder, python=str(PYTHON))
    for path in [folder, *folder.rglob("*")]:  # its readers open nothing that a group may write
        path.chmod(path.stat().st_mode & 0o755)
    return folder


@of_ranks
@pytest.mark.parametrize("rank", [0, 1])
def test_collectives_are_recorded_as_by_msprobe(ranks, rank):
    ours = document(ranks / "by_hand-L1-statistics" / "step0" / f"rank{rank}")
    theirs = document(ranks / "peer" / "step0" / f"rank{rank}")
    assert {name for name in ours if not name.startswith(UPDATE)} == {
        name for name in theirs if not is_compiled_optimizer(name)
    }
    names = [name for name in ours if name.startswith("MintDistributed.")]
    assert len(names) == 8
    for name in names:
        mine, others = (dict(tensors(data[name], name)) for data in (ours, theirs))
        assert set(mine) == set(others)
        assert not {
            place: wrong
            for place in mine
            if (wrong := differs(mine[place], others[place], bits=False))
        }


@of_ranks
@pytest.mark.parametrize(
    "case", ["by_hand-mix-tensor", "by_hand-mix-statistics", "by_hand-L1-statistics"]
)
def test_msprobe_compare_reads_every_rank_of_a_step(ranks, case, tmp_path):
    out = tmp_path / "compared"
    out.mkdir(mode=0o750)
    run(
        PYTHON,
        PEER / "bin/msprobe",
        "compare",
        "-tp",
        ranks / case / "step0",
        "-gp",
        ranks / case / "step1",
        "-o",
        out,
    )
    for rank in (0, 1):
        (table,) = out.glob(f"compare_result_rank{rank}_*.csv")
        with open(table, newline="") as file:
            rows = list(csv.DictReader(file))
        data = document(ranks / case / "step0" / f"rank{rank}")
        expected = sum(1 for name, entry in data.items() for _ in tensors(entry, name))
        paired = [row for row in rows if "N/A" not in (row["NPU Name"], row["Bench Name"])]
        assert len(paired) == len(rows) >= expected
        reduced = {
            row["NPU Name"]
            for row in rows
            if row["NPU Name"].startswith("MintDistributed.all_reduce.0.")
        }
        assert reduced == {
            f"MintDistributed.all_reduce.0.forward.{place}.0" for place in ("input", "output")
        }


@of_ranks
def test_msprobe_graph_visualize_reads_a_whole_run_beside_its_snapshot(ranks, tmp_path):
    run_folder = ranks / "by_hand-mix-statistics"
    assert len(list(run_folder.rglob("run.json"))) == 2
    assert visualize(run_folder, tmp_path / "graph")


@of_ranks
def test_msprobe_graph_visualize_reads_every_rank_of_a_step(ranks, tmp_path):
    import sqlite3

    graph = tmp_path / "graph"
    graph.mkdir(mode=0o750)
    step = ranks / "by_hand-mix-statistics" / "step0"
    run(PYTHON, PEER / "bin/msprobe", "graph_visualize", "-tp", step, "-o", graph)
    (built,) = graph.glob("*.vis.db")
    with sqlite3.connect(built) as connection:
        nodes = connection.execute("select rank, node_name from tb_nodes").fetchall()
    for rank in (0, 1):
        expected = {
            name for name in document(step / f"rank{rank}") if "parameters_grad" not in name
        }
        assert expected <= {name for where, name in nodes if where == rank}
