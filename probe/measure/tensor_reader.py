# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tensors as numpy arrays that lose nothing, also for dtypes that numpy has no name for; and shells.

A shell is a tensor of a distributed class, such as DTensor. It holds the part of this rank as a local tensor. An
operation of a shell may be refused, or communicate. So only its local tensor is read, and attributes of its layout.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from probe.measure.dtype_name import dtype_name
from probe.measure.one_byte import NARROW, ONE_BYTE, numpy_dtype, single
from probe.private_names import installed_parts

#: classes of these packages hold their own values, unless they have one of the names below; Parameter is of "abc"
_OWN_VALUES = frozenset(("mindspore", "builtins", "abc"))
_OF_SHELLS = ("_local_tensor", "__fallback__")
Array = np.ndarray[Any, Any]
#: MindSpore hands bfloat16, and floats of one byte, to numpy as dtypes of its own, of this kind
_FOREIGN_KIND = "V"
_READ_ONLY = 0x100  # PyBUF_READ
SINGLE = np.dtype(np.float32)  # numpy's name for float32; such tensors are read fastest


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
    """Return how a shell is laid out over the ranks, as far as its attributes tell; the shape is that of the whole.

    ``{"mesh": {"dp": 2, "tp": 4}, "coordinate": [0, 3], "placements": ["Shard(0)", "Replicate"], "shape": [16, 8]}``
    """
    mesh = getattr(shell, "_device_mesh", None)
    found = dict[str, Any]()
    sizes = getattr(mesh, "mesh_shape", None)
    if mesh is not None and sizes is not None:
        names = getattr(mesh, "mesh_dim_names", None) or range(len(sizes))
        found["mesh"] = {str(name): int(size) for name, size in zip(names, sizes)}
        found["coordinate"] = [int(index) for index in mesh.get_coordinate() or ()]
    found["placements"] = [
        _text(placement) for placement in getattr(shell, "_placements", None) or ()
    ]
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


class MeasureError(Exception):
    """An operation of the tool failed, and no pending error of the training was the cause."""


def to_numpy(tensor: Any) -> Array:
    """Return the values of a tensor by MindSpore's own way, bfloat16 as ``ml_dtypes.bfloat16``.

    The array shares the tensor's memory if possible: never write into it, and copy it to keep it after the call. Raise
    MeasureError where MindSpore has no way, as for some tensors of one byte an element.
    """
    try:
        array: Array = tensor.asnumpy()
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        if dtype_name(tensor.dtype) not in ONE_BYTE:
            raise
        raise MeasureError(str(error).strip().partition("\n")[0]) from error
    return (
        array.view(numpy_dtype(dtype_name(tensor.dtype)))
        if array.dtype.kind == _FOREIGN_KIND
        else array
    )


class TensorReader:
    """Reads tensors, on CPU straight from their memory: the first ``asnumpy`` of a fresh tensor costs far more.

    The arrays own nothing: use them at once, while holding the tensor. If the pointers of this MindSpore do not show
    the values of ``asnumpy``, ``asnumpy`` is used.
    """

    def __init__(self) -> None:
        import mindspore
        from mindspore._c_expression import TensorPy
        from mindspore.common.dtype import number_type

        self._dtypes = {
            dtype: numpy_dtype(dtype_name(dtype)) for dtype in (mindspore.bool_, *number_type)
        }
        self._view = ctypes.PYFUNCTYPE(
            ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
        )(("PyMemoryView_FromMemory", ctypes.pythonapi))
        self._bytes = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
            ("PyBytes_FromStringAndSize", ctypes.pythonapi)
        )
        # all memory as one array: a slice of it costs a third of a view. Only a tensor's own part is ever touched
        self._memory = np.frombuffer(self._view(SINGLE.itemsize, 1 << 62, _READ_ONLY), SINGLE)
        # the functions below Tensor's methods: no Python frame, and nothing that could be patched
        functions: list[Any] = [
            getattr(TensorPy, name, None) for name in ("is_contiguous", "_data_ptr", "stride")
        ]
        self._contiguous, self._address, self._stride = functions
        self.is_direct = None not in functions and mindspore.get_context("device_target") == "CPU"
        self.is_direct = self.is_direct and self._agrees(mindspore)
        #: the dtypes of tensors that are read straight from their memory
        self.direct_dtypes = frozenset(self._dtypes if self.is_direct else ())

    def numpy_dtype(self, dtype: Any) -> np.dtype[Any]:
        """Return the dtype of the values of a tensor, by that of the tensor."""
        return self._dtypes[dtype]

    def __call__(self, tensor: Any) -> Array:
        """Return the values of a tensor, read-only where they are its own memory."""
        flat = self.flat(tensor)
        if flat is not None:
            return flat.reshape(tensor._shape)
        if self.is_direct and tensor._nbytes and tensor._dtype in self._dtypes:
            return self._strided(tensor)
        return to_numpy(tensor)

    def _strided(self, tensor: Any) -> Array:
        dtype = self._dtypes[tensor._dtype]
        shape = tensor._shape
        address = self._address(tensor)
        strides = tuple([stride * dtype.itemsize for stride in self._stride(tensor)])
        if not address or len(strides) != len(shape) or min(strides, default=0) < 0:
            return to_numpy(tensor)
        size = sum((length - 1) * stride for length, stride in zip(shape, strides)) + dtype.itemsize
        return np.ndarray(shape, dtype, self._view(address, size, _READ_ONLY), 0, strides)

    def content(self, tensor: Any, size: int) -> bytes | None:
        """Return a copy of the bytes of a tensor, so many, in C order; None where they are not at hand."""
        if not self._contiguous(tensor):
            return None
        address = self._address(tensor)
        return self._bytes(address, size) if address and size else None

    def single(self, tensor: Any, size: int) -> Array | None:
        """Return the values of a tensor of float32, of so many bytes, faster than ``flat``; only if ``is_direct``."""
        address = self._address(tensor) if self._contiguous(tensor) else 0
        if not address or address & 3:
            return None
        return self._memory[(address >> 2) - 1 : ((address + size) >> 2) - 1]

    def flat(self, tensor: Any) -> Array | None:
        """Return the values of a tensor in C order as a flat view, or None where that cannot be had without a copy."""
        if not self.is_direct or not self._contiguous(tensor):
            return None
        dtype = self._dtypes.get(tensor._dtype)
        size = tensor._nbytes
        address = self._address(tensor)
        if dtype is None or not (size and address):
            return None
        return np.frombuffer(self._view(address, size, _READ_ONLY), dtype)

    def _agrees(self, mindspore: ModuleType) -> bool:
        """Return whether pointers show the values of ``asnumpy``: of fresh results, views and values from the host."""
        mint = mindspore.mint  # torch on MindSpore puts other methods into the place of a tensor's
        host = mindspore.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
        fresh = mindspore.ops.mul(host, host)
        views = [
            mint.narrow(fresh, 0, 1, 1),
            mint.narrow(fresh, 1, 1, 2),
            mint.transpose(fresh, 0, 1),
            mint.broadcast_to(mint.unsqueeze(fresh, 0), (2, 2, 3)),
        ]
        half = mindspore.ops.cast(host, mindspore.bfloat16)
        tensors = [host, fresh, *views, mindspore.Parameter(fresh), half]
        return installed_parts().make(  # MindSpore's own way always works
            "memory",
            lambda: all(np.array_equal(self(tensor), to_numpy(tensor)) for tensor in tensors),
            False,
        )


def element_count(tensor: Any) -> int:
    """Return the number of elements of a tensor; torch on MindSpore has a method in the place of ``size``."""
    return math.prod(tensor.shape)


def to_number(tensor: Any) -> float | int | bool:
    """Return the value of a tensor of one element. A float32 0.001 becomes 0.001, as its user wrote it."""
    value = to_numpy(local_tensor(tensor)).reshape(-1)[0]
    return float(str(value)) if value.dtype.kind in "fV" else value.item()


def to_storable(array: Array, exact: bool = False) -> Array:
    """Return an array that numpy.save can write: float8, and bfloat16 unless ``exact``, as equal numbers of float32."""
    return single(array) if array.dtype in NARROW[exact:] else array
