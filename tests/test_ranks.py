# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Several ranks under MindSpore's own launcher."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from probe.series.series import open_series
from tests.support import processes, processors
from tests.support.dumps import Dump
from tests.support.launch import launch
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

#: two ranks are those of test_rank_agreement.py, in `make test`
RANKS = (4,)
RANKS_NEED = "its ranks need all processors"


@pytest.fixture(
    scope="module", params=thorough_but([], RANKS), ids=[f"{ranks}_ranks" for ranks in RANKS]
)
def trained(request, tmp_path_factory):
    """Return the number of ranks, the folder, and what every rank says of its trainings."""
    folder = tmp_path_factory.mktemp(f"ranks{request.param}")
    launch("training.py", request.param, folder)
    said = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(request.param)]
    return request.param, folder, said


WATCHED = [
    "by_hand-L1-statistics",
    "by_hand-L1-tensor",
    "by_hand-mix-statistics",
    "by_hand-mix-tensor",
    "reducer-mix-statistics",
]


def dumps(trained, case, step=0):
    ranks, folder, _ = trained
    return [Dump(folder / case / f"step{step}" / f"rank{rank}") for rank in range(ranks)]


@pytest.mark.parametrize("case", WATCHED)
def test_every_rank_trains_bitwise_as_without_probe(trained, case):
    _, _, said = trained
    bare = case.partition("-")[0] + "-bare"
    assert [rank[case] for rank in said] == [rank[bare] for rank in said]
    assert len({rank[bare][1] for rank in said}) == len(said)  # each has losses of its own


@pytest.mark.parametrize("case", WATCHED)
def test_every_rank_has_a_complete_folder(trained, case):
    ranks, folder, _ = trained
    for step in (0, 1):
        assert sorted(os.listdir(folder / case / f"step{step}")) == [
            f"rank{rank}" for rank in range(ranks)
        ]
    every = [dump for step in (0, 1) for dump in dumps(trained, case, step)]
    first = every[0]
    for dump in every:
        assert list(dump.data) == list(first.data)
        assert dump.construct == first.construct
        assert not any("error" in entry for entry in dump.data.values())
        assert not (dump.folder / "dump_error_info.log").exists()
        if dump.header["task"] == "tensor":
            assert dump.header["dump_data_dir"] == str(dump.folder / "dump_tensor_data")
            named = {
                record["data_name"] for record in records(dump.data) if not record.get("unwritten")
            }
            assert named == set(os.listdir(dump.folder / "dump_tensor_data"))
    if "mix" in case:
        gradients = [name for name in first.data if ".parameters_grad." in name]
        assert len(gradients) == len(
            {name.partition(".forward")[0] for name in first.data if has_parameters(first, name)}
        )
        assert first.names("Cell.", ".backward.")


def has_parameters(dump, name):
    return bool(dump.data[name].get("parameters"))


def records(value):
    """Yield every tensor's record."""
    if isinstance(value, dict) and value.get("type") == "mindspore.Tensor":
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from records(item)


@pytest.mark.parametrize("case", [case for case in WATCHED if "by_hand" in case])
def test_the_reductions_hold_the_sums_of_the_inputs_of_all_ranks(trained, case):
    every = dumps(trained, case)
    names = every[0].names("MintDistributed.all_reduce.")
    assert len(names) == 8  # of the net's parameters
    for name in names:
        entries = [dump.data[name] for dump in every]
        outputs = [entry["output"] for entry in entries]
        if "tensor" in case:
            outputs = [[{**item, "data_name": ""} for item in output] for output in outputs]
            given = [dump.array(dump.data[name]["input_args"][0]["data_name"]) for dump in every]
            made = [dump.array(dump.data[name]["output"][0]["data_name"]) for dump in every]
            assert all(np.array_equal(array, made[0]) for array in made)
            total = np.sum(given, axis=0, dtype=np.float64)
            np.testing.assert_allclose(made[0], total, rtol=1e-5, atol=1e-6 * np.abs(given).max())
        else:
            mean = sum(entry["input_args"][0]["Mean"] for entry in entries)
            largest = max(
                abs(entry["input_args"][0][end]) for entry in entries for end in ("Max", "Min")
            )
            assert outputs[0][0]["Mean"] == pytest.approx(mean, rel=1e-5, abs=1e-6 * largest)
        assert all(output == outputs[0] for output in outputs)


def test_the_gradient_reducer_is_recorded_with_the_gradients_of_each_rank(trained):
    every = dumps(trained, "reducer-mix-statistics")
    entries = [dump.data["Jit.DistributedGradReducer.0.forward"] for dump in every]
    outputs = [list(records(entry["output"])) for entry in entries]
    assert len(outputs[0]) == 8
    assert all(output == outputs[0] for output in outputs)
    inputs = [list(records(entry["input_args"])) for entry in entries]
    for place, output in enumerate(outputs[0]):
        given = [records_[place] for records_ in inputs]
        mean = sum(record["Mean"] for record in given) / len(given)
        largest = max(abs(record[end]) for record in given for end in ("Max", "Min"))
        assert output["Mean"] == pytest.approx(mean, rel=1e-5, abs=1e-6 * largest)


@pytest.fixture(scope="module")
def communicated(tmp_path_factory):
    """Return the folder of a job that uses every collective, and what each of its two ranks saw."""
    folder = tmp_path_factory.mktemp("collectives")
    logs = launch("collectives.py", 2, folder)
    return (
        folder,
        [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)],
        logs,
    )


def of(folder, name, rank, step=0):
    return Dump(folder / name / f"step{step}" / f"rank{rank}")


def values(dump, value):
    """Return the arrays of records as lists, and what stands for anything else, in the structure of the value."""
    if isinstance(value, list):
        return [values(dump, item) for item in value]
    if isinstance(value, dict) and "data_name" in value:
        return dump.array(value["data_name"]).tolist()
    if isinstance(value, dict):
        return (
            value["value"]
            if "type" in value
            else {key: values(dump, item) for key, item in value.items()}
        )
    return value


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("call", "place"),
    [
        ("all_reduce.0", 0),
        ("all_reduce.1", 0),
        ("broadcast.0", 0),
        ("all_gather.0", 0),
        ("scatter.0", 0),
        ("gather.0", 1),
    ],
)
def test_a_collective_is_recorded_as_the_training_saw_it(communicated, rank, call, place):
    folder, said, _ = communicated
    dump = of(folder, "all", rank)
    entry = dump.data[f"MintDistributed.{call}.forward"]
    assert values(dump, entry["output"][place]) == said[rank]["seen"][call]
    own = [0.0 + 10 * rank, 1.0 + 10 * rank, 2.0 + 10 * rank]
    if call in ("all_reduce.0", "all_reduce.1"):
        assert values(dump, entry["input_args"][0]) == own
    if call == "broadcast.0":
        assert values(dump, entry["input_args"]) == [own[:2], 1]
    if call in ("all_gather.0", "gather.0"):
        lists, tensors = (0, 1) if call == "all_gather.0" else (1, 0)
        assert values(dump, entry["input_args"][lists]) == [
            [0.0, 0.0],
            [0.0, 0.0],
        ]  # as they were before
        assert values(dump, entry["input_args"][tensors]) == own[:2]


@pytest.mark.parametrize("rank", [0, 1])
def test_barrier_and_objects_are_recorded(communicated, rank):
    folder, said, _ = communicated
    dump = of(folder, "all", rank)
    barrier = {"input_args": [], "input_kwargs": {}, "output": [], "group_ranks": ["0", "1"]}
    assert dump.data["MintDistributed.barrier.0.forward"] == barrier
    entry = dump.data["MintDistributed.all_gather_object.0.forward"]
    assert values(dump, entry["input_args"]) == [[None, None], {"rank": rank, "name": f"r{rank}"}]
    assert values(dump, entry["output"][0]) == said[rank]["seen"]["all_gather_object.0"]
    entry = dump.data["MintDistributed.gather_object.0.forward"]
    gathered = said[rank]["seen"]["gather_object.0"]
    if isinstance(gathered, str):  # MindSpore looks for a group that a CPU does not have
        assert entry["raised"] == gathered[:2000]
        assert "output" not in entry
    else:
        assert values(dump, entry["output"][1]) == gathered


@pytest.mark.parametrize("rank", [0, 1])
def test_the_dump_names_the_ranks_of_a_group_and_of_the_run(communicated, rank):
    dump = of(communicated[0], "all", rank)
    names = [
        name
        for name in dump.data
        if name.startswith("MintDistributed.") and "raised" not in dump.data[name]
    ]
    assert {name: dump.data[name].get("group_ranks") for name in names} == {
        name: ["0", "1"] for name in names
    }
    run = dump.header["run"]
    assert (run["rank"], run["world_size"], run["device"]) == (rank, 2, "CPU")


@pytest.mark.parametrize("rank", [0, 1])
def test_the_primitives_of_a_cell_are_recorded(communicated, rank):
    folder, said, _ = communicated
    dump = of(folder, "all", rank)
    names = ["Primitive.reduce.AllReduce.0.forward", "Primitive.gather.AllGather.0.forward"]
    names.append("Primitive.spread.Broadcast.0.forward")
    assert [values(dump, dump.data[name]["output"][0]) for name in names] == said[rank]["seen"][
        "primitives"
    ]


@pytest.mark.parametrize("name", ["L1", "L0", "alias", "custom", "tokens", "structure"])
def test_recording_does_not_wait_for_a_communication(communicated, name):
    folder, said, _ = communicated
    assert said[1][
        f"{name}-flag"
    ]  # rank 0 went on and called stop() while its communication was on its way
    for rank in (0, 1):
        reduced, between = said[rank][name]
        assert reduced == [10.0, 12.0, 14.0, 16.0]
        dump = of(folder, name, rank)
        if name == "structure":
            assert dump.data == {}
            continue
        last = "Cell.0.ReLU.forward.0" if name == "L0" else list(dump.data)[-1]
        assert last in (
            "Cell.0.ReLU.forward.0",
            "Functional.relu.0.forward",
            "Primitive.relu.ReLU.0.forward",
        )
        assert values(dump, dump.data[last]["output"][0]) == between
        if name == "L1":
            entry = dump.data["MintDistributed.all_reduce.0.forward"]
            assert values(dump, entry["input_args"][0]) == [10.0 * rank + i for i in range(4)]
            assert values(dump, entry["output"][0]) == reduced


def test_a_communication_without_wait_is_marked_in_its_entry(communicated):
    folder, _, _ = communicated
    for rank in (0, 1):
        dump = of(folder, "forgotten", rank)
        entry = dump.data["MintDistributed.all_reduce.0.forward"]
        assert "output" not in entry
        assert "not waited" in entry["pending"]
        assert values(dump, dump.data["Functional.relu.0.forward"]["output"]) == [
            [10.0 * rank, 10.0 * rank + 1]
        ]


def test_the_folder_has_the_launchers_rank_before_communication_is_initialised(communicated):
    folder, said, _ = communicated
    assert all(f"rank{number}" in rank["late_before"] for number, rank in enumerate(said))
    assert not any(name.startswith("proc_") for rank in said for name in rank["late_before"])
    for step in (0, 1):
        assert sorted(os.listdir(folder / "late" / f"step{step}")) == ["rank0", "rank1"]
    for rank in (0, 1):
        dump = of(folder, "late", rank)
        assert list(dump.data) == ["Functional.relu.0.forward", "Functional.exp.0.forward"]
        assert dump.header["dump_data_dir"] == str(dump.folder / "dump_tensor_data")
        assert values(dump, dump.data["Functional.exp.0.forward"]["output"]) == [[1.0]]


def test_nan_from_another_rank_is_blamed_on_the_collective_that_received_it(communicated):
    folder, _, logs = communicated
    first = of(folder, "check", 0).data
    assert list(first)[-1] == "MintDistributed.all_reduce.0.forward"
    assert first["MintDistributed.all_reduce.0.forward"]["input_args"][0]["Max"] == 1.0
    assert "another rank" in logs[0]
    assert list(of(folder, "check", 1).data)[-1] == "Tensor.__truediv__.0.forward"
    assert "another rank" not in logs[1]


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """Return the folder of a job with trouble on one rank, the small disk or "", and what the ranks say."""
    folder = tmp_path_factory.mktemp("trouble")
    disk = tmp_path_factory.mktemp("small")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    small = disk if mounted.returncode == 0 else ""
    try:
        logs = launch("trouble.py", 2, folder, small)
        said = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]
        left = sorted(path.name for path in (disk / "step0" / "rank0").glob("*")) if small else []
        yield folder, left, said, logs
    finally:
        if small:
            subprocess.run(["umount", str(disk)], check=False)


@pytest.mark.thorough
def test_failures_on_one_rank_change_no_training(troubled):
    _, _, said, _ = troubled
    for rank in (0, 1):
        assert all(outcome == said[rank]["bare"] for outcome in said[rank].values())
        assert {"bare", "well", "slow_and_broken"} <= set(said[rank])


def entries(folder, name, rank, step):
    """Return a dump's entries as texts that do not depend on where it is."""
    dump = of(folder, name, rank, step)
    for key, entry in dump.data.items():
        if ".BatchNorm." in key and key.endswith(".forward"):
            del entry["output"][
                1:
            ]  # its kernel never writes all of these: their memory holds anything
    return {key: json.dumps(entry) for key, entry in dump.data.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("step", [0, 1])
def test_the_dump_of_the_other_rank_is_complete(troubled, step):
    folder, left, said, logs = troubled
    assert entries(folder, "slow_and_broken", 0, step) == entries(folder, "well", 0, step)
    assert "a mistake of ours" in logs[1]
    if "full" not in said[0]:
        pytest.skip("mounting a tmpfs needs root")
    assert entries(folder, "full", 1, step) == entries(folder, "well", 1, step)
    assert "dump_tensor_data" in left
    assert re.search(r"the disk (of .* )?is (nearly )?full", logs[0])


@pytest.mark.thorough
def test_a_killed_rank_is_recovered_under_its_name_and_a_rank_not_recorded_writes_nothing(tmp_path):
    launch("killed.py", 2, tmp_path, dies=True)
    assert (tmp_path / "rank0_has_stepped").exists()
    step = tmp_path / "dump" / "step0"
    assert os.listdir(step) == ["rank1"]
    command = [sys.executable, "-m", "probe", "recover", str(tmp_path / "dump")]
    done = processes.run(command, capture_output=True, text=True, check=True)
    assert "2 entries recovered" in done.stdout
    assert os.listdir(step) == ["rank1"]
    assert not (tmp_path / "dump" / "step1").exists()
    dump = Dump(step / "rank1")
    assert list(dump.data) == ["Functional.relu.0.forward", "Functional.exp.0.forward"]
    assert dump.header["dump_data_dir"] == str(dump.folder / "dump_tensor_data")
    assert values(dump, dump.data["Functional.exp.0.forward"]["output"]) == [[1.0]]
    again = processes.run(command, capture_output=True, text=True, check=True)
    assert "nothing to recover" in again.stdout


@pytest.mark.thorough
def test_the_example_shows_inputs_and_outputs_of_each_rank(tmp_path, request):
    example = request.config.rootpath / "examples" / "train_ranks.py"
    command = [sys.executable, str(example), "--dump-path", str(tmp_path / "dump")]
    with processors.all_of_them():
        done = processes.run(command, fresh=RANKS_NEED, capture_output=True, text=True, check=True)
    shown = [line for line in done.stdout.splitlines() if "all_reduce" in line]
    assert [f"rank{rank}:" in line for rank, line in enumerate(shown)] == [True, True]
    given, got = zip(*(re.search(r"gave Mean (\S+), got (\S+)$", line).groups() for line in shown))
    assert got[0] == got[1]
    assert float(got[0]) == pytest.approx(sum(map(float, given)), abs=3e-6)


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """Return the folder of two ranks under rolling records and under a dump, and what each rank says."""
    folder = tmp_path_factory.mktemp("rolled")
    launch("rolled.py", 2, folder)
    return folder, [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_rolling_records_of_ranks_change_no_bit(rolled):
    folder, said = rolled
    for rank in said:
        assert rank["rolled"] == rank["bare"] == rank["whole"]
    assert not list(folder.rglob("dump_error_info.log"))


def test_rolling_records_of_ranks_are_of_the_same_calls_and_have_the_numbers_of_a_dump(rolled):
    folder, _ = rolled
    ranks = open_series(str(folder / "rolled"))
    chosen = []
    compared = set()
    for rank in ranks:
        own = []
        for step, entries in rank.calls.records():
            own.append((step, sorted(head.entry for head, _ in entries)))
            data = Dump(folder / "whole" / f"step{step}" / f"rank{rank.rank}").data
            for head, values in entries:
                whole = data[head.entry]
                known = [
                    it["Norm"] for it in records([whole.get("output"), whole.get("output_args")])
                ]
                row = dict(zip(head.columns, values.tolist()))
                norms = [
                    value
                    for column, value in row.items()
                    if column.startswith("output") and column.endswith(".norm")
                ]
                assert norms == pytest.approx([it for it in known if it is not None], rel=1e-5)
                compared.add(head.entry)
        chosen.append(own)
    assert chosen[0] == chosen[1]
    assert any("all_reduce" in entry for entry in compared)
    assert any("broadcast" in entry for entry in compared)
