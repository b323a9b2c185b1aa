# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Operations outside of every listed API, recorded where MindSpore's Python hands them to C++.

There are few kinds of such places: global functions ``pyboost_…``, the executor's methods, classes ``_Pyboost…Prim``,
global instances ``_…_instance`` of overloaded functions, and two methods that make a node with a bprop of the user.
The Primitives that a model's Cells hold are recorded too: between start and stop each instance has a subclass.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from types import BuiltinFunctionType, FrameType
from typing import Any

from probe.capture.patches import HookGroup, Patch
from probe.capture.pynative.context import ApiHooks, CaptureContext
from probe.capture.pynative.jit import RECOMPUTE_MODULE
from probe.executor import pynative_executor
from probe.naming import PRIMITIVE, clean
from probe.pytree import leaves

#: operations that only read the shape or type of their input, or give it back
_ON_HOST = frozenset(
    "typeof Shape TensorShape Rank DType IsDimUnKnown make_range isinstance_ stop_gradient Depend".split()
)
#: these return handles, and belong to the listed collectives
_COLLECTIVE = ("pyboost_dist_comm_", "pyboost_inner_comm_")
#: modules that only pass the names on; others copy names out of the first while they are imported
_PASS_ON = (
    "mindspore._c_expression",
    "mindspore.ops.auto_generate",
    "mindspore.ops.auto_generate.gen_ops_def",
)
_TOOL = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
#: of MindSpore: between the caller of an operation and its place
_MACHINERY = ("mindspore/graph/api.py", "mindspore/common/api.py", "mindspore/ops/primitive.py")
_PRIVATE_NAME = re.compile(r"^_Pyboost(.+?)_?Prim$")
_OUTSIDE = f"{PRIMITIVE}.fn:"  # begins the keys of operations outside of every listed API
_log = logging.getLogger("probe")


class OperationHooks:
    """Records the operations that run outside of a recorded call."""

    def __init__(self, context: CaptureContext) -> None:
        import mindspore
        from mindspore import _c_expression

        self._context = context
        self._apis = ApiHooks(context)
        self._primitive = mindspore.ops.Primitive
        self._tensor = mindspore.Tensor
        self._places: list[
            tuple[dict[str, Any], str, Any, Any]
        ] = []  # a module's names, name, original, replacement
        self._replacements: dict[int, Any] = {}
        overloaded = [
            kind for name, kind in vars(_c_expression).items() if name.endswith("Functional_")
        ]
        self._kinds = {
            BuiltinFunctionType: self._run_listed,
            **dict.fromkeys(overloaded, self._run_overloaded),
        }
        self._scanned: set[str] = set(_PASS_ON)
        self._patches = HookGroup(self._methods())
        self._is_chosen = True
        self._is_installed = False

    @property
    def keys(self) -> set[str]:
        """No keys: those of operations are known when they run."""
        return set()

    def choose(self, only: Collection[str] | None) -> None:
        """Let ``install`` replace the places only if one of these keys is of an operation."""
        self._is_chosen = only is None or any(key.startswith(_OUTSIDE) for key in only)

    def install(self) -> None:
        """Replace the places, also those of modules that were imported since the last time."""
        if not self._is_chosen:
            return
        self._is_installed = True
        if len(self._scanned) < len(sys.modules):
            self._scan()
        for names, name, original, replacement in self._places:
            if names.get(name) is original:
                names[name] = replacement
        self._patches.install()

    def remove(self) -> None:
        """Restore the originals."""
        if not self._is_installed:
            return
        self._patches.remove()
        for names, name, original, replacement in self._places:
            if names.get(name) is replacement:
                names[name] = original
        self._is_installed = False

    # -- the places -----------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        kinds = self._kinds
        for module_name, module in list(sys.modules.items()):
            if module_name in self._scanned:
                continue
            self._scanned.add(module_name)
            names: Any = getattr(module, "__dict__", None)
            for name, value in list(names.items()) if isinstance(names, dict) else ():
                if type(value) not in kinds:
                    continue
                own = value.__name__ if type(value) is BuiltinFunctionType else "pyboost_"
                if own.startswith("pyboost_") and not own.startswith(_COLLECTIVE):
                    replacement = self._replacements.setdefault(
                        id(value), self._around(kinds[type(value)])(value)
                    )
                    self._places.append((names, name, value, replacement))

    def _methods(self) -> Iterator[Patch]:
        from mindspore import nn
        from mindspore.common._grad_function import _Function

        yield Patch(nn.Cell, "_call_custom_bprop", self._around(self._run_custom_bprop))
        yield _ClassMethodPatch(_Function, "apply", self._around(self._run_function))
        executor = type(pynative_executor())
        for name in ("run_op_async", "real_run_op"):
            yield Patch(executor, name, self._around(self._run_by_executor))
        module = importlib.import_module("mindspore.ops.auto_generate.pyboost_inner_prim")
        for value in list(vars(module).values()):
            if isinstance(value, type) and _PRIVATE_NAME.match(value.__name__):
                yield Patch(value, "__call__", self._around(self._run_private))

    def _around(self, run: Callable[..., Any]) -> Callable[[Any], Any]:
        context = self._context
        state = self._context.state

        def wrap(original: Any) -> Any:
            def place(*args: Any, **kwargs: Any) -> Any:
                recorder = context.recorder
                if state.in_recorded_call or recorder is None or recorder.queue.runs_own_operation:
                    return original(*args, **kwargs)
                return run(original, *args, **kwargs)

            return place

        return wrap

    # -- calls ----------------------------------------------------------------------------------------------------

    def _run_listed(self, original: Any, primitive: Any, inputs: Any, *rest: Any) -> Any:
        return self._record(
            primitive.name, original, (primitive, inputs, *rest), {}, inputs, primitive
        )

    def _run_by_executor(
        self, original: Any, executor: Any, primitive: Any, name: str, inputs: Any
    ) -> Any:
        return self._record(
            name, original, (executor, primitive, name, inputs), {}, inputs, primitive
        )

    def _run_private(self, original: Any, primitive: Any, *inputs: Any) -> Any:
        match = _PRIVATE_NAME.match(type(primitive).__name__)
        return self._record(
            match[1] if match else "", original, (primitive, *inputs), {}, inputs, primitive
        )

    def _run_overloaded(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        return self._record(original.name, original, args, kwargs, args)

    def _record(
        self,
        name: str,
        original: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: Any,
        primitive: Any = None,
    ) -> Any:
        state = self._context.state
        recorder = self._context.recorder
        key = ""
        has_tensor = False
        if recorder is None or name in _ON_HOST:
            return original(*args, **kwargs)
        state.in_recorded_call = True
        try:
            with recorder.guard("naming an operation", key=name):
                has_tensor = self._has_tensor((inputs, kwargs))
                key = clean(f"{_OUTSIDE}{self._owner(sys._getframe(2))}.{name}")
            if not (has_tensor and key):
                result = original(*args, **kwargs)
                if not (key and self._has_tensor(result)):
                    return result
                original = lambda *_, **__: result  # noqa: E731
            return self._apis.enter(key, original, args, kwargs, inputs, primitive)
        finally:
            state.in_recorded_call = False

    def _run_custom_bprop(self, original: Any, cell: Any, *args: Any, **kwargs: Any) -> Any:
        """Record the node of a Cell that defines its bprop. The operations inside are recorded too."""
        if type(cell).__module__ == RECOMPUTE_MODULE:
            return original(cell, *args, **kwargs)
        key = clean(f"{_OUTSIDE}{type(cell).__name__}.bprop")
        return self._apis.enter(key, original, (cell, *args), kwargs, args)

    def _run_function(self, original: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Record the node of a ``_Function``, which defines its backward."""
        key = clean(f"{_OUTSIDE}{function.__name__}.backward")
        return self._apis.enter(key, original, (function, *args), kwargs, args)

    def _has_tensor(self, value: Any) -> bool:
        return any(isinstance(leaf, self._tensor) for leaf in leaves(value))

    def _owner(self, frame: FrameType | None) -> str:
        """Return the name of the function or Cell class that calls the operation."""
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(_TOOL) and not code.co_filename.endswith(_MACHINERY):
                is_method = code.co_argcount > 0 and code.co_varnames[0] == "self"
                owner = frame.f_locals.get("self") if is_method else None
                if not isinstance(owner, self._primitive):
                    return code.co_name if owner is None else type(owner).__name__
            frame = frame.f_back
        return "unknown"


class _ClassMethodPatch(Patch):
    """Replaces a class method by one whose original also receives the class."""

    def _stand_in(self, current: Any) -> Any:
        return classmethod(self._wrap(current.__func__))


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
    """Replaces the classes of Primitive instances, and restores them; ``held`` comes from ``find_primitives``.

    Another capture may have replaced them before: then that one's class is the own one until ``remove``, which is to
    come before its.
    """

    def __init__(self, context: CaptureContext, held: Iterable[tuple[str, Any]]) -> None:
        self._apis = ApiHooks(context)
        self._state = context.state
        self._found = [
            (clean(f"{PRIMITIVE}.{attribute}.{type(primitive).__name__}"), primitive)
            for attribute, primitive in held
        ]
        self._only: Collection[str] | None = None
        self._classes: dict[tuple[type, str], type] = {}  # (own class, key) -> the recorded class
        #: the Primitives that have a recorded class, their own one, and the recorded one
        self._replaced: list[tuple[Any, type, type]] = []

    @property
    def keys(self) -> set[str]:
        """The keys of all these Primitives."""
        return {key for key, *_ in self._found}

    def choose(self, only: Collection[str] | None) -> None:
        """Let ``install`` give the Primitives with these keys alone their recorded class."""
        self._only = only

    def install(self) -> None:
        """Give every Primitive its recorded class."""
        only = self._only
        if self._replaced:  # of an interrupted step
            self.remove()
        for key, primitive in self._found:
            if only is None or key in only:
                own = type(primitive)
                recorded = self._recorded(own, key)
                self._replaced.append((primitive, own, recorded))
                try:
                    primitive.__class__ = recorded
                except TypeError as error:
                    _log.warning("the Primitive %s cannot be recorded: %s", own.__name__, error)

    def remove(self) -> None:
        """Restore the class of every Primitive."""
        for primitive, own, recorded in reversed(self._replaced):
            if type(primitive) is recorded:
                primitive.__class__ = own
        self._replaced = []

    def _recorded(self, own: type, key: str) -> type:
        """Return the recorded class for a class of a Primitive."""
        found = self._classes.get((own, key))
        if found is None:
            found = self._classes[own, key] = self._subclass(own, key)
        return found

    def _subclass(self, own: type, key: str) -> type:
        apis = self._apis
        state = self._state
        original = own.__call__
        copy: Callable[..., Any] = getattr(own, "__deepcopy__")  # noqa: B009 - mypy does not know it

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            return state.unseen(apis.enter, key, original, (self, *args), kwargs, args, self)

        def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
            """Return a copy that is not recorded: our class could not be taken from it again."""
            copied = copy(self, memo)
            if (
                type(copied) is type(self) and copied is not self
            ):  # a user's class may return anything
                copied.__class__ = own
            return copied

        same = {name: getattr(own, name) for name in ("__module__", "__qualname__", "__doc__")}
        return type(own)(
            own.__name__, (own,), {"__call__": __call__, "__deepcopy__": __deepcopy__, **same}
        )
