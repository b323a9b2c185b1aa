# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An encoder and a decoder that a Cell holds, each called by the loop, with one optimizer."""

import mindspore as ms
from common import batches, tell
from mindspore import nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class Pair(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh())
        self.decoder = nn.SequentialCell(nn.Dense(6, 4))


ms.set_seed(1)
pair = Pair()
optimizer = nn.Adam(pair.trainable_params(), 1e-2)


def forward(x):
    code = pair.encoder(ops.mul(x, 0.5))
    return ops.square(ops.sub(pair.decoder(code), x)).mean()


gradient = ms.value_and_grad(forward, None, optimizer.parameters)
for x, _ in batches(2):
    #| debugger.start([pair.encoder, pair.decoder])
    loss, gradients = gradient(x)
    optimizer(gradients)
    #| debugger.stop(); debugger.step()
    print(float(loss.asnumpy()))
print(ms.grad(forward)(x).shape)  # of the input: no step
tell(pair)
