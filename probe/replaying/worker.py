# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The process that makes calls again. It may crash or hang: only the call that does so is lost."""

from __future__ import annotations

import functools
import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.dumps.load import load_array
from probe.replaying.described import (
    CallDescription,
    CannotReplayError,
    Made,
    Program,
    ReplayResult,
    not_replayed,
)


def main(
    task: dict[str, str], requests: Iterator[dict[str, Any]], tell: Callable[[Any], None]
) -> None:
    """Make the calls that are requested, and tell each answer; before them {}, when MindSpore is there."""
    set_up(task["device"], task.get("setting", ""), is_blocking="repeat" not in task)
    gc.collect()
    gc.freeze()  # the objects of MindSpore: later collections look at those of the calls alone
    tell({})
    for request in requests:
        here = request.get("here") and Made(**request["here"])
        call = (
            Program(**request)
            if "steps" in request
            else CallDescription(**{**request, "here": here})
        )
        answer = replay_call(
            call, task["dtype"], task.get("folder", ""), int(task.get("repeat", 0))
        )
        if isinstance(answer, Made):
            tell({"here": answer._asdict()})
        else:
            tell({**answer._asdict(), "outputs": [vars(item) for item in answer.outputs]})
        gc.collect()


def set_up(device: str, setting: str = "", is_blocking: bool = True) -> None:
    """Select PyNative mode, the device, one of ``replay.SETTINGS``, and perhaps synchronous execution."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if device:
        mindspore.set_device(device)
    if setting == "deterministic":
        mindspore.set_deterministic(True)
    elif setting == "threads":
        mindspore.set_context(runtime_num_threads=1)
    if is_blocking:
        mindspore.runtime.launch_blocking()


def replay_call(
    call: CallDescription | Program, dtype: str = "", folder: str = "", times: int = 0
) -> ReplayResult | Made:
    """Return the result of one described call, or of the gradients of a function; an error is its reason.

    With a folder, the call is only made on the device of this process, and its outputs are saved there. ``times`` is
    for ``repeat``.
    """
    from probe.replaying.differences import check
    from probe.replaying.evaluating import Evaluation
    from probe.replaying.functions import find
    from probe.replaying.making import Maker
    from probe.replaying.references import reference_of
    from probe.replaying.repeating import repeat

    try:
        if isinstance(call, Program):
            return check(call, load)
        found = find(call)
        call = call._replace(args=call.args[: found.inputs])
        maker = Maker(found.function, None if times else reference_of(call), call, load, dtype)
        if times:
            return repeat(maker, times)
        evaluation = Evaluation(maker)
        return evaluation.here(functools.partial(save, folder)) if folder else evaluation.judge()
    except CannotReplayError as error:
        return not_replayed(error.reason)
    except UsageError as error:
        return not_replayed(say("replay.unreadable", error=" ".join(str(error).split())[:300]))


def save(folder: str, array: np.ndarray[Any, Any]) -> str:
    """Save an array under a new name in a folder, and return its path."""
    handle, path = tempfile.mkstemp(".npy", dir=folder)
    with os.fdopen(handle, "wb") as file:
        np.save(file, array, allow_pickle=False)
    return path


def load(leaf: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the values of a described tensor, bfloat16 as float32; raise CannotReplayError where it is a part."""
    if not leaf["array"]:
        return np.array(leaf["value"])
    array = load_array(leaf["array"], leaf["dtype"])
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if list(array.shape) != leaf["shape"]:
        raise CannotReplayError("replay.part")
    if array.dtype.kind not in "biufc":
        raise CannotReplayError("replay.no_numbers")
    return array
