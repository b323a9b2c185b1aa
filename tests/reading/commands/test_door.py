# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each input that once hung, killed or broke a command: the status, and the one line that names it."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import zlib

import numpy as np
import pytest

from probe.__main__ import main
from probe.series.file import SeriesFile
from probe.store.journal import FRAME, MAGIC
from tests.reading.builders import forward, tensor, write

RELU, EXP = "Functional.relu.0.forward", "Functional.exp.0.forward"
RUN = {
    "rank": None,
    "seed": 1,
    "first_step": 0,
    "world_size": 1,
    "device": "CPU",
    "command": ["train.py"],
    "cells": [["", "Net"]],
    "parameters": {
        "w": {
            "cell": "",
            "trainable": True,
            "values": {"dtype": "Float32", "shape": [2], "crc": "0a", "sum": 3},
        }
    },
}
LINES = [{"step": 0, "inputs": {"0": {"dtype": "Float32", "shape": [2], "crc": "0b", "sum": 1}}}]


def run(folder):
    """Write a run of one step: two calls, arrays, a snapshot, and the rows of the monitor."""
    rank = write(
        folder / "step0" / "rank",
        {
            RELU: forward([tensor(Min=0.0)], [tensor(Min=0.0, data_name="a.npy")]),
            EXP: forward([tensor(Min=0.0)], [tensor(Min=0.0)]),
        },
    )
    (rank / "dump_tensor_data").mkdir()
    np.save(rank / "dump_tensor_data" / "a.npy", np.ones((2, 3), np.float32))
    (rank / "run.json").write_text(json.dumps(RUN))
    (rank / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    series = SeriesFile(str(folder / "monitor" / "rank"))
    for step in range(3):
        series.write(step, {"loss": 1.0 + step})
    series.close()
    return rank


def document(name, *keys, value):
    """Return a function that puts a text of JSON at a place of a document."""

    def change(rank):
        content = json.loads((rank / name).read_text()) if (rank / name).exists() else {}
        owner = content
        for key in keys[:-1]:
            owner = owner[key]
        owner[keys[-1]] = "@"
        (rank / name).write_text(json.dumps(content).replace('"@"', value))

    return change


def place(name, make):
    """Return a function that puts something else in the place of a file."""

    def change(rank):
        (rank / name).unlink(missing_ok=True)
        make(rank / name)

    return change


def array(header):
    return place(
        "dump_tensor_data/a.npy",
        lambda path: path.write_bytes(
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1")
        ),
    )


def series(names, step):
    def change(rank):
        file = rank.parent.parent / "monitor" / "rank" / "series.bin"
        head = json.dumps({"names": names}).removeprefix("{")
        file.write_bytes(
            b'{"probe series": 1, ' + head.encode() + b"\n" + struct.pack("<2f", step, 1.0)
        )

    return change


def journal(*records):
    """Return a function that leaves a journal, and a right one in a further rank."""

    def change(rank):
        right = [{"header": {"task": "statistics", "level": "L1"}, "extra_info": True}]
        for folder, further in ((rank.parent / "rank0", records), (rank.parent / "rank1", [])):
            folder.mkdir()
            texts = [
                json.dumps(it).encode()
                for it in [*right, {"name": RELU, "entry": {"output": [tensor(Min=0.0)]}}, *further]
            ]
            frames = [FRAME.pack(len(text), zlib.crc32(text)) + text for text in texts]
            (folder / "dump.journal").write_bytes(MAGIC + b"".join(frames))

    return change


def table(slot):
    """Return a function that puts kernels in the place of the dump: an older table, with Input/Output and Format."""

    def change(rank):
        folder = rank.parent.parent
        shutil.rmtree(folder)
        kernels = folder / "rank_0" / "Net" / "0" / "2"
        kernels.mkdir(parents=True)
        head = (
            "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,"
            "Data Size,Data Type,Format,Shape,Max Value"
        )
        row = 'ReLU,Default_ReLU-op1,0,7,{},output,{},24,float32,NCHW,"(2,3)",inf'
        (kernels / "statistic.csv").write_text(
            "\n".join([head, row.format(1, slot), row.format(2, 0)])
        )

    return change


def zero(path):
    path.symlink_to("/dev/zero")


OUTPUT, HUGE = ("data", RELU, "output", 0), "9" * 400
ARRAY = "{'descr': %s, 'fortran_order': False, 'shape': %s}\n"
PARAMETER = ("parameters", "w", "values")
#: what it is: (the change, the commands, the status, a text in the output; "" for none)
CASES = {
    # 1: shapes
    "a shape that repeats a text": (
        document("dump.json", *OUTPUT, "shape", value='["x", 100000000000]'),
        "compare report nan show",
        None,
        "shape is a list with a text",
    ),
    "a shape of 10**18": (
        document("dump.json", *OUTPUT, "shape", value="[1000000000000000000, 1000000000000000000]"),
        "compare report nan show",
        None,
        "",
    ),
    # 2: FIFOs and devices
    "dump.json is a FIFO": (
        place("dump.json", os.mkfifo),
        "show nan compare report trend",
        None,
        "it is a FIFO",
    ),
    "dump.json is /dev/zero": (
        place("dump.json", zero),
        "show nan compare report trend",
        None,
        "it is a device",
    ),
    "run.jsonl is a FIFO": (place("run.jsonl", os.mkfifo), "check", 0, "run.jsonl cannot be read"),
    "run.json is a FIFO": (place("run.json", os.mkfifo), "check", 2, "it is a FIFO"),
    "an array is a FIFO": (place("dump_tensor_data/a.npy", os.mkfifo), "compare show", None, ""),
    "a journal is /dev/zero": (place("dump.journal", zero), "recover", 1, "it is a device"),
    # 3, 4: arrays
    "items of no size": (array(ARRAY % ("'|S0'", "(-1,)")), "compare show report", None, ""),
    "a header that is cut": (
        array("{'descr': '<f4', 'fortran_order': False, 'shape': (2,"),
        "compare show",
        None,
        "",
    ),
    "minus signs": (array(ARRAY % ("'<f4'", "(" + "-" * 9000 + "1,)")), "compare show", None, ""),
    "4 TB": (array(ARRAY % ("'<f4'", "(1000000000000,)")), "compare show", None, ""),
    "a zip": (
        place("dump_tensor_data/a.npy", lambda path: path.write_bytes(b"PK\x03\x04")),
        "compare show",
        None,
        "",
    ),
    # 5: links
    "an array is a link to nowhere": (
        place("dump_tensor_data/a.npy", lambda path: path.symlink_to("nowhere")),
        "show",
        0,
        "dump_tensor_data/",
    ),
    "an array is a link to itself": (
        place("dump_tensor_data/a.npy", lambda path: path.symlink_to("a.npy")),
        "show compare",
        None,
        "",
    ),
    # 6: types
    "a type that is a list": (
        document("dump.json", *OUTPUT, "type", value="[]"),
        "show compare report trend nan",
        None,
        "",
    ),
    "a type that is an object": (
        document("dump.json", *OUTPUT, "type", value="{}"),
        "show compare report trend nan",
        None,
        "",
    ),
    # 7: numbers
    "Max of 400 digits": (
        document("dump.json", *OUTPUT, "Max", value=HUGE),
        "compare show report",
        None,
        "Max is a number of 1329 bits",
    ),
    "Max of 5,000 digits": (
        document("dump.json", *OUTPUT, "Max", value=HUGE * 13),
        "compare show report",
        None,
        "",
    ),
    "a plain number of 400 digits": (
        document(
            "dump.json", "data", RELU, "input_args", 0, value=f'{{"type": "int", "value": {HUGE}}}'
        ),
        "compare report show",
        None,
        "",
    ),
    "Max 1e400": (document("dump.json", *OUTPUT, "Max", value="1e400"), "nan", 1, "relu"),
    # 8: other documents
    "a framework that is a list": (
        document("dump.json", "framework", value="[]"),
        "compare",
        0,
        "framework is a list",
    ),
    "construct.json of objects": (
        document("construct.json", RELU, value="{}"),
        "compare report show",
        None,
        "",
    ),
    "construct.json of numbers": (
        document("construct.json", RELU, value="3"),
        "compare report show",
        None,
        "",
    ),
    "a shape that is a number": (
        document("dump.json", *OUTPUT, "shape", value="3"),
        "compare report",
        None,
        "shape is a whole number",
    ),
    "a dtype that is an object": (
        document("dump.json", *OUTPUT, "dtype", value="{}"),
        "compare report show",
        None,
        "dtype is an object",
    ),
    # 9: run.json
    "a parameter without a shape": (
        document("run.json", *PARAMETER, value="{}"),
        "check",
        None,
        "",
    ),
    "values that are a list": (
        document("run.json", *PARAMETER, value="[]"),
        "check",
        None,
        "values is a list",
    ),
    "a crc that is a list": (
        document("run.json", *PARAMETER, "crc", value="[]"),
        "check compare",
        None,
        "",
    ),
    "a crc that is an object": (
        document("run.json", *PARAMETER, "crc", value="{}"),
        "check",
        None,
        "crc is an object",
    ),
    "a parameter's shape that is a number": (
        document("run.json", *PARAMETER, "shape", value="3"),
        "check",
        None,
        "shape is a whole number",
    ),
    "a parameter's shape of objects": (
        document("run.json", *PARAMETER, "shape", value="[{}]"),
        "check",
        None,
        "a list with an object",
    ),
    # 10: series
    "a step that is NaN": (series(["step", "loss"], float("nan")), "watch", 2, "0 steps"),
    "no row with a step": (series(["step", "loss"], -1.0), "watch trend report", None, ""),
    "a step that is Inf": (series(["step", "loss"], float("inf")), "watch", 2, "0 steps"),
    "names that are no texts": (
        series(["step", 3], 0.0),
        "watch trend",
        2,
        "does not name its columns",
    ),
    # 12: journals
    "a slot of 400 digits": (
        table(HUGE),
        "show nan compare report",
        None,
        "line 2 is cut or wrong",
    ),
    "a slot below zero": (table("-1"), "show nan compare report", None, "line 2 is cut or wrong"),
    "a name that is a list": (journal({"name": []}), "recover", 1, "rank1: 1 entries recovered"),
}


def words(command, a, b, folder):
    own = {
        "compare": [
            "compare",
            a,
            b,
            "--jobs",
            "1",
            "--csv",
            folder / "out.csv",
            "--xlsx",
            folder / "out.xlsx",
        ],
        "report": ["report", b, "-o", folder / "out.html"],
        "check": ["check", a, b],
    }
    return [str(word) for word in own.get(command, [command, b])]


@pytest.mark.parametrize("kind", CASES)
def test_each_input_has_its_line_and_its_status(tmp_path, capsys, kind):
    change, commands, status, text = CASES[kind]
    run(tmp_path / "a")
    change(run(tmp_path / "b"))
    for command in commands.split():
        found = main(words(command, tmp_path / "a", tmp_path / "b", tmp_path))
        said = "".join(capsys.readouterr())
        assert found == status if status is not None else found in (0, 1, 2)
        assert "Traceback" not in said
        assert text in said


def test_names_nested_900_deep_are_one_line(tmp_path, capsys):
    run(tmp_path / "a")
    (tmp_path / "map.yaml").write_text("{a: " * 900 + "b" + "}" * 900)
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # MindSpore sets another
    try:
        assert (
            main(
                [
                    "compare",
                    str(tmp_path / "a"),
                    str(tmp_path / "a"),
                    "--map",
                    str(tmp_path / "map.yaml"),
                ]
            )
            == 2
        )
    finally:
        sys.setrecursionlimit(usual)
    assert "it is nested too deeply" in capsys.readouterr().err
