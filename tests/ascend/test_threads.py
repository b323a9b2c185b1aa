# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two threads that compute and are recorded at once, while MindSpore shares no executor between them."""

from __future__ import annotations

import sys

import pytest

from tests.support import processes
from tests.support.dumps import Dump
from tests.support.paths import environment

pytestmark = [pytest.mark.slow, pytest.mark.ascend]

#: the argument is the folder of the dump; each thread calls a function of its own, until both have made 200 calls
PROGRAM = """
import sys, threading
from pathlib import Path
import mindspore as ms
import numpy as np

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("Ascend")
ms.device_context.ascend.op_tuning.aclnn_cache(cache_queue_length=0)  # docs/compiled.md: two threads that compute
from mindspore import Tensor, ops
from probe import PrecisionDebugger
from tests.ascend.trainings import write_settings

names = ["relu", "abs"]
outputs = {name: [] for name in names}

def work(name):
    while min(map(len, outputs.values())) < 200:
        number = len(outputs[name])
        outputs[name].append(getattr(ops, name)(Tensor(np.arange(number, number + 4, dtype=np.float32))))

debugger = PrecisionDebugger(write_settings(Path(sys.argv[1]), {"level": "L1", "measure": "device"}))
debugger.start()
threads = [threading.Thread(target=work, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
debugger.stop()
debugger.step()
wrong = sum(
    output.asnumpy().tolist() != [number, number + 1, number + 2, number + 3]
    for name in names
    for number, output in enumerate(outputs[name])
)
print(wrong, *(len(outputs[name]) for name in names))
"""


def test_numbers_of_two_threads_are_right_if_mindspore_keeps_no_executors(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = processes.run(command, env=environment(), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    wrong, *calls = map(int, done.stdout.splitlines()[-1].split())
    dump = Dump(tmp_path / "step0" / "rank")
    assert (wrong, [len(dump.names(f"Functional.{name}.")) for name in ("relu", "abs")]) == (
        0,
        calls,
    )
    for name, count in zip(("relu", "abs"), calls):
        for number in range(count):
            entry = dump.data[f"Functional.{name}.{number}.forward"]
            seen = [
                [entry[part][0][key] for key in ("Min", "Max")] for part in ("input_args", "output")
            ]
            assert seen == [[number, number + 3]] * 2, (name, number)
