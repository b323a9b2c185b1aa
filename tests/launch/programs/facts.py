# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Prints what a program sees of itself."""

import argparse
import os
import pickle
import sys

import __main__


class Thing:
    pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=0)
    parser.add_argument("words", nargs="*")
    parsed = parser.parse_args()
    print(sys.argv, parsed, sys.path[0] == os.path.dirname(os.path.realpath(__file__)), __file__)
    print(sorted(name for name in globals()), __spec__, __package__, __main__.__dict__ is globals())
    print(
        type(pickle.loads(pickle.dumps(Thing()))) is Thing,
        Thing.__module__,
        type(__loader__).__name__,
    )
    print(
        "mindspore" in sys.modules and "MINDSPORE_FRESH" in os.environ,
        type(sys.modules["__main__"]).__name__,
    )
