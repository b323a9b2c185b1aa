# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The record of a tensor: what dump.json says of it, and its text, which is made once."""

from __future__ import annotations

import functools
import json
from typing import Any

from probe.measure.statistics import Numbers

#: how far an item of an entry's list is indented in dump.json: there nearly all records stand
ITEM = "    "


class TensorRecord:
    """What is known of one tensor, as the JSON text that stands for it in an entry.

    Args:
        here: the text of ``json.dumps(…, indent=1)`` at a place indented by ``ITEM``.
    """

    __slots__ = ("_here",)

    def __init__(self, here: str) -> None:
        self._here = here

    def text(self, pad: str) -> str:
        """Return the text at a place indented by ``pad``."""
        return self._here if pad == ITEM else self._here.replace(f"\n{ITEM}", f"\n{pad}")


def record(dtype: str, shape: tuple[int, ...], numbers: Numbers, further: dict[str, str] | None = None) -> TensorRecord:
    """Return the record of a tensor with these numbers and further texts.

    >>> print(record("Float32", (), {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.0}).text(""))
    {
     "type": "mindspore.Tensor",
     "dtype": "Float32",
     "shape": [],
     "Max": 1.0,
     "Min": 1.0,
     "Mean": 1.0,
     "Norm": 1.0
    }
    """
    items = [*numbers.items(), *further.items()] if further else numbers.items()
    texts = [f',\n{ITEM} "{key}": {_number(value)}' for key, value in items]
    return TensorRecord(f"{_head(dtype, shape)}{''.join(texts)}\n{ITEM}}}")


def finite(
    dtype: str, shape: tuple[int, ...], largest: float, smallest: float, mean: float, norm: float
) -> TensorRecord:
    """Return the same for a tensor with four finite numbers and nothing else, several times faster."""
    return TensorRecord(
        f'{_head(dtype, shape)},\n{ITEM} "Max": {largest!r},\n{ITEM} "Min": {smallest!r}'
        f',\n{ITEM} "Mean": {mean!r},\n{ITEM} "Norm": {norm!r}\n{ITEM}}}'
    )


@functools.lru_cache(4096)
def _head(dtype: str, shape: tuple[int, ...]) -> str:
    separator = f",\n{ITEM}  "
    sizes = separator.join(map(str, shape))
    sizes = f"[\n{ITEM}  {sizes}\n{ITEM} ]" if sizes else "[]"
    return f'{{\n{ITEM} "type": "mindspore.Tensor",\n{ITEM} "dtype": "{dtype}",\n{ITEM} "shape": {sizes}'


class ScalarRecord:
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

    @property
    def value(self) -> Any:
        """What it says the value is."""
        return self._fields.get("value")

    def text(self, pad: str) -> str:
        """Return the text of ``json.dumps(fields(), indent=1)`` at a place indented by ``pad``."""
        if self._pad != pad or not self._text:
            items = [f'\n{pad} "{key}": {json.dumps(value)}' for key, value in self._fields.items()]
            self._pad, self._text = pad, f"{{{','.join(items)}\n{pad}}}"
        return self._text


class PendingRecord:
    """The record of a tensor that is not measured yet; null if nothing turns out to be there.

    Attributes:
        record: the record, as soon as it is known.
    """

    __slots__ = ("record",)

    def __init__(self) -> None:
        self.record: Any = None

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``Record``."""
        return "null" if self.record is None else str(self.record.text(pad))


def resolve(value: Any) -> Any:
    """Return a value with what is known by now in place of what was to come."""
    if type(value) is PendingRecord:
        return resolve(value.record)
    if type(value) is dict:
        return {key: resolve(item) for key, item in value.items()}
    return [resolve(item) for item in value] if type(value) is list else value


def _number(value: Any) -> str:
    if type(value) is float and value - value == 0.0:  # finite
        return repr(value)
    return json.dumps(value)
