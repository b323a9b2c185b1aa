# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Each call has the line of the user's code that made it."""

from __future__ import annotations

import inspect

from mindspore import Tensor, nn, ops


class Twice(nn.Cell):
    def construct(self, x):
        y = ops.relu(x)
        return ops.relu(y * 2.0)


def test_two_calls_of_one_function_have_their_own_lines(debug):
    model = Twice()
    _, dump = debug.record(lambda: model(Tensor([1.0, -1.0])), model, level="mix")
    lines, first = inspect.getsourcelines(Twice.construct)
    for number, text in enumerate(("y = ops.relu(x)", "return ops.relu(y * 2.0)")):
        line = next(place for place, source in enumerate(lines) if text in source) + first
        (stack,) = [
            lines
            for names, lines in dump.stack.values()
            if f"Functional.relu.{number}.forward" in names
        ]
        assert stack[0] == f"File {__file__}, line {line}, in construct, \n {text}"
