# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Edits of programs/states.py."""

from tests.programs.origins.edited.edit import FAULT, HARMLESS, WITHOUT_EFFECT, Edit

EDITS = (
    Edit(
        "decay no dt",
        FAULT,
        (("decay = ops.exp(dt[:, t].expand_dims(-1) * a)", "decay = ops.exp(a)"),),
    ),
    Edit(
        "b for c",
        FAULT,
        (
            (
                "ys.append((h * c[:, t].expand_dims(1)).sum(-1))",
                "ys.append((h * b[:, t].expand_dims(1)).sum(-1))",
            ),
        ),
    ),
    Edit(
        "bc order",
        FAULT,
        (("b, c = ops.chunk(self.bc(u), 2, -1)", "c, b = ops.chunk(self.bc(u), 2, -1)"),),
        line="h = decay * h",
    ),
    Edit(
        "uz order",
        FAULT,
        (("u, z = ops.chunk(self.inp(x), 2, -1)", "z, u = ops.chunk(self.inp(x), 2, -1)"),),
        line="ops.silu(",
    ),
    Edit(
        "y before h",
        FAULT,
        (
            (
                "decay = ops.exp(dt[:, t].expand_dims(-1) * a)",
                (
                    "decay = ops.exp(dt[:, t].expand_dims(-1) * a)\n"
                    "            ys.append((h * c[:, t].expand_dims(1)).sum(-1))"
                ),
            ),
            (
                (
                    "            h = decay * h + (dt[:, t] * u[:, t]).expand_dims(-1) * b[:, t].expand_dims(1)\n"
                    "            ys.append((h * c[:, t].expand_dims(1)).sum(-1))"
                ),
                "            h = decay * h + (dt[:, t] * u[:, t]).expand_dims(-1) * b[:, t].expand_dims(1)",
            ),
        ),
        line="ys.append",
    ),
    Edit(
        "skip of x",
        FAULT,
        (("y = ops.stack(ys, 1) + u * self.skip", "y = ops.stack(ys, 1) + x * self.skip"),),
    ),
    Edit("a sign", FAULT, (("a = -ops.exp(self.a)", "a = ops.exp(self.a)"),)),
    Edit("gate no silu", FAULT, (("y = y * ops.silu(z)", "y = y * z"),)),
    Edit(
        "reversed time",
        FAULT,
        (("for t in range(x.shape[1]):", "for t in reversed(range(x.shape[1])):"),),
        line="decay = ops.exp",
    ),
    Edit(
        "mask lost",
        WITHOUT_EFFECT,
        (("x = self.emb(tokens) * mask.expand_dims(-1)", "x = self.emb(tokens)"),),
    ),
    Edit(
        "pool all",
        FAULT,
        (
            (
                "pooled = (x * mask.expand_dims(-1)).sum(1) / mask.sum(1, keepdims=True)",
                "pooled = (x * mask.expand_dims(-1)).sum(1) / x.shape[1]",
            ),
        ),
    ),
    Edit(
        "gamma",
        FAULT,
        (
            (
                "f = (focal(logits, target, 2.0) * mask).sum() / mask.sum()",
                "f = (focal(logits, target, 1.0) * mask).sum() / mask.sum()",
            ),
        ),
    ),
    Edit(
        "focal sign",
        FAULT,
        (
            (
                "return -((1 - ops.exp(lp)) ** gamma) * lp",
                "return -((1 + ops.exp(lp)) ** gamma) * lp",
            ),
        ),
    ),
    Edit(
        "iou max",
        FAULT,
        (
            (
                "hi = ops.minimum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:] / 2)",
                "hi = ops.maximum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:] / 2)",
            ),
        ),
    ),
    Edit(
        "iou half",
        FAULT,
        (
            (
                "hi = ops.minimum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:] / 2)",
                "hi = ops.minimum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:])",
            ),
        ),
    ),
    Edit(
        "union no inter",
        FAULT,
        (
            (
                "union = p[:, 2:].prod(-1) + g[:, 2:].prod(-1) - inter",
                "union = p[:, 2:].prod(-1) + g[:, 2:].prod(-1)",
            ),
        ),
    ),
    Edit(
        "beta",
        FAULT,
        (
            (
                'l1 = ops.smooth_l1_loss(box, gold, beta=0.1, reduction="mean")',
                'l1 = ops.smooth_l1_loss(box, gold, beta=1.0, reduction="mean")',
            ),
        ),
    ),
    Edit(
        "l1 of logits",
        WITHOUT_EFFECT,
        (
            (
                'l1 = ops.smooth_l1_loss(box, gold, beta=0.1, reduction="mean")',
                'l1 = ops.smooth_l1_loss(gold, box, beta=0.1, reduction="mean")',
            ),
        ),
    ),
    Edit("norm gone", FAULT, (("x = x + self.m2(self.n2(x))", "x = x + self.m2(x)"),)),
    Edit("mixer shared", FAULT, (("x = x + self.m2(self.n2(x))", "x = x + self.m1(self.n2(x))"),)),
    Edit(
        "unbind time",
        HARMLESS,
        (
            ("ys = []", ("ys = []\n        us, dts = ops.unbind(u, 1), ops.unbind(dt, 1)")),
            (
                "h = decay * h + (dt[:, t] * u[:, t]).expand_dims(-1) * b[:, t].expand_dims(1)",
                "h = decay * h + (dts[t] * us[t]).expand_dims(-1) * b[:, t].expand_dims(1)",
            ),
        ),
    ),
    Edit(
        "all decays",
        HARMLESS,
        (
            ("ys = []", ("ys = []\n        decays = ops.exp(dt.expand_dims(-1) * a)")),
            ("decay = ops.exp(dt[:, t].expand_dims(-1) * a)", "decay = decays[:, t]"),
        ),
    ),
    Edit(
        "matmul y",
        HARMLESS,
        (
            (
                "ys.append((h * c[:, t].expand_dims(1)).sum(-1))",
                "ys.append(ops.matmul(h, c[:, t].expand_dims(-1)).squeeze(-1))",
            ),
        ),
    ),
    Edit(
        "bmm b",
        HARMLESS,
        (
            (
                "h = decay * h + (dt[:, t] * u[:, t]).expand_dims(-1) * b[:, t].expand_dims(1)",
                "h = decay * h + ops.matmul((dt[:, t] * u[:, t]).expand_dims(-1), b[:, t].expand_dims(1))",
            ),
        ),
    ),
    Edit("silu by hand", HARMLESS, (("y = y * ops.silu(z)", "y = y * (z * ops.sigmoid(z))"),)),
    Edit(
        "focal sum",
        HARMLESS,
        (
            (
                "lp = ops.gather_elements(logp, 2, target.expand_dims(-1)).squeeze(-1)",
                "lp = (logp * ops.one_hot(target, 7, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32))).sum(-1)",
            ),
        ),
    ),
    Edit(
        "relu clamp",
        HARMLESS,
        (("inter = ops.clamp(hi - lo, 0.0).prod(-1)", "inter = ops.relu(hi - lo).prod(-1)"),),
    ),
    Edit(
        "iou halves",
        HARMLESS,
        (
            (
                (
                    "    lo = ops.maximum(p[:, :2] - p[:, 2:] / 2, g[:, :2] - g[:, 2:] / 2)\n"
                    "    hi = ops.minimum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:] / 2)"
                ),
                (
                    "    ph, gh = p[:, 2:] * 0.5, g[:, 2:] * 0.5\n"
                    "    lo = ops.maximum(p[:, :2] - ph, g[:, :2] - gh)\n"
                    "    hi = ops.minimum(p[:, :2] + ph, g[:, :2] + gh)"
                ),
            ),
        ),
    ),
    Edit(
        "prod by mul",
        HARMLESS,
        (
            (
                "union = p[:, 2:].prod(-1) + g[:, 2:].prod(-1) - inter",
                "union = p[:, 2] * p[:, 3] + g[:, 2] * g[:, 3] - inter",
            ),
        ),
    ),
    Edit(
        "one minus mean",
        HARMLESS,
        (
            (
                "return f + 0.5 * l1 + (1 - iou(box, gold)).mean()",
                "return f + 0.5 * l1 + 1 - iou(box, gold).mean()",
            ),
        ),
    ),
    Edit(
        "skip in loop",
        HARMLESS,
        (
            (
                (
                    "            ys.append((h * c[:, t].expand_dims(1)).sum(-1))\n"
                    "        y = ops.stack(ys, 1) + u * self.skip"
                ),
                (
                    "            ys.append((h * c[:, t].expand_dims(1)).sum(-1) + u[:, t] * self.skip)\n"
                    "        y = ops.stack(ys, 1)"
                ),
            ),
        ),
    ),
    Edit(
        "halves wrong",
        FAULT,
        (
            (
                (
                    "    lo = ops.maximum(p[:, :2] - p[:, 2:] / 2, g[:, :2] - g[:, 2:] / 2)\n"
                    "    hi = ops.minimum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:] / 2)"
                ),
                (
                    "    ph, gh = p[:, 2:] * 0.5, g[:, 2:] * 0.5\n"
                    "    lo = ops.maximum(p[:, :2] - ph, g[:, :2] - gh)\n"
                    "    hi = ops.minimum(p[:, :2] + ph, g[:, :2] + ph)"
                ),
            ),
        ),
        line="hi = ops.minimum(p[:, :2] + ph, g[:, :2] + ph)",
    ),
    Edit(
        "decays wrong",
        FAULT,
        (
            ("ys = []", ("ys = []\n        decays = ops.exp(dt.expand_dims(-1) * a)")),
            ("decay = ops.exp(dt[:, t].expand_dims(-1) * a)", "decay = decays[:, 0]"),
        ),
        line="decay = decays[:, 0]",
    ),
    Edit(
        "matmul and union",
        FAULT,
        (
            (
                "ys.append((h * c[:, t].expand_dims(1)).sum(-1))",
                "ys.append(ops.matmul(h, c[:, t].expand_dims(-1)).squeeze(-1))",
            ),
            (
                "union = p[:, 2:].prod(-1) + g[:, 2:].prod(-1) - inter",
                "union = p[:, 2:].prod(-1) + g[:, 2:].prod(-1) - 2 * inter",
            ),
        ),
        line="- 2 * inter",
    ),
    Edit(
        "focal sum stop",
        FAULT,
        (
            (
                (
                    "    lp = ops.gather_elements(logp, 2, target.expand_dims(-1)).squeeze(-1)\n"
                    "    return -((1 - ops.exp(lp)) ** gamma) * lp"
                ),
                (
                    "    lp = (logp * ops.one_hot(target, 7, Tensor(1.0, ms.float32), "
                    "Tensor(0.0, ms.float32))).sum(-1)\n"
                    "    return -(ops.stop_gradient(1 - ops.exp(lp)) ** gamma) * lp"
                ),
            ),
        ),
        line="stop_gradient",
    ),
)
