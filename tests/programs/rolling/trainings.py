# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Small trainings of ten kinds, each with a seed; and faults that begin inside one listed function in some step."""

from __future__ import annotations

import math
from types import FunctionType

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

BATCH = 16


class Perceptron(nn.Cell):
    """Dense, gelu, dropout."""

    def __init__(self, random):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(a, b) for a, b in ((12, 32), (32, 32), (32, 32))])
        self.head = nn.Dense(32, 4)
        self.dropout = nn.Dropout(p=0.1)
        self.centres = random.normal(size=(4, 12))

    def batch(self, random):
        y = random.integers(0, 4, BATCH)
        return self.centres[y] + random.normal(size=(BATCH, 12)), y

    def construct(self, x, y):
        for layer in self.layers:
            x = self.dropout(ops.gelu(layer(x)))
        return ops.cross_entropy(self.head(x), y)


class Convolutions(nn.Cell):
    """Convolution, batch norm, relu."""

    def __init__(self, random):
        super().__init__()
        self.first = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 8, 3, stride=2)
        self.head = nn.Dense(8 * 16, 3)
        self.patterns = random.normal(size=(3, 1, 8, 8))

    def batch(self, random):
        y = random.integers(0, 3, BATCH)
        return self.patterns[y] + random.normal(size=(BATCH, 1, 8, 8)), y

    def construct(self, x, y):
        x = ops.relu(self.norm(self.first(x)))
        x = ops.relu(self.second(x))
        return ops.cross_entropy(self.head(x.reshape(x.shape[0], -1)), y)


class Attention(nn.Cell):
    """One block with softmax and layer norm."""

    def __init__(self, random):
        super().__init__()
        self.tokens = nn.Embedding(20, 16)
        self.q, self.k, self.v, self.o = (nn.Dense(16, 16) for _ in range(4))
        self.norm = nn.LayerNorm((16,))
        self.up, self.down = nn.Dense(16, 32), nn.Dense(32, 16)
        self.head = nn.Dense(16, 20)
        self.mask = Tensor(np.triu(np.full((8, 8), -1e9, np.float32), 1))

    def batch(self, random):
        start = random.integers(0, 20, (BATCH, 1))
        tokens = (start + np.arange(9) * random.integers(1, 3, (BATCH, 1))) % 20
        return tokens[:, :-1].astype(np.int32), tokens[:, 1:].reshape(-1)

    def construct(self, x, y):
        x = self.tokens(x)
        a = self.norm(x)
        scores = ops.matmul(self.q(a), self.k(a).swapaxes(1, 2)) / 4 + self.mask
        x = x + self.o(ops.matmul(ops.softmax(scores, -1), self.v(a)))
        x = x + self.down(ops.gelu(self.up(x)))
        return ops.cross_entropy(self.head(x).reshape(-1, 20), y)


class Recurrent(nn.Cell):
    """A gated cell by hand, six steps long."""

    def __init__(self, random):
        super().__init__()
        self.enter, self.gate = nn.Dense(4 + 16, 16), nn.Dense(4 + 16, 16)
        self.head = nn.Dense(16, 1)
        self.weights = random.normal(size=6)

    def batch(self, random):
        x = random.normal(size=(BATCH, 6, 4))
        return x, np.tanh((x[:, :, 0] * self.weights).sum(1, keepdims=True))

    def construct(self, x, y):
        state = ops.zeros((x.shape[0], 16), ms.float32)
        for place in range(6):
            both = ops.cat((x[:, place], state), 1)
            gate = ops.sigmoid(self.gate(both))
            state = gate * state + (1 - gate) * ops.tanh(self.enter(both))
        return ((self.head(state) - y) ** 2).mean()


class Autoencoder(nn.Cell):
    """Sigmoid and a mean of squares."""

    def __init__(self, random):
        super().__init__()
        self.encoder, self.middle = nn.Dense(16, 12), nn.Dense(12, 4)
        self.decoder, self.last = nn.Dense(4, 12), nn.Dense(12, 16)
        self.mix = random.normal(size=(3, 16))

    def batch(self, random):
        x = 1 / (1 + np.exp(-random.normal(size=(BATCH, 3)) @ self.mix))
        return x, x

    def construct(self, x, y):
        x = ops.tanh(self.middle(ops.relu(self.encoder(x))))
        x = ops.sigmoid(self.last(ops.relu(self.decoder(x))))
        return ops.mse_loss(x, y)


class Words(nn.Cell):
    """Embeddings and their products, as word2vec."""

    def __init__(self, random):
        super().__init__()
        self.left, self.right = nn.Embedding(30, 12), nn.Embedding(30, 12)
        self.bias = Parameter(Tensor(np.zeros(30, np.float32)), name="bias")

    def batch(self, random):
        x = random.integers(0, 30, BATCH)
        return x.astype(np.int32), (x + random.integers(1, 4, BATCH)) % 30

    def construct(self, x, y):
        every = ops.arange(30).astype(ms.int32)
        scores = ops.matmul(self.left(x), self.right(every).swapaxes(0, 1)) + self.bias
        return ops.nll_loss(ops.log_softmax(scores, -1), y)


class Pairs(nn.Cell):
    """Two towers and the cosines of their outputs."""

    def __init__(self, random):
        super().__init__()
        self.left, self.right = nn.Dense(10, 16), nn.Dense(10, 16)
        self.left2, self.right2 = nn.Dense(16, 8), nn.Dense(16, 8)
        self.turn = random.normal(size=(10, 10)) / 3

    def batch(self, random):
        x = random.normal(size=(BATCH, 10))
        return np.stack((x, x @ self.turn)), np.arange(BATCH)

    def construct(self, x, y):
        a = self.left2(ops.relu(self.left(x[0])))
        b = self.right2(ops.relu(self.right(x[1])))
        a = a / (ops.norm(a, dim=-1, keepdim=True) + 1e-6)
        b = b / (ops.norm(b, dim=-1, keepdim=True) + 1e-6)
        return ops.cross_entropy(ops.matmul(a, b.swapaxes(0, 1)) * 5, y)


class Residuals(nn.Cell):
    """Layer norm in front of each of four residual layers."""

    def __init__(self, random):
        super().__init__()
        self.enter = nn.Dense(8, 24)
        self.norms = nn.CellList([nn.LayerNorm((24,)) for _ in range(4)])
        self.layers = nn.CellList([nn.Dense(24, 24) for _ in range(4)])
        self.head = nn.Dense(24, 2)
        self.weights = random.normal(size=(8, 2))

    def batch(self, random):
        x = random.normal(size=(BATCH, 8))
        return x, np.sin(x @ self.weights)

    def construct(self, x, y):
        x = self.enter(x)
        for norm, layer in zip(self.norms, self.layers):
            x = x + ops.relu(layer(norm(x)))
        return ops.smooth_l1_loss(self.head(x), y).mean()


class Half(nn.Cell):
    """A perceptron in float16, with a loss in float32."""

    def __init__(self, random):
        super().__init__()
        self.first, self.second = nn.Dense(12, 32), nn.Dense(32, 32)
        self.head = nn.Dense(32, 4)
        for cell in (self.first, self.second):
            cell.to_float(ms.float16)
        self.centres = random.normal(size=(4, 12))

    def batch(self, random):
        y = random.integers(0, 4, BATCH)
        return self.centres[y] + random.normal(size=(BATCH, 12)), y

    def construct(self, x, y):
        x = ops.relu(self.first(x))
        x = ops.tanh(self.second(x))
        return ops.cross_entropy(self.head(x.astype(ms.float32)), y)


class Variational(nn.Cell):
    """A variational autoencoder: random numbers in the forward."""

    def __init__(self, random):
        super().__init__()
        self.encoder, self.mean, self.spread = nn.Dense(10, 16), nn.Dense(16, 3), nn.Dense(16, 3)
        self.decoder, self.last = nn.Dense(3, 16), nn.Dense(16, 10)
        self.mix = random.normal(size=(2, 10))

    def batch(self, random):
        x = np.tanh(random.normal(size=(BATCH, 2)) @ self.mix)
        return np.stack((x, np.resize(random.normal(size=(BATCH, 3)), x.shape))), x

    def construct(self, x, y):
        noise = x[1][:, :3]
        h = ops.relu(self.encoder(x[0]))
        mean, spread = self.mean(h), self.spread(h)
        code = mean + noise * ops.exp(spread * 0.5)
        rate = -0.5 * (1 + spread - mean**2 - ops.exp(spread)).sum(-1).mean()
        return ops.mse_loss(self.last(ops.relu(self.decoder(code))), y) + 0.01 * rate


def _cosine(steps):
    return [
        2e-3 * min((step + 1) / 50, 0.5 * (1 + math.cos(math.pi * step / steps)))
        for step in range(steps + 1)
    ]


OPTIMIZERS = {
    "adam": lambda p, steps: nn.Adam(p, 1e-3),
    "momentum": lambda p, steps: nn.Momentum(p, 0.01, 0.9),
    "cosine": lambda p, steps: nn.AdamWeightDecay(p, _cosine(steps), weight_decay=0.01),
    "sgd": lambda p, steps: nn.SGD(p, 0.05),
}
#: net -> its optimizer, and the functions in which a fault is planted; rules of the loss look at loss functions
KINDS = {
    "perceptron": (Perceptron, "adam", ("gelu",)),
    "convolutions": (Convolutions, "momentum", ("relu",)),
    "attention": (Attention, "cosine", ("softmax", "gelu")),
    "recurrent": (Recurrent, "adam", ("sigmoid", "tanh")),
    "autoencoder": (Autoencoder, "adam", ("relu", "tanh")),
    "words": (Words, "sgd", ("log_softmax",)),
    "pairs": (Pairs, "adam", ("relu", "norm")),
    "residuals": (Residuals, "momentum", ("relu",)),
    "half": (Half, "adam", ("relu", "tanh")),
    "variational": (Variational, "adam", ("exp", "relu")),
}


class Training:
    """One training of a kind; ``step`` returns the loss."""

    def __init__(self, kind, seed, steps):
        ms.set_seed(seed)
        np.random.seed(seed)
        self.random = np.random.default_rng(seed)
        make, optimizer, self.functions = KINDS[kind]
        self.net = make(self.random).set_train()
        self.optimizer = OPTIMIZERS[optimizer](self.net.trainable_params(), steps)
        self.grad = ms.value_and_grad(self.net, None, self.optimizer.parameters)

    def batch(self):
        x, y = self.net.batch(self.random)
        x = Tensor(x if x.dtype == np.int32 else x.astype(np.float32))
        return x, Tensor(y.astype(np.int32 if y.dtype.kind == "i" else np.float32))

    def step(self, step):
        loss, gradients = self.grad(*self.batch())
        if ms.amp.all_finite(gradients):  # as with a loss scale
            self.optimizer(gradients)
        return loss


class Fault:
    """An effect on what one function of MindSpore returns, from a step on. The calls inside are not recorded.

    Args:
        name: the function in ``mindspore.ops``.
        effect: takes the result and the number of steps since the begin, and returns another result.
        number: the number of the call in a step that is changed.
    """

    def __init__(self, name, effect, number=0):
        self.function = getattr(ops, name)
        self.name, self.effect, self.number = name, effect, number
        self.age = self.count = -1
        self._kept = None

    def begin_step(self, age):
        """Begin a step; the fault is ``age`` steps old, or negative."""
        self.age, self.count = age, -1
        if age == 0 and self._kept is None:
            self._install()

    def _install(self):
        function = self.function
        self._kept = function.__code__, function.__defaults__, function.__kwdefaults__
        original = FunctionType(
            function.__code__,
            function.__globals__,
            self.name,
            function.__defaults__,
            function.__closure__,
        )
        original.__kwdefaults__ = function.__kwdefaults__

        def faulty(*args, **kwargs):
            result = original(*args, **kwargs)
            self.count += 1
            return self.effect(result, self.age) if self.count == self.number else result

        function.__globals__["_planted_fault"] = faulty
        function.__defaults__ = function.__kwdefaults__ = None
        function.__code__ = (lambda *args, **kwargs: _planted_fault(*args, **kwargs)).__code__  # noqa: F821

    def remove(self):
        """Restore the function."""
        if self._kept is not None:
            code, defaults, keywords = self._kept
            self.function.__code__ = code
            self.function.__defaults__, self.function.__kwdefaults__ = defaults, keywords
            self._kept = None
