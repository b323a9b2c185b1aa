# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The loop of MindSpore's quick start, with functions for training and testing, and a test after each epoch."""

import mindspore as ms
from common import Net, dataset, tell
from mindspore import nn

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


def train_loop(model, data, loss_fn, optimizer):
    def forward_fn(x, y):
        logits = model(x)
        return loss_fn(logits, y), logits

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    def train_step(x, y):
        (loss, _), gradients = grad_fn(x, y)
        optimizer(gradients)
        return loss

    model.set_train()
    for x, y in data.create_tuple_iterator():
        #| debugger.start(model)
        loss = train_step(x, y)
        #| debugger.stop(); debugger.step()
        print(float(loss.asnumpy()))


def test_loop(model, data, loss_fn):
    model.set_train(False)
    total = right = 0
    for x, y in data.create_tuple_iterator():
        logits = model(x)
        total += float(loss_fn(logits, y).asnumpy())
        right += (logits.argmax(1) == y).asnumpy().sum()
    print(total, right)


ms.set_seed(1)
net = Net()
sgd = nn.SGD(net.trainable_params(), 1e-2)
for _epoch in range(2):
    train_loop(net, dataset(2), nn.CrossEntropyLoss(), sgd)
    test_loop(net, dataset(2), nn.CrossEntropyLoss())
tell(net)
