# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Shells: tensors of a distributed class, such as DTensor. A shell holds the part of this rank as a local tensor.

An operation of a shell may be refused, or communicate. So only its local tensor is read, and attributes of its layout.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

#: classes of these packages hold their own values, unless they have one of the names below; Parameter is of "abc"
_OWN_VALUES = frozenset(("mindspore", "builtins", "abc"))
_OF_SHELLS = ("_local_tensor", "__fallback__")


def _may_be_shell(kind: type) -> bool:
    packages = {base.__module__.partition(".")[0] for base in kind.__mro__}
    return not packages <= _OWN_VALUES or any(hasattr(kind, name) for name in _OF_SHELLS)


#: returns whether tensors of a class may be shells; others need no further look
may_be_shell: Callable[[type], bool] = functools.lru_cache(256)(_may_be_shell)


def local_tensor(tensor: Any) -> Any:
    """Return the tensor with the values of this rank: of a shell its local one, or a plain view; else the given one."""
    if not may_be_shell(type(tensor)):
        return tensor
    inner = getattr(tensor, "_local_tensor", None)
    if inner is None and hasattr(tensor, "__fallback__"):
        from mindspore import Tensor

        return Tensor._make_subclass(Tensor, tensor)
    return tensor if inner is None else inner


def layout_of(shell: Any) -> dict[str, Any]:
    """Return how a shell is laid out over the ranks, as far as its attributes tell.

    Returns:
        ``{"mesh": {"dp": 2, "tp": 4}, "coordinate": [0, 3], "placements": ["Shard(0)", "Replicate"],
        "shape": [16, 8]}``; the shape is that of the whole.
    """
    mesh, found = getattr(shell, "_device_mesh", None), dict[str, Any]()
    sizes = getattr(mesh, "mesh_shape", None)
    if mesh is not None and sizes is not None:
        names = getattr(mesh, "mesh_dim_names", None) or range(len(sizes))
        found["mesh"] = {str(name): int(size) for name, size in zip(names, sizes)}
        found["coordinate"] = [int(index) for index in mesh.get_coordinate() or ()]
    found["placements"] = [_text(placement) for placement in getattr(shell, "_placements", None) or ()]
    return {**found, "shape": [int(size) for size in shell.shape]}


def layout_text(shell: Any) -> str:
    """Return the same as the key of a record, in JSON."""
    return f'"layout": {json.dumps(layout_of(shell))}'


def _text(placement: Any) -> str:
    if placement.is_shard():
        return f"Shard({placement.dim})"
    if placement.is_partial():
        return f"Partial({placement.reduce_op})"
    return "Replicate" if placement.is_replicate() else str(placement)
