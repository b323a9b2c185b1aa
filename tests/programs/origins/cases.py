# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The planted faults, with what must be named, and the harmless changes."""

from __future__ import annotations

import re
from typing import NamedTuple


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        kind: the training: "gpt", "digits" or "ranks".
        change: what is changed in it.
        part: "forward", "backward", "data", "parameters", "optimizer" or "communication".
        cells: the Cells that may be named: the one it is in.
        names: a regular expression for the calls, values or parameters that may be named.
        ranks: the ranks that may be named; () for all.
    """

    kind: str
    change: str
    part: str
    cells: tuple[str, ...] = ()
    names: str = ""
    ranks: tuple[int, ...] = ()

    def is_named(self, origin):
        """Return whether an origin is the planted call, value or parameter, or its Cell."""
        if origin is None or (self.ranks and origin.rank not in self.ranks):
            return False
        if origin.cell in self.cells:
            return True
        text = f"{origin.kind} {origin.name}.{origin.place}"
        return bool(self.names and re.search(self.names, text))


_ATTENTION = ("blocks.1.attention.Attention",)
FAULTS = (
    Fault("gpt", "epsilon", "forward", ("blocks.1.norm1.LayerNorm",)),
    Fault(
        "gpt",
        "mask",
        "forward",
        _ATTENTION,
        r"Block\.forward\.0\.input\.1|Attention\.forward\.0\.input\.1",
    ),
    Fault("gpt", "q and k swapped", "forward", _ATTENTION),
    Fault("gpt", "scale", "forward", _ATTENTION),
    Fault("gpt", "axis", "forward", _ATTENTION, r"softmax\.1\.forward"),
    Fault("gpt", "bfloat16 cast", "forward", _ATTENTION),
    Fault("gpt", "other activation", "forward", ("blocks.1.Block",)),
    Fault("gpt", "stop_gradient", "backward", _ATTENTION),
    Fault(
        "gpt", "wrong bprop", "backward", ("blocks.1.pass_on.Scaled",), r"argument Tensor\.__mul__"
    ),
    Fault("gpt", "loss scale", "backward", (), r"gradient .*cross_entropy.*backward"),
    Fault("gpt", "other batch", "data", (), r"data .*input"),
    Fault(
        "gpt",
        "labels are the inputs",
        "data",
        (),
        r"(data|wiring|outside value) .*(cross_entropy|reshape)",
    ),
    Fault("gpt", "one weight", "parameters", ("blocks.1.norm2.LayerNorm",)),
    Fault("gpt", "weight transposed", "parameters", ("blocks.1.attention.v.Dense",)),
    Fault("gpt", "learning rate", "optimizer", (), "^optimizer"),
    Fault("gpt", "no clipping", "optimizer", (), "clip_by_global_norm|^optimizer"),
    Fault("digits", "BatchNorm epsilon", "forward", ("norm.BatchNorm2d",)),
    Fault("digits", "dropout seed", "forward", ("drop.Dropout",), "^random"),
    Fault("digits", "normalisation", "data", (), "^data"),
    Fault("digits", "other pooling", "forward", ("pool.MaxPool2d", "pool.AvgPool2d")),
    Fault("ranks", "rank 1 reads the data of rank 0", "data", (), "^data", (1,)),
    Fault("ranks", "one gradient is not reduced", "communication", (), "all_reduce|^optimizer"),
    Fault("ranks", "greatest in place of sum", "communication", (), "all_reduce"),
    Fault("ranks", "divided by one rank too few", "communication", (), "(__truediv__|div)"),
)


class Harmless(NamedTuple):
    """A change that is none for the numbers."""

    kind: str
    change: str


HARMLESS = (
    Harmless("gpt", ""),
    Harmless("digits", ""),
    Harmless("gpt", "renamed Cell"),
    Harmless("gpt", "wrapper Cell"),
    Harmless("gpt", "operands swapped"),
    Harmless("gpt", "q and k in the other order"),
    Harmless("gpt", "identity calls"),
    Harmless("gpt", "other spelling"),
    Harmless("gpt", "reshape with -1"),
    Harmless("ranks", ""),
)
