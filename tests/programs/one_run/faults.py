# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults of one run, over four nets: a convnet, a decoder, an LSTM and a small regression."""

from __future__ import annotations

from typing import NamedTuple

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, amp, nn, ops

from tests.programs.one_run import loop
from tests.programs.origins import models

_ENTROPY = nn.CrossEntropyLoss()


def _train(debugger, net, data, loss=_ENTROPY, optimizer=None, **around):
    if around.pop("trains", True):
        net.set_train()
    optimizer = optimizer or nn.Adam(net.trainable_params(), 1e-3)
    loop.run(debugger, net, lambda x, y: loss(net(x), y), optimizer, data, **around)


class Digits(nn.Cell):
    """A convnet whose construct has a place for a change."""

    def __init__(self, change=""):
        super().__init__()
        self.change = change
        self.conv = nn.Conv2d(1, 8, 3, pad_mode="same", has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.pool, self.flatten, self.drop = nn.AvgPool2d(2, 2), nn.Flatten(), nn.Dropout(p=0.3)
        self.hidden, self.out = nn.Dense(128, 32), nn.Dense(32, 10)
        if change == "forgotten layer":
            self.extra = nn.Dense(32, 32)

    def construct(self, x):
        if self.change == "far too large":
            x = x * 1e4
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        if self.change == "asnumpy":
            x = Tensor(x.asnumpy() * 2)
        x = self.drop(self.flatten(x))
        x = self.hidden(x * 300 if self.change == "saturated" else x)
        x = ops.relu(x - 100) if self.change == "dead" else ops.tanh(x)
        x = self.out(x)
        if self.change == "softmax":
            x = ops.softmax(x, -1)
        if self.change == "divided":
            x = x / (x - x)
        return x


class Silent(nn.Cell):
    """Passes its input on; its bprop returns zeros."""

    def construct(self, x):
        return x * 1.0

    def bprop(self, x, out, dout):
        return (ops.zeros_like(x),)


class Gpt(models.Gpt):
    """A decoder whose second block has a change."""

    def __init__(self, change=""):
        super().__init__("stop_gradient" if change == "stop_gradient" else "")
        self.kind = change
        if change == "bprop":
            self.blocks[1].pass_on = Silent()
        if change == "zero gates":
            self.gate1 = Parameter(Tensor(np.zeros(32, np.float32)), name="gate1")
            self.gate2 = Parameter(Tensor(np.zeros(32, np.float32)), name="gate2")

    def construct(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block, mask in zip(self.blocks, self.masks):
            x = block(x, mask)
        if self.kind == "zero gates":
            x = x + x * self.gate1 * self.gate2
        if self.kind == "half norm":
            half = x.astype(ms.float16) * 256
            x = x / ops.sqrt((half * half).sum(-1, keepdims=True)).astype(ms.float32) * 400
        if self.kind == "half epsilon":
            half = x.astype(ms.float16)
            x = (half / (ops.sqrt(ops.mean(half * half, -1, True)) + 1e-8)).astype(ms.float32)
        return self.head(self.norm(x)).reshape(-1, self.vocabulary)


class Lstm(nn.Cell):
    """An LSTM whose construct has a place for a change."""

    def __init__(self, change=""):
        super().__init__()
        self.change = change
        self.embed = nn.Embedding(40, 10)
        self.lstm = nn.LSTM(10, 12, num_layers=1, batch_first=True)
        self.hidden, self.out = nn.Dense(12, 12), nn.Dense(12, 5)

    def construct(self, x):
        if self.change == "input unused":
            x = ops.zeros_like(x)
        y, _ = self.lstm(self.embed(x))
        x = self.hidden(y[:, -1])
        if self.change == "comparison":
            x = (x > 0).astype(ms.float32)
        if self.change == "argmax":
            x = ops.one_hot(ops.argmax(x, -1), 12).astype(ms.float32)
        x = ops.relu(x)
        if self.change == "in place":
            x.add_(1.0)
        return self.out(x)


class Regression(nn.Cell):
    """A small net whose construct has a place for a change."""

    def __init__(self, change=""):
        super().__init__()
        self.change = change
        self.first, self.norm, self.second = nn.Dense(6, 16), nn.LayerNorm((16,)), nn.Dense(16, 1)

    def construct(self, x):
        x = self.norm(self.first(x))
        if self.change == "integers":
            x = (x * 4).astype(ms.int32).astype(ms.float32) / 4
        x = self.second(ops.gelu(x))
        if self.change == "sigmoid":
            x = ops.sigmoid(x)
        return x


def _digits(change, **around):
    return lambda debugger: _train(debugger, Digits(change), loop.digits(), **around)


def _gpt(change, **around):
    return lambda debugger: _train(debugger, Gpt(change), loop.sentences(), **around)


def _lstm(change, **around):
    return lambda debugger: _train(debugger, Lstm(change), loop.tokens(), **around)


def _regression(change, loss=None, data=None, **around):
    return lambda debugger: _train(
        debugger, Regression(change), data or loop.points(), loss or nn.MSELoss(), **around
    )


def forgotten_in_optimizer(debugger):
    net = Gpt()
    held = [p for p in net.trainable_params() if "positions" not in p.name]
    _train(
        debugger,
        net,
        loop.sentences(),
        optimizer=nn.Adam(held, 1e-3),
        weights=ms.ParameterTuple(net.trainable_params()),
        edit=lambda gradients: tuple(
            g for g, p in zip(gradients, net.trainable_params()) if "positions" not in p.name
        ),
    )


def head_not_in_optimizer(debugger):
    net = Regression()
    _train(
        debugger,
        net,
        loop.points(),
        nn.MSELoss(),
        nn.Adam([*net.first.trainable_params(), *net.norm.trainable_params()], 1e-3),
    )


def rate_of_zero(debugger):
    net = Lstm()
    embed = net.embed.trainable_params()
    rest = [p for p in net.trainable_params() if all(p is not e for e in embed)]
    groups = [{"params": embed, "lr": 0.0}, {"params": rest}]
    _train(debugger, net, loop.tokens(), optimizer=nn.Adam(groups, 1e-3))


def update_forgotten(debugger):
    """The gradients are computed, the optimizer is never called."""
    _train(debugger, Lstm(), loop.tokens(), update=False)


def never_training(debugger):
    _train(debugger, Digits().set_train(False), loop.digits(), trains=False)


def norm_not_training(debugger):
    net = Digits()
    net.set_train()
    net.norm.set_train(False)
    _train(debugger, net, loop.digits(), trains=False)


def no_return(debugger):
    net, data = Digits(), loop.digits()

    def evaluate(step):
        net.set_train(False)
        net(data[-1][0])

    _train(debugger, net, data, after=evaluate)


def loss_of_zero(debugger):
    """Two classes are told apart by a margin that a batch 300 times too large always exceeds."""
    net = Digits()

    def loss(logits, y):
        right = ops.gather_elements(logits, 1, y.reshape(-1, 1)).reshape(-1)
        return ops.relu(1.0 - 1e5 - right + right.min()).mean()

    _train(debugger, net, [(x * 300, y) for x, y in loop.digits()], loss)


def all_ignored(debugger):
    data = [(x, Tensor(np.full(y.shape, -100, np.int32))) for x, y in loop.sentences()]
    _train(
        debugger,
        Gpt(),
        data,
        lambda x, y: ops.cross_entropy(x, y, ignore_index=-100, reduction="sum") / 64,
    )


def binary_logits(debugger):
    data = [(x, (y > 0).astype(ms.float32)) for x, y in loop.points()]
    _train(debugger, Regression("sigmoid"), data, nn.BCEWithLogitsLoss())


def labels_without_an_axis(debugger):
    _train(debugger, Regression(), [(x, y.reshape(-1)) for x, y in loop.points()], nn.MSELoss())


def scale_kept(debugger):
    net = Gpt()
    optimizer = nn.SGD(net.trainable_params(), 1e-3)
    _train(
        debugger,
        net,
        loop.sentences(),
        optimizer=optimizer,
        scaler=amp.StaticLossScaler(1024.0),
        keep_scale=True,
    )


def scale_taken_twice(debugger):
    net = Gpt()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    _train(
        debugger,
        net,
        loop.sentences(),
        optimizer=optimizer,
        scaler=amp.StaticLossScaler(1024.0),
        edit=lambda gradients: tuple(gradient / 1024 for gradient in gradients),
    )


def buffer_changed(debugger):
    net = Digits()

    def change(step):
        net.norm.gamma.set_data(Tensor(net.norm.gamma.asnumpy() * np.float32(1.5)))

    _train(debugger, net, loop.digits(), after=change)


def decayed_norms(debugger):
    net = Gpt()
    _train(
        debugger,
        net,
        loop.sentences(),
        optimizer=nn.AdamWeightDecay(net.trainable_params(), 1e-3, weight_decay=0.1),
    )


class Fault(NamedTuple):
    """A planted fault.

    Attributes:
        train: the training.
        rule: the rule that must name it.
        names: a regular expression for the line, with Cell, parameter or call.
        weight: the least weight.
    """

    train: object
    rule: str
    names: str
    weight: str = "fault"


FAULTS = {
    "forgotten in the optimizer": Fault(forgotten_in_optimizer, "not held", "positions"),
    "head not in the optimizer": Fault(head_not_in_optimizer, "not held", "second.weight"),
    "layer never called": Fault(_digits("forgotten layer"), "unused", "extra.weight"),
    "learning rate 0 in a group": Fault(rate_of_zero, "not updated", "embed"),
    "update never called": Fault(update_forgotten, "no update", "optimizer"),
    "both gates zero": Fault(_gpt("zero gates"), "gradient ends", "gate"),
    "stop_gradient": Fault(_gpt("stop_gradient"), "gradient ends", "stop_gradient"),
    "asnumpy and back": Fault(_digits("asnumpy"), "gradient ends", "pool|conv"),
    "comparison": Fault(_lstm("comparison"), "gradient ends", "__gt__|hidden|comparison"),
    "argmax": Fault(_lstm("argmax"), "gradient ends", "argmax|hidden"),
    "integer cast": Fault(_regression("integers"), "gradient ends", "Int32|int"),
    "bprop returns zeros": Fault(_gpt("bprop"), "gradient ends", "pass_on|Silent"),
    "never in training mode": Fault(never_training, "mode", "training mode"),
    "one norm not in training mode": Fault(norm_not_training, "mode", "norm", "suspicious"),
    "evaluation without return": Fault(no_return, "mode", "step 1"),
    "loss of zero": Fault(loss_of_zero, "loss", "loss is 0"),
    "all labels ignored": Fault(all_ignored, "loss", "ignore"),
    "labels without an axis": Fault(labels_without_an_axis, "loss", "24"),
    "softmax before cross entropy": Fault(_digits("softmax"), "loss", "softmax"),
    "sigmoid before logits": Fault(binary_logits, "loss", "sigmoid"),
    "input unused": Fault(_lstm("input unused"), "loss", "input"),
    "tanh saturated": Fault(_digits("saturated"), "numbers", "tanh", "suspicious"),
    "relu dead": Fault(_digits("dead"), "gradient ends", "relu", "fault"),
    "sum of squares in float16": Fault(_gpt("half norm"), "NaN/Inf", "__mul__|sum"),
    "epsilon rounds to zero": Fault(_gpt("half epsilon"), "numbers", "__add__|1e-08", "suspicious"),
    "loss scale kept": Fault(scale_kept, "numbers", "1024", "suspicious"),
    "loss scale taken twice": Fault(scale_taken_twice, "numbers", "1024", "suspicious"),
    "in place without effect": Fault(_lstm("in place"), "in place", "add_"),
    "changed between update and forward": Fault(buffer_changed, "in place", "gamma"),
    "norms are decayed": Fault(decayed_norms, "decay", "norm", "note"),
}
TRAININGS = {name.replace(" ", "_"): fault.train for name, fault in FAULTS.items()}
