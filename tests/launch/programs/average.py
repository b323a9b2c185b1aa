# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An average of the weights under @jit: it reads the trained parameters after each update, and is no step."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
blend = ops.MultitypeFuncGraph("blend")


@blend.register("Tensor", "Tensor")
def _(average, weight):
    return ops.assign(average, average * 0.9 + weight * 0.1)


class Average(nn.Cell):
    """Averages of all weights."""

    def __init__(self):
        super().__init__()
        self.weights = ms.ParameterTuple(net.trainable_params())
        self.averages = self.weights.clone("average", "same")
        self.map = ops.HyperMap()

    @ms.jit
    def update(self):
        return self.map(ops.partial(blend), self.averages, self.weights)


average = Average()
for x, y in batches(3):
    #| debugger.start(net)
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    #| debugger.stop(); debugger.step()
    average.update()
    print(float(loss.asnumpy()))
tell(net, average)
