# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""msprobe's readers open the dump of a program of torch on MindSpore."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.conformance import test_msprobe
from tests.conformance.test_msprobe import compare, document, run, tensors, visualize
from tests.support.paths import ROOT

PYTHON = Path(os.environ.get("PROBE_TORCH", ROOT / ".torch")) / "bin/python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PYTHON.exists(), reason=f"mindtorch's environment of {PYTHON} is missing: make torch"
    ),
    pytest.mark.skipif(not test_msprobe.PYTHON.exists(), reason="msprobe is missing: make peer"),
]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Return a step of a program of torch, and the same as if PyTorch had made it."""
    folder = tmp_path_factory.mktemp("torch")
    options = ["--level", "mix", "--dump-path", folder / "dump"]
    run(PYTHON, "-m", "probe", "run", *options, "-m", "tests.layers.torch_net")
    ours = folder / "dump/step1/rank"
    theirs = folder / "pytorch"
    shutil.copytree(ours, theirs)
    written = json.loads((theirs / "dump.json").read_text(encoding="utf-8"))
    assert written["framework"] == "mindtorch"
    (theirs / "dump.json").write_text(json.dumps({**written, "framework": "pytorch"}))
    return ours, theirs


def test_graph_visualize_has_a_node_for_each_entry(dumps, tmp_path):
    nodes = visualize(dumps[0], tmp_path / "graph")
    assert {name for name in document(dumps[0]) if "parameters_grad" not in name} <= nodes


def test_compare_pairs_each_tensor_with_the_one_of_pytorch(dumps, tmp_path):
    rows = compare(*dumps, tmp_path / "compared")
    records = sum(1 for name, entry in document(dumps[0]).items() for _ in tensors(entry, name))
    named = [row for row in rows if "N/A" not in (row["NPU Name"], row["Bench Name"])]
    assert len(named) == len(rows) >= records > 100
