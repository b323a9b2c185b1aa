# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""What the listed APIs are called with: data only."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import ops


class A:
    """The arguments of a call; every T among them, also in lists, becomes a tensor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __repr__(self) -> str:
        return f"A({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


class T:
    """A tensor to be: uniform values between two bounds, or given ones."""

    def __init__(
        self,
        *shape: int,
        dtype: Any = np.float32,
        low: float = 0.1,
        high: float = 0.9,
        values: Any = None,
        square: str = "",
        form: str = "tensor",
    ) -> None:
        self.shape, self.dtype, self.low, self.high = shape, dtype, low, high
        self.values, self.square, self.form = values, square, form

    def in_half(self) -> T:
        """Return the same in half precision, if it is in single precision."""
        if self.dtype is not np.float32 or self.form != "tensor":
            return self
        return T(
            *self.shape,
            dtype=np.float16,
            low=self.low,
            high=self.high,
            values=self.values,
            square=self.square,
        )

    def __repr__(self) -> str:
        return (
            f"{np.dtype(self.dtype).name}{list(self.shape) if self.values is None else self.values}"
        )


def I(*shape: int, low: int = 0, high: int = 3, dtype: Any = np.int32) -> T:  # noqa: E743
    return T(*shape, low=low, high=high, dtype=dtype)


def B(*shape: int) -> T:
    return T(*shape, dtype=np.bool_)


def C(*shape: int) -> T:
    return T(*shape, dtype=np.complex64)


def V(values: Any, dtype: Any = np.float32) -> T:
    return T(values=values, dtype=dtype)


def K(values: Any, dtype: Any = np.int32) -> T:
    return T(values=values, dtype=dtype)


def S(*shape: int, square: str = "spd") -> T:
    return T(*shape, square=square)


def P(*shape: int) -> T:
    return T(*shape, form="parameter")


X, Y, Z = T(2, 3), T(2, 3), T(2, 3)
SIGNED = T(2, 3, low=-2, high=2)
ABOVE = T(2, 3, low=1.1, high=3)
N3, N4, N5 = T(2, 4, 8), T(2, 4, 8, 8), T(2, 4, 6, 6, 6)
M = T(3, 3)
IMAGE = T(1, 2, 5, 5)
HALF = T(2, 3, dtype=np.float16)
LABELS = K([2, 0])
SIGNS = V([1.0, -1.0])
LONG = np.int64

#: for an API without a recipe: what its required parameters are called -> what they get
BY_PARAMETER: dict[str, Any] = {
    **dict.fromkeys(
        [
            "input",
            "x",
            "self",
            "input_x",
            "logits",
            "inputs",
            "tensor",
            "value",
            "A",
            "input1",
            "x1",
        ],
        X,
    ),
    **dict.fromkeys(
        ["other", "y", "end", "values", "target", "labels", "x2", "input2", "tensor1", "tensor2"], Y
    ),
    **dict.fromkeys(["axis", "dim"], 0),
    **dict.fromkeys(["axis0", "dim0", "source"], 0),
    **dict.fromkeys(["axis1", "dim1", "destination"], 1),
    **dict.fromkeys(["shape", "size"], (2, 3)),
    "tensors": [X, Y],
    "dtype": ms.float32,
}

#: for an API without a recipe, one after the other until one works
GENERIC = (
    A(X),
    A(X, Y),
    A(X, Y, Z),
    A(X, 0),
    A(M),
    A(I(2, 3)),
    A(B(2, 3)),
    A(N4),
    A([X, Y]),
    A((2, 3)),
    A(C(2, 3)),
)


def _both(names: str, *calls: A) -> dict[str, tuple[A, ...]]:
    return dict.fromkeys(names.split(), calls)


_ELEMENTWISE = {
    **_both(
        "abs absolute neg negative sign sgn relu relu6 elu celu selu gelu silu mish softsign tanhshrink hardswish "
        "hardsigmoid hardshrink softshrink hardtanh leaky_relu logsigmoid fast_gelu sigmoid tanh sin cos sinh cosh "
        "erf erfc square floor ceil trunc frac atan asinh arctan arcsinh exp exp2 expm1 softplus rrelu elu_ext "
        "hardtanh_op soft_shrink __abs__ __neg__ __pos__ positive deg2rad rad2deg isneginf isposinf isnan isinf "
        "isfinite isreal signbit __round__ round fix npu_gelu silu_func",
        A(SIGNED),
    ),
    **_both(
        "tanh_ exp_ sigmoid_ floor_ sign_ relu_ elu_ inplace_elu inplace_silu inplace_sigmoid hardtanh_ zero_",
        A(SIGNED),
    ),
    **_both("acosh arccosh", A(ABOVE)),
    **_both("threshold threshold_ threshold_op", A(SIGNED, 0.2, 5.0)),
    **_both("nan_to_num", A(V([1.0, float("nan"), float("inf")]))),
    **_both(
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift gcd lcm",
        A(I(2, 3, low=1), I(2, 3, low=1)),
    ),
    **_both("__and__ __or__ __xor__", A(I(2, 3), I(2, 3)), A(B(2, 3), B(2, 3))),
    **_both("invert __invert__ bitwise_not", A(I(2, 3)), A(B(2, 3))),
    **_both("logical_and logical_or logical_xor", A(B(2, 3), B(2, 3))),
    **_both("logical_not", A(B(2, 3))),
    **_both("all any", A(B(2, 3))),
    **_both("lerp", A(X, Y, 0.3), A(X, Y, Z)),
    **_both("clamp clip", A(SIGNED, min=V(0.5), max=V(1.0)), A(SIGNED, -0.5, 1.0)),
    **_both("clamp_", A(SIGNED, -0.5, 1.0)),
    **_both("clip_by_value", A(SIGNED, V(-0.5), V(1.0))),
    **_both("clip_by_norm", A([SIGNED, Y], 1.0)),
    **_both("clip_by_global_norm", A((SIGNED, Y), 1.0)),
    **_both("addcdiv addcmul", A(X, Y, Z, value=0.5), A(X, Y, Z)),
    "Functional.addcdiv": (A(X, Y, Z, V(0.5)),),
    "Functional.addcmul": (A(X, Y, Z, V(0.5)),),
    "Tensor.addcmul": (A(X, Y, Z, V(0.5)),),
    **_both("add_ mul_ sub_ div_ remainder_ floor_divide_", A(ABOVE, Y)),
    **_both("__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__", A(ABOVE, Y)),
    **_both(
        "__radd__ __rsub__ __rmul__ __rtruediv__ __rfloordiv__ __rmod__ __rpow__", A(ABOVE, 3.5)
    ),
    **_both("__matmul__ __rmatmul__", A(M, T(3, 3))),
    **_both("float_power __pow__ pow", A(X, 2.0), A(X, Y)),
    **_both(
        "fmod remainder floor_mod mod truncate_mod __mod__ floor_divide floor_div truncate_div __floordiv__",
        A(ABOVE, Y),
    ),
    **_both("polygamma", A(1, ABOVE), A(K(1), ABOVE)),
    **_both("mvlgamma", A(ABOVE, 2)),
    **_both("zeta", A(ABOVE, T(2, 3, low=1.1, high=3))),
    **_both(
        "igamma igammac xdivy xlogy hypot nextafter ldexp copysign heaviside logaddexp logaddexp2 atan2 arctan2",
        A(X, Y),
    ),
    **_both("polar", A(X, Y)),
    **_both("view_as_real", A(C(2, 3))),
    **_both("imag conj", A(C(2, 3)), A(X)),
    **_both("real angle", A(C(2, 3)), A(X)),
    **_both("scalar_cast", A(3, ms.float64)),
    **_both("scalar_to_tensor", A(3.0)),
    **_both("tuple_to_array", A((1, 2, 3))),
    **_both("cast", A(X, ms.float16)),
    **_both("astype", A(X, ms.float16)),
    "Tensor.to": (A(X, ms.float16),),
    "Tensor.to_": (A(X, "CPU"), A(X)),
    **_both("type_as", A(X, T(2, 3, dtype=np.float16))),
    **_both("prelu", A(T(2, 3, 4, low=-2, high=2), V([0.1, 0.2, 0.3]))),
    **_both("glu swiglu", A(T(2, 4))),
    **_both("bias_add", A(X, T(3))),
    **_both("approximate_equal allclose isclose equal", A(X, Y)),
    **_both("population_count", A(I(2, 3, dtype=np.int16))),
    **_both("gumbel_softmax", A(X)),
    **_both("logit", A(X, 1e-3), A(X)),
    **_both("accumulate_n addn", A([X, Y, Z])),
    **_both("assign assign_add assign_sub", A(X, Y), A(P(2, 3), Y)),
    "Tensor.assign_value": (A(X, Y),),
    **_both("copy_", A(X, Y)),
    **_both("fill_", A(X, 2.0)),
    **_both("fills fill", A(X, 2.0)),
    "Functional.fill": (A(ms.float32, (2, 3), 2.0),),
    **_both("erfinv_ log_", A(X)),
    **_both("tensor_muls", A(X, 2.0)),
    **_both("multiply", A(X, Y)),
    **_both("where", A(B(2, 3), X, Y)),
    "Tensor.where": (A(X, B(2, 3), Y),),
    **_both("select", A(B(2, 3), X, Y)),
    "Tensor.select": (A(X, B(2, 3), Y), A(X, 0, 1)),
    "Mint.select": (A(X, 0, 1),),
    **_both("masked_fill masked_fill_", A(X, B(2, 3), 0.5)),
    **_both("masked_select", A(X, B(2, 3))),
    **_both("masked_scatter masked_scatter_", A(X, B(2, 3), Y)),
    **_both("bincount", A(K([1, 2, 2, 4]))),
    **_both("histc", A(X, 4, 0.0, 1.0), A(X, bins=4, min=0, max=1)),
    **_both("bucketize", A(X, [0.2, 0.5, 0.7])),
    **_both("searchsorted", A(V([0.1, 0.4, 0.7]), X)),
    **_both("is_nonzero __bool__ item", A(V([2.0])), A(V(2.0))),
    **_both("int float half double long short byte bfloat16 bool", A(ABOVE)),
    "Tensor.from_numpy": (A(T(2, 3, form="array")),),
    **_both("is_tensor", A(X)),
    "Functional.derivative": (A(ops.exp, X, 2), A(ops.sin, X, 2)),
    "Functional.jet": (A(ops.exp, X, T(2, 2, 3)), A(ops.sin, X, T(2, 2, 3))),
    **_both("eps", A(X)),
    **_both("choose", A(K([0, 1, 0]), [V([1.0, 2.0, 3.0]), V([4.0, 5.0, 6.0])])),
    **_both("quantile nanquantile", A(T(2, 3, dtype=np.float64), 0.5), A(X, 0.5)),
    **_both("kthvalue", A(X, 2)),
}

_SHAPES = {
    **_both("concat cat hstack vstack dstack column_stack row_stack", A([X, Y])),
    **_both("stack", A([X, Y])),
    **_both("block_diag cartesian_prod meshgrid", A(T(3), T(2)), A([T(3), T(2)])),
    "Functional.block_diag": (A(X, T(2, 2)),),
    **_both("combinations", A(T(4))),
    **_both("atleast_1d atleast_2d atleast_3d", A(X)),
    **_both("broadcast_to expand", A(T(1, 3), (2, 3))),
    "Functional.expand": (A(T(1, 3), K([2, 3], LONG)),),
    "Tensor.expand": (A(T(1, 3), 2, 3),),
    **_both("broadcast_tensors", A(X, T(3))),
    **_both("expand_as view_as reshape_as", A(T(1, 3), X)),
    "Functional.view_as": (A(X, T(3, 2)),),
    "Tensor.view_as": (A(X, T(3, 2)),),
    "Tensor.reshape_as": (A(X, T(3, 2)),),
    **_both("expand_dims unsqueeze", A(X, 1)),
    **_both("reshape view", A(X, (3, 2))),
    **_both("resize", A(X, 3, 2)),
    **_both("transpose permute", A(X, (1, 0))),
    "Mint.transpose": (A(X, 0, 1),),
    **_both("swapaxes swapdims moveaxis movedim", A(X, 0, 1)),
    **_both("squeeze", A(T(2, 1, 3), 1)),
    **_both("flatten ravel contiguous clone copy deepcopy", A(X)),
    **_both("flip", A(X, (0,))),
    **_both("reverse", A(X, [0])),
    **_both(
        "reverse_sequence", A(T(3, 4), K([1, 2, 3], LONG), 1), A(T(3, 4), K([1, 2, 3, 1], LONG))
    ),
    **_both("roll", A(X, 1, 0), A(X, (1,), (0,))),
    **_both("rot90", A(X, 1, (0, 1)), A(X, 1, [0, 1])),
    **_both("tile", A(X, (2, 1))),
    **_both("repeat", A(X, 2), A(X, (2, 1))),
    **_both("repeat_interleave", A(X, 2, 0), A(X, 2)),
    **_both("repeat_elements", A(X, 2)),
    **_both("split", A(T(4, 3), 2)),
    **_both("tensor_split", A(T(4, 3), 2)),
    **_both("chunk", A(T(4, 3), 2)),
    **_both("hsplit", A(T(3, 4), 2)),
    **_both("vsplit", A(T(4, 3), 2)),
    **_both("dsplit", A(T(3, 2, 4), 2)),
    **_both("unbind unstack", A(X)),
    **_both("narrow", A(T(4, 3), 0, 1, 2)),
    **_both("slice", A(T(4, 3), (1, 0), (2, 3))),
    **_both("strided_slice", A(T(4, 3), (1, 0), (3, 3), (1, 1))),
    **_both("select_scatter", A(X, T(3), 0, 1)),
    **_both("slice_scatter", A(T(4, 3), T(2, 3), 0, 1, 3)),
    **_both("diagonal_scatter", A(M, T(3))),
    **_both("diag", A(T(3))),
    **_both("diagonal trace", A(M)),
    **_both("diag_embed diagflat matrix_diag", A(T(3))),
    **_both("tril triu", A(M)),
    **_both("fill_diagonal fill_diagonal_", A(M, 2.0)),
    **_both("sum_to_size", A(X, (1, 3))),
    **_both("pad", A(X, (1, 2))),
    **_both("mirror_pad", A(X, K([[0, 0], [1, 1]]), "REFLECT")),
    **_both("padding", A(T(2, 1), 4)),
    **_both("sequence_mask", A(K([1, 3, 2]), 4)),
    **_both("unfold", A(T(1, 2, 4, 4), 2)),
    "Tensor.unfold": (A(T(1, 2, 4, 4), 2), A(T(5), 0, 2, 1)),
    **_both("fold", A(T(1, 8, 9), (4, 4), (2, 2)), A(T(1, 8, 9), K([4, 4]), 2)),
    **_both("col2im", A(T(16, 16, 4, 25), K([8, 8]), [2, 2], [2, 2], [2, 2], [2, 2])),
    **_both("space_to_batch_nd", A(T(1, 1, 2, 2), [2, 2], [[0, 0], [0, 0]])),
    **_both("batch_to_space_nd", A(T(4, 1, 1, 1), [2, 2], [[0, 0], [0, 0]])),
    **_both("pixel_shuffle", A(T(1, 4, 2, 2), 2)),
    **_both("pixel_unshuffle", A(T(1, 1, 4, 4), 2)),
    **_both("channel_shuffle", A(T(1, 4, 2, 2), 2)),
    **_both("vander", A(T(3), 3)),
    **_both("shape rank size numel nelement dyn_shape", A(X)),
    **_both("unique unique_consecutive", A(V([1.0, 2.0, 2.0, 3.0]))),
    **_both("unique_with_pad", A(K([1, 2, 2, 3]), 0)),
    **_both("nonzero argwhere count_nonzero", A(I(2, 3))),
    **_both("sort argsort msort", A(X)),
    **_both("topk top_k", A(X, 2)),
    **_both("cummax cummin cumprod cumsum logcumsumexp logsumexp", A(X, 0)),
    **_both("trapz", A(X)),
    **_both("shuffle", A(X)),
    **_both("renorm", A(X, 2, 0, 1.0), A(X, 1, 0, 1.0)),
    **_both("diff diff_ext", A(X)),
    **_both("cov", A(X)),
}

_INDEXING = {
    "Tensor.__getitem__": (A(T(4, 3), slice(1, 3)), A(X, 1)),
    "Tensor.__setitem__": (A(T(4, 3), slice(1, 3), T(2, 3)), A(X, 1, 2.0)),
    "Functional.gather": (A(X, K([1, 0, 1]), 0),),
    **_both("gather", A(X, 0, K([[1, 0, 1]], LONG)), A(X, K([1, 0, 1]), 0)),
    **_both("gather_d gather_elements", A(X, 0, K([[1, 0, 1]], LONG))),
    **_both("gather_nd", A(X, K([[0, 1], [1, 2]]))),
    **_both("index_select", A(X, 0, K([1, 0, 1]))),
    **_both("index_add", A(X, 0, K([1, 0]), Y), A(X, K([1, 0]), Y, 0), A(P(2, 3), K([1, 0]), Y, 0)),
    "Functional.index_add": (A(P(2, 3), K([1, 0]), Y, 0),),
    **_both("index_add_ index_copy_", A(X, 0, K([1, 0], LONG), Y)),
    **_both("index_fill index_fill_", A(X, 0, K([1]), 2.0), A(X, 0, K([1], LONG), 2.0)),
    **_both(
        "index_put index_put_",
        A(X, [K([1, 0]), K([2, 0])], T(2)),
        A(X, (K([1, 0], LONG), K([2, 0], LONG)), T(2)),
    ),
    "Tensor.index": (A(X, [K([1, 0], LONG)]),),
    **_both("inplace_update inplace_add inplace_sub", A(X, T(1, 3), (1,)), A(X, T(1, 3), 1)),
    **_both("inplace_index_add", A(P(2, 3), K([1, 0]), Y, 0)),
    **_both("take", A(X, K([1, 0], LONG))),
    **_both("put_", A(X, K([1, 0], LONG), T(2))),
    **_both("scatter scatter_", A(X, 0, K([[1, 0, 1]], LONG), T(1, 3))),
    "Mint.scatter": (A(X, 0, K([[1, 0, 1]], LONG), T(1, 3)),),
    **_both("scatter_add scatter_add_", A(X, 0, K([[1, 0, 1]], LONG), T(1, 3))),
    **_both(
        "Functional.scatter_add Functional.scatter_div Functional.scatter_max Functional.scatter_min "
        "Functional.scatter_mul Functional.scatter_update",
        A(P(2, 3), K([1, 0]), T(2, 3)),
    ),
    **_both(
        "scatter_div scatter_max scatter_min scatter_mul scatter_sub",
        A(X, K([[0, 1], [1, 2]]), T(2)),
    ),
    **_both("scatter_nd", A(K([[0], [2]]), T(2, 3), (4, 3))),
    **_both(
        "scatter_nd_add scatter_nd_div scatter_nd_max scatter_nd_min scatter_nd_mul scatter_nd_sub",
        A(P(6), K([[1], [4]]), T(2)),
    ),
    **_both(
        "tensor_scatter_add tensor_scatter_div tensor_scatter_max tensor_scatter_min tensor_scatter_mul "
        "tensor_scatter_sub",
        A(X, K([[0, 1], [1, 2]]), T(2)),
    ),
    **_both("tensor_scatter_elements", A(X, K([[0, 1, 1]]), T(1, 3))),
    **_both(
        "unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum",
        A(X, K([0, 1]), 2),
    ),
    **_both("sparse_segment_mean", A(X, K([0, 1]), K([0, 0]))),
    **_both("one_hot one_hot_ext", A(K([0, 2, 1], LONG), 3), A(K([0, 2, 1]), 3, V(1.0), V(0.0))),
    **_both("embedding", A(K([[0, 2]], LONG), T(4, 3))),
    **_both("intopk", A(X, K([1, 0]), 2)),
    **_both("crop_and_resize", A(T(1, 5, 5, 2), V([[0.1, 0.1, 0.8, 0.8]]), K([0]), (3, 3))),
}

_LINEAR = {
    **_both("matmul mm", A(X, T(3, 4))),
    **_both("mv", A(X, T(3))),
    **_both("inner vdot", A(T(3), T(3))),
    **_both("dot", A(X, T(3, 4))),
    "Mint.dot": (A(T(3), T(3)),),
    **_both("outer ger", A(T(3), T(2))),
    **_both("bmm", A(T(2, 3, 4), T(2, 4, 5))),
    **_both("batch_dot", A(T(2, 3, 4), T(2, 4, 5), 1), A(T(2, 3), T(2, 3))),
    **_both("vecdot", A(X, Y)),
    **_both("addmm addmm_", A(T(2, 4), X, T(3, 4))),
    **_both("addmv", A(T(2), X, T(3))),
    **_both("addr addr_", A(X, T(2), T(3))),
    **_both("addbmm", A(T(3, 5), T(2, 3, 4), T(2, 4, 5))),
    **_both("baddbmm baddbmm_ext", A(T(2, 3, 5), T(2, 3, 4), T(2, 4, 5))),
    **_both("cross", A(X, Y, 1), A(X, Y)),
    **_both("kron", A(X, T(2, 2))),
    **_both("tensor_dot", A(X, T(3, 4), ((1,), (0,)))),
    **_both("einsum einsum_ext", A("ij,jk->ik", X, T(3, 4))),
    **_both("linear dense", A(X, T(4, 3), T(4))),
    **_both("bidense", A(X, T(2, 4), T(5, 3, 4), T(5))),
    **_both("cdist cdist_ dist", A(X, T(4, 3))),
    "Functional.dist": (A(X, Y),),
    **_both("pdist", A(X)),
    **_both("cosine_similarity", A(X, Y)),
    **_both(
        "det matrix_determinant slogdet log_matrix_determinant logdet inverse inv matrix_exp",
        A(S(3, 3)),
    ),
    "Functional.inv": (A(X),),
    "Tensor.inv": (A(X),),
    **_both("cholesky", A(S(3, 3))),
    **_both("cholesky_inverse", A(S(3, 3, square="lower"))),
    **_both("cholesky_solve", A(T(3, 2), S(3, 3, square="lower"))),
    **_both("matrix_power", A(S(3, 3), 2)),
    **_both("matrix_solve", A(S(3, 3), T(3, 2))),
    **_both("triangular_solve", A(T(3, 2), S(3, 3, square="lower"))),
    **_both("lstsq", A(S(3, 3), T(3, 2))),
    **_both("lu_solve", A(T(3, 2), S(3, 3), K([1, 2, 3]))),
    **_both("lu_unpack", A(S(3, 3), K([1, 2, 3]))),
    **_both("qr geqrf svd eig eigvals pinv", A(S(3, 3))),
    **_both("orgqr", A(M, T(3))),
    **_both("ormqr", A(M, T(3), T(3, 3))),
    **_both("cond norm matrix_norm vector_norm norm_ext", A(M)),
    **_both("matrix_band_part", A(M, 1, 1)),
    **_both("matrix_diag_part", A(M, K(0), V(0.0)), A(M, 0, V(0.0))),
    **_both("matrix_set_diag", A(M, T(3))),
    **_both("adjoint t", A(X)),
}

_NETS = {
    **_both("conv1d", A(T(2, 4, 8), T(3, 4, 3), T(3))),
    **_both("conv2d", A(IMAGE, T(3, 2, 3, 3), T(3))),
    **_both(
        "conv3d", A(T(1, 2, 5, 5, 5), T(3, 2, 3, 3, 3), T(3)), A(T(1, 2, 5, 5, 5), T(3, 2, 3, 3, 3))
    ),
    **_both("conv3d_transpose", A(T(1, 2, 5, 5, 5), T(2, 3, 3, 3, 3))),
    **_both("conv_transpose2d", A(IMAGE, T(2, 3, 3, 3), T(3)), A(IMAGE, T(2, 3, 3, 3))),
    **_both("conv_tbc", A(T(5, 2, 3), T(3, 3, 4), T(4))),
    **_both(
        "deformable_conv2d",
        A(T(4, 3, 10, 10), T(5, 3, 5, 5), T(4, 75, 6, 6), (5, 5), (1, 1, 1, 1), (0, 0, 0, 0)),
    ),
    **_both("avg_pool1d", A(N3, 2)),
    **_both("avg_pool2d", A(N4, 2)),
    **_both("avg_pool3d", A(N5, 2)),
    **_both("max_pool2d", A(N4, 2)),
    **_both("max_pool3d", A(N5, 2)),
    **_both("lp_pool1d", A(N3, 2, 2)),
    **_both("lp_pool2d", A(N4, 2, 2)),
    **_both("adaptive_avg_pool1d adaptive_max_pool1d", A(N3, 4)),
    **_both("adaptive_avg_pool2d adaptive_avg_pool2d_ext adaptive_max_pool2d", A(N4, (4, 4))),
    **_both("adaptive_avg_pool3d adaptive_max_pool3d adaptive_avg_pool3d_ext", A(N5, (3, 3, 3))),
    **_both(
        "fractional_max_pool2d",
        A(N4, 2, output_size=(4, 4), _random_samples=T(2, 4, 2)),
        A(N4, 2, output_size=(4, 4)),
    ),
    **_both("fractional_max_pool3d", A(N5, 2, output_size=(3, 3, 3), _random_samples=T(2, 4, 3))),
    **_both("max_unpool1d", A(T(1, 1, 2), K([[[1, 3]]], LONG), 2)),
    **_both("max_unpool2d", A(T(1, 1, 2, 2), K([[[[0, 2], [8, 10]]]], LONG), 2)),
    **_both("max_unpool3d", A(T(1, 1, 1, 1, 2), K([[[[[0, 2]]]]], LONG), 2)),
    **_both("lrn", A(N4)),
    **_both("batch_norm", A(X, T(3), T(3), T(3), T(3), True), A(X, T(3), T(3), T(3), T(3))),
    **_both("batch_norm_stats", A(N4, 1e-5)),
    **_both("batch_norm_elemt", A(N4, T(4), T(4), T(4), T(4))),
    **_both(
        "batch_norm_gather_stats_with_counts",
        A(N4, T(1, 4), T(1, 4), T(4), T(4), counts=V([128.0])),
    ),
    **_both("layer_norm", A(X, (3,), T(3), T(3))),
    **_both("group_norm", A(N4, 2, T(4), T(4))),
    **_both("rms_norm", A(X, T(3))),
    **_both("add_rms_norm", A(X, Y, T(3))),
    **_both("add_layer_norm", A(X, Y, T(3), T(3))),
    **_both("normalize", A(X)),
    **_both("softmax log_softmax softmin softmax_ext", A(X, -1)),
    **_both("dropout dropout1d dropout2d dropout3d", A(X, 0.5)),
    "Functional.dropout1d": (A(N3, 0.5),),
    "Functional.dropout2d": (A(N4, 0.5),),
    "MintFunctional.dropout2d": (A(N4, 0.5),),
    "Functional.dropout3d": (A(N5, 0.5),),
    **_both("interpolate upsample", A(IMAGE, (8, 8), mode="bilinear"), A(IMAGE, (8, 8))),
    **_both(
        "grid_sample",
        A(IMAGE, T(1, 3, 3, 2, low=-1, high=1)),
        A(IMAGE, T(1, 3, 3, 2, low=-1, high=1), align_corners=False),
    ),
    **_both("affine_grid", A(T(1, 2, 3), (1, 2, 4, 4))),
    **_both(
        "flash_attention_score",
        A(
            T(1, 4, 8, dtype=np.float16),
            T(1, 4, 8, dtype=np.float16),
            T(1, 4, 8, dtype=np.float16),
            2,
        ),
    ),
    **_both(
        "prompt_flash_attention fused_infer_attention_score",
        A(T(1, 4, 8, dtype=np.float16), T(1, 4, 8, dtype=np.float16), T(1, 4, 8, dtype=np.float16)),
    ),
    **_both(
        "incre_flash_attention",
        A(
            T(1, 1, 8, dtype=np.float16),
            [T(1, 4, 8, dtype=np.float16)],
            [T(1, 4, 8, dtype=np.float16)],
        ),
    ),
    **_both(
        "speed_fusion_attention",
        A(
            T(1, 4, 8, dtype=np.float16),
            T(1, 4, 8, dtype=np.float16),
            T(1, 4, 8, dtype=np.float16),
            2,
            "BSH",
        ),
    ),
    **_both("rotary_position_embedding", A(T(1, 2, 4, 8), T(1, 1, 4, 8), T(1, 1, 4, 8))),
    **_both("moe_token_permute", A(T(4, 3, dtype=np.float16), K([[0], [1], [1], [0]]))),
    **_both("moe_token_unpermute", A(T(4, 3, dtype=np.float16), K([0, 1, 2, 3]))),
    **_both("moe_init_routing_v2", A(T(4, 3), K([[0], [1], [1], [0]]), 4, 0, 2, 0, 0, False)),
    **_both(
        "moe_distribute_dispatch", A(T(4, 3, dtype=np.float16), K([[0], [1], [1], [0]]), 2, 0, 2)
    ),
    **_both(
        "moe_distribute_combine",
        A(
            T(4, 3, dtype=np.float16),
            K([[0], [1], [1], [0]]),
            K([0, 1, 2, 3]),
            K([2, 2]),
            T(4, 1),
            2,
            0,
            2,
        ),
    ),
    **_both(
        "multi_scale_deformable_attn_function",
        A(T(1, 4, 2, 8), K([[2, 2]]), K([0]), T(1, 3, 2, 1, 4, 2), T(1, 3, 2, 1, 4)),
    ),
    **_both(
        "ring_attention_update",
        A(T(4, 1, 8), T(1, 2, 4, 8), T(1, 2, 4, 8), T(4, 1, 8), T(1, 2, 4, 8), T(1, 2, 4, 8)),
    ),
    **_both(
        "quant_matmul",
        A(T(2, 3, dtype=np.float16), I(3, 4, dtype=np.int8), T(4), pertoken_scale=T(2)),
    ),
    **_both("rotated_iou", A(T(1, 2, 5), T(1, 3, 5))),
    **_both("iou", A(V([[0.0, 0.0, 2.0, 2.0]]), V([[1.0, 1.0, 3.0, 3.0]]))),
    **_both("bounding_box_encode", A(V([[2.0, 2.0, 2.0, 3.0]]), V([[1.0, 2.0, 1.0, 4.0]]))),
    **_both(
        "bounding_box_decode", A(V([[4.0, 1.0, 2.0, 1.0]]), V([[3.0, 1.0, 2.0, 2.0]]), (768, 1280))
    ),
    **_both("check_valid", A(V([[0.0, 0.0, 2.0, 2.0]]), V([5.0, 5.0, 1.0]))),
    **_both(
        "all_gather_matmul matmul_reduce_scatter", A(HALF, T(3, 4, dtype=np.float16), "group", 2)
    ),
    **_both("lightning_indexer", A(HALF, HALF, HALF)),
    **_both("nsa_compress", A(T(4, 2, 3, dtype=np.float16), HALF, 2, 2)),
    **_both("nsa_compress_attention", A(*[T(4, 2, 8, dtype=np.float16)] * 3, 1.0, 2, 2, 2, 2, 2)),
    **_both("nsa_select_attention", A(*[T(4, 2, 8, dtype=np.float16)] * 3, K([[0]]), 1.0, 2, 2, 2)),
    **_both("sparse_flash_attention", A(HALF, HALF, HALF, K([[0]]), 1.0)),
    **_both("stft", A(T(1, 16), 4)),
}

_LOSSES = {
    **_both("cross_entropy nll_loss", A(X, LABELS), A(X, K([2, 0], LONG))),
    **_both("binary_cross_entropy", A(X, Y)),
    **_both("binary_cross_entropy_with_logits bce_with_logits", A(X, Y), A(X, Y, T(2, 3), T(2, 3))),
    **_both("kl_div mse_loss mse_loss_ext l1_loss smooth_l1_loss huber_loss", A(X, Y)),
    **_both("soft_margin_loss hinge_embedding_loss", A(X, V([[1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]]))),
    **_both("margin_ranking_loss", A(T(2), T(2), SIGNS)),
    **_both("cosine_embedding_loss", A(X, Y, SIGNS), A(X, Y, K([1, -1]))),
    **_both("triplet_margin_loss", A(X, Y, Z)),
    **_both("multi_margin_loss", A(X, K([2, 0], LONG))),
    **_both("multilabel_margin_loss", A(X, K([[1, 0, -1], [2, -1, -1]]))),
    **_both("multilabel_soft_margin_loss", A(X, V([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))),
    **_both("gaussian_nll_loss", A(X, Y, Z)),
    **_both("ctc_loss", A(T(5, 2, 4, low=-3, high=-1), K([[1, 2], [2, 3]]), K([5, 5]), K([2, 2]))),
    **_both("ctc_greedy_decoder", A(T(5, 2, 4), K([5, 5]))),
}

_CREATION = {
    **_both("ones zeros empty", A((2, 3))),
    **_both("full", A((2, 3), 2.0)),
    **_both("full_like", A(X, 2.0)),
    **_both("arange", A(0, 6, 2)),
    **_both("range", A(0, 6, 2)),
    **_both("eye", A(3, 4, ms.float32), A(3)),
    **_both("linspace", A(0.0, 1.0, 5)),
    **_both("logspace", A(0.0, 1.0, 5)),
    **_both("tril_indices triu_indices", A(3, 3)),
    **_both("bartlett_window blackman_window", A(K(5))),
    **_both("hamming_window hann_window kaiser_window", A(5)),
    **_both("fftfreq rfftfreq", A(5)),
    **_both("new_full", A(X, (2, 2), 3.0)),
    **_both("new_ones new_zeros new_empty", A(X, (2, 2))),
}

_RANDOM = {
    **_both("rand randn", A(2, 3)),
    **_both("rand_like randn_like", A(X)),
    **_both("randint", A(0, 5, (2, 3))),
    **_both("randint_like", A(I(2, 3), 0, 5)),
    **_both("randperm", A(5)),
    **_both("normal", A((2, 3), V(0.0), V(1.0)), A((2, 3), 0.0, 1.0)),
    "Mint.normal": (A(X, Y), A(0.0, 1.0, (2, 3))),
    **_both("uniform", A((2, 3), V(0.0), V(1.0))),
    "Tensor.uniform": (A(X, 0.0, 1.0),),
    **_both("normal_ uniform_ random_ exponential_ bernoulli_ cauchy log_normal", A(X)),
    **_both("bernoulli bernoulli_ext", A(X)),
    **_both("multinomial", A(X, 2)),
    **_both("multinomial_with_replacement", A(X, 1, 2, 2)),
    **_both("random_categorical", A(X, 4)),
    **_both("gamma", A((2, 3), V([1.0, 2.0, 3.0]), V([1.0, 1.0, 2.0]))),
    **_both("random_gamma", A(K([2]), V([1.0, 2.0]))),
    **_both("poisson", A((2, 3), V(3.0))),
    **_both("random_poisson", A(K([2]), V([1.0, 2.0]))),
    **_both("laplace", A((2, 3), V(0.0), V(1.0))),
    **_both("standard_laplace standard_normal", A((2, 3))),
    **_both("choice_with_mask", A(B(4, 3), 2)),
    **_both(
        "uniform_candidate_sampler",
        A(K([[1], [3]], LONG), 1, 3, False, 4),
        A(K([[1], [3]]), 1, 3, False, 4),
    ),
    **_both("log_uniform_candidate_sampler", A(K([[1], [3]], LONG), 1, 3, True, 5)),
}

_FOURIER = {
    **_both("fft ifft fftn ifftn fftshift ifftshift", A(C(2, 4))),
    **_both("fft2 ifft2", A(C(4, 4))),
    **_both("rfft ihfft rfftn ihfftn", A(T(2, 4))),
    **_both("rfft2 ihfft2", A(T(4, 4))),
    **_both("irfft hfft irfftn hfftn", A(C(2, 4))),
    **_both("irfft2 hfft2", A(C(4, 4))),
}

#: an API's name, or its key where a name means different things -> calls to try, best first
RECIPES: dict[str, tuple[A, ...]] = {
    **_ELEMENTWISE,
    **_SHAPES,
    **_INDEXING,
    **_LINEAR,
    **_NETS,
    **_LOSSES,
    **_CREATION,
    **_RANDOM,
    **_FOURIER,
}

#: further calls of APIs that are called in many ways
MORE: dict[str, tuple[A, ...]] = {
    "Tensor.__getitem__": (
        A(X, 1),
        A(X, (1, 2)),
        A(X, (slice(None), 1)),
        A(X, Ellipsis),
        A(X, None),
        A(X, (None, slice(0, 1), -1)),
        A(X, slice(None, None, 2)),
        A(X, K([1, 0, 1])),
        A(X, [1, 0]),
        A(X, B(2, 3)),
        A(X, (K([0, 1]), K([1, 2]))),
        A(X, (slice(None), K([1, 2]))),
    ),
    "Tensor.__setitem__": (
        A(X, 1, T(3)),
        A(X, 1, 2.0),
        A(X, (slice(None), 1), T(2)),
        A(X, slice(0, 1), 3.0),
        A(X, K([1, 0]), Y),
        A(X, B(2, 3), 0.5),
        A(X, Ellipsis, Y),
    ),
    "Tensor.view": (A(X, 3, 2), A(X, -1)),
    "Tensor.reshape": (A(X, 3, 2), A(X, (-1,))),
    "Tensor.transpose": (A(X, 1, 0),),
    "Tensor.split": (A(T(4, 3), 2, 1), A(T(4, 3), (1, 3))),
    "concat": (A((X, Y), 1), A([X, Y, Z], 1)),
    "cat": (A((X, Y), 1),),
    "stack": (A((X, Y), 1),),
    **_both("sum mean max min prod amax amin", A(X, 0), A(X, 1)),
    **_both(
        "add sub mul div __add__ __sub__ __mul__ __truediv__ __pow__ pow",
        A(X, 2.0),
        A(X, T(3)),
        A(X, T(2, 1)),
    ),
    **_both("__iadd__ __isub__ __imul__ __itruediv__ add_ sub_ mul_ div_", A(X, 2.0), A(X, T(3))),
    **_both("__radd__ __rsub__ __rmul__ __rtruediv__", A(X, Y), A(X, 2)),
    **_both("clamp clip", A(SIGNED, 0.0, 1.0), A(SIGNED, V(0.0), V(1.0))),
    **_both("matmul __matmul__", A(T(2, 3, 4), T(2, 4, 5)), A(T(2, 3, 4), T(4, 5))),
    "cross_entropy": (
        A(X, LABELS, T(3), label_smoothing=0.1),
        A(X, LABELS, reduction="none"),
        A(X, T(2, 3)),
    ),
    "einsum": (A("ij->ji", X),),
    "where": (A(B(2, 3), X, 2.0),),
    "softmax": (A(X, 0),),
    "layer_norm": (A(X, (2, 3), T(2, 3), T(2, 3)),),
    "interpolate": (
        A(IMAGE, scale_factor=(2.0, 2.0), mode="nearest", recompute_scale_factor=True),
    ),
    "pad": (A(X, (1, 2), mode="constant", value=1.0), A(T(1, 2, 4), (1, 1), mode="reflect")),
    "gather": (A(X, K([1, 2]), 1),),
    "norm": (A(X, 2, 1), A(T(3))),
    "topk": (A(X, 2, 0),),
    "conv2d": (A(T(1, 4, 5, 5), T(4, 2, 3, 3), None, 1, "pad", 1, 1, 2), A(IMAGE, T(3, 2, 3, 3))),
    "batch_norm": (A(N4, T(4), T(4), T(4), T(4), True),),
    "to": (A(X, ms.float32), A(X, ms.float64)),
    "astype": (A(X, ms.float32), A(X, ms.int32)),
    "cast": (A(X, ms.float32), A(X, ms.int32)),
    "flatten": (A(T(2, 3, 4), start_dim=1),),
    "meshgrid": (A(T(3), T(2), indexing="ij"),),
    "relu": (A(SIGNED, inplace=True),),
}

#: names without their section -> why their gradient is not even tried
NO_GRADIENT: dict[str, str] = {
    **dict.fromkeys(
        ["cummax", "cummin"], "no kernel, and MindSpore 2.7 ends the interpreter without probe"
    ),
    "logit": "MindSpore's kernel writes outside its memory, which sooner or later ends the interpreter without probe",
}

_RANDOM_STATE = "random numbers that no seed resets"
_MEMORY = "uninitialised memory"
_EVERY_OTHER = "not repeatable without probe: every other run gives another result"

#: an API's full name -> why its outputs are not the same at every run, so that runs cannot be compared with each other
OWN_OUTPUTS: dict[str, str] = {
    **dict.fromkeys(
        "ops.bernoulli ops.dropout1d ops.dropout2d ops.dropout3d ops.gumbel_softmax ops.random_categorical "
        "ops.uniform_candidate_sampler Tensor.cauchy Tensor.log_normal Tensor.random_categorical".split(),
        _RANDOM_STATE,
    ),
    **dict.fromkeys("mint.empty mint.empty_like Tensor.new_empty".split(), _MEMORY),
    **dict.fromkeys(
        "ops.fftshift ops.ifftshift ops.hfft ops.hfft2 ops.hfftn ops.ihfft ops.ihfft2 ops.ihfftn".split(),
        _EVERY_OTHER,
    ),
}
