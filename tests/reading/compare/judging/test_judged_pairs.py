# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""All pairs of a step with their verdicts: half precision before, other calls before the update, divided batches."""

from __future__ import annotations

import pytest

from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from tests.reading.builders import calls, dump, forward, named, tensor, value


def judged(a, b):
    return JudgedPairs(dump(a), dump(b), Options())


def verdicts(pairs):
    """Return "call place" in A -> verdict."""
    names = pairs.alignment.flows[0].names
    return {f"{names[pair.a]} {slot.place}": slot.verdict for pair, slot in pairs.rows()}


def mixed(factor, dtype):
    """Return a call in a dtype, whose result a call in float32 is given."""
    half = tensor(dtype=dtype)
    return {
        "Functional.f.0.forward": forward([tensor()], [half]),
        "Functional.g.0.forward": forward([half], [tensor(norm=5.0 * factor, Max=5.0 * factor)]),
        "Functional.h.0.forward": forward(
            [tensor(norm=7.0)], [tensor(norm=8.0 * factor, Max=8.0 * factor)]
        ),
    }


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("Float16", "Float16", "close"),
        ("Float32", "Float32", "differs"),
        ("Float16", "Float32", "differs"),
    ],
)
def test_a_call_behind_half_precision_on_both_sides_may_differ_as_much(a, b, said):
    found = verdicts(judged(mixed(1.0, a), mixed(1.001, b)))
    assert found["Functional.g.0.forward output.0"] == said
    assert found["Functional.h.0.forward output.0"] == "differs"


def test_backwards_may_differ_as_much_as_any_backward_or_forward_before_them():
    back = {"input": [tensor(norm=6.0)], "output": [tensor(norm=6.0)]}
    a, b = (
        {
            **mixed(1.0, "Float16"),
            "Functional.g.0.backward": {**back, "output": [tensor(norm=6.0 * factor)]},
        }
        for factor in (1.0, 1.001)
    )
    assert verdicts(judged(a, b))["Functional.g.0.backward output.0"] == "close"


def update(gradient):
    given = {"parameters": [value("w")], "learning_rate": value(0.1)}
    return {
        "Cell.optimizer.SGD.forward.0": {
            "input_args": [[gradient]],
            "input_kwargs": given,
            "output": [],
        }
    }


def training(rows, passes, gradient="g"):
    """Return the entries of some passes over a batch, and the update."""
    data = calls(
        *(f"matmul x{rows}.{place}:{rows}x3 -> y{rows}.{place}:{rows}x2" for place in range(passes))
    )
    return {**data, **calls("f x -> y", "f! gy -> gx"), **update(named(gradient))}


@pytest.mark.parametrize(("a", "b", "side"), [((8, 1), (4, 2), "B"), ((4, 2), (8, 1), "A")])
def test_the_side_that_divides_its_batch_is_forgiven(a, b, side):
    pairs = judged(training(*a), training(*b))
    assert str(pairs.divides).startswith(f"{side} ")
    assert {"other batch", "same", "equal numbers"} >= set(verdicts(pairs).values()) - {""}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (training(8, 1), training(4, 2, "other")),  # other gradients enter
        (training(8, 1), training(4, 1)),  # half of the batch is left out
        (training(8, 2), training(4, 1)),  # the larger batch has more passes
        (training(8, 1), training(3, 2)),
    ],
)
def test_any_other_batch_is_a_difference(a, b):
    pairs = judged(a, b)
    assert not pairs.divides
    assert "shape" in verdicts(pairs).values() or "differs" in verdicts(pairs).values()


def test_other_calls_that_lead_to_equal_gradients_are_no_partners():
    """a / 2 + b / 2 and (a + b) / 2."""
    back = calls("f x -> y", "f! gy -> gx")
    a = {**back, **calls("div ga 2 -> p", "add p q -> g"), **update(named("g"))}
    b = {**back, **calls("div s 2 -> g", "add ga gb -> s"), **update(named("g"))}
    pairs = judged(a, b)
    assert "differs" not in verdicts(pairs).values()
    a["Cell.optimizer.SGD.forward.0"]["input_args"] = [[named("other")]]
    assert "differs" in verdicts(judged(a, b)).values()


def test_a_number_of_the_update_that_differs_is_a_difference():
    a, b = update(named("g")), update(named("g"))
    b["Cell.optimizer.SGD.forward.0"]["input_kwargs"]["learning_rate"] = value(0.2)
    assert verdicts(judged(a, b))["Cell.optimizer.SGD.forward.0 kwargs.learning_rate"] == "differs"
