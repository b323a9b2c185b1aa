# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One tensor of a dump: its numbers, its array, and the calls that made and use it."""

from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING, Any

from probe.errors import UsageError
from probe.reading import text
from probe.reading.values import NUMBERS, Record, has_nonfinite, real
from probe.store import layout

if TYPE_CHECKING:
    import numpy as np

    from probe.reading.dump import Call


class Tensor:
    """One tensor as a call was given it or gave it.

    Args:
        call: the call.
        place: where in the entry it stands: "input.0", "output.1", "parameters.weight".
        record: its record.

    Example::

        tensor = dump["Functional.softmax.1.forward"].outputs["0"]
        tensor.max, tensor.shape, tensor.producer
    """

    __slots__ = ("call", "place", "record")

    def __init__(self, call: Call, place: str, record: Record) -> None:
        self.call = call
        self.place = place
        self.record = record

    @property
    def name(self) -> str:
        """The entry's name and the place: "Functional.relu.0.forward.input.0"."""
        return f"{self.call.name}.{self.place}"

    @property
    def dtype(self) -> str:
        """The dtype as MindSpore writes it: "Float32"."""
        return str(self.record.get("dtype"))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape; None where the record has none."""
        found = self.record.get("shape")
        return tuple(found) if isinstance(found, list) else None

    @property
    def stats(self) -> dict[str, Any]:
        """All statistics of the record, as they are written."""
        return {key: value for key, value in self.record.items() if key not in ("type", "dtype", "shape", "data_name")}

    @property
    def max(self) -> float | None:
        """The greatest element."""
        return real(self.record.get("Max"))

    @property
    def min(self) -> float | None:
        """The least element."""
        return real(self.record.get("Min"))

    @property
    def mean(self) -> float | None:
        """The mean."""
        return real(self.record.get("Mean"))

    @property
    def norm(self) -> float | None:
        """The L2 norm."""
        return real(self.record.get("Norm"))

    @property
    def nan_count(self) -> int:
        """How many elements are NaN, where the record says so; else 0."""
        return int(real(self.record.get("nan_count")) or 0)

    @property
    def md5(self) -> str | None:
        """The CRC-32 of the array, which the field calls md5; None where it was not asked for."""
        found = self.record.get("md5")
        return found if isinstance(found, str) else None

    @property
    def is_nonfinite(self) -> bool:
        """Whether the tensor holds NaN or Inf."""
        return has_nonfinite(self.record)

    @property
    def path(self) -> str | None:
        """The file of its array; None where no array was written."""
        name = self.record.get("data_name")
        if not isinstance(name, str) or not name or os.path.basename(name) != name:
            return None
        return os.path.join(self.call.dump.path, layout.ARRAYS, name)

    def array(self) -> np.ndarray[Any, Any]:
        """Return its array, bfloat16 as ``ml_dtypes.bfloat16``.

        Raises:
            UsageError: when no array was written, or the file cannot be read.
        """
        path = self.path
        if path is None:
            raise UsageError(f"{self.name} has no array: the dump holds its statistics only")
        from probe.reading.load import load_array

        return load_array(path, self.dtype)

    @property
    def producer(self) -> Call | None:
        """The call that made this tensor; None where it comes from outside of the recorded calls."""
        return self.call.dump.flow.producer(self)

    @property
    def users(self) -> list[Call]:
        """The calls that were given this tensor."""
        return self.call.dump.flow.users(self)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{key} {text.number(self.record.get(key))}" for key in NUMBERS)
        return text.safe(f"<Tensor {self.name} {self.dtype} {text.shape(self.record.get('shape'))}: {numbers}>")

    def _repr_html_(self) -> str:
        rows = {"name": self.name, "dtype": self.dtype, "shape": text.shape(self.record.get("shape")), **self.stats}
        cells = (
            f"<tr><th>{html.escape(key)}</th><td>{html.escape(text.safe(row))}</td></tr>" for key, row in rows.items()
        )
        return f"<table>{''.join(cells)}</table>"
