# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Computes something else in place of a call: in float32, by a formula, on the host, of a golden run, or nothing."""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from probe.capture.autograd.leaf_hooks import LeafHooks
from probe.errors import UsageError
from probe.executor import OwnOperations, pynative_executor
from probe.findings.sentence import Sentence, say
from probe.intervention.change import Change
from probe.layers.layer import completed, layers, modules_of, own_parameters
from probe.measure.dtype_name import dtype_name
from probe.measure.tensor_reader import to_numpy
from probe.naming import clean, written_inputs
from probe.process.isolated import Isolated
from probe.process.rank import RankResolver
from probe.pytree import leaves
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.run import open as open_run
from probe.recording.call import Call

HALF = ("Float16", "BFloat16")
_LIMIT = 600.0


class Treatment:
    """Runs around the calls that it takes. ``known`` has what the unchanged run has noted of each."""

    def __init__(self, known: Mapping[str, Any], names: Iterable[str] = ()) -> None:
        from mindspore import Tensor

        self.tensor: Any = Tensor
        self._known = known
        self.names = frozenset(names)

    def takes(self, call: Call) -> bool:
        """Return whether it takes a call: by its name, with or without direction, or by its key."""
        return not self.names.isdisjoint((call.forward, call.key, call.forward.rpartition(".")[0]))

    def run(
        self, call: Call, original: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Run a call of an API, whose ``inputs`` are among the arguments."""
        args, kwargs = self.before(call, None, (args, kwargs))
        return self.after(call, original(*args, **kwargs), inputs)

    def before(self, call: Call, cell: Any, value: Any) -> Any:
        """Return the arguments that a call gets; ``cell`` is None where it is an API."""
        return value

    def instead(self, call: Call, inputs: Any) -> Any:
        """Return the result of a Cell that does not run; None lets it run."""

    def updated(self, call: Call, held: Mapping[str, Any]) -> None:
        """See the parameters and the states of an optimizer after its update."""

    def end_step(self) -> None:
        """End a step."""

    def after(self, call: Call, result: Any, inputs: Any) -> Any:
        """Return the result in place of a call's own."""
        return result

    def of(self, call: Call) -> dict[str, Any]:
        """Return what is known of a call; {} where the first step had none of its key."""
        first = Call(call.kind, call.key, 0, None).forward
        return self._known.get(call.forward) or self._known.get(first) or {}

    def dtypes(self, value: Any) -> list[str]:
        """Return the dtypes of the tensors in a value."""
        return [dtype_name(leaf.dtype) for leaf in leaves(value) if isinstance(leaf, self.tensor)]

    def widened(self, value: Any) -> Any:
        """Return a value with float32 in place of half precision: tensors, and dtypes as arguments."""
        from mindspore import dtype, ops

        kinds = type(dtype.float16), type(dtype.bfloat16)

        def wide(leaf: Any) -> Any:
            if isinstance(leaf, self.tensor):
                is_half = dtype_name(leaf.dtype) in HALF
                return completed(ops.cast(leaf, dtype.float32), leaf) if is_half else leaf
            return dtype.float32 if type(leaf) in kinds and dtype_name(leaf) in HALF else leaf

        with uncast():
            return mapped(wide, value)

    def narrowed(self, value: Any, kinds: Iterable[str] | None) -> Any:
        """Return a value whose float32 tensors have the half precision that they had in the unchanged run."""
        from mindspore import dtype, ops

        left = iter(kinds or ())
        halves = {"Float16": dtype.float16, "BFloat16": dtype.bfloat16}

        def narrow(leaf: Any) -> Any:
            wanted = halves.get(next(left, "")) if isinstance(leaf, self.tensor) else None
            if wanted is None or dtype_name(leaf.dtype) != "Float32":
                return leaf
            return completed(ops.cast(leaf, wanted), leaf)

        with uncast():
            return mapped(narrow, value)


class Float32(Treatment):
    """Calls, and all calls of Cells, compute in float32. Numbers are cast back where they leave these Cells."""

    def takes(self, call: Call) -> bool:
        """See ``Treatment``; also the calls and the Cells in a Cell that is changed."""
        return super().takes(call) or self._is_inside(call)

    def run(
        self, call: Call, original: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Run a call of an API in float32."""
        with uncast():
            if not written_inputs(call.key):  # else the tensor that is written keeps its dtype
                args, kwargs = self.widened((args, kwargs))
            result = original(*args, **kwargs)
        return (
            result if self._is_inside(call) else self.narrowed(result, self.of(call).get("outputs"))
        )

    def before(self, call: Call, cell: Any, value: Any) -> Any:
        """Cast what enters a changed Cell, and what leaves one into another."""
        if call.key in self.names:
            return value if self._is_inside(call) else self.widened(value)
        return self.narrowed(value, self.of(call).get("inputs"))

    def after(self, call: Call, result: Any, inputs: Any) -> Any:
        """Cast back what leaves a changed Cell."""
        is_border = call.key in self.names and not self._is_inside(call)
        return self.narrowed(result, self.of(call).get("outputs")) if is_border else result

    def _is_inside(self, call: Call) -> bool:
        return call.cell is not None and call.cell.key in self.names


class Formula(Treatment):
    """Fused operators are computed by their formulas of ``probe replay``, in float32 at least."""

    def run(
        self, call: Call, original: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Compute the formula."""
        from probe.replaying.references import reference_of

        reference = reference_of(described(call, [], {}))
        if reference is None or _is_of_torch(original):
            raise UsageError(say("try.no_formula", name=call.key))
        with uncast():
            args, kwargs = self.widened((tuple(inputs[0]), dict(inputs[1])))
            return self.narrowed(reference(*args, **kwargs), self.of(call).get("outputs"))


class Host(Treatment):
    """The values of calls are computed by a process on the CPU; their gradients stay those of the device."""

    def run(
        self, call: Call, original: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Run a call, whose result gets the values of the host."""
        if _is_of_torch(original):
            raise UsageError(say("try.no_cpu", name=call.forward, reason=say("replay.of_torch")))
        return super().run(call, original, inputs, *args, **kwargs)

    def after(self, call: Call, result: Any, inputs: Any) -> Any:
        """Return the result with the values of the host."""
        from probe.replaying.worker import load, save

        folder, process = self._host
        plain = functools.partial(self._plain, functools.partial(save, folder))
        args, kwargs = mapped(plain, (list(inputs[0]), dict(inputs[1])))
        process.send(described(call, args, kwargs, [None for leaf in leaves(result)])._asdict())
        answer = process.receive(_LIMIT)
        if "here" not in answer:
            reason = Sentence.from_dict(answer.get("reason"))
            raise UsageError(say("try.no_cpu", name=call.forward, reason=reason))
        found = iter([load(leaf) for leaf in answer["here"]["outputs"] if leaf])
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        return mapped(
            lambda leaf: graft(leaf, next(found)) if isinstance(leaf, self.tensor) else leaf, result
        )

    @functools.cached_property
    def _host(self) -> tuple[str, Isolated]:
        folder = tempfile.mkdtemp(prefix="probe-host-")
        process = Isolated(
            "probe.replaying.worker:main", {"device": "CPU", "dtype": "", "folder": folder}
        )
        atexit.register(process.close)
        atexit.register(shutil.rmtree, folder, True)
        process.receive(_LIMIT)
        return folder, process

    def _plain(self, save: Callable[[Any], str], leaf: Any) -> Any:
        if isinstance(leaf, self.tensor):
            return {
                "array": save(to_numpy(leaf)),
                "dtype": dtype_name(leaf.dtype),
                "shape": list(leaf.shape),
            }
        return (
            leaf if isinstance(leaf, (bool, int, float, str, type(None))) else {"dtype": str(leaf)}
        )


class Skip(Treatment):
    """Cells give back their first input."""

    def instead(self, call: Call, inputs: Any) -> Any:
        """Return the input; raise UsageError when the Cell changes the shape."""
        result = next(leaf for leaf in leaves(inputs) if isinstance(leaf, self.tensor))
        shapes = self.of(call)["shapes"]
        if [list(result.shape)] != shapes:
            raise UsageError(
                say("try.turns", name=call.forward, left=str(list(result.shape)), right=str(shapes))
            )
        return result


class Golden(Treatment):
    """Calls get the outputs of a golden dump; unless "forward" is in the name, their inputs get its gradients too."""

    def __init__(self, known: Mapping[str, Any], names: Iterable[str], path: str) -> None:
        super().__init__(known, names)
        self._run = open_run(path)
        self._step = 0
        self._hooks = LeafHooks()

    def before(self, call: Call, cell: Any, value: Any) -> Any:
        """Let the gradients of inputs become those of the golden's backward, and those of a Cell's parameters."""
        if call.forward in self.names:
            return value
        tensors = [leaf for leaf in leaves(value) if isinstance(leaf, self.tensor)]
        found = zip(tensors, self._arrays(call.backward).values())
        passed = {id(leaf): _pass(leaf, array) for leaf, array in found if array is not None}
        if cell is not None:
            self._watch_parameters(call, cell)
        return mapped(lambda leaf: passed.get(id(leaf), leaf), value)

    def _watch_parameters(self, call: Call, module: Any) -> None:
        """Let the gradients of the parameters in a module become the golden's."""
        parts = parse(call.forward)
        prefix = call.key.partition(".")[0]
        for name, below in modules_of(module):
            path = f"{parts.path}.{name}" if name else parts.path
            entry = clean(f"{prefix}.{path}.{type(below).__name__}.parameters_grad.0")
            held = own_parameters(below)
            for place, array in self._arrays(entry).items():
                parameter = held.get(place.partition(".")[0])
                if parameter is not None and array is not None:
                    golden = _tensor(array, parameter.dtype)
                    value_of = functools.partial(_second, golden=golden)
                    self._hooks.register([(parameter, value_of)])

    def after(self, call: Call, result: Any, inputs: Any) -> Any:
        """Return the golden's outputs."""
        found = iter(self._arrays(call.forward).values())
        if result is None or any(
            result is item for item in inputs[0]
        ):  # a call that writes its first input
            for array in found:
                write(inputs[0][0], array)
            return result
        with uncast():
            values = [leaf for leaf in leaves(result) if isinstance(leaf, self.tensor)]
            pairs = {id(leaf): graft(leaf, array) for leaf, array in zip(values, found)}
            return mapped(lambda leaf: pairs.get(id(leaf), leaf), result)

    def updated(self, call: Call, held: Mapping[str, Any]) -> None:
        """Write the golden's parameters and states after an update."""
        for place, array in self._arrays(call.forward).items() if self.takes(call) else ():
            if place.partition(".")[2] in held:
                write(held[place.partition(".")[2]], array)

    def end_step(self) -> None:
        """Release the parameters."""
        self._hooks.remove()
        self._step += 1

    def _arrays(self, name: str) -> dict[str, Any]:
        """Return the arrays of an entry's outputs in this step by place; {} where there is none."""
        steps = self._run.steps
        parts = parse(name)
        if steps and self._step not in steps:
            return {}
        dump = self._run.dump(self._step if steps else None, RankResolver().rank())
        found = dump.get(name)
        if found is None and parts.path:  # a Cell of another class at this place
            same = (
                one for one in dump.calls(direction=parts.direction) if one.parts.path == parts.path
            )
            found = next((one for one in same if one.parts[0::5] == parts[0::5]), None)
        outputs = {} if found is None else found.outputs
        return {
            place: item.array() if hasattr(item, "array") else None
            for place, item in outputs.items()
        }


def _is_of_torch(function: Callable[..., Any]) -> bool:
    """Return whether a function is of an adapter of torch: operators are known by MindSpore's names alone."""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    return any(package in layer.packages for layer in layers())


def _second(gradient: Any, golden: Any) -> Any:
    """Return the golden gradient in place of the training's."""
    return golden


def treatments(change: Change, known: Mapping[str, Any]) -> list[Treatment]:
    """Return what runs around the calls of a training."""
    kinds = {"float32": Float32, "cpu": Host, "formula": Formula, "skip": Skip}
    found = [
        kind(known, getattr(change, name)) for name, kind in kinds.items() if getattr(change, name)
    ]
    return [*found, *([Golden(known, change.put_in, change.golden)] if change.put_in else [])]


def described(call: Call, args: list[Any], kwargs: dict[str, Any], outputs: Any = ()) -> Any:
    """Return a call as ``probe replay`` hands it to another process."""
    from probe.replaying.described import CallDescription

    return CallDescription(
        call.key, args, kwargs, call.parts.get("attributes", {}), "", [*outputs], []
    )


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with each leaf replaced; lists, tuples and dicts stay what they are, also those of a class.

    >>> mapped(abs, [(-1,), {"a": -2}])
    [(1,), {'a': 2}]
    """
    if isinstance(value, dict):
        made = copy.copy(value)
        for key, item in value.items():
            made[key] = mapped(function, item)
        return made
    if isinstance(value, (list, tuple)):
        items = [mapped(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return function(value)


def graft(tensor: Any, values: Any) -> Any:
    """Return a tensor with these values, through which gradients flow as through the given one: y + (values - y)."""
    from mindspore import ops

    golden = _tensor(values, tensor.dtype)
    if golden.shape != tensor.shape:
        raise UsageError(say("try.other_shape", golden=str(golden.shape), shape=str(tensor.shape)))
    if not tensor.is_floating_point():
        return completed(golden, tensor)
    kept = ops.where(ops.isfinite(tensor), tensor, ops.zeros_like(tensor))
    for _ in range(2):  # the first sum may be one rounding off
        # an adapter of torch puts its own operators in the place of + and -
        kept = ops.add(kept, ops.stop_gradient(ops.sub(golden, kept)))
    return completed(kept, tensor)


def _pass(tensor: Any, golden: Any) -> Any:
    """Return a tensor with the same values, whose gradient is the golden's."""
    from mindspore import nn, ops

    class Passed(nn.Cell):  # type: ignore[misc]  # MindSpore has no types
        """Gives its second input as the gradient of its first."""

        def construct(self, x: Any, gradient: Any) -> Any:
            return ops.mul(x, 1)

        def bprop(self, x: Any, gradient: Any, out: Any, dout: Any) -> Any:
            return gradient, ops.zeros_like(gradient)

    if not tensor.is_floating_point():
        return tensor
    return completed(Passed()(tensor, _tensor(golden, tensor.dtype)), tensor)


def _tensor(array: Any, dtype: Any) -> Any:
    from mindspore import Tensor

    return Tensor(array.astype("float32") if array.dtype.itemsize == 2 else array, dtype)


def write(tensor: Any, array: Any) -> None:
    """Write values into a tensor's own memory: after ``set_data`` a compiled optimizer updates it no more."""
    from mindspore.ops.auto_generate.gen_ops_prim import InplaceCopy

    OwnOperations().run(InplaceCopy(), tensor, _tensor(array, tensor.dtype))


@contextlib.contextmanager
def uncast() -> Iterator[None]:
    """Run operations without the casts of mixed precision; gradients are recorded."""
    from mindspore._c_expression import MixedPrecisionType

    executor = pynative_executor()
    executor.set_mixed_precision_type(MixedPrecisionType.NOTSET)
    try:
        yield
    finally:
        executor.set_mixed_precision_type(MixedPrecisionType.NOTSET, False)
