# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
# (annotations would be compiled too)
"""The functions that MindSpore compiles into a graph in place of a construct.

MindSpore parses their source. So they hold no ``try``, and they find everything that they use in their closure. Each
loop runs while MindSpore compiles: the graph has only the nodes of its body.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

# codes of a reported tensor
CAST = 1
FLATTEN = 2
CODES = range(4)  # all sums of them


def accessors() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``pick``, which takes a tensor out of values, and ``replace``, which puts another into its place."""

    def pick(values, path):
        found = values
        for key in path:
            found = found[key]
        return found

    def put(values, key, x):
        if isinstance(values, tuple):
            return values[:key] + (x,) + values[key + 1 :]
        values[key] = x
        return values

    def replace(values, path, x):
        if len(path) == 0:
            values = x
        elif len(path) == 1:
            values = put(values, path[0], x)
        else:
            values = put(values, path[0], put(values[path[0]], path[1], x))
        return values

    return pick, replace


def _helpers() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``collect``, which takes reported tensors out of values, and ``watch``, which replaces watched ones."""
    import mindspore
    from mindspore import ops

    single = mindspore.float32
    stop_gradient = ops.stop_gradient
    cast = ops.cast
    reshape = ops.reshape
    pick, replace = accessors()

    def collect(values, places):
        found = ()
        for path, code in places:
            x = stop_gradient(pick(values, path))
            if code in (1, 3):
                x = cast(x, single)
            if code in (2, 3):
                x = reshape(x, (1,))
            found = found + (x,)
        return found

    def watch(values, places, watchers, call):
        for path, number, code in places:
            values = replace(values, path, watchers[code][number](pick(values, path), call))
        return values

    return collect, watch


def cell_construct(
    inner, describe_inputs, describe_outputs, parameters, enter, leave, watch_inputs, watch_outputs
) -> Callable[..., Any]:
    """Return the construct of a Cell whose calls are reported, in place of ``inner``.

    While MindSpore compiles, ``describe_inputs`` makes the plan of (arguments, keyword arguments), and
    ``describe_outputs`` that of (result, parameters), which are the Cell's own. The operators ``enter`` and ``leave``
    begin and end a call; they are numbered by their tensors. Those of ``watch_inputs`` and ``watch_outputs`` report the
    gradient of a tensor, by its code and its number.
    """
    import mindspore
    from mindspore import ops

    Tensor = mindspore.Tensor
    int32 = mindspore.int32
    stop_gradient = ops.stop_gradient
    collect, watch = _helpers()

    def construct(self, *args, **kwargs):
        plan = describe_inputs(args, kwargs)
        if plan[0] < 0:
            return inner(*args, **kwargs)
        given = collect((args, kwargs), plan[1])
        call = stop_gradient(enter[len(given)](Tensor([plan[0]], int32), *given))
        args = watch(args, plan[2], watch_inputs, call)
        output = inner(*args, **kwargs)
        plan = describe_outputs(output, parameters)
        if plan[0] < 0:
            return output
        made = collect((output, parameters), plan[1])
        call = stop_gradient(leave[len(made)](call, Tensor([plan[0]], int32), *made))
        return watch(output, plan[2], watch_outputs, call)

    return construct


def optimizer_construct(inner: Any, describe: Any, report: Any) -> Callable[..., Any]:
    """Return the construct of an optimizer that reports its gradients; ``describe`` makes the plan of (gradients,)."""
    import mindspore

    Tensor = mindspore.Tensor
    int32 = mindspore.int32
    collect, _ = _helpers()

    def construct(self, *args, **kwargs):
        plan = describe(args, kwargs)
        if plan[0] >= 0:
            number = 0
            for gradient in collect((args, kwargs), plan[1]):
                report(Tensor([plan[0]], int32), Tensor([number], int32), gradient)
                number = number + 1
        return inner(*args, **kwargs)

    return construct


def watching_cell(report: Any, place: int) -> Any:
    """Return a Cell that returns its input, and reports the gradient that arrives there: for graphs that recompute.

    MindSpore cannot sort a graph of GRAPH_MODE in which a recomputed Cell has the other watchers. ``report`` takes
    (number of the call, place, gradient).
    """
    import mindspore
    from mindspore import nn, ops

    single = mindspore.float32
    brain = mindspore.bfloat16
    slot = mindspore.Tensor([place], mindspore.int32)
    zeros_like = ops.zeros_like
    cast = ops.cast
    reshape = ops.reshape

    class Watcher(nn.Cell):
        """An identity with a backward of its own, in which it reports."""

        def construct(self, x, call):
            return x

        def bprop(self, x, call, out, dout):
            given = dout
            if x.dtype == brain:
                given = cast(given, single)
            if len(x.shape) == 0:
                given = reshape(given, (1,))
            report(call, slot, given)
            return dout, zeros_like(call)

    return Watcher()


# Depend with a bprop that receives the number of the call. It has no ``if``: in a graph with a Cell that has a bprop,
# MindSpore would silently take Depend's own. A Cell in its place would report the gradient of all uses of its input,
# in a graph that is inlined before its backward, as with BatchNorm.
def gradient_watcher(report: Any, place: int, code: int) -> Any:
    """Return an operator that returns its input, and reports the gradient that arrives there.

    ``report`` takes (number of the call, place, gradient). ``code`` tells the changes that the gradient needs before.
    """
    import mindspore
    from mindspore import ops

    slot = mindspore.Tensor([place], mindspore.int32)
    single = mindspore.float32
    zeros_like = ops.zeros_like
    cast = ops.cast
    reshape = ops.reshape

    def same(x):
        return x

    def to_single(x):
        return cast(x, single)

    def flatten(x):
        return reshape(x, (1,))

    def both(x):
        return reshape(cast(x, single), (1,))

    change = (same, to_single, flatten, both)[code]

    def bprop(x, call, out, dout):
        report(call, slot, change(dout))
        return dout, zeros_like(call)

    return gradient_link(4 * place + code, bprop)


def gradient_link(mark: Any, bprop: Callable[..., Any]) -> Any:
    """Return an operator (tensor, any tensor) -> the first, with the backward ``bprop``; ``mark`` is its own."""
    from mindspore import ops

    class Link(ops.Primitive):
        """Depend, which has no kernel."""

        def __init__(self):
            super().__init__("Depend")
            self.add_prim_attr(
                "probe_mark", mark
            )  # MindSpore shares what it derives from equal operators

        def get_bprop(self):
            return bprop

    return Link()


# -- operators that write files: a path is a constant of the graph, so one place writes under the same path in each run


class DumpOperators(NamedTuple):
    """The two operators that write files."""

    dump: Callable[..., Any]  # (path, tensor) -> writes the tensor
    #: path -> an operator: (tensor, any tensor) -> the first, and writes the gradient that arrives there
    watch: Callable[[str], Any]


def ascend_operators() -> DumpOperators:
    """Return the operators for Ascend."""
    from mindspore import ops

    dump = ops.TensorDump()
    zeros_like = ops.zeros_like

    def watch(path):
        # ops.DumpGradient is the public operator for this. MindSpore cannot compile it in the backward of a loop that
        # depends on values, and a training in PyNative mode would raise that
        def bprop(x, other, out, dout):
            dump(path, dout)
            return dout, zeros_like(other)

        return gradient_link(path, bprop)

    return DumpOperators(dump, watch)


def _file_helpers(operators: DumpOperators) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return ``write``, which writes tensors, and ``watch_all``, which replaces watched ones."""
    from mindspore import ops

    pick, replace = accessors()
    dump = operators.dump
    stop_gradient = ops.stop_gradient

    def write(values, places):
        for path, file in places:
            dump(file, stop_gradient(pick(values, path)))

    def watch_all(values, places):
        for path, link in places:
            x = pick(values, path)
            values = replace(values, path, link(x, stop_gradient(x)))
        return values

    return write, watch_all


def writing_construct(
    inner: Any,
    describe_inputs: Any,
    describe_outputs: Any,
    parameters: tuple[Any, ...],
    operators: DumpOperators,
) -> Callable[..., Any]:
    """Return the construct of a Cell whose calls are written.

    While MindSpore compiles, ``describe_inputs`` takes (arguments, keyword arguments). It returns the plan's number,
    paths of its tensors, writers of its gradients, and a marker's path. ``describe_outputs`` does so for (result,
    parameters).
    """
    import mindspore

    write, watch_all = _file_helpers(operators)
    dump = operators.dump
    mark = mindspore.Tensor([0], mindspore.int32)

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


def writing_optimizer(inner: Any, describe: Any, operators: DumpOperators) -> Callable[..., Any]:
    """Return the construct of an optimizer whose gradients are written; ``describe`` gives their plan and paths."""
    write, _ = _file_helpers(operators)

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
