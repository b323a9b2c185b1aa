# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The Primitives that a model's Cells hold: between start and stop each instance has a recorded subclass."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from probe.capture.pynative.apis import ApiHooks
from probe.capture.pynative.context import CaptureContext
from probe.naming import PRIMITIVE, clean

_log = logging.getLogger("probe")


def find_primitives(cells: Iterable[Any]) -> list[tuple[str, Any]]:
    """Return (attribute, Primitive) for every Primitive that these Cells hold. The first attribute names it."""
    from mindspore.ops import Primitive

    found: dict[int, tuple[str, Any]] = {}
    for cell in cells:
        for attribute, value in vars(cell).items():
            if isinstance(value, Primitive):
                found.setdefault(id(value), (attribute, value))
    return list(found.values())


class PrimitiveHooks:
    """Replaces the classes of Primitive instances, and restores them; ``held`` comes from ``find_primitives``."""

    def __init__(self, context: CaptureContext, held: Iterable[tuple[str, Any]]) -> None:
        self._apis, self._state = ApiHooks(context), context.state
        self._found: list[tuple[Any, type, type]] = []
        for attribute, primitive in held:
            own = type(primitive)
            key = clean(f"{PRIMITIVE}.{attribute}.{own.__name__}")
            self._found.append((primitive, own, self._subclass(own, key)))

    def install(self) -> None:
        """Give every Primitive its recorded class."""
        for primitive, own, recorded in self._found:
            if type(primitive) is own:
                try:
                    primitive.__class__ = recorded
                except TypeError as error:
                    _log.warning("the Primitive %s cannot be recorded: %s", own.__name__, error)

    def remove(self) -> None:
        """Restore the class of every Primitive."""
        for primitive, own, recorded in self._found:
            if type(primitive) is recorded:
                primitive.__class__ = own

    def _subclass(self, own: type, key: str) -> type:
        apis, state, original = self._apis, self._state, own.__call__
        copy: Callable[..., Any] = getattr(own, "__deepcopy__")  # noqa: B009 - mypy does not know it

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            inside, state.in_recorded_call = state.in_recorded_call, True
            try:
                return apis.call(key, original, (self, *args), kwargs, args, self)
            finally:
                state.in_recorded_call = inside

        def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
            """Return a copy that is not recorded: our class could not be taken from it again."""
            copied = copy(self, memo)
            if type(copied) is type(self) and copied is not self:  # a user's class may return anything
                copied.__class__ = own
            return copied

        same = {name: getattr(own, name) for name in ("__module__", "__qualname__", "__doc__")}
        return type(own)(own.__name__, (own,), {"__call__": __call__, "__deepcopy__": __deepcopy__, **same})
