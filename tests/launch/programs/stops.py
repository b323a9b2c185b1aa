# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training that ends in a place, in a way: python stops.py PLACE WAY."""

import os
import signal
import sys

place, way = sys.argv[1:]


def end(here):
    if here != place:
        return
    print("ends", here, flush=True)
    if way == "exit":
        sys.exit(3)
    if way == "raise":
        raise RuntimeError("the data are wrong")
    os.kill(os.getpid(), signal.SIGINT if way == "interrupt" else signal.SIGTERM)
    for _ in range(1000):  # Python calls a handler between two instructions
        pass
    print("goes on", flush=True)


if way == "handler":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
if way == "ignored":
    signal.signal(signal.SIGTERM, lambda *_: print("not now", flush=True))
end("early")
import mindspore as ms
from common import Net, batches, tell
from mindspore import nn

ms.set_seed(1)
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
end("before")
for number, (x, y) in enumerate(batches(3)):
    loss, gradients = gradient(x, y)
    print(number, float(loss.asnumpy()), flush=True)
    if number:
        end("inside")
    optimizer(gradients)
    if number:
        end("between")
end("after")
tell(net)
