# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes one computation in other forms, and plants small faults into such forms: compare must blame the faults alone.

    python -m tests.programs.origins.forms [--mode statistics|md5|tensor] [--only NAME]

A line for each form: whether it is harmless, the status in both orders, and the first answer. The exit status is 1
where a fault is not named in both orders, or where more than one harmless form is blamed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

import probe

WIDTH, HEADS, LENGTH, BATCH = 16, 2, 6, 4
#: form -> whether it computes the same
FORMS = {
    "scaled queries": True,
    "keys first": True,
    "scores turned": True,
    "sum of two matmuls": True,
    "min by max": True,
    "product by division": True,
    "mean by lerp": True,
    "taps from behind": True,
    "mean stabiliser": True,
    "softmax by hand": True,
    "square by product": True,
    "norm by hand": True,
    "loop over heads": True,
    "sigmoid by tanh": True,
    "gate as one minus": True,
    "residual in front": True,
    "loss by hand": True,
    "distributed factor": True,
    "slices in one": True,
    "double negation": True,
    # the same with a small fault in it
    "scaled queries, no root": False,
    "keys first, exchanged": False,
    "sum of two matmuls, one twice": False,
    "min by max, no sign": False,
    "product by division, no minus": False,
    "mean by lerp, other way": False,
    "taps from behind, one left out": False,
    "softmax by hand, other axis": False,
    "square by product, absolute": False,
    "norm by hand, unbiased": False,
    "loop over heads, one twice": False,
    "sigmoid by tanh, no half": False,
    "gate as one minus, swapped": False,
    "residual in front, scaled": False,
    "loss by hand, sum of axis": False,
    "distributed factor, one side": False,
    "slices in one, shifted": False,
    "stop in the middle": False,
    "double negation, one": False,
    "mean stabiliser, detached weight": False,
}


class Net(nn.Cell):
    """Attention, a convolution by taps, a gate, a norm, and a loss; each part has forms."""

    def __init__(self, form):
        super().__init__()
        kind, _, fault = form.partition(", ")
        self.kind = kind
        self.fault = bool(fault) or form == "stop in the middle"
        self.qkv = nn.Dense(WIDTH, 3 * WIDTH)
        self.out = nn.Dense(WIDTH, WIDTH)
        self.taps = ms.Parameter(Tensor(np.linspace(0.2, 0.6, 3).astype(np.float32)), name="taps")
        self.gate = nn.Dense(WIDTH, WIDTH)
        self.spread = nn.Dense(WIDTH, WIDTH)
        self.head = nn.Dense(WIDTH, 5)

    def heads(self, x):
        return x.reshape((BATCH, LENGTH, HEADS, WIDTH // HEADS)).transpose((0, 2, 1, 3))

    def weights(self, scores):
        if self.kind == "softmax by hand":
            high = scores.max(axis=-1, keepdims=True)
            e = ops.exp(scores - high)
            return e / e.sum(-2 if self.fault else -1, keepdims=True)
        if self.kind == "mean stabiliser":
            middle = scores.mean(axis=-1, keep_dims=True)
            e = ops.exp(scores - middle)
            total = e.sum(-1, keepdims=True)
            return e / (ops.stop_gradient(total) if self.fault else total)
        return ops.softmax(scores, -1)

    def attend(self, x):
        q, k, v = ops.split(self.qkv(x), WIDTH, -1)
        scale = (WIDTH // HEADS) ** -0.5
        if self.kind == "keys first":
            k = self.heads(k)
            q = self.heads(q)
            q, k = (k, q) if self.fault else (q, k)
        else:
            q = self.heads(q)
            k = self.heads(k)
        v = self.heads(v)
        turned = k.transpose((0, 1, 3, 2))
        if self.kind == "scaled queries":
            scores = ops.matmul(q * (scale**2 if self.fault else scale), turned)
        elif self.kind == "scores turned":
            scores = ops.matmul(k, q.transpose((0, 1, 3, 2))).transpose((0, 1, 3, 2)) * scale
        elif self.kind == "sum of two matmuls":
            half = WIDTH // HEADS // 2
            first = ops.matmul(q[..., :half], turned[..., :half, :])
            second = ops.matmul(q[..., half:], turned[..., half:, :])
            scores = (first + (first if self.fault else second)) * scale
        elif self.kind == "distributed factor":
            scores = ops.matmul(q * scale**0.5, turned * (1.0 if self.fault else scale**0.5))
        else:
            scores = ops.matmul(q, turned) * scale
        weights = self.weights(scores)
        if self.kind == "loop over heads":
            parts = [ops.matmul(weights[:, 0], v[:, 0])]
            parts.append(parts[0] if self.fault else ops.matmul(weights[:, 1], v[:, 1]))
            y = ops.stack(parts, 1)
        else:
            y = ops.matmul(weights, v)
        return self.out(y.transpose((0, 2, 1, 3)).reshape((BATCH, LENGTH, WIDTH)))

    def filtered(self, x):
        padded = ops.pad(x, (0, 0, 2, 0))
        places = [2, 1, 0] if self.kind == "taps from behind" else [0, 1, 2]
        total = None
        for place in places[: 2 if self.kind == "taps from behind" and self.fault else 3]:
            part = padded[:, place : place + LENGTH] * self.taps[place]
            total = part if total is None else total + part
        return total

    def gated(self, x, y):
        g = self.gate(x)
        if self.kind == "sigmoid by tanh":
            g = (ops.tanh(g if self.fault else g * 0.5) + 1) * 0.5
        else:
            g = ops.sigmoid(g)
        if self.kind == "mean by lerp":
            return (y + g * (x - y)) if not self.fault else (x + g * (y - x))
        if self.kind == "gate as one minus":
            h = 1 - g
            return (x * h + y * (1 - h)) if self.fault else (x * (1 - h) + y * h)
        return g * x + (1 - g) * y

    def spreading(self, x, s):
        if self.kind == "product by division":
            return x * ops.exp(s if self.fault else -s)
        return x / ops.exp(s)

    def lower(self, a, b):
        if self.kind == "min by max":
            return ops.maximum(-a, -b) if self.fault else -ops.maximum(-a, -b)
        if self.kind == "double negation":
            turned = ops.neg(a), ops.neg(b)
            return ops.minimum(a, turned[1]) if self.fault else ops.minimum(*map(ops.neg, turned))
        return ops.minimum(a, b)

    def norm(self, x):
        if self.kind == "norm by hand":
            count = WIDTH - 1 if self.fault else WIDTH
            gap = x - x.sum(-1, keepdims=True) / WIDTH
            power = (gap * gap).sum(-1, keepdims=True) / count
            return gap * ops.rsqrt(power + 1e-5)
        gap = x - x.mean(axis=-1, keep_dims=True)
        if self.kind == "square by product":
            square = ops.abs(gap) * ops.abs(gap * 1.001 if self.fault else gap)
        else:
            square = ops.square(gap)
        return gap / ops.sqrt(square.mean(axis=-1, keep_dims=True) + 1e-5)

    def loss(self, logits, labels):
        if self.kind == "loss by hand":
            high = logits.max(axis=-1, keepdims=True)
            total = ops.exp(logits - high).sum(0 if self.fault else -1, keepdims=True)
            log = logits - high - ops.log(total)
            return -(log * ops.one_hot(labels, 5, Tensor(1.0), Tensor(0.0))).sum(-1).mean()
        return ops.cross_entropy(logits, labels)

    def construct(self, x, labels):
        y = self.attend(x)
        if self.kind == "residual in front":
            x = y * (1.01 if self.fault else 1.0) + x
        else:
            x = x + y
        f = self.filtered(x)
        if self.kind == "stop in the middle":
            f = ops.stop_gradient(f * 1.0)
        if self.kind == "slices in one":
            both = ops.concat((f, x), -1)
            f = both[..., 1 : WIDTH + 1] if self.fault else both[..., :WIDTH]
        x = self.gated(x, f)
        x = self.spreading(x, ops.tanh(self.spread(x)))
        x = self.lower(x, f + 0.5)
        logits = self.head(self.norm(x).mean(axis=1))
        return self.loss(logits, labels)


def record(form, folder, mode):
    """Train two steps of a form, and record them."""
    ms.set_seed(3)
    np.random.seed(3)
    net = Net(form)
    numbers = np.random.RandomState(1)
    for parameter in net.get_parameters():
        values = numbers.standard_normal(parameter.shape) * 0.3
        parameter.set_data(Tensor(values.astype(np.float32)))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(net, None, optimizer.parameters)
    settings = {"level": "mix", "dump_path": str(folder), "task": "statistics"}
    if mode == "tensor":
        settings["task"] = "tensor"
    elif mode == "md5":
        settings["statistics"] = {"summary_mode": "md5"}
    config = folder.parent / "config.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    debugger = probe.PrecisionDebugger(config_path=str(config))
    for _ in range(2):
        x = Tensor(numbers.standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32))
        labels = Tensor(numbers.randint(0, 5, BATCH).astype(np.int32))
        debugger.start(net)
        _, gradients = gradient(x, labels)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    debugger.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", default="statistics", choices=("statistics", "md5", "tensor"))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    missed, blamed, uneven = [], [], []
    with tempfile.TemporaryDirectory() as made:
        root = arguments.keep or Path(made)
        root.mkdir(parents=True, exist_ok=True)
        record("plain", root / "plain", arguments.mode)
        for form, is_harmless in FORMS.items():
            if arguments.only not in form:
                continue
            folder = root / form.replace(" ", "_").replace(",", "")
            record(form, folder, arguments.mode)
            found = probe.compare(root / "plain", folder)
            back = probe.compare(folder, root / "plain")
            first = found.first
            row = {
                "form": form, "harmless": is_harmless, "status": [found.status, back.status],
                "first": first and str(first.said), "line": first and first.source,
            }  # fmt: skip
            print(json.dumps(row), flush=True)
            wanted = 0 if is_harmless else 1
            if {found.status, back.status} != {wanted}:
                (blamed if is_harmless else missed).append(form)
            if found.status != back.status:
                uneven.append(form)
    print(
        json.dumps({"mode": arguments.mode, "blamed": blamed, "missed": missed, "uneven": uneven})
    )
    return 1 if missed or uneven or len(blamed) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
