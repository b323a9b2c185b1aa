# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A value from outside is the batch if it enters the model or the loss, or changes from step to step."""

from __future__ import annotations

import pytest

import probe
from probe.search.disk_answer import diagnosis_of
from probe.search.on_disk import look
from tests.reading.builders import calls, write

#: the first call of a step is given a value; ``{step}`` makes it another one in each step
LOOKED_UP = ("look{side} table{side} -> a{side}", "Cell.net.Net x{step} -> y{step}")
CHANGING = ("take x{step}{side} -> a{step}{side}",)
FED = ("Cell.net.Net x{side} -> y{side}",)
IN_LOSS = ("Cell.net.Net x{step} -> y{step}", "loss y{step} label{side} -> l{step}{side}")


def two(folder, lines, steps=3):
    """Write two runs; B has other values where lines have a side."""
    for name, side in (("golden", ""), ("mine", "B")):
        for step in range(steps):
            told = [line.format(side=side, step=step) for line in lines]
            told = [line.replace("lookB", "look") for line in told]
            write(folder / name / f"step{step}" / "rank", calls(*told, md5=True))
    return folder / "golden", folder / "mine"


def first(folder, lines, steps=3):
    comparison = probe.compare(*two(folder, lines, steps))
    return comparison.first.kind, comparison.first.sentence


def test_a_table_that_the_script_looks_up_is_a_constant(tmp_path):
    kind, said = first(tmp_path, LOOKED_UP)
    assert kind == "outside value"
    assert said.startswith(
        "a constant, or a value that the program made before these steps, differs"
    )
    assert said.endswith("A has the same one in steps 0-2")


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        (LOOKED_UP, 1),  # one step does not tell
        (CHANGING, 3),
        (FED, 3),  # a training with the same batch in each step
    ],
)
def test_another_first_value_is_the_batch(tmp_path, lines, steps):
    kind, said = first(tmp_path, lines, steps)
    assert (kind, said.partition(":")[0]) == ("data", "the batch differs")


def test_labels_of_the_loss_are_no_constant(tmp_path):
    kind, said = first(tmp_path, IN_LOSS)
    assert (kind, "constant," in said) == ("data", False)


def test_the_advice_about_a_constant_leads_to_the_program(tmp_path):
    golden, mine = map(str, two(tmp_path, LOOKED_UP))
    said = str(diagnosis_of(look(mine, golden), mine, golden).advice.said)
    assert said.startswith("look at the code that makes this value, before the first step")
