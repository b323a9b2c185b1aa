# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""`probe check` of two runs that differ in one value from outside, or in none."""

from __future__ import annotations

import json

import pytest

import probe
from tests.programs import experiments
from tests.reading.builders import calls, write
from tests.reading.check.snapshots import Experiment

pytestmark = pytest.mark.medium

#: program, thing, exit status, words of the answer
CASES = [
    ("words", "", 0, "the inputs of the model and the arguments of gradient functions in 2 steps"),
    ("words", "labels not moved by one", 1, "step 0, input labels of loss_of (Int32 4x6) differs"),
    ("words", "label smoothing", 1, "kwargs.label_smoothing of Functional.cross_entropy.0.forward"),
    ("words", "positions in another order", 2, "input.1 of Tensor.__add__.0.forward (Float32 6x8)"),
    (
        "classes",
        "labels of a closure",
        1,
        "input.1 of Functional.cross_entropy.0.forward, which no",
    ),
    ("classes", "weights of classes exchanged", 2, "kwargs.weight of Functional.cross_entropy.0"),
    ("policy", "weight of the entropy", 1, "input entropy of loss_of: 0.01 / 0.1"),
    ("denoiser", "noise of the images", 1, "input noise of loss_of (Float32 8x8) differs"),
    ("denoiser", "schedule read backwards", 2, "input.0 of Functional.gather.0.forward"),
    ("graph", "factor of the loss", 1, "input.1 of Tensor.__mul__.2.forward: 1.0 / 0.5"),
]


@pytest.fixture(scope="module", autouse=True)
def golden(tmp_path_factory):
    """Return the folder of a program's golden run, which is recorded once."""
    folder = tmp_path_factory.mktemp("golden")
    experiments.record(experiments.words, folder / "first")
    probe.check(folder / "first", folder / "first")  # now all modules are imported: files of code

    def of(program):
        found = folder / program
        if not found.exists():
            experiments.record(getattr(experiments, program), found)
        return found

    return of


@pytest.mark.parametrize(("program", "thing", "status", "words"), CASES)
def test_one_other_thing_from_outside_is_named(golden, tmp_path, program, thing, status, words):
    things = experiments.record(getattr(experiments, program), tmp_path / "mine", thing)
    assert not thing or thing in things.used
    found = probe.check(golden(program), tmp_path / "mine")
    assert (found.status, words in str(found)) == (status, True), found


def test_an_argument_that_a_recorded_call_made_is_no_data(tmp_path):
    """The generator's weights differ: what it gives to the discriminator is no other batch."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, scale in zip(folders, (1.0, 2.0)):
        experiments.record(experiments.adversary(scale), folder)
    found = probe.check(*folders)
    lines = found.lines()
    assert lines[0].startswith("parameters: 1 of 4 differ")
    assert not any(line.startswith("data") for line in lines), lines
    assert any(
        "A recorded call made it, so it is no data" in remark for remark in map(str, found.remarks)
    )


def test_where_functions_are_not_recorded_their_values_are_not_known(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        experiments.record(experiments.words, folder, level="L0")
    found = probe.check(*folders)
    assert found.ok
    assert "no difference in what is known" in str(found)
    assert "other values from outside are not known (record them with level L1 or mix)" in str(
        found
    )


def made(folder, *lines, device="CPU", md5=True, rank=None):
    """Write a run by hand, with the calls of its first step."""
    experiment = Experiment(folder)
    experiment.run["device"] = device
    experiment.run["rank"] = rank
    experiment.write()
    name = "rank" if rank is None else f"rank{rank}"
    write(folder / "step0" / name, calls(*lines, md5=md5), level="mix")
    return folder


def with_gradients(folder, *functions, line="loss x l -> r"):
    """Write a run by hand whose first step differentiates these functions, each with one label."""
    made(folder, line)
    with open(folder / "step0" / "rank" / "run.jsonl", "a") as lines:
        for name in functions:
            call = {"function": name, "names": ["label"], "arguments": {"0": 3}}
            lines.write(json.dumps({"step": 0, **call}) + "\n")
    return folder


def test_one_more_gradient_of_a_step_is_named_in_both_orders(tmp_path):
    once = with_gradients(tmp_path / "a", "loss_of")
    twice = with_gradients(tmp_path / "b", "loss_of", "penalty_of")
    for golden, mine, counts in ((once, twice, "1 / 2"), (twice, once, "2 / 1")):
        found = probe.check(golden, mine)
        assert (found.status, found.lines()) == (
            1,
            [f"data: step 0, calls of gradient functions: {counts}"],
        )


def test_a_run_that_noted_no_gradient_function_is_no_other_experiment(tmp_path):
    noted = with_gradients(tmp_path / "a", "loss_of")
    bare = made(tmp_path / "b", "loss x l -> r")
    for golden, mine in ((noted, bare), (bare, noted)):
        found = probe.check(golden, mine)
        assert found.lines() == []
        assert "the same experiment" not in str(found)


def test_calls_that_b_alone_has_are_not_claimed(tmp_path):
    golden = made(tmp_path / "a", "relu x -> p")
    more = made(tmp_path / "b", "relu x -> p", "tanh p -> q")
    for a, b in ((golden, more), (more, golden)):
        found = probe.check(a, b)
        assert "up to Functional.tanh.0.forward, which one side lacks" in str(found)
        assert "the same experiment" not in str(found)


@pytest.mark.parametrize(("ranks", "is_named"), [(8, False), (9, True)])
def test_ranks_whose_dumps_were_not_read_are_not_claimed(tmp_path, ranks, is_named):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        for rank in range(ranks):
            made(folder, "relu x -> p", rank=rank)
    assert ("of the first 8 ranks" in str(probe.check(*folders))) == is_named


def test_a_label_of_another_rank_behind_the_eighth_is_still_compared(tmp_path):
    """The dumps of eight ranks are read; run.jsonl is read of all."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, label in zip(folders, (3, 4)):
        for rank in range(9):
            made(folder, "relu x -> p", rank=rank)
            call = {"function": "loss_of", "names": ["label"]}
            call["arguments"] = {"0": label if rank == 8 else 3}
            with open(folder / "step0" / f"rank{rank}" / "run.jsonl", "a") as lines:
                lines.write(json.dumps({"step": 0, **call}) + "\n")
    found = probe.check(*folders)
    assert found.status == 1
    assert "input label of loss_of: 3 / 4" in str(found)
    assert "rank 8" in str(found)


def test_a_value_behind_another_output_may_follow_from_it(tmp_path):
    golden = made(tmp_path / "a", "relu x -> p", "loss p l -> r")
    kernel = made(tmp_path / "b", "relu x -> p'", "loss p' l -> r'")
    labels = made(tmp_path / "c", "relu x -> p'", "loss p' l' -> r'")
    assert probe.check(golden, kernel).status == 0
    found = probe.check(golden, labels)
    assert found.status == 2
    assert "It may follow from Functional.relu.0.forward" in str(found.unknown[0])


def test_calls_behind_one_that_a_side_lacks_are_not_claimed(tmp_path):
    golden = made(tmp_path / "a", "relu x -> p", "tanh p -> q", "loss q l -> r")
    other = made(tmp_path / "b", "relu x -> p", "loss p l' -> r'")
    found = probe.check(golden, other)
    assert "up to Functional.tanh.0.forward, which one side lacks" in str(found)
    assert "the same experiment" not in str(found)


@pytest.mark.parametrize(("device", "status"), [("CPU", 1), ("Ascend", 1)])
@pytest.mark.parametrize("apart", [1e-7, 1e-3])
def test_means_of_two_devices_may_differ_by_a_rounding(tmp_path, device, status, apart):
    golden = made(tmp_path / "a", "mul x m -> p", md5=False)
    other = made(tmp_path / "b", "mul x m -> p", device=device, md5=False)
    path = other / "step0" / "rank" / "dump.json"
    dump = json.loads(path.read_text())
    dump["data"]["Functional.mul.0.forward"]["input_args"][1]["Mean"] += apart
    path.write_text(json.dumps(dump))
    found = probe.check(golden, other)
    is_named = any("input.1 of Functional.mul.0.forward" in line for line in found.lines())
    assert (found.status, is_named) == (status, device == "CPU" or apart > 1e-5)


@pytest.mark.parametrize("field", ["Mean", "Norm", "Max"])
def test_two_numbers_that_differ_in_the_last_digit_are_told_apart(tmp_path, field):
    golden = made(tmp_path / "a", "mul x m -> p", md5=False)
    other = made(tmp_path / "b", "mul x m -> p", md5=False)
    path = other / "step0" / "rank" / "dump.json"
    dump = json.loads(path.read_text())
    record = dump["data"]["Functional.mul.0.forward"]["input_args"][1]
    before = record[field]
    record[field] += 1e-9
    path.write_text(json.dumps(dump))
    found = str(probe.check(golden, other))
    assert f"{field} {before} / " in found
    assert f"{field} {record[field]}" in found
