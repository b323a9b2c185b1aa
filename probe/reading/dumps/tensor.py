# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of one tensor, as its record holds them."""

from __future__ import annotations

from typing import Any

from probe.reading.dumps.values import Record, has_nonfinite, real


class TensorNumbers:
    """The dtype, shape and statistics of a record."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record

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
