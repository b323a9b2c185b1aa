# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program that has a debugger of its own."""

from common import Net

from probe import PrecisionDebugger


def main():
    print(Net().hidden.in_channels, flush=True)
    PrecisionDebugger(dump_path="dump")


main()
