# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Numbers of attention, routers, embeddings and weights: how they are computed, and where a model has them.

Attention is found by its softmax or fused function, a router by name and shape, an embedding by its class. No operation
draws a random number; the numbers are float32 of any dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from probe.capture.pynative.cells import iter_cells, named_cells
from probe.executor import found_in
from probe.monitor.cell_values import ONLY, CellTask, CellValues
from probe.monitor.host_tensor import HostTensor
from probe.monitor.numbers import HostNumbers, StepValues
from probe.recording.call import Call
from probe.series.series_name import MECHANISMS, Slot
from probe.store.error_log import ErrorLog

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
    gates, count = _softmax(logits), logits.shape[-1]
    preferred = (gates * count >= _EVEN).float().mean(axis=0)
    parts = preferred / (preferred.sum() + _TINY)
    return {"per_token_expert_entropy": _entropy(gates), "largest": parts.max(), "smallest": parts.min() * count}


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
    vector = _like(matrix, np.random.default_rng(0).normal(size=(matrix.shape[1], 1)).astype(np.float32))
    for _ in range(iterations):
        image = matrix.matmul(vector / ((vector * vector).sum() + _TINY).sqrt())
        vector = matrix.swapaxes(0, 1).matmul(image)
    largest = (image * image).sum().sqrt()
    ratio = (matrix * matrix).sum().sqrt() / (largest + _TINY)
    return {"sr": ratio, "stable_rank": ratio * ratio, "kernel_norm": largest}


def adam(first: Any, second: Any, step: Any, group: dict[str, float]) -> tuple[Any, Any]:
    """Return Adam's update with and without eps, by its moments, its step and the numbers of the group."""
    betas = (math.log(max(group[name], _TINY)) for name in ("beta1", "beta2"))
    mean, square = (moment / -(step.float() * beta).expm1() for moment, beta in zip((first, second), betas))
    return mean / (square.sqrt() + group["eps"]), mean / square.sqrt()


def direction(first: Any, gradient: Any) -> Scalars:
    """Return the part of the elements whose gradient has the sign of the first moment; 0 counts half."""
    return {"mg_direction": ((first * gradient).sign().float().mean() + 1) / 2}


def _softmax(logits: Any) -> Any:
    """Return the weights of each row: float32 [rows, columns]."""
    rows = logits.float().reshape(-1, logits.shape[-1])
    return rows.softmax() if isinstance(rows, HostTensor) else found_in("softmax", "mindspore.ops")(rows, -1)


def _like(tensor: Any, array: Any) -> Any:
    """Return an array as what the tensor is: on the host or on a device."""
    return array.view(HostTensor) if isinstance(tensor, HostTensor) else found_in("Tensor", "mindspore")(array)


def _entropy(weights: Any) -> Any:
    """Return the entropy of the rows in the mean; a weight of zero adds nothing."""
    return -(weights * weights.clip(_TINY).log()).sum(axis=-1).mean()


def matrix_of(cell: Any) -> Any:
    """Return the weight of a linear Cell: a tensor of two dimensions; None of other Cells."""
    weights = (getattr(cell, name, None) for name in ("weight", "wg"))
    return next((item for item in weights if getattr(item, "ndim", 0) == 2), None)


_SOFTMAX = frozenset(("softmax", "softmax_ext", "Softmax"))
_MODES = frozenset(("forward", "input", "output"))
_FUSED = frozenset(("flash_attention_score", "speed_fusion_attention"))
_ARGUMENTS = ("query", "key", "value", "head_num", "input_layout")  # the first arguments of a fused attention
_MOST_EXPERTS = 512  # most experts of a router


class Mechanisms(CellTask):
    """Measures weights, and as a task attention by its inputs and routers; ``values`` takes the numbers."""

    def __init__(self, numbers: HostNumbers, errors: ErrorLog, values: StepValues) -> None:
        super().__init__(_MODES, self._of_router, _SOFTMAX | _FUSED)
        self._numbers, self._errors, self._values = numbers, errors, values
        self._calls: list[CellValues] = []
        self._matrices: dict[str, Any] = {}  # by the names of the parameters
        self._routers: dict[str, int] = {}  # key of the calls -> number of experts
        self._tables: list[str] = []  # parameters of embeddings and routers

    def begin(self) -> list[CellValues]:
        """Measure the weights at the beginning of a step; return what watches the calls in it."""
        with self._errors.guard("measuring weights"):
            self._numbers.ready()
            for name, matrix in self._matrices.items():
                self._compute(name, stable_rank, matrix, 6)  # a few iterations are enough
        return self._calls

    def add_ratios(self, step: int, values: dict[str, float]) -> None:
        """Add to the numbers of a step the parts of their norms that the updates of embeddings and routers are."""
        for name in self._tables:
            if values.get(f"{name}.param") and f"{name}.update" in values:
                values[f"{name}.update_ratio"] = values[f"{name}.update"] / values[f"{name}.param"]

    def find(self, models: Any) -> None:
        """Find what is measured in these models; nothing in None."""
        self._calls, self._matrices, self._routers, self._tables = [], {}, {}, []
        if models is None:
            return
        with self._errors.guard("finding attention and weights"):
            for key, cell in named_cells(models, iter_cells(models)):
                self._take(key, cell, matrix_of(cell))
            names = (*_SOFTMAX, *_FUSED, *(f"{key}." for key in self._routers))
            settings = replace(ONLY, level="mix", data_mode=_MODES, list=names)
            self._calls = [CellValues(settings, self._errors, self)]

    def _take(self, key: str, cell: Any, matrix: Any) -> None:
        if "Embedding" in type(cell).__name__ or hasattr(cell, "num_embeddings") or hasattr(cell, "vocab_start_index"):
            self._tables += [parameter.name for parameter in cell.get_parameters(expand=False)]
        elif hasattr(matrix, "name") and min(matrix.shape) > 1:
            self._matrices[matrix.name] = matrix
            if is_router(key, matrix.shape):
                self._routers[key] = min(matrix.shape)
                self._tables.append(matrix.name)

    def inputs(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Measure the logits of an attention; see ``Task``."""
        function, place = call.key.rpartition(".")[2], call.key if call.cell is None else call.cell.key
        given = {**dict(zip(_ARGUMENTS, args)), **kwargs}
        if function in _SOFTMAX and _is_attention(args, kwargs):
            self._compute(place, scores, args[0])
        elif function in _FUSED and {"query", "key", "head_num"} <= given.keys():
            layout = given.get("input_layout", "BSH")
            self._compute(place, attention, given["query"], given["key"], layout, given["head_num"])
        return {}

    def _of_router(self, slot: Slot, tensor: Any) -> None:
        if slot.place == "output.0" and tensor.shape[-1:] == (self._routers.get(slot.cell),):
            self._compute(slot.cell, router, tensor)

    def _compute(self, name: str, function: Callable[..., Scalars], *arguments: Any) -> None:
        found = self._numbers.computed(function, *arguments)
        self._values.put({f"{name}.{MECHANISMS[key]}": number for key, number in found.items() if key in MECHANISMS})


def _is_attention(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a softmax over the last dimension has the shape of an attention: [..., queries, keys]."""
    shape = tuple(getattr(args[0], "shape", ())) if args else ()
    axis = next((kwargs[name] for name in ("axis", "dim") if name in kwargs), args[1] if len(args) > 1 else -1)
    is_square = len(shape) > 2 and (len(shape) > 3 or shape[-1] == shape[-2])
    return is_square and axis in (-1, len(shape) - 1, (-1,)) and shape[-1] > 1


def is_router(key: str, shape: tuple[int, ...]) -> bool:
    """Return whether a linear Cell chooses among experts, by the key of its calls and the shape of its weight."""
    named = {"router", "gate", "gating", "wg"} & set(key.lower().split("."))
    return bool(named) and 2 <= min(shape) <= _MOST_EXPERTS and 2 * min(shape) <= max(shape)
