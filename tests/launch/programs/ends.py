# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training that ends in the middle of its second step, in the way that its argument says."""

import os
import signal
import sys
import threading

import mindspore as ms
from common import Net, batches
from mindspore import nn


def end(how):
    if how == "status":
        sys.exit(3)
    if how == "text":
        sys.exit("there are no data")
    if how == "raise":
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("the data are wrong") from error
    if how == "inside":
        net.fails = True
        net(x)
    os.kill(os.getpid(), {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM}[how])
    threading.Event().wait(60)


class FailingNet(Net):
    fails = False

    def construct(self, x):
        if self.fails:
            raise KeyError("the net fails")
        return super().construct(x)


ms.set_seed(1)
net = FailingNet()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
for number, (x, y) in enumerate(batches(3)):
    loss, gradients = gradient(x, y)
    print(number, float(loss.asnumpy()), flush=True)
    if number:
        end(sys.argv[1])
    optimizer(gradients)
