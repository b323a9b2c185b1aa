# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which call of a suspect gets its golden output."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from probe.findings.sentence import say
from probe.search.cause import BITS, COMPARED, Cause
from probe.search.lab import Lab
from probe.search.ledger import Ledger, Result
from probe.search.proofs import grafted
from probe.search.wishes import Training, Wishes
from tests.reading.builders import forward, tensor, write

NORM = "Functional.norm.0.forward"


@pytest.mark.parametrize(
    ("kind", "golden_shape", "cell", "name"),
    [
        ("argument", [2, 3], "tower.Tower", "Functional.norm.0"),
        ("argument", [2, 1], "tower.Tower", "Cell.tower.Tower"),
        ("argument", [2, 1], None, ""),
        ("calls", [2, 3], "tower.Tower", "Cell.tower.Tower"),
        ("data", [2, 3], "tower.Tower", ""),
    ],
)
def test_a_call_whose_golden_output_has_another_shape_gives_way_to_its_cell(
    tmp_path, kind, golden_shape, cell, name
):
    ledger = Ledger(str(tmp_path))
    training = Training("train.py", "", ())
    lab = Lab(Wishes(training, training, "", str(tmp_path), 30.0), ledger, time.monotonic() + 3600)
    for experiment, shape in (("record", [2, 3]), ("record_golden", golden_shape)):
        made = tensor(shape=shape)
        folder = Path(lab.place(experiment, "dump")) / "step0" / "rank"
        write(folder, {NORM: forward([tensor()], [made])})
        ledger.add(Result(experiment, "cause", say("find.no_symptom")))
    said = say("find.no_symptom")
    assert grafted(lab, Cause(said, COMPARED, kind, BITS, name=NORM, cell=cell, step=0)) == name
