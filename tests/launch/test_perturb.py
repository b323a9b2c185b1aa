# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""`probe run --perturb` moves each number by one rounding, and nothing else."""

from __future__ import annotations

import json
import logging

import mindspore as ms
import ml_dtypes
import numpy as np
import pytest
from mindspore import Parameter, Tensor, bfloat16, ops

import probe
from probe.launch.command import _parser, _with_target
from probe.launch.perturb import NO_WISH, Perturbation, Wish, moved
from tests.support.launched import RUN, own, place, start

FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)


def one_more(array, sign):
    """Return the next number away from zero, or towards it, by the bits."""
    return (array.view(f"i{array.dtype.itemsize}") + sign).view(array.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_each_number_moves_by_one_rounding_up_or_down(dtype):
    given = np.random.RandomState(0).randn(4, 500).astype(dtype)
    found = moved(given, np.random.default_rng(0))
    up, down = (found == one_more(given, 1)), (found == one_more(given, -1))
    assert (up | down).all() and 0.4 < up.mean() < 0.6


@pytest.mark.parametrize("dtype", FLOATS)
def test_zeros_and_nonfinite_stay_and_no_number_becomes_one_of_them(dtype):
    most, least = ml_dtypes.finfo(dtype).max, ml_dtypes.finfo(dtype).smallest_subnormal
    given = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, *[most] * 20, *[-least] * 20], dtype)
    found = moved(given, np.random.default_rng(0))
    assert found[:5].tobytes() == given[:5].tobytes()
    assert np.isfinite(found[5:]).all() and (found[5:] != 0).all() and (found[5:] != given[5:]).all()


def test_whole_numbers_stay_and_complex_ones_move():
    generator = np.random.default_rng(0)
    for given in (np.arange(4), np.array([True, False])):
        assert moved(given, generator).tobytes() == given.tobytes()
    given = np.array([1 + 2j], np.complex64)
    found = moved(given, generator)
    assert found.real != given.real and found.imag != given.imag and abs(found - given) < 1e-6


def test_a_parameter_is_moved_once_and_alike_on_all_ranks():
    values = np.array([1.5, -2.0, 0.0], np.float32)
    one, other = (Parameter(Tensor(values), name="weight") for _ in range(2))
    brain = Parameter(Tensor(values).astype(bfloat16), name="brain")
    perturbation = Perturbation(Wish("parameters", 3))
    perturbation.parameters([one, brain])
    first = one.asnumpy().copy()
    perturbation.parameters([one])
    Perturbation(Wish("parameters", 3)).parameters([other])
    assert (first != values).tolist() == [True, True, False]
    assert first.tobytes() == one.asnumpy().tobytes() == other.asnumpy().tobytes()
    assert np.allclose(abs(brain.float().asnumpy() / [1.5, -2.0, 1] - 1), [2**-7 / 1.5, 2**-8, 1], rtol=1.01)
    assert brain.dtype == bfloat16


def test_the_random_numbers_of_the_training_stay_untouched():
    given = [Parameter(Tensor(np.ones(3, np.float32)), name="w")]
    np.random.seed(1)
    ms.set_seed(1)
    wanted = np.random.rand(), ops.standard_normal((2,)).asnumpy().tolist()
    np.random.seed(1)
    ms.set_seed(1)
    Perturbation(Wish("parameters")).parameters(given)
    assert (np.random.rand(), ops.standard_normal((2,)).asnumpy().tolist()) == wanted


def test_without_a_wish_nothing_is_moved_and_no_header_says_so():
    given, batch = Parameter(Tensor(np.ones(3, np.float32)), name="w"), Tensor(np.ones(3, np.float32))
    perturbation = Perturbation(NO_WISH)
    perturbation.parameters([given])
    perturbation.batch((batch,))
    assert perturbation.header() == {} and given.asnumpy().tolist() == batch.asnumpy().tolist() == [1.0] * 3


def test_a_batch_is_moved_once_in_its_own_memory_and_no_parameter_in_it():
    batch, labels = Tensor(np.ones(3, np.float32)), Tensor(np.ones(3, np.int32))
    parameter = Parameter(Tensor(np.ones(3, np.float32)), name="w")
    perturbation = Perturbation(Wish("batch"))
    perturbation.batch(({"x": [batch]}, parameter), {"y": labels})
    first = batch.asnumpy().copy()
    perturbation.batch((batch,))
    assert (first != 1).all() and first.tobytes() == batch.asnumpy().tobytes()
    assert labels.asnumpy().tolist() == [1] * 3 and parameter.asnumpy().tolist() == [1.0] * 3


def test_a_run_in_which_nothing_was_moved_says_so_at_its_end(caplog):
    perturbation = Perturbation(Wish("batch"))
    perturbation.batch((Tensor(np.ones(3, np.int32)),))
    with caplog.at_level(logging.WARNING, "probe"):
        perturbation.report()
    assert "--perturb batch moved nothing" in caplog.text and "--perturb parameters" in caplog.text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--perturb", "train.py"], ["--perturb=parameters", "train.py"]),
        (["--perturb", "batch", "train.py"], ["--perturb=batch", "train.py"]),
        (["--perturb", "--step", "0", "train.py"], ["--perturb=parameters", "--step", "0", "train.py"]),
        (["--perturb", "-m", "package"], ["--perturb=parameters", "-m", "package"]),
        (["--perturb", "bach", "train.py"], ["--perturb=bach", "train.py"]),
        (["train.py", "--perturb", "batch"], ["train.py", "--perturb", "batch"]),
        (["--step", "0", "train.py", "--perturb"], ["--step", "0", "train.py", "--perturb"]),
    ],
)
def test_the_target_may_be_left_out(words, found, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    assert _with_target(words, _parser()) == found


@pytest.mark.slow
def test_a_perturbed_run_is_loud_and_its_dump_is_a_tolerance(tmp_path):
    folder = place(tmp_path / "run", recorded=False)
    plain = start(folder, *RUN, "--level", "mix", "--dump-path", "golden", "loop.py")
    runs = {"moved": ("--perturb",), "other": ("--perturb", "parameters", "--perturb-seed", "5")}
    for name, words in runs.items():
        done = start(folder, *RUN, "--level", "mix", "--dump-path", name, *words, "loop.py")
        assert done.returncode == 0 and "THIS RUN IS PERTURBED" in done.stderr, done.stderr
        assert own(done.stdout) != own(plain.stdout)
    documents = [json.loads(path.read_text()) for path in (folder / "moved" / "step0").rglob("*.json")]
    told = [found.get("run", found).get("perturbed") for found in documents if "run" in found or "command" in found]
    assert told and all(item == {"target": "parameters", "seed": 0} for item in told)
    assert "PERTURBED" not in plain.stderr
    paths = {name: folder / name for name in ("golden", *runs)}
    assert probe.compare(paths["golden"], paths["other"], noise=paths["moved"]).ok
    assert not probe.compare(paths["golden"], paths["other"], tolerance=0.0).ok


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--perturb", "bach"], "invalid choice: 'bach' (choose from"),
        (["--perturb-seed", "1"], "--perturb-seed needs --perturb"),
        (["--perturb", "--perturb-seed", "-1"], "'-1' is not allowed. Allowed: a whole number from 0"),
    ],
)
def test_a_wrong_wish_ends_the_command_before_the_program(words, said, tmp_path):
    folder = place(tmp_path / "run", recorded=False)
    done = start(folder, *RUN, *words, "loop.py")
    assert done.returncode == 2 and said in done.stderr and not done.stdout
