# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A dump as it was read, and the reader of JSON documents; one that is cut or wrong is one clear error."""

from __future__ import annotations

import contextlib
import gc
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from probe.errors import UsageError


class Document(NamedTuple):
    """One step of one rank: the header, the entries, and how the other documents are read.

    Attributes:
        header: task, level, framework and the other keys that stand beside "data".
        data: entry name -> entry, in the order of the file.
        stacks: reads the stacks: forward entry name -> frames.
        construct: reads which Cell entry an entry happened in.
        notes: remarks for the user, such as a journal that was not recovered.
        array_path: file name of an array -> its path; None where arrays are in ``dump_tensor_data``.
    """

    header: dict[str, Any]
    data: dict[str, Any]
    stacks: Callable[[], dict[str, list[str]]]
    construct: Callable[[], dict[str, str | None]]
    notes: list[str]
    array_path: Callable[[str], str | None] | None = None


@contextlib.contextmanager
def paused_gc() -> Iterator[None]:
    """Switch the garbage collector off while many objects are made. None is garbage, and a collection visits all."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_document(path: str) -> dict[str, Any]:
    """Return the object that a JSON file holds.

    Raises:
        UsageError: when the file cannot be read, is cut, is nested too deeply, or holds no object.
    """
    try:
        with open(path, encoding="utf-8-sig") as file, paused_gc():
            document = json.load(file)
    except RecursionError:
        raise UsageError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {_reason(error)}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path} is no document of a dump: it holds {type(document).__name__}, not an object")
    return document


def read_optional(folder: str, name: str) -> dict[str, Any]:
    """Return the object of a document that may be absent, else {}.

    Raises:
        UsageError: when it is there and cannot be read.
    """
    path = os.path.join(folder, name)
    return read_document(path) if os.path.lexists(path) else {}


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return str(error)
