# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""From the scope name of a kernel to the innermost Cell of the model that it names."""

from __future__ import annotations

import pytest

from probe.reading.dumps.kernels.step import CellPaths

CELLS = CellPaths(
    {
        "body": "Body",
        "body.body": "Body",
        "body.body.fc": "Dense",
        "body.fc": "Dense",
        "head": "Dense",
    }
)


SCOPES = {
    "body-Body/fc-Dense": "body.fc.Dense", "body-Body": "body.Body", "body-Body/body-Body": "body.body.Body",
    "body-Body/body-Body/fc-Dense": "body.body.fc.Dense", "body/body/fc": "body.body.fc.Dense",
    "body/fc": "body.fc.Dense", "body-Other/fc-Dense": None, "tail-Dense": None,
}  # fmt: skip


@pytest.mark.parametrize("scope", SCOPES)
def test_the_innermost_cell_counts(scope):
    wanted = SCOPES[scope] and f"Cell.{SCOPES[scope]}.forward.0"
    whole = f"Default/network-Net/{scope}/MatMul-op3"
    assert CELLS.entry(whole) == wanted
    if "-" in scope:  # joined names have classes
        assert CELLS.entry(whole.replace("/", "_")) == wanted


def test_the_parents_lead_to_the_outermost_cell():
    found = CELLS.construct({"Kernel.a.0.forward": CELLS.name("body.fc")})
    assert found["Kernel.a.0.forward"] == "Cell.body.fc.Dense.forward.0"
    assert found["Cell.body.fc.Dense.forward.0"] == "Cell.body.Body.forward.0"
    assert found["Cell.body.Body.forward.0"] is None
