# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The answer of ``probe find``: the cause, the evidence, what was excluded, what could not be looked at, what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.search.advice import Advice
from probe.search.cause import GUESS, SAID_OF_STRENGTH, STRENGTHS, Cause

#: lines of a list that are shown
_MOST = 5
#: sentences that say "cannot be known" themselves
_SAY_SO = ("find.golden_partly", "report.unsure", "report.unsure_of_two")
#: the kind of an answer -> its first line
FIRST_LINE = {
    "cause": "find.is_cause",
    "guess": "find.is_guess",
    "symptom": "find.is_symptom",
    "unknown": "find.is_unknown",
    "nothing": "find.is_nothing",
}


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence.

    Attributes:
        strength: one of ``STRENGTHS``.
        said: what was seen.
    """

    strength: str
    said: Sentence


@dataclass(frozen=True)
class Diagnosis:
    """The answer.

    Attributes:
        status: the exit status: 0 nothing found, 1 something found, 2 it cannot be known.
        said: the cause or the symptom in one sentence, or how much was looked at.
        cause: the thing that can be changed; None for a symptom alone, and for nothing.
        symptom: the symptom, where the program was run; NOTHING where it has none.
        evidence: the evidence for the cause.
        excluded: what experiments have excluded.
        gaps: the parts that cannot be known.
        unseen: what else could not be looked at.
        others: how many further findings there are.
        remarks: what is no cause, as other steps of the training contradict it.
        looked: where no cause is found, what looked for it; NOTHING else.
        advice: the next thing to do; None where there is none.
    """

    status: int
    said: Sentence
    cause: Cause | None = None
    symptom: Sentence = NOTHING
    evidence: Sequence[Evidence] = ()
    excluded: Sequence[Sentence] = ()
    gaps: Sequence[Sentence] = ()
    unseen: Sequence[Sentence] = ()
    others: int = 0
    remarks: Sequence[Sentence] = ()
    advice: Advice | None = None
    looked: Sentence = NOTHING

    @property
    def kind(self) -> str:
        """The kind of the answer: "cause", "guess", "symptom", "unknown" or "nothing"."""
        if self.cause is not None:
            return "guess" if self.cause.strength == GUESS else "cause"
        return ("nothing", "symptom", "unknown")[self.status]

    @property
    def first_line(self) -> Sentence:
        """The first line of the answer; a sentence that says by itself that it cannot be known stays as it is."""
        if self.kind == "unknown" and self.said.key in _SAY_SO:
            return self.said
        return say(FIRST_LINE[self.kind], said=self.said)

    @property
    def ordered(self) -> list[Evidence]:
        """The evidence, the strongest first."""
        return sorted(self.evidence, key=lambda item: STRENGTHS.index(item.strength))

    def lines(self) -> Iterator[Sentence]:
        """Yield the lines for a terminal."""
        if self.symptom and self.cause is not None:
            yield say("find.symptom", said=self.symptom)
        yield self.first_line
        if self.cause is not None and self.cause.file:
            yield code_of(self.cause, self.cause.file)
        yield from self.reasons()
        if self.advice is not None:
            yield say("find.command", command=self.advice.command)

    def reasons(self) -> Iterator[Sentence]:
        """Yield the evidence, what is excluded, what could not be looked at, remarks, and the next thing to do."""
        for item in self.ordered:
            strength = say(SAID_OF_STRENGTH[item.strength])
            yield say("find.evidence", strength=strength, said=item.said)
        if self.looked:
            yield self.looked
        for said in self.excluded[:_MOST]:
            yield say("find.excluded", said=said)
        yield from self.gaps[:_MOST]
        for said in self.unseen[:_MOST]:
            yield say("find.unseen", said=said)
        for said in self.remarks[:_MOST]:
            yield say("find.remark", said=said)
        if self.others:
            yield say("find.others", count=self.others)
        if self.advice is not None:
            yield say("find.next", said=self.advice.said)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as values of JSON."""
        advice = self.advice
        return {
            "status": self.status,
            "answer": self.kind,
            "sentence": str(self.said),
            **self.said.to_dict(),
            "cause": self.cause.to_dict() if self.cause is not None else None,
            "symptom": sentence_dict(self.symptom) if self.symptom else None,
            "evidence": [
                {"strength": item.strength, **sentence_dict(item.said)} for item in self.ordered
            ],
            "excluded": [sentence_dict(said) for said in self.excluded],
            "unseen": [sentence_dict(said) for said in (*self.gaps, *self.unseen)],
            "remarks": [sentence_dict(said) for said in self.remarks],
            "others": self.others,
            "looked": sentence_dict(self.looked) if self.looked else None,
            "next": None
            if advice is None
            else {"command": advice.command, **sentence_dict(advice.said)},
        }


def code_of(cause: Cause, file: str) -> Sentence:
    """Return the line of code of a cause, in a file as it is told; that of the golden program says so."""
    key = "find.code_golden" if cause.is_golden else "find.code"
    return say(key, file=file, line=cause.line, source=cause.source or "")


def sentence_dict(said: Sentence) -> dict[str, Any]:
    """Return a sentence as values of JSON: in English, its key and its facts."""
    return {"sentence": str(said), **(said or NOTHING).to_dict()}
