# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files from outside pass one door: regular files alone, and records whose types readers may trust."""

from __future__ import annotations

import json
import os
import socket
import struct

import numpy as np
import pytest

import probe
from probe import UsageError
from probe.door import open_file
from probe.reading.dumps import document, journal_reader
from probe.reading.dumps.journal_reader import recover
from probe.reading.dumps.load import load_array
from probe.reading.dumps.shapes import RECORD, wrong_fields
from probe.reading.dumps.values import record_sharer
from probe.series.file import SeriesFile, SeriesTail, sections, table
from probe.series.series import open_series
from probe.store.journal import Journal

RIGHT = {
    "type": "mindspore.Tensor",
    "dtype": "Float32",
    "shape": [2],
    "Max": 1.0,
    "Min": 0.0,
    "Mean": 0.5,
    "Norm": 2.0,
}
HEAD = {"task": "statistics", "level": "L1", "framework": "mindspore", "dump_data_dir": None}


def write(folder, text):
    path = folder / "step0" / "rank"
    path.mkdir(parents=True, exist_ok=True)
    (path / "dump.json").write_text(text)
    return probe.open(folder)[0]


def dump(folder, head=(), **changes):
    """Return a dump of two calls; the record of the first has changes, which are text of JSON."""
    fields = {key: json.dumps(value) for key, value in RIGHT.items()}
    fields.update(changes)
    record = "{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}"
    header = {**{key: json.dumps(value) for key, value in HEAD.items()}, **dict(head)}
    inner = ", ".join(f'"{key}": {value}' for key, value in header.items())
    records = {"relu": record, "exp": json.dumps(RIGHT)}
    calls = ", ".join(
        f'"Functional.{name}.0.forward": {{"output": [{text}]}}' for name, text in records.items()
    )
    return write(folder, f'{{{inner}, "data": {{{calls}}}}}')


HUGE = "9" * 400
#: field, its text, and what the line says
WRONG = [
    ("Max", "[1]", "a list"),
    ("Min", "{}", "an object"),
    ("Norm", HUGE, "a number of 1329 bits"),
    ("nan_count", "[]", "a list"),
    ("shape", '["x", 3000000000]', "a list with a text"),
    ("shape", "[-1]", "a list with -1"),
    ("shape", "[true]", "a list with true or false"),
    ("shape", "[2.0]", "a list with a number"),
    ("shape", "3", "a whole number"),
    ("shape", '""', "a text"),
    ("shape", "{}", "an object"),
    ("shape", '"abc"', "a text"),
    ("shape", "[{}]", "a list with an object"),
    ("shape", f"[{HUGE}]", "a list with a number of 1329 bits"),
    ("shape", f"[{'9' * 5000}]", "a list with a text"),
    ("dtype", "{}", "an object"),
    ("dtype", "[]", "a list"),
    ("md5", "[]", "a list"),
    ("data_name", "{}", "an object"),
]


@pytest.mark.parametrize(("field", "text", "found"), WRONG)
def test_a_field_of_a_wrong_type_is_left_out_and_named_and_the_others_stay(
    tmp_path, field, text, found
):
    read = dump(tmp_path, **{field: text})
    record = read.data["Functional.relu.0.forward"]["output"][0]
    assert record == {**RIGHT, field: None}
    assert read.data["Functional.exp.0.forward"]["output"] == [RIGHT]
    (line,) = read.notes
    assert line.endswith(
        f"dump.json: entry Functional.relu.0.forward: {field} is {found}; it is left out"
    )
    assert read.flow.names == list(read.data)
    assert [tensor.shape for call in read for tensor in call.tensors()] == [
        None if field == "shape" else (2,),
        (2,),
    ]


#: numbers that are right, and what readers get
NUMBERS = [
    ("NaN", "nan"),
    ("Infinity", "inf"),
    ("-Infinity", "-inf"),
    ("1e400", "inf"),
    ("true", "1.0"),
    ("null", "None"),
    ("123456789012345678901234567890", "1.2345678901234568e+29"),
    ("9" * 5000, "None"),
]


@pytest.mark.parametrize(("text", "value"), NUMBERS)
def test_numbers_of_any_size_are_read(tmp_path, text, value):
    read = dump(tmp_path, Max=text)
    assert str(read["Functional.relu.0.forward"].outputs["0"].max) == value
    assert read.notes == []


def test_a_shape_of_many_elements_costs_nothing(tmp_path):
    read = dump(tmp_path, shape="[1000000000000000000, 1000000000000000000]")
    assert (read.notes, read["Functional.relu.0.forward"].outputs["0"].shape) == (
        [],
        (10**18, 10**18),
    )
    assert read.flow.names


@pytest.mark.parametrize("kind", ["[]", "{}", "3", "null"])
def test_a_type_that_is_no_text_is_no_tensor(tmp_path, kind):
    read = dump(tmp_path, type=kind)
    assert list(read["Functional.relu.0.forward"].tensors()) == []
    assert len(list(read["Functional.exp.0.forward"].tensors())) == 1


def test_a_plain_number_that_no_float_holds_is_a_text(tmp_path):
    calls = f'{{"data": {{"Functional.relu.0.forward": {{"output": [{{"type": "int", "value": {HUGE}}}]}}}}}}'
    assert write(tmp_path, calls)["Functional.relu.0.forward"].outputs == {"0": HUGE}


@pytest.mark.parametrize("field", ["task", "level", "framework", "run"])
def test_a_wrong_field_of_the_header_is_left_out(tmp_path, field):
    read = dump(tmp_path, head={field: "[]"})
    assert field not in read.header
    assert read.notes == [f"{read.path}/dump.json: {field} is a list; it is left out"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("0.5", "Functional.odd.0.forward is a number"),
        ("[1]", "Functional.odd.0.forward is a list"),
        ('{"parameters": "w"}', "Functional.odd.0.forward: parameters is a text"),
        ('{"model_parameters": [1]}', "Functional.odd.0.forward: model_parameters is a list"),
    ],
)
def test_an_entry_that_is_no_object_hides_no_other(tmp_path, entry, said):
    call = json.dumps({"output": [RIGHT]})
    text = f'"Functional.odd.0.forward": {entry}, "Functional.relu.0.forward": {call}'
    read = write(tmp_path, f'{json.dumps(HEAD)[:-1]}, "data": {{{text}}}}}')
    assert [note for note in read.notes if said in note] == read.notes != []
    assert read["Functional.relu.0.forward"].outputs["0"].max == 1.0
    probe.check(tmp_path)


def test_many_wrong_fields_are_counted(tmp_path):
    data = {f"Functional.relu.{i}.forward": {"output": [{**RIGHT, "Max": [i]}]} for i in range(20)}
    read = write(tmp_path, json.dumps({**HEAD, "data": data}))
    assert len(read.notes) == 6
    assert read.notes[-1].endswith("15 more fields are of wrong types")


def test_a_circle_of_cells_is_cut(tmp_path):
    read = dump(tmp_path)
    names = list(read.data)
    (tmp_path / "step0/rank/construct.json").write_text(
        json.dumps({names[0]: names[1], names[1]: names[0]})
    )
    assert list(read.construct.values()) == [names[1], None]


# -- files that are none -----------------------------------------------------------------------------------------------


def _socket(path):
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


PLACES = {
    "FIFO": (lambda path: os.mkfifo(path), "it is a FIFO"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is a device"),
    "link to nowhere": (lambda path: path.symlink_to("nowhere"), "it is a link that leads nowhere"),
    "link to itself": (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    "folder": (lambda path: path.mkdir(), "it is a folder"),
}


@pytest.mark.parametrize("kind", list(PLACES))
def test_only_regular_files_are_opened(tmp_path, kind):
    make, reason = PLACES[kind]
    path = tmp_path / "file"
    make(path)
    with pytest.raises(OSError, match=reason):
        open_file(str(path))
    for read in (
        document.read_document,
        journal_reader.read,
        lambda place: load_array(place, "Float32"),
    ):
        with pytest.raises(UsageError, match=f"{path} cannot be read: {reason}"):
            read(str(path))


def test_a_socket_is_no_file_and_a_null_character_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _socket(tmp_path / "file")
    with pytest.raises(OSError, match="No such device or address"):
        open_file(str(tmp_path / "file"))
    with pytest.raises(OSError, match="cannot be that of a file"):
        open_file("a\0b")


# -- arrays ------------------------------------------------------------------------------------------------------------


def npy(text, content=b"", version=1):
    header = text.encode("latin1")
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + content


def fields(descr="'<f4'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


BROKEN = {
    "no element": npy(fields("'|S0'", shape="(-1,)")),
    "items of no size": npy(fields("'|S0'")),
    "larger than the file": npy(fields(shape="(1000000000000,)"), b"1234"),
    "larger than any file": npy(fields(shape="(10**18,)")),
    "product of lengths": npy(fields(shape="(1000000000000000000, 1000000000000000000)")),
    "shape of true": npy(fields(shape="(True,)"), b"12345678"),
    "shape of texts": npy(fields(shape="('a',)"), b"12345678"),
    "shape is a number": npy(fields(shape="3"), b"12345678"),
    "negative": npy(fields(shape="(-2,)"), b"12345678"),
    "cut header": npy(fields()[:30]),
    "minus signs": npy(fields(shape="(" + "-" * 9000 + "1,)")),
    "objects": npy(fields("'|O'"), b"12345678"),
    "fields": npy(fields("[('a', '<f4')]"), b"12345678"),
    "unknown dtype": npy(fields("'<q9'"), b"12345678"),
    "order": npy(fields(order="3"), b"12345678"),
    "no header": b"\x93NUMPY\x01\x00",
    "long header": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f",
    "zip": b"PK\x03\x04abc",
    "empty": b"",
    "text": b"hello",
}


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_broken_array_is_one_line(tmp_path, kind, mapped):
    (tmp_path / "x.npy").write_bytes(BROKEN[kind])
    with pytest.raises(UsageError, match=r"x\.npy cannot be read: it") as caught:
        load_array(str(tmp_path / "x.npy"), "Float32", mapped)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError):
        probe.load(tmp_path / "x.npy")


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", "|b1", "<c8", "<f2", "|u1"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 2)])
def test_every_array_of_numpy_is_read(tmp_path, dtype, shape, order, mapped):
    array = np.array(np.arange(int(np.prod(shape))).reshape(shape), dtype, order=order)
    np.save(tmp_path / "x.npy", array)
    found = load_array(str(tmp_path / "x.npy"), "", mapped)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


# -- series and journals -----------------------------------------------------------------------------------------------


@pytest.fixture
def series(tmp_path):
    file = SeriesFile(str(tmp_path / "monitor" / "rank"))
    for step in range(4):
        file.write(step, {"loss": step / 2})
    file.close()
    return tmp_path / "monitor" / "rank" / "series.bin"


@pytest.mark.parametrize("step", [float("nan"), float("inf"), -1.0, 3e38])
def test_a_row_without_a_step_is_left_out(series, tmp_path, step):
    content = bytearray(series.read_bytes())
    content[-16:-12] = struct.pack("<f", step)  # the row before the last
    series.write_bytes(content)
    (rank,) = open_series(str(tmp_path))
    assert (rank.steps, list(rank["loss"].steps)) == ([0, 1, 3], [0, 1, 3])
    assert [row[0] for row in SeriesTail(str(series)).new_rows()] == [0, 1, 3]
    assert len(table(bytes(content), next(sections(bytes(content))))) == 3


@pytest.mark.parametrize("names", ["[]", "3", "[1]", '"step"', "null", "{}", '["step", []]'])
def test_columns_that_are_no_texts_are_refused(series, tmp_path, names):
    series.write_bytes(b'{"probe series": 1, "names": ' + names.encode() + b"}\n" + b"\0" * 8)
    with pytest.raises(UsageError, match="does not name its columns"):
        open_series(str(tmp_path))
    with pytest.raises(ValueError, match="does not name its columns"):
        SeriesTail(str(series)).new_rows()


WRONG_RECORDS = [
    {"name": []},
    {"name": "a", "stack": "b"},
    {"name": "a", "construct": {"a": 3}},
    {},
]


@pytest.mark.parametrize("record", WRONG_RECORDS)
def test_a_bad_journal_is_kept_and_the_next_one_is_recovered(tmp_path, record):
    for rank in ("rank0", "rank1"):
        journal = Journal(
            str(tmp_path / "step0" / rank), json.dumps({"header": HEAD, "extra_info": True})
        )
        journal.append(
            json.dumps({"name": "Functional.relu.0.forward", "entry": {"output": [RIGHT]}})
        )
        if rank == "rank0":
            journal.append(json.dumps(record))
        journal.close()
    (folder,) = [folder for folder in probe.open(tmp_path) if folder.rank == 0]
    assert list(folder.data) == ["Functional.relu.0.forward"]
    assert "1 records have fields of wrong types" in "".join(folder.notes)
    bad, good = recover(str(tmp_path))
    assert (bad.well, good.well) == (False, True)
    assert "cannot be recovered, it is kept" in bad.text
    assert (tmp_path / "step0/rank0/dump.journal").exists()


def test_the_description_of_a_record_takes_all_that_recorders_write():
    assert (
        wrong_fields(
            {**RIGHT, "md5": "0a1b2c3d", "requires_grad": True, "is_contiguous": False}, RECORD
        )
        == []
    )
    assert wrong_fields(dict.fromkeys(RIGHT), RECORD) == []


def test_equal_records_are_one_object():
    share = record_sharer([])
    a, b, other = ({**RIGHT, "Norm": norm} for norm in (1.0, 1.0, 2.0))
    assert share(a) is share(b)
    assert share(other) == {**RIGHT, "Norm": 2.0}
