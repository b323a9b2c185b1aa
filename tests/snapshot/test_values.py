# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The checksums of a snapshot, and the circumstances of a process."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from probe.reading.check.weights.weight import Weight, word_of
from probe.snapshot.secrets import CUT, to_json
from probe.snapshot.snapshot import _commit, _packages, sum_of_bits

DTYPES = ["i1", "u1", "?", "f2", ml_dtypes.bfloat16, "f4", "i4", "f8", "i8", "c8", "c16"]


def array(dtype):
    """Return an array whose bits, added in their own width, leave it."""
    kind = np.dtype(dtype)
    return np.full(3000, 1 if kind.kind == "b" else 101, kind)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_sum_of_a_parameter_of_a_run_is_that_of_a_checkpoint(dtype):
    values = array(dtype)
    weight = Weight(
        word_of(values.dtype), values.shape, lambda: iter([values[:1000], values[1000:]])
    )
    assert sum_of_bits(values) == weight.digest().sum


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_sum_is_that_of_the_same_elements_in_another_order_alone(dtype):
    values = array(dtype)
    values[::2] = 0
    total = sum_of_bits(values)
    assert total == sum_of_bits(values[::-1]) == sum_of_bits(values.reshape(30, 100).T)
    values[0] = 1
    assert total != sum_of_bits(values)


def test_the_commit_is_the_last_one_that_was_checked_out(tmp_path):
    logs = tmp_path / ".git" / "logs"
    logs.mkdir(parents=True)
    (logs / "HEAD").write_text(
        f"{'0' * 40} {'a' * 40} A <a@b> 1 +0000\tfirst\n{'a' * 40} {'b' * 40} A <a@b> 2 +0000\tnext\n"
    )
    assert _commit(tmp_path) == "b" * 40


def test_a_further_worktree_has_a_log_of_its_own(tmp_path):
    logs = tmp_path / "main" / "worktrees" / "other" / "logs"
    logs.mkdir(parents=True)
    (logs / "HEAD").write_text(f"{'0' * 40} {'c' * 40} A <a@b> 1 +0000\tfirst\n")
    (tmp_path / ".git").write_text(f"gitdir: {logs.parent}\n")
    assert _commit(tmp_path) == "c" * 40


@pytest.mark.parametrize("content", [None, "", "word"])
def test_what_is_no_repository_has_no_commit(tmp_path, content):
    if content is not None:
        (tmp_path / ".git" / "logs").mkdir(parents=True)
        (tmp_path / ".git" / "logs" / "HEAD").write_text(content)
    assert _commit(tmp_path) is None


def test_packages_are_told_by_the_names_of_folders(tmp_path, monkeypatch):
    for name in (
        "My_Tool-1.2.dist-info",
        "old-0.3-py3.9.egg-info",
        "my_tool-9.dist-info",
        "no_version.dist-info",
    ):
        (tmp_path / name).mkdir()
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "gone")])
    found = _packages()
    assert found["old"] == "0.3"
    assert found["my-tool"] in ("1.2", "9")
    assert "no_version.dist-info" not in found


def test_a_secret_is_cut_wherever_its_name_stands_above_it():
    given = {
        "secret": {"deep": [1, 2]},
        "tokens": {"max_tokens": 512},
        "login": {"password": 7, "name": "x"},
    }
    assert to_json(given) == {
        "secret": {"deep": [CUT, CUT]},
        "tokens": {"max_tokens": 512},
        "login": {"password": CUT, "name": "x"},
    }
