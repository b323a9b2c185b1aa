# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every dtype of MindSpore in each level, task and measure: an entry with dtype and shape, and the numbers of a table.

The table is written here: values that each dtype holds exactly, with its greatest and smallest, from the definition of
its format. Python adds them.
"""

from __future__ import annotations

import json
import math
import zlib

import mindspore as ms
import ml_dtypes
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.common import dtype as mstype

import probe
from probe.__main__ import main

pytestmark = pytest.mark.slow


def floating(exponent: int, mantissa: int, greatest: float) -> list[float]:
    """Return values of a format: its greatest, its smallest, and some between."""
    bias = 2 ** (exponent - 1) - 1
    smallest = 2.0 ** (1 - bias - mantissa)
    return [greatest, -greatest / 2, smallest, 0.0, 1.0 + 2.0**-mantissa, -1.5]


def whole(bits: int, signed: bool) -> list[int]:
    return [2 ** (bits - signed) - 1, -(2 ** (bits - 1)) if signed else 0, 1, 0, 3, 100]


#: the name in mindspore -> the dtype in a record, and values that the dtype holds exactly
TABLE = {
    "bool_": ("Bool", [True, False, True, True, False, True]),
    **{f"int{bits}": (f"Int{bits}", whole(bits, True)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (f"UInt{bits}", whole(bits, False)) for bits in (8, 16, 32, 64)},
    "float16": ("Float16", floating(5, 10, 65504.0)),
    "bfloat16": ("BFloat16", floating(8, 7, 2.0**100)),
    "float32": ("Float32", floating(8, 23, 2.0**30)[:2] + [2.0**-60, 0.0, 1.5, -1.5]),
    "float64": ("Float64", floating(11, 52, 2.0**200)[:2] + [2.0**-200, 0.0, 1.5, -1.5]),
    "complex64": ("Complex64", [3 + 4j, 0j, -5j, 8 + 6j, 1j, -12 - 5j]),
    "complex128": ("Complex128", [3 + 4j, 0j, -5j, 8 + 6j, 1j, -12 - 5j]),
    "float8_e4m3fn": ("Float8E4M3FN", floating(4, 3, 448.0)),
    "float8_e5m2": ("Float8E5M2", floating(5, 2, 57344.0)),
    "hifloat8": ("HiFloat8", [32768.0, -16384.0, 2.0**-22, 0.0, 1.125, -1.5]),
    "qint4x2": ("Int4", [7, -8, 1, 0, 3, -5]),
}
#: MindSpore 2.7 lacks some
DTYPES = [name for name in TABLE if hasattr(ms, name)]
#: copies of the values in a tensor that a device reduces
COPIES = 700
#: numpy's dtype of a stored array, where it is another
STORED = {"bfloat16": "float32", "float8_e4m3fn": "float32", "float8_e5m2": "float32", "hifloat8": "float32",
          "qint4x2": "int8", "bool_": "bool"}  # fmt: skip
FOUR = ("Max", "Min", "Mean", "Norm")


def numbers(name: str, copies: int) -> dict:
    """Return the four numbers of so many copies of a dtype's values."""
    values = TABLE[name][1]
    if name == "bool_":
        return dict(zip(FOUR, (True, False, None, None)))
    real = [abs(value) for value in values] if name.startswith("complex") else values
    square = math.fsum(value * value for value in real)
    return dict(zip(FOUR, (max(real), min(real), math.fsum(real) / 6, math.sqrt(square * copies))))


def made(name: str, copies: int = 1) -> Tensor:
    """Return a tensor of a dtype's values."""
    kind = {"hifloat8": "float32", "bool_": "bool", "qint4x2": "int8"}.get(name, name)
    kind = np.float32 if "float8" in kind or kind == "bfloat16" else np.dtype(kind)
    return Tensor(np.resize(np.array(TABLE[name][1], kind), (copies, 6)), getattr(ms, name))


class Inner(nn.Cell):
    def construct(self, x):
        return ops.reshape(x, (-1, 3))


class Logarithm(nn.Cell):
    def construct(self, x):
        return ops.log(x)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner, self.last = Inner(), Logarithm()

    def construct(self, *tensors):
        for tensor in tensors:
            self.inner(tensor)
        self.last(Tensor([-1.0]))


#: key of settings -> the settings
TASKS = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "summary_mode": "md5"},
    "list": {"task": "statistics", "summary_mode": ["max", "min", "mean", "l2norm", "count"]},
    "tensor": {"task": "tensor"},
    "nan_check": {"task": "nan_check", "last_calls": 1000},
}
CALLS = [(name, copies) for name in DTYPES for copies in (1, COPIES)]


def recorded(debug, level, measure, task):
    tensors = [made(*call) for call in CALLS]
    net = Net()
    return debug.record(
        lambda: net(*tensors), net, level=level, measure=measure, **TASKS.get(task, {"task": task})
    )[1]


def names(level: str) -> list[str]:
    of_cells = [f"Cell.inner.Inner.forward.{number}" for number in range(len(CALLS))]
    return (
        of_cells
        if level == "L0"
        else [f"Functional.reshape.{number}.forward" for number in range(len(CALLS))]
    )


def agrees(measure: str, found, expected: dict, key: str) -> bool:
    """Return whether a number is that of the table; docs/files.md has the errors that sums may have."""
    number = expected[key]
    if key in ("Max", "Min") or number is None:
        return type(found) is type(number) and found == number
    scale = max(abs(expected["Max"]), abs(expected["Min"])) if key == "Mean" else number
    return abs(found - number) <= scale * (2e-7 if measure == "host" else 1e-6)


def test_the_table_has_every_dtype_of_this_mindspore():
    kinds = {*mstype.number_type, mstype.bool_}
    assert kinds == {getattr(ms, name) for name in DTYPES}


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("task", TASKS)
def test_each_dtype_has_an_entry_with_dtype_shape_and_the_numbers_of_the_table(
    debug, level, measure, task
):
    dump = recorded(debug, level, measure, task)
    assert not (dump.folder / "dump_error_info.log").exists()
    wrong = {}
    for (name, copies), key in zip(CALLS, names(level)):
        entry = dump.data[key]
        places = (
            [entry["output"][0]]
            if task == "nan_check"
            else [entry["input_args"][0], entry["output"][0]]
        )
        for record, shape in zip(places[::-1], ([2 * copies, 3], [copies, 6])):
            assert (record["dtype"], record["shape"]) == (TABLE[name][0], shape)
            expected = numbers(name, copies)
            if task == "nan_check":
                expected.update(
                    Mean=None, Norm=None, **({"Max": None, "Min": None} if name == "bool_" else {})
                )
            if task == "list":
                assert record.pop("count") == 6 * copies
            is_wrong = [four for four in FOUR if not agrees(measure, record[four], expected, four)]
            wrong.update(
                {(name, copies, four): (record[four], expected[four]) for four in is_wrong}
            )
            if task in ("md5", "tensor"):
                stored = np.resize(np.array(TABLE[name][1], STORED.get(name, name)), shape)
                if task == "md5":
                    assert record["md5"] == f"{zlib.crc32(stored.tobytes()):08x}"
                else:
                    array = dump.array(record["data_name"])
                    assert (array.dtype, array.tolist()) == (stored.dtype, stored.tolist())
    # the sums of these leave float32: docs/files.md says so of a device
    far = {"float64", "bfloat16", "int64", "uint64"} if measure == "device" else set()
    assert {
        key: value for key, value in wrong.items() if key[0] not in far or key[2] in ("Max", "Min")
    } == {}


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_task_structure_has_the_calls_of_each_dtype(debug, level):
    dump = recorded(debug, level, "host", "structure")
    assert dump.construct.keys() >= set(names(level))


@pytest.mark.parametrize(
    "name", [name for name in ("float8_e4m3fn", "float8_e5m2", "hifloat8") if name in DTYPES]
)
@pytest.mark.parametrize("measure", ["host", "device"])
def test_each_byte_of_a_float_of_eight_bits_has_its_value(debug, name, measure):
    values = sorted({value for value in map(decoded[name], range(256)) if math.isfinite(value)})
    dump = debug.record(
        lambda: ops.reshape(Tensor(np.array(values, np.float32), getattr(ms, name)), (1, -1)),
        task="tensor",
        measure=measure,
    )[1]
    record = dump.data["Functional.reshape.0.forward"]["input_args"][0]
    assert dump.array(record["data_name"]).tolist() == values
    assert len(values) == {"float8_e4m3fn": 253, "float8_e5m2": 247, "hifloat8": 253}[name]
    loaded = probe.load(dump.folder / "dump_tensor_data" / record["data_name"])
    assert loaded.dtype == getattr(ml_dtypes, name, np.dtype(np.float32))
    assert loaded.astype(np.float32).tolist() == values


def ieee(exponent: int, mantissa: int, byte: int) -> float:
    """Return the value of a byte, with Inf and NaN at the highest exponent."""
    sign, power, rest = (
        -1 if byte >> 7 else 1,
        byte >> mantissa & 2**exponent - 1,
        byte % 2**mantissa,
    )
    bias = 2 ** (exponent - 1) - 1
    if power == 2**exponent - 1 and exponent == 5:
        return math.nan if rest else sign * math.inf
    if power == 2**exponent - 1 and rest == 7:
        return math.nan
    if not power:
        return sign * rest * 2.0 ** (1 - bias - mantissa)
    return sign * (1 + rest / 2**mantissa) * 2.0 ** (power - bias)


def tapered(byte: int) -> float:
    """Return the value of a byte of HiFloat8, by table 1 of arXiv 2409.16626."""
    bits = f"{byte:08b}"
    sign = -1 if bits[0] == "1" else 1
    if bits[1:5] == "0000":
        rest = int(bits[5:], 2)
        return sign * 2.0 ** (rest - 23) if rest else 0.0 if sign > 0 else math.nan
    dot, width = {"11": ("11", 4), "10": ("10", 3), "01": ("01", 2)}.get(bits[1:3], (bits[1:4], 1))
    if bits[1:5] == "0001":
        dot, width = "0001", 0
    field, rest = bits[1 + len(dot) :][:width], bits[1 + len(dot) + width :]
    size = int("1" + field[1:], 2) if width else 0
    power = -size if field[:1] == "1" else size
    if power == 15 and rest == "1":
        return sign * math.inf
    return sign * 2.0**power * (1 + int(rest, 2) / 2 ** len(rest))


decoded = {
    "float8_e4m3fn": lambda byte: ieee(4, 3, byte),
    "float8_e5m2": lambda byte: ieee(5, 2, byte),
    "hifloat8": tapered,
}


@pytest.mark.parametrize("measure", ["host", "device"])
def test_the_monitor_has_the_norm_of_a_tensor_of_each_dtype(debug, measure):
    config = debug.path / "config.json"
    own = {"list": ["inner"], "interval": 1}
    config.write_text(
        json.dumps(
            {
                "task": "monitor",
                "dump_path": str(debug.dump_path),
                "measure": measure,
                "level": "L0",
                "monitor": own,
            }
        )
    )
    debugger, net = probe.PrecisionDebugger(config_path=str(config)), Net()
    debugger.start(net)
    net(*(made(*call) for call in CALLS))
    debugger.stop()
    debugger.step()
    debugger.close()
    run = probe.open(str(debug.dump_path))
    for number, call in enumerate(CALLS):
        expected = numbers(*call)["Norm"]
        [found] = run.series(f"Cell.inner.Inner.forward.{number}.input.0")[1]
        if expected is not None:  # a series has float32, and so has a sum of squares on a device
            fits = (expected if measure == "host" else expected**2) < 3e38
            assert found == (pytest.approx(expected, rel=1e-6) if fits else math.inf), call


def quantised(values, scale):
    return ops.reshape(values, (-1,))


@pytest.mark.skipif("float8_e4m3fn" not in DTYPES, reason="this MindSpore has no float8")
def test_the_scales_of_a_quantised_call_stand_beside_its_values(debug):
    debugger = debug(level="L1")
    debugger.register_custom_api(__import__(__name__, fromlist=["quantised"]), "quantised")
    debugger.start()
    quantised(made("float8_e4m3fn"), scale=Tensor([0.5, 2.0], ms.float32))
    debugger.stop()
    debugger.step()
    debugger.restore_custom_api(__import__(__name__, fromlist=["quantised"]), "quantised")
    [name] = debug.dump().names("quantised")
    entry = debug.dump().data[name]
    assert (entry["input_args"][0]["dtype"], entry["input_kwargs"]["scale"]["Max"]) == (
        "Float8E4M3FN",
        2.0,
    )


@pytest.mark.skipif("float8_e4m3fn" not in DTYPES, reason="this MindSpore has no float8")
@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("task", ["statistics", "tensor", "nan_check"])
def test_a_tensor_whose_bytes_cannot_be_read_has_dtype_shape_and_a_reason(debug, task, measure):
    unfilled = Tensor(shape=(2, 3), dtype=ms.float8_e4m3fn, init=ms.common.initializer.Zero())

    def function():
        with pytest.raises(RuntimeError, match="uninitialized"):
            ops.reshape(unfilled, (6,)).asnumpy()
        ops.log(Tensor([-1.0]))

    dump = debug.record(function, task=task, level="L1", measure=measure)[1]
    record = dump.data["Functional.reshape.0.forward"]["input_args"][0]
    assert (record["dtype"], record["shape"]) == ("Float8E4M3FN", [2, 3])
    assert [record[four] for four in FOUR] == [None] * 4
    assert task == "nan_check" or " no bytes of Float8E4M3FN" in record["unread"]


def test_all_readers_accept_entries_of_every_dtype(debug, capsys):
    recorded(debug, "mix", "host", "tensor")
    first = str(debug.dump_path)
    debug.dump_path = debug.path / "second"
    recorded(debug, "mix", "host", "tensor")
    second, page = str(debug.dump_path), str(debug.path / "report.html")

    def answer(*words, status=0):
        assert main(list(words)) == status
        return capsys.readouterr().out

    shown = answer("show", first, "--name", "output", "--rows", "0")
    assert [name for name in DTYPES if TABLE[name][0] not in shown] == []
    assert "no difference beyond tolerance" in answer("compare", first, second)
    assert "Functional.log.0.forward" in answer("check", first, "--lang", "en", status=1)
    assert "Functional.log.0.forward" in answer("nan", first, status=1)
    answer("report", first, second, "-o", page, status=1)  # both hold the NaN of that call
