# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pipeline stages as one document: layers and calls have the numbers that they have in the whole model."""

from __future__ import annotations

import pytest

from probe.reading.compare.layouts.stages import Stages
from tests.reading.builders import calls, dump


def whole(*stages):
    """Return the names of the entries of all stages, put together."""
    return list(Stages([dump(calls(*lines)).document for lines in stages]).data)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_calls_of_one_api_are_numbered_on(count):
    lines = tuple(f"relu x{place} -> y{place}" for place in range(count))
    assert whole(lines, lines) == [
        f"Functional.relu.{number}.forward" for number in range(2 * count)
    ]


def test_layers_that_are_counted_from_0_are_numbered_on():
    stage = ("Cell.layers.0.Block a -> b", "Cell.layers.1.Block b -> c")
    assert whole(stage, stage) == [f"Cell.layers.{number}.Block.forward.0" for number in range(4)]


def test_layers_with_the_numbers_of_the_whole_keep_them():
    names = [f"Cell.layers.{number}.Block.forward.0" for number in range(4)]
    assert (
        whole(
            *(
                tuple(f"{name[:-10]} a -> b" for name in names[place : place + 2])
                for place in (0, 2)
            )
        )
        == names
    )


def test_forwards_run_from_the_first_stage_and_backwards_from_the_last():
    stage = ("relu x -> y", "relu! gy -> gx")
    assert whole(stage, stage) == [
        "Functional.relu.0.forward",
        "Functional.relu.1.forward",
        "Functional.relu.1.backward",
        "Functional.relu.0.backward",
    ]


def test_a_cell_that_is_called_twice_in_each_stage_is_numbered_on():
    stage = ("Cell.head.Dense a -> b", "Cell.head.Dense b -> c")
    assert whole(stage, stage) == [f"Cell.head.Dense.forward.{number}" for number in range(4)]
