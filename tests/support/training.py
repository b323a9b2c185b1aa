# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The loop of a training in PyNative mode, with a debugger or without, and all that it computes."""

from __future__ import annotations


def steps_of(built, count, debugger=None):
    """Train; yield for each step its loss, and its loss, gradients and parameters as one list.

    Args:
        built: (net, function of a step's number that returns loss and gradients), as ``nets.build`` gives them.
        count: the number of steps.
        debugger: records each step, if there is one.
    """
    net, step = built
    for number in range(count):
        if debugger is not None:
            debugger.start(net)
        loss, gradients = step(number)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        yield loss, [loss, *gradients, *net.get_parameters()]


def bytes_of(tensors):
    """Return the bytes of tensors."""
    return [tensor.asnumpy().tobytes() for tensor in tensors]


def train(built, count, debugger=None):
    """Train; return for each step the bytes of its loss, gradients and parameters. The arguments: see ``steps_of``."""
    return [bytes_of(tensors) for _, tensors in steps_of(built, count, debugger)]
