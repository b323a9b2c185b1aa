# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The process that makes calls again. It may crash or hang: only the call that does so is lost."""

from __future__ import annotations

import functools
import gc
import os
import tempfile
from typing import Any

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.process.isolated import Parent
from probe.reading.dumps.load import load_array
from probe.replaying.described import CannotReplayError, Description, Made, Result, not_replayed


def main(parent: Parent) -> None:
    """Replay the calls that the parent requests, on the device and with the dtype of the task."""
    set_up(parent.task["device"])
    gc.collect()
    gc.freeze()  # the objects of MindSpore: later collections look at those of the calls alone
    parent.tell({})
    for request in parent.requests:
        answer = replay_call(_read(request), parent.task["dtype"], parent.task.get("folder", ""))
        parent.tell(_plain(answer))
        gc.collect()


def _read(request: dict[str, Any]) -> Description:
    call = Description(**request)
    if not request.get("here"):
        return call
    notes = [Sentence.from_dict(note) for note in request["here"]["notes"]]
    return call._replace(here=Made(**{**request["here"], "notes": notes}))


def _plain(answer: Result | Made) -> dict[str, Any]:
    """Return an answer as JSON has it."""
    if isinstance(answer, Made):
        return {"here": {**answer._asdict(), "notes": [note.to_dict() for note in answer.notes]}}
    outputs = [{**vars(item), "said": item.said.to_dict()} for item in answer.outputs]
    return {**answer._asdict(), "reason": answer.reason.to_dict(), "outputs": outputs}


def set_up(device: str) -> None:
    """Select PyNative mode, synchronous execution and the device."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if device:
        mindspore.set_device(device)
    mindspore.runtime.launch_blocking()


def replay_call(call: Description, dtype: str = "", folder: str = "") -> Result | Made:
    """Return the result of one described call; an error is its reason.

    Args:
        call: the description.
        dtype: the dtype of the call here; "" for the recorded ones.
        folder: if given, the call is only made on the device of this process, and its outputs are saved there.
    """
    from probe.replaying.evaluating import Evaluation
    from probe.replaying.functions import find
    from probe.replaying.references import reference_of

    try:
        found = find(call)
        call = call._replace(args=call.args[: found.inputs])
        evaluation = Evaluation(found.function, reference_of(call), call, load, dtype)
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
    """Return the values of a described tensor; bfloat16 as float32.

    Raises:
        CannotReplayError: when the array is only a part of the tensor.
    """
    if not leaf["array"]:
        return np.array(leaf["value"])
    array = load_array(leaf["array"], leaf["dtype"])
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if list(array.shape) != leaf["shape"]:
        raise CannotReplayError(say("replay.part"))
    if array.dtype.kind not in "biufc":
        raise CannotReplayError(say("replay.no_numbers"))
    return array
