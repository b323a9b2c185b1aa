# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Replaces the code of MindSpore's functions, and restores it. The function stays the object that it is.

So ``self.act is ops.relu`` is as true as without probe, and names that were imported before start are watched too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple, Protocol

from probe.layers.layer import layers
from probe.recording.call_stacks import REPLACEMENT, is_replacement

#: takes (key, original function, args, kwargs); runs the function and records the call
RecordedCall = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]

_UNSUPPORTED = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_ITERABLE_COROUTINE
)
#: The code that a function has while it is recorded. Its frame is the only one that a call has more than without probe.
#: It mentions the free variables of the original, because a function takes only code with as many as its own. Texts in
#: it are replaced by the objects of these names: constants are the fastest to reach.
_SOURCE = """
def outer({parameters}):
    def replacement(*args, **kwargs):
        "docstring"
        _original = "original"
        if "state".in_recorded_call:
            return _original(*args, **kwargs)
        _call = "gate".call
        if _call is None:
            return _original(*args, **kwargs)
        "state".in_recorded_call = True
        try:
            return _call("key", _original, args, kwargs)
        finally:
            "state".in_recorded_call = False
        {mentions}
"""


class State(Protocol):
    """The state of each thread: whether an outer call is recorded, so that calls inside it are not."""

    in_recorded_call: bool


class Gate:
    """The only way from a function's code to the capture. It is closed while nothing is installed."""

    __slots__ = ("call",)

    def __init__(self) -> None:
        #: runs and records a call. The garbage collector does not look into code: a capture in it would never be freed.
        self.call: RecordedCall | None = None


class _Made(NamedTuple):
    """A replacement and all that it was made from, assigned at once: an interrupt leaves all old or all new."""

    code: CodeType
    replacement: CodeType
    defaults: tuple[Any, ...] | None
    keyword_defaults: dict[str, Any] | None
    signature: inspect.Signature | None


def can_be_replaced(function: Any) -> bool:
    """Return whether the code of a function can be replaced: of MindSpore or a layer above it, in Python, no generator.

    >>> can_be_replaced(len), can_be_replaced(can_be_replaced)
    (False, False)
    """
    return (
        type(function) is FunctionType
        and str(function.__globals__.get("__name__")).partition(".")[0] in _packages()
        and not function.__code__.co_flags & _UNSUPPORTED
    )


def _packages() -> set[str]:
    return {"mindspore", *(package for layer in layers() for package in layer.packages)}


class CodePatch:
    """One function whose code is replaced. ``inspect.signature`` shows its own signature also meanwhile."""

    __slots__ = ("_gate", "_state", "function", "key", "made")

    def __init__(self, function: FunctionType, key: str, state: State, gate: Gate) -> None:
        self.function = function
        self.key = key
        self._state = state
        self._gate = gate
        self.made: _Made | None = None

    def make(self) -> _Made:
        """Make the replacement anew from the function as it is now."""
        function = self.function
        other = _original(
            function.__code__
        )  # that of a capture which has not removed its replacement
        code = function.__code__ if other is None else other.__code__
        names = function.__globals__
        defaults = function.__defaults__
        original = FunctionType(code, names, function.__name__, defaults, function.__closure__)
        original.__kwdefaults__ = function.__kwdefaults__
        original.__annotations__ = function.__annotations__
        original.__module__ = function.__module__
        original.__qualname__ = function.__qualname__
        signature = self._signature(original, other)
        if signature is not None:
            original.__signature__ = signature  # type: ignore[attr-defined]  # functions take attributes
        constants = {
            "state": self._state,
            "gate": self._gate,
            "original": original,
            "key": self.key,
        }
        replacement = _replacement(code, {"docstring": REPLACEMENT, **constants})
        self.made = _Made(code, replacement, defaults, function.__kwdefaults__, signature)
        return self.made

    def _signature(
        self, original: FunctionType, other: FunctionType | None
    ) -> inspect.Signature | None:
        """Return the signature of the original; None if ``inspect`` finds one in the function's attributes."""
        attributes = self.function.__dict__
        own = attributes.get("__signature__")
        if other is not None and own is other.__dict__.get("__signature__"):
            own = None
        return (
            None
            if own is not None or "__wrapped__" in attributes
            else _signature_of(_Parts(original))
        )


# one loop for all functions: 1,300 calls of a method took half as long again


def _install(patches: Iterable[CodePatch]) -> None:
    """Replace the code. The user may have changed a function since the last time, so each is read again."""
    for patch in patches:
        function = patch.function
        made = patch.made
        now = function.__code__
        if made is not None and now is made.replacement:
            continue
        if made is None or not (
            now is made.code
            and function.__defaults__ is made.defaults
            and function.__kwdefaults__ is made.keyword_defaults
        ):
            made = patch.make()
        if made.signature is not None:
            function.__signature__ = made.signature  # type: ignore[attr-defined]  # functions take attributes
        function.__code__ = made.replacement


def _remove(patches: Iterable[CodePatch]) -> None:
    """Restore the code. Code that somebody else has given a function since is left alone."""
    for patch in patches:
        function = patch.function
        made = patch.made
        if made is not None:
            if function.__code__ is made.replacement:
                function.__code__ = made.code
            if (
                made.signature is not None
                and function.__dict__.get("__signature__") is made.signature
            ):
                del function.__dict__["__signature__"]


class CodePatches:
    """All functions whose code is replaced, one patch for each. Methods may be called twice, and after an interrupt."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._gates: list[tuple[Gate, RecordedCall]] = []
        self._patches: dict[int, CodePatch] = {}
        self._by_key: defaultdict[str, list[CodePatch]] = defaultdict(list)
        self._is_installed = False
        #: the keys whose functions ``install`` replaces; None for all
        self.only: Collection[str] | None = None
        self._installed: Collection[CodePatch] = ()
        self._keys_of_codes: dict[int, str] = {}

    def gate(self, call: RecordedCall) -> Gate:
        """Return a gate that leads to this call while the patches are installed."""
        gate = Gate()
        self._gates.append((gate, call))
        return gate

    def add(self, function: FunctionType, key: str, gate: Gate) -> str:
        """Add a function, unless it is there under another key. Return the key under which it is recorded."""
        known = self._patches.get(id(function))
        if known is None:
            known = self._patches[id(function)] = CodePatch(function, key, self._state, gate)
            self._by_key[key].append(known)
            self._keys_of_codes.clear()
        return known.key

    def key_of(self, code: CodeType) -> str | None:
        """Return the key of the function that has this code, replaced or not; None where none has."""
        if not self._keys_of_codes:  # by identity: equal functions have equal code
            for patch in self._patches.values():
                function = _original(patch.function.__code__) or patch.function
                self._keys_of_codes[id(function.__code__)] = patch.key
        return self._keys_of_codes.get(id(code))

    def install(self) -> None:
        """Replace the code of the functions; see ``only``."""
        self._is_installed = True
        for gate, call in self._gates:
            gate.call = call
        if self._installed:  # of an interrupted step
            _remove(self._installed)
        self._installed = self._patches.values()
        if self.only is not None:
            self._installed = [patch for key in self.only for patch in self._by_key.get(key, ())]
        _install(self._installed)

    def remove(self) -> None:
        """Restore all functions."""
        _remove(self._installed)
        for gate, _ in self._gates:
            gate.call = None
        self._is_installed = False
        self._installed = ()

    @contextlib.contextmanager
    def restored(self, function: Any) -> Iterator[None]:
        """Restore one function, or a method's function, while MindSpore reads its code."""
        found = self._patches.get(id(getattr(function, "__func__", function)))
        if found is None or found.made is None or found.function.__code__ is found.made.code:
            yield
            return
        _remove((found,))
        try:
            yield
        finally:
            if self._is_installed:
                _install((found,))


class _Parts:
    """All that the signature of a function is made from. Equal if they are the same objects."""

    __slots__ = ("all",)

    def __init__(self, function: FunctionType) -> None:
        self.all = (
            function.__code__,
            function.__defaults__,
            function.__kwdefaults__,
            function.__annotations__,
        )

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.all)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Parts) and all(map(operator.is_, self.all, other.all))


@functools.lru_cache(4096)
def _signature_of(parts: _Parts) -> inspect.Signature:
    """Return the signature of a function with these parts. Those of all listed functions take 20 ms."""
    code, defaults, keyword_defaults, annotations = parts.all
    function = FunctionType(
        code, {}, code.co_name, defaults, tuple(map(CellType, code.co_freevars))
    )
    function.__kwdefaults__ = keyword_defaults
    function.__annotations__ = annotations
    return inspect.signature(function)


def _original(code: CodeType) -> FunctionType | None:
    """Return the function with the original code, if code is a replacement."""
    return (
        next(value for value in code.co_consts if type(value) is FunctionType)
        if is_replacement(code)
        else None
    )


def _replacement(code: CodeType, constants: dict[str, Any]) -> CodeType:
    """Return code that records calls and runs the original. Its file, line and name are those of the original."""
    template = _template(code.co_freevars)
    values = tuple(
        constants[value] if type(value) is str else value for value in template.co_consts
    )
    same = {name: getattr(code, name) for name in ("co_filename", "co_firstlineno", "co_name")}
    if hasattr(code, "co_qualname"):  # since Python 3.11
        same["co_qualname"] = code.co_qualname
    return template.replace(co_consts=values, **same)


@functools.cache
def _template(free: tuple[str, ...]) -> CodeType:
    """Return a replacement with these free variables. All of it lies in its first line."""
    tree = ast.parse(_SOURCE.format(parameters=", ".join(free), mentions=", ".join(free) or "pass"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.stmt, ast.expr, ast.arg)):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0
    code = compile(tree, __file__, "exec")
    for _ in ("outer", "replacement"):
        code = next(value for value in code.co_consts if isinstance(value, CodeType))
    return code
