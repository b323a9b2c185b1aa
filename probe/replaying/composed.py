# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The function whose gradient was recorded, made again in float64 of the calls in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from probe.replaying.calling import Replayer, tensors_of
from probe.replaying.described import CallDescription, CannotReplayError, Program
from probe.replaying.functions import find
from probe.replaying.judging import FORMATS, Array
from probe.replaying.making import RAISED, double
from probe.replaying.references import reference_of

#: the rounding of float64
_EPS = 2.0**-52
_ROUGH = 1e-12  # a rougher function is tried in elementary operations
_SINGLE = 1e-10  # a rougher one is in float32
#: a composed function may be so far from the recorded outputs, in parts of the greatest element, or in roundings
_FAR = 1e-3
_FAR_ROUNDINGS = 32.0
#: returns the values of a described tensor
Load = Callable[[dict[str, Any]], Array]


class Composed:
    """The function in float64; its value is the sum of its outputs times their recorded gradients."""

    def __init__(self, program: Program, load: Load) -> None:
        self.program = program
        self._calls = [CallDescription(**step) for step in program.steps]
        self._arrays = [list(map(load, tensors_of(call))) for call in self._calls]
        self._sens = [load(leaf).astype(np.float64) for leaf in program.sens]
        #: for each call the function that computes in float64, once it is found
        self._known: list[_Known | None] = [None] * len(self._calls)
        self._noise: list[list[Array]] = []  # for each call how far each output may be off
        self.base = [load(leaf).astype(np.float64) for leaf in program.inputs]
        #: the coarsest rounding of a recorded tensor
        self.rounding = max(FORMATS[dtype][0] for dtype in self._dtypes() or ["Float32"])
        self.size = 0.0
        self.eps = _EPS
        self._measure(load)

    def _dtypes(self) -> list[str]:
        """Return the recorded dtypes of all inputs, outputs and gradients that have fractions."""
        leaves: list[Any] = []
        for call in self._calls:
            leaves += tensors_of(call)
            leaves += call.expected
        for group in (*self.program.gradients, self.program.sens):
            leaves += group
        return [leaf["dtype"] for leaf in leaves if leaf and leaf.get("dtype") in FORMATS]

    def own_errors(self) -> list[Array]:
        """Return how far MindSpore's gradients of the steps are from those in float64 on this machine: rounding."""
        try:
            narrow = self._reverse(str)
            wide = self._reverse(double)
        except RAISED:
            return [np.zeros(()) for _ in self.base]
        return [np.nan_to_num(np.abs(a - b)) for a, b in zip(narrow, wide)]

    def _reverse(self, cast: Callable[[str], str]) -> list[Array]:
        """Return the gradients of the inputs that MindSpore's gradients of the steps give together."""
        arriving: dict[Any, Array] = {}  # wire -> the sum of its gradients so far
        for wire, sens in zip(self.program.outputs, self._sens):
            _add(arriving, wire, sens)
        for number in reversed(range(len(self._calls))):
            self._reverse_call(number, cast, arriving)
        return [np.asarray(arriving.get((-1, number), 0.0)) for number in range(len(self.base))]

    def _reverse_call(
        self, number: int, cast: Callable[[str], str], arriving: dict[Any, Array]
    ) -> None:
        """Add the gradients that a call gives its inputs, for those that have arrived at its outputs."""
        call = self._calls[number]
        known = self._known[number]
        tensors = [place for place, leaf in enumerate(call.expected) if leaf and leaf["array"]]
        given = [
            (at, arriving[number, place])
            for at, place in enumerate(tensors)
            if (number, place) in arriving
        ]
        kinds = [cast(leaf["dtype"]) for leaf in tensors_of(call)]
        wires = {
            at: wire
            for at, wire in enumerate(self.program.wires[number])
            if wire is not None and kinds[at] in FORMATS
        }
        if known is None or not given or not wires:
            return
        arrays = self._arrays[number]
        replayer = Replayer(known.function, call, arrays, kinds, cast, known.as_list)
        gradients = replayer.backward(given, list(wires))
        for wire, (gradient, _) in zip(wires.values(), gradients):
            _add(arriving, wire, gradient.astype(np.float64))

    def _measure(self, load: Load) -> None:
        """Compare with the recorded outputs: their errors are those that the recorded gradient may have too."""
        outputs = self._outputs(self.base, None)
        wires = [wire for wires in self.program.wires for wire in wires]
        used = {tuple(wire) for wire in (*wires, *self.program.outputs) if wire}
        for number, (call, made) in enumerate(zip(self._calls, outputs)):
            errors = []
            for place, (leaf, item) in enumerate(zip(call.expected, made)):
                values = item[0].astype(np.float64) if item else np.zeros(())
                error = 0.5 * self.rounding * np.abs(values)
                is_recorded = leaf and item and leaf.get("dtype") in FORMATS
                if is_recorded and values.shape == tuple(leaf["shape"]):
                    off = np.nan_to_num(np.abs(load(leaf).astype(np.float64) - values))
                    if (number, place) in used and self._is_far(off, values):
                        raise CannotReplayError("replay.not_composed")
                    error = error + off
                errors.append(error)
            self._noise.append(errors)
        ends = [wire for wire in self.program.outputs if wire and wire[0] >= 0]
        results = [outputs[number][place][0] for number, place in ends]
        products = [np.nan_to_num(result * sens) for result, sens in zip(results, self._sens)]
        self.size = float(sum(np.sum(np.abs(product)) for product in products))

    def _is_far(self, off: Array, values: Array) -> bool:
        """Return whether outputs are so far from the recorded ones that the function is another one."""
        greatest = max(float(np.max(np.abs(values), initial=0)), 1e-30)
        far = max(_FAR, _FAR_ROUNDINGS * self.rounding) * greatest
        return bool(off.size) and float(np.sqrt(np.mean(off**2))) > far

    def __call__(self, values: list[Array], seed: int | None = None) -> float:
        """Return the value; a seed disturbs all that was rounded, always in the same way."""
        outputs = self._outputs(values, seed)
        total = 0.0
        for number, (wire, sens) in enumerate(zip(self.program.outputs, self._sens)):
            if wire is None:
                continue
            result = _at(wire, values, outputs)
            if result.shape != sens.shape:
                raise CannotReplayError("replay.other_shape")
            weight = sens
            if seed is not None:
                signs = _signs(seed + 7 * number, sens)
                weight = sens * (1 + 0.5 * self.rounding * signs)
            total += float(np.sum(np.where(weight == 0, 0.0, weight * result)))
        return total

    def _outputs(self, values: list[Array], seed: int | None) -> list[list[Any]]:
        """Return the outputs of all calls for these inputs of the function."""
        made: list[list[Any]] = []
        for number, call in enumerate(self._calls):
            arrays = [
                recorded if wire is None else _at(wire, values, made)
                for wire, recorded in zip(self.program.wires[number], self._arrays[number])
            ]
            found = self._run(number, call, arrays)
            if seed is not None:
                self._disturb(found, number, seed)
            made.append(found)
        return made

    def _disturb(self, outputs: list[Any], number: int, seed: int) -> None:
        """Move the outputs of a call by as much as they may be off."""
        for place, item in enumerate(outputs):
            noise = self._noise[number][place]
            if item and item[0].dtype.kind == "f" and noise.shape == item[0].shape:
                array, dtype = item
                signs = _signs(seed + 97 * number + place, noise)
                outputs[place] = (array + noise * signs, dtype)

    def _run(self, number: int, call: CallDescription, arrays: list[Array]) -> list[Any]:
        kinds = [double(leaf["dtype"]) for leaf in tensors_of(call)]
        known = self._known[number]
        if known is not None:
            return Replayer(known.function, call, arrays, kinds, double, known.as_list).forward()
        function = find(call)
        short = call._replace(args=call.args[: function.inputs])
        self._calls[number] = short
        ways = [_Known(function.function, False), _Known(function.function, True)]
        reference = reference_of(call)
        if reference is not None:
            ways.append(_Known(reference, False))
        best: _Tried | None = None
        error: Exception | None = None
        last_rough = 1.0  # of the last way that gave outputs
        for way in ways:
            if last_rough <= _ROUGH:
                break
            try:
                runs = [
                    Replayer(way.function, short, moved, kinds, double, way.as_list).forward()
                    for moved in _moved(arrays)
                ]
            except RAISED as raised:
                error = error or raised
                continue
            if len(runs[0]) == len(call.expected):
                last_rough = _roughness(runs)
                if best is None or last_rough < best.rough:
                    best = _Tried(way, last_rough, runs[0])
        if best is None or best.rough > _SINGLE:
            raise CannotReplayError("replay.no_double", name=call.key) from error
        self._known[number] = best.way
        self.eps = max(self.eps, best.rough)
        return best.outputs


class _Known(NamedTuple):
    """A function that makes a call in float64."""

    function: Callable[..., Any]
    as_list: bool  # whether lists are lists


class _Tried(NamedTuple):
    """A way in which a call was made."""

    way: _Known
    rough: float
    outputs: list[Any]


def _add(arriving: dict[Any, Array], wire: Any, gradient: Array) -> None:
    source = tuple(wire or ())
    arriving[source] = arriving.get(source, 0.0) + gradient


def _at(wire: Any, values: list[Array], outputs: list[list[Any]]) -> Array:
    """Return the values at a wire: an input of the function, or an output of a call."""
    number, place = wire
    array: Array = values[place] if number < 0 else outputs[number][place][0]
    return array


def _moved(arrays: list[Array]) -> list[list[Array]]:
    """Return tensors, and four more times after small moves of equal length."""
    return [_moved_by(move, arrays) for move in (0.0, 3e-5, 6e-5, 9e-5, 12e-5)]


def _moved_by(move: float, arrays: list[Array]) -> list[Array]:
    moved = list(arrays)
    for place, array in enumerate(arrays):
        if array.dtype.kind == "f":
            moved[place] = array * (1 + move * _signs(1, array))
    return moved


def _roughness(runs: list[list[Any]]) -> float:
    """Return the error of a function in parts of its outputs: kernels of float64 may compute in float32 inside."""
    worst = 0.0
    for items in zip(*runs):
        if not all(items):
            continue
        arrays = [array for array, _ in items]
        _, dtype = items[0]
        at_rest = arrays[0]
        if at_rest.dtype.kind != "f" or not at_rest.size:
            continue
        if dtype != "Float64":
            return 1.0  # a cast
        moved = arrays[1][arrays[1] != at_rest]
        if moved.size and np.all(moved == moved.astype(np.float32)):
            return 1.0
        # the fourth difference: of a smooth function 1e-18
        bend = sum(factor * array for factor, array in zip((1, -4, 6, -4, 1), arrays))
        usual = float(np.median(np.abs(np.nan_to_num(bend))))
        size = float(np.max(np.abs(np.nan_to_num(at_rest))))
        worst = max(worst, usual / 16 / max(size, 1e-300))
    return worst


def _signs(seed: int, array: Array) -> Array:
    signs: Array = np.random.RandomState(seed).choice([-1.0, 1.0], array.shape)
    return signs
