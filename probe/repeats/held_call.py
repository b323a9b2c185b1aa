# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Holds the calls of gradient functions in a step, with all that is needed to make them again.

Tensors that the backward does not differentiate, and the random state, are copied when a call begins. Parameters that
train are copied when it ends: before the update, whoever makes it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.training.events import optimizer_kinds
from probe.executor import OwnOperations, found_in, pynative_executor
from probe.findings.sentence import NOTHING, Sentence, say
from probe.measure.tensor_reader import element_count, local_tensor, to_numpy
from probe.repeats.reached import Reached, state_of
from probe.store.error_log import ErrorLog

#: beginnings of random Primitives, besides all that are made with a seed; those with these ends take seed and offset
_RANDOM = ("Dropout", "Random", "Multinomial")
_OTHERS = ("Ext", "Grad", "DoMask", "Generator", "V2")


class Values:
    """The values of tensors at one moment, and the states of generators, of a call ``run``. ``put`` puts them back."""

    def __init__(self, copier: Copier, reached: Reached, run: Any = None) -> None:
        self._copier = copier
        self.reached = reached
        self.run = run
        self._attributes = reached.attributes()
        self._states: list[Callable[[], Any]] = copier.states(reached.generators)
        self.positions = reached.positions()
        self.copies: dict[int, tuple[Any, Any]] = {}  # tensors with their copies

    def copy(self, earlier: Values | None = None, trains: bool | None = None) -> None:
        """Copy the tensors that train, those that do not, or all. Equal copies of an earlier moment are shared."""
        for tensor in self.reached.tensors:
            is_filled = element_count(tensor) and not getattr(
                tensor, "has_init", False
            )  # else no operation may take it
            is_wanted = trains in (None, self._copier.trains(tensor))
            if is_wanted and is_filled and id(tensor) not in self.copies:
                known = earlier and earlier.copies.get(id(tensor))
                is_equal = known and self._copier.on_cpu and same_bits(tensor, known[1])
                self.copies[id(tensor)] = (
                    known if known and is_equal else (tensor, self._copier.copy(tensor))
                )

    def put(self) -> None:
        """Put all back, bit for bit. Raise ValueError where a tensor does not take its bits."""
        lost: list[str] = []
        for held, kept in self._attributes:
            changed = {
                name for name, value in held.items() if name in kept and value is not kept[name]
            }
            held.update({name: kept[name] for name in (*changed, *(kept.keys() - held.keys()))})
        for tensor, copy in self.copies.values():
            if not same_bits(tensor, copy):
                self._copier.write(tensor, copy)
                lost += [] if same_bits(tensor, copy) else [getattr(tensor, "name", "a tensor")]
        for put in self._states:
            self._copier.run(put)
        if lost:
            raise ValueError(f"these do not take their values again: {', '.join(lost)}")


def same_bits(tensor: Any, copy: Any) -> bool:
    """Return whether two tensors have equal bits. It waits for both."""
    found = to_numpy(local_tensor(tensor))
    known = to_numpy(copy)
    return found.shape == known.shape and found.tobytes() == known.tobytes()


class Copier:
    """Copies tensors where they are, and writes them back, by operations that nobody records."""

    def __init__(self, on_cpu: bool) -> None:
        import mindspore
        from mindspore import nn
        from mindspore.common.generator import default_generator
        from mindspore.ops import Primitive
        from mindspore.ops.auto_generate import copy_op
        from mindspore.ops.auto_generate.gen_ops_prim import InplaceCopy

        self.on_cpu = on_cpu
        self._copy_op = copy_op
        self._write_op = InplaceCopy()
        self._parameter = mindspore.Parameter
        self.run = OwnOperations().run
        self.reached = functools.partial(
            Reached,
            mindspore.Tensor,
            nn.Cell,
            (*optimizer_kinds(), Primitive),
            frozenset(vars(nn.Cell())),
        )
        self._seeds = importlib.import_module("mindspore.common.seed")._KERNEL_SEED
        self._generators = [random, np.random, default_generator]

    def trains(self, tensor: Any) -> bool:
        """Return whether a tensor is a parameter that has a gradient."""
        return isinstance(tensor, self._parameter) and bool(tensor.requires_grad)

    def copy(self, tensor: Any) -> Any:
        """Return a copy of all bits."""
        return self.run(self._copy_op, local_tensor(tensor))

    def write(self, tensor: Any, copy: Any) -> None:
        """Write a copy into a tensor. An adapter of torch has another method ``copy_``."""
        self.run(self._write_op, local_tensor(tensor), copy)

    def states(self, generators: list[Any]) -> list[Callable[[], Any]]:
        """Return what puts the states of all generators back, those of the process and some others."""
        known = {id(generator): generator for generator in (*self._generators, *generators)}
        found = [self.run(state_of, generator) for generator in known.values()]
        return [*filter(None, found), functools.partial(self._put_seeds, dict(self._seeds))]

    def _put_seeds(self, seeds: dict[Any, Any]) -> None:
        self._seeds.clear()
        self._seeds.update(seeds)


class HeldCalls:
    """The calls of gradient functions of the step that is open, outermost ones only."""

    def __init__(self, on_cpu: bool, errors: ErrorLog) -> None:
        from mindspore.ops.composite import base

        self._copier = Copier(on_cpu)
        self._errors = errors
        kinds = (base.GradOperation, base._Grad)
        self._hooks = HookGroup([Patch(kind, "__call__", around(self._made)) for kind in kinds])
        self._obstacles = HookGroup(self._find_obstacles())
        self._is_inside = self._is_open = self._stays = False
        self.calls: list[Values] = []  # those that have ended
        self.reason = NOTHING  # why they cannot be made again
        self.nbytes = 0  # the bytes of all copies of the last step

    def _find_obstacles(self) -> Iterator[Patch]:
        """Yield patches of all that a second call would not do again."""
        from mindspore.dataset.engine import iterators

        yield Patch(
            iterators.Iterator, "__next__", around(self._refusing("again.draws", lambda item: True))
        )
        yield Patch(
            found_in("_JitExecutor"),
            "__call__",
            around(self._refusing("again.compiled", _is_foreign)),
        )
        for kind in _random_primitives():
            is_stateful = lambda item: getattr(item, "attrs", {}).get("random_cache") is not False  # noqa: E731
            yield Patch(kind, "__call__", around(self._refusing("again.kernel", is_stateful)))

    def _refusing(self, key: str, holds: Callable[[Any], bool]) -> Callable[..., Any]:
        def run(original: Callable[..., Any], item: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_inside:
                found = say("again.unheld")  # a user's Primitive may call anything `attrs`
                with self._errors.guard("looking for what does not repeat"):
                    function = getattr(item, "fn", item)
                    name = getattr(function, "__name__", None) or type(item).__name__
                    found = say(key, name=name) if holds(item) else NOTHING
                self._refuse(found)
            return original(item, *args, **kwargs)

        return run

    def install(self) -> None:
        """Begin to hold: a new step, unless one is open."""
        if not self._is_open:
            self.calls = []
            self.reason = NOTHING
        self._is_open = True
        self._hooks.install()
        self._obstacles.install()

    def remove(self) -> None:
        """Hold no more, unless no call was seen: under `probe run` a call begins before its step."""
        self._obstacles.remove()
        self._stays |= not self.calls
        if not self._stays:
            self._hooks.remove()

    def end_step(self) -> None:
        """Let go of all, but note the bytes of all copies."""
        copies = {id(copy): copy for call in self.calls for _, copy in call.copies.values()}
        self._is_open = False
        self.nbytes = sum(copy.nbytes for copy in copies.values())
        self.calls = []
        self.reason = NOTHING

    def close(self) -> None:
        """Restore MindSpore."""
        self._obstacles.remove()
        self._hooks.remove()
        self.end_step()

    def make_again(self) -> None:
        """Make all calls once more, in their order, each with its values."""
        with (
            contextlib.ExitStack() as after_error
        ):  # else a gradient that it ended makes the next one of second order
            after_error.callback(pynative_executor().clear_res)
            for call in self.calls:
                call.put()
                call.run()
            after_error.pop_all()

    @contextlib.contextmanager
    def put_back(self) -> Iterator[None]:
        """Put everything back after the calls were made again, however that ends."""
        now = Values(
            self._copier, self._copier.reached([call.reached.roots for call in self.calls])
        )
        now.copy()
        try:
            yield
        finally:
            now.put()

    def _refuse(self, reason: Sentence) -> None:
        self.reason = self.reason or reason

    def _made(self, original: Callable[..., Any], operation: Any, *args: Any, **kwargs: Any) -> Any:
        function = original(operation, *args, **kwargs)
        if not getattr(operation, "pynative_", False):  # it makes another one, or is compiled
            return function
        return functools.wraps(function)(
            lambda *given, **named: self._call(function, (args, kwargs), given, named)
        )

    def _call(self, function: Callable[..., Any], roots: Any, args: Any, kwargs: Any) -> Any:
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main:
            self._refuse(say("again.thread"))
        if self._is_inside or not is_main:
            return function(*args, **kwargs)
        self._is_inside = True
        held = None
        has_ended = False
        try:
            with self._errors.guard("holding a gradient function"):
                reached = self._copier.reached(roots, args, kwargs)
                held = Values(self._copier, reached, functools.partial(function, *args, **kwargs))
                held.copy(trains=False)
            result = function(*args, **kwargs)
            has_ended = True
            return result
        finally:
            self._is_inside = False
            with self._errors.guard("holding a gradient function"):
                if has_ended:
                    self._end(held)

    def _end(self, held: Values | None) -> None:
        if held is None:
            self._refuse(say("again.unheld"))
            return
        if held.positions != held.reached.positions():
            self._refuse(say("again.draws", name="iterator"))
        held.copy(self.calls[-1] if self.calls else None, trains=True)
        self.calls.append(held)


def _is_foreign(compiled: Any) -> bool:
    """Return whether a compiled function is none of MindSpore's own, as loss scalers have them."""
    return not str(getattr(compiled.fn, "__module__", "")).startswith("mindspore.")


def _random_primitives() -> Iterator[type]:
    """Yield the classes of Primitives whose kernels draw random numbers from a state of their own."""
    from mindspore.ops import Primitive

    waiting: list[type] = [Primitive]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__name__.endswith(_OTHERS):
            continue
        with contextlib.suppress(TypeError, ValueError):
            names = inspect.signature(kind).parameters
            if kind.__name__.startswith(_RANDOM) or any("seed" in name.lower() for name in names):
                yield kind
