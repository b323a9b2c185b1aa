# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes calls while they run, inside of the process of a training. It owns all that it installs."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from probe.capture.autograd.nodes import remove_hooks
from probe.capture.patches import HookGroup, Patch, around
from probe.capture.training.events import KnownOptimizers, Listener, updates
from probe.errors import UsageError
from probe.capture.pynative.thread_state import ThreadState
from probe.executor import OwnOperations, pynative_executor
from probe.intervention.change import Change
from probe.measure.storage import written_inputs
from probe.monitor.cell_values import ONLY, CellTask, CellValues
from probe.naming import CELL, clean
from probe.process.isolated import Isolated
from probe.process.rank import RankResolver
from probe.pytree import leaves
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.run import open as open_run
from probe.recording.call import Call
from probe.store.error_log import ErrorLog
from probe.store.file_io import make_dirs

HALF = ("Float16", "BFloat16")
_LIMIT = 600.0


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with each leaf replaced; lists, tuples and dicts stay what they are.

    >>> mapped(abs, [(-1,), {"a": -2}])
    [(1,), {'a': 2}]
    """
    if isinstance(value, dict):
        return {key: mapped(function, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [mapped(function, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return function(value)


class Intervention(CellTask):
    """Changes the calls of a training, or writes down those of its first step, if there is no change.

    Args:
        change: the change.
        calls: the file of the calls of the first step.
        folder: where errors are written.
    """

    def __init__(self, change: Change, calls: str, folder: str) -> None:
        super().__init__(frozenset(("forward",)), lambda slot, tensor: None)
        from mindspore import dtype, ops

        self._given, self._calls, self.change = change, calls, self
        self._cast, self._single, self._float32 = ops.cast, dtype.float32, frozenset(change.float32)
        self._types = type(dtype.float16), type(dtype.bfloat16)
        self._known: dict[str, Any] = {}
        self._handles: list[Any] = []  # the hooks on parameters
        self._rows: list[dict[str, Any]] | None = [] if not change.said else None
        self._step, self._state, self._host = 0, ThreadState(), cast("Isolated | None", None)
        self._optimizers = KnownOptimizers(may_run=False)
        self._watch = CellValues(replace(ONLY, level="mix", unlisted=True), ErrorLog(folder, set()), self)
        if self._rows is None and not change.fault:
            with open(calls, encoding="utf-8") as file:
                self._known = {call["name"]: call for call in json.load(file)}

    # -- the steps --------------------------------------------------------------------------------------------------

    def open(self, models: Any) -> None:
        """Begin to change calls; also again within a step."""
        if self._rows is not None or any(getattr(self._given, name) for name in _OF_CALLS):
            self._watch.install(models)

    def pause(self) -> None:
        """Change nothing, until ``open``."""
        self._watch.remove()

    def close(self) -> None:
        """End the step."""
        self._watch.end_step()
        remove_hooks(self._handles)
        self._handles, self._step = [], self._step + 1
        if self._rows is not None:
            rows, self._rows = self._rows, None
            if not RankResolver().rank():
                make_dirs(os.path.dirname(self._calls))
                with open(self._calls, "w", encoding="utf-8") as file:
                    json.dump(rows, file)

    def parameters(self, parameters: Iterable[Any]) -> None:
        """Change no parameter; see ``Perturbation``."""

    def batch(self, *values: Any) -> None:
        """Change no batch."""

    # -- what PyNativeCapture calls ---------------------------------------------------------------------------------

    def hooks(self, context: Any) -> HookGroup:
        """Return the hooks of Cells and updates. Each Cell has its name already when it runs."""
        from mindspore import nn

        self._state = context.state
        return HookGroup([Patch(nn.Cell, "__call__", around(self._cell)), Listener(updates(), self._update)])

    def inputs(self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Note nothing; see ``Task``."""
        return {}

    def outputs(self, call: Call, result: Any, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
        """Note nothing; see ``Task``."""
        return {}

    def attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the attributes of a Primitive for its formula; see ``Task``."""
        return {"attributes": dict(attributes)}

    def begin(self, *given: Any) -> None:
        """Do nothing of what ``SavedTensors`` does, in whose place this stands."""

    remove = note_update = end_step = begin

    def around(
        self, call: Call, original: Callable[..., Any], inputs: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return what runs in place of a call of an API."""
        above = call.cell is not None and call.cell.key in self._float32
        if self._rows is not None:
            return functools.partial(self._written, call, original, inputs, named)
        if self._is_in(self._given.formula, call):
            return lambda *args, **kwargs: self._formula(call, inputs, named)
        if self._is_in(self._given.cpu, call):
            return lambda *args, **kwargs: self._host_values(call, original(*args, **kwargs), inputs, named)
        if above or call.forward in self._float32:
            return lambda *args, **kwargs: self._wide(call, above, original, args, kwargs)

        def run(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = self._with_gradients(call, (args, kwargs), (inputs, named))
            return self._put_in(call, original(*args, **kwargs), inputs)

        return run

    def _cell(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        opened = next(reversed(self._state.cells), None)
        if opened is None or opened.cell is not cell:
            return original(cell, *args, **kwargs)
        call: Call = opened.call
        if self._rows is not None:
            return self._written(call, functools.partial(original, cell), args, kwargs, *args, **kwargs)
        is_wide, above = call.key in self._float32, call.cell is not None and call.cell.key in self._float32
        known, unseen = self._of(call), self._state.unseen
        if call.key in self._given.skip:
            result = next(leaf for leaf in leaves((args, kwargs)) if hasattr(leaf, "asnumpy"))
            if [list(result.shape)] != known.get("shapes"):
                raise UsageError(f"--skip: {call.forward} turns {list(result.shape)} into {known.get('shapes')}")
            return result
        if is_wide and not above:
            args, kwargs = unseen(mapped, self._widened, (args, kwargs))
        elif above and not is_wide:
            args, kwargs = unseen(self._as_known, (args, kwargs), known.get("inputs"))
        args, kwargs = unseen(self._with_gradients, call, (args, kwargs), (args, kwargs))
        if self._is_in(self._given.put_in, call):
            unseen(self._put_in_parameters, call, cell)
        result = original(cell, *args, **kwargs)
        if is_wide and not above:
            result = unseen(self._as_known, result, known.get("outputs"))
        return unseen(self._put_in, call, result, args)

    def _update(self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result, (name, values) = original(optimizer, *args, **kwargs), self._optimizers.of(optimizer)
        key = clean(f"{CELL}.{name}.{type(optimizer).__name__}")
        if self._rows is not None:
            self._rows.append({**_row(f"{key}.forward.0", True, "", (), (), ()), "is_update": True})
        elif key in self._given.put_in or f"{key}.forward.0" in self._given.put_in:
            held = {**values.parameters, **values.states}
            for place, golden in self._golden(f"{key}.forward.0").items():
                if place.partition(".")[2] in held:
                    write(held[place.partition(".")[2]], golden)
        return result

    # -- the first step of the unchanged run ------------------------------------------------------------------------

    def _written(
        self, call: Call, original: Callable[..., Any], inputs: Any, named: Any, *args: Any, **kwargs: Any
    ) -> Any:
        before = [str(leaf.dtype) for leaf in leaves((inputs, named)) if isinstance(leaf, self._tensor)]
        result = original(*args, **kwargs)
        after = [leaf for leaf in leaves(result) if isinstance(leaf, self._tensor)]
        if self._rows is not None:
            kinds, shapes = [str(leaf.dtype) for leaf in after], [list(leaf.shape) for leaf in after]
            is_cell = call.key.startswith(f"{CELL}.")
            cell = "" if call.cell is None else call.cell.key
            self._rows.append(_row(call.forward, is_cell, cell, before, kinds, shapes))
        return result

    def _of(self, call: Call) -> dict[str, Any]:
        """Return what the unchanged run has noted of a call; {} where its first step had none of this key."""
        parts = parse(call.forward)
        first = f"{call.key}.forward.0" if call.key.startswith(f"{CELL}.") else f"{call.key}.0.forward"
        return self._known.get(call.forward) or self._known.get(first) or {} if parts else {}

    def _is_in(self, names: Sequence[str], call: Call) -> bool:
        return not {call.forward, call.key, call.forward.rpartition(".")[0]}.isdisjoint(names)

    # -- float32 ----------------------------------------------------------------------------------------------------

    def _widened(self, leaf: Any) -> Any:
        if isinstance(leaf, self._tensor):
            return self._cast(leaf, self._single) if str(leaf.dtype) in HALF else leaf
        return self._single if type(leaf) in self._types and str(leaf) in HALF else leaf

    def _as_known(self, value: Any, kinds: Sequence[str] | None) -> Any:
        """Return a value whose float32 tensors have the half precision that they had in the unchanged run."""
        from mindspore import dtype

        left, halves = iter(kinds or ()), {"Float16": dtype.float16, "BFloat16": dtype.bfloat16}

        def narrowed(leaf: Any) -> Any:
            if not isinstance(leaf, self._tensor):
                return leaf
            wanted = halves.get(next(left, ""))
            return leaf if wanted is None or str(leaf.dtype) != "Float32" else self._cast(leaf, wanted)

        with uncast():
            return mapped(narrowed, value)

    def _wide(self, call: Call, stays: bool, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a call in float32; its outputs stay so inside of a Cell that is changed as a whole."""
        with uncast():
            if not written_inputs(call.key):  # else the written tensor keeps its dtype
                args, kwargs = mapped(self._widened, (args, kwargs))
            result = original(*args, **kwargs)
        return result if stays else self._as_known(result, self._of(call).get("outputs"))

    # -- other values -----------------------------------------------------------------------------------------------

    def _formula(self, call: Call, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        from probe.replaying.references import reference_of

        reference = reference_of(_described(call, [], {}))
        if reference is None:
            raise UsageError(f"--formula: {call.key} has no formula")
        with uncast():
            args, kwargs = mapped(self._widened, (inputs, dict(named)))
            return self._as_known(reference(*args, **kwargs), self._of(call).get("outputs"))

    def _host_values(self, call: Call, result: Any, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Return the result with the values that a process on the CPU computes; gradients are those of the device."""
        from probe.replaying.worker import load, save

        with tempfile.TemporaryDirectory() as folder:
            plain = functools.partial(_plain, functools.partial(save, folder), self._tensor)
            described = _described(call, mapped(plain, list(inputs)), mapped(plain, dict(named)))
            if self._host is None:
                self._host = Isolated("probe.replaying.worker:main", {"device": "CPU", "dtype": "", "folder": tempfile.gettempdir()})
                self._host.receive(_LIMIT)
            self._host.send({**described._asdict()})
            answer = self._host.receive(_LIMIT)
            if "here" not in answer:
                raise UsageError(f"--cpu: {call.forward} cannot be computed on the host: {answer.get('reason')}")
            found = iter([load(leaf) for leaf in answer["here"]["outputs"] if leaf])
            return mapped(lambda leaf: graft(leaf, next(found)) if isinstance(leaf, self._tensor) else leaf, result)

    def _put_in(self, call: Call, result: Any, inputs: Any) -> Any:
        if not self._is_in(self._given.put_in, call):
            return result
        found = iter(self._golden(call.forward).values())
        if result is None or any(result is item for item in inputs):  # a call that writes its first input
            for golden in found:
                write(inputs[0] if result is None else result, golden)
            return result
        with uncast():
            values = [leaf for leaf in leaves(result) if isinstance(leaf, self._tensor)]
            pairs = {id(leaf): graft(leaf, golden) for leaf, golden in zip(values, found)}
            return mapped(lambda leaf: pairs.get(id(leaf), leaf), result)

    def _with_gradients(self, call: Call, value: Any, inputs: Any) -> Any:
        """Return arguments whose gradients become those of the golden's backward, unless only the forward is named."""
        if call.forward in self._given.put_in or not self._is_in(self._given.put_in, call):
            return value
        tensors = [leaf for leaf in leaves(inputs) if isinstance(leaf, self._tensor)]
        found = zip(tensors, self._golden(call.backward).values())
        passed = {id(leaf): _pass(leaf, golden) for leaf, golden in found if golden is not None}
        return mapped(lambda leaf: passed.get(id(leaf), leaf), value)

    def _put_in_parameters(self, call: Call, cell: Any) -> None:
        """Let the gradients of a Cell's parameters become the golden's, also of the Cells below it."""
        if call.forward in self._given.put_in:
            return
        path = parse(call.forward).path
        for name, below in cell.cells_and_names():
            key = clean(f"{CELL}.{path}{'.' * bool(name)}{name}.{type(below).__name__}")
            for place, golden in self._golden(f"{key}.parameters_grad.0").items():
                held = below._params.get(place.partition(".")[0])
                if held is not None and golden is not None:
                    value = _tensor(golden, held.dtype)
                    self._handles.append(held.register_hook(lambda gradient, value=value: value))

    def _golden(self, name: str) -> dict[str, Any]:
        """Return the arrays of the golden's outputs in this step by place; {} where it has no such call or step."""
        run, rank, parts = open_run(self._given.golden), RankResolver().rank(), parse(name)
        if run.steps and self._step not in run.steps:
            return {}
        dump = run.dump(self._step if run.steps else None, rank)
        found = dump.get(name)
        if found is None and parts.path:  # a Cell of another class at this place
            same = (one for one in dump.calls(direction=parts.direction) if one.parts.path == parts.path)
            found = next((one for one in same if one.parts[0::5] == parts[0::5]), None)
        outputs = {} if found is None else found.outputs
        return {place: item.array() if hasattr(item, "array") else None for place, item in outputs.items()}


_OF_CALLS = ("float32", "put_in", "cpu", "formula", "skip")


def _row(name: str, is_cell: bool, cell: str, *others: Any) -> dict[str, Any]:
    return {"name": name, "is_cell": is_cell, "cell": cell, **dict(zip(("inputs", "outputs", "shapes"), others))}


def _described(call: Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    from probe.replaying.described import CallDescription

    return CallDescription(call.key, args, kwargs, call.parts.get("attributes", {}), "", [], [])


def _plain(save: Callable[[Any], str], tensor: type, leaf: Any) -> Any:
    """Return a leaf of the arguments as a ``CallDescription`` has it."""
    if not isinstance(leaf, tensor):
        return leaf if isinstance(leaf, (bool, int, float, str, type(None))) else {"dtype": str(leaf)}
    array = (leaf.float() if str(leaf.dtype) == "BFloat16" else leaf).asnumpy()  # type: ignore[attr-defined]
    return {"array": save(array), "dtype": str(leaf.dtype), "shape": list(array.shape)}  # type: ignore[attr-defined]


def graft(tensor: Any, values: Any) -> Any:
    """Return a tensor with these values, through which gradients flow as through the given one: y + (values - y)."""
    from mindspore import ops

    golden = _tensor(values, tensor.dtype)
    if golden.shape != tensor.shape:
        raise UsageError(f"--from: the golden output has the shape {golden.shape}, this one {tensor.shape}")
    if not tensor.is_floating_point():
        return golden
    kept = ops.where(ops.isfinite(tensor), tensor, ops.zeros_like(tensor))
    for _ in range(2):  # the first sum may be one rounding off
        kept = kept + ops.stop_gradient(golden - kept)
    return kept


def _tensor(array: Any, dtype: Any) -> Any:
    from mindspore import Tensor

    return Tensor(array.astype("float32") if array.dtype.itemsize == 2 else array, dtype)


def _pass(tensor: Any, golden: Any) -> Any:
    """Return a tensor with the same values, whose gradient is the golden's."""
    from mindspore import nn, ops

    class Passed(nn.Cell):  # type: ignore[misc]
        """Gives its second input as the gradient of its first."""

        def construct(self, x: Any, gradient: Any) -> Any:
            return x * 1

        def bprop(self, x: Any, gradient: Any, out: Any, dout: Any) -> Any:
            return gradient, ops.zeros_like(gradient)

    return Passed()(tensor, _tensor(golden, tensor.dtype)) if tensor.is_floating_point() else tensor


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
