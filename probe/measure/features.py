# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Numbers of attention, routers and weights: float32 of any dtype. No operation draws a random number.

On CPU they take arrays: MindSpore's kernels of sums and products keep a kilobyte of each call there.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from probe.executor import found_in

Scalars = dict[str, Any]  # number -> a tensor of one element
_EVEN = 1 - 1e-5  # a gate by that of an even router, but for its rounding
#: so small a number divides by no zero, and a kernel may take the logarithm of a smaller one as that of zero
_TINY = 1e-30


def attention(q: Any, k: Any, layout: str, heads: int = 1) -> Scalars:
    """Return the numbers of ``scores`` of the first head of the first sample of a causal attention.

    ``layout`` has the dimensions of q and k, as BSND: sample, sequence, heads, size; or BSH with all heads in H. Of
    others nothing is returned. The sequence of k may be longer. They are float.
    """
    if not set(layout) <= set("BSNDH"):
        return {}
    width = q.shape[-1] // (heads if "H" in layout else 1)
    place = tuple(0 if axis in "BN" else slice(None) for axis in layout)
    q, k = (tensor[place][:, :width].float() for tensor in (q, k))
    is_hidden = np.triu(np.ones((q.shape[0], k.shape[0]), bool), k.shape[0] - q.shape[0] + 1)
    logits = (q.matmul(k.swapaxes(0, 1)) / width**0.5).masked_fill(_like(q, is_hidden), -np.inf)
    return scores(logits, len(is_hidden))


def scores(logits: Any, count: int = 1024) -> Scalars:
    """Return the greatest logit, float [..., queries, keys]; entropy in nats and greatest weight of ``count`` rows."""
    rows = logits.reshape(-1, logits.shape[-1])
    weights = _softmax(rows[:: max(rows.shape[0] // count, 1)])
    greatest = weights.max(axis=-1).mean()
    return {"logits": logits.float().max(), "entropy": _entropy(weights), "softmax": greatest}


def router(logits: Any) -> Scalars:
    """Return the entropy of experts per token in the mean, and the parts of experts: float [..., experts].

    A token prefers the experts whose gates are at least even. "largest" is the largest part of all preferences that an
    expert has, "smallest" the smallest by an even part.
    """
    gates = _softmax(logits)
    count = logits.shape[-1]
    preferred = (gates * count >= _EVEN).float().mean(axis=0)
    parts = preferred / (preferred.sum() + _TINY)
    return {
        "per_token_expert_entropy": _entropy(gates),
        "largest": parts.max(),
        "smallest": parts.min() * count,
    }


def tokens(logits: Any) -> Scalars:
    """Return how many tokens have their greatest logit at each expert, by the number of the expert."""
    chosen = _softmax(logits).argmax(axis=-1)
    return {str(expert): (chosen == expert).float().sum() for expert in range(logits.shape[-1])}


def similarity(weight: Any) -> Scalars:
    """Return the mean cosine of two experts' weights; the smaller side of ``weight`` counts the experts."""
    rows = weight.float() if weight.shape[0] <= weight.shape[1] else weight.float().swapaxes(0, 1)
    rows = rows / ((rows * rows).sum(axis=1, keepdims=True) + _TINY).sqrt()
    total = rows.matmul(rows.swapaxes(0, 1)).sum() - (rows * rows).sum()
    return {"router_weight_similarity": total / max(rows.shape[0] * (rows.shape[0] - 1), 1)}


def stable_rank(weight: Any, iterations: int = 16) -> Scalars:
    """Return the norm of a matrix by its largest singular value, the square of this, and this value."""
    # a power iteration from a fixed vector: with 16 of them the value is at most a percent too small
    matrix = weight.float().reshape(weight.shape[0], -1)
    vector = _like(
        matrix, np.random.default_rng(0).normal(size=(matrix.shape[1], 1)).astype(np.float32)
    )
    for _ in range(iterations):
        image = matrix.matmul(vector / ((vector * vector).sum() + _TINY).sqrt())
        vector = matrix.swapaxes(0, 1).matmul(image)
    largest = (image * image).sum().sqrt()
    ratio = (matrix * matrix).sum().sqrt() / (largest + _TINY)
    return {"sr": ratio, "stable_rank": ratio * ratio, "kernel_norm": largest}


def adam(first: Any, second: Any, step: Any, group: dict[str, float]) -> tuple[Any, Any]:
    """Return Adam's update with and without eps, by its moments, its step and the numbers of the group."""
    betas = (math.log(max(group[name], _TINY)) for name in ("beta1", "beta2"))
    mean, square = (
        moment / -(step.float() * beta).expm1() for moment, beta in zip((first, second), betas)
    )
    return mean / (square.sqrt() + group["eps"]), mean / square.sqrt()


def direction(first: Any, gradient: Any) -> Scalars:
    """Return the part of the elements whose gradient has the sign of the first moment; 0 counts half."""
    return {"mg_direction": ((first * gradient).sign().float().mean() + 1) / 2}


def _softmax(logits: Any) -> Any:
    """Return the weights of each row: float32 [rows, columns]."""
    rows = logits.float().reshape(-1, logits.shape[-1])
    return (
        rows.softmax()
        if isinstance(rows, HostTensor)
        else found_in("softmax", "mindspore.ops")(rows, -1)
    )


def _like(tensor: Any, array: Any) -> Any:
    """Return an array as what the tensor is: on the host or on a device."""
    return (
        array.view(HostTensor)
        if isinstance(tensor, HostTensor)
        else found_in("Tensor", "mindspore")(array)
    )


def _entropy(weights: Any) -> Any:
    """Return the entropy of the rows in the mean; a weight of zero adds nothing."""
    return -(weights * weights.clip(_TINY).log()).sum(axis=-1).mean()


def matrix_of(cell: Any) -> Any:
    """Return the weight of a linear Cell: a tensor of two dimensions; None of other Cells."""
    weights = (getattr(cell, name, None) for name in ("weight", "wg"))
    return next((item for item in weights if getattr(item, "ndim", 0) == 2), None)


class HostTensor(np.ndarray[Any, Any]):
    """An array that these functions take in place of a Tensor. The methods do as those of a Tensor."""

    def float(self) -> Any:
        """Return float32."""
        return self.astype(np.float32)

    def masked_fill(self, mask: Any, value: Any) -> Any:
        """Return the elements, and ``value`` where the mask is set."""
        return np.where(mask, value, self).astype(self.dtype).view(HostTensor)

    def softmax(self) -> Any:
        """Return the weights of each row."""
        weights = np.exp(self - self.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def __getattr__(self, name: str) -> Any:
        return functools.partial(
            getattr(np, name), self
        )  # matmul, sqrt, log, expm1 and sign are functions of numpy
