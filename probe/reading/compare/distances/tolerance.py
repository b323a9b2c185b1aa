# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two tensors are, and the largest difference that is still agreement.

Statistics alone prove differences, never equality: two tensors with equal ones may be permutations of one another.
A tolerance is by dtype, by a rule of the user, or by noise.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from statistics import median
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.findings.system import reason_of
from probe.reading.dumps.values import Record, grouped, real

_INF = math.inf
#: how exact recorded means and norms are
_MEAN_ERROR, _NORM_ERROR = 4e-7, 1e-6


class Distance(NamedTuple):
    """How far apart two tensors are."""

    #: the norm of the difference by the larger norm: at least this from statistics, exactly this from arrays; inf where
    #: NaN, Inf or the shape differ; None where nothing is known
    rel_l2: float | None
    max_abs: float | None  # the largest difference of two elements, likewise
    exact: bool = False  # whether it comes from arrays
    own: float | None = (
        None  # by the user's function, of two arrays that are not equal; None where it was not called
    )


#: makes a Distance in half of the time
_new: Callable[..., Distance] = tuple.__new__
SAME = Distance(0.0, 0.0)
UNKNOWN = Distance(None, None)
APART = Distance(_INF, _INF)


def distance(a: Record, b: Record) -> Distance:
    """Return the least distance that the statistics of two tensors leave.

    >>> a = {"shape": [4], "Max": 2.0, "Min": 0.0, "Mean": 1.0, "Norm": 3.0}
    >>> distance(a, a).rel_l2, round(distance(a, {**a, "Max": 2.3}).rel_l2, 3)
    (0.0, 0.1)
    >>> distance(a, {**a, "Max": float("nan")}).rel_l2, distance(a, {"shape": [4]}).rel_l2
    (inf, None)
    """
    try:
        numbers_a = a["Max"], a["Min"], a["Mean"], a["Norm"]
        numbers_b = b["Max"], b["Min"], b["Mean"], b["Norm"]
    except KeyError:
        numbers_a = a.get("Max"), a.get("Min"), a.get("Mean"), a.get("Norm")
        numbers_b = b.get("Max"), b.get("Min"), b.get("Mean"), b.get("Norm")
    if numbers_a == numbers_b:
        return UNKNOWN if numbers_a == (None, None, None, None) else SAME
    if type(numbers_a[3]) is not float or type(numbers_b[3]) is not float:
        return _of_other_numbers(numbers_a, numbers_b)
    try:
        high, low = abs(numbers_a[0] - numbers_b[0]), abs(numbers_a[1] - numbers_b[1])
        mean, norms = abs(numbers_a[2] - numbers_b[2]), abs(numbers_a[3] - numbers_b[3])
    except (TypeError, OverflowError):  # a document may hold anything
        return _of_other_numbers(numbers_a, numbers_b)
    scale: float = numbers_a[3] if numbers_a[3] > numbers_b[3] else numbers_b[3]
    if not scale + high + low + mean < _INF:
        return _of_nonfinite(numbers_a, numbers_b)
    extreme = high if high > low else low
    most = mean if mean > extreme else extreme
    if scale == 0.0:
        return Distance(0.0 if most == 0.0 else _INF, most)
    least = _spread(a, numbers_a, numbers_b, mean)
    least = least if least > norms else norms
    return _new(Distance, ((least if least > extreme else extreme) / scale, most, False, None))


def _spread(record: Record, a: tuple[Any, ...], b: tuple[Any, ...], mean_gap: float) -> float:
    """Return the least norm of the difference that means and norms leave, less their rounding."""
    try:
        count = math.prod(record["shape"])
    except (KeyError, TypeError):
        return 0.0
    (high_a, low_a, mean_a, norm_a), (high_b, low_b, mean_b, norm_b) = a, b
    high, low = high_a if high_a > high_b else high_b, low_a if low_a < low_b else low_b
    mean_gap -= _MEAN_ERROR * (high if high > -low else -low)
    square_a, square_b = norm_a * norm_a, norm_b * norm_b
    rest_a, rest_b = square_a - count * mean_a * mean_a, square_b - count * mean_b * mean_b
    rest_a, rest_b = (
        math.sqrt(rest_a) if rest_a > 0.0 else 0.0,
        math.sqrt(rest_b) if rest_b > 0.0 else 0.0,
    )
    larger = rest_a if rest_a > rest_b else rest_b
    gap = abs(rest_a - rest_b)
    if larger > 0.0:
        gap -= _NORM_ERROR * (square_a if square_a > square_b else square_b) / larger
    square = (count * mean_gap * mean_gap if mean_gap > 0.0 else 0.0) + (
        gap * gap if gap > 0.0 else 0.0
    )
    return math.sqrt(square)


def _of_other_numbers(a: tuple[Any, ...], b: tuple[Any, ...]) -> Distance:
    """Bools have no norm, chosen statistics may have any, and a document may hold anything."""
    known = [(x, y) for x, y in zip(a, b) if real(x) is not None and real(y) is not None]
    if not known:
        return UNKNOWN
    gaps = [abs((real(x) or 0.0) - (real(y) or 0.0)) for x, y in known]
    most = max(gaps)
    if not most < _INF:
        return _of_nonfinite(a, b)
    scale = max(max(abs(real(x) or 0.0), abs(real(y) or 0.0)) for x, y in known)
    return Distance(most / scale if scale else 0.0, most)


def _of_nonfinite(a: tuple[Any, ...], b: tuple[Any, ...]) -> Distance:
    """Two tensors with NaN or Inf are apart unless they have them alike; then the finite numbers are compared."""
    most, scale = 0.0, 0.0
    is_finite = all(math.isfinite(real(end) or 0.0) for end in (*a[:2], *b[:2]))
    for place, (x, y) in enumerate(zip(a, b)):
        left, right = (
            real(x),
            real(y),
        )  # an infinite Norm or Mean is unknown: a device's float32 sum left its range
        if (
            left is None
            or right is None
            or (is_finite and place >= 2 and math.inf in (abs(left), abs(right)))
        ):
            continue
        if math.isfinite(left) and math.isfinite(right):
            most, scale = max(most, abs(left - right)), max(scale, abs(left), abs(right))
        elif not (left == right or (math.isnan(left) and math.isnan(right))):
            return APART
    return Distance(most / scale if scale else 0.0, most)


#: on rel_l2. Those of the half kinds are torch.testing's; that of float32 is of a whole net, not of one call
_TOLERANCES = {
    1e-12: "float64 double complex128", 1e-5: "float32 float complex64", 2e-3: "float16 half", 1.6e-2: "bfloat16",
    0.13: "hifloat8 float8_e4m3fn", 0.25: "float8_e5m2",
}  # fmt: skip
BY_DTYPE = {
    dtype: tolerance for tolerance, dtypes in _TOLERANCES.items() for dtype in dtypes.split()
}
#: the same -> half of the distance of two numbers
_UNITS = {1e-12: 2**-53, 1e-5: 2**-24, 2e-3: 2**-11, 1.6e-2: 2**-8, 0.13: 2**-4, 0.25: 2**-3}
#: how many times its own noise a tensor may differ, and how many times that of the net; neighbours on each side
NOISE_FACTOR, NET_FACTOR, _NEAR = 3.0, 8.0, 8
_NAMES = ("rel_l2", "max_abs", "distance")
_COMPARES: dict[type, Callable[[Any, Any], bool]] = {
    ast.LtE: operator.le,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}


@functools.lru_cache(maxsize=256)
def _of_name(dtype: str) -> float:
    return BY_DTYPE.get(dtype.rpartition(".")[2].lower(), 0.0)


def of_dtype(dtype: object) -> float:
    """Return the tolerance of a dtype; integers, bools and unknown ones must be equal.

    >>> of_dtype("Float32"), of_dtype("torch.bfloat16"), of_dtype("Int64"), of_dtype(None)
    (1e-05, 0.016, 0.0, 0.0)
    """
    return _of_name(dtype) if type(dtype) is str else 0.0


class NetNoise(dict[str, float]):
    """Tensor -> how far a rounding moves it, relative. Tensors without fractions are not in it.

    One run is one sample: a tensor may have been moved by nearly nothing, by chance. So it has at least the median of
    its neighbours, that of the same place in the other calls of its API, and one rounding of its dtype.
    """

    @classmethod
    def of(cls, samples: Iterable[tuple[str, Hashable, object, float]]) -> NetNoise:
        """Return it from (tensor, place in the calls of its API, dtype, rel_l2) in the order of execution."""
        rows = (
            (name, group, min(size, 1.0), _UNITS.get(of_dtype(dtype), 0.0))
            for name, group, dtype, size in samples
        )
        known = [row for row in rows if row[3]]
        groups = grouped((group, size) for _, group, size, _ in known)
        typical, sizes = (
            {group: median(found) for group, found in groups.items()},
            [row[2] for row in known],
        )
        near = (median(sizes[max(at - _NEAR, 0) : at + _NEAR + 1]) for at in range(len(sizes)))
        return cls(
            {
                name: max(around, typical[group], *own)
                for (name, group, *own), around in zip(known, near)
            }
        )


class ToleranceRule:
    """A rule of the user: a condition for the tensors in whose names a regular expression is found.

    >>> ToleranceRule("softmax", "rel_l2 <= 0.02 or max_abs <= 1e-3").holds(Distance(0.5, 1e-4))
    True
    """

    def __init__(self, pattern: str, condition: str) -> None:
        self.text = pattern, condition
        self.used = 0  # how many tensors it was applied to
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(
                say("error.rule_regex", text=pattern, reason=reason_of(error))
            ) from error
        try:
            self._tree = ast.parse(condition, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise UsageError(_wrong(condition)) from None
        self._value(self._tree, dict.fromkeys(_NAMES, 0.0))
        #: whether it asks for the user's own distance
        self.is_own = any(
            isinstance(node, ast.Name) and node.id == _NAMES[2] for node in ast.walk(self._tree)
        )

    def fits(self, name: str) -> bool:
        """Return whether the rule is for a tensor of this name."""
        found = self._pattern.search(name) is not None
        self.used += found
        return found

    def concerns(self, name: str) -> bool:
        """Return the same without counting it."""
        return self._pattern.search(name) is not None

    def holds(self, distance: Distance) -> bool:
        """Return whether the condition holds; where nothing is known it does."""
        if distance.rel_l2 is None:
            return True
        numbers = distance.rel_l2, distance.max_abs or 0.0, distance.own or 0.0
        return bool(self._value(self._tree, dict(zip(_NAMES, numbers))))

    def _value(self, node: ast.expr, numbers: Mapping[str, float]) -> Any:
        if isinstance(node, ast.BoolOp):
            parts = [self._value(value, numbers) for value in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARES:
            left, right = (self._value(side, numbers) for side in (node.left, node.comparators[0]))
            return _COMPARES[type(node.ops[0])](left, right)
        if isinstance(node, ast.Name) and node.id in _NAMES:
            return numbers[node.id]
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        raise UsageError(_wrong(self.text[1]))


def _wrong(condition: str) -> Sentence:
    return say("error.rule_condition", text=condition)


class Tolerances:
    """Judges distances by rules, of which the first that fits decides, and by dtypes; ``noise``: tensor -> rel_l2."""

    def __init__(
        self,
        rules: list[tuple[str, str]] | None = None,
        noise: Mapping[str, float] | None = None,
        factor: float = 1.0,
    ) -> None:
        self._rules = [ToleranceRule(*rule) for rule in rules or ()]
        self._noise = noise or {}
        self.factor = factor  # multiplies the tolerances
        self.has_noise = bool(self._noise)
        self.net = (
            noise if isinstance(noise, NetNoise) else NetNoise()
        )  # from one run that was moved; else empty
        self.is_plain = not self._rules and not self._noise

    def agrees(
        self, name: str, distance: Distance, tolerance: float, is_one_dtype: bool = True
    ) -> bool:
        """Return whether two tensors agree."""
        if distance.rel_l2 is None:
            return True
        if not self.is_plain:
            for rule in self._rules:
                if rule.fits(name) and not (rule.is_own and distance.own is None):
                    return rule.holds(distance)
            own = (NET_FACTOR if self.net else NOISE_FACTOR) * self._noise.get(name, 0.0)
            tolerance = own if own and self.net and is_one_dtype else max(tolerance, own)
        return distance.rel_l2 <= tolerance * self.factor

    def note(self, names: list[str]) -> None:
        """Count these tensors for the rules that are for them, also if they are equal, so that no rule asks."""
        for rule in self._rules:
            if not rule.used:
                rule.used = sum(map(rule.concerns, names))

    def is_ruled(self, name: str) -> bool:
        """Return whether a rule of the user is for this tensor."""
        return any(rule.concerns(name) for rule in self._rules)

    def used(self) -> list[int]:
        """Return how often each rule was applied."""
        return [rule.used for rule in self._rules]
