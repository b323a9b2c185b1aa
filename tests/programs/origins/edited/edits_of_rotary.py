# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Edits of programs/rotary.py."""

from tests.programs.origins.edited.edit import FAULT, HARMLESS, Edit

EDITS = (
    Edit(
        "eps in norm",
        FAULT,
        (("ops.rsqrt(power + 1e-6)", "ops.rsqrt(power + 1e-2)"),),
    ),
    Edit(
        "norm axis",
        FAULT,
        (
            (
                "ops.mean(ops.square(x), -1, keep_dims=True)",
                "ops.mean(ops.square(x), 1, keep_dims=True)",
            ),
        ),
    ),
    Edit(
        "rotary base",
        FAULT,
        (("1.0 / 100.0 **", "1.0 / 50.0 **"),),
        line="first = even * cos",
    ),
    Edit(
        "rotary sign",
        FAULT,
        (("first = even * cos - odd * sin", "first = even * cos + odd * sin"),),
    ),
    Edit(
        "rotary second",
        FAULT,
        (("second = even * sin + odd * cos", "second = odd * sin + even * cos"),),
    ),
    Edit(
        "halves",
        FAULT,
        (
            (
                ("even = x[..., 0::2]\n    odd = x[..., 1::2]"),
                ("even = x[..., : D // 2]\n    odd = x[..., D // 2 :]"),
            ),
        ),
    ),
    Edit(
        "no rotation of keys",
        FAULT,
        ((("        k = rotate(k, cos, sin)\n"), ""),),
        line="k = k.repeat_interleave",
    ),
    Edit(
        "rotation of values",
        FAULT,
        (
            (
                ("        k = rotate(k, cos, sin)\n"),
                ("        k = rotate(k, cos, sin)\n        v = rotate(v, cos, sin)\n"),
            ),
        ),
        line="v = rotate(v",
    ),
    Edit(
        "tile of values",
        FAULT,
        (("v = v.repeat_interleave(H // G, 1)", "v = v.tile((1, H // G, 1, 1)) * 1.0001"),),
    ),
    Edit(
        "scale",
        FAULT,
        (("/ D**0.5", "/ W**0.5"),),
    ),
    Edit(
        "mask value",
        FAULT,
        (("masked_fill(mask, -1e4)", "masked_fill(mask, -1.0)"),),
    ),
    Edit(
        "mask diagonal",
        FAULT,
        (("ms.float32), 1).bool()", "ms.float32), 0).bool()"),),
    ),
    Edit(
        "softmax axis",
        FAULT,
        (("share = ops.softmax(score, -1)", "share = ops.softmax(score, -2)"),),
    ),
    Edit(
        "no swap back",
        FAULT,
        (
            (
                "y = ops.matmul(share, v).swapaxes(1, 2).reshape(b, n, W)",
                "y = ops.matmul(share, v).reshape(b, n, W)",
            ),
        ),
    ),
    Edit(
        "gate and up",
        FAULT,
        (("ops.silu(self.gate(x)) * self.up(x)", "ops.silu(self.up(x)) * self.gate(x)"),),
    ),
    Edit(
        "gelu",
        FAULT,
        (("ops.silu(self.gate(x))", "ops.gelu(self.gate(x))"),),
    ),
    Edit(
        "norm behind",
        FAULT,
        (("x = x + self.feed(self.n2(x))", "x = self.n2(x + self.feed(x))"),),
    ),
    Edit(
        "feed of the input",
        FAULT,
        (
            (
                (
                    "        x = x + self.attend(self.n1(x), mask)\n"
                    "        x = x + self.feed(self.n2(x))\n"
                ),
                (
                    "        y = x + self.attend(self.n1(x), mask)\n"
                    "        x = y + self.feed(self.n2(x))\n"
                ),
            ),
        ),
    ),
    Edit(
        "norms exchanged",
        FAULT,
        (
            ("self.attend(self.n1(x), mask)", "self.attend(self.n2(x), mask)"),
            ("self.feed(self.n2(x))", "self.feed(self.n1(x))"),
        ),
    ),
    Edit(
        "no table scale",
        FAULT,
        (("x = self.table(ids) * W**0.5", "x = self.table(ids)"),),
    ),
    Edit(
        "no last norm",
        FAULT,
        ((("        x = self.last(x)\n"), ""),),
        line="return ops.matmul(x, self.table",
    ),
    Edit(
        "layers exchanged",
        FAULT,
        (("for block in self.blocks:", "for block in self.blocks[::-1]:"),),
        line="x = block(x, mask)",
    ),
    Edit(
        "clip of each",
        FAULT,
        (
            (
                "    return tuple(g * factor for g in gradients)",
                "    return tuple(g * ops.clamp(1.0 / (ops.sqrt((g**2).sum()) + 1e-6), max=1.0) for g in gradients)",
            ),
        ),
    ),
    Edit(
        "clip without a root",
        FAULT,
        (("norm = ops.sqrt(total)", "norm = total"),),
    ),
    Edit(
        "smooth sum",
        FAULT,
        (("smooth = logp.mean(-1)", "smooth = logp.sum(-1)"),),
    ),
    Edit(
        "labels shifted",
        FAULT,
        (
            (
                "labels.expand_dims(-1)).squeeze(-1)",
                "ops.concat((labels[:, 1:], labels[:, :1]), 1).expand_dims(-1)).squeeze(-1)",
            ),
        ),
    ),
    Edit(
        "known of z",
        FAULT,
        (("(z**2 * known).sum()", "(z**2).sum()"),),
    ),
    Edit(
        "mean of all",
        FAULT,
        (("main = (each * known).sum() / known.sum()", "main = (each * known).mean()"),),
    ),
    Edit(
        "detached z",
        FAULT,
        (("z = ops.logsumexp(logits, -1)", "z = ops.logsumexp(ops.stop_gradient(logits), -1)"),),
    ),
    Edit(
        "detached table",
        FAULT,
        (("self.table.embedding_table.T)", "ops.stop_gradient(self.table.embedding_table).T)"),),
    ),
    Edit(
        "label smoothing",
        FAULT,
        (("0.9 * own + 0.1 * smooth", "0.8 * own + 0.2 * smooth"),),
    ),
    Edit(
        "q scale twice",
        FAULT,
        (("q = rotate(q, cos, sin)", "q = rotate(q * 0.5, cos, sin)"),),
    ),
    Edit(
        "hidden in form",
        FAULT,
        (
            (
                "ops.matmul(q, k.swapaxes(-1, -2)) / D**0.5",
                "ops.matmul(q * D**-0.5, k.swapaxes(-1, -2)) * 1.01",
            ),
        ),
    ),
    Edit(
        "scale first",
        HARMLESS,
        (
            (
                "score = ops.matmul(q, k.swapaxes(-1, -2)) / D**0.5",
                "score = ops.matmul(q / D**0.5, k.swapaxes(-1, -2))",
            ),
        ),
    ),
    Edit(
        "norm by division",
        HARMLESS,
        (
            (
                "return x * ops.rsqrt(power + 1e-6) * self.gamma",
                "return x / ops.sqrt(power + 1e-6) * self.gamma",
            ),
        ),
    ),
    Edit(
        "scale into norm",
        HARMLESS,
        (
            (
                "return x * ops.rsqrt(power + 1e-6) * self.gamma",
                "return x * (self.gamma * ops.rsqrt(power + 1e-6))",
            ),
        ),
    ),
    Edit(
        "gqa by view",
        HARMLESS,
        (
            (
                (
                    "        k = k.repeat_interleave(H // G, 1)\n"
                    "        v = v.repeat_interleave(H // G, 1)\n"
                ),
                "",
            ),
        ),
    ),
    Edit(
        "rotate other order",
        HARMLESS,
        (
            (
                ("        q = rotate(q, cos, sin)\n        k = rotate(k, cos, sin)\n"),
                ("        k = rotate(k, cos, sin)\n        q = rotate(q, cos, sin)\n"),
            ),
        ),
    ),
    Edit(
        "v first",
        HARMLESS,
        (
            (("        q = self.query(x).reshape(b, n, H, D).swapaxes(1, 2)\n"), ""),
            (
                "        q = rotate(q",
                (
                    "        q = self.query(x).reshape(b, n, H, D).swapaxes(1, 2)\n"
                    "        q = rotate(q"
                ),
            ),
        ),
    ),
    Edit(
        "silu written",
        HARMLESS,
        (
            (
                "ops.silu(self.gate(x)) * self.up(x)",
                "self.gate(x) * ops.sigmoid(self.gate(x)) * self.up(x)",
            ),
        ),
    ),
    Edit(
        "up first",
        HARMLESS,
        (("ops.silu(self.gate(x)) * self.up(x)", "self.up(x) * ops.silu(self.gate(x))"),),
    ),
    Edit(
        "mask added",
        HARMLESS,
        (
            (
                "score = score.masked_fill(mask, -1e4)",
                "score = ops.where(mask, Tensor(-1e4, ms.float32), score)",
            ),
        ),
    ),
    Edit(
        "logp written",
        HARMLESS,
        (
            (
                "logp = ops.log_softmax(logits, -1)",
                "logp = logits - ops.logsumexp(logits, -1, True)",
            ),
        ),
    ),
    Edit(
        "transpose",
        HARMLESS,
        (("ops.matmul(share, v).swapaxes(1, 2)", "ops.matmul(share, v).transpose(0, 2, 1, 3)"),),
    ),
    Edit(
        "einsum",
        HARMLESS,
        (
            (
                "score = ops.matmul(q, k.swapaxes(-1, -2)) / D**0.5",
                "score = ops.bmm(q.reshape(-1, n, D), k.reshape(-1, n, D).swapaxes(1, 2)).reshape(b, H, n, n) / D**0.5",
            ),
        ),
    ),
    Edit(
        "loss split",
        HARMLESS,
        (("each = -(0.9 * own + 0.1 * smooth)", "each = -0.9 * own - 0.1 * smooth"),),
    ),
    Edit(
        "mean by sum",
        HARMLESS,
        (("smooth = logp.mean(-1)", "smooth = logp.sum(-1) / 11"),),
    ),
    Edit(
        "clip by minimum",
        HARMLESS,
        (
            (
                "factor = ops.clamp(1.0 / (norm + 1e-6), max=1.0)",
                "factor = ops.minimum(1.0 / (norm + 1e-6), Tensor(1.0, ms.float32))",
            ),
        ),
    ),
    Edit(
        "clip unrolled",
        HARMLESS,
        (
            (
                "total = sum((g.astype(ms.float32) ** 2).sum() for g in gradients)",
                "total = ops.stack([ops.square(g).sum() for g in gradients]).sum()",
            ),
        ),
    ),
    Edit(
        "residual order",
        HARMLESS,
        (("x = x + self.feed(self.n2(x))", "x = self.feed(self.n2(x)) + x"),),
    ),
    Edit(
        "rope by halves of pair",
        HARMLESS,
        (
            (
                "return ops.stack((first, second), -1).reshape(x.shape)",
                "return ops.concat((first.expand_dims(-1), second.expand_dims(-1)), -1).reshape(x.shape)",
            ),
        ),
    ),
)
