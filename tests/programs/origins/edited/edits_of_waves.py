# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Edits of programs/waves.py."""

from tests.programs.origins.edited.edit import FAULT, HARMLESS, WITHOUT_EFFECT, Edit

EDITS = (
    Edit(
        "right pad",
        FAULT,
        (("padded = ops.pad(x, (self.dilation, 0))", "padded = ops.pad(x, (0, self.dilation))"),),
    ),
    Edit(
        "gate by filter",
        FAULT,
        (
            (
                "h = ops.tanh(self.filter(padded) + cond) * ops.sigmoid(self.gate(padded) + cond)",
                "h = ops.tanh(self.filter(padded) + cond) * ops.sigmoid(self.filter(padded) + cond)",
            ),
        ),
    ),
    Edit(
        "cond once",
        FAULT,
        (
            (
                "h = ops.tanh(self.filter(padded) + cond) * ops.sigmoid(self.gate(padded) + cond)",
                "h = ops.tanh(self.filter(padded) + cond) * ops.sigmoid(self.gate(padded))",
            ),
        ),
    ),
    Edit("skip of x", FAULT, (("skip = self.skip(h)", "skip = self.skip(x)"),)),
    Edit("residual lost", FAULT, (("return x + self.res(h), skip", "return self.res(h), skip"),)),
    Edit(
        "total mean of 2",
        FAULT,
        (("total = total / len(self.layers)", "total = total / (len(self.layers) - 1)"),),
    ),
    Edit("total reset", FAULT, (("total = total + skip", "total = skip"),)),
    Edit("target not shifted", FAULT, (("target = tokens[:, 1:]", "target = tokens[:, :-1]"),)),
    Edit(
        "mask off by one",
        FAULT,
        (
            (
                "mask = (ops.arange(target.shape[1]) < lengths.expand_dims(1) - 1).astype(ms.float32)",
                "mask = (ops.arange(target.shape[1]) < lengths.expand_dims(1)).astype(ms.float32)",
            ),
        ),
    ),
    Edit(
        "mean over all",
        FAULT,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                "return (nll * mask).mean() + 0.01 * entropy.mean()",
            ),
        ),
    ),
    Edit(
        "entropy sign",
        FAULT,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                "return (nll * mask).sum() / mask.sum() - 0.01 * entropy.mean()",
            ),
        ),
    ),
    Edit(
        "entropy axis",
        FAULT,
        (
            (
                "entropy = -(ops.softmax(logits, 1) * ops.log_softmax(logits, 1)).sum(1)",
                "entropy = -(ops.softmax(logits, -1) * ops.log_softmax(logits, 1)).sum(1)",
            ),
        ),
    ),
    Edit(
        "clip each",
        WITHOUT_EFFECT,
        (
            (
                (
                    "    norm = ops.sqrt(sum((x * x).sum() for x in g))\n"
                    "    scale = ops.minimum(1.0 / (norm + 1e-6), Tensor(1.0, ms.float32))\n"
                    "    return tuple(x * scale for x in g)"
                ),
                (
                    "    return tuple(\n"
                    "        x * ops.minimum(1.0 / (ops.sqrt((x * x).sum()) + 1e-6), Tensor(1.0, ms.float32)) "
                    "for x in g\n"
                    "    )"
                ),
            ),
        ),
    ),
    Edit(
        "clip missing sqrt",
        WITHOUT_EFFECT,
        (
            (
                "norm = ops.sqrt(sum((x * x).sum() for x in g))",
                "norm = sum((x * x).sum() for x in g)",
            ),
        ),
    ),
    Edit(
        "clip half",
        WITHOUT_EFFECT,
        (
            (
                "scale = ops.minimum(1.0 / (norm + 1e-6), Tensor(1.0, ms.float32))",
                "scale = ops.minimum(0.5 / (norm + 1e-6), Tensor(1.0, ms.float32))",
            ),
        ),
    ),
    Edit(
        "who as time",
        FAULT,
        (
            (
                "cond = self.speaker(who).expand_dims(-1)",
                "cond = self.speaker(who * 0).expand_dims(-1)",
            ),
        ),
    ),
    Edit(
        "cat pad",
        HARMLESS,
        (
            (
                "padded = ops.pad(x, (self.dilation, 0))",
                "padded = ops.cat((ops.zeros((x.shape[0], x.shape[1], self.dilation), x.dtype), x), -1)",
            ),
        ),
    ),
    Edit(
        "stack skips",
        HARMLESS,
        (
            ("total = 0", "total = []"),
            (
                ("            total = total + skip\n        total = total / len(self.layers)"),
                ("            total.append(skip)\n        total = ops.stack(total).mean(0)"),
            ),
        ),
    ),
    Edit(
        "gate first",
        HARMLESS,
        (
            (
                "h = ops.tanh(self.filter(padded) + cond) * ops.sigmoid(self.gate(padded) + cond)",
                (
                    "g = ops.sigmoid(self.gate(padded) + cond)\n"
                    "        h = ops.tanh(self.filter(padded) + cond) * g"
                ),
            ),
        ),
    ),
    Edit(
        "entropy in one",
        HARMLESS,
        (
            (
                "entropy = -(ops.softmax(logits, 1) * ops.log_softmax(logits, 1)).sum(1)",
                ("logp = ops.log_softmax(logits, 1)\n    entropy = -(ops.exp(logp) * logp).sum(1)"),
            ),
        ),
    ),
    Edit(
        "where mask",
        HARMLESS,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                "return ops.where(mask > 0, nll, ops.zeros_like(nll)).sum() / mask.sum() + 0.01 * entropy.mean()",
            ),
        ),
    ),
    Edit(
        "clip by norms",
        HARMLESS,
        (
            (
                "norm = ops.sqrt(sum((x * x).sum() for x in g))",
                "norm = ops.sqrt(ops.stack([ops.square(x).sum() for x in g]).sum())",
            ),
        ),
    ),
    Edit(
        "reverse loop",
        HARMLESS,
        (
            (
                "scale = ops.minimum(1.0 / (norm + 1e-6), Tensor(1.0, ms.float32))",
                "scale = 1.0 / ops.maximum(norm + 1e-6, Tensor(1.0, ms.float32))",
            ),
        ),
    ),
    Edit(
        "dot loss",
        HARMLESS,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                (
                    "return (\n"
                    "        ops.matmul(nll.reshape(1, -1), mask.reshape(-1, 1)).sum() / mask.sum()\n"
                    "        + 0.01 * entropy.mean()\n"
                    "    )"
                ),
            ),
        ),
    ),
    Edit(
        "speaker mul",
        HARMLESS,
        (
            ("x = self.emb(tokens).swapaxes(1, 2)", "x = self.emb(tokens).permute(0, 2, 1)"),
            ("total = total / len(self.layers)", "total = total * (1 / 3)"),
        ),
    ),
    Edit(
        "cat pad wrong side",
        FAULT,
        (
            (
                "padded = ops.pad(x, (self.dilation, 0))",
                "padded = ops.cat((x, ops.zeros((x.shape[0], x.shape[1], self.dilation), x.dtype)), -1)",
            ),
        ),
    ),
    Edit(
        "stack skips and mask",
        FAULT,
        (
            ("total = 0", "total = []"),
            (
                ("            total = total + skip\n        total = total / len(self.layers)"),
                ("            total.append(skip)\n        total = ops.stack(total).mean(0)"),
            ),
            (
                "mask = (ops.arange(target.shape[1]) < lengths.expand_dims(1) - 1).astype(ms.float32)",
                "mask = (ops.arange(target.shape[1]) < lengths.expand_dims(1)).astype(ms.float32)",
            ),
        ),
        line="lengths.expand_dims(1))",
    ),
    Edit(
        "entropy and scale",
        FAULT,
        (
            (
                (
                    "    entropy = -(ops.softmax(logits, 1) * ops.log_softmax(logits, 1)).sum(1)\n"
                    "    return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()"
                ),
                (
                    "    logp = ops.log_softmax(logits, 1)\n"
                    "    entropy = -(ops.exp(logp) * logp).sum(1)\n"
                    "    return (nll * mask).sum() / mask.sum() + 0.1 * entropy.mean()"
                ),
            ),
        ),
        line="+ 0.1 * entropy",
    ),
    Edit(
        "where wrong",
        FAULT,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                "return ops.where(mask < 1, nll, ops.zeros_like(nll)).sum() / mask.sum() + 0.01 * entropy.mean()",
            ),
        ),
    ),
    Edit(
        "where small",
        FAULT,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                (
                    "return (\n"
                    "        ops.where(mask > 0, nll, ops.ones_like(nll) * 1e-3).sum() / mask.sum()\n"
                    "        + 0.01 * entropy.mean()\n"
                    "    )"
                ),
            ),
        ),
    ),
    Edit(
        "where stop",
        FAULT,
        (
            (
                "return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()",
                (
                    "return (\n"
                    "        ops.where(mask > 0, ops.stop_gradient(nll), ops.zeros_like(nll)).sum() / mask.sum()\n"
                    "        + 0.01 * entropy.mean()\n"
                    "    )"
                ),
            ),
        ),
    ),
)
