# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two checkpoints, or a checkpoint and a run: names, shapes, dtypes, and every parameter that differs.

Values are compared piece by piece; one parameter may be the other in another order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.difference import Difference, Importance, listed, only
from probe.reading.check.names import Key, exchange, match_names, renaming
from probe.reading.check.parameters import other_dtypes
from probe.reading.check.weights.distance import (
    Distance,
    distance,
    fact,
    is_rounded,
    which_elements,
)
from probe.reading.check.weights.order import order
from probe.reading.check.weights.sources import Weights
from probe.reading.check.weights.states import state_of, states
from probe.reading.check.weights.weight import Weight
from probe.reading.dumps import text

#: a part of the differences has a line of its own
_LINES = 18
#: the place of a distance of NaN among the others: the first
_FARTHEST = 1e300


class OtherValues(NamedTuple):
    """A parameter of other values."""

    rank: float  # how far it is; the farthest is told first
    name: str
    said: Sentence


class WeightCheck:
    """Compares the parameters of two checkpoints."""

    def __init__(self, a: Weights, b: Weights) -> None:
        self._a = _digests(a)
        self._b = _digests(b)
        self._matched = match_names(_keys(self._a), _keys(self._b))
        self._pairs = [
            (name, self._a[name], self._b[other]) for name, other in self._matched.pairs.items()
        ]
        #: the sentence for no difference
        self.agreed = say("check.same_weights", count=len(self._pairs))
        self.remarks: list[Sentence] = []  # what the reader should know besides
        unknown = [name for name, x, y in self._pairs if not (x.crc and y.crc)]
        if unknown:
            self.remarks.append(say("check.unknown_values", names=listed(unknown)))

    def differences(self) -> Iterator[Difference]:
        """Yield what differs."""
        values, others = self._values()
        exchanged = self._matched.exchanged([item.name for item in values])
        if exchanged:
            yield Difference(
                Importance.PARAMETERS, say("check.exchange"), exchange(exchanged, most=4)
            )
        yield from others
        yield from self._dtypes()
        told = [item for item in values if item.name not in exchanged]
        told.sort(key=lambda item: -item.rank)
        for item in told[:_LINES]:
            yield Difference(Importance.PARAMETERS, item.name, item.said)
        if len(told) > _LINES:
            rest = say("check.more_parameters", count=len(told) - _LINES)
            yield Difference(Importance.PARAMETERS, say("check.parameters"), rest)
        yield from self._names()

    def _names(self) -> Iterator[Difference]:
        renamed = self._matched.renamed
        if renamed:
            yield Difference(Importance.STRUCTURE, say("check.names"), renaming(renamed))
        for side, names, weights in zip("AB", self._matched.only, (self._a, self._b)):
            kinds = {name: state_of(name, weights) for name in names}
            counts = Counter(filter(None, kinds.values()))
            if counts:
                said = [states(kind, count) for kind, count in counts.items()]
                yield Difference(
                    Importance.OPTIMIZER, say("check.optimizer_state"), only(said, side, 6)
                )
            plain = [name for name in names if not kinds[name]]
            if plain:
                yield Difference(Importance.STRUCTURE, say("check.parameters"), only(plain, side))

    def _dtypes(self) -> Iterator[Difference]:
        others = [(name, x, y) for name, x, y in self._pairs if x.dtype != y.dtype]
        if not others:
            return
        count = sum(is_rounded(x, y) for _, x, y in others)
        rounded = NOTHING
        if count == len(others):
            rounded = say("check.rounded")
        elif count:
            rounded = say("check.some_rounded", count=count)
        name, first_a, first_b = others[0]
        said = other_dtypes(len(others), len(self._pairs), name, first_a.dtype, first_b.dtype)
        yield Difference(Importance.PARAMETERS, say("check.dtype"), clauses(said, rounded))

    def _values(self) -> tuple[list[OtherValues], list[Difference]]:
        """Return the parameters of other values, and what is said of shapes and orders."""
        values: list[OtherValues] = []
        others: list[Difference] = []
        for name, x, y in self._pairs:
            has_one_dtype = x.dtype == y.dtype
            has_one_shape = x.shape == y.shape
            if x.crc and x.crc == y.crc and has_one_shape and has_one_dtype:
                continue
            moved = order(x, y) if has_one_dtype else NOTHING
            if moved:
                said = moved if has_one_shape else _moved(x, y, moved)
                others.append(Difference(Importance.PARAMETERS, name, said))
            elif not has_one_shape:
                others.append(Difference(Importance.STRUCTURE, name, _shapes(x, y)))
            else:
                found = _other_values(name, x, y)
                if found is not None:
                    values.append(found)
        return values, others


def _digests(weights: Weights) -> Weights:
    return {name: weight.digest() for name, weight in weights.items()}


def _keys(weights: Weights) -> dict[str, Key]:
    return {
        name: Key((weight.shape, weight.crc) if weight.crc else None, weight.shape)
        for name, weight in weights.items()
    }


def _moved(x: Weight, y: Weight, moved: Sentence) -> Sentence:
    left = text.shape(x.shape)
    right = text.shape(y.shape)
    return say("check.moved", order=moved, left=left, right=right)


def _other_values(name: str, x: Weight, y: Weight) -> OtherValues | None:
    """Return how the values of two parameters of one shape differ; None if they agree, or nothing tells."""
    has_one_dtype = x.dtype == y.dtype
    if x.pieces is None or y.pieces is None:
        if not (x.crc and y.crc and has_one_dtype):
            return None
        said = say("check.other_values", dtype=x.dtype, shape=text.shape(x.shape))
        return OtherValues(0.0, name, said)
    if not has_one_dtype and is_rounded(x, y):
        return None
    far = distance(x, y)
    if far.others:
        rank = _FARTHEST if math.isnan(far.relative) else far.relative
        return OtherValues(rank, name, _distance_said(x, far))
    # equal numbers of other bits: 0 and -0, or two kinds of NaN
    return OtherValues(0.0, name, say("check.other_bits")) if has_one_dtype else None


def _distance_said(x: Weight, far: Distance) -> Sentence:
    elements = which_elements(far.others, far.first, x.shape, far.values)
    largest = fact(far.largest)
    relative = fact(far.relative)
    return clauses(elements, say("check.distance", largest=largest, relative=relative))


def _shapes(x: Weight, y: Weight) -> Sentence:
    """Return how shapes differ; for more rows, whether those of both agree."""
    shapes = {"left": text.shape(x.shape), "right": text.shape(y.shape)}
    has_other_rows = bool(x.shape and y.shape) and x.shape[1:] == y.shape[1:]
    if not has_other_rows or x.pieces is None or y.pieces is None:
        return say("check.shape", **shapes)
    rows_a = x.shape[0]
    rows_b = y.shape[0]
    side, shorter = ("A", y) if rows_a > rows_b else ("B", x)
    far = distance(x, y, shorter.size)
    if far.others:
        agree = say("check.others_differ", count=far.others)
    else:
        agree = say("check.agree", count=shorter.shape[0])
    return say("check.rows", **shapes, side=side, rows=abs(rows_a - rows_b), agree=agree)
