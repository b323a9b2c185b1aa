# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compiled calls of many forms, and the gradients that MindSpore gives of the uncompiled ones."""

from __future__ import annotations

import inspect

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, jit, nn, ops

from tests.support.tensors import tensor

X, Y = tensor([1.0, 2.0, 3.0]), tensor([10.0, 20.0, 30.0])


C, MASK, WHOLE = tensor([5.0, 6.0, 7.0]), Tensor([True, False, True]), Tensor([1, 2, 3], ms.int32)


PARAMETER = Parameter(tensor([2.0, 3.0, 4.0]), name="argument")


FROZEN = Parameter(tensor([2.0, 3.0, 5.0]), name="frozen", requires_grad=False)


class Live:
    """Stands in a list of arguments for a tensor of the graph."""

    def __init__(self, number, cast=None):
        self.number, self.cast = number, cast

    def of(self, tensors):
        return tensors[self.number] if self.cast is None else tensors[self.number].astype(self.cast)


A, B = Live(0), Live(1)


def times(a, b):
    return a * b * b


def select(mask, x, whole):
    return ops.select(mask, x, x * 3.0) + whole


def four(a, x, b, y):
    return x * y * a if b is None else x


def container_last(x, pair):
    return x * pair[0] + pair[1] * pair[1]


def container_first(items, x):
    return items[0] * x * x


def nested_list(items, x):
    return items[0] * x + items[1][0] * 2.0 * x


def dictionary(items, x):
    return items["a"] * x * x + items["b"]


def keywords(x, a=None, b=2.0, c=None):
    return x * c * b + a * a


def star(*values, **named):
    return values[0] * values[1] + named["one"] * 3.0 + named["two"] * values[1]


def unused(u, c, x):
    return c * x


def stopped(a, x):
    return ops.stop_gradient(a) * x


def several(c, x, whole):
    return c * x, whole + 1, (x * x, [x + 1.0]), 3


def named_results(c, x):
    return {"one": c * x, "two": x * x}


def given_back(c, x):
    return x, c * x


def branches(whole, x):
    if whole.sum() > 0:
        return x * x
    return x


class Owner(nn.Cell):
    """A Cell with a compiled construct that uses Parameters; ``compute`` is the same, uncompiled."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(tensor([1.0, 1.0, 2.0]), name="w")
        self.frozen = Parameter(tensor([3.0, 1.0, 2.0]), name="owner_frozen", requires_grad=False)
        self.u = Parameter(tensor([4.0, 1.0, 2.0]), name="u")

    def compute(self, c, x):
        return self.w * x * c + self.frozen * x + self.u

    @jit
    def construct(self, c, x):
        return self.compute(c, x)


class Plain:
    """A class that is no Cell."""

    def compute(self, c, x):
        return c * x * x

    @jit
    def __call__(self, c, x):
        return self.compute(c, x)


def patterns():
    """Return name -> the function, its arguments, its keyword arguments, the Parameters that are differentiated."""
    owner = Owner()
    return {
        "a constant first": (times, [C, A], {}, []),
        "a constant last": (times, [A, C], {}, []),
        "two": (times, [A, B], {}, []),
        "a mask and whole numbers": (select, [MASK, A, WHOLE], {}, []),
        "a mask and whole numbers of the graph": (
            select,
            [Live(1, ms.bool_), A, Live(1, ms.int32)],
            {},
            [],
        ),
        "scalars and None": (four, [2.0, A, None, B], {}, []),
        "one tensor twice": (times, [A, A], {}, []),
        "half precision": (times, [Live(0, ms.float16), B], {}, []),
        "a Parameter that is not differentiated": (times, [PARAMETER, A], {}, []),
        "a Parameter that is not differentiated, last": (times, [A, PARAMETER], {}, []),
        "a Parameter that is differentiated": (times, [PARAMETER, A], {}, [PARAMETER]),
        "a Parameter twice": (times, [PARAMETER, PARAMETER], {}, [PARAMETER]),
        "a frozen Parameter": (times, [FROZEN, A], {}, []),
        "a tuple last": (container_last, [A, (C, B)], {}, []),
        "a tuple of constants first": (container_first, [(C, C), A], {}, []),
        "a list first": (container_first, [[B], A], {}, []),
        "one tensor in a list and beside it": (container_first, [[A], A], {}, []),
        "a nested list": (nested_list, [[C, [B]], A], {}, []),
        "a dict": (dictionary, [{"b": B, "a": C}, A], {}, []),
        "keywords in another order": (keywords, [A], {"c": B, "a": C}, []),
        "keywords alone": (keywords, [], {"c": B, "a": C, "x": A}, []),
        "one tensor in two keywords": (keywords, [C], {"c": B, "a": B}, []),
        "a Parameter as a keyword": (keywords, [A], {"c": PARAMETER, "a": C}, [PARAMETER]),
        "any arguments": (star, [C, A], {"one": B, "two": C}, []),
        "one tensor under any two names": (star, [C, A], {"two": B, "one": B}, []),
        "one that is not used": (unused, [A, C, B], {}, []),
        "one whose gradient is stopped": (stopped, [A, B], {}, []),
        "several results": (several, [C, A, WHOLE], {}, []),
        "results with names": (named_results, [C, A], {}, []),
        "an argument given back": (given_back, [C, A], {}, []),
        "branches": (branches, [WHOLE, A], {}, []),
        "Parameters of its own": (owner, [C, A], {}, [owner.w, owner.u]),
        "Parameters of its own, one differentiated": (owner, [A, B], {}, [owner.u]),
        "Parameters of its own, none differentiated": (owner, [C, A], {}, []),
        "its own Parameter as an argument": (owner, [owner.w, A], {}, [owner.w]),
        "a method": (Plain(), [C, A], {}, []),
    }


def filled(value, tensors):
    """Return arguments with tensors in place of what stands for them."""
    if isinstance(value, Live):
        return value.of(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)(filled(item, tensors) for item in value)
    return (
        {key: filled(item, tensors) for key, item in value.items()}
        if isinstance(value, dict)
        else value
    )


def leaves(value):
    """Return what tensors, and what stands for them, in order."""
    if isinstance(value, (Live, Tensor)):
        return [value]
    items = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple))
        else ()
    )
    return [leaf for item in items for leaf in leaves(item)]


def total(value, weight=1.0):
    """Return a sum in which every tensor of a result has a weight of its own."""
    floats = [leaf for leaf in leaves(value) if leaf.dtype in (ms.float16, ms.float32)]
    return sum((leaf * leaf * (place + weight)).sum() for place, leaf in enumerate(floats))


def expected(function, args, kwargs, weights):
    """Return, for each tensor of the arguments, its gradient by ms.grad of the uncompiled function, or None."""
    function = getattr(function, "compute", function)
    places = leaves([args, kwargs])
    values = [
        Tensor((place.of([X, Y]) if isinstance(place, Live) else place).asnumpy())
        for place in places
    ]
    differentiated = [
        number
        for number, place in enumerate(places)
        if (isinstance(place, Live) or any(place is weight for weight in weights))
        and values[number].dtype in (ms.float16, ms.float32)
    ]

    def rebuilt(value, given):
        if isinstance(value, (Live, Tensor)):
            return next(given)
        if isinstance(value, dict):
            return {key: rebuilt(item, given) for key, item in value.items()}
        return (
            type(value)(rebuilt(item, given) for item in value)
            if isinstance(value, (list, tuple))
            else value
        )

    def loss(*given):
        positional, named = rebuilt([args, kwargs], iter(given))
        return total(function(*positional, **named))

    gradients = iter(
        ms.grad(loss, tuple(differentiated))(*values)
        if len(differentiated) > 1
        else [ms.grad(loss, differentiated[0])(*values)]
    )
    return [
        next(gradients).asnumpy() if number in differentiated else None
        for number in range(len(places))
    ]


def flat(slots):
    """Return the records of nested slots in order."""
    if slots is None or (isinstance(slots, dict) and "type" in slots):
        return [slots]
    return [
        record
        for slot in (slots.values() if isinstance(slots, dict) else slots)
        for record in flat(slot)
    ]


def recorded(entry, kwargs=()):
    """Return the records of a backward entry's outputs in the order of the call."""
    named = entry.get("output_kwargs", {})
    return flat(entry["output"]) + [
        record for key in kwargs if key in named for record in flat(named[key])
    ]


def in_order(function, kwargs):
    """Return keyword arguments in the order of the signature: MindSpore makes positional ones of them."""
    names = list(inspect.signature(getattr(function, "compute", function)).parameters)
    return dict(
        sorted(
            kwargs.items(),
            key=lambda item: names.index(item[0]) if item[0] in names else len(names),
        )
    )


def check(dump, records, gradients):
    assert len(records) == len(gradients)
    for record, gradient in zip(records, gradients):
        assert (record is None) == (gradient is None)
        if record is None:
            continue
        numbers = gradient.astype(np.float64)
        found = [record[name] for name in ("Max", "Min", "Mean", "Norm")]
        wanted = [numbers.max(), numbers.min(), numbers.mean(), np.sqrt((numbers * numbers).sum())]
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        if "data_name" in record:
            np.testing.assert_allclose(dump.array(record["data_name"]), gradient, rtol=1e-6)


class Around(nn.Cell):
    """A Cell that calls a compiled function."""

    def __init__(self, function):
        super().__init__()
        self._function = [function]

    def construct(self, *args, **kwargs):
        return self._function[0](*args, **kwargs)


class Model(nn.Cell):
    """A model with one such Cell."""

    def __init__(self, function):
        super().__init__()
        self.around = Around(function)

    def construct(self, *args, **kwargs):
        return self.around(*args, **kwargs)


def differentiate(function, args, kwargs, weights):
    """Train one step: the arguments are made of X and Y, so that gradients go on behind them."""

    def loss(x, y):
        made = {number: tensor * 1.0 for number, tensor in enumerate((x, y))}
        return total(function(*filled(args, made), **filled(kwargs, made)))

    return ms.grad(loss, (0, 1), ms.ParameterTuple(weights) if weights else None)(X, Y)


def sums(gradients, places):
    """Return the gradients as a Cell's entry has them: of one tensor given twice the sum stands in the first slot."""
    result = list(gradients)
    for number, place in enumerate(places):
        first = (
            places.index(place)
            if isinstance(place, Live)
            else next(i for i, other in enumerate(places) if other is place)
        )
        if first != number and result[number] is not None:
            result[first], result[number] = result[first] + result[number], None
    return result
