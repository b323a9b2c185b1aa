# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which call of a suspect gets its golden output."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from probe.findings.sentence import say
from probe.search.cause import BITS, COMPARED, Cause
from probe.search.graft import grafted, heals, in_steps, losses_of
from probe.search.lab import Lab
from probe.search.ledger import Ledger, Result
from probe.search.wishes import Training, Wishes
from tests.reading.builders import forward, tensor, write
from tests.reading.report.rows import broken, write_rows

NORM = "Functional.norm.0.forward"


def laboratory(folder):
    training = Training("train.py", "", ())
    wishes = Wishes(training, training, "", str(folder), 30.0)
    return Lab(wishes, Ledger(str(folder)), time.monotonic() + 3600)


@pytest.mark.parametrize(
    ("kind", "golden_shape", "cell", "name"),
    [
        ("argument", [2, 3], "tower.Tower", "Functional.norm.0"),
        ("argument", [2, 1], "tower.Tower", "Cell.tower.Tower"),
        ("argument", [2, 1], None, ""),
        ("calls", [2, 3], "tower.Tower", "Cell.tower.Tower"),
        ("data", [2, 3], "tower.Tower", ""),
        (
            "gradient",
            [2, 3],
            "tower.Tower",
            "",
        ),  # golden outputs hide gradients that are wrong elsewhere
    ],
)
def test_a_call_whose_golden_output_has_another_shape_gives_way_to_its_cell(
    tmp_path, kind, golden_shape, cell, name
):
    lab = laboratory(tmp_path)
    for experiment, shape in (("record", [2, 3]), ("record_golden", golden_shape)):
        made = tensor(shape=shape)
        folder = Path(lab.place(experiment, "dump")) / "step0" / "rank"
        write(folder, {NORM: forward([tensor()], [made])})
        lab.ledger.add(Result(experiment, "cause", say("find.no_symptom")))
    said = say("find.no_symptom")
    assert grafted(lab, Cause(said, COMPARED, kind, BITS, name=NORM, cell=cell, step=0)) == name


def test_golden_losses_are_those_of_the_monitor(tmp_path):
    # those of a dump may be scaled, and the losses of the other runs are not
    lab = laboratory(tmp_path)
    write_rows(Path(lab.place("watch_golden", "dump")), broken, steps=52, ranks=1)
    losses = losses_of(lab, "watch_golden")
    assert losses["0"] == pytest.approx(3.5, abs=0.1)
    assert set(map(type, losses.values())) == {float}


def test_a_golden_program_that_the_monitor_has_not_seen_has_no_losses(tmp_path):
    lab = laboratory(tmp_path)
    assert losses_of(lab, "watch_golden") == {}
    folder = Path(lab.place("watch_golden", "dump"))
    write_rows(folder, lambda *_: {"seconds": 0.1}, steps=5, ranks=1)
    assert losses_of(lab, "watch_golden") == {}


@pytest.mark.parametrize(
    ("unchanged", "changed", "is_healed"),
    [
        ({"0": 2.0, "1": 1.7}, {"0": 2.0, "1": 1.5}, True),
        ({"0": 2.0, "1": "nan"}, {"0": 2.0, "1": 1.5}, True),
        ({"0": 2.0, "1": 1.7}, {"0": 2.0, "1": 1.500003}, False),  # nearly, and not equal
        ({"0": 2.0, "1": 1.5}, {"0": 2.0, "1": 1.5}, False),  # nothing was sick
        ({"0": 2.0, "1": 1.5000004}, {"0": 2.0, "1": 1.5}, False),  # too close to tell
        ({"7": 2.0}, {"7": 2.0}, False),  # no step in common
    ],
)
def test_a_graft_heals_where_the_losses_become_the_golden_ones(unchanged, changed, is_healed):
    assert heals(unchanged, changed, {"0": 2.0, "1": 1.5}) is is_healed


def test_a_loss_behind_the_grafted_steps_tells_nothing():
    golden = {"0": 2.0, "1": 1.5, "2": 1.2}
    unchanged = {"0": 2.0, "1": 1.7, "2": 1.3}
    changed = {"0": 2.0, "1": 1.5, "2": 1.3}
    assert not heals(unchanged, changed, golden)
    assert heals(*(in_steps(losses, [0, 1]) for losses in (unchanged, changed, golden)))
