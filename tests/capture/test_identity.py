# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program looks at functions, in over forty ways: before, while and after it is watched they look the same."""

from __future__ import annotations

import collections
import copy
import dataclasses
import doctest
import enum
import functools
import inspect
import io
import operator
import pickle
import pydoc
import sys
import types
import typing
import unittest.mock
import weakref
from multiprocessing.reduction import ForkingPickler

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops

from probe.capture.code_patches import can_be_replaced
from probe.capture.support_ops import load_supported_apis
from tests.support.tensors import tensor


class Place:
    """A function at its place: taken at the beginning, and found there again whenever the program looks.

    Programs keep functions in tables, which are filled at the beginning.
    """

    def __init__(self, owner, name):
        self.owner, self.name = owner, name
        self.early = early = getattr(owner, name)
        self.table, self.members = {early: "found"}, {early}
        self.weak = (
            weakref.WeakValueDictionary({"it": early})
            if type(early) is types.FunctionType
            else None
        )
        self.partial = functools.partial(early, 1)
        self.cell = nn.Cell()
        self.cell.act = early
        self.kinds = enum.Enum("Kinds", {"IT": (early,)})
        self.data = dataclasses.make_dataclass(
            "Data", [("act", object, dataclasses.field(default=early))]
        )
        self.cached = functools.lru_cache(maxsize=None)(lambda function: object())
        self.answers = [self.cached(early)]
        self.mock = unittest.mock.Mock()
        self.mock(early)
        self.dispatched = functools.singledispatch(lambda function: "other")
        self.dispatched.register(types.FunctionType, lambda function: "function")

    @property
    def now(self):
        return getattr(self.owner, self.name)


WAYS = {
    "is": lambda p: p.now is p.early,
    "==": lambda p: p.now == p.early,
    "hash": lambda p: hash(p.now) == hash(p.early),
    "id": lambda p: id(p.now) == id(p.early),
    "a dict": lambda p: p.table.get(p.now),
    "a set": lambda p: p.now in p.members,
    "list.index": lambda p: [None, p.early].index(p.now),
    "Counter": lambda p: len(collections.Counter([p.early, p.now])),
    "operator.is_": lambda p: operator.is_(p.early, p.now),
    "a match statement": lambda p: match_statement(p.now, p),
    "the attribute of a Cell": lambda p: p.cell.act is p.now,
    "Enum": lambda p: p.kinds((p.now,)) is p.kinds.IT,
    "the default of a dataclass": lambda p: p.data() == p.data(p.now),
    "lru_cache": lambda p: p.cached(p.now) in p.answers,
    "a Mock's call": lambda p: p.mock.assert_called_with(p.now),
    "create_autospec": lambda p: str(inspect.signature(unittest.mock.create_autospec(p.now))),
    "partial": lambda p: p.partial.func is p.now and functools.partial(p.now, 1).func is p.early,
    "singledispatch": lambda p: p.dispatched(p.now),
    "weakref": lambda p: p.weak["it"] is p.now,
    "the names of a module": lambda p: (
        p.name in [name for name, value in vars(p.owner).items() if value is p.early]
    ),
    "pickle": lambda p: pickle.dumps(p.now),
    "pickle and back": lambda p: pickle.loads(pickle.dumps(p.now)) is p.early,
    "pickle of the early one": lambda p: pickle.loads(pickle.dumps(p.early)) is p.now,
    "multiprocessing": lambda p: bytes(ForkingPickler.dumps(p.now)),
    "copy": lambda p: copy.copy(p.now) is p.early,
    "deepcopy": lambda p: copy.deepcopy([p.now])[0] is p.early,
    "MethodType": lambda p: types.MethodType(p.now, 1) == types.MethodType(p.early, 1),
    "wraps": lambda p: functools.wraps(p.now)(lambda: None).__wrapped__ is p.early,
    "type": lambda p: type(p.now),
    "isinstance": lambda p: isinstance(p.now, (types.FunctionType, types.MethodDescriptorType)),
    "repr": lambda p: repr(p.now),
    "callable": lambda p: callable(p.now),
    "__name__": lambda p: p.now.__name__,
    "__qualname__": lambda p: p.now.__qualname__,
    "__module__": lambda p: getattr(p.now, "__module__", None),
    "__doc__": lambda p: p.now.__doc__,
    "__wrapped__": lambda p: getattr(p.now, "__wrapped__", None),
    "__defaults__": lambda p: p.now.__defaults__,
    "__kwdefaults__": lambda p: p.now.__kwdefaults__,
    "__annotations__": lambda p: p.now.__annotations__,
    "__globals__": lambda p: id(p.now.__globals__),
    "__closure__": lambda p: p.now.__closure__,
    "__get__": lambda p: type(p.now.__get__(tensor([1.0]))),
    "dir": lambda p: dir(p.now),
    "vars": lambda p: dict(vars(p.now)),
    "__signature__": lambda p: getattr(p.now, "__signature__", None),
    "__code__": lambda p: p.now.__code__,
    "the place of the code": lambda p: operator.attrgetter(
        "co_filename", "co_firstlineno", "co_name"
    )(p.now.__code__),
    "the free variables": lambda p: p.now.__code__.co_freevars,
    "the arguments of the code": lambda p: p.now.__code__.co_varnames[: p.now.__code__.co_argcount],
    "type hints": lambda p: typing.get_type_hints(p.now),
    "signature": lambda p: str(inspect.signature(p.now)),
    "signature().bind": lambda p: str(inspect.signature(p.now).bind(1)),
    "getfullargspec": lambda p: inspect.getfullargspec(p.now),
    "getsource": lambda p: inspect.getsource(p.now),
    "getsourcelines": lambda p: inspect.getsourcelines(p.now)[1],
    "getsourcefile": lambda p: inspect.getsourcefile(p.now),
    "getdoc": lambda p: inspect.getdoc(p.now),
    "getmodule": lambda p: inspect.getmodule(p.now),
    "unwrap": lambda p: inspect.unwrap(p.now) is inspect.unwrap(p.early),
    "is… of inspect": lambda p: [getattr(inspect, name)(p.now) for name in IS],
    "doctest": lambda p: [
        (test.name, test.lineno, len(test.examples)) for test in FIND(p.now, p.name)
    ],
    "pydoc": lambda p: pydoc.render_doc(p.now, renderer=pydoc.plaintext),
    "help": lambda p: help_of(p.now),
}
IS = sorted(name for name in vars(inspect) if name.startswith("is") and name not in ("iskeyword",))
FIND = doctest.DocTestFinder(exclude_empty=False).find
#: ways whose answer cannot be the bare one, as they show the code or the attribute with the signature: docs/limits.md
CODE = {"__code__", "the arguments of the code", "vars", "dir", "__signature__"}


def match_statement(value, place):
    """Compare by the statement of Python 3.10; before, by what it does."""
    if sys.version_info < (3, 10):
        return value == place.early
    names = {"value": value, "place": place}
    exec("match value:\n case place.early: found = True\n case _: found = False", names)
    return names["found"]


def help_of(value):
    """Return what ``help`` prints."""
    text = io.StringIO()
    pydoc.Helper(output=text)(value)
    return text.getvalue()


def look(place):
    """Return the answer to each way, or the error."""
    return {way: answer(function, place) for way, function in WAYS.items()}


def answer(function, place):
    try:
        return function(place)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _places():
    """Return a listed function of each kind, by the name of the kind."""
    apis = load_supported_apis(None)
    keys: dict[int, str] = {}
    found: dict[str, Place] = {"a function": Place(ops, "relu"), "a C method": Place(Tensor, "abs")}
    for api in apis:
        value = vars(api.owner).get(api.name)
        function = value.__func__ if isinstance(value, staticmethod) else value
        if not can_be_replaced(function):
            continue
        is_second, code = keys.setdefault(id(function), api.key) != api.key, function.__code__
        kinds = {
            "a second key of a function": is_second,
            "a method in Python": isinstance(api.owner, type) and value is function,
            "a static method": value is not function,
            "a closure": bool(code.co_freevars),
            "a function with defaults": bool(function.__defaults__),
            "a function with keyword-only arguments": bool(code.co_kwonlyargcount),
            "a decorated function": hasattr(function, "__wrapped__"),
            "a function of mint": api.owner is ms.mint,
            "a function of mindspore.numpy": api.owner is ms.numpy,
            "a collective": api.key.endswith(".isend"),
            "a function with several lines of signature": len(inspect.getsource(function)) > 5000,
        }
        for kind, fits in kinds.items():
            if fits and (not is_second or kind.startswith("a second")):
                found.setdefault(kind, Place(api.owner, api.name))
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return, for each kind, the answers before, while and after a recording."""
    from probe import PrecisionDebugger

    places = _places()
    before = {kind: look(place) for kind, place in places.items()}
    debugger = PrecisionDebugger(
        dump_path=str(tmp_path_factory.mktemp("identity") / "dump"), level="L1"
    )
    debugger.start()
    during = {kind: look(place) for kind, place in places.items()}
    debugger.stop()
    after = {kind: look(place) for kind, place in places.items()}
    debugger.close()
    return {kind: (before[kind], during[kind], after[kind]) for kind in places}


def differing(one, other):
    return {way for way in WAYS if one[way] != other[way]}


KINDS = [
    "a function", "a method in Python", "a static method", "a closure", "a function with defaults",
    "a function with keyword-only arguments", "a decorated function", "a function of mint",
    "a function of mindspore.numpy", "a collective", "a function with several lines of signature",
]  # fmt: skip
PATCHED = ["a second key of a function", "a C method"]


def test_there_is_a_function_of_each_kind(answers):
    assert set(answers) == {*KINDS, *PATCHED}
    assert len(WAYS) >= 40 + len(CODE)


@pytest.mark.parametrize("kind", [*KINDS, *PATCHED])
def test_after_the_recording_every_way_gives_the_bare_answer(answers, kind):
    before, _, after = answers[kind]
    assert differing(before, after) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_during_the_recording_every_way_but_those_into_the_code_gives_the_bare_answer(
    answers, kind
):
    before, during, _ = answers[kind]
    assert differing(before, during) <= CODE
    assert before["is"] is True and during["is"] is True
    assert "__code__" in differing(before, during)  # it is recorded


def test_a_second_key_is_another_object_but_looks_like_it(answers):
    before, during, _ = answers["a second key of a function"]
    found = differing(before, during)
    assert {"is", "==", "a dict", "pickle"} <= found
    assert not found & {
        "type",
        "signature",
        "getsource",
        "__name__",
        "__module__",
        "__doc__",
        "callable",
        "getdoc",
    }


def test_a_c_method_is_a_function_during_the_recording(answers):
    before, during, _ = answers["a C method"]
    found = differing(before, during)
    assert {"is", "==", "type", "pickle"} <= found
    assert not found & {"__name__", "__doc__", "callable", "isinstance", "__defaults__"} - {
        "__defaults__"
    }


class Chooses(nn.Cell):
    """Computes something else if its activation is not the one that it knows."""

    def __init__(self):
        super().__init__()
        self.act = ops.relu

    def construct(self, x):
        slope = 1.0 if self.act is ops.relu else 0.5
        return (self.act(x) * slope + {ops.tanh: ops.tanh}.get(ops.tanh)(x)).sum()


def test_a_training_that_compares_functions_takes_the_same_branch(debug):
    x, net = tensor([[-1.0, 2.0], [3.0, -4.0]]), Chooses()
    bare = net(x).asnumpy()
    loss, dump = debug.record(lambda: net(x), net, level="mix")
    assert loss.asnumpy().tobytes() == bare.tobytes()
    assert list(dump.data)[:3] == [
        "Functional.relu.0.forward",
        "Tensor.__mul__.0.forward",
        "Functional.tanh.0.forward",
    ]
