# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One of the trainings of tests/programs/origins with a planted change: ``planted_training KIND CHANGE [DUMP]``.

With a third word it is recorded there, with arrays, and with the parameters after each update.
"""

from __future__ import annotations

import json
import sys
import tempfile

import mindspore as ms

from probe import PrecisionDebugger
from tests.programs.origins.models import STEPS, train


def main():
    kind, change, *dump = sys.argv[1:]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(
            {
                "task": "tensor",
                "level": "mix",
                "optimizer": "states",
                "dump_path": (dump or ["none"])[0],
            },
            config,
        )
        config.flush()
        train(
            kind,
            change,
            PrecisionDebugger(config_path=config.name),
            steps=4 if kind == "gpt" else STEPS,
        )


if __name__ == "__main__":
    main()
