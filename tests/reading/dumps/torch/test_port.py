# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A net of PyTorch and its port to MindSpore: the recorded dump of one, the real training step of the other."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

import probe
from tests.support import processes
from tests.support.paths import ROOT, environment
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "pytorch"
#: name -> the arguments of the training in MindSpore
RUNS = {
    "L0": ["--level", "L0"],
    "L0 mint": ["--level", "L0", "--linear", "mint"],
    "L0 tanh": ["--level", "L0", "--gelu", "tanh"],
    "L1": ["--level", "L1"],
    "L1 tanh": ["--level", "L1", "--gelu", "tanh"],
    "L1 mint": ["--level", "L1", "--linear", "mint"],
    "L1 mint tanh": ["--level", "L1", "--linear", "mint", "--gelu", "tanh"],
    "arrays": ["--task", "tensor", "--list", "blocks.1.norm2", "blocks.1.act", "head.Head"],
}


@pytest.fixture(scope="module")
def ported(tmp_path_factory):
    """Return a function that gives the folder of a run, which is recorded once."""
    folder = tmp_path_factory.mktemp("ported")

    def record(name):
        path = folder / name.replace(" ", "_")
        if not path.exists():
            command = [
                sys.executable,
                EXAMPLE / "train_mindspore.py",
                "--dump-path",
                path,
                *RUNS[name],
            ]
            done = processes.run(
                command, capture_output=True, text=True, check=False, env=environment(), cwd=folder
            )
            assert done.returncode == 0, done.stderr
        return path

    return record


def shares(comparison):
    """Return which part of the calls of A and of B is paired."""
    (unit,) = comparison.units
    paired = unit.counts.paired
    return [paired / (paired + alone) for alone in unit.counts.only]


def greatest(comparison):
    """Return the row with the greatest known distance; a sum that should be zero has none."""
    known = (row for row in comparison.table() if row["verdict"] != "near zero")
    return max(known, key=lambda row: row["rel_l2"] or 0.0)


#: run -> the least shares of the calls of PyTorch and of MindSpore with a partner
SHARES = {"L0": (0.95, 0.95), "L0 mint": (0.95, 0.95), "L1": (0.95, 0.35), "L1 mint": (0.95, 0.7)}


@pytest.mark.parametrize("run", SHARES)
def test_both_frameworks_are_paired_and_agree(run, ported):
    comparison = probe.compare(EXAMPLE / run.split()[0], ported(run))
    worst = greatest(comparison)
    print(
        run, shares(comparison), worst["call_a"], worst["call_b"], worst["place"], worst["rel_l2"]
    )
    assert comparison.ok
    assert worst["rel_l2"] <= 1e-5
    assert all(share >= least for share, least in zip(shares(comparison), SHARES[run]))


def test_at_l0_the_tensors_are_paired_too(ported):
    rows = list(probe.compare(EXAMPLE / "L0", ported("L0")).table())
    paired = [row for row in rows if row["dtype_a"] and row["dtype_b"]]
    assert len(rows) > 150
    assert len(paired) / len(rows) >= 0.95


@pytest.mark.parametrize("golden_first", [True, False])
def test_the_approximate_gelu_is_named(golden_first, ported):
    sides = (EXAMPLE / "L0", ported("L0 tanh"))
    comparison = probe.compare(*(sides if golden_first else sides[::-1]))
    name = (
        "Cell.blocks.0.act.GELU.forward.0" if golden_first else "Module.blocks.0.act.GELU.forward.0"
    )
    assert (comparison.first.kind, comparison.first.name) == ("computation", name)
    assert len(comparison.origins) == 1


def test_the_transposed_weight_is_told(ported):
    rows = list(probe.compare(EXAMPLE / "L0", ported("L0")).table())
    turned = {(row["call_b"], row["place"]) for row in rows if row["verdict"] == "transposed"}
    assert turned == {
        ("Cell.head.Head.forward.0", "parameters.weight"),
        ("Cell.head.Head.parameters_grad.0", "weight.0"),
    }


def test_arrays_of_both_are_read(ported):
    comparison = probe.compare(EXAMPLE / "arrays", ported("arrays"))
    rows = [row for row in comparison.table() if row["call_a"] and row["call_b"] and row["exact"]]
    assert comparison.ok
    assert {row["cell"] for row in rows} >= {"blocks.1.Block"}
    assert {row["verdict"] for row in rows} <= {"same", "close", "transposed", "near zero"}
    assert ("Cell.head.Head.forward.0", "parameters.weight", "transposed") in {
        (row["call_b"], row["place"], row["verdict"]) for row in rows
    }
    weight = probe.open(EXAMPLE / "arrays")[0]["Module.head.Head.forward.0"].parameters["weight"]
    own = probe.open(ported("arrays"))[0]["Cell.head.Head.forward.0"].parameters["weight"]
    assert np.array_equal(weight.array(), own.array().T)
    assert np.isclose(np.linalg.norm(weight.array()), weight.norm, rtol=1e-6)


@pytest.mark.parametrize("run", ["L1 tanh", "L1 mint tanh"])
def test_the_approximate_gelu_is_named_at_l1(run, ported):
    comparison = probe.compare(EXAMPLE / "L1", ported(run))
    assert (comparison.first.kind, comparison.first.name) == (
        "computation",
        "Functional.gelu.0.forward",
    )
    assert len(comparison.origins) == 1


_NORM, _WEIGHTED = (
    "x = x + self.attention(self.norm1(x))",
    "return self.o(ops.matmul(ops.softmax(scores, -1), self.v(x)))",
)
_SCORES = "scores = ops.matmul(self.q(x), self.k(x).swapaxes(1, 2)) * WIDTH**-0.5"
_UP = "return x + self.down(self.act(self.up(self.norm2(x))))"
_TURN = 'arrays["head.weight"] = arrays["head.weight"].T'
#: fault -> a text of the program, another text in its place, and the lines that are named at L0 and at L1
FAULTS = {
    "epsilon": ("epsilon=1e-5)", "epsilon=1e-3)", _NORM, _NORM),
    "axis": ("softmax(scores, -1)", "softmax(scores, 1)", _WEIGHTED, _WEIGHTED),
    "scale": ("WIDTH**-0.5", "WIDTH**-1.0", _WEIGHTED, _SCORES),
    "weight": (
        _TURN,
        f'{_TURN}; arrays["blocks.1.up.weight"] = arrays["blocks.1.up.weight"] * 1.01',
        _UP,
        _UP,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("level", thorough_but(["L1"], ["L0", "L1"]))
def test_a_fault_of_the_port_is_named_with_its_line(level, fault, tmp_path):
    old, new, *lines = FAULTS[fault]
    program = (EXAMPLE / "train_mindspore.py").read_text("utf-8")
    assert old in program
    (tmp_path / "port.py").write_text(program.replace(old, new), "utf-8")
    (tmp_path / "weights.py").write_text((EXAMPLE / "weights.py").read_text("utf-8"), "utf-8")
    command = [sys.executable, "port.py", "--dump-path", "mine", "--level", level]
    processes.run(command, capture_output=True, check=True, env=environment(), cwd=tmp_path)
    comparison = probe.compare(EXAMPLE / level, tmp_path / "mine")
    print(comparison)
    assert comparison.first.source == lines[int(level == "L1")].replace(old, new)


def test_a_wrapper_around_the_net_of_pytorch_changes_nothing(ported, tmp_path):
    folder = tmp_path / "step0" / "rank"
    folder.mkdir(parents=True)
    for path in (EXAMPLE / "L0").rglob("*.json"):
        (folder / path.name).write_text(
            path.read_text("utf-8").replace("Module.", "Module.module."), "utf-8"
        )
    comparison = probe.compare(tmp_path, ported("L0"))
    assert comparison.ok
    assert shares(comparison) == [1.0, 1.0]


#: the commands of the page, each with the lines that it prints
COMMANDS = [
    command.partition("\n")
    for block in re.findall(
        r"^```\n(.*?)^```$", (ROOT / "docs" / "pytorch.md").read_text("utf-8"), re.M | re.S
    )
    for command in block.split("$ ")[1:]
]


def without_numbers(text, folder):
    """Return the words of a text with paths from here, without what depends on the last digits of a machine."""
    lines = [
        line
        for line in text.replace(f"{folder}/", "").splitlines()
        if not line.startswith("also suspicious")
    ]
    return [
        "#" if re.fullmatch(r"-?\d[\d.e+-]*[,;:)]?", word) else word
        for line in lines
        for word in line.split()
    ]


def test_the_commands_of_the_page_print_what_it_shows(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command, _, shown in COMMANDS:
        words = command.replace("probe ", "-m probe ").removeprefix("python ").split()
        done = processes.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
            cwd=tmp_path,
        )
        assert done.returncode == int("wrong" in words and "-m" in words), done.stderr
        assert without_numbers(done.stdout, tmp_path) == without_numbers(shown, tmp_path)
    assert len(COMMANDS) == 4


def test_the_recorded_dump_is_small_and_names_no_machine():
    files = [
        path for path in EXAMPLE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert sum(path.stat().st_size for path in files) < 300_000
    texts = [path.read_text("utf-8") for path in files if path.suffix == ".json"]
    assert texts
    assert [text for text in texts if "File /" in text or '": "/' in text] == []
