# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Edits of programs/rays.py."""

from tests.programs.origins.edited.edit import FAULT, HARMLESS, Edit

EDITS = (
    Edit(
        "no unit",
        FAULT,
        (
            (
                "dirs = unit.expand_dims(1).broadcast_to(points.shape)",
                "dirs = direction.expand_dims(1).broadcast_to(points.shape)",
            ),
        ),
    ),
    Edit(
        "trans not shifted",
        FAULT,
        (
            (
                (
                    "        trans = ops.cumprod(1 - alpha + 1e-10, dim=1)\n"
                    "        trans = ops.cat((ops.ones((t.shape[0], 1), ms.float32), trans[:, :-1]), 1)"
                ),
                "        trans = ops.cumprod(1 - alpha + 1e-10, dim=1)",
            ),
        ),
        line="weight = alpha * trans",
    ),
    Edit(
        "delta last",
        FAULT,
        (
            (
                "delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.2, dtype=ms.float32)), 1)",
                "delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.4, dtype=ms.float32)), 1)",
            ),
        ),
    ),
    Edit(
        "delta front",
        FAULT,
        (
            (
                "delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.2, dtype=ms.float32)), 1)",
                "delta = ops.cat((ops.full((t.shape[0], 1), 0.2, dtype=ms.float32), t[:, 1:] - t[:, :-1]), 1)",
            ),
        ),
    ),
    Edit(
        "alpha sign",
        FAULT,
        (
            (
                "alpha = 1 - ops.exp(-sigma.squeeze(-1) * delta)",
                "alpha = 1 - ops.exp(sigma.squeeze(-1) * delta)",
            ),
        ),
    ),
    Edit(
        "sin twice",
        FAULT,
        (
            (
                "parts = ops.cat((ops.sin(angles), ops.cos(angles)), -1)",
                "parts = ops.cat((ops.sin(angles), ops.sin(angles)), -1)",
            ),
        ),
    ),
    Edit(
        "cos first",
        FAULT,
        (
            (
                "parts = ops.cat((ops.sin(angles), ops.cos(angles)), -1)",
                "parts = ops.cat((ops.cos(angles), ops.sin(angles)), -1)",
            ),
        ),
    ),
    Edit(
        "softplus",
        FAULT,
        (("sigma = ops.relu(self.sigma(h) + 0.5)", "sigma = ops.softplus(self.sigma(h) + 0.5)"),),
    ),
    Edit(
        "depth by delta",
        FAULT,
        (("depth = (weight * t).sum(1)", "depth = (weight * delta).sum(1)"),),
    ),
    Edit("depth by alpha", FAULT, (("depth = (weight * t).sum(1)", "depth = (alpha * t).sum(1)"),)),
    Edit(
        "color mean",
        FAULT,
        (
            (
                "color = (weight.expand_dims(-1) * rgb).sum(1)",
                "color = (weight.expand_dims(-1) * rgb).mean(1)",
            ),
        ),
    ),
    Edit(
        "gold shift",
        FAULT,
        (
            (
                "mse = ((color - gold) ** 2).mean()",
                "mse = ((color - ops.flip(gold, (0,))) ** 2).mean()",
            ),
        ),
    ),
    Edit(
        "ent detached",
        FAULT,
        (
            (
                "p = weight / (weight.sum(1, keepdims=True) + 1e-6)",
                "p = weight / (ops.stop_gradient(weight.sum(1, keepdims=True)) + 1e-6)",
            ),
        ),
    ),
    Edit(
        "weight detached",
        FAULT,
        (("depth = (weight * t).sum(1)", "depth = (ops.stop_gradient(weight) * t).sum(1)"),),
    ),
    Edit(
        "norm dim",
        FAULT,
        (
            (
                "unit = direction / ops.sqrt(ops.square(direction).sum(-1, keepdims=True))",
                "unit = direction / ops.sqrt(ops.square(direction).sum(0, keepdims=True))",
            ),
        ),
    ),
    Edit(
        "encode of unit",
        FAULT,
        (
            (
                "sigma, rgb = self.field(self.encode(points), dirs)",
                "sigma, rgb = self.field(self.encode(dirs), dirs)",
            ),
        ),
    ),
    Edit(
        "reshape wrong",
        FAULT,
        (
            (
                "parts = ops.cat((ops.sin(angles), ops.cos(angles)), -1)",
                "parts = ops.cat((ops.sin(angles), ops.cos(angles)), -1).swapaxes(-1, -2)",
            ),
        ),
    ),
    Edit(
        "exp sum",
        HARMLESS,
        (
            (
                "trans = ops.cumprod(1 - alpha + 1e-10, dim=1)",
                "trans = ops.exp(ops.cumsum(ops.log(1 - alpha + 1e-10), 1))",
            ),
        ),
    ),
    Edit(
        "norm api",
        HARMLESS,
        (
            (
                "unit = direction / ops.sqrt(ops.square(direction).sum(-1, keepdims=True))",
                "unit = direction / ops.norm(direction, dim=-1, keepdim=True)",
            ),
        ),
    ),
    Edit(
        "diff api",
        HARMLESS,
        (
            (
                "delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.2, dtype=ms.float32)), 1)",
                "delta = ops.cat((ops.diff(t, axis=1), ops.full((t.shape[0], 1), 0.2, dtype=ms.float32)), 1)",
            ),
        ),
    ),
    Edit(
        "einsum color",
        HARMLESS,
        (
            (
                "color = (weight.expand_dims(-1) * rgb).sum(1)",
                "color = ops.matmul(weight.expand_dims(1), rgb).squeeze(1)",
            ),
        ),
    ),
    Edit(
        "split sin",
        HARMLESS,
        (
            (
                "angles = x.expand_dims(-1) * self.freq",
                "angles = ops.stack((x * self.freq[0], x * self.freq[1]), -1)",
            ),
        ),
    ),
    Edit(
        "mse square",
        HARMLESS,
        (("mse = ((color - gold) ** 2).mean()", "mse = ops.square(gold - color).mean()"),),
    ),
    Edit(
        "mse api",
        HARMLESS,
        (("mse = ((color - gold) ** 2).mean()", "mse = ops.mse_loss(color, gold)"),),
    ),
    Edit(
        "expm1",
        HARMLESS,
        (
            (
                "alpha = 1 - ops.exp(-sigma.squeeze(-1) * delta)",
                "alpha = -ops.expm1(-sigma.squeeze(-1) * delta)",
            ),
        ),
    ),
    Edit(
        "trans in loop",
        HARMLESS,
        (
            (
                (
                    "        trans = ops.cumprod(1 - alpha + 1e-10, dim=1)\n"
                    "        trans = ops.cat((ops.ones((t.shape[0], 1), ms.float32), trans[:, :-1]), 1)\n"
                    "        weight = alpha * trans"
                ),
                (
                    "        one = ops.ones((t.shape[0],), ms.float32)\n"
                    "        parts = []\n"
                    "        for i in range(t.shape[1]):\n"
                    "            parts.append(alpha[:, i] * one)\n"
                    "            one = one * (1 - alpha[:, i] + 1e-10)\n"
                    "        weight = ops.stack(parts, 1)"
                ),
            ),
        ),
    ),
    Edit(
        "log of xlogy",
        HARMLESS,
        (
            (
                "ent = -(p * ops.log(p + 1e-6)).sum(1).mean()",
                "ent = (p * -ops.log(p + 1e-6)).sum() / p.shape[0]",
            ),
        ),
    ),
    Edit(
        "exp sum wrong",
        FAULT,
        (
            (
                "trans = ops.cumprod(1 - alpha + 1e-10, dim=1)",
                "trans = ops.exp(ops.cumsum(ops.log(1 - alpha + 1e-10), 0))",
            ),
        ),
    ),
    Edit(
        "einsum and depth",
        FAULT,
        (
            (
                (
                    "        color = (weight.expand_dims(-1) * rgb).sum(1)\n"
                    "        depth = (weight * t).sum(1)"
                ),
                (
                    "        color = ops.matmul(weight.expand_dims(1), rgb).squeeze(1)\n"
                    "        depth = (alpha * t).sum(1)"
                ),
            ),
        ),
        line="depth = (alpha * t).sum(1)",
    ),
    Edit(
        "norm and last",
        FAULT,
        (
            (
                "unit = direction / ops.sqrt(ops.square(direction).sum(-1, keepdims=True))",
                "unit = direction / ops.norm(direction, dim=-1, keepdim=True)",
            ),
            (
                "delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.2, dtype=ms.float32)), 1)",
                "delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.3, dtype=ms.float32)), 1)",
            ),
        ),
        line="ops.full((t.shape[0], 1), 0.3, dtype=ms.float32)",
    ),
    Edit(
        "loop wrong",
        FAULT,
        (
            (
                (
                    "        trans = ops.cumprod(1 - alpha + 1e-10, dim=1)\n"
                    "        trans = ops.cat((ops.ones((t.shape[0], 1), ms.float32), trans[:, :-1]), 1)\n"
                    "        weight = alpha * trans"
                ),
                (
                    "        one = ops.ones((t.shape[0],), ms.float32)\n"
                    "        parts = []\n"
                    "        for i in range(t.shape[1]):\n"
                    "            one = one * (1 - alpha[:, i] + 1e-10)\n"
                    "            parts.append(alpha[:, i] * one)\n"
                    "        weight = ops.stack(parts, 1)"
                ),
            ),
        ),
        line="one = one * (1 - alpha",
    ),
)
