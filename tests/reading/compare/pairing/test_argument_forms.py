# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Arguments that one side gives by place and the other by name, or packed in a list, are one."""

from __future__ import annotations

import copy

import pytest

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.argument_forms import fit_arguments
from probe.reading.compare.pairing.normal_dump import NormalDump
from tests.reading.builders import dump, forward, named, tensor, value

X, Y, Z, MADE = (named(word) for word in ("x", "y", "z", "made"))
MASK = tensor(dtype="Bool", shape=[3, 3], Max=True, Min=False, Mean=None, Norm=None)


def call(*given, made=MADE, **names):
    """Return the entry of a call; numbers and texts get their records."""
    return forward(list(map(_record, given)), [made], **{k: _record(v) for k, v in names.items()})


def _record(item):
    if isinstance(item, (list, tuple)):
        return [_record(inner) for inner in item]
    return item if item is None or isinstance(item, dict) else value(item)


def fitted(a, b, key="Functional.f", before=(), backwards=()):
    """Return how many calls were brought into one form, and the two dumps after it."""
    dumps = []
    for side, entry in enumerate((a, b)):
        data = dict(before[side]) if before else {}
        data[f"{key}.forward.0" if key.startswith("Cell.") else f"{key}.0.forward"] = entry
        if backwards:
            data[f"{key}.0.backward"] = backwards[side]
        dumps.append(NormalDump(dump(data)))
    alignment = Alignment(*dumps)
    return fit_arguments(alignment, *dumps), dumps, alignment


def entries(dumps, name="Functional.f.0.forward"):
    """Return the arguments of both sides."""
    return [(one.data[name]["input_args"], one.data[name]["input_kwargs"]) for one in dumps]


ONE = [
    (call(X, -1), call(X, dim=-1)),
    (call(X, None, -100, "mean"), call(X, reduction="mean", ignore_index=-100)),
    (call(X, Y), call(input=X, other=Y)),
    (call(X, Y), call(other=Y, input=X)),
    (call(X, [1], True), call(X, keepdim=True, dim=1)),
    (call(X, 1), call(X, dim=[1])),
    (call(X, dim=[1]), call(X, dim=1)),
    (call(X, 2, 3), call(X, [2, 3])),
    (call(X, [0, 2, 1]), call(X, 0, 2, 1)),
    (call([X, X], 0), call(tensors=[X, X], dim=0)),
    (call(X, Y, 2), call(X, alpha=2, other=Y)),
    (call(MASK, X), call(condition=MASK, input=X)),
    (call(2, X), call(input=2, other=X)),
]


@pytest.mark.parametrize("pair", ONE, ids=range(len(ONE)))
@pytest.mark.parametrize("is_turned", [False, True])
def test_one_call_in_two_forms_has_equal_arguments(pair, is_turned):
    given = pair[::-1] if is_turned else pair
    before = copy.deepcopy(given)
    count, dumps, alignment = fitted(*given)
    assert count == 1
    left, right = entries(dumps)
    assert _known(left) == _known(right)
    places = [[(link.place, link.record) for link in flow.links[0]] for flow in alignment.flows]
    assert places[0] == places[1]
    assert given == before  # the opened dumps stay


def _known(given):
    """Return the arguments without those that are None: a place whose value got a name."""
    by_place, named_ones = given
    return [item for item in by_place if item is not None], named_ones


SAME = [
    (call(X, -1), call(X, -1)),
    (call(X, 1), call(X, 2)),
    (call(X, 1), call(X)),
    (call([X, Y], 0), call([X, Y], 0)),
    (call(X, dim=1), call(X, dim=2)),
    (call(X, 0), call(X, dim=-1)),
]


@pytest.mark.parametrize("pair", SAME, ids=range(len(SAME)))
def test_other_calls_stay(pair):
    count, dumps, _ = fitted(*pair)
    assert count == 0
    assert entries(dumps) == [(entry["input_args"], entry["input_kwargs"]) for entry in pair]


@pytest.mark.parametrize(("size", "is_one"), [(0.9e-3, True), (1.1e-3, False)])
def test_equal_values_are_no_proof_where_the_results_differ(size, is_one):
    # pool(x, 2) has another stride, pool(x, padding=2) another padding
    numbers = {key: MADE[key] * (1 + size) for key in ("Norm", "Max", "Min", "Mean")}
    other = {**MADE, **numbers}
    count, *_ = fitted(call(X, 2), call(X, padding=2, made=other))
    assert count == int(is_one)


def test_the_argument_that_is_another_one_stays_alone():
    other = tensor(norm=9.0)
    count, dumps, _ = fitted(
        call(X, None, -100, "mean", 0.1), call(X, label_smoothing=0.2, reduction="mean", made=other)
    )
    assert count == 1
    (by_place, names_a), (_, names_b) = entries(dumps)
    assert by_place[4] == value(0.1)
    assert names_a == {"reduction": value("mean")}
    assert names_b == {"label_smoothing": value(0.2), "reduction": value("mean")}


def test_tensors_that_partners_made_are_one_though_their_values_differ():
    def made(tensor_made):
        return {"Functional.g.0.forward": forward([X], [tensor_made])}

    other = {**Z, "Norm": 5.0, "Max": 4.0}
    result = tensor(norm=8.0)
    before = (made(Z), made(other))
    count, dumps, _ = fitted(call(Y, Z), call(Y, mask=other, made=result), before=before)
    assert count == 1
    (_, names_a), (_, names_b) = entries(dumps)
    assert names_a.keys() == names_b.keys() == {"mask"}


def test_of_a_cell_the_calls_in_it_tell():
    key = "Cell.att.Attention"
    count, dumps, _ = fitted(call(X, Y), call(X, mask=Y, made=tensor(norm=9.0)), key=key)
    assert count == 1
    assert entries(dumps, f"{key}.forward.0") == [([X], {"mask": Y}), ([X], {"mask": Y})]


def test_gradients_go_with_their_arguments_and_their_places_on_disk_are_known():
    given = tensor(norm=1.0)
    grads = [tensor(norm=2.0), tensor(norm=3.0)]
    by_place = {"input": [given], "output": grads}
    by_name = {
        "input": [given],
        "output": [],
        "output_kwargs": {"other": grads[1], "input": grads[0]},
    }
    count, (a, b), _ = fitted(call(X, Y), call(other=Y, input=X), backwards=(by_place, by_name))
    assert count == 1
    name = "Functional.f.0.backward"
    assert a.data[name]["output_kwargs"] == b.data[name]["output_kwargs"]
    assert a.data[name]["output"] == []
    assert a.on_disk(name, "output_kwargs.other") == "output.1"
    assert a.on_disk("Functional.f.0.forward", "kwargs.other") == "input.1"
    assert b.on_disk("Functional.f.0.forward", "kwargs.other") == "kwargs.other"


def test_calls_of_other_names_stay():
    dumps = [
        NormalDump(dump({"Functional.f.0.forward": call(X, 1)})),
        NormalDump(dump({"Functional.g.0.forward": call(X, dim=1)})),
    ]
    alignment = Alignment(*dumps)
    assert alignment.b_of == {0: 0}
    assert fit_arguments(alignment, *dumps) == 0
