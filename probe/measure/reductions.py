# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The operations that reduce a tensor on the device. None waits: MindSpore runs all of them in its pipeline."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from probe.measure.one_byte import ByteViews
from probe.measure.tensor_reader import Array

_SCALES = (
    1e-37,
    3.4e38,
)  # the divisors of a tensor of zeros, and of one with Inf, in place of the largest magnitude
#: instances of our own, as the listed functions may be patched; older Primitives wait for pending operations
_NEW = (
    "Max Min MeanExt SumExt LinalgVectorNorm Square Abs Maximum ClampScalar Div NotEqual Equal Less Greater Reshape "
    "Add Sub Mul LessEqual GreaterEqual LogicalNot MaskedFill Select"
)

Scalars = list[Any]


class Reductions:
    """Reduces tensors to scalars.

    CPU has no kernel for the norm of a vector, and none for the extrema of bfloat16. Fetching costs nothing there; on a
    device small tensors are joined first, so that few fetches suffice. If ``scaled``, values are divided by the largest
    before they are added: finite data then never overflow. If ``norm_is_square``, the last but one number of ``four``
    is the square of the norm.
    """

    def __init__(self, on_cpu: bool, scaled: bool) -> None:
        import mindspore
        from mindspore.ops import operations
        from mindspore.ops.auto_generate import gen_ops_prim

        self._ms = mindspore
        self._on_cpu = on_cpu
        self.scaled = scaled
        self.norm_is_square = on_cpu
        self._ops = SimpleNamespace(
            **{name: getattr(gen_ops_prim, name)() for name in _NEW.split()}
        )
        self._ops.Cast = operations.Cast()
        self._ops.Concat = gen_ops_prim.Concat(0)
        self.views = ByteViews()

    def plain(self, tensor: Any) -> Any:
        """Return a tensor that kernels reduce: floats of one byte by a table, Int4 as bytes, |x| of complex numbers."""
        dtype = tensor._dtype
        if dtype in self.views.dtypes:
            return self.views.values(tensor)
        if dtype is self._ms.complex64 or dtype is self._ms.complex128:
            return self._ops.Cast(self._ops.Abs(tensor), self._ms.float32)
        return tensor

    def values(self, tensor: Any, kind: str) -> Any:
        """Return the tensor in a dtype whose kernels reduce it to float32 numbers."""
        tensor = self.plain(tensor)
        # the division by a scale would be rounded to a half float
        is_ready = tensor._dtype is self._ms.float32 or (
            kind == "float" and not (self._on_cpu or self.scaled)
        )
        return tensor if is_ready else self._ops.Cast(tensor, self._ms.float32)

    def four(self, tensor: Any, values: Any, kind: str) -> tuple[Scalars, Scalars]:
        """Return the floats and the integers from which the four numbers follow, all still on the device.

        These are ([max, min,] mean, norm or its square, [scale]) of kind "float", and [max, min] of "int".
        """
        ops = self._ops
        source = values if kind == "float" else tensor
        floats: Scalars = [ops.Max(source), ops.Min(source)]
        ends = list(floats)
        scale = []
        if self.scaled:
            largest, smallest = (ops.Abs(self.values(end, kind)) for end in ends)
            scale = [ops.ClampScalar(ops.Maximum(largest, smallest), *_SCALES)]
            values = ops.Div(values, scale[0])
        norm = self.norm(values)
        sums = [ops.MeanExt(values, None, False, self._ms.float32), norm, *scale]
        return ([*ends, *sums], []) if kind == "float" else (sums, ends)

    def count(self, values: Any, comparison: str = "", *operand: float) -> Any:
        """Return how many elements a comparison finds: with the operand, or with themselves. No name: true elements."""
        if comparison:
            values = getattr(self._ops, comparison)(
                values, *(map(float, operand) if operand else (values,))
            )
        return self._ops.SumExt(values, None, False, self._ms.int64)

    def total(self, values: Any) -> Any:
        """Return the sum of the elements in float32."""
        return self._ops.SumExt(values, None, False, self._ms.float32)

    def rounded(self, values: Any, kind: Any) -> Any:
        """Return magnitudes in a dtype of ``FORMATS``. No kernel casts to float8: sums in float32 round to it."""
        ops = self._ops
        if kind.dtype.itemsize == 2:
            return ops.Cast(ops.Cast(values, getattr(self._ms, kind.dtype.name)), self._ms.float32)
        split = ops.Mul(values, 2.0 ** (23 - kind.nmant) + 1)
        shift = 1.5 * 2.0 ** (23 + int(kind.minexp) - kind.nmant)
        small = ops.Sub(ops.Add(values, shift), shift)
        return ops.Select(
            ops.Less(values, float(kind.smallest_normal)),
            small,
            ops.Sub(split, ops.Sub(split, values)),
        )

    def norm(self, tensor: Any) -> Any:
        """Return the norm of a tensor of floats, or its square, as ``norm_is_square`` says; it is on the device."""
        values = self.values(tensor, "float")
        if self.norm_is_square:
            return self.total(self._ops.Square(values))
        return self._ops.LinalgVectorNorm(values, 2.0, None, False, self._ms.float32)

    def run(self, name: str, *operands: Any) -> Any:
        """Return the result of one of the operations, such as "Sub"; ``Add`` of a tensor and 0 copies it."""
        if operands[0]._dtype in self.views.dtypes:
            operands = self.views.values(operands[0]), *operands[1:]
        return getattr(self._ops, name)(*operands)

    def fetch(self, tensors: list[Any], kind: str) -> list[Array]:
        """Return the values of small tensors, all of "float", "int" or "bool", with one fetch."""
        if self._on_cpu or not tensors:
            return [tensor.asnumpy() for tensor in tensors]
        ops = self._ops
        wide = {"float": self._ms.float32, "int": self._ms.int64, "bool": self._ms.bool_}[kind]
        places: dict[Any, list[int]] = {}
        for place, tensor in enumerate(tensors):
            places.setdefault(tensor._dtype, []).append(place)
        groups = [
            tuple(ops.Reshape(tensors[place], (-1,)) for place in group)
            for group in places.values()
        ]
        flat = ops.Concat(tuple(ops.Cast(ops.Concat(group), wide) for group in groups)).asnumpy()
        found: dict[int, Array] = {}
        for place in (place for group in places.values() for place in group):
            tensor = tensors[place]
            found[place] = flat[: tensor._size].reshape(tensor._shape)
            flat = flat[tensor._size :]
        return [found[place] for place in range(len(tensors))]
