# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs that do not repeat their bits, beside a golden one: a difference that may be chance is no cause."""

from __future__ import annotations

import pytest

from probe.search.cause import BITS, EXPERIMENT
from tests.search.programs import by_chance
from tests.search.running import find, outcomes

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.proof]

SEEDED = "find.do_repeat_random"


def test_a_healthy_program_with_dropout_beside_its_own_copy_has_no_cause(tmp_path):
    text = by_chance()
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=text, good=text)
    answer = lines[-1]
    assert (done.returncode, answer["answer"], answer["cause"]) == (2, "unknown", None)
    assert "ropout" in answer["sentence"]
    assert "repeat its own bits" in answer["sentence"]
    assert "find.no_chance" not in [item["key"] for item in answer["excluded"]]
    assert answer["next"]["key"] == SEEDED
    assert "docs/repeatable.md" in answer["next"]["sentence"]
    names = [line["experiment"] for line in lines[:-1]]
    assert names.count("watch") == 1  # another seed would not help


def test_a_fault_before_the_first_chance_is_named_and_the_chance_is_a_remark(tmp_path):
    good = by_chance("x = x * 1.0")
    mine = by_chance("x = x * 1.5")
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=good)
    answer = lines[-1]
    assert (done.returncode, answer["cause"]["source"]) == (1, "x = x * 1.5")
    assert answer["cause"]["strength"] in (BITS, EXPERIMENT)
    assert "find.no_graft" not in [item["key"] for item in answer["excluded"]]


def test_a_fault_behind_the_first_chance_never_proves_another_cause(tmp_path):
    last = "x = x * FACTOR if self.step >= 2 else x"
    good = by_chance(behind=last.replace("FACTOR", "1.0"))
    mine = by_chance(behind=last.replace("FACTOR", "1.5"))
    _, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=good)
    assert outcomes(lines)["record_golden"] == "cause"
    assert (lines[-1]["answer"], lines[-1]["cause"]) == ("unknown", None)


def test_nan_beside_chance_is_named_by_the_run_alone(tmp_path):
    mine = by_chance(behind="x = ops.log(x) if self.step >= 2 else x")
    done, lines = find(tmp_path, "--golden", "good.py", "mine.py", mine=mine, good=by_chance())
    answer = lines[-1]
    assert (done.returncode, answer["cause"]["reader"]) == (1, "nan")
    assert "ops.log(x)" in answer["cause"]["source"]
    assert "find.is_unknown" in [item["key"] for item in answer["unseen"]]
