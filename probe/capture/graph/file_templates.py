# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
# (annotations would be compiled too)
"""The functions that MindSpore compiles in place of a construct where the operators of a graph write files.

The same rules as in ``templates`` hold. A path is a constant of the graph. So one place of a graph writes under the
same path in each run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from probe.capture.graph.templates import accessors, gradient_link


class DumpOperators(NamedTuple):
    """The two operators that write files."""

    dump: Callable[..., Any]  # (path, tensor) -> writes the tensor
    #: path -> an operator: (tensor, any tensor) -> the first, and writes the gradient that arrives there
    watch: Callable[[str], Any]


def ascend_operators() -> DumpOperators:
    """Return the operators for Ascend."""
    from mindspore import ops

    dump, zeros_like = ops.TensorDump(), ops.zeros_like

    def watch(path):
        # ops.DumpGradient is the public operator for this. MindSpore cannot compile it in the backward of a loop that
        # depends on values, and a training in PyNative mode would raise that
        def bprop(x, other, out, dout):
            dump(path, dout)
            return dout, zeros_like(other)

        return gradient_link(path, bprop)

    return DumpOperators(dump, watch)


def _helpers(operators: DumpOperators) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``write``, which writes tensors, and ``watch_all``, which replaces watched ones."""
    from mindspore import ops

    pick, replace = accessors()
    dump, stop_gradient = operators.dump, ops.stop_gradient

    def write(values, places):
        for path, file in places:
            dump(file, stop_gradient(pick(values, path)))

    def watch_all(values, places):
        for path, link in places:
            x = pick(values, path)
            values = replace(values, path, link(x, stop_gradient(x)))
        return values

    return write, watch_all


def cell_construct(
    inner: Any, describe_inputs: Any, describe_outputs: Any, parameters: tuple[Any, ...], operators: DumpOperators
) -> Callable[..., Any]:
    """Return the construct of a Cell whose calls are written.

    While MindSpore compiles, ``describe_inputs`` takes (arguments, keyword arguments). It returns the plan's number,
    paths of its tensors, writers of its gradients, and a marker's path. ``describe_outputs`` does so for (result,
    parameters).
    """
    import mindspore

    write, watch_all = _helpers(operators)
    dump, mark = operators.dump, mindspore.Tensor([0], mindspore.int32)

    def construct(self, *args, **kwargs):
        plan = describe_inputs(args, kwargs)
        if plan[0] < 0:
            return inner(*args, **kwargs)
        write((args, kwargs), plan[1])
        if len(plan[1]) == 0:
            dump(plan[3], mark)
        args = watch_all(args, plan[2])
        output = inner(*args, **kwargs)
        plan = describe_outputs(output, parameters)
        if plan[0] < 0:
            return output
        output = watch_all(output, plan[2])
        write((output, parameters), plan[1])
        if len(plan[1]) == 0:
            dump(plan[3], mark)
        return output

    return construct


def optimizer_construct(inner: Any, describe: Any, operators: DumpOperators) -> Callable[..., Any]:
    """Return the construct of an optimizer whose gradients are written; ``describe`` gives their plan and paths."""
    write, _ = _helpers(operators)

    def construct(self, *args, **kwargs):
        plan = describe(args, kwargs)
        if plan[0] >= 0:
            write((args, kwargs), plan[1])
        return inner(*args, **kwargs)

    return construct


def end_marker(path: str, operators: DumpOperators) -> Callable[..., Any]:
    """Return a compiled function that writes one file after all others, and returns its argument."""
    import mindspore

    dump = operators.dump

    @mindspore.jit
    def mark_end(x):
        dump(path, x)
        return x + 1

    return mark_end
