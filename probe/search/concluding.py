# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The answer of a search: what the experiments prove, what they exclude, and what nobody has looked at."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import foreign
from probe.reading.dumps.entry_name import parse
from probe.reading.one_run.health.rows import alarms_of, read_rows
from probe.search.advice import Advice, advice
from probe.search.answer import Diagnosis, Evidence
from probe.search.cause import BITS, COMPARED, EXPERIMENT, GUESS, NONFINITE, REPLAYED, RULE, Cause
from probe.search.disk_answer import diagnosis_of, doubts, evidence_of
from probe.search.float32 import FLOAT32
from probe.search.graft import GRAFT
from probe.search.kernel_replay import REPLAY
from probe.search.lab import Lab
from probe.search.ledger import Result
from probe.search.new_lines import NEW_LINES, guessed
from probe.search.new_numbers import NEW_NUMBERS, guessed_number
from probe.search.new_values import NEW_VALUES, guessed_value
from probe.search.on_disk import DiskLook, by_chance
from probe.search.own_backward import GRADIENTS, wrong_backward
from probe.search.recordings import (
    RECORD,
    RECORD_GOLDEN,
    final_look,
    golden_dump,
    look_alone,
)
from probe.search.repeating import REPEAT, chance
from probe.search.searching import Search
from probe.search.table import EXPERIMENTS
from probe.search.watching import (
    CUT,
    LOST,
    OFFSET,
    SICK,
    SYMPTOM,
    WATCH,
    WATCH_GOLDEN,
    WATCH_RESUMED,
    is_offset,
    watched,
    watched_name,
    watched_rows,
)
from probe.search.wishes import Wishes
from probe.series.file import RankSeries

#: an experiment and its outcome -> what it excludes
_EXCLUDES = {
    (WATCH, "quiet"): "find.no_symptom",
    (WATCH_GOLDEN, "agrees"): "find.no_difference",
    (RECORD_GOLDEN, "no_cause"): "find.no_difference",
    (REPEAT, "repeats"): "find.no_chance",
    (REPLAY, "right"): "find.no_kernel",
    (GRAFT, "stays"): "find.no_graft",
    (FLOAT32, "stays"): "find.no_float32",
    (GRADIENTS, "right"): "find.no_gradient",
}
#: MindSpore's error of a program that trains on several ranks, and was started alone, names its launcher
_LAUNCHER = "msrun"
#: the ranks of the command that is then told
_RANKS = 2
#: outcomes that leave something unseen
_UNSEEN = (CUT, LOST, "failed", "nothing", "unknown")
#: remarks about steps whose update a loss scaler has skipped
_SKIPS = ("health.skipped", "rows.skipped", "rows.skipped_several")
#: the commands whose rules look at each record
_READERS = ("probe nan", "probe check", "probe watch", "probe trend")
_NO_STEPS = ((WATCH_GOLDEN, "no_steps"), (WATCH_RESUMED, "no_steps"))
#: an experiment and its outcome -> how strong what it has taught is
_SPEAKS = {
    (GRAFT, "goes"): EXPERIMENT,
    (FLOAT32, "goes"): EXPERIMENT,
    (REPLAY, "wrong"): RULE,
    (REPEAT, "varies"): RULE,
    (WATCH, OFFSET): GUESS,
    (WATCH_RESUMED, OFFSET): GUESS,
}


def concluded(search: Search) -> Diagnosis:
    """Return the answer of a search that has ended."""
    lab = search.lab
    seen = final_look(lab)
    results = lab.ledger.results
    first = results.get(WATCH)
    if seen is None:
        return _without_record(search, first)
    path = lab.place(RECORD, "dump")
    doubt = chance(lab)
    if doubt:
        seen = by_chance(seen, look_alone(lab), doubt)
    seen = replace(
        seen,
        circumstances=[line for line in seen.circumstances if not is_given(line, search.wishes)],
    )
    found = diagnosis_of(seen, path, golden_dump(lab))
    named = _judged(seen.cause, results) or wrong_backward(results.get(GRADIENTS))
    cause = named
    is_shared = _is_shared(lab, named)
    if named is None and not is_shared and (_symptom(lab) or not doubt):
        cause = _guess(lab, seen)
    status, said = _told(search, found, cause)
    has_skips = _has_skips(seen)
    of_disk = found.evidence[seen.cause is not None :]
    return replace(
        found,
        status=status,
        said=said,
        cause=cause,
        symptom=NOTHING if is_shared else _told_symptom(lab),
        evidence=[
            *_evidence(cause, results, doubt, has_skips),
            *(item for item in of_disk if not _is_of(item, cause)),
        ],
        excluded=list(dict.fromkeys(_excluded(results, doubt, cause, has_skips))),
        gaps=_gaps(found, seen, said),
        unseen=list(_unseen(search, seen, said)),
        remarks=[
            *(said for said in found.remarks if cause is None or said != cause.said),
            *_remarks(results, doubt),
        ],
        advice=_advice(search, seen, cause, path),
        looked=NOTHING if cause is not None else _looked(lab),
    )


def _guess(lab: Lab, seen: DiskLook) -> Cause | None:
    """Return the best guess where no reader names a cause: the user knows of a symptom."""
    setting = lab.look(watched_name(lab)).cause if _symptom(lab) else None
    new_line = guessed(lab.ledger.results.get(NEW_LINES))
    number = guessed_number(lab.ledger.results.get(NEW_NUMBERS))
    value = guessed_value(lab.ledger.results.get(NEW_VALUES))
    return setting or new_line or number or value or next(iter(seen.suspicions), None)


def _symptom(lab: Lab) -> Sentence:
    """Return the symptom that the first experiment has seen; NOTHING where it has seen none."""
    for name in (WATCH_RESUMED, WATCH):
        result = lab.ledger.results.get(name)
        if result is not None and result.outcome in SICK:
            return result.learned
    return NOTHING


def _told_symptom(lab: Lab) -> Sentence:
    """Return the symptom; of an alarm that the golden program has too, with these words."""
    said = _symptom(lab)
    if not said or watched(lab, "alarm") is None or watched(lab, "nonfinite") is not None:
        return said
    if WATCH_GOLDEN not in lab.ledger.results:
        return said
    own = _first_alarms(watched_rows(lab))
    golden = _first_alarms(read_rows(lab.place(WATCH_GOLDEN, "dump")).ranks)
    return say("find.golden_too", said=said) if own and own <= golden else said


def _first_alarms(ranks: Sequence[RankSeries]) -> set[tuple[str, str, int]]:
    """Return rule, series and step of the alarms of the first step that has any."""
    alarms = [
        (item.rule, item.name, item.step)
        for item in alarms_of(ranks)
        if item.step is not None and not is_offset(item)
    ]
    first = min((step for _, _, step in alarms), default=None)
    return {alarm for alarm in alarms if alarm[2] == first}


def _is_shared(lab: Lab, cause: Cause | None) -> bool:
    """Return whether the golden program shows the alarm too, with the same numbers, and nobody names a cause.

    NaN/Inf and an error that ends the program are symptoms also where both programs have them.
    """
    is_equal = all(
        result.outcome in ("agrees", "no_cause")
        for name, result in lab.ledger.results.items()
        if name in (WATCH_GOLDEN, RECORD_GOLDEN)
    )
    first = lab.ledger.results.get(watched_name(lab))
    has_alarm = (
        first is not None and first.outcome == SYMPTOM
    )  # an error that both have is no alarm
    is_alarm = has_alarm and watched(lab, "nonfinite") is None
    return is_alarm and cause is None and is_equal and WATCH_GOLDEN in lab.ledger.results


def _told(search: Search, found: Diagnosis, cause: Cause | None) -> tuple[int, Sentence]:
    """Return the exit status, and the first line."""
    if found.cause is not None:
        return found.status, found.said
    symptom = _symptom(search.lab)
    if _is_shared(search.lab, cause):
        return (2 if _lacks_time(search) else 0), say("find.golden_shows", said=symptom)
    if cause is not None or symptom:
        return 1, symptom if cause is None else cause.said
    step = _apart_when_watched(search.lab.ledger.results)
    if step is not None and found.status == 0:
        return 2, say("find.apart_when_watched", step=step)
    rows = search.lab.ledger.results.get(WATCH_GOLDEN)
    if rows is not None and rows.outcome == "unknown" and found.status == 0:
        return 2, rows.learned  # one of the two has steps that nobody could compare
    return (2 if _lacks_time(search) else found.status), found.said


def _lacks_time(search: Search) -> bool:
    """Return whether an experiment was left out, or the first one was ended before the end of the program."""
    result = search.lab.ledger.results.get(watched_name(search.lab))
    return bool(search.left_out) or (result is not None and result.outcome == CUT)


def _is_of(item: Evidence, cause: Cause | None) -> bool:
    """Return whether a piece of evidence only tells the cause once more."""
    return cause is not None and item.said.facts.get("said") == cause.said


def is_given(line: Sentence, wishes: Wishes) -> bool:
    """Return whether a circumstance is only that two programs were given: their commands, or their own files."""
    subject = line.facts.get("subject")
    said = line.facts.get("said")
    if isinstance(subject, Sentence) and subject.key == "check.command":
        return True
    if wishes.golden is None or not isinstance(said, Sentence) or said.key != "check.files":
        return False
    names = said.facts["names"]
    programs = {os.path.basename(program.path) for program in (wishes.training, wishes.golden)}
    return isinstance(names, list) and programs.issuperset(map(os.path.basename, names))


def _without_record(search: Search, first: Result | None) -> Diagnosis:
    """Return the answer of a search that has no recorded step."""
    said = first.learned if first is not None else say("find.no_time")
    unseen = list(_unseen(search, None, said))
    advised = _more_time(search) if search.left_out else _by_itself(search)
    return Diagnosis(1 if _symptom(search.lab) else 2, said, unseen=unseen, advice=advised)


def _by_itself(search: Search) -> Advice:
    """Return that the program is to be started by itself, or on several ranks where MindSpore asks for that."""
    wishes = search.wishes
    if _LAUNCHER in search.lab.ledger.fact(WATCH, "words", "") and wishes.ranks == 1:
        command = replace(wishes, ranks=_RANKS).command(wishes.minutes)
        return Advice(say("find.do_with_ranks"), command)
    command = shlex.join(["python", *search.wishes.training.words])
    return Advice(say("find.do_alone"), command)


def _judged(cause: Cause | None, results: dict[str, Result]) -> Cause | None:
    """Return the cause with the strength that the experiments leave it.

    Equal bits prove nothing of a program that does not repeat its own.
    """
    if cause is None:
        return None
    if cause.strength == BITS and not _repeats(results.get(REPEAT)):
        cause = replace(cause, strength=RULE)
    graft = results.get(GRAFT)
    is_grafted = graft is not None and graft.outcome == "goes"
    if (is_grafted and cause.strength == BITS) or _is_widened(cause, results.get(FLOAT32)):
        return replace(cause, strength=EXPERIMENT)
    return cause


def _repeats(repeat: Result | None) -> bool:
    """Return whether the program has repeated its bits, up to the cause at least."""
    if repeat is None:
        return False
    is_later = repeat.outcome == "varies" and repeat.facts.get("is_later", False)
    return repeat.outcome == "repeats" or is_later


def _is_widened(cause: Cause, result: Result | None) -> bool:
    """Return whether one Cell in float32 makes NaN/Inf go, and it is the Cell of the cause."""
    if result is None or result.outcome != "goes" or cause.reader != "nan" or not cause.cell:
        return False
    path = parse(f"Cell.{cause.cell}.forward.0").path
    return list(result.facts["names"]) == [path]


def _evidence(
    cause: Cause | None, results: dict[str, Result], doubt: Sentence, has_skips: bool
) -> Iterator[Evidence]:
    """Yield the evidence of the readers, and of the experiments that speak for a cause, or against any."""
    if cause is not None:
        evidence = evidence_of(replace(cause, strength=_of_reader(cause)))
        if cause.reader == NONFINITE and has_skips:
            evidence = replace(evidence, said=say("find.by_nan_behind_skips"))
        yield evidence
        alone = results.get(RECORD)
        if cause.reader == COMPARED and alone is not None and alone.outcome == "cause":
            yield Evidence(RULE, alone.learned)
    for result in results.values():
        strength = _SPEAKS.get((result.name, result.outcome))
        if strength is not None and (result.name != REPEAT or doubt):
            yield Evidence(strength, result.learned)


def _of_reader(cause: Cause) -> str:
    """Return how strong the word of the reader alone is: an experiment speaks for itself."""
    if cause.strength != EXPERIMENT:
        return cause.strength
    return BITS if cause.reader == COMPARED else RULE


def _has_skips(seen: DiskLook) -> bool:
    """Return whether a remark tells of NaN/Inf in a step whose update a loss scaler has skipped."""
    return any(said.key in _SKIPS for said in seen.remarks)


def _excluded(
    results: dict[str, Result], doubt: Sentence, cause: Cause | None, has_skips: bool
) -> Iterator[Sentence]:
    is_apart = cause is not None and cause.reader == COMPARED
    for result in results.values():
        key = _EXCLUDES.get((result.name, result.outcome))
        is_doubted = result.name == REPEAT and bool(doubt)
        is_unlike = result.name == RECORD_GOLDEN and _apart_when_watched(results) is not None
        is_partly = _outcome(results, WATCH_GOLDEN) == "unknown"
        # the rows of two runs may agree within the tolerance, and their calls differ
        is_contradicted = key == "find.no_difference" and (is_apart or is_partly)
        if key is None or is_doubted or is_unlike or is_contradicted:
            continue
        if key == "find.no_symptom" and has_skips:
            key = "find.no_symptom_but_skips"
        further = result.facts.get("further", 0)
        yield say("find.no_graft_of_line", count=further) if further else say(key)


def _apart_when_watched(results: dict[str, Result]) -> int | None:
    """Return the step in which the watched runs differ, where the recorded ones do not; None for none."""
    golden = results.get(RECORD_GOLDEN)
    rows = results.get(WATCH_GOLDEN)
    if golden is None or rows is None or golden.outcome != "no_cause":
        return None
    step = rows.facts.get("step")
    return None if step is None else int(step)


def _remarks(results: dict[str, Result], doubt: Sentence) -> Iterator[Sentence]:
    """Yield that the program ended with an error, or has one step; and that it differs from itself elsewhere."""
    first = results.get(WATCH)
    if first is not None and first.facts.get("count") == 1 and first.facts.get("status") == 0:
        yield say("find.one_step")
    if first is not None and first.outcome == SYMPTOM and first.facts.get("status"):
        said = foreign(first.facts["words"])
        yield say("find.watch_fails", count=first.facts["count"], said=said)
    repeat = results.get(REPEAT)
    if repeat is not None and repeat.outcome == "varies" and not doubt:
        yield repeat.learned


def _gaps(found: Diagnosis, seen: DiskLook, said: Sentence) -> Sequence[Sentence]:
    """Return the parts that cannot be known, but that which the first line tells."""
    gaps = list(seen.gaps)
    if said.key == "report.unsure" and said.facts["gap"] in gaps:
        gaps.remove(said.facts["gap"])
    return [*doubts(seen, said), *gaps]


def _unseen(search: Search, seen: DiskLook | None, said: Sentence) -> Iterator[Sentence]:
    """Yield what nobody has looked at; ``said`` is the first line."""
    is_told = said.key == "find.apart_when_watched"
    minutes = search.wishes.minutes
    for name in search.left_out:
        yield say("find.left_out", asks=say(EXPERIMENTS[name].asks), minutes=minutes)
    if seen is not None:
        yield from seen.untold
    for result in search.lab.ledger.results.values():
        is_unseen = result.outcome in _UNSEEN or (result.name, result.outcome) in _NO_STEPS
        if is_unseen and result.learned != said:
            yield result.learned
    step = _apart_when_watched(search.lab.ledger.results)
    if step is not None and not is_told:
        yield say("find.apart_when_watched", step=step)
    if search.wishes.ranks > 1:
        yield say("find.ranks_unseen")
    if search.wishes.seed is not None:
        yield say("find.seed_unseen", seed=search.wishes.seed)
    touched = [os.path.relpath(path) for path in dict.fromkeys(search.lab.touched)]
    if touched:
        yield say("find.touched", files=touched[:3], count=len(touched))


def _advice(search: Search, seen: DiskLook, cause: Cause | None, path: str) -> Advice:
    """Return the next thing to do."""
    if _outcome_of(search, REPEAT) == "varies" and seen.doubt and seen.cause is None:
        return advice(seen, path, search.lab.place(REPEAT, "dump"))
    if seen.cause is not None or seen.doubt:
        return advice(seen, path, golden_dump(search.lab))
    if cause is not None and cause.reader == REPLAYED:
        words = ["probe", "replay", search.lab.place(GRADIENTS, "dump"), cause.name, "--gradients"]
        return Advice(say("find.do_own_backward"), shlex.join(words))
    return _of_search(search, cause) or advice(seen, path, golden_dump(search.lab))


def _of_search(search: Search, cause: Cause | None) -> Advice | None:
    """Return a further search that helps; None where a look at the recorded steps does."""
    if cause is None and _lacks_time(search):
        return _more_time(search)
    if cause is None and _outcome_of(search, WATCH_GOLDEN) == "agrees":
        return _another_golden(search)
    if search.wishes.has_golden:
        return None
    words = ["probe", "find", "--golden", "GOLDEN", *search.wishes.training.words]
    return Advice(say("find.do_golden"), shlex.join(words))


def _another_golden(search: Search) -> Advice:
    """Return what helps where the golden program does the same in all steps."""
    wishes = search.wishes
    key = "find.do_other_golden" if _symptom(search.lab) else "find.do_elsewhere"
    golden = "GOLDEN" if _symptom(search.lab) else str(wishes.golden)
    words = ["probe", "find", "--golden", golden, *wishes.training.words]
    return Advice(say(key), shlex.join(words))


def _outcome_of(search: Search, name: str) -> str:
    return _outcome(search.lab.ledger.results, name)


def _outcome(results: dict[str, Result], name: str) -> str:
    result = results.get(name)
    return "" if result is None else result.outcome


def _looked(lab: Lab) -> Sentence:
    """Return which experiments and commands have looked for a cause."""
    commands = [*_READERS, *(["probe compare"] if golden_dump(lab) else [])]
    return say("find.looked", experiments=[*lab.ledger.results], commands=commands)


def _more_time(search: Search) -> Advice:
    wishes = search.wishes
    return Advice(say("find.do_minutes"), wishes.command(2 * wishes.minutes))
