# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Edits of programs/vision.py."""

from tests.programs.origins.edited.edit import FAULT, HARMLESS, Edit

EDITS = (
    Edit(
        "mean pool", FAULT, (("return self.head(x[:, 0])", "return self.head(x[:, 1:].mean(1))"),)
    ),
    Edit("last token", FAULT, (("return self.head(x[:, 0])", "return self.head(x[:, -1])"),)),
    Edit("token last", FAULT, (("x = ops.cat((t, x), 1)", "x = ops.cat((x, t), 1)"),)),
    Edit(
        "order of qkv",
        FAULT,
        (("q, k, v = qkv[0], qkv[1], qkv[2]", "k, q, v = qkv[0], qkv[1], qkv[2]"),),
        line="scores = ",
    ),
    Edit(
        "scale by d",
        FAULT,
        (
            (
                "scores = ops.matmul(q, k.swapaxes(-1, -2)) * (d // self.heads) ** -0.5",
                "scores = ops.matmul(q, k.swapaxes(-1, -2)) * d**-0.5",
            ),
        ),
    ),
    Edit(
        "heads last", FAULT, (("y = y.swapaxes(1, 2).reshape(b, n, d)", "y = y.reshape(b, n, d)"),)
    ),
    Edit(
        "reshape patches",
        FAULT,
        (("x = x.reshape(b, c, h * w).swapaxes(1, 2)", "x = x.reshape(b, h * w, c)"),),
    ),
    Edit(
        "keep of other block",
        FAULT,
        (
            (
                "x = block(x, keep[i].reshape(-1, 1, 1))",
                "x = block(x, keep[1 - i].reshape(-1, 1, 1))",
            ),
        ),
    ),
    Edit("scale lost", FAULT, (("x = x + self.s2 * h * keep", "x = x + h * keep"),)),
    Edit("scale twice", FAULT, (("x = x + self.s2 * h * keep", "x = x + self.s1 * h * keep"),)),
    Edit(
        "norm shared",
        FAULT,
        (
            (
                "h = self.f2(ops.gelu(self.f1(self.n2(x))))",
                "h = self.f2(ops.gelu(self.f1(self.n1(x))))",
            ),
        ),
    ),
    Edit(
        "gelu tanh",
        FAULT,
        (
            (
                "h = self.f2(ops.gelu(self.f1(self.n2(x))))",
                'h = self.f2(ops.gelu(self.f1(self.n2(x)), approximate="tanh"))',
            ),
        ),
    ),
    Edit(
        "loss sum",
        FAULT,
        (("return -(target * logp).sum(-1).mean()", "return -(target * logp).mean(-1).mean()"),),
    ),
    Edit(
        "post norm",
        FAULT,
        (
            (
                "x = x + self.s1 * self.att(self.n1(x)) * keep",
                "x = self.n1(x + self.s1 * self.att(x) * keep)",
            ),
        ),
    ),
    Edit(
        "split qkv",
        HARMLESS,
        (
            (
                "q, k, v = qkv[0], qkv[1], qkv[2]",
                'q, k, v = ops.unbind(qkv, 0) if hasattr(ops, "unbind") else ops.unstack(qkv, 0)',
            ),
        ),
    ),
    Edit(
        "scale q",
        HARMLESS,
        (
            (
                "scores = ops.matmul(q, k.swapaxes(-1, -2)) * (d // self.heads) ** -0.5",
                "scores = ops.matmul(q * (d // self.heads) ** -0.5, k.swapaxes(-1, -2))",
            ),
        ),
    ),
    Edit(
        "expand token",
        HARMLESS,
        (("t = self.token.broadcast_to((b, 1, 8))", "t = self.token.tile((b, 1, 1))"),),
    ),
    Edit(
        "flatten",
        HARMLESS,
        (
            (
                "x = x.reshape(b, c, h * w).swapaxes(1, 2)",
                "x = x.permute(0, 2, 3, 1).reshape(b, h * w, c)",
            ),
        ),
    ),
    Edit(
        "kwargs",
        HARMLESS,
        (
            ("p = ops.softmax(scores, -1)", "p = ops.softmax(scores, axis=-1)"),
            ("x = ops.cat((t, x), 1)", "x = ops.cat([t, x], axis=1)"),
            ("logp = ops.log_softmax(logits, -1)", "logp = ops.log_softmax(logits, axis=-1)"),
        ),
    ),
    Edit(
        "loss by ce",
        HARMLESS,
        (
            (
                (
                    "    logp = ops.log_softmax(logits, -1)\n"
                    "    return -(target * logp).sum(-1).mean()"
                ),
                "    return ops.cross_entropy(logits, target)",
            ),
        ),
    ),
    Edit(
        "keep first",
        HARMLESS,
        (
            (
                "x = x + self.s1 * self.att(self.n1(x)) * keep",
                "x = x + keep * (self.s1 * self.att(self.n1(x)))",
            ),
        ),
    ),
    Edit(
        "pos in parts",
        HARMLESS,
        (
            (
                ("        x = ops.cat((t, x), 1)\n        x = x + self.pos"),
                "        x = ops.cat((t + self.pos[:, :1], x + self.pos[:, 1:]), 1)",
            ),
        ),
    ),
    Edit("head all", HARMLESS, (("return self.head(x[:, 0])", "return self.head(x)[:, 0]"),)),
    Edit(
        "scale q and order",
        FAULT,
        (
            (
                "scores = ops.matmul(q, k.swapaxes(-1, -2)) * (d // self.heads) ** -0.5",
                "scores = ops.matmul(q * (d // self.heads) ** -0.5, k.swapaxes(-1, -2))",
            ),
            ("y = y.swapaxes(1, 2).reshape(b, n, d)", "y = y.reshape(b, n, d)"),
        ),
        line="y = y.reshape(b, n, d)",
    ),
    Edit(
        "flatten and keep",
        FAULT,
        (
            ("x = x + self.s2 * h * keep", "x = x + self.s2 * h"),
            (
                "x = x.reshape(b, c, h * w).swapaxes(1, 2)",
                "x = x.permute(0, 2, 3, 1).reshape(b, h * w, c)",
            ),
        ),
        line="x = x + self.s2 * h",
    ),
    Edit(
        "pos in parts wrong",
        FAULT,
        (
            (
                ("        x = ops.cat((t, x), 1)\n        x = x + self.pos"),
                "        x = ops.cat((t + self.pos[:, 1:2], x + self.pos[:, 1:]), 1)",
            ),
        ),
        line="x = ops.cat((t + self.pos[:, 1:2], x + self.pos[:, 1:]), 1)",
    ),
)
