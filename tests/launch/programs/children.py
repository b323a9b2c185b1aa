# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A process that is forked or spawned trains, and its parent does not."""

import multiprocessing
import sys


def train():
    import mindspore as ms
    from common import Net, batches, tell
    from mindspore import nn

    ms.set_seed(1)
    net = Net()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    for x, y in batches(2):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        print(float(loss.asnumpy()))
    tell(net)


if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=train)
    process.start()
    process.join()
    print(process.exitcode)
