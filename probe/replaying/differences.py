# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Recorded gradients beside central differences in float64, and the bytes of a call that is made several times.

MindSpore's own differentiation says nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from probe.findings.sentence import NOTHING, Sentence, say
from probe.replaying.calling import Replayer, tensors_of
from probe.replaying.described import CallDescription, CannotReplayError, Program, ReplayResult
from probe.replaying.evaluating import RESERVED, plain_name
from probe.replaying.functions import find
from probe.replaying.judging import DIFFERS, EQUAL, FORMATS, KINK, LABEL, OK, WRONG, Array, Judged
from probe.replaying.making import RAISED, Maker, double
from probe.replaying.references import reference_of

#: the steps that are tried, over the size of the input, the first one first
_STEPS = tuple(0.01 / 8**place for place in range(1, 9))
_EPS = 2.0**-52
_ROUGH = 1e-12  # a rougher function is tried in elementary operations
_SINGLE = 1e-10  # a rougher one is in float32
#: whole directions for each input; smaller ones where the function has kinks: an element may be clear of them
_WHOLE = 3
_PARTS = 10
_SURE = 1e-3  # kinks of many elements may cancel in a sum, but hardly to so small a part of the difference
#: a composed function may be so far from the recorded outputs, in parts of the greatest element, or in roundings
_FAR = 1e-3
_FAR_ROUNDINGS = 32.0
Load = Callable[[dict[str, Any]], Array]
_PATTERNS = (
    np.nan,
    0.0,
    3e38,
    -1.0,
    1e-30,
)  # what the memory holds that a kernel may read or leave unwritten
_SIDE = 384


class Slope(NamedTuple):
    """A derivative along one direction."""

    value: float
    error: float  # a bound of its error
    kink: float  # how far the derivatives of both sides are apart
    step: float  # the step that was chosen


def check(program: Program, load: Load) -> ReplayResult:
    """Return the verdict on the recorded gradients of a function, or raise the reason why there is none."""
    function = _Composed(program, load)
    own = function.own_errors()
    checks = [_Check(function, number, load, own[number]) for number in range(len(program.inputs))]
    judged = [item for check in checks for item in check.judged()]
    if not judged:
        raise CannotReplayError("replay.no_input_gradient")
    worst = next(word for word in (WRONG, OK, KINK) if any(item.verdict == word for item in judged))
    if worst == WRONG and program.outside:
        raise CannotReplayError("replay.outside", place=program.outside)
    return ReplayResult(worst, NOTHING, LABEL, judged)


class _Composed:
    """The function in float64; its value is the sum of its outputs times their recorded gradients."""

    def __init__(self, program: Program, load: Load) -> None:
        self.program = program
        self._calls = [CallDescription(**step) for step in program.steps]
        self._arrays = [[load(leaf) for leaf in tensors_of(call)] for call in self._calls]
        self._sens = [load(leaf).astype(np.float64) for leaf in program.sens]
        self._known: list[tuple[Callable[..., Any], bool] | None] = [None] * len(self._calls)
        self._noise: list[list[Array]] = []
        self.base = [load(leaf).astype(np.float64) for leaf in program.inputs]
        known = [leaf for call in self._calls for leaf in (*tensors_of(call), *call.expected)]
        known += [leaf for group in (*program.gradients, program.sens) for leaf in group]
        kinds = [leaf["dtype"] for leaf in known if leaf and leaf.get("dtype") in FORMATS]
        self.rounding = max([FORMATS[kind][0] for kind in kinds or ["Float32"]])
        self.size = 0.0
        self.eps = _EPS
        self._measure(load)

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
        arriving: dict[Any, Array] = {}
        for wire, sens in zip(self.program.outputs, self._sens):
            arriving[tuple(wire or ())] = arriving.get(tuple(wire or ()), 0.0) + sens
        for number in reversed(range(len(self._calls))):
            call = self._calls[number]
            known = self._known[number]
            wires = self.program.wires[number]
            tensors = [place for place, leaf in enumerate(call.expected) if leaf and leaf["array"]]
            given = [
                (at, arriving[number, place])
                for at, place in enumerate(tensors)
                if (number, place) in arriving
            ]
            kinds = [cast(leaf["dtype"]) for leaf in tensors_of(call)]
            wanted = [
                at for at, wire in enumerate(wires) if wire is not None and kinds[at] in FORMATS
            ]
            if known is None or not given or not wanted:
                continue
            replayer = Replayer(known[0], call, self._arrays[number], kinds, cast, known[1])
            for at, (found, _) in zip(wanted, replayer.backward(given, wanted)):
                source = tuple(wires[at] or ())
                arriving[source] = arriving.get(source, 0.0) + found.astype(np.float64)
        return [np.asarray(arriving.get((-1, number), 0.0)) for number in range(len(self.base))]

    def _measure(self, load: Load) -> None:
        """Compare with the recorded outputs: their errors are those that the recorded gradient may have too."""
        outputs = self._outputs(self.base, None)
        used = {
            tuple(wire)
            for wires in (*self.program.wires, self.program.outputs)
            for wire in wires
            if wire
        }
        for number, (call, found) in enumerate(zip(self._calls, outputs)):
            self._noise.append([])
            for place, (leaf, item) in enumerate(zip(call.expected, found)):
                made = item[0].astype(np.float64) if item else np.zeros(())
                error = 0.5 * self.rounding * np.abs(made)
                if (
                    leaf
                    and item
                    and made.shape == tuple(leaf["shape"])
                    and leaf.get("dtype") in FORMATS
                ):
                    off = np.nan_to_num(np.abs(load(leaf).astype(np.float64) - made))
                    error = error + off
                    far = max(_FAR, _FAR_ROUNDINGS * self.rounding) * max(
                        float(np.max(np.abs(made), initial=0)), 1e-30
                    )
                    if (
                        (number, place) in used
                        and off.size
                        and float(np.sqrt(np.mean(off**2))) > far
                    ):
                        raise CannotReplayError("replay.not_composed")
                self._noise[-1].append(error)
        values = [
            outputs[wire[0]][wire[1]][0] for wire in self.program.outputs if wire and wire[0] >= 0
        ]
        self.size = float(
            sum(np.sum(np.abs(np.nan_to_num(v * s))) for v, s in zip(values, self._sens))
        )

    def __call__(self, values: list[Array], seed: int | None = None) -> float:
        """Return the value; a seed disturbs all that was rounded, always in the same way."""
        outputs = self._outputs(values, seed)
        total = 0.0
        for number, (wire, sens) in enumerate(zip(self.program.outputs, self._sens)):
            if wire is not None:
                found = values[wire[1]] if wire[0] < 0 else outputs[wire[0]][wire[1]][0]
                if found.shape != sens.shape:
                    raise CannotReplayError("replay.other_shape")
                weight = (
                    sens
                    if seed is None
                    else sens * (1 + 0.5 * self.rounding * _signs(seed + 7 * number, sens))
                )
                total += float(np.sum(np.where(weight == 0, 0.0, weight * found)))
        return total

    def _outputs(self, values: list[Array], seed: int | None) -> list[list[Any]]:
        made: list[list[Any]] = []
        for number, call in enumerate(self._calls):
            arrays = [
                recorded
                if wire is None
                else values[wire[1]]
                if wire[0] < 0
                else made[wire[0]][wire[1]][0]
                for wire, recorded in zip(self.program.wires[number], self._arrays[number])
            ]
            found = self._run(number, call, arrays)
            for place, item in enumerate(found if seed is not None else ()):
                noise = self._noise[number][place]
                if item and item[0].dtype.kind == "f" and noise.shape == item[0].shape:
                    found[place] = (
                        item[0] + noise * _signs((seed or 0) + 97 * number + place, noise),
                        item[1],
                    )
            made.append(found)
        return made

    def _run(self, number: int, call: CallDescription, arrays: list[Array]) -> list[Any]:
        kinds = [double(leaf["dtype"]) for leaf in tensors_of(call)]
        known = self._known[number]
        if known is not None:
            return Replayer(known[0], call, arrays, kinds, double, known[1]).forward()
        function = find(call)
        reference = reference_of(call)
        short = call._replace(args=call.args[: function.inputs])
        self._calls[number] = short
        found: list[tuple[float, int, Any]] = []
        error: Exception | None = None
        for tried, as_list in (
            (function.function, False),
            (function.function, True),
            (reference, False),
        ):
            if tried is not None and (not found or found[-1][0] > _ROUGH):
                try:
                    runs = [
                        Replayer(tried, short, moved, kinds, double, as_list).forward()
                        for moved in _moved(arrays)
                    ]
                except RAISED as raised:
                    error = error or raised
                    continue
                if len(runs[0]) == len(call.expected):
                    found.append((_roughness(runs), len(found), (tried, as_list, runs[0])))
        rough, _, best = min(found, default=(1.0, 0, None))
        if best is None or rough > _SINGLE:
            raise CannotReplayError("replay.no_double", name=call.key) from error
        self._known[number] = best[:2]
        self.eps = max(self.eps, rough)
        outputs: list[Any] = best[2]
        return outputs


def _moved(arrays: list[Array]) -> list[list[Array]]:
    """Return tensors, and four more times after small moves of equal length."""
    return [
        [
            array * (1 + move * _signs(1, array)) if array.dtype.kind == "f" else array
            for array in arrays
        ]
        for move in (0.0, 3e-5, 6e-5, 9e-5, 12e-5)
    ]


def _roughness(runs: list[list[Any]]) -> float:
    """Return the error of a function in parts of its outputs: kernels of float64 may compute in float32 inside."""
    worst = 0.0
    for items in zip(*runs):
        if not all(items) or items[0][0].dtype.kind != "f" or not items[0][0].size:
            continue
        if items[0][1] != "Float64":
            return 1.0  # a cast
        arrays = [item[0] for item in items]
        moved = arrays[1][arrays[1] != arrays[0]]
        if moved.size and np.all(moved == moved.astype(np.float32)):
            return 1.0
        bend = sum(
            factor * array for factor, array in zip((1, -4, 6, -4, 1), arrays)
        )  # of a smooth function 1e-18
        size = float(np.max(np.abs(np.nan_to_num(arrays[0]))))
        worst = max(worst, float(np.median(np.abs(np.nan_to_num(bend)))) / 16 / max(size, 1e-300))
    return worst


def _signs(seed: int, array: Array) -> Array:
    signs: Array = np.random.RandomState(seed).choice([-1.0, 1.0], array.shape)
    return signs


class _Check:
    def __init__(self, function: _Composed, number: int, load: Load, own: Array) -> None:
        program = function.program
        self._function = function
        self._number = number
        self._place = program.places[number]
        self._x = function.base[number]
        self._own = own
        self._whole = _WHOLE if len(program.steps) == 1 else 2
        self._gradient = np.asarray(
            sum(load(leaf).astype(np.float64) for leaf in program.gradients[number])
        )

    def judged(self) -> Iterator[Judged]:
        """Yield the worst verdict on the gradient; none for an empty tensor."""
        if not self._x.size:
            return
        found: list[Judged] = []
        for count, direction in enumerate(self._directions()):
            if count >= self._whole and any(item.verdict != KINK for item in found):
                break
            found.append(self._along(direction))
        order = {WRONG: 2, OK: 1, KINK: 0}
        yield max(found, key=lambda item: (order[item.verdict], item.off / max(item.here, 1e-300)))

    def _directions(self) -> Iterator[Array]:
        """Yield directions: all elements alike, each by its size, then ever fewer elements."""
        x = self._x
        random = np.random.RandomState(self._number)
        alive = np.abs(
            x[np.isfinite(x) & (x != 0) & (self._gradient != 0)]
        )  # a mask has huge numbers, and no gradient
        size = float(np.median(alive)) if alive.size else 1.0
        for place in range(self._whole):
            signs = random.choice([-1.0, 1.0], x.shape) * random.uniform(0.5, 1.0, x.shape)
            yield signs * (np.where(x == 0, size, np.abs(x)) if place == 1 else size)
        for place in range(_PARTS if self._gradient.any() else 0):
            few = np.zeros(x.size)
            among = np.flatnonzero(self._gradient) if place % 2 else np.arange(x.size)
            chosen = random.choice(
                among, max(1, len(among) // 8 ** (place // 2 + 1)), replace=False
            )
            few[chosen] = random.choice([-size, size], len(chosen))
            yield few.reshape(x.shape)

    def _along(self, direction: Array) -> Judged:
        products = self._gradient * direction
        recorded = float(np.sum(products))
        spread = float(np.sqrt(np.sum(products**2)))
        rounding = self._function.rounding
        slope = self._slope(direction, rounding * max(spread, abs(recorded)))
        allowed = rounding * (4 if rounding > 1e-6 else 16) * (spread + abs(recorded))
        allowed += 2 * float(np.sqrt(np.sum((self._own * direction) ** 2)))
        off = abs(recorded - slope.value)
        scale = max(abs(recorded), abs(slope.value), spread)
        if off > allowed:
            ends = [
                [self._value(direction, side * slope.step, seed) for side in (1, -1)]
                for seed in (11, 12)
            ]
            allowed += 6 * max(
                abs((up - down) / (2 * slope.step) - slope.value) for up, down in ends
            )
        verdict = OK
        said = NOTHING
        if not np.isfinite(off) or off > allowed + 4 * slope.error:
            is_sure = (
                bool(np.isfinite(off)) and slope.error < 0.1 * off and slope.kink < _SURE * off
            )
            verdict = WRONG if is_sure else KINK
            said = _remark(slope, recorded, allowed) if is_sure else NOTHING
        if scale == 0 and self._gradient.any():
            verdict = KINK  # these elements say nothing
        off, allowed = (value / scale if scale > 0 else value for value in (off, allowed))
        return Judged(
            self._place, verdict, off, allowed, off / rounding, allowed / rounding, [], said
        )

    def _slope(self, direction: Array, wanted: float) -> Slope:
        """Return the derivative, with the step whose bound is least: of the formula, and of rounding."""
        function = self._function
        middle = self._value(direction, 0.0)
        best = Slope(np.nan, np.inf, np.inf, _STEPS[-1])
        before = np.nan
        kink = np.inf
        for step in _STEPS:
            up = self._value(direction, step)
            down = self._value(direction, -step)
            central = (up - down) / (2 * step)
            noise = 8 * function.eps * function.size / step
            error = abs(central - before) / 8 + noise
            side = abs(up - 2 * middle + down) / step + 4 * noise
            if np.isfinite(side):
                kink = min(kink, side)
                if (
                    np.isfinite(error) and error + 0.02 * side < best.kink
                ):  # a saturated function has a large side
                    best = Slope(central, error, error + 0.02 * side, step)
            before = central
            if max(best.error, 0.01 * kink) < 0.1 * wanted:
                break
        return best._replace(kink=kink)

    def _value(self, direction: Array, step: float, seed: int | None = None) -> float:
        values = list(self._function.base)
        values[self._number] = self._x + step * direction
        return self._function(values, seed)


def _remark(slope: Slope, recorded: float, allowed: float) -> Sentence:
    if abs(slope.value) <= allowed:
        return say("replay.constant")
    if abs(recorded) <= allowed:
        return say("replay.no_slope")
    return say("replay.times", times=recorded / slope.value)


def repeat(maker: Maker, times: int) -> ReplayResult:
    """Return whether a call gives equal bytes each time, or raise the reason why nobody can tell."""
    first = [item and item[0].copy() for item in maker.here()[0]]
    if maker.notes:
        raise CannotReplayError("replay.stand_in", note=maker.notes[0])
    places = [maker.call.places[number] for number, _ in zip(maker.numbers, first)]
    reserved = () if maker.sens else RESERVED.get(plain_name(maker.call.key), ())
    known = {place for place, leaf in zip(maker.call.places, maker.call.expected) if leaf}
    judged = {place for place in places if place in known and place not in reserved}
    found: dict[str, list[Judged]] = {}
    for number in range(1, times):
        _disturb(
            [item.nbytes // 4 + 1 for item in (*maker.arrays, *first) if item is not None] * 2,
            number,
        )
        for place, old, new in zip(places, first, maker.here()[0]):
            if (
                place in judged
                and old is not None
                and new is not None
                and old.tobytes() != new[0].tobytes()
            ):
                found.setdefault(place, []).append(_apart(place, old, new[0]))
    if not judged:
        raise CannotReplayError("replay.no_array")
    outputs = []
    for items in found.values():
        worst = max(items, key=lambda item: (item.off, item.here))
        outputs.append(replace(worst, roundings=float(len(items)), roundings_here=float(times - 1)))
    return ReplayResult(DIFFERS if outputs else EQUAL, NOTHING, "", outputs)


def _disturb(sizes: Sequence[int], number: int) -> None:
    """Leave other contents in free memory, and other work on a second stream."""
    import mindspore as ms

    held = [
        ms.Tensor(np.full(size, _PATTERNS[number % len(_PATTERNS)], np.float32)) * 1
        for size in sizes
    ]
    side = ms.Tensor(np.full((_SIDE, _SIDE), number, np.float32))
    try:
        with ms.runtime.StreamCtx(ms.runtime.Stream()):
            side = ms.ops.matmul(side, side)
    except (AttributeError, RuntimeError, ValueError):  # no second stream here
        side = ms.ops.matmul(side, side)
    ms.runtime.synchronize()
    del held


def _apart(place: str, old: Array, new: Array) -> Judged:
    """Return how far two outputs are apart whose bytes differ; zeros of other signs and other NaN are apart by 0."""
    if old.shape != new.shape or not old.size:
        return Judged(place, DIFFERS, float("inf"), 1.0, 1.0, 0.0, [])
    bits = np.ascontiguousarray(old).reshape(-1).view(np.uint8) != np.ascontiguousarray(
        new
    ).reshape(-1).view(np.uint8)
    apart = bits.reshape(old.size, -1).any(-1)
    wide: Any = np.complex128 if old.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        off = np.nan_to_num(np.abs(old.astype(wide) - new.astype(wide)))
        size = float(np.max(np.nan_to_num(np.abs(old.astype(wide))))) or 1.0
    element = [int(place) for place in np.unravel_index(int(np.argmax(apart)), old.shape)]
    return Judged(
        place, DIFFERS, float(np.max(off)) / size, float(np.mean(apart)), 1.0, 0.0, element
    )
