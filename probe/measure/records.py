# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records: the JSON text of tensors and numbers in dump.json, made once."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

#: indentation of a record in an entry's list (the common case)
ITEM = "    "


class TensorRecord:
    """The record of one tensor: the JSON text that stands for it in an entry."""

    __slots__ = ("_here",)

    def __init__(self, here: str) -> None:
        self._here = here  # the text of ``json.dumps(…, indent=1)`` at a place indented by ``ITEM``

    def text(self, pad: str) -> str:
        """Return the text at a place indented by ``pad``."""
        return self._here if pad == ITEM else self._here.replace(f"\n{ITEM}", f"\n{pad}")

    def with_key(self, key: str) -> TensorRecord:
        """Return the record with one more key and its value, as JSON: ``"micro": "0"``."""
        end = f"\n{ITEM}}}"
        return TensorRecord(f"{self._here[: -len(end)]},\n{ITEM} {key}{end}")


def tensor_record(dtype: str, shape: tuple[int, ...], values: Mapping[str, Any]) -> TensorRecord:
    """Return the record of a tensor with these numbers and texts.

    >>> print(tensor_record("Float32", (), {"Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.0}).text(""))
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
    texts = [f',\n{ITEM} "{key}": {_text(value)}' for key, value in values.items()]
    return TensorRecord(f"{_head(dtype, shape)}{''.join(texts)}\n{ITEM}}}")


def unwritten_record(dtype: Any, shape: tuple[int, ...]) -> TensorRecord:
    """Return the record of memory that no kernel wrote: its numbers would differ from run to run."""
    return tensor_record(str(dtype), shape, {"Max": None, "Min": None, "Mean": None, "Norm": None, "unwritten": True})


def finite_record(
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


class ScalarRecord(TensorRecord):
    """The record of one number.

    >>> print(ScalarRecord("int", 3).text(""))
    {
     "type": "int",
     "value": 3
    }
    """

    __slots__ = ("value",)

    def __init__(self, kind: str, value: Any) -> None:
        super().__init__(f'{{\n{ITEM} "type": "{kind}",\n{ITEM} "value": {json.dumps(value)}\n{ITEM}}}')
        self.value = value


class PendingRecord:
    """The record of a tensor that is not measured yet; null if nothing turns out to be there."""

    __slots__ = ("keys", "record")

    def __init__(self) -> None:
        self.record: Any = None  # the record, as soon as it is known
        self.keys: tuple[str, ...] = ()  # its further keys, as JSON

    def known(self) -> Any:
        """Return the record, with the further keys; None where it is not known."""
        return self.record and with_keys(self.record, self.keys)

    def with_key(self, key: str) -> PendingRecord:
        """Add a key; see ``TensorRecord``."""
        self.keys += (key,)
        return self

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``TensorRecord``."""
        record = self.known()
        return "null" if record is None else str(record.text(pad))


def with_keys(record: TensorRecord, keys: tuple[str, ...]) -> TensorRecord:
    """Return a record with further keys; see ``TensorRecord.with_key``."""
    return functools.reduce(lambda made, key: made.with_key(key), keys, record)


def resolve(value: Any) -> Any:
    """Return a JSON shape with every pending record replaced by the record that is known by now."""
    if type(value) is dict:
        return {key: resolve(item) for key, item in value.items()}
    if type(value) is list:
        return [resolve(item) for item in value]
    return value.known() if type(value) is PendingRecord else value


def _text(value: Any) -> str:
    if type(value) is float and value - value == 0.0:  # finite
        return repr(value)
    return json.dumps(value)
