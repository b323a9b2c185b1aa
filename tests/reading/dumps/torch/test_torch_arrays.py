# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tensors of torch.save are read without torch: every dtype, every layout, and nothing in the file is executed."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest

import probe
from probe.errors import UsageError
from probe.reading.dumps.load import load_array
from probe.reading.dumps.torch_pickle import NotATensor, read_layout

from . import archives
from .archives import HOOKS, PROTO, name, number, numbers, parameter, storage, tensor, text, write
from .samples import FOLDER, expected

pytestmark = pytest.mark.medium

ROWS = np.arange(6, dtype=np.float32)
SAMPLES = expected()


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("mapped", [False, True])
def test_a_tensor_that_torch_has_saved(sample, mapped):
    wanted = SAMPLES[sample]
    found = load_array(str(FOLDER / f"{sample}.pt"), "", mapped)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert np.array_equal(found.astype(wanted.dtype), wanted)


def test_load_gives_an_array_of_its_own(tmp_path):
    path = write(tmp_path / "a.pt", tensor(), ROWS.tobytes())
    array = probe.load(path)
    array[0, 0] = 9.0
    assert probe.load(path)[0, 0] == 0.0


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "wanted"),
    [
        ((2, 3), (3, 1), 0, [[0, 1, 2], [3, 4, 5]]),
        ((3, 2), (1, 3), 0, [[0, 3], [1, 4], [2, 5]]),
        ((2,), (2,), 1, [1, 3]),
        ((), (), 5, 5),
        ((2, 2), (0, 1), 4, [[4, 5], [4, 5]]),
        ((0, 7), (1, 1), 0, np.zeros((0, 7))),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_offset_shape_and_strides(shape, strides, offset, wanted, mapped, tmp_path):
    path = write(tmp_path / "a.pt", tensor(shape, strides, offset), ROWS.tobytes())
    found = load_array(str(path), "", mapped)
    assert found.shape == shape
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("kind", ["Float", "Half", "Long", "ComplexFloat", "BFloat16"])
@pytest.mark.parametrize("mapped", [False, True])
def test_the_great_end_first(kind, mapped, tmp_path):
    import ml_dtypes

    dtype = {
        "Float": "f4",
        "Half": "f2",
        "Long": "i8",
        "ComplexFloat": "c8",
        "BFloat16": ml_dtypes.bfloat16,
    }[kind]
    wanted = np.arange(6).astype(dtype)
    raw = wanted.view(np.uint16) if kind == "BFloat16" else wanted
    data = raw.astype(raw.dtype.newbyteorder(">")).tobytes()
    path = write(
        tmp_path / "a.pt", tensor((6,), (1,), stored=storage(f"torch\n{kind}Storage")), data, b"big"
    )
    found = load_array(str(path), "", mapped)
    assert (found.dtype, found.dtype.isnative) == (wanted.dtype, True)
    assert np.array_equal(found, wanted)


def test_without_an_order_of_bytes_the_little_end_is_first(tmp_path):
    path = write(tmp_path / "a.pt", parameter(tensor()), ROWS.tobytes(), order=None)
    assert np.array_equal(probe.load(path), ROWS.reshape(2, 3))


class Evil:
    """A pickle of it creates a file when Python reads it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def nested(depth):
    """Return the opcodes of a tuple in a tuple in a tuple."""
    return b"(" * depth + b"t" * depth


TYPED = name("torch._utils", "_rebuild_tensor_v3")
HOSTILE = {
    "a call of os.system": (PROTO + name("os", "system") + b"(" + text("touch x") + b"tR."),
    "an object of the user": PROTO + name("torch", "nn") + b")R.",
    "an instance": PROTO + b"(ios\nsystem\n.",
    "a state": tensor() + b"}b",
    "an extension": PROTO + b"\x82\x01.",
    "a dictionary": PROTO + b"}.",
    "a number": PROTO + number(3) + b".",
    "two values": tensor() + tensor(),
    "nothing": PROTO + b".",
    "no end": PROTO + tensor(),
    "no bytes": b"",
    "garbage": PROTO + b"\xff\xfe garbage",
    "a text without end": PROTO + b"X\xff\xff\xff\x7fabc.",
    "a long number": PROTO + b"\x8b\xff\xff\xff\x7f.",
    "a tuple without a beginning": PROTO + b"t.",
    "a memo that was never kept": PROTO + b"h\x05.",
    "a tuple that holds itself": PROTO + b"(h\x00tq\x00.",
    "tuples in tuples": PROTO + nested(30_000) + b".",
    "a memo that doubles": PROTO
    + number(1)
    + b"".join(b"q\x00h\x00\x86" for _ in range(3_000))
    + b".",
    "a persistent id of another kind": PROTO + text("storage") + b"Q.",
    "a storage of another class": tensor(stored=storage("torch._utils\n_rebuild_tensor_v2")),
    "a storage outside of the archive": tensor(stored=storage(key="../../etc/passwd")),
    "a storage that is not there": tensor(stored=storage(key="7")),
    "a storage of a negative size": tensor(stored=storage(size=-6)),
    "a storage larger than its bytes": tensor((2, 300), (300, 1), stored=storage(size=600)),
    "a storage smaller than its bytes": tensor((2,), (1,), stored=storage(size=2)),
    "a storage of another dtype": tensor(stored=storage("torch\nDoubleStorage")),
    "a storage of quantized numbers": tensor(stored=storage("torch\nQInt8Storage")),
    "a shape beyond the storage": tensor((2, 4), (3, 1)),
    "an offset beyond the storage": tensor(offset=1),
    "a huge offset": tensor(offset=2**70),
    "a negative offset": tensor(offset=-1),
    "a negative stride": tensor(strides=(-3, 1), offset=3),
    "a negative length": tensor((-2, 3)),
    "a huge length": tensor((2**62, 3), (0, 0)),
    "a shape that repeats one number": tensor((10**5, 10**5), (0, 0)),
    "a huge empty shape": tensor((0, 2**70), (1, 1)),
    "too many dimensions": tensor((1,) * 70, (1,) * 70),
    "fewer strides than lengths": tensor((2, 3), (1,)),
    "a length that is true": name("torch._utils", "_rebuild_tensor_v2")
    + b"("
    + storage()
    + number(0)
    + b"(\x88t"
    + numbers([1])
    + b"\x89"
    + HOOKS
    + b"tR",
    "hooks that hold something": tensor(
        hooks=name("collections", "OrderedDict") + numbers([1]) + b"R"
    ),
    "hooks that are none": tensor(hooks=b"N"),
    "a storage in place of a tensor": storage(),
    "a tensor of one argument": name("torch._utils", "_rebuild_tensor_v2") + numbers([1]) + b"R",
    "bytes without a dtype": tensor(stored=storage("torch.storage\nUntypedStorage", size=24)),
    "a dtype that is a storage": TYPED
    + b"("
    + storage("torch.storage\nUntypedStorage", size=24)
    + number(0)
    + numbers([6])
    + numbers([1])
    + b"\x89"
    + HOOKS
    + name("torch", "FloatStorage")
    + b"tR",
    "a huge description": PROTO + text("a" * 100_000) + b".",
}


def refused(path):
    """Return the line with which a file is refused, by both ways to read it."""
    said = []
    for mapped in (False, True):
        with pytest.raises(UsageError) as error:
            load_array(str(path), "", mapped)
        said.append(str(error.value))
    assert said[0] == said[1]
    assert said[0].startswith(str(path))
    assert "\n" not in said[0]
    assert len(said[0]) < len(str(path)) + 240
    assert said[0].isprintable()
    return said[0]


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_description_is_one_line(kind, tmp_path):
    assert refused(write(tmp_path / "a.pt", HOSTILE[kind], ROWS.tobytes()))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_executed(protocol, tmp_path):
    target = tmp_path / "executed"
    body = pickle.dumps(Evil(target), protocol)
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", body)
    refused(path)
    assert not target.exists()
    pickle.loads(body)  # it would have
    assert target.exists()


def test_what_is_asked_for_is_named(tmp_path):
    line = refused(write(tmp_path / "a.pt", HOSTILE["a call of os.system"]))
    assert (
        line
        == f"{tmp_path / 'a.pt'} is not read: its data.pkl asks for os.system, which no tensor needs"
    )


def of_a_member(path, word, place, content):
    """Overwrite bytes of the record of a member in the archive's directory."""
    data = bytearray(path.read_bytes())
    record = data.rindex(b"PK\x01\x02", 0, data.rindex(word))
    data[record + place : record + place + len(content)] = content
    path.write_bytes(data)
    return path


def test_sizes_that_the_archive_makes_up(tmp_path):
    size = struct.pack("<I", 2**31)
    for place, content in ((20, size + size), (24, size), (42, size)):
        path = write(tmp_path / f"{place}.pt", tensor(), ROWS.tobytes())
        refused(of_a_member(path, b"archive/data/0", place, content))


def test_a_storage_that_unpacks_to_much_is_refused(tmp_path):
    body = tensor((2**26,), (1,), stored=storage(size=2**26))
    bomb = write(tmp_path / "a.pt", body, bytes(2**28), compression=zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 400_000
    assert "compressed" in refused(bomb)


@pytest.mark.parametrize(
    "more",
    [
        [("../../data.pkl", b"x"), ("other/data.pkl", b"x")],
        [(f"archive/data/{number}", b"") for number in range(1, 5_000)],
        [("archive/data/1\x1b[2J", b"x"), ("archive/byteorder", b"big")],
    ],
    ids=["two descriptions", "many members", "two members of one name"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_no_tensor_has(more, tmp_path):
    refused(write(tmp_path / "a.pt", tensor(), ROWS.tobytes(), more=more))


def test_an_unknown_order_of_bytes(tmp_path):
    assert "order of bytes" in refused(
        write(tmp_path / "a.pt", tensor(), ROWS.tobytes(), order=b"\x1b[2Jmiddle")
    )


def test_an_archive_that_is_cut_anywhere_is_one_line(tmp_path):
    whole = write(tmp_path / "whole.pt", tensor(), ROWS.tobytes()).read_bytes()
    for end in range(0, len(whole), 7):
        path = tmp_path / "cut.pt"
        path.write_bytes(whole[:end])
        refused(path)


def test_an_archive_with_one_wrong_byte_never_does_worse_than_one_line(tmp_path):
    whole = (FOLDER / "float32.pt").read_bytes()
    path = tmp_path / "a.pt"
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert load_array(str(path), "").nbytes < 10_000
        except UsageError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_descriptions_with_random_changes_are_one_line():
    random = np.random.RandomState(1)
    for _ in range(3_000):
        body = bytearray(PROTO + parameter(tensor()) + b".")
        for _ in range(random.randint(1, 9)):
            place = random.randint(len(body))
            body[place : place + random.randint(2)] = random.bytes(random.randint(3))
        try:
            layout = read_layout(bytes(body))
        except NotATensor as error:
            assert str(error).isprintable()  # noqa: PT017
            assert len(str(error)) < 240  # noqa: PT017
        else:
            assert all(type(length) is int for length in layout.shape)


def test_the_old_form_of_torch_save(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes((FOLDER / "before_1_6.pt").read_bytes())
    assert "torch 1.5 and older" in refused(path)


def test_other_files(tmp_path):
    path = tmp_path / "a.pt"
    for content in (b"", b"P", b"\x93NUMPY", b"PK", b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        refused(path)
    (tmp_path / "b.pt").mkdir()
    refused(tmp_path / "b.pt")
    refused(tmp_path / "missing.pt")


def test_torch_is_not_imported():
    assert "torch" not in sys.modules
    assert archives.PROTO == b"\x80\x02"
