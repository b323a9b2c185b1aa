# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes the outputs of one call: golden ones, and those of this machine. It needs MindSpore and numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from probe.findings.sentence import Sentence, say
from probe.replaying.calling import (
    DOUBLE,
    FLOATS,
    HALF,
    Replayer,
    fill,
    outputs_of,
    tensors_of,
    to_array,
    to_tensor,
)
from probe.replaying.described import CallDescription, CannotReplayError, Made
from probe.replaying.exact import exact_of, gradients_of
from probe.replaying.exact_gradients import Gradients
from probe.replaying.judging import FORMATS, Array

#: the golden outputs, in the order in which they are tried; only the last ones come from the kernel that is judged
OF_NUMPY = "float64 of numpy"
OF_ELEMENTARY = "float64 of elementary operations"
OF_OWN_KERNEL = "float64"
IN_SINGLE = "float32"
IN_SAME_DTYPE = "the same dtype"
#: operations whose reference is the operation itself in another form, or leaves outputs out: their own kernel is tried
#: before it
_OF_ITSELF = (
    "matmul", "__matmul__", "mm", "bmm", "mv", "dot", "cumsum", "MatMul", "BatchMatMul", "MatMulExt", "BatchNorm",
    "AvgPool",
)  # fmt: skip
Outputs = list[Any]  # an (array, dtype) for each output, or None

#: an operation of MindSpore may raise any of these
RAISED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    CannotReplayError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass
class Maker:
    """Makes the outputs of one call in one direction."""

    function: Callable[..., Any]  # the function, or a Primitive
    #: one of elementary operations that has float64 kernels, or None
    reference: Callable[..., Any] | None
    call: CallDescription
    #: returns the values of a described tensor; bfloat16 as float32
    load: Callable[[dict[str, Any]], Array]
    dtype: str  # the dtype of the call here; "" for the recorded ones

    def __post_init__(self) -> None:
        self._inputs = tensors_of(self.call)
        self._made = list[str]()
        self.arrays = [self.load(leaf) for leaf in self._inputs]  # the values of its tensors
        #: of a backward, the numbers of the outputs that have gradients, and those
        self.sens: list[tuple[int, Array]] = []
        for place, leaf in enumerate(self.call.sens or ()):
            if leaf:
                self.sens.append((place, self.load(leaf)))
        #: the numbers of the tensors whose gradients are recorded
        self.wanted: list[int] = []
        if self.sens:
            self.wanted = [place for place, leaf in enumerate(self.call.expected) if leaf]
        self.notes: list[Sentence] = []  # remarks
        self.mixed = ""  # the dtype to which mixed precision has cast the inputs, or ""

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the recorded outputs that are made again."""
        return self.wanted or range(len(self.call.expected))

    # -- the outputs of this machine --------------------------------------------------------------------------------

    def given(self, here: Made) -> tuple[Outputs, bool]:
        """Return the outputs that another device has made; see ``Evaluation.here``."""
        self.notes += map(Sentence.from_dict, here.notes)
        recorded = [leaf["dtype"] for leaf in self._inputs]
        self._mix(_with_floats(recorded, here.mixed) if here.mixed else recorded)
        outputs = [leaf and (self.load(leaf), leaf["dtype"]) for leaf in here.outputs]
        return outputs, here.as_list

    def here(self) -> tuple[Outputs, bool]:
        """Return the outputs in the recorded dtypes, and whether lists are lists, or raise CannotReplayError."""
        errors: list[Exception] = []
        fitting: tuple[Outputs, bool] | None = None
        for as_list in (False, True):
            for kinds, is_rounded in self._kinds():
                cast = to_single if is_rounded else str
                try:
                    found = self._run(self.function, kinds, self.arrays, as_list, cast)
                except RAISED as error:
                    errors.append(error)
                    continue
                found = self._rounded(found) if is_rounded else found
                fitting = fitting or (found, as_list)
                if self._fits(found):
                    if is_rounded and errors:
                        self.notes.append(say("replay.rounded"))
                    if not is_rounded and not self.dtype:
                        self._mix(kinds)
                    return found, as_list
        if fitting is None:
            return self._of_reference(errors[0]), False
        if self.call.unsure:
            raise CannotReplayError("replay.unsure", place=self.call.unsure[:200])
        return fitting

    def _mix(self, kinds: list[str]) -> None:
        """Take the inputs as mixed precision has cast them, which is after they were recorded."""
        for place, (leaf, kind) in enumerate(zip(self._inputs, kinds)):
            if kind != leaf["dtype"]:
                self.mixed = kind
                self.arrays[place] = to_array(to_tensor(self.arrays[place], kind))

    def _rounded(self, found: Outputs) -> Outputs:
        """Return outputs in float32 rounded to the half precision of the recorded ones."""
        rounded = list(found)
        for place, (item, number) in enumerate(zip(found, self.numbers)):
            leaf = self.call.expected[number]
            if not item or not leaf or leaf["dtype"] not in HALF:
                continue
            array, dtype = item
            if dtype == "Float32":
                rounded[place] = (to_array(to_tensor(array, leaf["dtype"])), leaf["dtype"])
        return rounded

    def _of_reference(self, error: Exception) -> Outputs:
        """Return the outputs of the reference, rounded: this machine has no kernel for the call."""
        message: Any = " ".join(str(error).split())[:200]
        if isinstance(error, CannotReplayError):
            message = error.reason
        kind = type(error).__name__
        refused = CannotReplayError("replay.raised_here", error=kind, message=message)
        if self.reference is None:
            raise refused from error
        self.notes.append(say("replay.no_kernel"))
        kinds = [double(leaf["dtype"]) for leaf in self._inputs]
        try:
            found = self._run(self.reference, kinds, self.arrays, False, double)
        except RAISED:
            raise refused from error
        return [item and (item[0].astype(np.float32), "Float32") for item in found]

    def _kinds(self) -> list[tuple[list[str], bool]]:
        """Return the dtypes of the tensors here: the recorded ones, those of mixed precision, or float32 to round."""
        recorded = [leaf["dtype"] for leaf in self._inputs]
        if self.dtype:
            return [(_with_floats(recorded, self.dtype), False)]
        tried = [(recorded, False)]
        leaves = [*(self.call.sens or ()), *self.call.expected]
        others = [leaf["dtype"] for leaf in leaves if leaf]
        for dtype in others:
            mixed = (_with_floats(recorded, dtype), False)
            if dtype in FLOATS and mixed not in tried:
                tried.append(mixed)
        if any(dtype in HALF for dtype in (*recorded, *others)):
            tried.append((_with_floats(recorded, "Float32"), True))
        return tried

    def _fits(self, found: Outputs) -> bool:
        recorded = [self.call.expected[place] for place in self.numbers]
        if len(found) != len(recorded):
            return False
        for item, leaf in zip(found, recorded):
            if leaf and (item is None or list(item[0].shape) != leaf["shape"]):
                return False
            # a gradient may be cast once more
            is_cast = not self.sens and leaf and item[1] != leaf["dtype"]
            if is_cast and leaf["dtype"] in FLOATS and not self.dtype:
                return False
        kinds = [leaf["dtype"] for leaf in (self.call.sens or ()) if leaf]
        return bool(self.dtype) or not self.sens or self._made == kinds

    def copies(self, count: int) -> Array | None:
        """Return the first output for copies of the only tensor side by side; None where it cannot be made."""
        try:
            # kernels of a CPU take the elements at the end of an array another way than those before
            kinds = [leaf["dtype"] for leaf in self._inputs]
            found = self._run(self.function, kinds, [np.tile(self.arrays[0].ravel(), count)], False)
            made: Array = found[0][0].reshape((count, *self.arrays[0].shape))
        except RAISED:
            return None
        return made

    # -- the golden outputs -----------------------------------------------------------------------------------------

    def golden(self, here: Outputs, as_list: bool) -> tuple[Outputs, Outputs, str, bool]:
        """Return the golden outputs, those for shaken inputs, the name of their making, whether they are more exact."""
        exact = self._of_numpy(here, as_list)
        if exact is not None:
            return exact
        ways: list[tuple[str, Callable[..., Any] | None, Callable[[str], str]]] = [
            (OF_ELEMENTARY, self.reference, double),
            (OF_OWN_KERNEL, self.function, double),
            (IN_SINGLE, self.function, to_single),
        ]
        is_independent = self.call.key.rpartition(".")[2] not in _OF_ITSELF
        tried = ways if is_independent else [ways[1], ways[0], ways[2]]
        for label, function, cast in tried:
            if function is None:
                continue
            kinds = [cast(leaf["dtype"]) for leaf in self._inputs]
            try:
                golden = self._run(function, kinds, self.arrays, as_list, cast)
                shaken = self._run_shaken(function, kinds, as_list, cast)
            except RAISED:
                continue
            has_half = any(leaf and leaf.get("dtype") in HALF for leaf in self.call.expected)
            has_floats = bool(self.sens) or any(leaf["dtype"] in FORMATS for leaf in self._inputs)
            is_done = cast is to_single or not has_floats or is_double(shaken)
            if is_done and _shapes(golden) == _shapes(here):
                is_exact = cast is double or has_half
                return golden, shaken, label, is_exact
        return here, here, IN_SAME_DTYPE, False

    def _of_numpy(self, here: Outputs, as_list: bool) -> tuple[Outputs, Outputs, str, bool] | None:
        """Return the golden outputs of numpy, or None where numpy has none of their shapes."""
        function = exact_of(self.call)
        gradients = gradients_of(self.call) if self.sens else None
        if function is None or (self.call.sens is not None and gradients is None):
            return None
        moved = [
            self._shake(array) if leaf["dtype"] in FORMATS else array
            for leaf, array in zip(self._inputs, self.arrays)
        ]
        moved_sens = [(place, self._shake(array)) for place, array in self.sens]
        try:
            golden = self._run_numpy(function, gradients, self.arrays, self.sens, as_list)
            shaken = self._run_numpy(function, gradients, moved, moved_sens, as_list)
        except RAISED:
            return None
        return (golden, shaken, OF_NUMPY, True) if _shapes(golden) == _shapes(here) else None

    def _run_numpy(
        self,
        function: Callable[..., Any],
        gradients: Gradients | None,
        arrays: Sequence[Array],
        sens: Sequence[tuple[int, Array]],
        as_list: bool,
    ) -> Outputs:
        """Return the outputs of numpy, of a backward the gradients of the wanted tensors."""

        def outputs(tensors: Sequence[Array]) -> list[Array]:
            left = iter(tensors)
            args = [fill(item, left, double, as_list) for item in self.call.args]
            kwargs = {
                name: fill(item, left, double, as_list) for name, item in self.call.kwargs.items()
            }
            return [np.array(item) for item in outputs_of(function(*args, **kwargs))]

        wide = [_in_double(array) for array in arrays]
        with np.errstate(all="ignore"):
            if gradients is None:
                found = outputs(wide)
            else:
                arriving = [(place, _in_double(array)) for place, array in sens]
                found = list(gradients(outputs, wide, arriving, self.wanted))
        return [(item, OF_NUMPY) for item in found]

    def _run_shaken(
        self,
        function: Callable[..., Any],
        kinds: Sequence[str],
        as_list: bool,
        cast: Callable[[str], str],
    ) -> Outputs:
        """Return the outputs for inputs and gradients that are changed by half a rounding."""
        sens = [(place, self._shake(array)) for place, array in self.sens]
        moved = list(self.arrays)
        for place, leaf in enumerate(self._inputs):
            if leaf["dtype"] in FORMATS:
                moved[place] = self._shake(self.arrays[place])
        return self._run(function, kinds, moved, as_list, cast, sens)

    def _shake(self, array: Array) -> Array:
        """Return values that are changed by half a rounding of the coarsest recorded output."""
        dtypes = [leaf.get("dtype") for leaf in self.call.expected if leaf]
        roundings = [FORMATS[dtype][0] for dtype in dtypes if dtype in FORMATS]
        coarsest = max(roundings, default=0.0)
        random = np.random.RandomState(array.size % 9999)
        signs = random.choice([-1.0, 1.0], array.shape) * random.uniform(0.7, 1.0, array.shape)
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        shaken: Array = wide * (1 + coarsest * 0.5 * signs)
        return shaken

    def _run(
        self,
        function: Callable[..., Any],
        kinds: Sequence[str],
        arrays: Sequence[Array],
        as_list: bool,
        cast: Callable[[str], str] = str,
        sens: Sequence[tuple[int, Array]] | None = None,
    ) -> Outputs:
        replayer = Replayer(function, self.call, arrays, kinds, cast, as_list)
        if self.sens:
            found = list(replayer.backward(sens or self.sens, self.wanted))
            self._made = [*replayer.made]
            return found
        if self.call.sens is not None:
            raise CannotReplayError("replay.no_gradient_array")
        found = replayer.forward()
        if replayer.leaves_input:
            self.notes.append(say("replay.leaves_input"))
        return found


def _in_double(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def double(dtype: str) -> str:
    """Return the dtype of the golden call for a recorded one."""
    return DOUBLE.get(dtype, dtype)


def to_single(dtype: str) -> str:
    """Return the dtype of a golden call in float32 for a recorded one."""
    return "Float32" if dtype in FLOATS else dtype


def is_double(shaken: Outputs) -> bool:
    """Return whether outputs were computed in float64, not in float32 inside."""
    arrays = [item[0] for item in shaken if item is not None]
    numbers = [array for array in arrays if array.dtype.kind in "fc" and array.size]
    for array in numbers:
        is_complex = array.dtype.kind == "c" and array.ndim
        parts = array.view(np.float64) if is_complex else array.real
        with np.errstate(over="ignore", invalid="ignore"):
            if np.any(parts.astype(np.float32).astype(np.float64) != parts):
                return True
    # few elements may be exact in float32 by chance
    return not any(array.size > 8 for array in numbers)


def _with_floats(dtypes: Sequence[str], dtype: str) -> list[str]:
    """Return dtypes with one dtype in the place of all that have fractions."""
    return [dtype if own in FLOATS else own for own in dtypes]


def _shapes(outputs: Outputs) -> list[Any]:
    return [item and item[0].shape for item in outputs]
