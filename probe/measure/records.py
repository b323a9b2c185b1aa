# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The record of a tensor: what dump.json says of it, and its text, which is made once."""

from __future__ import annotations

import functools
import json
from typing import Any

from probe.measure.statistics import Numbers


class Record:
    """What is known of one tensor. Its text is kept, as tensors with the same content share a record.

    >>> Record("Float32", (2,), {"Max": 1.0, "Min": 0.5, "Mean": 0.75, "Norm": 1.118}).fields()
    {'type': 'mindspore.Tensor', 'dtype': 'Float32', 'shape': [2], 'Max': 1.0, 'Min': 0.5, 'Mean': 0.75, 'Norm': 1.118}
    """

    __slots__ = ("_dtype", "_further", "_numbers", "_pad", "_shape", "_text")

    def __init__(
        self, dtype: str, shape: tuple[int, ...], numbers: Numbers, further: dict[str, str] | None = None
    ) -> None:
        self._dtype, self._shape, self._numbers, self._further = dtype, shape, numbers, further
        self._pad = self._text = ""

    def fields(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        head = {"type": "mindspore.Tensor", "dtype": self._dtype, "shape": list(self._shape)}
        return {**head, **self._numbers, **(self._further or {})}

    def text(self, pad: str) -> str:
        """Return the text of ``json.dumps(fields(), indent=1)`` at a place indented by ``pad``."""
        if self._pad != pad or not self._text:
            numbers = self._numbers_text(pad)
            further = "" if self._further is None else _further(self._further, pad)
            self._pad, self._text = pad, f"{_head(self._dtype, self._shape, pad)}{numbers}{further}\n{pad}}}"
        return self._text

    def _numbers_text(self, pad: str) -> str:
        numbers = self._numbers
        mean, norm = numbers["Mean"], numbers["Norm"]
        if mean is not None and norm is not None and len(numbers) == 4 and mean - mean == norm - norm == 0.0:  # finite
            return (
                f',\n{pad} "Max": {numbers["Max"]!r},\n{pad} "Min": {numbers["Min"]!r}'
                f',\n{pad} "Mean": {mean!r},\n{pad} "Norm": {norm!r}'
            )
        return "".join([f',\n{pad} "{key}": {_number(value)}' for key, value in numbers.items()])


@functools.lru_cache(4096)
def _head(dtype: str, shape: tuple[int, ...], pad: str) -> str:
    separator = f",\n{pad}  "
    sizes = separator.join(map(str, shape))
    sizes = f"[\n{pad}  {sizes}\n{pad} ]" if sizes else "[]"
    return f'{{\n{pad} "type": "mindspore.Tensor",\n{pad} "dtype": "{dtype}",\n{pad} "shape": {sizes}'


class Plain:
    """What is known of one number, text or the like; its text is kept too.

    >>> print(Plain({"type": "int", "value": 3}).text(""))
    {
     "type": "int",
     "value": 3
    }
    """

    __slots__ = ("_fields", "_pad", "_text")

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self._pad = self._text = ""

    def fields(self) -> dict[str, Any]:
        """Return the record as JSON has it."""
        return self._fields

    def text(self, pad: str) -> str:
        """Return the text of ``json.dumps(fields(), indent=1)`` at a place indented by ``pad``."""
        if self._pad != pad or not self._text:
            items = [f'\n{pad} "{key}": {json.dumps(value)}' for key, value in self._fields.items()]
            self._pad, self._text = pad, f"{{{','.join(items)}\n{pad}}}"
        return self._text


class Later:
    """The record of a tensor that is not measured yet; null if nothing turns out to be there.

    Attributes:
        record: the record, as soon as it is known.
    """

    __slots__ = ("record",)

    def __init__(self) -> None:
        self.record: Record | None = None

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``Record``."""
        return "null" if self.record is None else self.record.text(pad)


def _number(value: Any) -> str:
    if type(value) is float and value - value == 0.0:  # finite
        return repr(value)
    return json.dumps(value)


def _further(values: dict[str, str], pad: str) -> str:
    return "".join([f',\n{pad} "{key}": {json.dumps(value)}' for key, value in values.items()])
