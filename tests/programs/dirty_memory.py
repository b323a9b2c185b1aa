# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds the outputs that a Primitive leaves unwritten: each runs several times on memory that holds other bytes.

    python -m tests.programs.dirty_memory
    python -m tests.ascend.simulator run python -m tests.programs.dirty_memory --device Ascend

An output that has other bits in the second run is memory as it was, or random. Prints a line for each Primitive with
the outputs that were written and those that were not. Exit status 1 when ``naming.reserved_outputs`` says otherwise.
"""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.ops import operations as P

from probe.naming import reserved_outputs

_RUNS = 4


def dirty(value):
    """Fill the memory that MindSpore's pool gives out next with one value."""
    held = [
        ops.fill(ms.float32, (size,), value)
        for size in (1, 4, 8, 16, 24, 64, 256, 1024, 4096)
        for _ in range(24)
    ]
    for tensor in held:
        tensor.asnumpy()
    del held


def _float(*shape):
    return Tensor(np.random.RandomState(len(shape)).randn(*shape).astype(np.float32))


def _positive(*shape):
    return Tensor(np.abs(np.random.RandomState(7).randn(*shape)).astype(np.float32) + 0.1)


def _int(high, *shape):
    return Tensor(np.random.RandomState(1).randint(0, high, shape).astype(np.int32))


def calls():
    """Yield (name of the Primitive, function that runs it): all with several outputs that have a CPU kernel."""
    image, channel = _float(2, 3, 8, 8), _positive(3)
    yield (
        "BatchNorm",
        lambda: P.BatchNorm(is_training=True)(image, *(_positive(3) for _ in range(4))),
    )
    weights = 4 * 5 * 4 + 4 * 5 * 5 + 4 * 5
    state = _float(1, 2, 5)
    yield (
        "LSTM",
        lambda: P.LSTM(4, 5, 1, True, False, 0.0)(
            _float(3, 2, 4), state, state, _float(weights, 1, 1)
        ),
    )
    yield (
        "LSTM",
        lambda: P.LSTM(4, 5, 1, False, False, 0.0)(
            _float(3, 2, 4), state, state, _float(weights - 20, 1, 1)
        ),
    )
    yield (
        "GRUV2",
        lambda: P.GRUV2(4, 5, 1, True, False, 0.0)(
            _float(3, 2, 4), state, _float(195, 1, 1), _int(1, 2) + 3
        ),
    )
    yield (
        "DynamicGRUV2",
        lambda: P.DynamicGRUV2()(
            _float(3, 2, 4), _float(4, 15), _float(5, 15), None, None, None, _float(2, 5)
        ),
    )
    yield "LayerNorm", lambda: P.LayerNorm()(_float(4, 8), _float(8), _float(8))
    yield "GroupNorm", lambda: ops.auto_generate.GroupNorm()(image, 3, channel, channel, 1e-5)
    yield "InstanceNorm", lambda: P.InstanceNorm()(image, channel, channel, channel, channel)
    yield "RmsNorm", lambda: ops.rms_norm(_float(4, 8), _float(8))
    yield "MaxPoolWithArgmax", lambda: P.MaxPoolWithArgmaxV2(2, 2)(image)
    yield "MaxPool3DWithArgmax", lambda: P.MaxPool3DWithArgmax(2, 2)(_float(1, 1, 4, 4, 4))
    yield "AdaptiveMaxPool2D", lambda: ops.adaptive_max_pool2d(image, 2, True)
    yield (
        "FractionalMaxPoolWithFixedKsize",
        lambda: ops.fractional_max_pool2d(image, 2, (4, 4), None, True, _positive(2, 3, 2) / 9),
    )
    yield "TopK", lambda: P.TopK()(_float(4, 8), 3)
    yield "Sort", lambda: P.Sort()(_float(4, 8))
    yield "Unique", lambda: P.Unique()(_int(5, 16))
    yield "UniqueConsecutive", lambda: ops.unique_consecutive(_int(5, 16), True, True)
    yield "ArgMaxWithValue", lambda: P.ArgMaxWithValue(1)(_float(4, 8))
    yield "ArgMinWithValue", lambda: P.ArgMinWithValue(1)(_float(4, 8))
    yield "Cummax", lambda: ops.cummax(_float(4, 8), 0)
    yield "Cummin", lambda: ops.cummin(_float(4, 8), 0)
    yield "Median", lambda: ops.median(_float(4, 8), 1)
    yield "NLLLoss", lambda: P.NLLLoss()(_float(4, 8), _int(8, 4), _positive(8))
    yield (
        "SoftmaxCrossEntropyWithLogits",
        lambda: P.SoftmaxCrossEntropyWithLogits()(_float(4, 8), _positive(4, 8)),
    )
    yield (
        "CTCLoss",
        lambda: P.CTCLoss()(
            _float(6, 2, 4),
            Tensor(np.array([[0, 0], [1, 0]], np.int64)),
            _int(2, 2) + 1,
            _int(1, 2) + 6,
        ),
    )
    yield "Moments", lambda: ops.var_mean(_float(4, 8), 1)
    yield "Split", lambda: P.Split(1, 2)(_float(4, 8))
    yield "Unstack", lambda: P.Unstack()(_float(4, 8))
    yield "Meshgrid", lambda: P.Meshgrid()((_float(4), _float(8)))
    yield "Qr", lambda: P.Qr()(_float(6, 4))
    yield "Svd", lambda: P.Svd()(_float(6, 4))
    yield "Eigh", lambda: P.Eigh()(_float(4, 4)) if hasattr(P, "Eigh") else None
    yield "Eig", lambda: P.Eig(True)(_float(4, 4))
    yield "Lu", lambda: P.Lu()(_float(4, 4))
    yield "LuUnpack", lambda: P.LuUnpack()(_float(4, 4), Tensor(np.array([2, 3, 3, 4], np.int32)))
    yield "Geqrf", lambda: P.Geqrf()(_float(6, 4))
    yield "Lstsq", lambda: P.Lstsq()(_float(6, 4), _float(6, 2))
    yield "LogMatrixDeterminant", lambda: P.LogMatrixDeterminant()(_float(4, 4))
    yield "Frexp", lambda: P.Frexp()(_float(4)) if hasattr(P, "Frexp") else None
    yield "ListDiff", lambda: P.ListDiff()(_int(9, 8), _int(4, 3))
    yield "NMSWithMask", lambda: P.NMSWithMask(0.5)(_positive(6, 5))
    yield "BoundingBoxEncode", lambda: P.BoundingBoxEncode()(_positive(4, 4), _positive(4, 4))
    yield (
        "Coalesce",
        lambda: P.Coalesce()(
            Tensor(np.array([[0, 0, 1], [1, 1, 0]], np.int64)),
            _float(3),
            Tensor(np.array([2, 2], np.int64)),
        ),
    )
    yield "DataFormatDimMap", lambda: P.DataFormatDimMap()(_int(4, 4))
    yield from _optimizers()
    yield (
        "FlashAttentionScore",
        lambda: ops.flash_attention_score(
            _float(1, 2, 4, 8).half(),
            _float(1, 2, 4, 8).half(),
            _float(1, 2, 4, 8).half(),
            2,
            input_layout="BNSD",
        ),
    )


def _optimizers():
    """Yield the Primitives of optimizers: they change their inputs, and return them or memory as it was."""

    def fresh(count):
        return [ms.Parameter(_positive(4), name=f"p{i}") for i in range(count)]

    gradient = _float(4)
    yield "ApplyRMSProp", lambda: P.ApplyRMSProp()(*fresh(3), 0.1, gradient, 0.9, 0.1, 1e-3)
    yield (
        "ApplyCenteredRMSProp",
        lambda: P.ApplyCenteredRMSProp()(*fresh(4), gradient, 0.1, 0.9, 0.1, 1e-3),
    )
    yield "ApplyMomentum", lambda: P.ApplyMomentum()(*fresh(2), 0.1, gradient, 0.9)
    yield "Adam", lambda: P.Adam()(*fresh(3), 0.9, 0.9, 0.1, 0.9, 0.99, 1e-8, gradient)
    yield (
        "ApplyAdamWithAmsgradV2",
        lambda: P.ApplyAdamWithAmsgrad()(*fresh(4), 0.9, 0.9, 0.1, gradient),
    )
    yield (
        "AdamWeightDecay",
        lambda: P.AdamWeightDecay()(*fresh(3), 0.1, 0.9, 0.99, 1e-8, 0.1, gradient),
    )
    yield "ApplyAdagrad", lambda: P.ApplyAdagrad()(*fresh(2), 0.1, gradient)
    yield "ApplyAdagradV2", lambda: P.ApplyAdagradV2(1e-6)(*fresh(2), 0.1, gradient)
    yield "ApplyFtrl", lambda: P.ApplyFtrl()(*fresh(3), gradient, 0.1, 0.1, 0.1, -0.5)
    yield "ApplyAdaMax", lambda: P.ApplyAdaMax()(*fresh(3), 0.9, 0.1, 0.9, 0.99, 1e-8, gradient)
    yield "ApplyAdadelta", lambda: P.ApplyAdadelta()(*fresh(3), 0.1, 0.9, 1e-6, gradient)
    yield "ApplyGradientDescent", lambda: P.ApplyGradientDescent()(*fresh(1), 0.1, gradient)
    yield "ApplyPowerSign", lambda: P.ApplyPowerSign()(*fresh(2), 0.1, 2.7, 0.9, 0.9, gradient)
    yield "SGD", lambda: P.SGD()(fresh(1)[0], gradient, 0.1, fresh(1)[0], 0.9, fresh(1)[0])


def check(run):
    """Return the numbers of the outputs, and of those that are unwritten."""
    seen = []
    for number in range(_RUNS):
        dirty((0.37, -1e30, float("nan"), 5.5)[number % 4])
        result = run()
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        seen.append(
            [
                output.asnumpy().tobytes() if isinstance(output, Tensor) else b""
                for output in outputs
            ]
        )
    return len(seen[0]), [
        place for place in range(len(seen[0])) if len({run[place] for run in seen}) > 1
    ]


def main():
    """Check every Primitive."""
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    device = sys.argv[-1] if "--device" in sys.argv else "CPU"
    ms.set_device(device)
    if check(lambda: ms.mint.empty(24))[1] != [0]:  # nobody writes its memory
        print(f"the pool of {device} gives out clean memory: nothing can be shown")
        return 1
    wrong = 0
    for name, run in calls():
        try:
            count, unwritten = check(run)
        except Exception as error:
            print(f"{name}: cannot be run here: {str(error).strip().splitlines()[0][:100]}")
            continue
        reserved = (
            reserved_outputs(f"Primitive.x.{name}") if device == "CPU" else None
        )  # as ValuesTask asks
        told = [place for place in range(count) if place in (reserved or ())]
        wrong += told != unwritten and bool(set(unwritten) - set(told))
        print(
            f"{name}: {count} outputs, unwritten {unwritten or 'none'}, recorded as unwritten {told or 'none'}"
        )
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
