# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells whether a schedule of the user's own only computes: then it may run once more, and nobody can notice.

A schedule may count its calls, draw random numbers, or write a file. Run once more, it would change the training. So
its source is read, and each name in it is looked up. Only the names listed here are known to change nothing.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
import textwrap
from collections.abc import Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_BUILTINS = frozenset((min, max, abs, float, int, bool, len, pow, round, sum, range, tuple))
#: names of functions of MindSpore, and of Tensor's methods, that compute and do nothing else
_NAMES = frozenset(
    "abs acos add asin astype atan broadcast_to cast ceil clamp clip clip_by_value concat cos cosh div divide equal "
    "exp expand_dims expm1 flatten float floor floor_div floor_divide floor_mod fmod full full_like gather greater "
    "greater_equal half int isfinite isinf isnan le less less_equal linspace log log10 log1p log2 logical_and "
    "logical_not logical_or lt gt ge eq ne max maximum mean min minimum mod mul multiply neg negative not_equal ones "
    "ones_like pow prod reciprocal remainder reshape round rsqrt scalar_to_tensor select sigmoid sign sin sinh sqrt "
    "square squeeze stack sub subtract sum tan tanh tensor to true_divide trunc unsqueeze where zeros "
    "zeros_like".split()
)
#: the same as Primitives
_PRIMITIVES = frozenset(
    "Abs ACos Add Asin Atan Cast Ceil Concat Cos Cosh Div Equal Exp ExpandDims Expm1 Floor FloorDiv FloorMod Gather "
    "Greater GreaterEqual IsFinite Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul "
    "Neg NotEqual Pow RealDiv Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Reshape Rint Round Rsqrt Select "
    "Sigmoid Sign Sin Sinh Sqrt Square Squeeze Stack Sub Tan Tanh TruncateDiv".split()
)
#: statements and expressions that may do more than compute, or that nobody writes in a schedule
_REFUSED = (
    ast.AsyncFunctionDef,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.AugAssign,
    ast.Await,
    ast.ClassDef,
    ast.Delete,
    ast.Global,
    ast.Import,
    ast.ImportFrom,
    ast.Lambda,
    ast.Nonlocal,
    ast.Try,
    ast.With,
    ast.Yield,
    ast.YieldFrom,
    ast.NamedExpr,
)
#: dictionaries of hooks of a Cell, which is called with its hooks
_HOOKS = (
    "_forward_pre_hook", "_forward_hook", "_backward_pre_hook", "_backward_hook", "_lazy_forward_pre_hook_with_kwargs",
    "_lazy_forward_hook_with_kwargs", "_lazy_forward_hook_always_called",
)  # fmt: skip
_DEPTH = 8  # functions and Cells below a schedule
_MISSING = object()
_SCHEDULES = frozenset(("mindspore.nn.learning_rate_schedule", "mindspore.nn.optim.optimizer"))
_ATTRIBUTES = frozenset(("dtype", "shape", "size", "ndim", "T"))


class MayDoMore(Exception):
    """The function may do more than compute. The text says why."""


def check_schedule(cell: Any, depth: int = 0) -> None:
    """Raise MayDoMore unless a call of this Cell only computes.

    >>> check_schedule(print)
    Traceback (most recent call last):
    probe.capture.training.plain_functions.MayDoMore: print is no Cell
    """
    from mindspore import nn

    kind = type(cell)
    if not isinstance(cell, nn.Cell):
        raise MayDoMore(f"{getattr(cell, '__name__', kind.__name__)} is no Cell")
    if depth > _DEPTH:
        raise MayDoMore("its functions are nested too deeply")
    if _is_of_mindspore(kind):
        if kind.__module__ not in _SCHEDULES:
            raise MayDoMore(f"it calls {kind.__name__}")
    else:
        for name in ("__call__", "__getattr__", "__getattribute__", "_run_construct"):
            if inspect.getattr_static(kind, name, None) is not inspect.getattr_static(
                nn.Cell, name, None
            ):
                raise MayDoMore(f"{kind.__name__} has a {name} of its own")
        _Body(inspect.getattr_static(kind, "construct"), cell, kind, depth).check()
    if "construct" in vars(cell) or any(getattr(cell, name, None) for name in _HOOKS):
        raise MayDoMore(f"{kind.__name__} has hooks")


def _is_of_mindspore(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "mindspore"


class _Body:
    """One function: the names in it, looked up in the Cell ``of`` whose method it is, and in its module."""

    def __init__(self, function: Any, of: Any, owner: type | None, depth: int) -> None:
        self._function = function
        self._of = of
        self._owner = owner
        self._depth = depth
        if not isinstance(function, FunctionType):
            raise MayDoMore(f"it calls {getattr(function, '__name__', type(function).__name__)}")
        self._tree = _source(function.__code__)
        arguments = self._tree.args
        #: the name of the Cell in a method
        self._self = arguments.args[0].arg if of is not None and arguments.args else ""
        named = (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        )
        self._locals = {argument.arg for argument in named if argument is not None} - {self._self}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self._locals.add(node.id)

    def check(self) -> None:
        """Raise MayDoMore unless the function only computes."""
        if self._self in self._locals:
            raise MayDoMore(f"it assigns to {self._self}")
        for statement in self._tree.body:
            self._visit(statement)

    def _visit(self, node: ast.AST) -> None:
        line = getattr(node, "lineno", 0)
        if isinstance(node, (*_REFUSED, ast.FunctionDef)):
            raise MayDoMore(
                f"line {line} of its function has a statement that may do more than compute"
            )
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            raise MayDoMore(f"it assigns to {ast.unparse(node)}")
        if isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
            self._value(node)
        else:
            for child in ast.iter_child_nodes(node):
                self._visit(child)

    def _value(self, node: ast.AST) -> None:
        """Check an expression whose value is used, such as ``self.rate`` or ``x.dtype``."""
        if isinstance(node, ast.Attribute) and self._is_computed(node):
            if node.attr not in _ATTRIBUTES:
                raise MayDoMore(f"it reads {ast.unparse(node)}")
            self._visit(node.value)
        elif not (isinstance(node, ast.Name) and node.id in self._locals):
            found = self._lookup(node)
            if not _is_value(found):
                raise MayDoMore(f"it uses {ast.unparse(node)}, which is {_described(found)}")

    def _call(self, node: ast.Call) -> None:
        if any(keyword.arg in (None, "out") for keyword in node.keywords):
            raise MayDoMore(f"it calls {ast.unparse(node.func)} with an output")
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self._visit(argument)
        called = node.func
        if isinstance(called, ast.Attribute) and self._is_super(called.value):
            self._call_super(called.attr)
        elif isinstance(called, ast.Attribute) and self._is_computed(called):
            if called.attr not in _NAMES:
                raise MayDoMore(f"it calls {called.attr}")
            self._visit(called.value)
        elif isinstance(called, ast.Call):  # ops.Cos()(x)
            made = self._lookup(called.func)
            if not _is_primitive_class(made) or called.keywords or called.args:
                raise MayDoMore(f"it calls {ast.unparse(called)}")
        elif isinstance(called, ast.Name) and called.id in self._locals:
            raise MayDoMore(f"it calls {called.id}")
        elif isinstance(called, (ast.Attribute, ast.Name)):
            found = self._lookup(called)
            if isinstance(found, np.ufunc) and len(node.args) > found.nin:  # the others are written
                raise MayDoMore(f"it calls {ast.unparse(called)} with an output")
            self._called(found, ast.unparse(called))
        else:
            raise MayDoMore(f"it calls {ast.unparse(called)}")

    def _is_super(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "super"
        )

    def _call_super(self, name: str) -> None:
        kinds = type(self._of).__mro__ if self._owner is not None else ()
        defining = [kind for kind in kinds if name in vars(kind)]
        here = next(
            (place for place, kind in enumerate(defining) if vars(kind)[name] is self._function),
            None,
        )
        above = defining[here + 1] if here is not None and here + 1 < len(defining) else None
        if above is None:
            raise MayDoMore(f"it calls super().{name}")
        if not _is_of_mindspore(above):
            _Body(vars(above)[name], self._of, above, self._depth + 1).check()
        elif above.__module__ not in _SCHEDULES:
            raise MayDoMore(f"it calls {above.__name__}.{name}")

    def _called(self, found: Any, text: str) -> None:
        """Check the callee: a function, a Primitive, a Cell, a method of the Cell."""
        from mindspore import Tensor, nn
        from mindspore.ops import Primitive

        if self._depth > _DEPTH:
            raise MayDoMore("its functions are nested too deeply")
        if isinstance(found, nn.Cell):
            check_schedule(found, self._depth + 1)
        elif isinstance(found, Primitive):
            if not _is_primitive_class(type(found)):
                raise MayDoMore(f"it calls {text}, which is {_described(found)}")
        elif isinstance(found, FunctionType) and not _is_of_mindspore(found):
            method = text.partition(".")[0] == self._self and bool(self._self)
            _Body(
                found,
                self._of if method else None,
                self._owner if method else None,
                self._depth + 1,
            ).check()
        elif not (found is Tensor or _is_listed(found)):
            raise MayDoMore(f"it calls {text}")

    def _is_computed(self, node: ast.Attribute) -> bool:
        """Return whether an attribute is that of a local value, or of a result: of a tensor or a number, then."""
        root: ast.AST = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._locals:
            return True
        return _is_value(self._lookup(node.value, None))

    def _lookup(self, node: ast.AST, instead: Any = _MISSING) -> Any:
        """Return the object of a name or a dotted name, without running a property."""
        if isinstance(node, ast.Name):
            if self._self and node.id == self._self:
                return self._of
            found = self._function.__globals__.get(node.id, vars(builtins).get(node.id, _MISSING))
            found = self._closure().get(node.id, found)
        elif isinstance(node, ast.Attribute):
            owner = self._lookup(node.value)
            if owner is self._of and owner is not None:
                found = _held(owner, node.attr)
            else:
                found = (
                    vars(owner).get(node.attr, _MISSING)
                    if isinstance(owner, ModuleType)
                    else _MISSING
                )
        else:
            found = _MISSING
        if found is _MISSING and instead is _MISSING:
            raise MayDoMore(f"it uses {ast.unparse(node)}")
        return instead if found is _MISSING else found

    def _closure(self) -> Mapping[str, Any]:
        cells = zip(self._function.__code__.co_freevars, self._function.__closure__ or ())
        return {name: cell.cell_contents for name, cell in cells if name != "__class__"}


def _held(cell: Any, name: str) -> Any:
    """Return an attribute of a Cell: a value, a Parameter, a Cell below it, or a method; a property is not run."""
    own = vars(cell)
    for place in (
        own,
        *(own.get(group) or {} for group in ("_params", "_buffers", "_cells", "_params_list")),
    ):
        if name in place:
            return place[name]
    found = inspect.getattr_static(type(cell), name, _MISSING)
    if isinstance(found, staticmethod):
        raise MayDoMore(f"it calls {name}")
    if isinstance(found, FunctionType) or _is_value(found):
        return found
    raise MayDoMore(f"it reads {name}")


def _is_value(value: Any) -> bool:
    """Return whether a value is a number, a text, a tensor, a dtype, or several of them: to use it runs nothing."""
    from mindspore import Tensor
    from mindspore.common import dtype

    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return all(map(_is_value, value))
    plain = (
        value is None
        or type(value) in (bool, int, float, str, np.ndarray)
        or isinstance(value, np.generic)
    )
    tensor = isinstance(value, Tensor) and _is_of_tensor(type(value))
    return (
        plain or tensor or isinstance(value, dtype.Type if hasattr(dtype, "Type") else dtype.Number)
    )


def _is_of_tensor(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("mindspore", "abc")


def _is_primitive_class(kind: Any) -> bool:
    return isinstance(kind, type) and _is_of_mindspore(kind) and kind.__name__ in _PRIMITIVES


def _is_listed(found: Any) -> bool:
    """Return whether a function only computes, by its module and name."""
    name = getattr(found, "__name__", "")
    if isinstance(found, type):
        return found in _BUILTINS
    if isinstance(found, BuiltinFunctionType) and getattr(math, name, None) is found:
        return True
    if isinstance(found, np.ufunc):
        return True
    try:
        is_builtin = found in _BUILTINS
    except TypeError:  # not hashable
        return False
    return is_builtin or (_is_of_mindspore(found) and name in _NAMES)


def _described(value: Any) -> str:
    return f"an object of the class {type(value).__name__}"


@functools.lru_cache(256)
def _source(code: CodeType) -> ast.FunctionDef:
    """Return the function of a code object; raise MayDoMore where its source is not at hand."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise MayDoMore("its source is not at hand") from error
    found = tree.body[0]
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name or found.decorator_list:
        raise MayDoMore(
            "its source is not at hand"
            if not isinstance(found, ast.FunctionDef)
            else "it is decorated"
        )
    return found


def adds_nothing_to(method: Any, original: Any, name: str) -> bool:
    """Return whether a method of the user's own gives the same as MindSpore's: its body begins with the same lines.

    ``name`` is the local name that both return. The lines behind, such as those that count the steps, do not assign it.
    """
    try:
        own, known = (_statements(_source(one.__code__)) for one in (method, original))
    except (AttributeError, MayDoMore):
        return False
    shared = known[:-1]
    if own[: len(shared)] != shared or not own or own[-1] != known[-1]:
        return False
    added = ast.parse("\n".join(own[len(shared) : -1]))
    return not any(_changes(node, name) for node in ast.walk(added))


def _changes(node: ast.AST, name: str) -> bool:
    """Return whether a node of a function changes what it returns, the local name."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Return)


def _statements(function: ast.FunctionDef) -> list[str]:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return [ast.unparse(statement) for statement in body]
