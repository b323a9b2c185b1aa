# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files of arrays: equal bytes in one step are stored once, under every name."""

from __future__ import annotations

import errno
import os
import shutil

import ml_dtypes
import numpy as np
import pytest

from probe.store.arrays import ArrayWriter, DiskBudget

RANDOM = np.random.RandomState(0).randn(300, 1000).astype(np.float32)


@pytest.fixture(autouse=True, params=[None, 0], ids=["copies are kept", "files are read"])
def _kept(request, monkeypatch):
    if request.param is not None:
        monkeypatch.setattr("probe.store.arrays._MOST_KEPT", request.param)


def writer(folder, most=None, **settings):
    return ArrayWriter(str(folder), DiskBudget(most), **settings)


def saved(arrays, name, array):
    """Save an array; return its path."""
    file_name, _ = arrays.save(name, array)
    assert file_name
    return os.path.join(arrays.folder, file_name)


def bytes_of(array):
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        RANDOM,
        RANDOM[0, 0],
        RANDOM[:0],
        RANDOM.astype(np.float16),
        RANDOM.astype(ml_dtypes.bfloat16).view(np.uint16),
        np.arange(9) % 2 == 0,
        np.zeros((3, 5), np.int64),
        RANDOM.T,
        RANDOM.astype(np.complex64),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_an_equal_array_is_another_name_of_the_file(tmp_path, array):
    arrays = writer(tmp_path)
    first, second = saved(arrays, "a", array), saved(arrays, "b", array.copy())
    assert os.path.samefile(first, second)
    assert bytes_of(np.load(second)) == bytes_of(np.asarray(array, order="C"))


def changed(place):
    array = RANDOM.copy()
    array[np.unravel_index(place, array.shape)] += 1
    return array


@pytest.mark.parametrize("place", [0, 1, 65536, 70001, RANDOM.size - 1])
def test_one_element_that_differs_makes_a_file_of_its_own(tmp_path, place):
    arrays = writer(tmp_path)
    first, second = saved(arrays, "a", RANDOM), saved(arrays, "b", changed(place))
    assert not os.path.samefile(first, second)
    assert bytes_of(np.load(first)) == bytes_of(RANDOM)
    assert bytes_of(np.load(second)) == bytes_of(changed(place))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([0.0], np.float32), np.array([-0.0], np.float32)),
        (
            np.array([0x7FC00000], np.uint32).view(np.float32),
            np.array([0x7FC00001], np.uint32).view(np.float32),
        ),
        (np.zeros(4, np.float32), np.zeros(4, np.int32)),
        (np.zeros((2, 6), np.float32), np.zeros((3, 4), np.float32)),
    ],
    ids=["sign of zero", "NaN payload", "dtype", "shape"],
)
def test_values_that_only_compare_equal_are_no_equal_bytes(tmp_path, one, other):
    arrays = writer(tmp_path)
    first, second = saved(arrays, "a", one), saved(arrays, "b", other)
    assert not os.path.samefile(first, second)
    assert bytes_of(np.load(second)) == bytes_of(other)


def test_linking_can_be_switched_off(tmp_path):
    arrays = writer(tmp_path, link_equal=False)
    assert not os.path.samefile(saved(arrays, "a", RANDOM), saved(arrays, "b", RANDOM))


def test_an_array_whose_copy_was_given_up_is_still_another_name_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr("probe.store.arrays._MOST_KEPT", 2 * RANDOM.nbytes)
    arrays = writer(tmp_path)
    firsts = [saved(arrays, f"first{i}", RANDOM + i) for i in range(5)]
    seconds = [saved(arrays, f"second{i}", RANDOM + i) for i in range(5)]
    assert all(map(os.path.samefile, firsts, seconds))
    assert len({os.stat(path).st_ino for path in firsts}) == 5


def test_equal_arrays_have_one_file_in_common_and_others_do_not(tmp_path):
    arrays = writer(tmp_path)
    files = [
        arrays.save(name, array)[1]
        for name, array in (("a", RANDOM), ("b", RANDOM.copy()), ("c", RANDOM + 1))
    ]
    assert files[0] is files[1]
    assert files[2] not in files[:2]


def test_a_folder_that_somebody_removes_is_made_again(tmp_path):
    arrays = writer(tmp_path)
    saved(arrays, "a", RANDOM)
    shutil.rmtree(tmp_path / "dump_tensor_data")
    assert bytes_of(np.load(saved(arrays, "b", RANDOM))) == bytes_of(RANDOM)


def test_steps_share_no_files(tmp_path):
    first, second = (saved(writer(tmp_path / step), "a", RANDOM) for step in ("step0", "step1"))
    assert not os.path.samefile(first, second)


@pytest.mark.parametrize("harm", ["edit", "remove", "replace"])
def test_a_file_that_somebody_changed_is_no_partner(tmp_path, harm):
    arrays = writer(tmp_path)
    first = saved(arrays, "a", RANDOM)
    if harm == "edit":
        np.save(first, RANDOM * 2)
    else:
        os.remove(first)
        if harm == "replace":
            np.save(first, RANDOM)
    second = saved(arrays, "b", RANDOM)
    assert bytes_of(np.load(second)) == bytes_of(RANDOM)
    assert harm == "remove" or not os.path.samefile(first, second)


@pytest.mark.parametrize("array", [RANDOM, RANDOM + 1], ids=["equal", "other"])
def test_an_old_file_with_further_names_is_replaced_not_truncated(tmp_path, array):
    kept = tmp_path / "kept.npy"
    os.link(saved(writer(tmp_path), "b", np.ones(5)), kept)
    arrays = writer(tmp_path)
    first, second = saved(arrays, "a", RANDOM), saved(arrays, "b", array)
    assert bytes_of(np.load(kept)) == bytes_of(np.ones(5))
    assert bytes_of(np.load(second)) == bytes_of(array)
    assert os.path.samefile(first, second) == (array is RANDOM)


@pytest.mark.parametrize(
    "names",
    [
        ["a", "a", "a"],
        ["a b", "a_b"],
        ["\u56fe\u50cf", "\u6807\u7b7e"],
        ["a", "a.2", "a"],
        ["a/b", "a_b"],
        ["y" * 300] * 2,
    ],
    ids=["equal", "blank", "Chinese", "numbered", "slash", "long"],
)
def test_names_that_would_be_one_file_name_get_files_of_their_own(tmp_path, names):
    arrays = writer(tmp_path)
    paths = [saved(arrays, name, RANDOM + place) for place, name in enumerate(names)]
    assert len(set(paths)) == len(names)
    assert [bytes_of(np.load(path)) for path in paths] == [
        bytes_of(RANDOM + place) for place in range(len(names))
    ]


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_a_file_system_without_links_gets_copies(tmp_path, monkeypatch, number):
    def refuse(path, name):
        raise OSError(number, os.strerror(number), path, None, name)

    monkeypatch.setattr(os, "link", refuse)
    arrays = writer(tmp_path)
    paths = [saved(arrays, name, RANDOM) for name in "abc"]
    assert [bytes_of(np.load(path)) for path in paths] == [bytes_of(RANDOM)] * 3


def test_max_disk_counts_equal_bytes_once(tmp_path):
    arrays = writer(tmp_path, most=RANDOM.nbytes + 1000)
    assert [bool(arrays.save(name, RANDOM)[0]) for name in "abc"] == [True] * 3
    assert arrays.save("d", RANDOM + 1) == ("", None)


def test_a_short_name_of_a_linked_array_is_listed(tmp_path):
    arrays = writer(tmp_path)
    saved(arrays, "a", RANDOM)
    second = saved(arrays, "x" * 300, RANDOM)
    assert (
        tmp_path / "dump_tensor_data" / "mapping.csv"
    ).read_text() == f"{os.path.basename(second)},{'x' * 300}.npy\n"
