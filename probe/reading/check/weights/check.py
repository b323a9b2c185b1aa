# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two checkpoints, or a checkpoint and a run: names, shapes, dtypes, and every parameter that differs.

Values are compared piece by piece; one parameter may be the other in another order.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.check.difference import Difference, Importance, listed, only
from probe.reading.check.parameters import Key, exchange, match_names, other_dtypes, renaming
from probe.reading.check.snapshot import read_snapshots
from probe.reading.check.weights.kinds import is_checkpoint, reader_of
from probe.reading.check.weights.weight import Array, Weight, numpy_dtype
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.folders import find_folders
from probe.reading.dumps.load import load_array
from probe.reading.dumps.values import array_name
from probe.store import file_names

#: bytes of a parameter that is held as a whole: to look at its rows
_WHOLE = 50_000_000
Weights = dict[str, Weight]
#: the first part of the names of an optimizer's states, and the names of its numbers
_STATE = re.compile(
    r"(moments?\d?|adam_[mv]|exp_avg(_sq)?|accum(ulation)?|stat|velocity|mean_square|mean_gradient|linear|"
    r"optimizer|state|hidden_state|.*_(m|v|moment\d?))\."
)
_NUMBERS = re.compile(
    r"(global_step|learning_rate|beta[12]_power|weight_decay|momentum|loss_scale|scale_sense|current_iterator_step|"
    r"last_overflow_iterator_step|step_num|epoch_num|learning_rate_group_\d+)$"
)
#: a part of the differences has a line of its own
_LINES = 18


class Distance(NamedTuple):
    """The distance of two parameters of one shape."""

    others: int  # how many elements differ
    first: int  # the number of the first of them, in C order
    values: tuple[float | complex, float | complex]  # its values in A and B
    largest: float  # the greatest difference; NaN where one side alone is NaN
    relative: float  # norm of the difference by norm of A


def aligned(
    a: Iterator[Array], b: Iterator[Array], most: int = -1
) -> Iterator[tuple[Array, Array]]:
    """Yield pieces of equal length of two sequences of pieces, of ``most`` elements at most."""
    left = right = np.zeros(0, np.int8)
    while most:
        left = next(a, left) if not left.size else left
        right = next(b, right) if not right.size else right
        size = min(left.size, right.size)
        size = size if most < 0 else min(size, most)
        if not size:
            return
        yield left[:size], right[:size]
        left = left[size:]
        right = right[size:]
        most = most - size


def distance(a: Weight, b: Weight, most: int = -1) -> Distance:
    """Return the distance of two parameters whose elements can be read, of the first ``most`` ones; -1 for all."""
    if a.pieces is None or b.pieces is None:
        raise ValueError("only the checksums of a parameter are known")
    others = 0
    first = -1
    place = 0
    values: tuple[float | complex, float | complex] = (0.0, 0.0)
    largest = square = norm = 0.0
    for x, y in aligned(a.pieces(), b.pieces(), most):
        wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        left = x.astype(wide)
        right = y.astype(wide)
        with np.errstate(all="ignore"):
            other = (left != right) & ~(np.isnan(left) & np.isnan(right))
            gap = np.where(other, np.abs(left - right), 0.0)
        found = int(np.count_nonzero(other))
        if found and first < 0:
            at = int(np.argmax(other))
            first = place + at
            values = (left[at].item(), right[at].item())
        others += found
        largest = float(np.fmax(largest, gap.max())) if not np.isnan(gap).any() else float("nan")
        with np.errstate(all="ignore"):
            square = square + float((gap * gap).sum())
            norm = norm + float((np.abs(left) ** 2).sum())
        place += x.size
    return Distance(
        others,
        first,
        values,
        largest,
        (square / norm) ** 0.5 if norm else float("inf") if square else 0.0,
    )


def which_elements(
    count: int, first: int, shape: Sequence[int], values: tuple[complex, complex]
) -> Sentence:
    """Return which elements of two arrays differ: how many, the number in C order of the first, its values."""
    place = list(map(int, np.unravel_index(first, tuple(shape)))) if shape else []
    return say(
        "check.elements" if count > 1 else "check.one_element",
        count=count,
        all=math.prod(shape),
        place=str(place),
        left=fact(values[0]),
        right=fact(values[1]),
    )


def fact(value: complex) -> Any:
    """Return a number as a fact; as text where JSON has none: NaN, Inf, complex numbers."""
    return value if isinstance(value, float) and math.isfinite(value) else f"{value:.6g}"


def order(a: Weight, b: Weight) -> Sentence:
    """Return how B has the elements of A in another order; nothing where it has others. Both have checksums."""
    if a.sum < 0 or a.sum != b.sum or a.size != b.size:
        return NOTHING
    if a.crc == b.crc:
        return say("check.other_shape") if a.shape != b.shape else NOTHING
    can_look = (
        a.pieces is not None and b.pieces is not None and a.bytes <= _WHOLE and a.dtype == b.dtype
    )
    is_turned = len(a.shape) > 1 and b.shape == a.shape[::-1]
    if not can_look:
        return (
            say("check.transposed")
            if is_turned and a.shape != b.shape
            else say("check.other_order")
        )
    left = _bits(a)
    right = _bits(b)
    if left.ndim > 1 and np.array_equal(left.T, right):
        return say("check.transposed")
    if left.ndim > 1 and left.shape == right.shape:
        rows = [
            [zlib.crc32(np.ascontiguousarray(row).tobytes()) for row in side]
            for side in (left, right)
        ]
        if sorted(rows[0]) == sorted(rows[1]):
            row = next(place for place, key in enumerate(rows[0]) if rows[1][place] != key)
            return say("check.rows_moved", row=row, other=rows[1].index(rows[0][row]))
    same = np.array_equal(np.sort(left, axis=None), np.sort(right, axis=None))
    return say("check.other_order") if same else NOTHING


def _bits(weight: Weight) -> Array:
    array = weight.array()
    return array.view(f"u{min(array.dtype.itemsize, 8)}") if array.dtype.kind != "c" else array


def read_weights(path: str) -> Weights:
    """Return the parameters of a checkpoint, or of a run's snapshot or first dump; raise UsageError without them."""
    if is_checkpoint(path):
        if not os.path.exists(path):
            raise UsageError(say("error.no_file", path=path))
        return reader_of(path)(path)
    found: Weights = {}
    try:
        snapshot = read_snapshots(path)[0]
    except UsageError:
        return read_dumped(path)
    for name, item in snapshot.parameters.items():
        shape = item.get("shape")
        if isinstance(shape, list):
            total = item["sum"] if isinstance(item.get("sum"), int) else -1
            found[name] = Weight(
                str(item.get("dtype")), tuple(shape), None, str(item.get("crc") or ""), total
            )
    return found


def describe_weights(path: str, as_json: bool, language: str) -> str:
    """Return the parameters of a checkpoint as text."""
    weights = read_weights(path)
    if as_json:
        rows = {
            name: {"dtype": it.dtype, "shape": it.shape, "crc": it.digest().crc}
            for name, it in weights.items()
        }
        return json.dumps(rows, indent=1)
    size = sum(weight.bytes for weight in weights.values())
    lines = [
        [text.shorten(text.safe(name), 70), item.dtype, text.shape(item.shape)]
        for name, item in weights.items()
    ]
    header = [say(key).text(language) for key in ("check.parameter", "show.dtype", "show.shape")]
    head = say("check.weights", path=path, count=len(weights), size=text.size(size))
    rest = [say("check.rest", count=len(lines) - 40).text(language)] if len(lines) > 40 else []
    return "\n".join([head.text(language), text.columns([header, *lines[:40]]), *rest])


class WeightCheck:
    """Compares the parameters of two checkpoints."""

    def __init__(self, a: Weights, b: Weights) -> None:
        self._a, self._b = (
            {name: weight.digest() for name, weight in side.items()} for side in (a, b)
        )
        self._matched = match_names(_keys(self._a), _keys(self._b))
        self._pairs = [
            (name, self._a[name], self._b[other]) for name, other in self._matched.pairs.items()
        ]
        self.agreed = say(
            "check.same_weights", count=len(self._pairs)
        )  # the sentence for no difference
        self.remarks: list[Sentence] = []  # what the reader should know besides
        unknown = [name for name, x, y in self._pairs if not (x.crc and y.crc)]
        if unknown:
            self.remarks.append(say("check.unknown_values", names=listed(unknown)))

    def differences(self) -> Iterator[Difference]:
        """Yield what differs."""
        values, others = self._values()
        yield from self._exchanged(values)
        yield from others
        yield from self._dtypes()
        lines = sorted(values, key=lambda item: -item[0])
        for _, name, said in lines[:_LINES]:
            yield Difference(Importance.PARAMETERS, name, said)
        if len(lines) > _LINES:
            rest = say("check.more_parameters", count=len(lines) - _LINES)
            yield Difference(Importance.PARAMETERS, say("check.parameters"), rest)
        yield from self._names()

    def _names(self) -> Iterator[Difference]:
        if self._matched.renamed:
            yield Difference(
                Importance.STRUCTURE, say("check.names"), renaming(self._matched.renamed)
            )
        for side, names, weights in zip("AB", self._matched.only, (self._a, self._b)):
            states = [self._state_of(name, weights) for name in names]
            kinds = Counter(filter(None, states))
            plain = [name for name, state in zip(names, states) if not state]
            if kinds:
                said = only((_states(kind, count) for kind, count in kinds.items()), side, 6)
                yield Difference(Importance.OPTIMIZER, say("check.optimizer_state"), said)
            if plain:
                yield Difference(Importance.STRUCTURE, say("check.parameters"), only(plain, side))

    def _state_of(self, name: str, weights: Weights) -> str:
        """Return the kind of an optimizer's state, "" for a parameter."""
        if _NUMBERS.match(name):
            return name
        match = _STATE.match(name)
        if match is None:
            return ""
        rest = name[match.end() :]
        return (
            match[0][:-1] if rest in weights or match[1].startswith(("optimizer", "state")) else ""
        )

    def _dtypes(self) -> Iterator[Difference]:
        other = [(name, x, y) for name, x, y in self._pairs if x.dtype != y.dtype]
        if not other:
            return
        name, x, y = other[0]
        count = sum(_rounded(one, two) for _, one, two in other)
        rounded = NOTHING
        if count:
            rounded = (
                say("check.some_rounded", count=count)
                if count < len(other)
                else say("check.rounded")
            )
        said = other_dtypes(len(other), len(self._pairs), name, x.dtype, y.dtype)
        yield Difference(Importance.PARAMETERS, say("check.dtype"), clauses(said, rounded))

    def _exchanged(self, values: list[tuple[float, str, Sentence]]) -> Iterator[Difference]:
        """Yield which parameters have each other's values, and take them out of the others."""
        found = self._matched.exchanged([name for _, name, _ in values])
        if found:
            yield Difference(Importance.PARAMETERS, say("check.exchange"), exchange(found, 4))
            values[:] = [item for item in values if item[1] not in found]

    def _values(self) -> tuple[list[tuple[float, str, Sentence]], list[Difference]]:
        """Return the distance, name and sentence of all whose values differ, and what is said of shapes and orders."""
        values: list[tuple[float, str, Sentence]] = []
        others: list[Difference] = []
        for name, x, y in self._pairs:
            if x.crc and x.crc == y.crc and x.shape == y.shape and x.dtype == y.dtype:
                continue
            moved = order(x, y) if x.dtype == y.dtype else NOTHING
            shapes = text.shape(x.shape), text.shape(y.shape)
            if moved:
                said = (
                    say("check.moved", order=moved, left=shapes[0], right=shapes[1])
                    if x.shape != y.shape
                    else moved
                )
                others.append(Difference(Importance.PARAMETERS, name, said))
            elif x.shape != y.shape:
                others.append(Difference(Importance.STRUCTURE, name, _shapes(x, y)))
            elif x.pieces is None or y.pieces is None:
                if x.crc and y.crc and x.dtype == y.dtype:
                    values.append(
                        (0.0, name, say("check.other_values", dtype=x.dtype, shape=shapes[0]))
                    )
            elif x.dtype == y.dtype or not _rounded(x, y):
                far = distance(x, y)
                if far.others:
                    values.append(
                        (
                            far.relative if far.relative == far.relative else 1e300,
                            name,
                            _sentence(x, far),
                        )
                    )
                elif x.dtype == y.dtype:
                    values.append((0.0, name, say("check.other_bits")))
        return values, others


def _keys(weights: Weights) -> dict[str, Key]:
    return {
        name: Key((it.shape, it.crc) if it.crc else None, it.shape) for name, it in weights.items()
    }


def _sentence(x: Weight, far: Distance) -> Sentence:
    said = which_elements(far.others, far.first, x.shape, far.values)
    return clauses(
        said, say("check.distance", largest=fact(far.largest), relative=fact(far.relative))
    )


def _shapes(x: Weight, y: Weight) -> Sentence:
    """Return how shapes differ; for more rows, whether those of both agree."""
    shapes = {"left": text.shape(x.shape), "right": text.shape(y.shape)}
    if not (x.shape and y.shape) or x.shape[1:] != y.shape[1:] or None in (x.pieces, y.pieces):
        return say("check.shape", **shapes)
    rows = abs(x.shape[0] - y.shape[0])
    side, least = ("A", y) if x.shape[0] > y.shape[0] else ("B", x)
    far = distance(x, y, least.size)
    agree = (
        say("check.others_differ", count=far.others)
        if far.others
        else say("check.agree", count=least.shape[0])
    )
    return say("check.rows", **shapes, side=side, rows=rows, agree=agree)


def _rounded(x: Weight, y: Weight) -> bool:
    """Return whether the parameter of more digits, rounded to the other's dtype, is the other."""
    if x.pieces is None or y.pieces is None or x.shape != y.shape:
        return False
    narrow = min(numpy_dtype(x.dtype), numpy_dtype(y.dtype), key=lambda dtype: dtype.itemsize)
    with np.errstate(all="ignore"):
        pairs = aligned(x.pieces(), y.pieces())
        return all(np.array_equal(one.astype(narrow), two.astype(narrow)) for one, two in pairs)


def _states(kind: str, count: int) -> Sentence | str:
    if _NUMBERS.match(kind):
        return kind
    if kind == "optimizer":  # torch numbers them
        return say("check.tensors", count=count)
    return say("check.states", name=kind, count=count)


def read_dumped(path: str) -> dict[str, Weight]:
    """Return Cell and name -> parameter of the first dump; raise UsageError without arrays or checksums of them."""
    folder = find_folders(path)[0]
    found: dict[str, Weight] = {}
    for name, entry in Dump(folder).data.items():
        own = entry_name.parse(name)
        parts = entry if isinstance(entry, dict) else {}
        is_first = own[-2:] == (0, FORWARD) and own.kind == CELL and own.path
        sides = [(own.path, parts.get("parameters"))] if is_first else []
        for cell, parameters in [*sides, ("", parts.get("model_parameters"))]:
            for key, record in parameters.items() if isinstance(parameters, dict) else ():
                weight = _weight(folder.path, record)
                if weight is not None:
                    found.setdefault(f"{cell}.{key}" if cell else key, weight)
    if not found:
        raise UsageError(say("check.nothing_in", path=path, file=file_names.RUN))
    return found


def _weight(folder: str, record: Any) -> Weight | None:
    if not isinstance(record, dict) or not isinstance(record.get("shape"), list):
        return None
    dtype = str(record.get("dtype"))
    shape = tuple(record["shape"])
    name = array_name(record)
    if name:
        return Weight(
            dtype, shape, partial(_pieces, os.path.join(folder, file_names.ARRAYS, name), dtype)
        )
    crc = record.get("md5")
    return Weight(dtype, shape, None, crc) if isinstance(crc, str) and dtype != "BFloat16" else None


def _pieces(path: str, dtype: str) -> Iterator[Array]:
    yield load_array(path, dtype).reshape(-1)
