# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Edits of programs/contrast.py."""

from tests.programs.origins.edited.edit import FAULT, HARMLESS, Edit

EDITS = (
    Edit(
        "reset and update",
        FAULT,
        (("rx, zx, nx = ops.split", "zx, rx, nx = ops.split"),),
        line="sigmoid(",
    ),
    Edit(
        "reset outside",
        FAULT,
        (("new = ops.tanh(nx + r * nh)", "new = ops.tanh(nx + nh) * r"),),
    ),
    Edit(
        "update exchanged",
        FAULT,
        (("new = (1 - z) * new + z * h", "new = z * new + (1 - z) * h"),),
    ),
    Edit(
        "alive late",
        FAULT,
        (("alive = (length > t)", "alive = (length > t + 1)"),),
    ),
    Edit(
        "no alive",
        FAULT,
        ((("            h = alive * new + (1 - alive) * h\n"), ("            h = new\n")),),
        line="h",
    ),
    Edit(
        "state before",
        FAULT,
        (
            (
                ("            h = alive * new + (1 - alive) * h\n            states.append(h)\n"),
                ("            states.append(h)\n            h = alive * new + (1 - alive) * h\n"),
            ),
        ),
        line="return h, ops.stack",
    ),
    Edit(
        "backwards",
        FAULT,
        (("for t in range(x.shape[1]):", "for t in reversed(range(x.shape[1])):"),),
        line="rx, zx, nx",
    ),
    Edit(
        "tanh for sigmoid",
        FAULT,
        (("z = ops.sigmoid(zx + zh)", "z = ops.tanh(zx + zh)"),),
    ),
    Edit(
        "dilation",
        FAULT,
        (("padding=2, dilation=2", "padding=1, dilation=1"),),
        line="y = self.two(y) + y",
    ),
    Edit(
        "no skip",
        FAULT,
        (("y = self.two(y) + y", "y = self.two(y)"),),
    ),
    Edit(
        "max of channels",
        FAULT,
        (("y = ops.amax(y, -1)", "y = ops.mean(y, -1)"),),
    ),
    Edit(
        "norm before",
        FAULT,
        (
            (
                ("        y = ops.amax(y, -1)\n        return self.norm(y)"),
                (
                    "        n, c, t = y.shape\n"
                    "        y = self.norm(y.swapaxes(1, 2).reshape(-1, c)).reshape(n, t, c)\n"
                    "        return ops.amax(y, 1)"
                ),
            ),
        ),
    ),
    Edit(
        "score axis",
        FAULT,
        (("share = ops.softmax(score, 1)", "share = ops.softmax(score, -1)"),),
    ),
    Edit(
        "mask small",
        FAULT,
        (("* 1e9", "* 1.0"),),
    ),
    Edit(
        "no mask in pool",
        FAULT,
        ((("        score = score - (1 - mask).expand_dims(-1) * 1e9\n"), ""),),
        line="share = ops.softmax",
    ),
    Edit(
        "mask one more",
        FAULT,
        (
            (
                "(ops.arange(x.shape[1]) < length.expand_dims(-1))",
                "(ops.arange(x.shape[1]) <= length.expand_dims(-1))",
            ),
        ),
    ),
    Edit(
        "seen order",
        FAULT,
        (
            (
                "return self.mix(seen.reshape(seen.shape[0], -1))",
                "return self.mix(seen.swapaxes(1, 2).reshape(seen.shape[0], -1))",
            ),
        ),
    ),
    Edit(
        "pooled alone",
        FAULT,
        (("a = self.to_left(last + pooled)", "a = self.to_left(pooled)"),),
    ),
    Edit(
        "towers",
        FAULT,
        (("b = self.to_right(self.right(y))", "b = self.to_left(self.right(y))"),),
    ),
    Edit(
        "heat not exp",
        FAULT,
        (("ops.exp(self.heat)", "self.heat"),),
        line="return a, b",
    ),
    Edit(
        "policy of last",
        FAULT,
        (("self.policy(pooled)", "self.policy(last)"),),
    ),
    Edit(
        "unit one side",
        FAULT,
        (("ops.matmul(unit(a), unit(b).T)", "ops.matmul(a, unit(b).T)"),),
        line="sim = ",
    ),
    Edit(
        "unit over batch",
        FAULT,
        (("(x * x).sum(-1, keepdims=True)", "(x * x).sum(0, keepdims=True)"),),
    ),
    Edit(
        "one direction",
        FAULT,
        (("return (forth + back) / 2", "return forth"),),
    ),
    Edit(
        "same direction",
        FAULT,
        (("back = ops.cross_entropy(sim.T, target)", "back = ops.cross_entropy(sim, target)"),),
    ),
    Edit(
        "rate",
        FAULT,
        (("rate=0.9", "rate=0.99"),),
        line="total = reward",
    ),
    Edit(
        "done before",
        FAULT,
        (
            (
                "total = reward[:, t] + rate * total * (1 - done[:, t])",
                "total = (reward[:, t] + rate * total) * (1 - done[:, t])",
            ),
        ),
    ),
    Edit(
        "no stop",
        FAULT,
        (("advantage = ops.stop_gradient(gained - value)", "advantage = gained - value"),),
    ),
    Edit(
        "sign of advantage",
        FAULT,
        (("ops.stop_gradient(gained - value)", "ops.stop_gradient(value - gained)"),),
    ),
    Edit(
        "ddof",
        FAULT,
        (("(advantage.std() + 1e-5)", "(advantage.std(ddof=1) + 1e-5)"),),
    ),
    Edit(
        "not centred",
        FAULT,
        (("(advantage - advantage.mean()) /", "advantage /"),),
    ),
    Edit(
        "entropy sign",
        FAULT,
        (("- 0.01 * entropy", "+ 0.01 * entropy"),),
    ),
    Edit(
        "entropy of logits",
        FAULT,
        (("entropy = -(ops.exp(logp) * logp)", "entropy = -(ops.exp(policy) * logp)"),),
    ),
    Edit(
        "error of stopped",
        FAULT,
        (
            (
                "error = ops.square(value - gained)",
                "error = ops.square(ops.stop_gradient(value) - gained)",
            ),
        ),
    ),
    Edit(
        "gain sum",
        FAULT,
        (("gain = -(taken * advantage).mean()", "gain = -(taken * advantage).sum()"),),
    ),
    Edit(
        "fault in a form",
        FAULT,
        (("new = (1 - z) * new + z * h", "new = new + z * (h + new)"),),
    ),
    Edit(
        "fault in a form 2",
        FAULT,
        (
            (
                "return x / ops.sqrt((x * x).sum(-1, keepdims=True) + 1e-8)",
                "return x * ops.rsqrt(ops.square(x).sum(-1, keepdims=True) + 1e-2)",
            ),
        ),
    ),
    Edit(
        "lerp",
        HARMLESS,
        (("new = (1 - z) * new + z * h", "new = new + z * (h - new)"),),
    ),
    Edit(
        "where",
        HARMLESS,
        (("h = alive * new + (1 - alive) * h", "h = ops.where(alive > 0, new, h)"),),
    ),
    Edit(
        "rsqrt",
        HARMLESS,
        (
            (
                "return x / ops.sqrt((x * x).sum(-1, keepdims=True) + 1e-8)",
                "return x * ops.rsqrt(ops.square(x).sum(-1, keepdims=True) + 1e-8)",
            ),
        ),
    ),
    Edit(
        "halves",
        HARMLESS,
        (("return (forth + back) / 2", "return 0.5 * forth + 0.5 * back"),),
    ),
    Edit(
        "back first",
        HARMLESS,
        (
            (
                (
                    "    forth = ops.cross_entropy(sim, target)\n"
                    "    back = ops.cross_entropy(sim.T, target)\n"
                ),
                (
                    "    back = ops.cross_entropy(sim.T, target)\n"
                    "    forth = ops.cross_entropy(sim, target)\n"
                ),
            ),
        ),
    ),
    Edit(
        "right first",
        HARMLESS,
        (
            (
                (
                    "        last, states = self.left(x, length)\n"
                    "        pooled = self.pool(states, mask)\n"
                    "        a = self.to_left(last + pooled)\n"
                    "        b = self.to_right(self.right(y))\n"
                ),
                (
                    "        b = self.to_right(self.right(y))\n"
                    "        last, states = self.left(x, length)\n"
                    "        pooled = self.pool(states, mask)\n"
                    "        a = self.to_left(last + pooled)\n"
                ),
            ),
        ),
    ),
    Edit(
        "masked fill",
        HARMLESS,
        (
            (
                "score = score - (1 - mask).expand_dims(-1) * 1e9",
                "score = score.masked_fill((mask == 0).expand_dims(-1), -1e9)",
            ),
        ),
    ),
    Edit(
        "einsum",
        HARMLESS,
        (
            (
                "seen = ops.matmul(share.swapaxes(1, 2), states)",
                "seen = (share.expand_dims(-1) * states.expand_dims(2)).sum(1)",
            ),
        ),
    ),
    Edit(
        "chunks",
        HARMLESS,
        (
            (
                "rx, zx, nx = ops.split(self.x(x[:, t]), self.width, -1)",
                "rx, zx, nx = ops.chunk(self.x(x[:, t]), 3, -1)",
            ),
        ),
    ),
    Edit(
        "all at once",
        HARMLESS,
        (
            (
                (
                    "        for t in range(x.shape[1]):\n"
                    "            rx, zx, nx = ops.split(self.x(x[:, t]), self.width, -1)\n"
                ),
                (
                    "        every = self.x(x)\n"
                    "        for t in range(x.shape[1]):\n"
                    "            rx, zx, nx = ops.split(every[:, t], self.width, -1)\n"
                ),
            ),
        ),
    ),
    Edit(
        "entropy mean",
        HARMLESS,
        (
            (
                "entropy = -(ops.exp(logp) * logp).sum(-1).mean()",
                "entropy = (-ops.exp(logp) * logp).sum() / 4",
            ),
        ),
    ),
    Edit(
        "advantage order",
        HARMLESS,
        (("gain = -(taken * advantage).mean()", "gain = (-taken * advantage).mean()"),),
    ),
    Edit(
        "error order",
        HARMLESS,
        (("error = ops.square(value - gained).mean()", "error = ((gained - value) ** 2).mean()"),),
    ),
    Edit(
        "append",
        HARMLESS,
        (
            (
                ("        found.insert(0, total)\n    return ops.stack(found, 1)"),
                ("        found.append(total)\n    return ops.stack(found[::-1], 1)"),
            ),
        ),
    ),
    Edit(
        "own entropy",
        HARMLESS,
        (
            (
                "forth = ops.cross_entropy(sim, target)",
                "forth = ops.nll_loss(ops.log_softmax(sim, -1), target)",
            ),
        ),
    ),
    Edit(
        "tanh gate",
        HARMLESS,
        (("r = ops.sigmoid(rx + rh)", "r = 0.5 * (ops.tanh(0.5 * (rx + rh)) + 1)"),),
    ),
)
