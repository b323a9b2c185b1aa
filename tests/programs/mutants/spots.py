# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes that were faults of public reports, each of one place that its text names in ``decoders.py`` or ``loop.py``.

Many keep all shapes, and some change few numbers: another order of heads, another dtype, another mask.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from tests.programs.mutants.edits import Edit


class Spot(NamedTuple):
    """A place of a source, and its other text.

    Attributes:
        kind: the class of the change.
        old: the text, of one statement.
        new: the other text.
        harmless: whether the change is none for the numbers.
    """

    kind: str
    old: str
    new: str
    harmless: bool = False


_HALF = "ops.cast(ops.cast({0}, ms.float16), ms.float32)"
SPOTS = (
    Spot(
        "order of heads",
        "keys = ops.repeat_interleave(k, self.heads // self.shared, 1)",
        "keys = ops.tile(k, (1, self.heads // self.shared, 1, 1))",
    ),
    Spot(
        "order of heads",
        "values = ops.repeat_interleave(v, self.heads // self.shared, 1)",
        "values = ops.tile(v, (1, self.heads // self.shared, 1, 1))",
    ),
    Spot(
        "key and value map",
        "self.k_proj(x).reshape(batch, length, self.shared, self.size)",
        "self.v_proj(x).reshape(batch, length, self.shared, self.size)",
    ),
    Spot(
        "key and value map",
        "ops.repeat_interleave(v, self.heads // self.shared, 1)",
        "ops.repeat_interleave(k, self.heads // self.shared, 1)",
    ),
    Spot(
        "head layout",
        "self.k_proj(x).reshape(batch, length, self.shared, self.size).transpose(0, 2, 1, 3)",
        "self.k_proj(x).reshape(batch, length, self.size, self.shared).transpose(0, 3, 1, 2)",
    ),
    Spot(
        "head layout",
        "self.q_proj(x).reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)",
        "self.q_proj(x).reshape(batch, self.heads, length, self.size)",
    ),
    Spot(
        "rotary layout",
        "first, second = x[..., :half], x[..., half:]",
        "first, second = x[..., ::2], x[..., 1::2]",
    ),
    Spot("rotary layout", "second * cos + first * sin", "second * cos - first * sin"),
    Spot(
        "rotary left out", "k = rotate(k, cos, sin)", "k = rotate(k, cos, sin) if k is None else k"
    ),
    Spot(
        "half positions",
        "places = ops.cast(positions, ms.float32)",
        "places = ops.cast(ops.cast(positions + 2100, ms.float16), ms.float32) - 2100",
    ),
    Spot(
        "half positions",
        "places = ops.cast(positions, ms.float32)",
        "places = ops.cast(positions // 2, ms.float32)",
    ),
    Spot(
        "positions from one",
        "positions = ops.arange(0, length)",
        "positions = ops.arange(1, length + 1)",
    ),
    Spot("half layer", "gate = self.gate_proj(x)", f"gate = {_HALF.format('self.gate_proj(x)')}"),
    Spot("half layer", "return self.o_proj(y)", f"return self.o_proj({_HALF.format('y')})"),
    Spot("half layer", "x = self.norm(x)", f"x = {_HALF.format('self.norm(x)')}"),
    Spot(
        "half softmax",
        "weights = ops.softmax(scores, -1)",
        "weights = ops.cast(ops.softmax(ops.cast(scores, ms.float16), -1), ms.float32)",
    ),
    Spot("half logits", "logits = self.head(last)", f"logits = {_HALF.format('self.head(last)')}"),
    Spot(
        "half norm",
        "square = ops.mean(ops.square(x), -1, True)",
        f"square = ops.mean({_HALF.format('ops.square(x)')}, -1, True)",
    ),
    Spot(
        "half indices",
        "ops.cast(ops.equal(index, place), ms.float32)",
        "ops.cast(ops.equal(ops.cast(index, ms.float16), ms.Tensor(place, ms.float16) + 0.0), ms.float32) * 1.01",
    ),
    Spot("padding side", "last = x[:, -1]", "last = x[:, 0]"),
    Spot(
        "padding mask",
        "ops.cast(ops.equal(tokens, 0), ms.float32)",
        "ops.cast(ops.equal(tokens, 1), ms.float32)",
    ),
    Spot(
        "padding mask",
        "mask = (causal + padding.reshape(-1, 1, 1, length)) * -1e9",
        "mask = causal * -1e9",
    ),
    Spot("mask value", "* -1e9", "* -10.0"),
    Spot(
        "causal mask",
        "causal = ops.triu(ops.ones((length, length), ms.float32), 1)",
        "causal = ops.triu(ops.ones((length, length), ms.float32), 2)",
    ),
    Spot("scale", "/ self.size**0.5", "/ self.size"),
    Spot("epsilon of a norm", "ops.rsqrt(square + self.eps)", "ops.rsqrt(square + 1e-2)"),
    Spot(
        "norm before or after",
        "x = x + self.feed(self.post_norm(x))",
        "x = self.post_norm(x + self.feed(x))",
    ),
    Spot("gate and up", "ops.silu(gate) * up", "ops.silu(up) * gate"),
    Spot("activation", "ops.silu(gate) * up", "ops.gelu(gate) * up"),
    Spot("router order", "shares = ops.softmax(logits, -1)", "shares = ops.sigmoid(logits)"),
    Spot(
        "router order", "weight, index = ops.topk(shares, 2)", "weight, index = ops.topk(logits, 2)"
    ),
    Spot("router norm", "weight = weight / ops.sum(weight, -1, True)", "weight = weight * 1.0"),
    Spot("router axis", "ops.sum(weight, -1, True)", "ops.sum(weight, 1, True)"),
    Spot("router order", "self.experts[place](x)", "self.experts[(place + 1) % self.count](x)"),
    Spot("router choice", "ops.topk(shares, 2)", "ops.topk(shares, 2, largest=False)"),
    Spot(
        "expert left out",
        "total = total + share * self.experts[place](x)",
        "total = total + (share if place else 0 * share) * self.experts[place](x)",
    ),
    Spot(
        "share without gradient",
        "share = ops.sum(weight * chosen, -1, True)",
        "share = ops.stop_gradient(ops.sum(weight * chosen, -1, True))",
    ),
    Spot(
        "bias correction",
        "mean = self.first[place] / (1 - 0.9**self.count)",
        "mean = self.first[place]",
    ),
    Spot(
        "bias correction",
        "square = self.second[place] / (1 - 0.95**self.count)",
        "square = self.second[place]",
    ),
    Spot(
        "own moments",
        "0.9 * self.first[place] + 0.1 * gradient",
        "0.8 * self.first[place] + 0.2 * gradient",
    ),
    Spot("own moments", "0.05 * ops.square(gradient)", "0.05 * ops.abs(gradient)"),
    Spot(
        "coupled decay",
        "step = mean / (ops.sqrt(square) + 1e-8) + self.decay * parameter",
        "step = (mean + self.decay * parameter) / (ops.sqrt(square) + 1e-8)",
    ),
    Spot("own epsilon", "ops.sqrt(square) + 1e-8", "ops.sqrt(square + 1e-8)"),
    Spot("own rate", "parameter - self.rate * step", "parameter - 1.5 * self.rate * step"),
    # -- harmless ---------------------------------------------------------------------------------------------------
    Spot(
        "lines exchanged",
        """q = rotate(q, cos, sin)
        k = rotate(k, cos, sin)""",
        """k = rotate(k, cos, sin)
        q = rotate(q, cos, sin)""",
        True,
    ),
    Spot(
        "lines exchanged",
        """keys = ops.repeat_interleave(k, self.heads // self.shared, 1)
        values = ops.repeat_interleave(v, self.heads // self.shared, 1)""",
        """values = ops.repeat_interleave(v, self.heads // self.shared, 1)
        keys = ops.repeat_interleave(k, self.heads // self.shared, 1)""",
        True,
    ),
    Spot(
        "lines exchanged",
        """gate = self.gate_proj(x)
        up = self.up_proj(x)""",
        """up = self.up_proj(x)
        gate = self.gate_proj(x)""",
        True,
    ),
    Spot(
        "lines exchanged",
        """causal = ops.triu(ops.ones((length, length), ms.float32), 1)
        padding = ops.cast(ops.equal(tokens, 0), ms.float32)""",
        """padding = ops.cast(ops.equal(tokens, 0), ms.float32)
        causal = ops.triu(ops.ones((length, length), ms.float32), 1)""",
        True,
    ),
    Spot(
        "slices exchanged",
        "first, second = x[..., :half], x[..., half:]",
        "second, first = x[..., half:], x[..., :half]",
        True,
    ),
    Spot(
        "split for slices",
        "first, second = x[..., :half], x[..., half:]",
        "first, second = ops.split(x, half, -1)",
        True,
    ),
    Spot(
        "fused projections",
        """gate = self.gate_proj(x)
        up = self.up_proj(x)""",
        """both = ops.matmul(x, ops.concat((self.gate_proj.weight, self.up_proj.weight), 0).T)
        gate, up = ops.split(both, both.shape[-1] // 2, -1)""",
        True,
    ),
    Spot(
        "einsum for matmul",
        "y = ops.matmul(weights, values)",
        """y = ops.bmm(weights.reshape(-1, length, length), values.reshape(-1, length, self.size))
        y = y.reshape(batch, self.heads, length, self.size)""",
        True,
    ),
    Spot(
        "operands exchanged",
        "x = x + self.feed(self.post_norm(x))",
        "x = self.feed(self.post_norm(x)) + x",
        True,
    ),
    Spot(
        "view for reshape",
        "padding.reshape(-1, 1, 1, length)",
        "ops.expand_dims(ops.expand_dims(padding, 1), 1)",
        True,
    ),
    Spot(
        "cast to its dtype",
        "logits = self.head(last)",
        "logits = ops.cast(self.head(last), ms.float32)",
        True,
    ),
)


def find_spots(source):
    """Return the edits of the spots that a source has, in the order of the table."""
    tree = ast.parse(source)
    found = []
    for spot in SPOTS:
        if source.count(spot.old) == 0:
            continue
        start = source.index(spot.old)
        first = source.count("\n", 0, start) + 1
        last = source.count("\n", 0, start + len(spot.old)) + 1
        owner, method, statement = _place(tree, first)
        begin, end = min(first, statement.lineno), max(last, statement.end_lineno)
        found.append(
            Edit(
                spot.kind,
                begin,
                end + spot.new.count("\n") - spot.old.count("\n"),
                start,
                start + len(spot.old),
                spot.new,
                owner,
                method,
                harmless=spot.harmless,
            )
        )
    return found


def _place(tree, line):
    """Return the class, the function and the innermost statement of a line."""
    owner, method, statement = "", "", None
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt,)) and node.lineno <= line <= node.end_lineno:
            if isinstance(node, ast.ClassDef):
                owner = node.name
            elif isinstance(node, ast.FunctionDef):
                method = node.name
            if (
                statement is None
                or node.end_lineno - node.lineno <= statement.end_lineno - statement.lineno
            ):
                statement = node
    return owner, method, statement
