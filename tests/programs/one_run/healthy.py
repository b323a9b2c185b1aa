# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Forty healthy trainings, in which `probe check RUN` must name no fault."""

from __future__ import annotations

import importlib

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, amp, nn, ops

from tests.programs.mutants import decoders, nets as zoo
from tests.programs.one_run import loop
from tests.programs.origins import models
from tests.support import nets as support

_ENTROPY = nn.CrossEntropyLoss()


def _adam(net, rate=1e-3, **more):
    return nn.Adam(net.trainable_params(), rate, **more)


def _momentum(net, rate=0.05):
    return nn.Momentum(net.trainable_params(), rate, 0.9, weight_decay=1e-4)


def _classify(debugger, net, data, optimizer=None, loss=_ENTROPY, **around):
    net.set_train()
    loop.run(debugger, net, lambda x, y: loss(net(x), y), optimizer or _adam(net), data, **around)


def digits(debugger):
    _classify(debugger, models.Digits(""), loop.digits(), steps=3)


def digits_momentum(debugger):
    net = support.Digits()
    _classify(debugger, net, loop.digits(), _momentum(net))


def lenet(debugger):
    data = [(ops.interpolate(x, size=(32, 32), mode="nearest"), y) for x, y in loop.digits()[:8]]
    net = support.LeNet()
    _classify(debugger, net, data, _momentum(net, 0.01))


def gpt(debugger):
    _classify(debugger, models.Gpt(""), loop.sentences(), edit=loop.clip(1.0))


def gpt_float16(debugger):
    net = models.Gpt("").to_float(ms.float16)
    _classify(
        debugger,
        net,
        loop.sentences(),
        scaler=amp.DynamicLossScaler(2.0**10, 2, 50),
        loss=lambda x, y: _ENTROPY(x.astype(ms.float32), y),
    )


def gpt_recompute(debugger):
    net = models.Gpt("")
    for block in net.blocks:
        block.recompute()
    _classify(debugger, net, loop.sentences())


def gpt_accumulated(debugger):
    _classify(debugger, models.Gpt(""), loop.sentences(), accumulate=2)


def gpt_padded(debugger):
    data = []
    for x, y in loop.sentences():
        labels = y.asnumpy().copy()
        labels[::3] = -100
        data.append((x, Tensor(labels)))
    _classify(
        debugger, models.Gpt(""), data, loss=lambda x, y: ops.cross_entropy(x, y, ignore_index=-100)
    )


def gpt_groups(debugger):
    net = models.Gpt("")
    plain = [p for p in net.trainable_params() if p.ndim < 2]
    rest = [p for p in net.trainable_params() if p.ndim >= 2]
    groups = [{"params": rest, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    _classify(debugger, net, loop.sentences(), nn.AdamWeightDecay(groups, 1e-3))


class _Tied(nn.Cell):
    """The weight of the embedding is that of the head."""

    def __init__(self):
        super().__init__()
        self.body = models.Gpt("")
        self.body.head = nn.Identity()
        self.body.vocabulary = 32

    def construct(self, tokens):
        x = self.body(tokens)
        return ops.matmul(x, self.body.tokens.embedding_table.T)


def gpt_tied(debugger):
    _classify(debugger, _Tied(), loop.sentences())


def lstm(debugger):
    net = zoo.Lstm()
    _classify(debugger, net, loop.tokens(), edit=loop.clip(5.0))


def bert(debugger):
    _classify(debugger, zoo.Bert(), loop.tokens())


def llama(debugger):
    _classify(
        debugger, decoders.Decoder(), loop.tokens(), loss=nn.CrossEntropyLoss(label_smoothing=0.1)
    )


def experts(debugger):
    net = decoders.Decoder(experts=4, layers=1)
    _classify(debugger, net, loop.tokens(), decoders.OwnAdam(net.trainable_params()))


def joint_gan(debugger):
    net = zoo.Dcgan()
    source = loop.rng(2)
    data = [
        (
            Tensor(source.randn(4, 8, 16, 16).astype(np.float32)),
            Tensor(source.randint(0, 5, 4).astype(np.int32)),
        )
        for _ in range(4)
    ]
    _classify(debugger, net, data, _momentum(net))


class _Gan(nn.Cell):
    def __init__(self):
        super().__init__()
        self.generator = nn.SequentialCell(
            nn.Dense(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dense(24, 10), nn.Tanh()
        )
        self.critic = nn.SequentialCell(nn.Dense(10, 24), nn.LeakyReLU(0.2), nn.Dense(24, 1))


def _gan(debugger, every, bounded):
    net = _Gan()
    net.set_train()
    on_generator = nn.Adam(net.generator.trainable_params(), 2e-4, beta1=0.5)
    on_critic = nn.Adam(net.critic.trainable_params(), 2e-4, beta1=0.5)
    entropy = nn.BCEWithLogitsLoss()

    def critic_loss(real, noise):
        fake = ops.stop_gradient(net.generator(noise))
        if bounded:
            return net.critic(fake).mean() - net.critic(real).mean()
        a, b = net.critic(real), net.critic(fake)
        return entropy(a, ops.ones_like(a)) + entropy(b, ops.zeros_like(b))

    def generator_loss(noise):
        made = net.critic(net.generator(noise))
        return -made.mean() if bounded else entropy(made, ops.ones_like(made))

    for_critic = ms.value_and_grad(critic_loss, None, on_critic.parameters)
    for_generator = ms.value_and_grad(generator_loss, None, on_generator.parameters)
    source = loop.rng(1)
    for step in range(3):
        real = Tensor(np.tanh(source.randn(16, 10)).astype(np.float32))
        noise = Tensor(source.randn(16, 6).astype(np.float32))
        debugger.start(net)
        on_critic(for_critic(real, noise)[1])
        if bounded:
            for parameter in net.critic.trainable_params():
                parameter.set_data(ops.clamp(parameter, -0.05, 0.05))
        if step % every == 0:
            on_generator(for_generator(noise)[1])
        debugger.stop()
        debugger.step()


def gan(debugger):
    _gan(debugger, 1, False)


def wasserstein(debugger):
    _gan(debugger, 5, True)


class _Autoencoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encode = nn.SequentialCell(nn.Dense(64, 24), nn.ReLU(), nn.Dense(24, 8))
        self.decode = nn.SequentialCell(nn.Dense(8, 24), nn.ReLU(), nn.Dense(24, 64), nn.Sigmoid())

    def construct(self, x):
        return self.decode(self.encode(x))


def _flat_digits():
    return [(x.reshape(32, 64), y) for x, y in loop.digits()]


def autoencoder(debugger):
    _classify(debugger, _Autoencoder(), [(x, x) for x, _ in _flat_digits()], loss=nn.MSELoss())


def autoencoder_entropy(debugger):
    _classify(debugger, _Autoencoder(), [(x, x) for x, _ in _flat_digits()], loss=nn.BCELoss())


class _Variational(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encode = nn.SequentialCell(nn.Dense(64, 24), nn.ReLU())
        self.mean, self.spread = nn.Dense(24, 4), nn.Dense(24, 4)
        self.decode = nn.SequentialCell(nn.Dense(4, 24), nn.ReLU(), nn.Dense(24, 64))

    def construct(self, x):
        hidden = self.encode(x)
        mean, spread = self.mean(hidden), self.spread(hidden)
        drawn = mean + ops.exp(0.5 * spread) * ops.randn_like(mean)
        return self.decode(drawn), mean, spread


def variational(debugger):
    net = _Variational()

    def loss(x, _):
        made, mean, spread = net(x)
        divergence = -0.5 * (1 + spread - mean**2 - ops.exp(spread)).sum(1).mean()
        return (
            ops.binary_cross_entropy_with_logits(made, x, ops.ones_like(x), ops.ones_like(x)) * 64
            + divergence
        )

    net.set_train()
    loop.run(debugger, net, loss, _adam(net), _flat_digits())


class _Regression(nn.Cell):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.first, self.norm, self.second = nn.Dense(6, 16), nn.LayerNorm((16,)), nn.Dense(16, 1)
        self.drop = nn.Dropout(p=dropout)

    def construct(self, x):
        return self.second(self.drop(ops.gelu(self.norm(self.first(x)))))


def regression(debugger):
    net = _Regression()
    _classify(debugger, net, loop.points(), nn.SGD(net.trainable_params(), 0.05), nn.MSELoss())


def regression_huber(debugger):
    _classify(debugger, _Regression(0.2), loop.points(), loss=nn.HuberLoss())


def regression_clipped(debugger):
    net = _Regression()
    _classify(
        debugger,
        net,
        loop.points(),
        nn.RMSProp(net.trainable_params(), 1e-3),
        nn.L1Loss(),
        edit=loop.clip(0.1),
    )


def _next(x):
    return ops.concat((x[1:], x[:1]))


def siamese(debugger):
    net = nn.SequentialCell(nn.Dense(64, 24), nn.ReLU(), nn.Dense(24, 8))

    def loss(x, y):
        a, b = net(x), net(_next(x))
        same = (y == _next(y)).astype(ms.float32)
        far = ops.sqrt(((a - b) ** 2).sum(1) + 1e-6)
        return (same * far**2 + (1 - same) * ops.relu(1.0 - far) ** 2).mean()

    net.set_train()
    loop.run(debugger, net, loss, _adam(net), _flat_digits())


def triplet(debugger):
    net = nn.SequentialCell(nn.Dense(64, 24), nn.Tanh(), nn.Dense(24, 8))

    def loss(x, _):
        a, b, c = net(x), net(x * 0.9), net(_next(x))
        return ops.relu(((a - b) ** 2).sum(1) - ((a - c) ** 2).sum(1) + 0.5).mean()

    net.set_train()
    loop.run(debugger, net, loss, _adam(net), _flat_digits())


class _Teacher(nn.Cell):
    """A student that follows an average of itself."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = (
            nn.SequentialCell(nn.Dense(64, 24), nn.ReLU(), nn.Dense(24, 10)) for _ in range(2)
        )
        for parameter in self.teacher.get_parameters():
            parameter.requires_grad = False

    def construct(self, x):
        return self.student(x), self.teacher(x)


def teacher(debugger):
    net = _Teacher()

    def loss(x, y):
        a, b = net(x)
        return _ENTROPY(a, y) + ((a - ops.stop_gradient(b)) ** 2).mean()

    def average(step):
        for a, b in zip(net.teacher.get_parameters(), net.student.get_parameters()):
            a.set_data(0.9 * a + 0.1 * b)

    net.set_train()
    loop.run(debugger, net, loss, _adam(net), _flat_digits(), after=average)


def frozen(debugger):
    net = models.Digits("")
    for parameter in net.conv.get_parameters():
        parameter.requires_grad = False
    _classify(debugger, net, loop.digits())


def head_only(debugger):
    net = models.Digits("")
    net.set_train()
    optimizer = nn.Adam(net.out.trainable_params(), 1e-3)
    loop.run(debugger, net, lambda x, y: _ENTROPY(net(x), y), optimizer, loop.digits())


def frozen_norm(debugger):
    net = models.Digits("")
    net.set_train()
    net.norm.set_train(False)
    for parameter in net.norm.get_parameters():
        parameter.requires_grad = False
    loop.run(debugger, net, lambda x, y: _ENTROPY(net(x), y), _adam(net), loop.digits())


class _LowRank(nn.Cell):
    def __init__(self, dense):
        super().__init__()
        self.dense, rows, width = dense, *dense.weight.shape
        self.a = Parameter(
            Tensor(loop.rng(4).randn(2, width).astype(np.float32) * 0.1), name="lora_a"
        )
        self.b = Parameter(Tensor(np.zeros((rows, 2), np.float32)), name="lora_b")

    def construct(self, x):
        return self.dense(x) + ops.matmul(ops.matmul(x, self.a.T), self.b.T)


def low_rank(debugger):
    net = models.Gpt("")
    for parameter in net.get_parameters():
        parameter.requires_grad = False
    for block in net.blocks:
        block.attention.q = _LowRank(block.attention.q)
        block.attention.v = _LowRank(block.attention.v)
    net.update_parameters_name()
    _classify(debugger, net, loop.sentences())


def _model_train(debugger, net, loss, optimizer, data, **more):
    from mindspore.dataset import GeneratorDataset

    from probe import MsprobeStep

    rows = [(x.asnumpy(), y.asnumpy()) for x, y in data[:3]]
    model = ms.Model(net, loss, optimizer, **more)
    model.train(
        1,
        GeneratorDataset(rows, ["x", "y"], shuffle=False),
        callbacks=[MsprobeStep(debugger)],
        dataset_sink_mode=False,
    )


def model_digits(debugger):
    net = models.Digits("")
    _model_train(debugger, net, _ENTROPY, _adam(net), loop.digits())


def model_gpt(debugger):
    net = models.Gpt("")
    _model_train(debugger, net, _ENTROPY, _adam(net), loop.sentences())


def model_mixed(debugger):
    net = models.Digits("")
    _model_train(
        debugger,
        net,
        _ENTROPY,
        nn.Momentum(net.trainable_params(), 0.01, 0.9, loss_scale=1024.0),
        loop.digits(),
        amp_level="O2",
        loss_scale_manager=amp.FixedLossScaleManager(1024.0, drop_overflow_update=False),
    )


def mixed(debugger):
    net = amp.auto_mixed_precision(models.Digits(""), "O2")
    _classify(
        debugger, net, loop.digits(), _momentum(net, 0.01), scaler=amp.StaticLossScaler(1024.0)
    )


def evaluated(debugger):
    net = models.Digits("")
    data = loop.digits()

    def evaluate(step):
        net.set_train(False)
        net(data[-1][0])
        net.set_train(True)

    _classify(debugger, net, data, after=evaluate)


class _Segment(nn.Cell):
    def __init__(self):
        super().__init__()
        self.down = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.out = nn.Conv2d(8, 2, 1, has_bias=True)

    def construct(self, x):
        return self.out(self.down(x))


def segmentation(debugger):
    net = _Segment()
    data = [(x, (x[:, 0] > 0.5).astype(ms.int32)) for x, _ in loop.digits()]
    _classify(debugger, net, data, loss=lambda x, y: ops.cross_entropy(x, y))


def policy(debugger):
    net = nn.SequentialCell(nn.Dense(6, 16), nn.Tanh(), nn.Dense(16, 3))
    source = loop.rng(9)

    def loss(x, reward):
        chances = ops.log_softmax(net(x), -1)
        chosen = ops.argmax(chances, -1)
        taken = ops.gather_elements(chances, 1, chosen.reshape(-1, 1).astype(ms.int32))
        return -(taken.reshape(-1) * reward).mean()

    data = [(x, Tensor(source.randn(24).astype(np.float32))) for x, _ in loop.points()]
    net.set_train()
    loop.run(debugger, net, loss, _adam(net), data)


class _Small(nn.Cell):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.first, self.second = nn.Conv2d(1, 4, 3, has_bias=True), nn.Dense(4, 10)
        self.gate = Parameter(Tensor(np.ones(4, np.float32)), name="gate")
        self.unused = nn.Dense(3, 3) if kind == "unused" else nn.Identity()

    def construct(self, x):
        x = ops.relu(self.first(x))
        return self.second(ops.mean(x, (2, 3)) * self.gate)


def unused_on_purpose(debugger):
    """A part that this configuration does not use, outside of the optimizer."""
    net = _Small("unused")
    for parameter in net.unused.get_parameters():
        parameter.requires_grad = False
    _classify(debugger, net, loop.digits())


def warm_up(debugger):
    """The learning rate of the first step is 0."""
    net = models.Gpt("")
    rate = nn.WarmUpLR(1e-3, 10)
    _classify(debugger, net, loop.sentences(), nn.Adam(net.trainable_params(), rate))


MINDCV = {
    "resnet": "m.ResNet(m.BasicBlock, [1, 1, 1, 1], num_classes=5)",
    "mobilenetv3": "m.MobileNetV3('small', alpha=0.35, num_classes=5)",
    "vit": "m.VisionTransformer(image_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, num_classes=5)",
    "swintransformer": "m.SwinTransformer(32, 2, 3, 5, 12, [2, 1], [2, 4], window_size=4, drop_path_rate=0.1)",
    "convnext": "m.ConvNeXt(3, 5, [1, 1, 1, 1], [8, 12, 16, 24])",
    "mlpmixer": "m.MLPMixer(2, 8, 16, 16, 8, 24, num_classes=5)",
    "densenet": "m.DenseNet(8, (2, 2, 2), 16, num_classes=5)",
    "shufflenetv2": "m.ShuffleNetV2(model_size='0.5x', num_classes=5)",
    "squeezenet": "m.SqueezeNet('1_1', num_classes=5)",
    "ghostnet": "m.ghostnet_050(num_classes=5)",
}
_LARGE = {"squeezenet": 64, "ghostnet": 64}


def _of_mindcv(name):
    def train(debugger):
        net = eval(MINDCV[name], {"m": importlib.import_module(f"mindcv.models.{name}")})
        data = loop.pictures(size=_LARGE.get(name, 32))
        _classify(debugger, net, data, _momentum(net, 0.01))

    return train


TRAININGS = {
    function.__name__: function
    for function in (
        digits,
        digits_momentum,
        lenet,
        gpt,
        gpt_float16,
        gpt_recompute,
        gpt_accumulated,
        gpt_padded,
        gpt_groups,
        gpt_tied,
        lstm,
        bert,
        llama,
        experts,
        joint_gan,
        gan,
        wasserstein,
        autoencoder,
        autoencoder_entropy,
        variational,
        regression,
        regression_huber,
        regression_clipped,
        siamese,
        triplet,
        teacher,
        frozen,
        head_only,
        frozen_norm,
        low_rank,
        model_digits,
        model_gpt,
        model_mixed,
        mixed,
        evaluated,
        segmentation,
        policy,
        unused_on_purpose,
        warm_up,
    )
}
TRAININGS.update({f"mindcv_{name}": _of_mindcv(name) for name in MINDCV})
