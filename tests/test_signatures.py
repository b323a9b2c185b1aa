# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parameters of MindSpore's functions: names, places and defaults."""

from __future__ import annotations

import importlib.metadata

import pytest

from probe.signatures import Parameter, parameter

VERSION = importlib.metadata.version("mindspore")


@pytest.mark.parametrize(
    ("key", "place", "wanted"),
    [
        ("Functional.softmax", "input.1", Parameter("axis", 1, "-1")),
        ("Functional.softmax", "kwargs.axis", Parameter("axis", 1, "-1")),
        ("Functional.softmax", "kwargs.dtype", Parameter("dtype", -1, "None")),
        ("Functional.softmax", "input.0", Parameter("input", 0, "")),
        ("Functional.softmax", "input.1.0", Parameter("axis", 1, "-1")),
        ("Mint.topk", "kwargs.largest", Parameter("largest", 3, "True")),
        ("Functional.softmax", "input.9", None),
        ("Functional.softmax", "kwargs.none", None),
        ("Functional.no_such_function", "input.0", None),
        ("Primitive.softmax.Softmax", "input.0", None),
        ("Cell.fc.Dense", "input.0", None),
        ("Functional.softmax", "", None),
    ],
)
def test_a_parameter_is_known_by_its_place_and_its_name(key, place, wanted):
    assert parameter(key, place, VERSION) == wanted


@pytest.mark.parametrize("version", ["", "None", "1.0", VERSION + ".1"])
def test_nothing_is_said_of_another_mindspore(version):
    assert parameter("Functional.softmax", "input.1", version) is None
