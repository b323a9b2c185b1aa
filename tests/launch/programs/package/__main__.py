# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command of the package."""

import argparse
import sys

from .trainer import Trainer

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", default="low")  # also an option of `probe run`
    parser.add_argument("--steps", type=int, default=1)
    given = parser.parse_args()
    print(given, sys.argv[0].endswith("__main__.py"), __package__, __spec__.name)
    Trainer(given.steps).train()
