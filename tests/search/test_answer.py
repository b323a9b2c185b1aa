# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The lines of an answer: each thing once, and no advice that cannot be followed."""

from __future__ import annotations

import pytest

from probe.findings.sentence import NOTHING, say
from probe.reading.report.report import Wishes as PageWishes, make_content
from probe.reading.report.told_search import ToldSearch
from probe.search.answer import Diagnosis
from probe.search.cause import COMPARED, Cause
from probe.search.disk_answer import diagnosis_of
from probe.search.on_disk import DiskLook, of_program
from tests.reading.one_run.test_health import Training
from tests.reading.report.rows import write_rows

LOOKED = say("looked.step", steps="0")
OUTSIDE = say("gap.outside", names=["target.weight"], kinds=["Dense"])
ROWS = say("gap.rows", rows=2, least=5)


def unsure(*gaps):
    return DiskLook(2, say("report.unsure", gap=gaps[0], looked=LOOKED), gaps=gaps, looked=LOOKED)


def lines(diagnosis):
    return [str(line) for line in diagnosis.lines()]


def test_a_net_that_no_optimizer_holds_is_no_gap_of_a_program():
    seen = of_program(unsure(OUTSIDE))
    assert (seen.status, seen.said.key, seen.gaps) == (0, "report.nothing", [])
    assert "target.weight" in str(seen.untold[0])
    assert "start()" not in str(seen.untold[0])


@pytest.mark.parametrize("gaps", [(OUTSIDE, ROWS), (ROWS, OUTSIDE)], ids=["first", "last"])
def test_another_gap_stays_one(gaps):
    seen = of_program(unsure(*gaps))
    assert (seen.status, seen.said.facts["gap"], seen.gaps) == (2, ROWS, [ROWS])
    assert of_program(unsure(ROWS)).gaps == (ROWS,)


def test_a_cause_stays_beside_such_a_net():
    seen = DiskLook(1, say("find.no_time"), gaps=(OUTSIDE,), looked=LOOKED)
    assert (of_program(seen).status, of_program(seen).gaps) == (1, [])


def test_a_gap_is_told_without_doubled_words(tmp_path):
    told = lines(diagnosis_of(unsure(ROWS), str(write_rows(tmp_path))))
    assert all(line.count("cannot be known") <= 1 for line in told)
    assert told[0].startswith("cannot be known: most rules")


def test_other_answers_say_that_nothing_can_be_known():
    found = Diagnosis(2, say("find.no_time"))
    assert lines(found) == ["cannot be known: the budget had no time for an experiment"]


def test_a_gap_stands_by_itself_and_other_parts_were_not_looked_at():
    found = Diagnosis(1, say("find.no_time"), gaps=[ROWS], unseen=[say("find.ranks_unseen")])
    assert lines(found)[1].startswith("cannot be known: most rules need")
    assert lines(found)[2].startswith("not looked at: golden outputs")
    assert len(found.to_dict()["unseen"]) == 2


@pytest.mark.parametrize("is_search", [True, False])
def test_the_page_of_a_search_has_no_advice_about_start(tmp_path, is_search):
    training = Training()
    training.lines = [{"outside": "Dense", "parameters": ["target.weight"]}]
    told = ToldSearch([], say("find.no_time"), NOTHING, [], "good") if is_search else None
    content = make_content(training.write(tmp_path), wishes=PageWishes(search=told))
    assert ("start()" in str(content.head.said)) is not is_search
    assert content.head.status == (0 if is_search else 2)


def test_the_line_of_the_golden_program_says_so():
    where = {"name": "f", "file": "good.py", "line": 3, "source": "x = f(x)"}
    cause = Cause(say("find.no_time"), COMPARED, "calls", is_golden=True, **where)
    assert lines(Diagnosis(1, cause.said, cause))[1] == (
        "    in the golden program, good.py:3: x = f(x)"
    )


def test_an_answer_without_a_cause_names_what_has_looked():
    looked = say("find.looked", experiments=["watch", "record"], commands=["probe check"])
    told = lines(Diagnosis(0, say("find.no_time"), looked=looked))
    assert told[1] == "looked at by the experiments watch, record and the rules of probe check"
