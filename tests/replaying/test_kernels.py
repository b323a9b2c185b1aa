# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A kernel that is wrong in one row, in every dtype, is named: nothing of it is in the golden output."""

from __future__ import annotations

import numpy as np
import pytest
from mindspore import Tensor

from probe.capture.support_ops import load_supported_apis
from probe.reading.dumps.run import open as open_run
from probe.replaying.describing import describe
from probe.replaying.evaluating import Evaluation
from probe.replaying.functions import OPERATORS, find
from probe.replaying.making import Maker
from probe.replaying.references import reference_of
from probe.replaying.worker import load
from tests.whitelist import running
from tests.whitelist.comparing import working_call

pytestmark = pytest.mark.medium

#: the operators of the table, and those with references
NAMES = [
    *sorted(
        OPERATORS["moves"] | OPERATORS["elementwise"] | OPERATORS["tails"] | OPERATORS["indices"]
    ),
    *(
        "softmax log_softmax matmul mm bmm mv dense addmm bias_add conv2d layer_norm cross_entropy sum mean prod "
        "amax amin logsumexp cumsum"
    ).split(),
]
#: so many listed APIs of these names have kernels on CPU
LEAST = 300
LEAST_GRADIENTS = 230
#: MindSpore's gradient of it is wrong for negative inputs, in float32 and float64: docs/limits.md
WRONG_GRADIENT = "Functional.selu"
#: only MindSpore's own float64 kernel makes a golden gradient of these calls
OWN = {"cumsum", "flatten", "logsumexp", "mv", "remainder", "transpose"}
#: they jump where they round: no error beyond the one of this machine is told
JUMPS = {"floor_divide", "fmod", "remainder"}


def spoiled(array):
    """Return values that are wrong in the last row: doubled, another integer, the other truth."""
    array = np.array(array)
    row = array[-1:] if array.ndim else array
    if array.dtype == np.bool_:
        row[...] = ~row
    else:
        row[...] = row + 1 if array.dtype.kind in "iu" else row * 2 + 1
    return array


def faulty(function):
    """Return a kernel that is wrong in one row of its first output."""

    def made(*args, **kwargs):
        result = function(*args, **kwargs)
        several = isinstance(result, (list, tuple))
        first = result[0] if several else result
        wrong = Tensor(spoiled(first.asnumpy())) if isinstance(first, Tensor) else first
        return (wrong, *result[1:]) if several else wrong

    return made


def apis():
    """Return name -> the listed APIs of this name."""
    found = {}
    for api in load_supported_apis(None):
        if not api.key.startswith("Numpy."):
            found.setdefault(api.key.rpartition(".")[2], []).append(api)
    return found


def verdicts(call):
    """Return the verdict on a call of the right kernel, and the result for the faulty one."""
    call = call._replace(args=call.args[: find(call).inputs])
    first = next(leaf for leaf in call.expected if leaf)

    def load_spoiled(leaf):
        return spoiled(load(leaf)) if leaf is first else load(leaf)

    function = find(call).function
    right = Evaluation(Maker(function, reference_of(call), call, load, "")).judge()
    wrong = Maker(faulty(function), reference_of(call), call, load_spoiled, "")
    return right.verdict, Evaluation(wrong).judge()


def entries(debug, api, steps):
    """Return the entries of an API in the newest step; ``steps`` are the names of those seen before."""
    new = {folder.name for folder in debug.dump_path.glob("step*")} - steps
    steps |= new
    dumps = [dump for name in new for dump in open_run(str(debug.dump_path / name))]
    return [call for dump in dumps for call in dump if call.parts.key == api.key]


def recorded(debug, debugger, api, steps):
    """Return the description of a call of an API that works, recorded in a step; None if there is none."""
    _, values, _ = working_call(api)
    if values is None:
        return None
    debugger.start()
    try:
        running.forward(api, values)
    finally:
        debugger.stop()
        debugger.step()
    calls = entries(debug, api, steps)
    return describe(calls[0]) if calls else None


def test_a_kernel_that_is_wrong_in_one_row_is_named_and_a_right_one_is_not(debug):
    known = apis()
    debugger = debug(level="L1", task="tensor", unlisted=False)
    steps, told, missed, accused = set(), set(), set(), set()
    for api in [api for name in NAMES for api in known.get(name, ())]:
        call = recorded(debug, debugger, api, steps)
        if call is None:
            continue
        right, wrong = verdicts(call)
        if right != "ok":
            accused.add(api.key)
        (told if wrong.verdict == "wrong" else missed).add(api.key)
    assert accused == set()
    assert {key.rpartition(".")[2] for key in missed} == JUMPS
    assert len(told) >= LEAST


def doubled(function):
    """Return a kernel that doubles the last row of its only output, and so of its gradient."""

    def made(*args, **kwargs):
        result = function(*args, **kwargs)
        mask = np.ones(result.shape, result.asnumpy().dtype)
        mask[-1:] = 2
        return result * Tensor(mask)

    return made


def gradient_verdicts(call):
    """Return the results of a backward call for MindSpore's kernel and the faulty one; None where they are equal."""
    function, reference = find(call).function, reference_of(call)
    right = Evaluation(Maker(function, reference, call, load, "")).judge()
    maker = Maker(doubled(function), reference, call, load, "")
    made = {id(call.expected[place]): item for place, item in zip(maker.wanted, maker.here()[0])}
    leaves = [call.expected[place] for place in maker.wanted]
    if all(np.array_equal(made[id(leaf)][0], load(leaf)) for leaf in leaves):
        return right, None

    def load_made(leaf):
        return made[id(leaf)][0] if id(leaf) in made else load(leaf)

    return right, Evaluation(Maker(doubled(function), reference, call, load_made, "")).judge()


def backward_of(debug, debugger, api, steps):
    """Return the description of the backward of a call with one output, recorded in a step, or None."""
    _, values, bare = working_call(api)
    if values is None or not values.floats or len(bare.outputs) != 1 or not bare.outputs[0].ndim:
        return None
    if api.name.endswith("_") or not running.differentiable(bare.outputs):
        return None
    debugger.start()
    try:
        running.gradient(api, values, running.Mode(), id)
    finally:
        debugger.stop()
        debugger.step()
    found = [call for call in entries(debug, api, steps) if call.direction == "backward"]
    return describe(found[0]) if found else None


@pytest.mark.thorough
def test_a_wrong_row_of_a_gradient_is_named_if_the_golden_one_is_independent(debug):
    known = apis()
    debugger = debug(level="L1", task="tensor", unlisted=False)
    steps, named, missed, own, accused = set(), set(), set(), set(), set()
    for api in [api for name in NAMES for api in known.get(name, ())]:
        try:
            call = backward_of(debug, debugger, api, steps)
        except Exception:  # it has no gradient, or no kernel for it
            continue
        if call is None:
            continue
        right, wrong = gradient_verdicts(call)
        if right.verdict != "ok":
            accused.add(api.key)
        if wrong is not None and wrong.golden == "float64":
            own.add(api.key.rpartition(".")[2])
        elif wrong is not None:
            (named if wrong.verdict == "wrong" else missed).add(api.key)
    assert accused == {WRONG_GRADIENT}
    assert {key.rpartition(".")[2] for key in missed} <= JUMPS
    assert own == OWN
    assert len(named) >= LEAST_GRADIENTS
