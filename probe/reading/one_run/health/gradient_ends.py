# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds the call at which the gradient of a parameter ends, from the parameter on in the direction of the loss."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence, say
from probe.reading.dumps.entry_name import CELL
from probe.reading.dumps.values import Record, leaves, real
from probe.reading.one_run.health.step import Step, is_zero, norm

#: calls whose derivative is zero or none
_STOPS = re.compile(
    r"^(stop_?gradient|detach|arg(max|min|sort)(withvalue)?|sign|ceil|floor|round|trunc|floor_?div(ide)?|__floordiv__|"
    r"one_?hot(ext)?|heaviside|rint|bernoulli|multinomial|non_?zero|searchsorted|bucketize)$",
    re.IGNORECASE,
)
#: calls that only ask for a shape or a dtype
_NO_VALUE = re.compile(r"(shape|size|rank|dtype|ndim|zeros|ones|full|empty)(op|_op|_like|like)?$", re.IGNORECASE)
_FLOATS = ("Float", "BFloat", "Complex", "HiFloat")


class End(NamedTuple):
    """The end of a gradient."""

    place: int  # the call
    said: Sentence
    is_sure: bool  # whether it holds in one step already; else a parameter that begins with zeros may explain it


def _is_float(record: Record) -> bool:
    return str(record.get("dtype")).startswith(_FLOATS)


def stops(step: Step, place: int) -> Sentence | None:
    """Return why no gradient passes a call whatever its values are; None if one may."""
    name, parts, entry = step.flow.names[place], step.flow.parts[place], step.entry(place)
    outputs = step.outputs(place)
    given = [link.record for link in step.flow.links[place] if _is_float(link.record)]
    if not given or not outputs or parts.kind == CELL or _NO_VALUE.search(parts.api):
        return None
    if _STOPS.match(parts.api):
        return say("health.stops", name=name)
    if not any(map(_is_float, outputs)) and type(entry) is dict:
        dtypes = {"given": given[0]["dtype"], "made": outputs[0].get("dtype")}
        return say("health.stops_dtype", name=name, **dtypes)
    return None


class EndFinder:
    """Finds where gradients end in one step."""

    def __init__(self, step: Step) -> None:
        self._step, self._flow = step, step.flow

    def find(self, parameter: str) -> End | None:
        """Return where the gradient of a parameter ends; None where that cannot be told."""
        waiting: list[tuple[int, tuple[int, ...]]] = [(place, ()) for place in self._step.uses.get(parameter, ())]
        seen: set[int] = set()
        last: tuple[int, ...] = ()
        while waiting:
            place, road = waiting.pop(0)
            if place in seen:
                continue
            seen.add(place)
            if self._step.arrives(place):
                return self._between((*road, place))
            road = (*road, place)
            if said := stops(self._step, place):
                return End(place, said, True)
            users = [user for user in self._flow.used_by.get(place, ()) if user > place]
            waiting += [(user, road) for user in users]
            if not users and len(road) > len(last) and not _NO_VALUE.search(self._flow.parts[place].api):
                last = road
        return self._left(last) if last else None

    def is_cancelled(self, parameter: str) -> bool:
        """Return whether a call gives a parameter a gradient that is not zero: several of them add up to zero."""
        return any(
            self._gradient(place, link.place)
            for place in self._step.uses.get(parameter, ())
            for link in self._flow.links[place]
            if link.parameter is not None and self._step.name_of(link.parameter) == parameter
        )

    def _gradient(self, place: int, where: str) -> float | None:
        """Return the norm of the gradient that a call gives one of its inputs."""
        outputs = dict(leaves(self._backward(place).get("output")))
        return norm(outputs.get(where.partition(".")[2]))

    def _between(self, road: tuple[int, ...]) -> End | None:
        """Return the end between a call that gets no gradient and the next one, which gets one."""
        last = road[-1]
        for place in road[-2:-1]:
            for cell in self._step.ancestors(place):
                if self._step.arrives(cell) and self._gives_zeros(cell):
                    return End(cell, say("health.bprop", name=self._flow.names[cell]), True)
        if self._gives_zeros(last) and (said := self._zeros(last)):
            return End(last, said, False)
        if len(road) > 1 and not self._gives_zeros(last):
            names = {"last": self._flow.names[road[-2]], "next": self._flow.names[last]}
            return End(road[-2], say("health.ends_between", **names), True)
        return None

    def _backward(self, place: int) -> Any:
        backward = self._flow.backward_of(place)
        return self._step.entry(backward) if backward is not None else {}

    def _gives_zeros(self, place: int) -> bool:
        """Return whether one of the gradients that a call gives is zeros."""
        outputs = [item for _, item in leaves(self._backward(place).get("output"))]
        return any(is_zero([record]) for record in outputs)

    def _zeros(self, place: int) -> Sentence | None:
        """Return why the backward of a call gives zeros of a gradient that is none."""
        name = self._flow.names[place]
        for link in self._flow.links[place]:
            high = real(link.record.get("Max"))
            if "relu" in self._flow.parts[place].api.lower() and high is not None and high <= 0:
                return say("health.dead", name=name)
            if is_zero([link.record]) and len(self._flow.links[place]) > 1:
                return say("health.other_zero", name=name, place=link.place)
        return say("health.zero_backward", name=name)

    def _left(self, road: tuple[int, ...]) -> End | None:
        """Return the end at a call whose output no recorded call uses: it has left MindSpore, as by asnumpy."""
        last = road[-1]
        if last in self._step.losses:
            return None
        for place, parts, _ in self._step.forwards():
            if place > last and parts.kind != CELL and self._step.arrives(place):
                links = [link for link in self._flow.links[place] if link.producer < 0 and link.parameter is None]
                given = [link.record for link in links if _is_float(link.record)]
                if any(record.get("Max") != record.get("Min") for record in given):
                    names = {"last": self._flow.names[last], "next": self._flow.names[place]}
                    return End(last, say("health.left", **names), True)
        return End(last, say("health.unused_output", name=self._flow.names[last]), False)
