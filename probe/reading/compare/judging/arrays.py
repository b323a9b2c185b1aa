# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Looks at the arrays of tensors in two rank folders: their exact distance."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.door import function_of
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.exact import exact_distance, rel_l2, wide
from probe.reading.compare.judging.judge import SAME_BITS
from probe.reading.compare.judging.parts import Stored, best_order, joined, joined_grid
from probe.reading.dumps.values import array_name
from probe.store import file_names

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: errors over an array that was not written, is cut or does not fit
UNREADABLE = (UsageError, OSError, ValueError, TypeError)
#: errors of the user's own distance
_OF_USER = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
#: sorted numbers that are so much nearer tell that only the order differs
_OTHER_ORDER = 0.1


class Arrays:
    """Looks at the arrays in two rank folders: at "all", or for "differs" at those whose statistics are not equal."""

    def __init__(self, folder_a: str, folder_b: str, which: str = "all", own: str = "") -> None:
        self._folder_a = folder_a
        self._folder_b = folder_b
        self._which = which
        self._own = own

    def refine(self, a: Any, b: Any, found: Distance) -> Distance:
        """Return the exact distance of two tensors; the given one where an array is missing or cannot be read."""
        if self._which == "differs" and found.rel_l2 == 0.0:
            return found
        files_a = _files(a, self._folder_a)
        files_b = _files(b, self._folder_b)
        if not files_a or not files_b:
            return found
        try:
            is_one_file = len(files_a) == len(files_b) == 1
            is_one_dtype = a.get("dtype") == b.get("dtype")
            if is_one_file and is_one_dtype and filecmp.cmp(files_a[0], files_b[0], shallow=False):
                return SAME_BITS
            parts_a, parts_b = self.parts(a, b)
            if len(parts_a) > 1 or len(parts_b) > 1:
                return _of_shards(parts_a, parts_b, a, b, found)
            left = parts_a[0]
            right = parts_b[0]
            exact = exact_distance(left, right)
        except UNREADABLE:
            return found
        return self._with_own(exact, left, right)

    def _with_own(self, exact: Distance, a: Array, b: Array) -> Distance:
        """Return a distance, with that by the user's function where it is for two arrays."""
        if not self._own or exact is SAME_BITS or a.shape != b.shape:
            return exact
        try:
            own = function_of(self._own)(wide(a), wide(b))
            return exact._replace(own=float(own))
        except _OF_USER as error:
            kind = type(error).__name__
            reason = reason_of(error)
            raise UsageError(
                say("error.distance", text=self._own, kind=kind, reason=reason)
            ) from error

    def turned(self, a: Any, b: Any, found: Distance) -> Distance:
        """Return the exact distance of A's transpose from B; the given one where an array is missing."""
        try:
            parts_a, parts_b = self.parts(a, b)
            left = parts_a[0]
            right = parts_b[0]
            is_whole = len(parts_a) == len(parts_b) == 1
            if not is_whole or left.shape != right.shape[::-1]:
                return found
            return exact_distance(left.T, right)
        except UNREADABLE:
            return found

    def told(self, look: Callable[[Array, Array], Sentence], a: Any, b: Any) -> Sentence:
        """Return what ``relation`` or ``elements`` tells of two arrays; nothing where one is missing."""
        try:
            parts_a, parts_b = self.parts(a, b)
            is_whole = len(parts_a) == len(parts_b) == 1
            return look(parts_a[0], parts_b[0]) if is_whole else NOTHING
        except UNREADABLE:
            return NOTHING

    def parts(self, a: Any, b: Any) -> tuple[list[Array], list[Array]]:
        """Return the arrays of two records, of all ranks; raise UsageError when one was not written, or is broken."""
        files_a = _files(a, self._folder_a)
        files_b = _files(b, self._folder_b)
        if not files_a or not files_b:
            raise UsageError(say("error.unwritten"))
        return _read(a, files_a), _read(b, files_b)


def _files(record: Any, folder: str) -> list[str]:
    """Return the files of the arrays of a record, one of each rank that has a part; none where none was written."""
    name = array_name(record)
    if not name:
        return []
    stored = record.get("stored")
    # a document may hold anything
    folders = stored.folders if isinstance(stored, Stored) else ()
    own = folders or (folder,)
    return [os.path.join(above, file_names.ARRAYS, name) for above in own]


def _read(record: Any, files: list[str]) -> list[Array]:
    """Return the arrays in the files; those in a grid are one."""
    from probe.reading.dumps.load import load_array  # numpy

    dtype = str(record.get("dtype"))
    arrays = [load_array(file, dtype, True) for file in files]
    stored = record.get("stored")
    if not isinstance(stored, Stored) or not stored.dims:
        return arrays
    by_place = dict(zip(stored.parts, arrays))
    return [joined_grid(by_place, stored.dims)]


def _of_shards(
    a: list[Array], b: list[Array], record_a: Any, record_b: Any, found: Distance
) -> Distance:
    """Return the distance of two tensors, of which at least one has its arrays in shards."""
    import numpy as np

    sharded = record_a if len(a) > 1 else record_b
    axis = sharded["stored"].axis
    enough = max(of_dtype(record_a.get("dtype")), of_dtype(record_b.get("dtype")))
    blocks = best_order(a, b, axis, rel_l2, enough)
    left = joined(a, axis, blocks)
    right = joined(b, axis, blocks)
    exact = exact_distance(left, right)
    if exact.rel_l2 is None or exact.rel_l2 <= enough or left.dtype.kind == "c":
        return exact
    # the order of the blocks in a shard may be unknown: sorted numbers give a lower bound for any order
    sorted_left = np.sort(left, axis=None)
    sorted_right = np.sort(right, axis=None)
    least = exact_distance(sorted_left, sorted_right)
    if least.rel_l2 is None or least.rel_l2 >= _OTHER_ORDER * exact.rel_l2:
        return exact
    return found if least.rel_l2 <= enough else least._replace(exact=False)
