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
from probe.config.config_file import ConfigFile
from probe.launch.command import _parser, count_of_options
from probe.launch.perturb import Perturbation, moved
from tests.support.launched import RUN, own, place, start


def perturbation(target, seed=0):
    return Perturbation(target, ConfigFile(None), seed)


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
    assert (
        np.isfinite(found[5:]).all() and (found[5:] != 0).all() and (found[5:] != given[5:]).any()
    )


def test_whole_and_complex_numbers_stay():
    for given in (np.arange(4), np.array([True, False]), np.array([1 + 2j], np.complex64)):
        assert moved(given, np.random.default_rng(0)).tobytes() == given.tobytes()


def test_a_parameter_is_moved_once_and_alike_on_all_ranks():
    values = np.array([1.5, -2.0, 0.0], np.float32)
    one, other = (Parameter(Tensor(values), name="weight") for _ in range(2))
    brain = Parameter(Tensor(values).astype(bfloat16), name="brain")
    moving = perturbation("parameters", 3)
    moving.parameters([one, brain])
    first = one.asnumpy().copy()
    moving.parameters([one])
    perturbation("parameters", 3).parameters([other])
    assert (first != values).tolist() == [True, True, False]
    assert first.tobytes() == one.asnumpy().tobytes() == other.asnumpy().tobytes()
    assert np.allclose(
        abs(brain.float().asnumpy() / [1.5, -2.0, 1] - 1), [2**-7 / 1.5, 2**-8, 1], rtol=1.01
    )
    assert brain.dtype == bfloat16


def test_the_random_numbers_of_the_training_stay_untouched():
    given = [Parameter(Tensor(np.ones(3, np.float32)), name="w")]
    np.random.seed(1)
    ms.set_seed(1)
    wanted = np.random.rand(), ops.standard_normal((2,)).asnumpy().tolist()
    np.random.seed(1)
    ms.set_seed(1)
    perturbation("parameters").parameters(given)
    assert (np.random.rand(), ops.standard_normal((2,)).asnumpy().tolist()) == wanted


def test_without_a_target_nothing_is_moved_and_no_header_says_so():
    given, batch = (
        Parameter(Tensor(np.ones(3, np.float32)), name="w"),
        Tensor(np.ones(3, np.float32)),
    )
    source = ConfigFile(None)
    perturbation = Perturbation("", source)
    perturbation.parameters([given])
    perturbation.batch((batch,))
    assert source.header == {} and given.asnumpy().tolist() == batch.asnumpy().tolist() == [1.0] * 3


def test_a_batch_is_moved_once_in_its_own_memory_and_no_parameter_in_it():
    batch, labels = Tensor(np.ones(3, np.float32)), Tensor(np.ones(3, np.int32))
    parameter = Parameter(Tensor(np.ones(3, np.float32)), name="w")
    moving = perturbation("batch")
    moving.batch(({"x": [batch]}, parameter), {"y": labels})
    first = batch.asnumpy().copy()
    moving.batch((batch,))
    assert (first != 1).all() and first.tobytes() == batch.asnumpy().tobytes()
    assert labels.asnumpy().tolist() == [1] * 3 and parameter.asnumpy().tolist() == [1.0] * 3


def test_the_warning_tells_how_many_were_moved(caplog):
    with caplog.at_level(logging.WARNING, "probe"):
        perturbation("batch").batch((Tensor(np.ones(3, np.int32)),))
    assert "THIS RUN IS PERTURBED (--perturb=batch): 0 of 1 tensors so far" in caplog.text


@pytest.mark.parametrize(
    ("words", "found", "count"),
    [
        (["--perturb", "train.py"], "parameters", 1),
        (["--perturb=batch", "train.py"], "batch", 1),
        (["--perturb", "--step", "0", "train.py"], "parameters", 3),
        (["--perturb", "-m", "package"], "parameters", 1),
        (["train.py", "--perturb"], None, 0),
        (["--step", "0", "train.py", "--perturb=batch"], None, 2),
    ],
)
def test_the_target_may_be_left_out(words, found, count):
    parser = _parser()
    assert count_of_options(words, parser) == count
    assert parser.parse_args(words[:count]).perturb == found


@pytest.mark.slow
def test_a_perturbed_run_is_loud_and_its_dump_is_a_tolerance(tmp_path):
    folder = place(tmp_path / "run", recorded=False)
    plain = start(folder, *RUN, "--level", "mix", "--dump-path", "golden", "loop.py")
    runs = {"moved": ("--perturb",), "other": ("--perturb=batch",)}
    for name, words in runs.items():
        done = start(folder, *RUN, "--level", "mix", "--dump-path", name, *words, "loop.py")
        assert done.returncode == 0 and "THIS RUN IS PERTURBED" in done.stderr, done.stderr
        assert own(done.stdout) != own(plain.stdout)
    documents = [
        json.loads(path.read_text()) for path in (folder / "moved" / "step0").rglob("*.json")
    ]
    told = [
        found.get("run", found).get("perturbed")
        for found in documents
        if "run" in found or "command" in found
    ]
    assert told and all(item == {"target": "parameters", "seed": 0} for item in told)
    assert "PERTURBED" not in plain.stderr
    paths = {name: folder / name for name in ("golden", *runs)}
    assert probe.compare(paths["golden"], paths["other"], noise=paths["moved"]).ok
    assert not probe.compare(paths["golden"], paths["other"], tolerance=0.0).ok


@pytest.mark.slow
def test_a_wrong_target_ends_the_command_before_the_program(tmp_path):
    done = start(place(tmp_path / "run", recorded=False), *RUN, "--perturb=bach", "loop.py")
    assert (
        done.returncode == 2
        and "'bach' is not allowed. Allowed: parameters, batch. Did you mean batch?" in done.stderr
        and not done.stdout
    )
