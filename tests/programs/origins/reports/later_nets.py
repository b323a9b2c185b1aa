# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Seven more small trainings, written after the rules of compare were made. A fault changes one line, with its name."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from tests.programs.origins.reports.fault import Fault, Training, real, whole


class Denoiser(nn.Cell):
    """A net of a diffusion model: it tells the noise of a noisy sample and its time."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.time = nn.Dense(8, 16)
        self.enter = nn.Dense(6, 8)
        self.norm = nn.LayerNorm((8,))
        self.out = nn.Dense(8, 6)

    def encode(self, times: Tensor) -> Tensor:
        bad = self.bad
        steps = np.arange(4, dtype=np.float32)
        base = bad.either("base of the times", 100.0, 10000.0)
        rates = Tensor(np.exp(-np.log(base) * steps / 4).astype(np.float32))
        angles = times.astype(ms.float32).expand_dims(-1) * rates  # base of the times
        if bad("cosine for sine"):
            return ops.concat([ops.cos(angles), ops.cos(angles)], -1)
        return ops.concat([ops.sin(angles), ops.cos(angles)], -1)

    def construct(self, x: Tensor, times: Tensor) -> Tensor:
        bad = self.bad
        told = self.encode(times)
        if bad("silu by a product"):
            told = told * ops.sigmoid(told)
        else:
            told = ops.silu(told)
        both = self.time(told)
        if bad("halves by slices"):
            first, second = both[:, :8], both[:, 8:]
        else:
            first, second = ops.chunk(both, 2, -1)
        scale, shift = (second, first) if bad("scale and shift exchanged") else (first, second)
        h = self.enter(x)  # clean sample given
        h = self.norm(h)  # scale and shift exchanged
        if bad("shift in front"):
            h = shift + h * (scale + 1.0)
        else:
            h = (
                h * (scale if bad("no one in the scale") else 1.0 + scale) + shift
            )  # scale and shift exchanged
        h = ops.relu(h) if bad("relu for silu") else ops.silu(h)
        return self.out(h)


def denoiser(bad: Fault) -> Training:
    net = Denoiser(bad)
    betas = np.linspace(1e-3, bad.either("last beta", 0.3, 0.2), 10).astype(np.float32)

    def loss_of(x: Tensor, times: Tensor, noise: Tensor) -> Tensor:
        alphas = 1.0 - Tensor(betas)  # last beta
        if bad("product by logarithms"):
            kept = ops.exp(ops.cumsum(ops.log(alphas), 0))
        else:
            kept = alphas if bad("no product of the alphas") else ops.cumprod(alphas, 0)
        own = kept[times].expand_dims(-1)  # one time for all
        signal = own if bad("no root of the signal") else ops.sqrt(own)
        rest = 1.0 - own
        if bad("power of a half"):
            spread = ops.pow(rest, 0.5)
        else:
            spread = ops.sqrt(rest)
        noisy = signal * x + (noise if bad("noise without spread") else spread * noise)
        told = net(x if bad("clean sample given") else noisy, times)
        wanted = x if bad("sample for noise") else noise
        if bad("square by a difference"):
            return ((told - wanted) * (told - wanted)).mean()
        return ops.mse_loss(told, wanted)  # sample for noise

    def batch(step: int) -> tuple[Any, ...]:
        times = whole(5, high=10, seed=step + 3)
        if bad("one time for all"):
            times = times[:1].broadcast_to((5,))
        return real(5, 6, seed=step), times, real(5, 6, seed=step + 20)

    return Training(net, nn.AdamWeightDecay(net.trainable_params(), 0.01), loss_of, batch)


class Encoder(nn.Cell):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = nn.Dense(6, 8), nn.Dense(8, 4)

    def construct(self, x: Tensor) -> Tensor:
        return self.out(ops.relu(self.hidden(x)))


class Contrast(nn.Cell):
    """Two encoders, of which one follows the other, and a queue of keys."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.query, self.key = Encoder(), Encoder()
        for own, other in zip(self.query.get_parameters(), self.key.get_parameters()):
            other.set_data(own * 0.9)
            other.requires_grad = False
        self.queue = Parameter(real(12, 4, seed=9), name="queue", requires_grad=False)

    def normed(self, x: Tensor) -> Tensor:
        if self.bad("length by rsqrt"):
            return x * ops.rsqrt((x * x).sum(-1, keepdims=True))
        return x / ops.norm(x, dim=-1, keepdim=True)

    def construct(self, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        bad = self.bad
        if bad("encoders exchanged"):
            q, k = self.key(one), self.query(other)
        elif bad("one encoder for both"):
            q, k = self.query(one), self.query(other)
        else:
            q, k = self.query(one), self.key(other)
        q = self.normed(q)
        if bad("temperature of the queries"):
            q = q * 5.0
        k = k if bad("keys not normed") else self.normed(k)
        k = k if bad("keys not detached") else ops.stop_gradient(k)
        if bad("product by a matmul"):
            near = ops.matmul(q.expand_dims(1), k.expand_dims(2)).squeeze(2)
        else:
            near = (q * k).sum(-1, keepdims=True)
        queue = self.queue if bad("queue not normed") else self.normed(self.queue)
        if bad("far turned"):
            far = ops.matmul(queue, q.swapaxes(0, 1)).swapaxes(0, 1)
        else:
            far = ops.matmul(q, queue.swapaxes(0, 1))
        parts = [far, near] if bad("near behind") else [near, far]
        logits = ops.concat(parts, 1)  # near behind
        if bad("temperature of the queries"):
            return logits, k
        return logits / bad.either("temperature", 0.5, 0.2), k


def contrast(bad: Fault) -> Training:
    net = Contrast(bad)

    def loss_of(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        logits, keys = net(one, other)
        right = ops.zeros((one.shape[0],), ms.int32)
        if bad("entropy by logsumexp"):
            loss = (ops.logsumexp(logits, -1) - logits[:, 0]).mean()
        else:
            loss = ops.cross_entropy(
                logits, right, label_smoothing=bad.either("smoothing", 0.1, 0.0)
            )
        return loss, keys

    def batch(step: int) -> tuple[Any, ...]:
        one = real(6, 6, seed=step)
        seed = bad.either("other view the same", 0, step + 30)
        return one, one + real(6, 6, seed=seed, scale=0.1)  # other view the same

    rate = bad.either("follows too fast", 0.5, 0.1)

    def after(keys: Tensor) -> None:
        pairs = zip(net.query.get_parameters(), net.key.get_parameters())
        for own, follower in pairs:
            if bad("follows by a difference"):
                ops.assign(follower, follower + (own - follower) * 0.1)
            else:
                ops.assign(follower, follower * (1 - rate) + own * rate)  # follows too fast
        kept = net.queue[:-6] if bad("queue from behind") else net.queue[6:]
        ops.assign(net.queue, ops.concat([kept, keys], 0))

    optimizer = nn.SGD(net.trainable_params(), bad.either("rate", 0.01, 0.05))
    return Training(net, optimizer, loss_of, batch, after=after)


class Frames(nn.Cell):
    """Marks the frames of utterances with other lengths: a convolution, then a loop in both directions."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.conv = nn.Conv1d(5, 8, 3, pad_mode="pad", padding=1)
        self.norm = nn.LayerNorm((8,), epsilon=bad.either("epsilon", 1e-2, 1e-6))
        self.forth, self.back = nn.GRUCell(8, 6), nn.GRUCell(8, 6)
        self.out = nn.Dense(12, 4)

    def loop(self, cell: nn.Cell, x: Tensor, mask: Tensor, order: Any) -> Tensor:
        state = ops.zeros((x.shape[0], 6), ms.float32)
        found: dict[int, Tensor] = {}
        for place in order:
            own = mask[:, place].expand_dims(-1)
            new = cell(x[:, place], state)
            if self.bad("state by a product"):
                state = own * new + (1 - own) * state
            elif self.bad("state goes on"):
                state = new
            else:
                state = state + own * (new - state)
            found[place] = state
        if self.bad("stack by concat"):
            return ops.concat([found[place].expand_dims(1) for place in sorted(found)], 1)
        return ops.stack([found[place] for place in sorted(found)], 1)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        bad = self.bad
        x = ops.log(x + 1) if bad("one in the logarithm") else ops.log(x + 1e-6)  # power
        h = self.conv(x.swapaxes(1, 2)).swapaxes(1, 2)
        h = ops.gelu(self.norm(h))  # epsilon
        if not bad("frames not masked"):
            if bad("mask by where"):
                h = ops.where(mask.expand_dims(-1) > 0, h, ops.zeros_like(h))
            else:
                h = h * mask.expand_dims(-1)
        places = range(h.shape[1])
        forth = self.loop(self.forth, h, mask, places)
        behind = places if bad("both forth") else reversed(places)
        back = self.loop(self.back, h, mask, behind)  # both forth
        pair = (back, forth) if bad("halves exchanged") else (forth, back)
        return self.out(ops.concat(pair, -1))  # halves exchanged


def frames(bad: Fault) -> Training:
    net = Frames(bad)

    def loss_of(x: Tensor, mask: Tensor, wanted: Tensor) -> Tensor:
        logits = net(x, mask)
        if bad("logarithm of two parts"):
            logs = logits - ops.logsumexp(logits, -1, True)
        else:
            logs = ops.log_softmax(logits, bad.either("softmax over frames", 1, -1))
        own = -ops.gather_elements(logs, 2, wanted.expand_dims(-1)).squeeze(-1)
        if bad("mean over padding"):
            return (own * mask).mean()
        if bad("sum by a dot"):
            return ops.matmul(own.reshape(-1), mask.reshape(-1)) / mask.sum()
        return (own * mask).sum() / mask.sum()  # mask too long

    def batch(step: int) -> tuple[Any, ...]:
        lengths = np.array([5, 3, 4]) + bad.either("mask too long", 1, 0)
        mask = (np.arange(6) < lengths[:, None]).astype(np.float32)
        x = np.abs(np.random.default_rng(step).normal(size=(3, 6, 5))).astype(np.float32)
        power = x if bad("power") else x**2
        return Tensor(power), Tensor(mask), whole(3, 6, high=4, seed=step + 7)

    return Training(net, nn.Adam(net.trainable_params(), 0.01), loss_of, batch)


class Player(nn.Cell):
    """The values of the actions, of a net and of its copy."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.own, self.copy = Encoder(), Encoder()
        for new, old in zip(self.own.get_parameters(), self.copy.get_parameters()):
            old.set_data(new * bad.either("copy not equal", -0.8, -0.9))  # copy not equal
            old.requires_grad = False

    def construct(self, states: Tensor) -> Tensor:
        return self.own(states)


def player(bad: Fault) -> Training:
    net = Player(bad)

    def loss_of(
        states: Tensor, actions: Tensor, rewards: Tensor, following: Tensor, done: Tensor
    ) -> Tensor:
        values = net(states)
        if bad("taken by one hot"):
            taken = (values * ops.one_hot(actions, 4, Tensor(1.0), Tensor(0.0))).sum(-1)
        else:
            taken = ops.gather_elements(values, 1, actions.expand_dims(-1)).squeeze(-1)
        later = net.own(following) if bad("no copy") else net.copy(following)
        if bad("greatest of the copy"):
            best = ops.amax(later, -1)
        else:
            chosen = net.own(following).argmax(-1)
            if bad("best by one hot"):
                best = (later * ops.one_hot(chosen, 4, Tensor(1.0), Tensor(0.0))).sum(-1)
            else:
                best = ops.gather_elements(later, 1, chosen.expand_dims(-1)).squeeze(-1)
        best = best if bad("target not detached") else ops.stop_gradient(best)  # no copy
        discount = bad.either("discount", 0.9, 0.99)
        if bad("done not asked"):
            coming = best * discount
        elif bad("done by where"):
            coming = ops.where(done > 0, ops.zeros_like(best), best * discount)
        else:
            coming = best * discount * (1 - done)  # discount
        if bad("reward behind"):
            target = coming + rewards
        else:
            target = (ops.clamp(rewards, -1, 1) if bad("reward held") else rewards) + coming
        if bad("huber by hand"):
            size = ops.abs(taken - target)
            small = ops.minimum(size, Tensor(1.0))
            return (small * (size - 0.5 * small)).mean()
        return ops.huber_loss(taken, target, delta=bad.either("delta", 0.1, 1.0))

    def batch(step: int) -> tuple[Any, ...]:
        done = Tensor(np.array([0, 1, 0, 0, 1, 0, 0], np.float32))
        states, following = real(7, 6, seed=step), real(7, 6, seed=step + 40)
        actions = whole(7, high=4, seed=step + 1)
        return states, actions, real(7, seed=step + 2, scale=2.0), following, done

    rate = bad.either("momentum", 0.0, 0.9)
    return Training(net, nn.Momentum(net.trainable_params(), 0.05, rate), loss_of, batch)


class Crosses(nn.Cell):
    """Crosses of features beside a deep part, as of advertisements."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.tables = nn.CellList([nn.Embedding(9, 4) for _ in range(3)])
        self.crosses = nn.CellList([nn.Dense(14, 14) for _ in range(2)])
        self.deep = nn.Dense(14, 8)
        self.out = nn.Dense(22, 1, bias_init=Tensor([-0.05]))

    def construct(self, words: Tensor, numbers: Tensor) -> Tensor:
        bad = self.bad
        columns = [words[:, place] for place in range(3)]
        if bad("columns exchanged"):
            columns[0], columns[1] = columns[1], columns[0]
        found = [table(column) for table, column in zip(self.tables, columns)]  # columns exchanged
        if bad("tables by a stack"):
            wide = ops.stack(found, 1).reshape(words.shape[0], 12)
        else:
            wide = ops.concat(found, 1)
        if bad("logarithm of one more"):
            numbers = ops.log(1 + numbers)
        else:
            numbers = numbers if bad("no logarithm") else ops.log1p(numbers)
        first = ops.concat([wide, numbers], 1)  # no logarithm
        x = first
        for cross in self.crosses:
            if bad("cross with itself"):
                x = x * cross(x) + x
            elif bad("sum in front"):
                x = x + first * cross(x)
            elif bad("no residual"):
                x = first * cross(x)
            else:
                x = first * cross(x) + x
        deep = self.deep(x if bad("deep behind the crosses") else first)
        deep = ops.tanh(deep) if bad("tanh for relu") else ops.relu(deep)
        return self.out(ops.concat([x, deep], 1)).squeeze(-1)


def crosses(bad: Fault) -> Training:
    net = Crosses(bad)
    weight = Tensor(bad.either("weight of the clicks", 1.0, 3.0), ms.float32)

    def loss_of(words: Tensor, numbers: Tensor, clicks: Tensor) -> Tensor:
        logits = net(words, numbers)
        if bad("softplus by hand"):
            near = ops.relu(-logits) + ops.log1p(ops.exp(-ops.abs(logits)))
        else:
            near = ops.softplus(-logits)
        far = near + logits
        own = clicks * near * weight + (1 - clicks) * far  # weight of the clicks
        if bad("mean by a division"):
            loss = own.sum() / own.shape[0]
        else:
            loss = own.sum() if bad("sum for mean") else own.mean()
        tables = [table.embedding_table for table in net.tables]
        kept = tables[:2] if bad("one table without decay") else tables
        sizes = [(table * table).sum() for table in kept]  # one table without decay
        sizes = sizes[::-1] if bad("sizes from behind") else sizes
        size = sum(sizes[1:], sizes[0])  # one table without decay
        return loss + size * bad.either("decay", 0.01, 0.001)

    def batch(step: int) -> tuple[Any, ...]:
        numbers = np.abs(np.random.default_rng(step).normal(size=(8, 2))).astype(np.float32)
        clicks = whole(8, high=2, seed=step + 2).astype(ms.float32)
        return whole(8, 3, high=9, seed=step), Tensor(numbers), clicks

    parameters = net.trainable_params()
    return Training(net, nn.Adagrad(parameters, learning_rate=0.02), loss_of, batch)


class Decoder(nn.Cell):
    """A block of a language model: rotated places, shared heads of keys, a gate."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.words = nn.Embedding(16, 16)
        self.scale = Parameter(ops.ones((16,), ms.float32), name="scale")
        self.q, self.kv = nn.Dense(16, 16, has_bias=False), nn.Dense(16, 16, has_bias=False)
        self.o = nn.Dense(16, 16, has_bias=False)
        self.gate, self.up = nn.Dense(16, 24), nn.Dense(16, 24)
        self.down = nn.Dense(24, 16)

    def norm(self, x: Tensor) -> Tensor:
        bad = self.bad
        small = bad.either("epsilon of the norm", 1e-2, 1e-6)
        size = (x * x).mean(-1, keep_dims=True) + small  # epsilon of the norm
        if bad("division by a root"):
            return x / ops.sqrt(size) * self.scale
        return x * ops.rsqrt(size) * self.scale

    def rotated(self, x: Tensor) -> Tensor:
        bad = self.bad
        places = np.arange(x.shape[2]) + bad.either("places from one", 1, 0)
        base = bad.either("base", 500.0, 10000.0)
        angles = places[:, None] * base ** -(np.arange(2) / 2)
        cos, sin = (Tensor(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        one, two = ops.chunk(x, 2, -1)
        if bad("turned the other way"):
            return ops.concat([one * cos + two * sin, two * cos - one * sin], -1)
        if bad("products in front"):
            return ops.concat([cos * one - sin * two, sin * one + cos * two], -1)
        return ops.concat([one * cos - two * sin, two * cos + one * sin], -1)

    def attend(self, x: Tensor) -> Tensor:
        bad = self.bad
        q = self.q(x).reshape(2, 5, 4, 4).swapaxes(1, 2)
        k, v = ops.chunk(self.kv(x), 2, -1)
        k = k.reshape(2, 5, 2, 4).swapaxes(1, 2)
        v = v.reshape(2, 5, 2, 4).swapaxes(1, 2)
        q = q if bad("queries not turned") else self.rotated(q)  # places from one
        k = self.rotated(k)  # base
        if bad("keys tiled"):
            k = ops.tile(k, (1, 2, 1, 1))
        else:
            k = ops.repeat_interleave(k, 2, 1)
        v = ops.repeat_interleave(v, 2, 1)
        if bad("queries scaled"):
            scores = ops.matmul(q * 0.5, k.swapaxes(2, 3))
        else:
            turned = k.transpose(0, 1, 3, 2) if bad("axes by transpose") else k.swapaxes(2, 3)
            scores = ops.matmul(q, turned) * bad.either("scale of the scores", 1.0, 0.5)
        later = np.triu(np.ones((5, 5), bool), bad.either("mask sees one", 2, 1))
        if bad("mask by a sum"):
            scores = scores + Tensor(np.where(later, -1e9, 0).astype(np.float32))
        else:
            scores = ops.masked_fill(scores, Tensor(later), -1e9)  # mask sees one
        seen = ops.matmul(ops.softmax(scores, -1), v)
        return self.o(seen.swapaxes(1, 2).reshape(2, 5, 16))

    def construct(self, words: Tensor) -> Tensor:
        bad = self.bad
        x = self.words(words)
        x = x + self.attend(x if bad("no norm before") else self.norm(x))
        y = self.norm(x)
        gate, up = (self.up, self.gate) if bad("gate and up exchanged") else (self.gate, self.up)
        opened = gate(y)  # gate and up exchanged
        opened = (
            opened * ops.sigmoid(opened) if bad("silu by hand") else ops.silu(opened)
        )  # gate and up exchanged
        further = self.down(opened * up(y))
        x = further + x if bad("residual behind") else x + further
        return ops.matmul(self.norm(x), self.words.embedding_table.swapaxes(0, 1))


def decoder(bad: Fault) -> Training:
    net = Decoder(bad)

    def loss_of(words: Tensor, following: Tensor) -> Tensor:
        logits = net(words).reshape(-1, 16)
        if bad("logits held"):
            logits = ops.clamp(logits, -0.1, 0.1)
        return ops.cross_entropy(
            logits, following.reshape(-1), ignore_index=3
        )  # words for the next

    def batch(step: int) -> tuple[Any, ...]:
        words = whole(2, 6, high=16, seed=step + 1)
        return words[:, :-1], words[:, :-1] if bad("words for the next") else words[:, 1:]

    return Training(net, nn.AdamWeightDecay(net.trainable_params(), 0.005), loss_of, batch)


class Flow(nn.Cell):
    """Two couplings of a normalising flow."""

    def __init__(self, bad: Fault) -> None:
        super().__init__()
        self.bad = bad
        self.nets = nn.CellList(
            [nn.SequentialCell(nn.Dense(3, 8), nn.Tanh(), nn.Dense(8, 6)) for _ in range(2)]
        )

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        bad = self.bad
        if bad("sample by slices"):
            left, right = x[:, :3], x[:, 3:]
        else:
            left, right = ops.chunk(x, 2, -1)  # sample turned
        total = ops.zeros((x.shape[0],), ms.float32)
        for number, net in enumerate(self.nets):
            scale, shift = ops.chunk(net(left), 2, -1)  # halves not exchanged
            scale = scale if bad("scale not held") else ops.tanh(scale)
            if bad("division by exp"):
                right = (right - shift) / ops.exp(scale)
            elif bad("shift behind"):
                right = right * ops.exp(-scale) - shift
            else:
                right = (right - shift) * ops.exp(-scale)
            if bad("sum with a sign"):
                total = total + (-scale).sum(-1)
            else:
                total = total + scale.sum(-1) if bad("sign of the sum") else total - scale.sum(-1)
            if not (bad("halves not exchanged") and number == 0):
                left, right = right, left
        return ops.concat([left, right], -1), total  # halves not exchanged


def flow(bad: Fault) -> Training:
    net = Flow(bad)
    constant = bad.either("constant", 2.0, float(0.5 * np.log(2 * np.pi)))

    def loss_of(x: Tensor) -> Tensor:
        code, total = net(x)
        square = code if bad("not squared") else code * code
        if bad("half of the sum"):
            prior = -0.5 * square.sum(-1) - constant * 6
        elif bad("prior by a mean"):
            prior = (-0.5 * square - constant).mean(-1)
        else:
            prior = (-0.5 * square - constant).sum(-1)  # constant
        likely = prior if bad("no volume") else prior + total
        if bad("mean of the negative"):
            return (-likely).mean()
        return likely.mean() if bad("sign of the loss") else -likely.mean()

    def batch(step: int) -> tuple[Any, ...]:
        x = real(9, 6, seed=step)
        return (x[:, ::-1] if bad("sample turned") else x,)

    rate = bad.either("rate of the flow", 0.1, 0.01)
    return Training(net, nn.Adam(net.trainable_params(), rate), loss_of, batch)


#: changes of the form alone
HARMLESS = frozenset(
    {
        "silu by a product",
        "shift in front",
        "product by logarithms",
        "power of a half",
        "square by a difference",
        "length by rsqrt",
        "product by a matmul",
        "far turned",
        "entropy by logsumexp",
        "follows by a difference",
        "state by a product",
        "mask by where",
        "logarithm of two parts",
        "sum by a dot",
        "taken by one hot",
        "done by where",
        "reward behind",
        "huber by hand",
        "tables by a stack",
        "sum in front",
        "softplus by hand",
        "mean by a division",
        "sizes from behind",
        "division by a root",
        "products in front",
        "queries scaled",
        "mask by a sum",
        "silu by hand",
        "division by exp",
        "sum with a sign",
        "half of the sum",
        "mean of the negative",
        "keys not detached",  # nothing below them is trained
        "frames not masked",  # the loop masks them too
        "halves by slices",
        "temperature of the queries",
        "stack by concat",
        "best by one hot",
        "logarithm of one more",
        "residual behind",
        "axes by transpose",
        "sample by slices",
    }
)
#: a fault that changes a value from outside -> the kind of its finding, which stands where the value is used
OUTSIDE = {
    "other view the same": "data",
    "mask too long": "data",
    "copy not equal": "parameter",
    "base": "outside value",
}
#: a change of the form with a small fault beside it, or in the calls that it feeds
HIDDEN = (
    ("shift in front", "relu for silu"),
    ("silu by a product", "cosine for sine"),
    ("power of a half", "noise without spread"),
    ("product by logarithms", "no root of the signal"),
    ("length by rsqrt", "temperature"),
    ("far turned", "queue not normed"),
    ("product by a matmul", "keys not normed"),
    ("mask by where", "both forth"),
    ("state by a product", "one in the logarithm"),
    ("logarithm of two parts", "mean over padding"),
    ("taken by one hot", "reward held"),
    ("done by where", "delta"),
    ("huber by hand", "no copy"),
    ("tables by a stack", "tanh for relu"),
    ("softplus by hand", "sum for mean"),
    ("mean by a division", "one table without decay"),
    ("division by a root", "no norm before"),
    ("queries scaled", "mask sees one"),
    ("mask by a sum", "scale of the scores"),
    ("silu by hand", "gate and up exchanged"),
    ("division by exp", "sign of the sum"),
    ("half of the sum", "no volume"),
    ("mean of the negative", "not squared"),
)
TRAININGS = (denoiser, contrast, frames, player, crosses, decoder, flow)
