# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Batches are made by processes that are spawned and forked."""

import multiprocessing

SCALE = 1.0


def make(seed):
    import numpy as np

    return np.random.RandomState(seed).randn(5, 4).astype(np.float32) * SCALE


def main():
    import mindspore as ms
    from common import Net, tell
    from mindspore import nn

    #| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
    ms.set_seed(1)
    net = Net()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    y = ms.Tensor([0, 1, 2, 0, 1], ms.int32)
    for kind in ("fork", "spawn"):
        with multiprocessing.get_context(kind).Pool(2) as pool:
            data = pool.map(make, range(2))
        for array in data:
            x = ms.Tensor(array)
            #| debugger.start(net)
            loss, gradients = gradient(x, y)
            optimizer(gradients)
            #| debugger.stop(); debugger.step()
            print(kind, float(loss.asnumpy()), flush=True)
    tell(net)


if __name__ == "__main__":
    main()
