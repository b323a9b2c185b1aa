# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two dumps in one form: the opened dumps stay as they are, and places are told as they are on disk."""

from __future__ import annotations

import copy

import pytest

import probe
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from tests.reading.builders import calls, dump, forward, named, value, write

CELL = "Cell.fc.Dense x -> y"


def update(names):
    given = {"parameters": [value(name) for name in names], "learning_rate": value(0.1)}
    return {
        "Cell.optimizer.SGD.forward.0": {
            "input_args": [[named(f"g{name}") for name in names]],
            "input_kwargs": given,
            "output": [],
        }
    }


def torch(lines):
    """Return the entries of calls with the dtypes of PyTorch."""
    data = calls(*lines)
    for entry in data.values():
        for part in (entry["input_args"], entry["output"]):
            for record in part:
                record["dtype"] = "torch.float32"
    return data


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (
            dump(calls("add x y -> z", "add! gz -> gx gy")),
            dump(calls("add y x -> z", "add! gz -> gy gx")),
        ),
        (dump({**calls("f x -> y"), **update("wv")}), dump({**calls("f x -> y"), **update("vw")})),
        (
            dump(calls("Cell.fc.Dense x -> y", "relu x -> y"), level="mix"),
            dump(calls("Cell.fc.Dense x -> y"), level="L0"),
        ),
        (
            dump(torch(["linear x w -> y"]), framework="pytorch"),
            dump(calls("Mint.linear w x -> y")),
        ),
    ],
    ids=["operands", "updates", "levels", "frameworks"],
)
@pytest.mark.parametrize("is_swapped", [False, True])
def test_opened_dumps_are_equal_before_and_after(a, b, is_swapped):
    dumps = (b, a) if is_swapped else (a, b)
    before = [copy.deepcopy(side.data) for side in dumps]
    links = [list(side.flow.links) for side in dumps]
    pairs = JudgedPairs(*dumps, Options())
    assert [side.data for side in dumps] == before
    assert [list(side.flow.links) for side in dumps] == links
    changed = [
        list(side.data) != list(own) or side.data != own
        for side, own in zip((pairs.a, pairs.b), before)
    ]
    assert any(changed)


def test_a_moved_input_is_told_as_it_stands_in_the_file(tmp_path):
    other = {
        key: item * 1.0002 if key in ("Max", "Min", "Mean", "Norm") else item
        for key, item in named("y").items()
    }
    folders = []
    for run, given in (("a", [named("x"), named("y")]), ("b", [other, named("x")])):
        first = {"Functional.relu.0.forward": forward([named("x")], [named("r")])}
        write(
            tmp_path / run / "step0" / "rank",
            {**first, "Functional.add.0.forward": forward(given, [named(run)])},
        )
        folders.append(tmp_path / run)
    first = probe.compare(*folders).first
    assert (first.name, first.place) == ("Functional.add.0.forward", "input.0")
    assert "Functional.add.0.forward, input 0, comes from outside" in first.sentence
    back = probe.compare(*folders[::-1]).first
    assert (back.name, back.place) == ("Functional.add.0.forward", "input.1")


def test_values_that_a_call_made_too_are_not_told_as_its_output(tmp_path):
    """Targets that are the inputs: the script made a tensor of its own, with the values of a recorded call."""
    folders = []
    for run, target in (("a", "t"), ("b", "r")):
        made = {"Functional.relu.0.forward": forward([named("x")], [named("r")])}
        loss = forward([named("r"), named(target)], [named(f"loss {run}")])
        write(tmp_path / run / "step0" / "rank", {**made, "Functional.mse_loss.0.forward": loss})
        folders.append(tmp_path / run)
    for golden, mine, sides in ((0, 1, "AB"), (1, 0, "BA")):
        said = probe.compare(folders[golden], folders[mine]).first.sentence
        assert f"outside of the recorded calls in {sides[0]}" in said
        assert f"a tensor with the values of Functional.relu.0.forward in {sides[1]}" in said
