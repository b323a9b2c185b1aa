# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The page of a search: the experiments from the symptom to the cause, in both languages, in Chromium."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probe.findings.sentence import say
from probe.reading.report.report import Wishes, make_report
from probe.reading.report.told_search import ToldExperiment, ToldSearch
from tests.reading.builders import forward, tensor, write
from tests.search.programs import NAN
from tests.search.running import find
from tests.support.browser import Browser, find_browser
from tests.support.paths import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not find_browser(), reason="no chromium here; `make report-test` installs it"
    ),
]
AXE = os.environ.get("PROBE_AXE", str(ROOT / ".axe" / "package" / "axe.min.js"))
TEXT = "document.getElementById('search').textContent"
BREAK = "Functional." + "very_long_name_" * 20
SEARCH = ToldSearch(
    [
        ToldExperiment("watch", say("find.ask_watch"), say("find.no_symptom"), 3.21, "good"),
        ToldExperiment("repeat", say("find.ask_repeat"), say("find.last_bits"), 2.0, "bad"),
        ToldExperiment(
            "replay", say("find.ask_replay"), say("find.replay_unknown", name=BREAK), 1.0
        ),
    ],
    say("find.is_cause", said=say("find.gradient_wrong", name="<b>f</b>", times=2.0)),
    say("find.code", file="net.py", line=5, source="return (dout * x,)"),
    [say("find.excluded", said=say("find.no_chance"))],
    "bad",
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a page with a search of three experiments."""
    folder = tmp_path_factory.mktemp("page")
    entries = {"Functional.relu.0.forward": forward([tensor()], [tensor()])}
    write(folder / "run" / "step0" / "rank", entries)
    make_report(folder / "report.html", str(folder / "run"), "", Wishes(search=SEARCH))
    return folder / "report.html"


@pytest.fixture(autouse=True)
def as_before(browser):
    """Leave the window as it was."""
    yield
    browser.dark(False)
    browser.size(1280, 900)


def in_chinese(browser):
    browser.js(
        "[...document.querySelectorAll('button')].find((button) => button.lang === 'zh').click()"
    )


def test_the_experiments_stand_in_their_order_before_the_answer(browser, page):
    browser.open(page)
    heads = browser.js("[...document.querySelectorAll('#search li h3')].map((h) => h.textContent)")
    assert heads == ["1 watch 3.2 s", "2 repeat 2 s", "3 replay 1 s", "The answer"]
    text = browser.js(TEXT)
    assert "cause: <b>f</b> is not the derivative of its forward" in text
    assert "net.py:5: return (dout * x,)" in text
    assert not browser.errors


def test_the_experiments_are_there_in_chinese(browser, page):
    browser.open(page)
    in_chinese(browser)
    text = browser.js(TEXT)
    assert "从症状到原因" in text
    assert "程序能否重复出相同的比特" in text
    assert "does" not in text


@pytest.mark.parametrize("width", [390, 640])
def test_the_experiments_fit_a_narrow_window(browser, page, width):
    browser.open(page)
    browser.size(width, 800)
    assert browser.js("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_no_violation_in_the_experiments(browser, page, is_dark):
    if not os.path.exists(AXE):
        pytest.skip(f"{AXE} is not there; `make report-test` gets axe-core")
    browser.dark(is_dark)
    browser.open(page)
    browser.js(Path(AXE).read_text() + "; 0")
    found = browser.js("axe.run().then((result) => result.violations.map((item) => item.id))")
    assert found == []


def test_a_search_writes_its_page_without_folders_of_the_machine(browser, tmp_path):
    _, lines = find(tmp_path, "mine.py", mine=NAN)
    page = Path(lines[-1]["page"])
    browser.open(page)
    text = browser.js(TEXT)
    assert "x = ops.log(x)" in text
    assert "the logarithm of a negative number" in text
    assert str(tmp_path) not in text
