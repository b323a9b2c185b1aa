# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Conditions, the search for the smallest set, names of calls, options: all that needs no training."""

from __future__ import annotations

import argparse
import json
import math
import random

import pytest

from probe.errors import UsageError
from probe.intervention import command
from probe.intervention.bisection import Until, agreement, smallest
from probe.intervention.change import OUTSIDE, Calls, Change
from probe.intervention.runs import Run, table
from probe.launch.command import count_of_options


def run_of(*losses, status=None):
    return Run("", [(step, {"loss": loss}) for step, loss in enumerate(losses)], status)


# -- conditions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "has_ended", "answer"),
    [
        ((1.0,), False, None),
        ((1.0, math.nan), False, False),
        ((1.0, math.inf), True, False),
        ((1.0, 2.0), True, True),
    ],
)
def test_finite_is_known_at_the_first_nan_or_at_the_end(losses, has_ended, answer):
    assert Until("finite")(run_of(*losses), has_ended) is answer


@pytest.mark.parametrize(
    ("text", "losses", "answer"),
    [
        ("loss < 3 at 1", (9.0,), None),
        ("loss < 3 at 1", (9.0, 2.9), True),
        ("loss < 3 at 1", (1.0, 3.0), False),
        ("loss >= 3 at 0", (3.0,), True),
        ("loss < 3 at 0", (math.nan,), False),
    ],
)
def test_a_loss_at_a_step_is_known_at_this_step(text, losses, answer):
    assert Until(text)(run_of(*losses), False) is answer


def test_a_run_that_has_failed_fulfils_nothing():
    assert Until("finite")(run_of(1.0, status=1), True) is False


def test_a_run_that_ends_before_the_step_is_an_error():
    with pytest.raises(UsageError, match="no loss at step 7; its last is at 1"):
        Until("loss < 3 at 7")(run_of(1.0, 2.0, status=0), True)


@pytest.mark.parametrize(
    "text",
    ["", "infinite", "loss < 3", "loss = 3 at 1", "loss < x at 1", "loss < 3 at x", "a < 3 at 1"],
)
def test_another_condition_is_refused_with_the_allowed_ones(text):
    with pytest.raises(UsageError, match=r"is not allowed\. Allowed: .finite., .loss < 3 at 20."):
        Until(text)


def test_a_golden_run_without_a_folder_is_refused():
    with pytest.raises(UsageError, match="no such folder"):
        Until("close to nowhere")


def test_agreement_is_the_step_from_which_on_all_losses_are_close():
    golden = {0: 1.0, 1: 1.0, 2: 1.0}
    assert agreement({0: 1.0, 1: 1.0, 2: 1.0}, golden, 0.1) == 0
    assert agreement({0: 2.0, 1: 1.05, 2: 0.95}, golden, 0.1) == 1
    assert agreement({0: 1.0, 1: 1.0, 2: math.nan}, golden, 0.1) is None


# -- the smallest set -------------------------------------------------------------------------------------------------


def found_and_asked(count, wanted):
    """Return the set that was found among so many units, and how often was asked."""
    asked = []

    def holds(units):
        assert tuple(units) not in asked, "asked twice"
        asked.append(tuple(units))
        return wanted <= set(units)

    return smallest([f"u{place}" for place in range(count)], holds), len(asked)


def test_each_of_64_is_found_with_7_questions():
    for place in range(64):
        found, asked = found_and_asked(64, {f"u{place}"})
        assert found == [f"u{place}"]
        assert asked <= 7  # and the unchanged run: 8


def test_each_pair_of_64_is_found_with_19_questions():
    source = random.Random(1)
    for _ in range(300):
        wanted = {f"u{place}" for place in source.sample(range(64), 2)}
        found, asked = found_and_asked(64, wanted)
        assert set(found) == wanted
        assert asked <= 19


def test_three_members_are_found_too():
    assert set(found_and_asked(20, {"u3", "u4", "u19"})[0]) == {"u3", "u4", "u19"}


def test_none_is_found_where_all_together_do_not_hold():
    assert found_and_asked(9, {"other"})[0] is None
    assert found_and_asked(1, {"other"})[0] is None


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def calls(tmp_path):
    def row(name, cell="", kinds=("Float16",)):
        return {
            "name": name,
            "is_cell": name.startswith("Cell"),
            "cell": cell,
            "inputs": kinds,
            "outputs": kinds,
        }

    rows = [
        row("Mint.matmul.0.forward", "Cell.blocks.0.up.Dense"),
        row("Cell.blocks.0.up.Dense.forward.0", "Cell.blocks.0.Block"),
        row("Functional.softmax.0.forward", "Cell.blocks.0.Block"),
        row("Cell.blocks.0.Block.forward.0"),
        row("Functional.softmax.1.forward", "Cell.blocks.1.Block"),
        row("Cell.blocks.1.Block.forward.0"),
        row("Functional.add.0.forward"),
        row("Functional.mul.0.forward", kinds=("Float32",)),
    ]
    (tmp_path / "calls.json").write_text(json.dumps(rows))
    return Calls(str(tmp_path / "calls.json"))


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        ("blocks.0", ("Cell.blocks.0.up.Dense", "Cell.blocks.0.Block")),
        ("blocks", ("Cell.blocks.0.up.Dense", "Cell.blocks.0.Block", "Cell.blocks.1.Block")),
        ("blocks.0.up.Dense", ("Cell.blocks.0.up.Dense",)),
        ("Cell.blocks.1.Block", ("Cell.blocks.1.Block",)),
        ("Functional.softmax", ("Functional.softmax.0.forward", "Functional.softmax.1.forward")),
        ("Functional.softmax.1", ("Functional.softmax.1.forward",)),
        ("Mint.matmul.0.forward", ("Mint.matmul.0.forward",)),
    ],
)
def test_a_name_is_a_cell_with_those_below_or_a_call(calls, given, exact):
    assert calls.resolve(Change(float32=(given,))).float32 == exact


def test_a_skipped_cell_is_that_cell_alone_and_a_graft_keeps_its_direction(calls):
    assert calls.resolve(Change(skip=("blocks.0",))).skip == ("Cell.blocks.0.Block",)
    for name in ("Functional.softmax.1", "Functional.softmax.1.forward"):
        assert calls.resolve(Change(golden="g", put_in=(name,))).put_in == (name,)


@pytest.mark.parametrize(
    ("given", "hint"),
    [("blocks.0.uq", "blocks.0.up"), ("Functional.softmx", "Functional.softmax"), ("up", "up")],
)
def test_a_wrong_name_is_refused_with_the_nearest_right_one(calls, given, hint):
    with pytest.raises(
        UsageError,
        match=f"--float32: no call or Cell of the first step is named '{given}'. Did you .*{hint}",
    ):
        calls.resolve(Change(float32=(given,)))


def test_units_are_the_own_calls_of_cells_layers_or_single_calls_of_half_precision(calls):
    assert calls.units("cell", "float32") == {
        "blocks.0.up": ("Cell.blocks.0.up.Dense",),
        "blocks.0": ("Cell.blocks.0.Block",),
        "blocks.1": ("Cell.blocks.1.Block",),
        OUTSIDE: ("Functional.add.0.forward",),
    }
    assert calls.units("layer", "float32")["blocks.0"] == (
        "Cell.blocks.0.up.Dense",
        "Cell.blocks.0.Block",
    )
    assert len(calls.units("call", "float32")) == 4
    assert calls.units("cell", "formula")["blocks.1"] == ("Functional.softmax.1.forward",)


def test_a_first_step_without_calls_is_an_error(tmp_path):
    (tmp_path / "calls.json").write_text("[]")
    with pytest.raises(UsageError, match="no call was seen"):
        Calls(str(tmp_path / "calls.json"))
    with pytest.raises(UsageError, match="cannot be read"):
        Calls(str(tmp_path / "none.json"))


# -- words and tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("train.py --flag", 0),
        ("-o out train.py", 2),
        ("--pair a b train.py -o x", 3),
        ("--flag --one=1 train.py", 2),
        ("--one 1 -m module", 2),
        ("-h", 1),
    ],
)
def test_options_stand_before_the_program(words, count):
    parser = argparse.ArgumentParser()
    parser.add_argument("-o")
    parser.add_argument("--one")
    parser.add_argument("--pair", nargs=2)
    parser.add_argument("--flag", action="store_true")
    assert count_of_options(words.split(), parser) == count


def test_a_table_shows_series_beside_each_other():
    lines = table({"unchanged": {0: 1.5, 1: math.nan}, "changed": {0: 2.0}}).splitlines()
    assert [line.split() for line in lines] == [
        ["step", "unchanged", "changed"],
        ["0", "1.5", "2"],
        ["1", "nan", "-"],
    ]


def test_a_change_says_in_both_languages_what_it_is():
    change = Change(float32=("a",), golden="gold", put_in=("b",), seed=3)
    assert change.sentence.text("en") == "a in float32; the output of b from gold; seed 3"
    assert "gold" in change.sentence.text("zh")
    assert not Change().sentence


@pytest.mark.parametrize("name", ["try", "bisect", "drill"])
def test_an_error_of_ours_is_one_line_and_status_70(name, monkeypatch, capsys, tmp_path):
    def fail(given, runs):
        raise RuntimeError("planted")

    monkeypatch.setitem(command._COMMANDS, name, lambda parser: fail)
    assert command.main([name, "-o", str(tmp_path / "runs"), "train.py"]) == 70
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("probe: internal error: RuntimeError: planted.")
    assert "Traceback" not in told.err
