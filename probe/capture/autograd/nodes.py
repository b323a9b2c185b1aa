# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The private node API of MindSpore's autograd. Only this module knows its versions."""

from __future__ import annotations

import contextlib
import operator
import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from probe.executor import pynative_executor
from probe.private_names import installed_parts

Key = tuple[Any, int]  # identifies one output of one node, while something holds that node
Node = Any

LEAF = 2**64 - 1  # leaves (parameters, differentiated inputs) share this sequence number

_HOOK_COUNT = (
    "_HOOK_VERSION"  # MindSpore keys its compiled functions with this count of registered hooks
)

_by_unique_id: Callable[[Node], Any] = operator.methodcaller("_unique_id")


class AutogradNodes:
    """Access to the graph nodes of tensors (``_grad_node``)."""

    def __init__(self) -> None:
        import mindspore
        from mindspore._c_expression import TensorPy

        executor = pynative_executor()
        self.tensor: type = mindspore.Tensor  # the class of tensors
        #: the dtypes that have gradients. Tensors of others (argmax) may have nodes too.
        names = "float16 float32 float64 bfloat16 complex64 complex128".split()
        self.continuous = frozenset(getattr(mindspore, name) for name in names)
        #: node -> a value that is equal for two wrappers of the same node; this one is for MindSpore below 2.9
        self.identify: Callable[[Node], Any] = lambda node: (node.name(), node._sequence_nr())
        self.grad_enabled: Callable[[], bool] = (
            bool  # returns whether MindSpore records the graph now
        )
        self.is_differentiated = (
            self.grad_enabled
        )  # returns whether a function that is differentiated has begun
        #: waits for asynchronous work. It raises a pending error of the training, once. So the tool calls it before it
        #: reads a tensor, and never in a guard.
        self.synchronize: Callable[[], None] = executor.sync
        # below Tensor's method: torch on MindSpore has one of its own, whose calls are recorded
        self._view = getattr(TensorPy, "view", mindspore.Tensor.view)
        self._anchor = mindspore.Parameter(
            mindspore.Tensor([1.0, 2.0], mindspore.float32), name="probe_anchor"
        )
        parts = installed_parts()
        #: whether this MindSpore's node API passed the self-test, and why not: otherwise it is not used
        self.works = parts.make("gradients", lambda: self._is_right(executor), False)
        self.reason = parts.reason("gradients")

    def key(self, tensor: Any) -> Key | None:
        """Return the place in the graph that this tensor comes from, or None for a constant."""
        return self.keys([(tensor._grad_node, tensor._output_index)])[0]

    def keys(self, edges: Iterable[tuple[Node | None, int]]) -> list[Key | None]:
        """Return the place in the graph that each edge leads to, or None for a constant."""
        identify = self.identify
        return [None if source is None else (identify(source), index) for source, index in edges]

    def newest_sequence_nr(self) -> int:
        """Return a number below the sequence number of every node made from now on."""
        node = self._view(
            self._anchor, -1
        )._grad_node  # of a parameter of the tool, which is connected to nothing else
        return LEAF if node is None else int(node._sequence_nr())

    def _is_right(self, executor: Any) -> bool:
        """Differentiate a known function and check the arguments of the hooks. The flag of the training stays."""
        import mindspore

        self.grad_enabled = executor.requires_grad
        self.is_differentiated = executor.grad_flag
        if (
            self.grad_enabled() and _is_inside_mindspore()
        ):  # the test would be a part of the training's graph
            if hasattr(self._view(self._anchor, -1)._grad_node, "_unique_id"):
                self.identify = _by_unique_id
            return True
        seen: dict[str, Any] = {}

        def look(doubled: Any, x: Any) -> None:
            node = doubled._grad_node
            (leaf, index), *_ = node.next_functions
            if hasattr(leaf, "_unique_id"):
                self.identify = _by_unique_id
            seen["leaf"] = (self.identify(leaf), index) == self.key(x)
            seen["order"] = (
                self.newest_sequence_nr() > node._sequence_nr() and leaf._sequence_nr() == LEAF
            )
            # rounded: the last bits of a device may be others
            node.register_prehook(
                lambda go: seen.__setitem__("pre", go[0].asnumpy().round(3).tolist())
            )
            node.register_hook(
                lambda gi, go: seen.__setitem__(
                    "hook", [t[0].asnumpy().round(3).tolist() for t in (gi, go)]
                )
            )

        def function(x: Any) -> Any:
            doubled = x * 2
            try:
                look(doubled, x)
            except (
                Exception
            ) as error:  # raised out of here, it would leave MindSpore differentiating for good
                seen["error"] = f"{type(error).__name__}: {error}"
            return (doubled * doubled).sum()

        with contextlib.ExitStack() as after:
            after.callback(executor.set_grad_flag, self.is_differentiated())
            mindspore.grad(function)(mindspore.Tensor([1.0, 3.0], mindspore.float32))
        expected = {
            "leaf": True,
            "order": True,
            "pre": [4.0, 12.0],
            "hook": [[8.0, 24.0], [4.0, 12.0]],
        }
        if seen != expected:
            raise RuntimeError(
                seen.get("error")
                or f"the self-test of the node API saw {seen} instead of {expected}"
            )
        return True


def _is_inside_mindspore() -> bool:
    """Return whether MindSpore has called this code, perhaps while it differentiates a function of the user's."""
    import mindspore

    root = os.path.dirname(mindspore.__file__) + os.sep
    return any(frame.f_code.co_filename.startswith(root) for frame, _ in traceback.walk_stack(None))


def remove_hooks(handles: list[Any]) -> None:
    """Remove the hooks of these handles, and empty the list. One that fails does not stop the others."""
    with preserve_hook_version(), contextlib.ExitStack() as every:
        for handle in handles:
            every.callback(handle.remove)
        handles.clear()


@contextlib.contextmanager
def preserve_hook_version() -> Iterator[None]:
    """Register and remove hooks without a trace in the count that MindSpore keys its compiled functions with.

    Optimizers are such functions: otherwise each step would compile them again and keep the result (2.8 and 2.9). Our
    hooks are never compiled: hooks of Cells and of parameters are removed during a compilation.
    """
    from mindspore.common import hook_handle

    before = getattr(hook_handle, _HOOK_COUNT, None)
    try:
        yield
    finally:
        if before is not None:
            setattr(hook_handle, _HOOK_COUNT, before)
