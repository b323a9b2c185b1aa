# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One array of a dump, in the dtype that its tensor had."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from probe.errors import UsageError
from probe.store import layout


def load(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return an array of a dump in the dtype that its tensor had: bfloat16 as ``ml_dtypes.bfloat16``.

    Args:
        path: a .npy file in a ``dump_tensor_data`` folder. Whether one of float32 was bfloat16 is looked up in the
            dump.json beside that folder, where there is one.

    Raises:
        UsageError: when it is no array, or cannot be read.

    Example::

        array = probe.load("dump/step0/rank/dump_tensor_data/Functional.relu.0.forward.output.0.npy")
    """
    path = os.fspath(path)
    try:
        array: np.ndarray[Any, Any] = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise UsageError(f"{path} is no array of a dump")
        as_it_is = array.dtype.kind == "V" and array.dtype.itemsize == 2
        if as_it_is or (array.dtype == np.float32 and _was_bfloat16(path)):
            import ml_dtypes

            kind = np.dtype(ml_dtypes.bfloat16)
            return array.view(kind) if as_it_is else array.astype(kind)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    return array


def _was_bfloat16(path: str) -> bool:
    """Return what the record says that names this file; the document is searched, as parsing it takes far longer."""
    above = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    for name in (layout.DUMP, layout.DEBUG):
        try:
            with open(os.path.join(above, name), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            continue
        place = text.find(f'"data_name": "{os.path.basename(path)}"')
        if place >= 0:
            start = text.rfind('"dtype": "', 0, place)
            return text.startswith('"dtype": "BFloat16"', start)
    return False
