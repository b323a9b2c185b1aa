# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Replaces attributes of MindSpore's modules and classes, and restores the originals, alone or in groups.

A replaced attribute is another object. Functions that shall stay themselves have a ``CodePatch``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol

_NOTHING = object()


def around(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the ``wrap`` of a patch whose replacement calls ``function(original, *args, **kwargs)``."""

    def wrap(original: Any) -> Any:
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        return stand_in if original is None else functools.update_wrapper(stand_in, original)

    return wrap


def original_of(function: Any) -> Any:
    """Return the function that a patch of ours has replaced; another function itself.

    >>> original_of(around(print)(len)) is len, original_of(len) is len
    (True, True)
    """
    while getattr(getattr(function, "__code__", None), "co_filename", "") == __file__ and hasattr(
        function, "__wrapped__"
    ):
        function = function.__wrapped__
    return function


@contextlib.contextmanager
def holding(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give an attribute a value inside of a block."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class Patch:
    """One attribute that is replaced by ``wrap(original)``; with ``absent`` by ``wrap(None)`` if the owner has none."""

    __slots__ = ("_absent", "_made", "_module", "_name", "_own", "_owner", "_wrap")

    def __init__(
        self, owner: Any, name: str, wrap: Callable[[Any], Any], absent: bool = False
    ) -> None:
        self._owner = owner
        self._name = name
        self._wrap = wrap
        self._absent = absent
        #: a module's dict is written directly, which is several times faster than setattr
        self._module: dict[str, Any] | None = vars(owner) if type(owner) is ModuleType else None
        #: the original and its replacement, assigned at once: an interrupt leaves the old pair or the new
        self._made: tuple[Any, Any] = (_NOTHING, _NOTHING)
        self._own: Any = _NOTHING

    def install(self) -> None:
        """Replace the attribute. The user may have changed the original since the last time, so it is read again."""
        names = self._module
        (original, replacement) = self._made
        if names is not None and original is not _NOTHING and names.get(self._name) is original:
            self._own = original
            names[self._name] = replacement
            return
        current = getattr(self._owner, self._name, _NOTHING)
        if current is _NOTHING and not self._absent:
            return
        own = vars(self._owner).get(self._name, _NOTHING)
        if own is replacement and own is not _NOTHING:
            return
        if current is not original or replacement is _NOTHING:
            replacement = self._wrap(None) if current is _NOTHING else self._stand_in(current)
            self._made = current, replacement
        self._own = own
        setattr(self._owner, self._name, replacement)

    def _stand_in(self, current: Any) -> Any:
        """Return the replacement. A static method stays one, so ``x.from_numpy(a)`` passes no instance."""
        replacement = self._wrap(current)
        found = inspect.getattr_static(self._owner, self._name, None)
        return (
            staticmethod(replacement)
            if isinstance(found, (staticmethod, classmethod))
            else replacement
        )

    def remove(self) -> None:
        """Restore the original. A replacement that somebody else has installed since is left alone."""
        names = self._module
        replacement = self._made[1]
        found = (vars(self._owner) if names is None else names).get(self._name, _NOTHING)
        if replacement is _NOTHING or found is not replacement:
            return
        if self._own is _NOTHING:  # inherited: Tensor's methods from TensorPy
            delattr(self._owner, self._name)
        elif names is not None:
            names[self._name] = self._own
        else:
            setattr(self._owner, self._name, self._own)


class Hooks(Protocol):
    """Hooks in MindSpore or a model."""

    def install(self) -> None:
        """Install the hooks."""

    def remove(self) -> None:
        """Restore the original state."""


class HookGroup:
    """Installs hooks in their order and removes them in the reverse order. Both methods may be called twice."""

    def __init__(self, hooks: Iterable[Hooks] = ()) -> None:
        self._hooks = list(hooks)
        self._is_installed = self.is_suspended = (
            False  # while suspended, the hooks are removed until ``resume``
        )

    def add(self, hooks: Hooks) -> None:
        """Add hooks, and install them if the others are."""
        self._hooks.append(hooks)
        if self._is_installed:
            hooks.install()

    def discard(self, hooks: Hooks | None) -> None:
        """Remove hooks and forget them."""
        if hooks is not None and hooks in self._hooks:
            hooks.remove()
            self._hooks.remove(hooks)

    def install(self) -> None:
        """Install all hooks."""
        self.is_suspended = False
        if not self._is_installed:
            self._is_installed = True
            for hooks in self._hooks:
                hooks.install()

    def remove(self) -> None:
        """Remove all hooks. After an interrupt, the next call removes those that are left."""
        self.is_suspended = False
        if self._is_installed:
            for hooks in reversed(self._hooks):
                hooks.remove()
            self._is_installed = False

    def suspend(self) -> None:
        """Remove the hooks until ``resume``."""
        if self._is_installed:
            self.remove()
            self.is_suspended = True

    def resume(self) -> None:
        """Install again the hooks that ``suspend`` removed, unless ``remove`` was called meanwhile."""
        if self.is_suspended:
            self.install()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Remove the hooks while something is compiled."""
        was_suspended = self.is_suspended
        self.suspend()
        try:
            yield
        finally:
            if not was_suspended:
                self.resume()
