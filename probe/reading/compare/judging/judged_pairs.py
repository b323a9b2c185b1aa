# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps, judges each place of each pair, and sets aside what blames nobody.

Half precision reaches the float32 behind it: the tolerance of a call is that of the least exact dtype before it.
Pairs are taken apart that are not one call, as both sides come to the same values in other ways: three matmuls are one
and slices of it, or a matmul is a batched one between two reshapes. The pairing by name and order then pairs calls with
inputs of other shapes. Their differences reach no value that the two sides have in common. The same holds for calls
before the update that are no partners, for passes of a divided batch, and for updates by other batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.judge import NO_FLOOR, Judge
from probe.reading.compare.judging.verdicts import HARD, Slot, Verdict, is_state
from probe.reading.compare.pairing.alignment import NONE, REPLACED, Alignment, Pair
from probe.reading.compare.pairing.normal_form import normalised
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, STATES, number
from probe.reading.dumps.values import is_tensor, tensors_in


class Options(NamedTuple):
    """The settings of a comparison."""

    #: names in A -> names in B
    mapping: dict[str, str] = {}  # noqa: RUF012
    rules: tuple[tuple[str, str], ...] = ()  # (pattern, condition) of the user
    #: folder -> tensor -> rel_l2 between two golden runs, by (step, rank) of A
    noise: dict[Any, dict[str, float]] = {}  # noqa: RUF012
    factor: float = 1.0  # by how much tolerances are multiplied
    arrays: str = "all"  # "all", "differs" or "none": which arrays are read
    #: (file, form) that the rows of this unit are written to: "csv", "jsonl" or "msprobe"
    rows: tuple[tuple[str, str], ...] = ()
    #: the parallel layouts of A and B as the user gives them; "" takes the one in the header
    layouts: tuple[str, str] = ("", "")
    distance: str = ""  # the user's own, "module:function"


class JudgedPairs:
    """Compares two dumps of one step and rank; ``arrays`` is None where none may be read."""

    def __init__(self, a: Dump, b: Dump, options: Options) -> None:
        self.tolerances = Tolerances(
            list(options.rules), options.noise.get((a.step, a.rank)), options.factor
        )
        normal = normalised(a, b, options.mapping, not any(options.layouts))
        self.a, self.b, self.alignment, self.levels, self.updates, is_foreign = normal
        self.pairs = self.alignment.pairs()
        self.arrays = (
            None
            if options.arrays == "none"
            else Arrays(a.path, b.path, options.arrays, options.distance)
        )
        arrays = (
            self.arrays if a.header.get("dump_data_dir") or b.header.get("dump_data_dir") else None
        )
        turned = (
            arrays.turned if arrays else lambda a, b, found: found
        )  # statistics of a transpose are the same
        self._judge = Judge(
            self.tolerances, arrays.refine if arrays else None, turned if is_foreign else None
        )
        found = floors((self.a, self.b), self.alignment.flows)
        entries = self.a.data, self.b.data
        self.slots = [self._judged(pair, found, *entries) for pair in self.pairs]
        wrong = before_updates(
            self.alignment, self.updates, self.pairs, self.slots
        )  # they are not one call
        self.separate(wrong + Substitutes(self.alignment, self.pairs, self.slots).find())
        #: that one side divides its batch; no sentence if none does
        self.divides = forgive_divided_batches(self.updates, self.pairs, self.slots)

    def _judged(
        self, pair: Pair, floors: Floors | None, a: dict[str, Any], b: dict[str, Any]
    ) -> list[Slot]:
        flow_a, flow_b = self.alignment.flows
        if NONE in (pair.a, pair.b):
            return []
        name, parts = flow_a.names[pair.a], flow_a.parts[pair.a]
        entries = a[name], b[flow_b.names[pair.b]]
        floor = (floors[0][pair.a], floors[1][pair.b]) if floors is not None else NO_FLOOR
        slots = self._judge.follow(name, parts, self._judge.slots(name, parts, *entries, floor))
        return judge_numbers(slots) if pair.a in self.updates else slots

    def separate(self, places: Collection[int]) -> None:
        """Take pairs apart, by their places in A."""
        if places:
            self.alignment.separate_calls(places)
            known = {(pair.a, pair.b): slots for pair, slots in zip(self.pairs, self.slots)}
            self.pairs = self.alignment.pairs()
            self.slots = [known.get((pair.a, pair.b), []) for pair in self.pairs]

    def release(self) -> None:
        """Drop the entries, which refer to each other: their memory is free at once, without the garbage collector."""
        self.a.release()
        self.b.release()

    def rows(self) -> Iterator[tuple[Pair, Slot]]:
        """Yield every place of every pair; calls without a partner have none."""
        return ((pair, slot) for pair, slots in zip(self.pairs, self.slots) for slot in slots)


#: the tolerance of each call in A and in B
Floors = tuple[list[float], list[float]]


def floors(dumps: tuple[Dump, Dump], flows: tuple[Flow, Flow]) -> Floors | None:
    """Return for each call the tolerance of the least exact dtype before it; None where all have one dtype."""
    if len({of_dtype(dtype) for flow in flows for dtype in flow.dtypes} - {0.0}) < 2:
        return None
    return _tolerances(dumps[0], flows[0]), _tolerances(dumps[1], flows[1])


def _inexact(entry: Any) -> float:
    """Return the tolerance of the least exact dtype in an entry."""
    parts = entry.values() if isinstance(entry, dict) else ()
    lists = (
        part if type(part) is list else part.values() if type(part) is dict else ()
        for part in parts
    )
    return max(
        (of_dtype(item.get("dtype")) for items in lists for item in items if is_tensor(item)),
        default=0.0,
    )


def _tolerances(dump: Dump, flow: Flow) -> list[float]:
    own = [_inexact(dump.data[name]) for name in flow.names]
    last_backward = 0.0
    for place, links in enumerate(flow.links):
        if flow.parts[place].direction == FORWARD:
            own[place] = max(
                own[place],
                max((own[link.producer] for link in links if link.producer >= 0), default=0.0),
            )
        else:
            forward = flow.forward_of(place)
            last_backward = max(
                last_backward, own[place], own[forward] if forward is not None else 0.0
            )
            own[place] = last_backward
    return own


def before_updates(
    alignment: Alignment,
    updates: Collection[int],
    pairs: Sequence[Pair],
    slots: Sequence[list[Slot]],
) -> list[int]:
    """Return calls between gradients and optimizer that differ though what enters the optimizer agrees."""
    wrong: list[int] = []
    for place, pair in enumerate(pairs):
        if pair.a not in updates or NONE in pair[:2] or not enters_equal(slots[place]):
            continue
        for before in range(place - 1, -1, -1):
            a, b, _ = pairs[before]
            if alignment.flows[int(a == NONE)].parts[b if a == NONE else a].direction != FORWARD:
                break
            if a not in updates and any(slot.verdict in HARD for slot in slots[before]):
                wrong.append(
                    a
                )  # no partners, but one thing by other calls: a / 2 + b / 2, and (a + b) / 2
    return wrong


def forgive_divided_batches(
    updates: Collection[int], pairs: Sequence[Pair], slots: list[list[Slot]]
) -> Sentence:
    """Blame nobody, in ``slots``, where one side divides its batch and the optimizer gets the same gradients."""
    own = [place for place, pair in enumerate(pairs) if pair.a in updates and pair.b != NONE]
    if not own or not all(enters_equal(slots[place]) for place in own):
        return NOTHING
    rows = batches(slots)
    side = int(rows[0] > rows[1])  # that divides: it has calls that the other has not
    if 0 in rows or not any(pair[1 - side] == NONE for pair in pairs):
        return NOTHING
    for place, found in enumerate(slots):
        if place not in own:
            slots[place] = of_other_batch(found)
    return say("compare.divides", side="AB"[side], rows=max(rows), own=min(rows))


_MOST = 400


class Substitutes:
    """Looks for pairs that are not one call."""

    def __init__(
        self, alignment: Alignment, pairs: Sequence[Pair], slots: Sequence[list[Slot]]
    ) -> None:
        self._alignment = alignment
        self._flows, self._partners = alignment.flows, (alignment.b_of, alignment.a_of)
        self._slots = {
            (side, pair[side]): found for pair, found in zip(pairs, slots) for side in (0, 1)
        }
        self._candidates = {
            pair.a: pair.b for pair, found in zip(pairs, slots) if self._is_candidate(pair, found)
        }

    def find(self) -> list[int]:
        """Return the places in A of the pairs to take apart."""
        return [
            a for a, b in self._candidates.items() if self._is_dead(0, a) and self._is_dead(1, b)
        ]

    def _is_candidate(self, pair: Pair, slots: list[Slot]) -> bool:
        if NONE in pair[:2]:
            return False
        parts = self._flows[0].parts[pair.a]
        if parts.kind != API or parts.direction != FORWARD:
            return False
        given = [slot.verdict for slot in slots if slot.is_input]
        is_other = pair.how == REPLACED and not HARD.isdisjoint(given)
        return is_other or Verdict.SHAPE in given or Verdict.ONE_SIDE in given

    def _is_dead(self, side: int, place: int) -> bool:
        """Return whether all that is made of a value on one side comes to values that both sides have."""
        flow, own = self._flows[side], {place}
        waiting = [place]
        while waiting and len(own) < _MOST:
            place = waiting.pop()
            users = flow.used_by.get(place, ())
            if not users and tensors_in(self._alignment.entry(side, place), "output"):
                return False  # a result
            for user in users:
                is_candidate = (
                    user if side == 0 else self._partners[1].get(user)
                ) in self._candidates
                if not is_candidate and user in self._partners[side]:
                    if any(slot.verdict in HARD for slot in self._given(side, user, place)):
                        return False
                elif user not in own:
                    own.add(user)
                    waiting.append(user)
        return not waiting

    def _given(self, side: int, user: int, producer: int) -> list[Slot]:
        places = {link.place for link in self._flows[side].links[user] if link.producer == producer}
        return [slot for slot in self._slots.get((side, user), ()) if slot.place in places]


#: numbers so near to each other are the same: one was computed, or is a float32
_NEAR = 1e-6


def judge_numbers(slots: list[Slot]) -> list[Slot]:
    """Return the places of an update; a number of it that differs is a difference, and its names are none."""
    return [_judged(slot) if slot.place.startswith(NUMBERS) else slot for slot in slots]


def _judged(slot: Slot) -> Slot:
    left, right = number(slot.a), number(slot.b)
    if left is not None and right is not None and left != right:
        relative = abs(left - right) / (max(abs(left), abs(right)) or 1.0)  # 0 beside NaN
        if not relative <= _NEAR:
            return slot._replace(
                verdict=Verdict.DIFFERS, distance=Distance(relative, abs(left - right), True)
            )
    return slot._replace(verdict="")


def enters_equal(slots: list[Slot]) -> bool:
    """Return whether the gradients that enter an update are known to agree."""
    given = [slot.verdict for slot in slots if slot.place.startswith(GRADIENTS)]
    return bool(given) and HARD.isdisjoint(given) and Verdict.UNKNOWN not in given


def batches(slots: Sequence[list[Slot]]) -> tuple[int, int]:
    """Return the rows of a batch in A and B, if one side divides it; (0, 0) if not."""
    for slot in (
        slot for found in slots for slot in found if slot.is_input and slot.verdict == Verdict.SHAPE
    ):
        a, b = (record.get("shape") if is_tensor(record) else None for record in (slot.a, slot.b))
        if not (type(a) is type(b) is list and a and b and type(a[0]) is type(b[0]) is int):
            break  # the file holds anything
        if a[1:] == b[1:] and min(a[0], b[0]) > 0 and max(a[0], b[0]) % min(a[0], b[0]) == 0:
            return a[0], b[0]
        break
    return 0, 0


def of_other_batch(slots: list[Slot]) -> list[Slot]:
    """Return the places of a call that was given another part of the batch: only a parameter that differs counts."""
    return [
        slot._replace(verdict=Verdict.OTHER_BATCH)
        if slot.verdict in HARD and (not slot.place.startswith(STATES) or is_state(slot.place))
        else slot
        for slot in slots
    ]
