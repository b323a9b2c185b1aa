# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Model.train on the handwritten digits, recorded by probe through its callback.

python examples/train_model.py --dump-path model_dump
"""

import argparse
import os

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.dataset import GeneratorDataset
from train import HERE, Net

from probe import MsprobeStep, PrecisionDebugger


def dataset(size=32, batches=6):
    """Return the first batches of the digits."""
    digits = np.load(os.path.join(HERE, "data", "digits.npz"))
    images = digits["images"].astype(np.float32)[:, None] / 16
    rows = list(zip(images, digits["labels"].astype(np.int32)))[: size * batches]
    return GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(
        size, drop_remainder=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dump-path", help="where the dump goes (default: what the settings file says)"
    )
    arguments = parser.parse_args()

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    net = Net()
    model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 1e-2))
    config = os.path.join(HERE, "config.json")
    debugger = PrecisionDebugger(config_path=config, dump_path=arguments.dump_path)
    watch = [MsprobeStep(debugger), ms.train.LossMonitor(1)]
    model.train(1, dataset(), callbacks=watch, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
