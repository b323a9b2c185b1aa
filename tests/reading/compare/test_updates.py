# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A fault behind the backward is named by its number, parameter or call; a harmless change blames nobody."""

from __future__ import annotations

import pytest

from probe.__main__ import main
from probe.reading.report.report import make_content
from tests.programs.optimizers.planted import FAULTS, HARMLESS, KINDS, Bench, is_named, said
from tests.support.thorough import thorough_but

pytestmark = pytest.mark.medium

CASES = [
    (kind, change)
    for kind in KINDS
    for change in FAULTS
    if not FAULTS[change].kinds or kind in FAULTS[change].kinds
]
#: a number, a parameter, a call and a state; `make thorough` plants all
SOME = ("learning rate", "parameter missing", "clip missing", "averaged twice", "states reset")
OFTEN = [("AdamW", change) for change in SOME]
HARMLESS_CASES = [(kind, change) for kind in KINDS for change in HARMLESS]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def bench_with_states(tmp_path_factory):
    return Bench(tmp_path_factory.mktemp("states"), states=True)


@pytest.mark.parametrize(
    ("kind", "change"),
    thorough_but([*OFTEN, ("Momentum", "momentum"), ("Adam", "decay on a bias")], CASES),
)
def test_a_fault_is_named_from_statistics(bench, kind, change):
    comparison = bench.compare(kind, FAULTS[change].variant, change)
    assert is_named(FAULTS[change], comparison), said(comparison)
    assert comparison.status == 1


@pytest.mark.parametrize(
    ("kind", "change"),
    thorough_but(
        [("AdamW", "batch divided"), ("AdamW", "parameters in another order")], HARMLESS_CASES
    ),
)
def test_a_harmless_change_blames_nobody(bench, kind, change):
    comparison = bench.compare(kind, HARMLESS[change], change)
    assert comparison.agrees, said(comparison)
    assert comparison.status == 0


@pytest.mark.parametrize("kind", thorough_but(["AdamW"], list(KINDS)))
def test_states_tell_in_which_step_they_were_reset(bench_with_states, kind):
    comparison = bench_with_states.compare(kind, "long", "states reset")
    assert comparison.first.step == 2
    assert "before the update in step 2" in comparison.first.sentence
    assert comparison.first.name.startswith("Cell.optimizer.")


def test_the_line_of_the_call_between_is_that_of_the_origin(bench):
    first = bench.compare("AdamW", "plain", "clip missing").first
    assert "clip_by_global_norm" in first.source
    assert first.why == "a call between gradients and optimizer that one side lacks"


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_a_change_that_no_entry_shows_is_said_at_the_update(tmp_path, level):
    comparison = Bench(tmp_path, level).compare("AdamW", "no clip", "unscale missing")
    first = comparison.first
    assert first.kind == "optimizer"
    assert ("level mix records" in first.sentence) == (level == "L0")
    assert ("only A has" in first.sentence) == (level == "L1")


def test_show_tells_the_numbers_of_an_update(bench, capsys):
    assert main(["show", str(bench.record("AdamW", "decay groups"))]) == 0
    printed = capsys.readouterr().out
    assert "Cell.optimizer.AdamW.forward.0: 4 parameters, global norm 0.05" in printed
    assert "group 2: 2 parameters, weight_decay 0" in printed


def test_trend_has_learning_rate_and_global_norm(bench, capsys):
    main(["trend", str(bench.record("AdamW", "schedule")), "--csv"])
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    found = {
        row[0].rpartition(".")[2]: [float(other[3]) for other in rows[1:] if other[0] == row[0]]
        for row in rows[1:]
    }
    assert found["learning_rate"] == pytest.approx([0.01, 0.008])
    assert found["global_norm"] == pytest.approx([0.05, 0.05])
    main(["trend", str(bench.record("AdamW", "schedule")), "--like", "learning_rate"])
    assert "fc1" not in capsys.readouterr().out


def test_the_report_has_lines_of_the_optimizer(bench):
    golden, mine = (str(bench.record("AdamW", "plain", change)) for change in ("", "learning rate"))
    series = make_content(mine, golden).description["series"]
    rates = [[value for _, value in series["learning_rate"][side]["-"]] for side in "ab"]
    assert rates == [pytest.approx([0.01, 0.01]), pytest.approx([0.02, 0.02])]
    assert [value for _, value in series["global_norm"]["b"]["-"]] == pytest.approx([0.05, 0.05])
