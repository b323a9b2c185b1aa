# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The end of a gradient: it is followed from the parameter on in the direction of the loss."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence, say
from probe.reading.dumps.entry_name import CELL
from probe.reading.dumps.flow import Link
from probe.reading.dumps.values import Record, leaves, real
from probe.reading.one_run.health.step import Step, is_zero, norm

#: calls whose derivative is zero or none
_STOPS = re.compile(
    r"^(stop_?gradient|detach|arg(max|min|sort)(withvalue)?|sign|ceil|floor|round|trunc|floor_?div(ide)?|__floordiv__|"
    r"one_?hot(ext)?|heaviside|rint|bernoulli|multinomial|non_?zero|searchsorted|bucketize)$",
    re.IGNORECASE,
)
#: calls that only ask for a shape or a dtype
_NO_VALUE = re.compile(
    r"(shape|size|rank|dtype|ndim|zeros|ones|full|empty)(op|_op|_like|like)?$", re.IGNORECASE
)
_FLOATS = ("Float", "BFloat", "Complex", "HiFloat")
#: the calls from a parameter on, each given an output of the one before
_Road = tuple[int, ...]


class End(NamedTuple):
    """The end of a gradient."""

    place: int  # the call
    said: Sentence
    is_sure: bool  # whether it holds in one step already; else a parameter that begins with zeros may explain it


def _is_float(record: Record) -> bool:
    return str(record.get("dtype")).startswith(_FLOATS)


def stops(step: Step, place: int) -> Sentence | None:
    """Return why no gradient passes a call whatever its values are; None if one may."""
    name = step.flow.names[place]
    parts = step.flow.parts[place]
    outputs = step.outputs(place)
    links = step.flow.links[place]
    inputs = [link.record for link in links if _is_float(link.record)]
    if not inputs or not outputs or parts.kind == CELL or _NO_VALUE.search(parts.api):
        return None
    if _STOPS.match(parts.api):
        return say("health.stops", name=name)
    if any(map(_is_float, outputs)) or type(step.entry(place)) is not dict:
        return None
    given = inputs[0]["dtype"]
    made = outputs[0].get("dtype")
    return say("health.stops_dtype", name=name, given=given, made=made)


class EndFinder:
    """Finds where gradients end in one step."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._flow = step.flow

    def find(self, parameter: str) -> End | None:
        """Return where the gradient of a parameter ends; None where that cannot be told."""
        waiting: list[_Road] = [(place,) for place in self._uses(parameter)]
        seen: set[int] = set()
        longest: _Road = ()
        while waiting:
            road = waiting.pop(0)
            place = road[-1]
            if place in seen:
                continue
            seen.add(place)
            if self._step.arrives(place):
                return self._between(road)
            if said := stops(self._step, place):
                return End(place, said, True)
            users = [user for user in self._flow.used_by.get(place, ()) if user > place]
            waiting += [(*road, user) for user in users]
            api = self._flow.parts[place].api
            if not users and len(road) > len(longest) and not _NO_VALUE.search(api):
                longest = road
        return self._left(longest[-1]) if longest else None

    def _uses(self, parameter: str) -> list[int]:
        """Return the calls that use a parameter, the last before its update first.

        A GAN uses its generator in a pass that trains the discriminator alone, and stops the gradient there.
        """
        updates = [item.position for item in self._step.updates if parameter in item.entered]
        end = max(updates, default=len(self._flow.names))
        uses = self._step.uses.get(parameter, ())
        return sorted(uses, key=lambda place: (place > end, -place))

    def is_cancelled(self, parameter: str) -> bool:
        """Return whether a call gives a parameter a gradient that is not zero: several of them add up to zero."""
        for place in self._step.uses.get(parameter, ()):
            for link in self._flow.links[place]:
                is_own = link.parameter and self._step.name_of(link.parameter) == parameter
                if is_own and self._gradient(place, link.place):
                    return True
        return False

    def _gradient(self, place: int, where: str) -> float | None:
        """Return the norm of the gradient of an input."""
        outputs = dict(leaves(self._backward(place).get("output")))
        _, _, number = where.partition(".")
        return norm(outputs.get(number))

    def _between(self, road: _Road) -> End | None:
        """Return the end between a call that gets no gradient and the next one, which gets one."""
        last = road[-1]
        before = road[-2] if len(road) > 1 else None
        for cell in self._step.ancestors(before) if before is not None else ():
            if self._step.arrives(cell) and self._gives_zeros(cell):
                return End(cell, say("health.bprop", name=self._flow.names[cell]), True)
        if self._gives_zeros(last):
            return End(last, self._zeros(last), False)
        if before is None:
            return None
        names = self._flow.names
        said = say("health.ends_between", last=names[before], next=names[last])
        return End(before, said, True)

    def _backward(self, place: int) -> Any:
        backward = self._flow.backward_of(place)
        return self._step.entry(backward) if backward is not None else {}

    def _gives_zeros(self, place: int) -> bool:
        outputs = leaves(self._backward(place).get("output"))
        return any(is_zero([record]) for _, record in outputs)

    def _zeros(self, place: int) -> Sentence:
        """Return why the backward of a call gives zeros of a gradient that is none."""
        name = self._flow.names[place]
        links = self._flow.links[place]
        is_relu = "relu" in self._flow.parts[place].api.lower()
        for link in links:
            high = real(link.record.get("Max"))
            if is_relu and high is not None and high <= 0:
                return say("health.dead", name=name)
            if is_zero([link.record]) and len(links) > 1:
                return say("health.other_zero", name=name, place=link.place)
        return say("health.zero_backward", name=name)

    def _left(self, last: int) -> End | None:
        """Return the end at a call whose output no recorded call uses: it has left MindSpore, as by asnumpy."""
        if last in self._step.losses:
            return None
        names = self._flow.names
        for place, parts, _ in self._step.forwards():
            if place <= last or parts.kind == CELL or not self._step.arrives(place):
                continue
            if any(map(self._is_from_outside, self._flow.links[place])):
                return End(last, say("health.left", last=names[last], next=names[place]), True)
        return End(last, say("health.unused_output", name=names[last]), False)

    def _is_from_outside(self, link: Link) -> bool:
        """Return whether an input may be values that have left MindSpore, and come back."""
        if link.producer >= 0 or link.parameter is not None or not _is_float(link.record):
            return False
        return bool(link.record.get("Max") != link.record.get("Min"))
