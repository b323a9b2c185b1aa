# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training of tests/programs/one_run without its debugger: ``one_run.py fault|healthy NAME``."""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np

from tests.programs.one_run.faults import FAULTS
from tests.programs.one_run.healthy import TRAININGS


class Silent:
    """Stands in the place of the debugger: nothing is recorded by the training itself."""

    def start(self, *models):
        """Do nothing."""

    def stop(self):
        """Do nothing."""

    def step(self):
        """Do nothing."""


def main():
    kind, name = sys.argv[1:3]
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    ms.set_seed(1)
    np.random.seed(1)
    train = FAULTS[name].train if kind == "fault" else TRAININGS[name]
    train(Silent())


main()
