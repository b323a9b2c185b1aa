# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A data-parallel training on the handwritten digits: two ranks on this machine, each recorded in a folder of its own.

    python examples/train_ranks.py --dump-path ranks_dump

It starts itself once per rank with MindSpore's launcher, msrun. Each rank takes batches of its own; the gradients are
averaged by all_reduce. Afterwards the records of one reduction are shown: what each rank gave, and what all got.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile

import mindspore as ms
from mindspore import nn
from train import Net, batches

from probe import PrecisionDebugger


def launch(arguments):
    """Run this file once per rank, and show the end of the logs where that fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binaries = os.path.dirname(sys.executable)
    logs = tempfile.mkdtemp()
    command = [os.path.join(binaries, "msrun"), f"--worker_num={arguments.ranks}"]
    command += [
        f"--local_worker_num={arguments.ranks}",
        f"--master_port={port}",
        f"--log_dir={logs}",
        "--join=True",
    ]
    command += [
        "--cluster_time_out=60",
        os.path.abspath(__file__),
        "--dump-path",
        arguments.dump_path,
    ]
    command += ["--steps", str(arguments.steps)]
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    print(f"starting {arguments.ranks} ranks, their logs are in {logs}", flush=True)
    with open(os.path.join(logs, "launcher.log"), "w", encoding="utf-8") as log:
        code = subprocess.run(
            command, env=environment, stdout=log, stderr=log, timeout=600, check=False
        ).returncode
    with open(os.path.join(logs, "worker_0.log"), encoding="utf-8", errors="replace") as log:
        lines = [line for line in log if not line.startswith("[")]  # MindSpore's own
    print("".join(line for line in lines if line.startswith("step ")), end="")
    if code:
        sys.exit(f"msrun ended with {code}: {lines[-1].strip() if lines else ''}")


def show(dump_path, ranks):
    """Print what stands in each rank's dump of the first reduction of the first step."""
    for rank in range(ranks):
        folder = os.path.join(dump_path, "step0", f"rank{rank}")
        with open(os.path.join(folder, "dump.json"), encoding="utf-8") as file:
            entry = json.load(file)["data"]["MintDistributed.all_reduce.0.forward"]
        given, got = entry["input_args"][0], entry["output"][0]
        print(
            f"{folder}: all_reduce of {given['shape']} gave Mean {given['Mean']:+.6f}, got {got['Mean']:+.6f}"
        )


def train(arguments):
    """Be one rank."""
    from mindspore.communication import get_group_size, get_rank, init
    from mindspore.mint import distributed

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    init()
    rank, ranks = get_rank(), get_group_size()
    ms.set_seed(1)  # the same parameters everywhere
    net = Net()
    net.set_train()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)

    debugger = PrecisionDebugger(level="mix", step=[0], dump_path=arguments.dump_path)
    batch = (item for i, item in enumerate(batches()) if i % ranks == rank)
    for step, (x, y) in zip(range(arguments.steps), batch):
        debugger.start(net)
        loss, gradients = gradient(x, y)
        for one in gradients:
            distributed.all_reduce(one)
        optimizer(tuple(one / ranks for one in gradients))
        debugger.stop()
        debugger.step()
        print(f"step {step}: rank {rank}, loss {float(loss.asnumpy()):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dump-path", default="ranks_dump")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()
    arguments.dump_path = os.path.abspath(arguments.dump_path)
    if "MS_ROLE" in os.environ:  # started by msrun
        train(arguments)
    else:
        launch(arguments)
        show(arguments.dump_path, arguments.ranks)


if __name__ == "__main__":
    main()
