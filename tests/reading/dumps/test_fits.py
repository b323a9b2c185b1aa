# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe show --fits``: which calls could run in a narrower dtype, from statistics of range or from Max and Min."""

from __future__ import annotations

import json
import math

import pytest

from probe.__main__ import main
from probe.reading.dumps.dtypes import fit_of


def record(**numbers):
    return {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [4], **numbers}


def write(folder, data):
    place = folder / "step0" / "rank"
    place.mkdir(parents=True)
    head = {"task": "statistics", "level": "L1", "framework": "mindspore", "dump_data_dir": None}
    (place / "dump.json").write_text(json.dumps({**head, "data": data}))
    return str(folder)


def entry(*records):
    return {"input_args": [], "input_kwargs": {}, "output": list(records)}


PLAIN = {
    "Functional.relu.0.forward": entry(record(Max=1.0, Min=-2.0, Mean=0.0, Norm=2.0)),
    "Functional.exp.0.forward": entry(record(Max=70000.0, Min=0.0, Mean=1.0, Norm=70000.0)),
    "Functional.sqrt.0.forward": entry(record(Max=1e-9, Min=1e-10, Mean=1e-9, Norm=1e-9)),
    "Functional.exp.1.forward": entry(record(Max=1.0, Min=-1e38, Mean=1.0, Norm=1e38)),
    "Functional.tanh.0.forward": entry(record(Max=0.0, Min=0.0, Mean=0.0, Norm=0.0)),
    "Functional.log.0.forward": entry(
        record(Max=math.nan, Min=math.nan, Mean=math.nan, Norm=math.nan)
    ),
    "Functional.argmax.0.forward": entry(
        {**record(Max=70000, Min=0, Mean=1.0, Norm=1.0), "dtype": "Int32"}
    ),
}


def test_a_plain_dump_tells_overflow_and_says_that_it_cannot_tell_the_rest(tmp_path, capsys):
    path = write(tmp_path / "dump", PLAIN)
    assert main(["show", path, "--fits", "float16", "--lang", "en"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "5 calls in float16: 2 overflow, 1 underflow, 1 fit, 1 unknown"
    assert [line.split()[0] for line in lines[2:5]] == [
        "Functional.exp.1.forward",
        "Functional.exp.0.forward",
        "Functional.sqrt.0.forward",
    ]
    assert "the dump does not tell their numbers near zero" in lines[5]
    assert "underflow:float16" in lines[5]


def test_statistics_of_range_tell_all_and_the_worst_comes_first(tmp_path, capsys):
    shares = {
        "relu": (0.0, 0.005),
        "exp": (0.25, 0.0),
        "sqrt": (0.0, 0.5),
        "gelu": (0.5, 0.9),
        "tanh": (0.0, 0.7),
    }
    data = {
        f"Functional.{name}.0.forward": entry(
            record(
                Max=1.0, Min=-1.0, **{"overflow:float8_e5m2": over, "underflow:float8_e5m2": under}
            )
        )
        for name, (over, under) in shares.items()
    }
    path = write(tmp_path / "dump", data)
    assert main(["show", path, "--fits", "float8_e5m2", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["call"].split(".")[1], row["verdict"]) for row in rows] == [
        ("gelu", "overflow"),
        ("exp", "overflow"),
        ("tanh", "underflow"),
        ("sqrt", "underflow"),
        ("relu", "fits"),
    ]
    assert (rows[0]["overflow"], rows[0]["underflow"], rows[0]["place"]) == (0.5, 0.9, "output.0")
    assert main(["show", path, "--fits", "float8_e5m2", "--lang", "zh"]) == 0
    assert "5 次调用用 float8_e5m2" in capsys.readouterr().out
    assert main(["show", path, "--fits", "float8_e5m2", "--format", "csv", "--name", "gelu"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_an_unknown_dtype_and_a_broken_dump_are_told(tmp_path, capsys):
    path = write(tmp_path / "dump", PLAIN)
    with pytest.raises(SystemExit):
        main(["show", path, "--fits", "float32"])
    assert "float8_e4m3fn" in capsys.readouterr().err
    (tmp_path / "dump" / "step0" / "rank" / "dump.json").write_text("{")
    assert main(["show", path, "--fits", "float16"]) == 1


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ({"Max": 65519.0, "Min": 0.0, "smallest_magnitude": 1.0}, "fits"),
        ({"Max": 65520.0, "Min": 0.0}, "overflow"),
        ({"Max": 1.0, "Min": 0.0, "smallest_magnitude": 1e-9}, "unknown"),
        ({"Max": 1e-9, "Min": 0.0, "zero_share": 1.0 - 1e-3}, "fits"),
        ({"Max": math.inf, "Min": 0.0}, "unknown"),
        ({"Max": math.inf, "Min": -1e30}, "overflow"),
        ({"Max": None, "Min": None}, None),
        ({"Max": 1.0, "Min": 0.0, "overflow:float16": 0.1}, "overflow"),
        ({"overflow:float16": 0.0, "underflow:float16": 0.5}, "underflow"),
    ],
)
def test_the_verdict_on_one_tensor(numbers, verdict):
    found = fit_of(record(**numbers), "float16")
    assert (found and found.verdict) == verdict
