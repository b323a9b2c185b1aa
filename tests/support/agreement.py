# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares two dumps of one net, value by value: shapes and dtypes exactly, numbers within a bound."""

from __future__ import annotations

NUMBERS = ("Max", "Min", "Mean", "Norm")


def differences(ours, theirs, bound=1e-5, place="", floor=0.0):
    """Return the places where two entries differ.

    Args:
        ours: an entry, or a part of one.
        theirs: the other.
        bound: the relative difference of numbers that counts as none; Mean is relative to the largest magnitude.
        place: the place of the part.
        floor: tensors whose elements are all smaller hold nothing but rounding errors: their numbers are not compared.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if ours.get("type") == theirs.get("type") == "mindspore.Tensor":
            return _tensor(ours, theirs, bound, place, floor)
        keys = list({**ours, **theirs})
        pairs = [(key, ours.get(key), theirs.get(key)) for key in keys]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(index, mine, other) for index, (mine, other) in enumerate(zip(ours, theirs))]
    else:
        return [] if ours == theirs else [f"{place}: {ours} and {theirs}"]
    return [
        line
        for key, mine, other in pairs
        for line in differences(mine, other, bound, f"{place}.{key}", floor)
    ]


def _tensor(ours, theirs, bound, place, floor):
    if (ours["dtype"], ours["shape"]) != (theirs["dtype"], theirs["shape"]):
        return [f"{place}: {ours['dtype']} {ours['shape']} and {theirs['dtype']} {theirs['shape']}"]
    largest = max(
        (abs(theirs[key]) for key in ("Max", "Min") if theirs[key] is not None), default=0.0
    )
    if largest < floor:
        return []
    found = []
    for key in NUMBERS:
        mine, other = ours[key], theirs[key]
        if mine is None or other is None:
            same = mine == other
        else:
            same = abs(mine - other) <= bound * (abs(other) if key == "Norm" else largest)
        found += [] if same else [f"{place} {key}: {mine} and {other}"]
    return found


def without_model_parameters(data):
    """Return the entries of a PyNative dump without the model's own parameters, which GRAPH_MODE does not record."""
    own = "model_parameters"
    return {
        name: {key: part for key, part in entry.items() if key != own}
        for name, entry in data.items()
    }
