# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The loop of the trainings: batches, a loss function, an optimizer, and what happens around the update."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

from tests.support import nets as support


def rng(seed=0):
    return np.random.RandomState(seed)


def _integers(source, end, shape):
    return Tensor(source.randint(0, end, shape).astype(np.int32))


def digits():
    """Return batches of the handwritten digits, shuffled: every batch has every class."""
    images, labels = (
        np.concatenate([part.asnumpy() for part in parts]) for parts in zip(*support.digits())
    )
    order = rng().permutation(len(images))
    images, labels = images[order], labels[order]
    return [
        (Tensor(images[i : i + 32]), Tensor(labels[i : i + 32]))
        for i in range(0, len(images) - 31, 32)
    ]


def pictures(classes=5, size=32, count=8):
    """Return batches of noise with labels, three channels."""
    source = rng(11)
    shape = count, 3, size, size
    return [
        (Tensor(source.randn(*shape).astype(np.float32)), _integers(source, classes, count))
        for _ in range(8)
    ]


def tokens(classes=5, vocabulary=40, length=8, count=4):
    """Return batches of tokens with one label each."""
    source = rng(5)
    return [
        (_integers(source, vocabulary, (count, length)), _integers(source, classes, count))
        for _ in range(8)
    ]


def sentences(vocabulary=64, length=16, count=4):
    """Return batches of tokens with the next token of each place as label."""
    source = rng(7)
    rows = source.randint(0, vocabulary, (8, count, length + 1)).astype(np.int32)
    return [(Tensor(row[:, :-1].copy()), Tensor(row[:, 1:].reshape(-1).copy())) for row in rows]


def points(count=24, width=6):
    """Return batches of a regression that can be learnt."""
    source = rng(3)
    matrix = source.randn(width, 1).astype(np.float32)
    found = []
    for _ in range(8):
        x = source.randn(count, width).astype(np.float32)
        found.append((Tensor(x), Tensor(np.tanh(x @ matrix))))
    return found


def run(debugger, net, forward, optimizer, data, steps=3, **around):
    """Train.

    Args:
        debugger: the debugger.
        net: the model that ``start`` receives.
        forward: the function that is differentiated.
        optimizer: the optimizer.
        data: the batches, taken by turns.
        steps: how many.
        around: ``weights``, other than those of the optimizer; ``scaler``; ``edit``, a function of the gradients;
            ``before`` and ``after``, functions of the step; ``accumulate``, batches for one update.
    """
    weights = around.get("weights", optimizer.parameters)
    scaler, edit, many = around.get("scaler"), around.get("edit"), around.get("accumulate", 1)
    before, after = around.get("before"), around.get("after")

    def scaled(*batch):
        loss = forward(*batch)
        return scaler.scale(loss) if scaler is not None else loss

    gradient = ms.value_and_grad(scaled, None, weights)
    for step in range(steps):
        debugger.start(net)
        if before:
            before(step)
        total = None
        for part in range(many):
            _, gradients = gradient(*data[(step * many + part) % len(data)])
            total = gradients if total is None else tuple(x + y for x, y in zip(total, gradients))
        if many > 1:
            total = tuple(x / many for x in total)
        if scaler is not None and not around.get("keep_scale"):
            total = scaler.unscale(total)
        if edit:
            total = edit(total)
        if around.get("update", True):
            optimizer(total)
        if scaler is not None and hasattr(scaler, "adjust"):
            scaler.adjust(ms.amp.all_finite(total))
        if after:
            after(step)
        debugger.stop()
        debugger.step()


def clip(limit):
    return lambda gradients: ops.clip_by_global_norm(gradients, limit)
