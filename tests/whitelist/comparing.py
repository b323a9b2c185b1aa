# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One listed API: found a call that works, run bare and with probe on, everything compared."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np

from tests.whitelist import running
from tests.whitelist.generate import Values, candidates, variants
from tests.whitelist.recipes import NO_GRADIENT, A, T
from tests.whitelist.running import Mode, Run, same

COMPARED, NO_KERNEL, NOT_CALLED = "compared", "no_kernel", "not_called"

#: MindSpore's own words for: this is not there on a CPU
_NO_KERNEL = re.compile(
    r"The kernel \w+ unregistered"  # pyboost's registry of CPU kernels does not have it
    r"|Unsupported op \[\w+\] on CPU"  # nor has the one of the older ops
    r"|Not found op \w+ on device CPU"
    r"|Create kernelmod for op \w+ failed"
    r"|\w+( method)? (only supports Ascend|support Ascend only)"
    r"|'\w+' is not supported on this device"
    r"|only support \[ascend|is only supported on Ascend"
    r"|^RuntimeError: Not implement exception"  # an Ascend op: its shapes are not even inferred elsewhere
    r"|should not come here for \w+ (py_)?method"  # a method that has a body for Ascend alone
    r"|There is no branch to go function \w+!"
)
_MODES = (Mode(), Mode(through=True, last=True), Mode(through=True, twice=True))
#: more than a kernel's search for its number of threads takes
_TRIALS = 12
_COLLECTIVE = ("MintDistributed.", "Distributed.")
_NO_GROUP = "Distributed Communication has not been inited"


@dataclass
class Outcome:
    """What became of one listed API.

    Attributes:
        name: where it is called from, "mint.special.round".
        category: compared, no_kernel or not_called.
        reason: the first line of MindSpore's error.
        backward: whether its gradients were compared.
        forward_only: why they were not, where MindSpore's own gradient raises.
        differences: what probe changed or recorded wrongly.
        call: its arguments.
        variants: how many other calls were compared too.
    """

    name: str
    category: str = NOT_CALLED
    reason: str = ""
    backward: bool = False
    forward_only: str = ""
    differences: list[str] = field(default_factory=list)
    call: A | None = None
    variants: int = 0


def name_of(api: Any) -> str:
    """Return where an API is called from."""
    return f"{api.owner.__name__}.{api.name}".replace("mindspore.", "")


def working_call(api: Any) -> tuple[Outcome, Values | None, Run | None]:
    """Return a call that works without probe and its run, or why there is none."""
    outcome = Outcome(name_of(api))
    if api.key.startswith(_COLLECTIVE):
        outcome.reason = "a collective, needs a communicator"
        return outcome, None, None
    errors = []
    for call in candidates(api):
        try:
            values = Values(api.key, call)
            run = running.forward(api, values)
        except Exception as error:  # whatever MindSpore does not like
            errors.append(_words(error))
            continue
        outcome.category, outcome.call = COMPARED, call
        return outcome, values, run
    for error in errors:
        if found := _NO_KERNEL.search(error):
            outcome.category, outcome.reason = NO_KERNEL, found.group()
            return outcome, None, None
    grouped = [error for error in errors if _NO_GROUP in error]
    outcome.reason = "a collective, needs a communicator" if grouped else errors[0][:160]
    return outcome, None, None


def _words(error: Exception) -> str:
    """Return what an error of MindSpore says, without its headings and its C++ stack."""
    text = re.sub(
        r"-{5,}( - [^-]+:)? ?", "", " ".join(str(error).split()).split("- C++ Call Stack")[0]
    )
    return f"{type(error).__name__}: {text.replace('- Kernel select failed: ', '').strip()}"


class Comparison:
    """Compares calls without and with probe, one after the other, each in a step of its own.

    Args:
        debug: makes the debugger and reads its dump.
        key: tensor -> its place in the graph.
        own_outputs: name -> why its outputs are other ones at every run.
    """

    def __init__(self, debug: Any, key: Any, own_outputs: dict[str, str]) -> None:
        self._debug, self._key, self._own_outputs = debug, key, own_outputs
        self._debugger = debug(level="L1", task="tensor", unlisted=False)
        self._step = 0
        self._last: Any = None

    def __call__(self, api: Any) -> Outcome:
        """Return what became of an API: of the call that works, and of others that do."""
        outcome, values, bare = working_call(api)
        if values is None or bare is None:
            return outcome
        self._one_call(api, values, bare, outcome, _MODES)
        for call in variants(api, values.call):
            try:
                values = Values(api.key, call)
                bare = running.forward(api, values)
            except Exception:  # the same in other words is not always allowed
                continue
            outcome.variants += 1
            self._one_call(api, values, bare, outcome, _MODES[-1:])
        return outcome

    def _one_call(
        self, api: Any, values: Values, bare: Run, outcome: Outcome, modes: tuple[Mode, ...]
    ) -> None:
        mode: Mode | None = None

        def say(text: str) -> None:
            outcome.differences.append(f"{values.call!r} {mode or 'forward'}: {text}")

        differentiable = values.floats and running.differentiable(bare.outputs)
        compared = False
        for mode in modes if differentiable else ():
            if api.name in NO_GRADIENT:
                outcome.forward_only = NO_GRADIENT[api.name]
                break
            if (bare.changed and not mode.through) or (mode.last and len(values.floats) == 1):
                continue
            run = functools.partial(running.gradient, api, values, mode, self._key)
            try:
                alone = run()
            except Exception as error:  # no kernel for its backward, or no gradient at all
                if not (outcome.backward or outcome.forward_only):
                    words = _words(error)
                    found = _NO_KERNEL.search(words)
                    outcome.forward_only = found.group() if found else words[:160]
                continue
            compared, outcome.backward, outcome.forward_only = True, True, ""
            dump = self._both(run, alone, outcome, say)
            if dump is not None:
                self._forward_entry(api, values, *dump, say)
                self._backward_entry(api, values, mode, *dump, say)
        mode = None
        if len(modes) > 1 or not compared:
            dump = self._both(lambda: running.forward(api, values), bare, outcome, say)
            if dump is not None:
                self._forward_entry(api, values, *dump, say)
                if others := [name for name in dump[1].data if name != f"{api.key}.0.forward"]:
                    say(f"entries beside its own: {others}")

    def _both(
        self, function: Callable[[], Run], bare: Run, outcome: Outcome, say: Callable[[str], None]
    ) -> tuple[Run, Any] | None:
        """Run with probe on, compare with the run without, and return the run and the dump."""
        watched, dump = self._watch(function, say)
        if watched is None:
            return None
        if outcome.name not in self._own_outputs:
            found = list(_apart_runs(watched, bare))
            if found:
                # the first runs of a CPU kernel try out numbers of threads, which moves last bits; then it keeps one
                for _ in range(_TRIALS):
                    bare = function()
                watched, dump = self._watch(function, say)
                if watched is None:
                    return None
                found = list(_apart_runs(watched, bare))
            for text in found:
                say(text)
        return watched, dump

    def _watch(
        self, function: Callable[[], Run], say: Callable[[str], None]
    ) -> tuple[Run | None, Any]:
        run = None
        if self._last is not None:  # thousands of small files
            shutil.rmtree(self._last, ignore_errors=True)
        self._debugger.start()
        try:
            run = function()
        except Exception as error:  # it did not raise without probe
            say(f"raises with probe on: {type(error).__name__}: {error}"[:300])
        finally:
            self._debugger.stop()
            self._debugger.step()
        dump = self._debug.dump(self._step)
        self._step += 1
        self._last = dump.folder.parent
        log = dump.folder / "dump_error_info.log"
        if log.exists():
            say(f"an error inside probe: {log.read_text()}")
            log.unlink()
        return run, dump

    def _forward_entry(self, api: Any, values: Values, run: Run, dump: Any, say: Any) -> None:
        entries = [
            name
            for name in dump.data
            if name.startswith(f"{api.key}.") and name.endswith(".forward")
        ]
        if entries != [f"{api.key}.0.forward"]:
            say(f"forward entries {entries}")
            return
        entry = dump.data[entries[0]]
        recorded = [
            dump.array(item["data_name"])
            for item in _records([entry["input_args"], entry["input_kwargs"]])
        ]
        _equal(recorded, values.tensors(), "recorded input", say)
        recorded = [dump.array(item["data_name"]) for item in _records(entry["output"])]
        _equal(
            recorded,
            [item for item in run.outputs if isinstance(item, np.ndarray)],
            "recorded output",
            say,
        )

    def _backward_entry(
        self, api: Any, values: Values, mode: Mode, run: Run, dump: Any, say: Any
    ) -> None:
        entries = [
            name
            for name in dump.data
            if name.startswith(f"{api.key}.") and name.endswith(".backward")
        ]
        gradients = {
            place: array for place, array in run.gradients.items() if place not in run.shared
        }
        if not entries:
            if any(array.any() for array in gradients.values()):
                say("no backward entry")
            elif run.connected and not run.shared:
                say("no backward entry, all gradients are zero")
            return
        if entries != [f"{api.key}.0.backward"]:
            say(f"backward entries {entries}")
            return
        entry = dump.data[entries[0]]
        expected = running.upstream(run, mode)
        arrived = list(_flat(entry["input"]))
        if len(arrived) != len(expected):
            say(f"{len(arrived)} slots for the gradients of {len(expected)} outputs")
        for i, (slot, array) in enumerate(zip(arrived, expected)):
            if i not in run.shared_outputs:
                _slot(
                    dump,
                    slot,
                    None if i in run.constant_outputs else array,
                    f"gradient of output {i}",
                    say,
                )
        keywords = entry.get("output_kwargs", {})
        slots = [
            *_places([arg for arg in values.call.args if _holds(arg)], entry["output"]),
            *(
                pair
                for name, arg in values.call.kwargs.items()
                if _holds(arg)
                for pair in _places(arg, keywords.get(name))
            ),
        ]
        for place, (spec, slot) in enumerate(slots):
            if spec.form == "tensor":
                _slot(dump, slot, gradients.get(place), f"gradient of input {place}", say)


def _apart_runs(watched: Run, bare: Run) -> Iterator[str]:
    """Yield where a run with probe on is not the run without."""
    texts: list[str] = []
    _equal(watched.outputs, bare.outputs, "output", texts.append)
    yield from texts
    for place, array in bare.gradients.items():
        if not same(watched.gradients[place], array):
            yield f"changed gradient of input {place}: {_apart(watched.gradients[place], array)}"


def _slot(dump: Any, slot: Any, expected: Any, what: str, say: Any) -> None:
    if slot is None:
        if expected is not None and expected.any():
            say(f"{what} is missing")
        return
    if slot == "no slot":
        say(f"{what} has no slot")
        return
    recorded = dump.array(slot["data_name"])
    if expected is None:
        say(f"{what} is recorded but there is none: {recorded.ravel()[:4]}")
    elif not same(
        recorded.astype(expected.dtype), expected
    ):  # MindSpore casts what arrives at a leaf
        say(f"{what} is recorded wrongly: {_apart(recorded, expected)}")


def _places(arg: Any, slot: Any) -> Iterator[tuple[T, Any]]:
    """Yield every tensor of an argument with its slot."""
    if isinstance(arg, T):
        yield arg, slot
        return
    items = [item for item in arg if _holds(item)]
    slots = slot if isinstance(slot, list) and len(slot) == len(items) else ["no slot"] * len(items)
    for item, inner in zip(items, slots):
        yield from _places(item, inner)


def _holds(arg: Any) -> bool:
    if isinstance(arg, T):
        return arg.form != "array"
    return isinstance(arg, (list, tuple)) and any(_holds(item) for item in arg)


def _records(value: Any) -> Iterator[Any]:
    for item in _flat(value):
        if isinstance(item, dict):
            if item.get("type") == "mindspore.Tensor":
                yield item
            elif "type" not in item:
                yield from _records(list(item.values()))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _equal(ours: list[Any], theirs: list[Any], what: str, say: Any) -> None:
    if len(ours) != len(theirs):
        say(f"{what}: {len(ours)} and not {len(theirs)}")
    for i, (one, other) in enumerate(zip(ours, theirs)):
        if not same(one, other):
            say(f"{what} {i}: {_apart(one, other)}")


def _apart(one: Any, other: Any) -> str:
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return f"{one} and not {other}"
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype}{one.shape} and not {other.dtype}{other.shape}"
    return f"{one.ravel()[:6]} and not {other.ravel()[:6]}"


def supported_version() -> bool:
    """Return whether the lists of names are for the installed MindSpore."""
    return ms.__version__.split(".")[:2] == ["2", "10"]
