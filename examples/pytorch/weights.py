# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The weights and the batch of the net in PyTorch and of the same net in MindSpore, by PyTorch's names."""

import numpy as np

VOCABULARY, WIDTH, HIDDEN, LAYERS, LENGTH, BATCH = 32, 8, 16, 2, 6, 2


def shapes():
    """Return parameter -> shape, in PyTorch's order; a Linear has (outputs, inputs)."""
    found = {"positions": (LENGTH, WIDTH), "tokens.weight": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        block = f"blocks.{layer}"
        found.update(
            {
                f"{block}.{norm}.{part}": (WIDTH,)
                for norm in ("norm1", "norm2")
                for part in ("weight", "bias")
            }
        )
        for name in ("q", "k", "v", "o"):
            found[f"{block}.attention.{name}.weight"] = (WIDTH, WIDTH)
            found[f"{block}.attention.{name}.bias"] = (WIDTH,)
        for name, shape in (("up", (HIDDEN, WIDTH)), ("down", (WIDTH, HIDDEN))):
            found[f"{block}.{name}.weight"] = shape
            found[f"{block}.{name}.bias"] = shape[:1]
    found.update(
        {"norm.weight": (WIDTH,), "norm.bias": (WIDTH,), "head.weight": (VOCABULARY, WIDTH)}
    )
    return found


def weights():
    """Return parameter -> array, the same ones in every run."""
    random = np.random.RandomState(0)
    return {
        name: (random.randn(*shape) * 0.4 + ("norm" in name and name.endswith("weight"))).astype(
            np.float32
        )
        for name, shape in shapes().items()
    }


def batch():
    """Return tokens and labels."""
    random = np.random.RandomState(2)
    return random.randint(0, VOCABULARY, (BATCH, LENGTH)), random.randint(
        0, VOCABULARY, BATCH * LENGTH
    )
