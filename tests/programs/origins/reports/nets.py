# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Seven small trainings. A fault changes one line, which has its name.

Each training is a function of the fault. It returns its model, its optimizer, the function of the loss, and a function
that gives the batch of a step. The faults are those of public reports.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from tests.programs.origins.reports.fault import Fault, Training, real, whole


class Translator(nn.Cell):
    """A recurrent encoder and decoder with attention."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.source = nn.Embedding(20, 8)
        self.target = nn.Embedding(20, 8)
        self.encoder = nn.GRUCell(8, 8)
        self.decoder = nn.GRUCell(16, 8)
        self.score = nn.Dense(8, 8, has_bias=False)
        self.head = nn.Dense(16, 20)

    def encode(self, words: Tensor) -> Tensor:
        x = self.source(words)
        state = ops.zeros((words.shape[0], 8), ms.float32)
        states = []
        order = self.bad.either("read backwards", range(4, -1, -1), range(5))
        for place in order:
            state = self.encoder(x[:, place], state)  # read backwards
            states.append(state)
        if self.bad("stack by concat"):
            return ops.concat([state.expand_dims(1) for state in states], 1)
        return ops.stack(states, 1)

    def attend(self, state: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        keys = self.score(memory)
        if self.bad("scores by a sum"):
            scores = (keys * state.expand_dims(1)).sum(-1)
        else:
            scores = ops.matmul(keys, state.expand_dims(-1)).squeeze(-1)
        if self.bad("mask by where"):
            scores = ops.where(mask, ops.full_like(scores, -1e4), scores)
        else:
            scores = scores if self.bad("no mask") else ops.masked_fill(scores, mask, -1e4)
        weights = ops.softmax(scores, self.bad.either("axis of the batch", 0, -1))
        values = self.bad.either("keys for values", keys, memory)
        return ops.matmul(weights.expand_dims(1), values).squeeze(1)  # keys for values

    def construct(self, words: Tensor, mask: Tensor, said: Tensor) -> Tensor:
        memory = self.encode(words)
        state = memory[:, self.bad.either("first state", 0, -1)]
        table = self.bad.either("one table for both", self.source, self.target)
        y = table(said)  # one table for both
        outputs = []
        for place in range(4):
            seen = self.attend(state, memory, mask)
            state = self.decoder(ops.concat([y[:, place], seen], -1), state)
            parts = [seen, state] if self.bad("parts exchanged") else [state, seen]
            outputs.append(ops.concat(parts, -1))  # parts exchanged
        return self.head(ops.stack(outputs, 1))


def translation(bad: Fault) -> Training:
    net = Translator(bad)

    def loss_of(words: Tensor, mask: Tensor, said: Tensor, wanted: Tensor) -> Tensor:
        logits = net(words, mask, said).reshape(-1, 20)
        ignored = bad.either("loss over padding", -100, 0)
        return ops.cross_entropy(  # loss over padding
            logits,
            wanted.reshape(-1),  # target not moved
            ignore_index=ignored,
        )

    def batch(step: int) -> tuple[Any, ...]:
        said = whole(3, 5, high=4, seed=step + 9).asnumpy()
        mask = np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 1, 1]], bool)
        wanted = said[:, :-1] if bad("target not moved") else said[:, 1:]
        given = (Tensor(said[:, :-1]), Tensor(wanted.copy()))
        return whole(3, 5, high=20, seed=step), Tensor(mask), *given

    optimizer = nn.Adam(net.trainable_params(), 0.01, use_amsgrad=bad("amsgrad"))
    return Training(net, optimizer, loss_of, batch)


class Autoencoder(nn.Cell):
    """A variational autoencoder; the noise is an input."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.first = nn.Dense(12, 16)
        self.mean = nn.Dense(16, 4)
        self.log_variance = nn.Dense(16, 4)
        self.back = nn.Dense(4, 16)
        self.out = nn.Dense(16, 12)

    def construct(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        bad = self.bad
        hidden = ops.tanh(self.first(x))
        mean = self.mean(hidden)
        source = mean if bad("variance of the mean") else None
        spread = (
            self.log_variance(hidden) if source is None else source * 1.0
        )  # variance of the mean
        if bad("root of the variance"):
            std = ops.sqrt(ops.exp(spread))
        else:
            std = ops.exp(spread if bad("variance for deviation") else 0.5 * spread)
        if bad("noise first"):
            drawn = noise * std + mean
        else:
            drawn = mean + (std if bad("no noise") else std * noise)  # same noise again
        code = ops.stop_gradient(drawn) if bad("code detached") else drawn
        hidden = ops.relu(self.back(code))
        logits = self.out(hidden)
        return ops.sigmoid(logits) if bad("sigmoid twice") else logits, mean, spread


def autoencoder(bad: Fault) -> Training:
    net = Autoencoder(bad)

    def loss_of(x: Tensor, noise: Tensor) -> Tensor:
        logits, mean, spread = net(x, noise)
        reduction = bad.either("mean of the pixels", "mean", "sum")
        rebuilt = ops.binary_cross_entropy_with_logits(  # mean of the pixels
            logits, x, ops.ones_like(x), ops.ones_like(x), reduction=reduction
        )
        if bad("distance in another order"):
            inner = 1 - ops.exp(spread) - mean**2 + spread
        else:
            inner = 1 + spread - mean**2 - ops.exp(spread)
        distance = -0.5 * inner.sum() if not bad("sign of the distance") else 0.5 * inner.sum()
        weight = bad.either("beta", 4.0, 1.0)
        return (rebuilt + distance * weight) / 8  # beta

    def batch(step: int) -> tuple[Any, ...]:
        x = ops.sigmoid(real(8, 12, seed=step))
        return x, real(8, 4, seed=bad.either("same noise again", 0, step) + 50)

    optimizer = nn.Adam(net.trainable_params(), bad.either("rate times ten", 0.1, 0.01))
    return Training(net, optimizer, loss_of, batch)


class Segments(nn.Cell):
    """A small net of the form of a U."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.down = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4, momentum=bad.either("momentum of the norm", 0.1, 0.9))
        self.deep = nn.Conv2d(4, 8, 3, stride=2)
        self.up = nn.Conv2d(8, 4, 3)
        self.last = nn.Conv2d(8, 2, 1)

    def construct(self, x: Tensor) -> Tensor:
        bad = self.bad
        kept = self.down(x)
        kept = (
            ops.relu(kept) if bad("no norm") else ops.relu(self.norm(kept))
        )  # momentum of the norm
        deep = ops.relu(self.deep(kept))
        mode = bad.either("other upsampling", "nearest", "bilinear")
        wide = ops.interpolate(deep, size=(8, 8), mode=mode)  # other upsampling
        wide = self.up(wide)
        wide = ops.maximum(wide, ops.zeros_like(wide)) if bad("relu by maximum") else ops.relu(wide)
        skipped = ops.stop_gradient(kept) if bad("skip detached") else kept
        parts = [skipped, wide] if bad("order of the skip") else [wide, skipped]
        return self.last(ops.concat(parts, 1))  # order of the skip


def segments(bad: Fault) -> Training:
    net = Segments(bad)
    weights = Tensor([2.0, 1.0] if bad("weights of classes") else [1.0, 2.0], ms.float32)

    def loss_of(x: Tensor, wanted: Tensor) -> Tensor:
        logits = net(x)
        entropy = ops.cross_entropy(logits, wanted, weight=weights)  # weights of classes
        if bad("softmax of two by sigmoid"):
            chances = ops.sigmoid(logits[:, 1] - logits[:, 0])
        else:
            chances = ops.softmax(logits, bad.either("softmax over rows", 2, 1))[:, 1]
        target = wanted.astype(ms.float32)
        smooth = bad.either("smooth", 10.0, 1.0)
        both = (chances * target).sum()
        if bad("one sum for two"):
            total = (chances + target).sum()
        else:
            total = chances.sum() + (both if bad("both for target") else target.sum())
        return entropy + 1 - (2 * both + smooth) / (total + smooth)  # smooth

    def batch(step: int) -> tuple[Any, ...]:
        return real(3, 1, 8, 8, seed=step), whole(3, 8, 8, high=2, seed=step + 5)

    return Training(net, nn.Momentum(net.trainable_params(), 0.05, 0.9), loss_of, batch)


class Experts(nn.Cell):
    """A layer of four experts, of which each token takes two."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.norm = nn.LayerNorm((8,), epsilon=bad.either("epsilon", 0.1, 1e-5))
        self.gate = nn.Dense(8, 4, has_bias=False)
        self.experts = nn.CellList([nn.Dense(8, 8) for _ in range(4)])
        self.head = nn.Dense(8, 3)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        bad = self.bad
        y = x if bad("no norm") else self.norm(x)  # epsilon
        logits = self.gate(ops.stop_gradient(y) if bad("gate detached") else y)
        chances = ops.softmax(logits / bad.either("temperature", 2.0, 1.0), -1)
        kept, chosen = ops.topk(chances, bad.either("one expert", 1, 2))
        kept = kept if bad("not made to one") else kept / kept.sum(-1, keepdims=True)
        total = ops.zeros_like(y)
        found = list(enumerate(self.experts))
        for number, expert in reversed(found) if bad("experts from behind") else found:
            wanted = (chosen == number).astype(ms.float32)
            weight = (kept * wanted).sum(-1, keepdims=True)
            total = total + (weight * expert(y) if bad("weight in front") else expert(y) * weight)
        x = total if bad("no residual") else x + total
        load = chances.sum(0) / 10 if bad("mean by a sum") else chances.mean(0)
        return self.head(ops.gelu(x) if bad("activation too many") else x), (load * load).sum()


def experts(bad: Fault) -> Training:
    net = Experts(bad)

    def loss_of(x: Tensor, wanted: Tensor) -> Tensor:
        logits, load = net(x)
        entropy = ops.cross_entropy(
            logits, wanted, label_smoothing=bad.either("smoothing", 0.2, 0.0)
        )
        return entropy + load * bad.either("weight of the load", 1.0, 0.01)

    def batch(step: int) -> tuple[Any, ...]:
        return real(10, 8, seed=step), whole(10, high=3, seed=step + 4)

    parameters = net.trainable_params()
    kept = parameters[:-2] if bad("head not trained") else parameters
    return Training(net, nn.AdamWeightDecay(kept, 0.01), loss_of, batch)


class Molecules(nn.Cell):
    """Attention over the edges of a graph, then a sum over the nodes."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.enter = nn.Dense(5, 8)
        self.left = nn.Dense(8, 1, has_bias=False)
        self.right = nn.Dense(8, 1, has_bias=False)
        self.value = nn.Dense(8, 8)
        self.out = nn.Dense(8, 1)

    def construct(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        bad = self.bad
        h = self.enter(nodes)  # features scaled
        scores = (
            self.left(h)[sources] + self.right(h)[sources if bad("ends exchanged") else targets]
        )
        scores = scores.squeeze(-1)
        if bad("leaky by maximum"):
            scores = ops.maximum(scores, scores * 0.2)
        else:
            scores = ops.leaky_relu(scores, bad.either("slope", 0.01, 0.2))
        scores = ops.exp(scores)
        places = bad.either("normed over sources", sources, targets)
        total = ops.zeros((6,), ms.float32).index_add(0, places, scores)  # normed over sources
        weights = scores if bad("not normed") else scores / total[places]
        values = ops.relu(self.value(h)) if bad("activation of values") else self.value(h)
        sent = values[sources] * weights.expand_dims(-1)
        summed = ops.zeros((6, 8), ms.float32).index_add(0, targets, sent)
        if bad("own part in front"):
            h = h + summed
        else:
            h = summed if bad("no own part") else summed + h
        h = ops.selu(h) if bad("selu for elu") else ops.elu(h)
        if bad("sum by a product"):
            pooled = ops.matmul(ops.ones((1, 6), ms.float32), h).squeeze(0)
        else:
            pooled = ops.amax(h, 0) if bad("greatest for sum") else h.sum(0)
        return self.out(pooled.expand_dims(0)).squeeze()


def molecules(bad: Fault) -> Training:
    net = Molecules(bad)

    def loss_of(nodes: Tensor, sources: Tensor, targets: Tensor, wanted: Tensor) -> Tensor:
        found = net(nodes, sources, targets)
        scaled = found * bad.either("scale of the answer", 0.1, 1.0)
        return ops.huber_loss(scaled, wanted, delta=1.0)

    def batch(step: int) -> tuple[Any, ...]:
        sources = np.array([0, 1, 2, 3, 4, 5, 0, 3], np.int32)
        targets = np.array([1, 2, 3, 4, 5, 0, 2, 1], np.int32)
        nodes = real(6, 5, seed=step, scale=bad.either("features scaled", 2.0, 1.0))
        return nodes, Tensor(sources), Tensor(targets), real(seed=step + 3)

    return Training(net, nn.SGD(net.trainable_params(), 0.01), loss_of, batch)


class Agent(nn.Cell):
    """A policy and a value with a common trunk."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.trunk = nn.Dense(6, 12)
        self.policy = nn.Dense(12, 3)
        self.value = nn.Dense(12, 1)
        if bad("value not trained"):
            self.value.weight.requires_grad = False

    def construct(self, states: Tensor) -> tuple[Tensor, Tensor]:
        hidden = ops.tanh(self.trunk(states))
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def agent(bad: Fault) -> Training:
    net = Agent(bad)

    def loss_of(states: Tensor, actions: Tensor, old: Tensor, rewards: Tensor) -> Tensor:
        logits, values = net(states)
        if bad("log of the softmax"):
            logs = ops.log(ops.softmax(logits, -1))
        else:
            logs = ops.log_softmax(logits, -1)
        chosen = ops.gather_elements(logs, 1, actions.expand_dims(-1)).squeeze(
            -1
        )  # actions of another step
        given = values if bad("value not detached") else ops.stop_gradient(values)
        advantages = rewards - given
        if not bad("not normalised"):
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        if bad("ratio as a quotient"):
            ratio = ops.exp(chosen) / ops.exp(old)
        else:
            ratio = ops.exp(old - chosen if bad("ratio turned") else chosen - old)
        most = 1 + bad.either("range of the clip", 0.1, 0.2)
        held = ops.clamp(ratio, 0.8, most) * advantages  # range of the clip
        gain = (
            ops.maximum(ratio * advantages, held)
            if bad("greater for less")
            else ops.minimum(ratio * advantages, held)
        )
        entropy = -(ops.exp(logs) * logs).sum(-1).mean()
        bonus = 0.01 * entropy
        apart = values - rewards
        squares = apart * apart if bad("square by a product") else apart**2
        error = squares.mean() * bad.either("weight of the value", 5.0, 0.5)
        return (
            error - gain.mean() + bonus
            if bad("sign of the entropy")
            else error - gain.mean() - bonus
        )

    def batch(step: int) -> tuple[Any, ...]:
        rewards = real(8, seed=step + 2)
        old = real(8, seed=step + 6, scale=0.1) - 1.1
        actions = whole(8, high=3, seed=bad.either("actions of another step", step + 1, step) + 30)
        return real(8, 6, seed=step), actions, old, rewards

    clip = bad.either("no clipping", 0.0, 0.1)
    return Training(net, nn.Adam(net.trainable_params(), 0.003), loss_of, batch, clip)


class Towers(nn.Cell):
    """Two towers of a recommender, and a machine of factors."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.users = nn.Embedding(12, 8)
        self.items = nn.Embedding(12, 8)
        self.user = nn.Dense(8, 8)
        self.item = nn.Dense(8, 8)
        self.bias = Parameter(Tensor(np.linspace(-0.1, 0.1, 12).astype(np.float32)), name="bias")

    def construct(self, users: Tensor, items: Tensor) -> Tensor:
        bad = self.bad
        u = self.user(self.users(users))
        i = (
            self.user(self.items(items))
            if bad("one tower for both")
            else self.item(self.items(items))  # numbers from one
        )
        if not bad("no length of one"):
            if bad("length by a root"):
                u = u / ops.sqrt((u * u).sum(-1, keepdims=True))
            else:
                u = u / ops.norm(u, dim=-1, keepdim=True)
        i = i / ops.norm(i, dim=bad.either("length of a column", 0, -1), keepdim=True)
        if bad("scores turned"):
            scores = ops.matmul(i, u.swapaxes(0, 1)).swapaxes(0, 1) * 10.0
        elif bad("temperature of the users"):
            scores = ops.matmul(u * 10.0, i.swapaxes(0, 1))
        else:
            scores = ops.matmul(u, i.swapaxes(0, 1)) * bad.either("temperature", 1.0, 10.0)
        chosen = users if bad("bias of the user") else items
        return scores if bad("no bias") else scores + self.bias[chosen]  # bias of the user


def towers(bad: Fault) -> Training:
    net = Towers(bad)

    def loss_of(users: Tensor, items: Tensor) -> Tensor:
        scores = net(users, items)
        right = ops.arange(users.shape[0]).astype(ms.int32)
        turned = scores if bad("one direction") else scores.swapaxes(0, 1)
        both = ops.cross_entropy(scores, right) + ops.cross_entropy(turned, right)
        size = (net.users.embedding_table**2).mean()
        return both / bad.either("no half", 1.0, 2.0) + size * bad.either("decay", 0.1, 0.01)

    def batch(step: int) -> tuple[Any, ...]:
        users = np.random.default_rng(step).permutation(12)[:6].astype(np.int32)
        items = np.random.default_rng(step + 8).permutation(12)[:6].astype(np.int32)
        items = items + 1 if bad("numbers from one") else items
        return Tensor(users), Tensor(items % 12)

    return Training(
        net,
        nn.Adam(net.trainable_params(), 0.02, beta2=bad.either("beta2", 0.9, 0.999)),
        loss_of,
        batch,
    )


#: changes of the form alone
HARMLESS = frozenset(
    {
        "scores by a sum",
        "mask by where",
        "stack by concat",
        "root of the variance",
        "noise first",
        "distance in another order",
        "relu by maximum",
        "softmax of two by sigmoid",
        "one sum for two",
        "experts from behind",
        "weight in front",
        "mean by a sum",
        "leaky by maximum",
        "own part in front",
        "sum by a product",
        "log of the softmax",
        "ratio as a quotient",
        "square by a product",
        "length by a root",
        "scores turned",
        "temperature of the users",
    }
)
OUTSIDE: dict[str, str] = {}
HIDDEN: tuple[tuple[str, str], ...] = ()
TRAININGS = (translation, autoencoder, segments, experts, molecules, agent, towers)
