# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Judges one call: golden outputs, outputs of this machine, verdicts. It needs MindSpore and numpy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from probe.replaying.calling import DOUBLE, FLOATS, HALF, CannotReplayError, Replayer, tensors_in, to_array, to_tensor
from probe.replaying.judging import FORMATS, NOT_REPLAYED, OK, WORSE, WRONG, Judged, Operation, Outcome, judge

Array = np.ndarray[Any, Any]
#: an (array, dtype) for each output, or None
Outputs = list[Any]

#: they only move values
MOVES = frozenset(
    "reshape view transpose permute swapaxes swapdims t T squeeze unsqueeze expand_dims expand expand_as "
    "broadcast_to flatten ravel concat cat stack split chunk unbind unstack narrow flip roll tile repeat contiguous "
    "clone copy __getitem__ gather index_select masked_select movedim identity deepcopy moveaxis hstack vstack "
    "Reshape Transpose ExpandDims Squeeze Flatten Concat Split Stack Tile BroadcastTo".split()
)
#: each element of their output depends on one element of each input
ELEMENTWISE = frozenset(
    "abs absolute neg negative sign add sub subtract mul multiply div divide true_divide square sqrt rsqrt exp exp2 "
    "expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc sigmoid relu "
    "relu6 silu gelu elu celu selu leaky_relu softplus logsigmoid mish hardswish hardsigmoid hardtanh softsign "
    "floor ceil round trunc pow reciprocal maximum minimum clamp clip where select cast to astype float half "
    "bfloat16 logaddexp lerp addcmul addcdiv atan2 xlogy masked_fill threshold fast_gelu swish hypot fmod remainder "
    "floor_divide type_as".split()
)
#: they return indices; equal elements may stand in another order
INDICES = frozenset("argmax argmin argsort sort topk max min median mode kthvalue aminmax cummax cummin".split())
#: an operation of MindSpore may raise any of these
RAISED = (
    ArithmeticError, AssertionError, AttributeError, CannotReplayError, LookupError, MemoryError, NameError, OSError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
#: fewer roundings of error here are no remark
_INEXACT = 64.0


def plain_name(key: str) -> str:
    """Return the name of an operation without its module, underscores and the marks of operators.

    >>> plain_name("Tensor.__iadd__"), plain_name("Mint.add_"), plain_name("Primitive.act.GeLU")
    ('add', 'add', 'gelu')
    """
    word = key.rpartition(".")[2]
    if word in ("__getitem__", "T"):
        return word
    if word.startswith("__") and word.endswith("__"):
        word = word[2:-2]
        word = {"truediv": "div", "rtruediv": "div", "itruediv": "div", "matmul": "matmul"}.get(word, word)
        bare = word[1:]
        word = bare if word[:1] in "ir" and bare in ("add", "sub", "mul", "pow", "floordiv", "mod", "matmul") else word
    return word if word in MOVES else word.rstrip("_").lower()


class Evaluation:
    """One call in one direction.

    Args:
        function: the function, or a Primitive.
        reference: one of elementary operations that has float64 kernels, or None.
        call: the description of the call.
        load: returns the values of a described tensor; bfloat16 as float32.
        dtype: the dtype of the call here; "" for the recorded ones.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        reference: Callable[..., Any] | None,
        call: dict[str, Any],
        load: Callable[[dict[str, Any]], Array],
        dtype: str = "",
    ) -> None:
        self._function, self._reference, self._call, self._dtype = function, reference, call, dtype
        self._inputs = [*tensors_in(call["args"]), *tensors_in(list(call["kwargs"].values()))]
        self._arrays, self._recorded = [load(leaf) for leaf in self._inputs], call["expected"]
        self._expected = [load(leaf) if leaf and "array" in leaf else None for leaf in call["expected"]]
        self._sens = [(place, load(leaf)) for place, leaf in enumerate(call.get("sens", ())) if leaf]
        self._wanted = [place for place, leaf in enumerate(call["expected"]) if leaf] if self._sens else []
        self._notes: list[str] = []
        self._mixed = ""
        self._made: list[str] = []
        self._kept: list[tuple[str, Array, Array, Array]] = []

    def judge(self) -> dict[str, Any]:
        """Return the result: verdict, golden, outputs.

        Raises:
            CannotReplayError: when it cannot be made again.
        """
        here, as_list = self._here()
        golden, shaken, label, is_exact = self._golden(here, as_list)
        places = self._places()
        if len(golden) != len(places) or len(here) != len(places):
            raise CannotReplayError(f"it gives {len(here)} values here, {len(places)} are recorded")
        judged = [
            self._judged(place, number, outcomes, is_exact)
            for number, (place, *outcomes) in enumerate(zip(places, golden, here, shaken))
            if self._expected[self._number(number)] is not None and outcomes[0] is not None and outcomes[1] is not None
        ]
        if not judged:
            raise CannotReplayError("no output has an array")
        verdict = next(word for word in (WRONG, WORSE, OK) if any(item.verdict == word for item in judged))
        return {"verdict": verdict, "reason": "", "golden": label, "outputs": [dataclasses.asdict(i) for i in judged]}

    def _number(self, position: int) -> int:
        return self._wanted[position] if self._sens else position

    def _places(self) -> list[str]:
        return [self._call["places"][number] for number in (self._wanted or range(len(self._recorded)))]

    def arrays(self) -> list[tuple[str, Array, Array, Array]]:
        """Return place, recorded, golden values and those made here of each output, after ``judge``."""
        return self._kept

    # -- the outputs of this machine --------------------------------------------------------------------------------

    def _here(self) -> tuple[Outputs, bool]:
        """Return the outputs in the recorded dtypes, and whether lists are lists."""
        errors: list[Exception] = []
        fitting: tuple[Outputs, bool] | None = None
        for as_list in (False, True):
            for kinds, is_rounded in self._kinds():
                try:
                    found = self._run(self._function, kinds, self._arrays, as_list, to_single if is_rounded else str)
                except RAISED as error:
                    errors.append(error)
                    continue
                found = self._rounded(found) if is_rounded else found
                fitting = fitting or (found, as_list)
                if self._fits(found):
                    if is_rounded and errors:
                        self._notes.append("no kernel of this dtype here: float32, rounded")
                    if not is_rounded and not self._dtype:
                        self._mix(kinds)
                    return found, as_list
        if fitting is None:
            return self._of_reference(errors[0]), False
        if self._call.get("unsure"):
            raise CannotReplayError(f"its arguments are not complete in the record: {self._call['unsure']}")
        return fitting

    def _mix(self, kinds: list[str]) -> None:
        """Take the inputs as mixed precision has cast them, which is after they were recorded."""
        for place, (leaf, kind) in enumerate(zip(self._inputs, kinds)):
            if kind != leaf["dtype"]:
                self._mixed = kind
                self._arrays[place] = to_array(to_tensor(self._arrays[place], kind))

    def _rounded(self, found: Outputs) -> Outputs:
        """Return outputs of float32 in the recorded dtypes."""
        leaves = [self._recorded[place] for place in (self._wanted or range(len(self._recorded)))]
        return [
            (to_array(to_tensor(item[0], leaf["dtype"])), leaf["dtype"])
            if item and leaf and item[1] == "Float32" and leaf["dtype"] in HALF
            else item
            for item, leaf in zip(found, leaves)
        ]

    def _of_reference(self, error: Exception) -> Outputs:
        """Return the outputs of the reference, rounded: this machine has no kernel for the call."""
        message = " ".join(str(error).split())[:200]
        if self._reference is None:
            raise CannotReplayError(f"MindSpore raised here: {type(error).__name__}: {message}") from error
        self._notes.append("this machine has no kernel for it")
        try:
            found = self._run(self._reference, [DOUBLE.get(leaf["dtype"], leaf["dtype"]) for leaf in self._inputs],
                              self._arrays, False, double)  # fmt: skip
        except RAISED:
            raise CannotReplayError(f"MindSpore raised here: {type(error).__name__}: {message}") from error
        return [item and (item[0].astype(np.float32), "Float32") for item in found]

    def _kinds(self) -> list[tuple[list[str], bool]]:
        """Return the dtypes of the tensors here: the recorded ones, those of mixed precision, or float32 to round."""
        recorded = [leaf["dtype"] for leaf in self._inputs]
        if self._dtype:
            return [([self._dtype if kind in FLOATS else kind for kind in recorded], False)]
        tried = [(recorded, False)]
        kinds = [leaf["dtype"] for leaf in (*self._call.get("sens", ()), *self._recorded) if leaf]
        for kind in kinds:
            mixed = [kind if item in FLOATS else item for item in recorded], False
            if kind in FLOATS and mixed not in tried:
                tried.append(mixed)
        if any(kind in HALF for kind in (*recorded, *kinds)):
            tried.append((["Float32" if item in FLOATS else item for item in recorded], True))
        return tried

    def _fits(self, found: Outputs) -> bool:
        """Return whether outputs have the shapes and dtypes of the recorded ones."""
        recorded = [self._recorded[place] for place in self._wanted] if self._sens else self._recorded
        if len(found) != len(recorded):
            return False
        for item, leaf in zip(found, recorded):
            if leaf and (item is None or list(item[0].shape) != leaf["shape"]):
                return False
            is_cast = not self._sens and leaf and item[1] != leaf["dtype"]  # a gradient may be cast once more
            if is_cast and leaf["dtype"] in FLOATS and not self._dtype:
                return False
        kinds = [leaf["dtype"] for leaf in self._call.get("sens", ()) if leaf]
        return bool(self._dtype) or not self._sens or self._made == kinds

    # -- the golden outputs -----------------------------------------------------------------------------------------

    def _golden(self, here: Outputs, as_list: bool) -> tuple[Outputs, Outputs, str, bool]:
        """Return the golden outputs, those for shaken inputs, the name of their making, whether they are more exact."""
        kinds = [DOUBLE.get(leaf["dtype"], leaf["dtype"]) for leaf in self._inputs]
        tried: list[tuple[str, Callable[..., Any] | None]] = [
            ("float64", self._function),
            ("float64 of elementary operations", self._reference),
        ]
        for label, function in tried:
            if function is None:
                continue
            try:
                golden = self._run(function, kinds, self._arrays, as_list, double)
                shaken = self._run(function, kinds, self._shaken(), as_list, double, self._shaken_sens())
            except RAISED:
                continue
            if self._alike(golden, here) and (not self._has_floats or is_double(shaken)):
                return golden, shaken, label, True
        single = ["Float32" if kind in FLOATS else kind for kind in (leaf["dtype"] for leaf in self._inputs)]
        halves = any(leaf and leaf.get("dtype") in HALF for leaf in self._recorded)
        try:
            golden = self._run(self._function, single, self._arrays, as_list, to_single)
            shaken = self._run(self._function, single, self._shaken(), as_list, to_single, self._shaken_sens())
        except RAISED:
            return here, here, "the same dtype", False
        if not self._alike(golden, here):
            return here, here, "the same dtype", False
        return golden, shaken, "float32", halves

    def _alike(self, golden: Outputs, here: Outputs) -> bool:
        return len(golden) == len(here) and all(
            (a is None) == (b is None) and (a is None or a[0].shape == b[0].shape) for a, b in zip(golden, here)
        )

    @property
    def _has_floats(self) -> bool:
        return bool(self._sens) or any(leaf["dtype"] in FORMATS for leaf in self._inputs)

    def _shaken(self) -> list[Array]:
        return [self._shake(array) if leaf["dtype"] in FORMATS else array
                for array, leaf in zip(self._arrays, self._inputs)]  # fmt: skip

    def _shaken_sens(self) -> list[tuple[int, Array]]:
        return [(place, self._shake(array)) for place, array in self._sens]

    def _shake(self, array: Array) -> Array:
        """Return values that are changed by half a rounding of the coarsest recorded output."""
        coarse = [FORMATS[leaf["dtype"]][0] for leaf in self._recorded if leaf and leaf.get("dtype") in FORMATS]
        random = np.random.RandomState(array.size % 9999)
        signs = random.choice([-1.0, 1.0], array.shape) * random.uniform(0.7, 1.0, array.shape)
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        found: Array = wide * (1 + max(coarse, default=0.0) * 0.5 * signs)
        return found

    def _run(
        self,
        function: Callable[..., Any],
        kinds: Sequence[str],
        arrays: Sequence[Array],
        as_list: bool,
        cast: Callable[[str], str] = str,
        sens: Sequence[tuple[int, Array]] | None = None,
    ) -> Outputs:
        replayer = Replayer(function, self._call, arrays, kinds, cast, as_list)
        if self._sens:
            found = list(replayer.backward(sens or self._sens, self._wanted))
            self._made = replayer.made
            return found
        if self._call.get("sens") is not None:
            raise CannotReplayError("no gradient of an output has an array")
        found = replayer.forward()
        if replayer.leaves_input and "its input" not in "".join(self._notes):
            self._notes.append("it returns the result, and leaves its input as it was: a known fault on CPU")
        return found

    # -- the verdict ------------------------------------------------------------------------------------------------

    def _judged(self, place: str, position: int, outcomes: list[Any], is_exact: bool) -> Judged:
        number = self._number(position)
        recorded, leaf = np.asarray(self._expected[number]), self._recorded[number]
        golden, here, shaken = outcomes
        self._kept.append((place, recorded, golden[0], here[0]))
        name = plain_name(self._call["key"])
        shapes = [array.shape for array in self._arrays] + [array.shape for _, array in self._sens]
        largest = max((math.prod(shape) for shape in shapes), default=0)
        is_whole = recorded.size >= largest
        operation = Operation(
            name in MOVES and not self._sens, name in ELEMENTWISE and is_whole, longest_sum(shapes, recorded.shape)
        )
        kind = self._dtype or max(
            leaf["dtype"], self._mixed or leaf["dtype"], key=lambda kind: FORMATS.get(kind, (0.0,))[0]
        )
        outcome = Outcome(recorded, kind, golden[0], here[0], shaken and shaken[0], is_exact)
        if leaf["dtype"] not in FORMATS:
            outcome = dataclasses.replace(outcome, dtype=leaf["dtype"])
            if name in INDICES and not np.array_equal(recorded, here[0]) and self._is_tie(recorded, here[0]):
                outcome = dataclasses.replace(outcome, recorded=here[0])
                self._notes.append("equal elements in another order")
        found = judge(place, outcome, operation)
        notes = [found.note, *self._notes]
        if found.roundings_here > _INEXACT and leaf["dtype"] in FORMATS:
            notes.append("the operation itself is inexact here")
        return dataclasses.replace(found, note="; ".join(filter(None, dict.fromkeys(notes))))

    def _is_tie(self, recorded: Array, here: Array) -> bool:
        """Return whether two outputs of indices choose equal elements of the first input."""
        if recorded.shape != here.shape or not self._arrays or recorded.dtype.kind not in "iu":
            return False
        values = self._arrays[0]
        if recorded.size and (recorded.min() < 0 or recorded.max() >= max(values.size, 1)):
            return False
        flat = values.ravel()
        if not self._call.get("kwargs") and recorded.ndim == 0:
            return bool(np.all(flat[recorded] == flat[here]))
        for axis in range(values.ndim):
            a, b = recorded, here
            if a.ndim == values.ndim - 1:
                a, b = np.expand_dims(a, axis), np.expand_dims(b, axis)
            sides = [length for place, length in enumerate(a.shape) if place != axis]
            if a.ndim != values.ndim or sides != [n for place, n in enumerate(values.shape) if place != axis]:
                continue
            if max(a.max(initial=0), b.max(initial=0)) >= values.shape[axis]:
                continue
            if np.array_equal(np.take_along_axis(values, a, axis), np.take_along_axis(values, b, axis)):
                return True
        return False


def double(dtype: str) -> str:
    """Return the dtype of the golden call for a recorded one."""
    return DOUBLE.get(dtype, dtype)


def to_single(dtype: str) -> str:
    """Return the dtype of a golden call in float32 for a recorded one."""
    return "Float32" if dtype in FLOATS else dtype


def is_double(shaken: Outputs) -> bool:
    """Return whether outputs were computed in float64, not in float32 inside."""
    for item in shaken:
        if item is not None and item[0].dtype.kind in "fc" and item[0].size:
            parts = item[0].view(np.float64) if item[0].dtype.kind == "c" and item[0].ndim else item[0].real
            with np.errstate(over="ignore", invalid="ignore"):
                if np.any(parts.astype(np.float32).astype(np.float64) != parts):
                    return True
    return not any(item is not None and item[0].dtype.kind in "fc" and item[0].size > 8 for item in shaken)


def longest_sum(shapes: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> int:
    """Return the number of terms of the longest sum that an operation of these shapes may make.

    >>> longest_sum([(8, 64), (64, 16)], (8, 16)), longest_sum([(32, 10)], ())
    (64, 320)
    """
    sizes = sorted(math.prod(shape) for shape in (*shapes, output) if math.prod(shape) > 0)
    if not sizes:
        return 1
    out = max(math.prod(output), 1)
    sides = [length for shape in shapes for length in shape]
    product = math.sqrt(sizes[-1] * sizes[-2] / out) if len(sizes) > 1 else 1.0
    several = [size for size in sizes if size > 1] or [1]
    least = out if out < several[0] else several[0]
    return int(max([1, *sides, product, several[-1] / least]))


def not_replayed(reason: str) -> dict[str, Any]:
    """Return the result of a call that cannot be made again."""
    return {"verdict": NOT_REPLAYED, "reason": reason, "golden": "", "outputs": []}
