# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The process that makes calls again. It may crash or hang: only the call that does so is lost."""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
import tempfile
from typing import Any

import numpy as np

from probe.errors import UsageError
from probe.reading.dumps.load import load_array
from probe.replaying.refusals import RefusedError


def main() -> None:
    """Replay the calls on standard input, a line of JSON each; the results go to the file descriptor in argv."""
    task = json.loads(sys.argv[1])
    with os.fdopen(task["stream"], "w", encoding="utf-8") as stream:
        set_up(task["device"])
        gc.collect()
        gc.freeze()  # the objects of MindSpore: later collections look at those of the calls alone
        print("{}", file=stream, flush=True)
        for line in sys.stdin:
            result = replay_call(json.loads(line), task["dtype"], task.get("folder", ""))
            print(json.dumps(result), file=stream, flush=True)
            gc.collect()
    os._exit(0)  # a library that fails at exit is no result


def set_up(device: str) -> None:
    """Select PyNative mode, synchronous execution and the device."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    if device:
        mindspore.set_device(device)
    mindspore.runtime.launch_blocking()


def replay_call(call: dict[str, Any], dtype: str = "", folder: str = "") -> dict[str, Any]:
    """Return the result of one described call; an error is its reason.

    Args:
        call: the description.
        dtype: the dtype of the call here; "" for the recorded ones.
        folder: if given, the call is only made on the device of this process, and its outputs are saved there.
    """
    from probe.replaying.calling import CannotReplayError
    from probe.replaying.evaluating import Evaluation, not_replayed
    from probe.replaying.functions import find
    from probe.replaying.references import reference_of

    try:
        found = find(call)
        if found.inputs is not None:
            call = {**call, "args": call["args"][: found.inputs]}
        evaluation = Evaluation(found.function, reference_of(call), call, load, dtype)
        return {"here": evaluation.here(functools.partial(save, folder))} if folder else evaluation.judge()
    except (RefusedError, CannotReplayError, UsageError) as error:
        return not_replayed(" ".join(str(error).split())[:300])


def save(folder: str, array: np.ndarray[Any, Any]) -> str:
    """Save an array under a new name in a folder, and return its path."""
    handle, path = tempfile.mkstemp(".npy", dir=folder)
    with os.fdopen(handle, "wb") as file:
        np.save(file, array, allow_pickle=False)
    return path


def load(leaf: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the values of a described tensor; bfloat16 as float32.

    Raises:
        RefusedError: when the array is only a part of the tensor.
    """
    if not leaf["array"]:
        return np.array(leaf["value"])
    array = load_array(leaf["array"], leaf["dtype"])
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if list(array.shape) != leaf["shape"]:
        raise RefusedError("an array has another shape than its tensor: it is a part of it")
    if array.dtype.kind not in "biufc":
        raise RefusedError("an array holds no numbers")
    return array
