# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The names of files in MindSpore's kernel dump, and the columns of its tables."""

from __future__ import annotations

import re
from typing import NamedTuple

from probe.store import file_names

STATISTICS, MAPPING = "statistic.csv", "mapping.csv"
CONSTANTS, ORDER = "constants", "execution_order"
#: the file of ours beside a rank's dump: the settings, and the Cells of the model
RUN = file_names.KERNEL_RUN
PARAMETER = "Parameter"

#: columns of statistic.csv before the statistics
HEAD = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape")
#: name of a statistic in the settings -> its column, and its key in a record; "" where a record has none
COLUMNS = {
    "max": ("Max Value", "Max"),
    "min": ("Min Value", "Min"),
    "avg": ("Avg Value", "Mean"),
    "l2norm": ("L2Norm Value", "Norm"),
    "count": ("Count", "count"),
    "negative zero count": ("Negative Zero Count", "negative_zero_count"),
    "positive zero count": ("Positive Zero Count", "positive_zero_count"),
    "nan count": ("NaN Count", "nan_count"),
    "negative inf count": ("Negative Inf Count", "negative_inf_count"),
    "positive inf count": ("Positive Inf Count", "positive_inf_count"),
    "zero count": ("Zero Count", "zero_count"),
    "md5": ("MD5", ""),
    "sha1": ("SHA1", ""),
}

_ARRAY = re.compile(
    r"(?P<op_type>[^.]+)\.(?P<op_name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<timestamp>\d+)"
    r"\.(?P<io>input|output)\.(?P<slot>\d{1,4})\.(?P<format>[^.]+)(?:\.(?P<dtype>\w+))?\.npy"
)

#: names of dtypes that records spell in another way
_SPELLINGS = {"bfloat16": "BFloat16", "uint": "UInt32", "int": "Int32", "float": "Float32", "double": "Float64"}


class ArrayName(NamedTuple):
    """The parts of the name of an array's file."""

    op_type: str  # the type of the kernel: "Conv2D"
    op_name: str  # its name: "Conv2D-op12", with its scope for whole graphs on Ascend
    task: int  # the task id
    stream: int  # the stream id
    timestamp: int  # when it was written, in microseconds
    io: str  # "input" or "output"
    slot: int  # which input or output
    format: str  # the data format: "DefaultFormat", "NCHW"
    dtype: str  # the dtype of the tensor, where the name has it, else ""

    @property
    def key(self) -> tuple[str, str, int, int, int, str, int]:
        """The parts that a row of statistic.csv has too."""
        return self[:7]

    @property
    def is_parameter(self) -> bool:
        """Whether this is a parameter or a constant instead of an input or output of a kernel."""
        return self.op_type == PARAMETER


def parse(name: str) -> ArrayName | None:
    """Take the name of an array's file apart; None where it is no such name.

    >>> parse("Conv2D.Conv2D-op12.0.7.1623124369613540.output.0.NCHW.float16.npy")[:5]
    ('Conv2D', 'Conv2D-op12', 0, 7, 1623124369613540)
    >>> parse("Parameter.fc.weight.0.0.1623124369613540.output.0.DefaultFormat.npy").op_name
    'fc.weight'
    >>> parse("Functional.relu.0.forward.output.0.npy") is None
    True
    """
    match = _ARRAY.fullmatch(name)
    if match is None:
        return None
    return ArrayName(
        match["op_type"], match["op_name"], int(match["task"]), int(match["stream"]), int(match["timestamp"]),
        match["io"], int(match["slot"]), match["format"], match["dtype"] or "",
    )  # fmt: skip


def dtype_name(name: str) -> str:
    """Return the name of a dtype as records have it.

    >>> dtype_name("float16"), dtype_name("uint8"), dtype_name("BFLOAT16"), dtype_name("bool")
    ('Float16', 'UInt8', 'BFloat16', 'Bool')
    """
    name = name.strip().lower()
    return _SPELLINGS.get(name) or (f"UI{name[2:]}" if name.startswith("ui") else name.capitalize())
