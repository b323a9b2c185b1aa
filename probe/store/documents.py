# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The three JSON documents of one step and rank, collected entry by entry and written as a whole."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quote
from typing import Any

from probe.store import folders

#: how far the value of an entry's key is indented in dump.json
_INNER = "   "
#: and an item of such a value
_ITEM = "    "


class Documents:
    """What one step and rank has seen. Entries are kept as finished JSON text, in the order of the readers.

    Args:
        folder: the rank folder.
        header: the keys that stand before "data" in dump.json.
    """

    def __init__(self, folder: str, header: Mapping[str, str | None]) -> None:
        self.folder = folder
        self._header = dict(header)
        self._entries: dict[str, dict[str, str]] = {}
        self._stacks: dict[int, list[str]] = {}
        self._construct: dict[str, str | None] = {}
        self._written = -1
        self._changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, name: str, parts: Mapping[str, Any]) -> None:
        """Add an entry, or further keys to the entry of this name."""
        texts = {key: f'{_INNER}"{key}": {_values(value)}' for key, value in parts.items()}
        known = self._entries.get(name)
        if known is None:
            self._entries[name] = texts
        else:
            known.update(texts)
        self._changes += 1

    def stack(self, name: str, number: int) -> None:
        """Note the stack of a forward entry."""
        self._stacks.setdefault(number, []).append(name)
        self._changes += 1

    def construct(self, name: str, parent: str | None) -> None:
        """Note in which Cell entry an entry happened."""
        self._construct[name] = parent
        self._changes += 1

    def has_construct(self, name: str) -> bool:
        """Return whether construct.json will have this name as a key."""
        return name in self._construct

    def write(self, stack_texts: Sequence[Sequence[str]], extra: bool) -> bool:
        """Write the documents if anything came since they were last written; return whether they were.

        Args:
            stack_texts: the formatted stacks, by number.
            extra: whether stack.json and construct.json are wanted.

        Raises:
            OSError: when one cannot be written; the one that stood there before is untouched.
        """
        changes = self._changes
        if changes == self._written:
            return False
        folders.make(self.folder)
        with folders.in_place(os.path.join(self.folder, folders.DUMP)) as file:
            head = "".join(f" {_quote(key)}: {encode(value, ' ')},\n" for key, value in self._header.items())
            file.write("{\n" + head + ' "data": ')
            entries = [
                f"  {_quote(name)}: {{\n" + ",\n".join(parts.values()) + "\n  }" if parts else f"  {_quote(name)}: {{}}"
                for name, parts in list(self._entries.items())
            ]
            file.write("{\n" + ",\n".join(entries) + "\n }" if entries else "{}")
            file.write("\n}")
        if extra:
            items = {
                str(place): [names, list(stack_texts[number])]
                for place, (number, names) in enumerate(list(self._stacks.items()))
            }
            for name, content in ((folders.STACK, items), (folders.CONSTRUCT, dict(self._construct))):
                with folders.in_place(os.path.join(self.folder, name)) as file:
                    file.write(encode(content, ""))
        self._written = changes
        return True


def _values(value: Any) -> str:
    """Return the text of what stands under a key of an entry, mostly a list of records that have theirs."""
    if type(value) is not list or not value:
        return encode(value, _INNER)
    texts = [item.text(_ITEM) if hasattr(item, "text") else encode(item, _ITEM) for item in value]
    return f"[\n{_ITEM}" + f",\n{_ITEM}".join(texts) + f"\n{_INNER}]"


def encode(value: Any, pad: str) -> str:
    """Return the text that ``json.dumps(value, indent=1)`` gives at a place indented by ``pad``, several times faster.

    >>> print(encode({"a": [1.5, None]}, ""))
    {
     "a": [
      1.5,
      null
     ]
    }
    """
    kind = type(value)
    if kind is list or kind is tuple:
        inner = pad + " "
        return (
            f"[\n{inner}" + f",\n{inner}".join([encode(item, inner) for item in value]) + f"\n{pad}]" if value else "[]"
        )
    if kind is dict:
        inner = pad + " "
        items = [f"{_quote(str(key))}: {encode(item, inner)}" for key, item in value.items()]
        return f"{{\n{inner}" + f",\n{inner}".join(items) + f"\n{pad}}}" if items else "{}"
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar(value)
    if hasattr(value, "text"):  # a tensor's record makes its own
        return str(value.text(pad))
    raise TypeError(f"{kind.__name__} is no JSON value")


def _float(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_SCALARS: dict[type, Callable[[Any], str]] = {
    float: _float,
    str: _quote,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
}
