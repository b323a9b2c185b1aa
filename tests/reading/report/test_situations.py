# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The headline of the page and the exit status agree in each situation; every view can be read, wide and narrow."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from pathlib import Path

import pytest

from probe.__main__ import main
from probe.reading.report.headline import TONES
from tests.reading.report.rows import broken, write_rows
from tests.reading.report.runs import FAULT, columns, faulty
from tests.reading.report.situations import SITUATIONS
from tests.reading.report.test_browser import AXE
from tests.support.browser import Browser, find_browser, has_chinese_font

#: the colours of the three headlines in page.css, light and dark
COLOURS = {
    "light": {"good": "rgb(29, 99, 50)", "bad": "rgb(155, 28, 18)", "unsure": "rgb(122, 74, 0)"},
    "dark": {
        "good": "rgb(143, 214, 164)",
        "bad": "rgb(255, 157, 143)",
        "unsure": "rgb(240, 192, 112)",
    },
}
SIZES = {"wide": (1400, 1000), "narrow": (420, 900)}
HEADLINE = "document.getElementById('headline')"
needs_browser = pytest.mark.skipif(
    not find_browser(), reason="no chromium here; `make browser` installs it"
)
needs_chinese = pytest.mark.skipif(
    not has_chinese_font(), reason="no Chinese font; `make browser` installs one"
)


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return a function that makes the page of a situation once; it returns the page and the exit status."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("situation")
            output = folder / "report.html"
            status = main(
                [
                    "report",
                    *map(str, SITUATIONS[name].make(folder)),
                    "-o",
                    str(output),
                    "--jobs",
                    "1",
                ]
            )
            made[name] = output, status
        return made[name]

    return make


def in_language(browser, language):
    """Show the page in a language."""
    if browser.js("document.documentElement.lang") != language:
        browser.js(
            f"[...document.querySelectorAll('button')].find((button) => button.lang === '{language}').click()"
        )


def overflow(browser, width):
    """Return the elements that are wider than the page of this width, where the page scrolls to the side."""
    browser.js(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )  # plots have the size
    return browser.js(f"""document.documentElement.scrollWidth <= {width} ? []
        : [document.documentElement.scrollWidth, ...[...document.querySelectorAll("*")].map((item) =>
            [item.tagName, item.className, item.scrollWidth]).filter((item) => item[2] > {width})]""")


@pytest.mark.slow
@pytest.mark.parametrize("name", SITUATIONS)
def test_the_headline_and_the_exit_status_agree(page, name):
    output, status = page(name)
    headline = columns(output)["description"]["headline"]
    assert status == SITUATIONS[name].status
    assert headline["tone"] == TONES[status]
    assert SITUATIONS[name].said in headline["text"]


def check_headline(browser, status, theme, language, width):
    """Check that the headline says the exit status to a reader, and that nothing below it contradicts it."""
    text = browser.js(f"{HEADLINE}.innerText")
    tone = browser.js(f"{HEADLINE}.dataset.tone")
    wrong = browser.js("document.querySelectorAll('.card.origin, .card.unsure, #alarms').length")
    assert tone == TONES[status]
    assert (
        browser.js(f"getComputedStyle({HEADLINE}.firstElementChild).borderLeftColor")
        == COLOURS[theme][tone]
    )
    assert browser.js(f"{HEADLINE}.getBoundingClientRect().top") < 420
    assert overflow(browser, width) == []
    assert bool(re.search("[\u4e00-\u9fff]", text)) is (language == "zh"), text
    assert status or not wrong
    assert status or not re.search("cannot be known|无法得知|NaN/Inf", text)


@pytest.mark.slow
@needs_browser
@needs_chinese
@pytest.mark.parametrize("name", SITUATIONS)
def test_each_reader_sees_the_headline_of_the_exit_status(browser, page, name):
    output, status = page(name)
    browser.open(output)
    for language, theme, size in itertools.product(("en", "zh"), COLOURS, SIZES):
        in_language(browser, language)
        browser.dark(theme == "dark")
        browser.size(*SIZES[size])
        check_headline(browser, status, theme, language, SIZES[size][0])
    browser.dark(False)
    assert browser.errors == []


@pytest.mark.slow
@needs_browser
@needs_chinese
@pytest.mark.parametrize("name", SITUATIONS)
def test_no_view_is_wider_than_a_narrow_page(browser, page, name):
    output, _ = page(name)
    browser.size(*SIZES["narrow"])
    browser.open(output)
    count = browser.js("document.querySelectorAll('nav a').length")
    assert count == (2 if "monitor" in name or name == "few rows" else 6)
    wide = {}
    for language, view in itertools.product(("en", "zh"), range(count)):
        in_language(browser, language)
        browser.key(str(view + 1))
        browser.wait(
            f"document.querySelectorAll('nav a')[{view}].getAttribute('aria-current') === 'page'"
        )
        wide[language, view] = overflow(browser, SIZES["narrow"][0])
    assert {view: found for view, found in wide.items() if found} == {}
    assert browser.errors == []


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Return the page of a monitor with an alarm on rank 0, and NaN on rank 1."""
    folder = tmp_path_factory.mktemp("rows")
    assert (
        main(["report", str(write_rows(folder / "run", broken)), "-o", str(folder / "report.html")])
        == 1
    )
    return folder / "report.html"


def plots(browser):
    """Return title -> (scale, number of lines, text) of the plots."""
    listed = browser.js("""[...document.querySelectorAll("figure")].map((item) => [
        item.querySelector("figcaption").textContent, item.querySelector(".lines").dataset.scale,
        Number(item.querySelector(".lines").dataset.lines), item.innerText])""")
    return {title: rest for title, *rest in listed}


@pytest.mark.slow
@needs_browser
def test_a_curve_has_all_ranks_and_a_log_scale_where_it_spans_two_decades(browser, rows):
    browser.size(*SIZES["wide"])
    browser.open(rows)
    browser.wait("[...document.querySelectorAll('.lines')].every((item) => item.dataset.scale)")
    found = plots(browser)
    assert [*found] == [
        "loss",
        "optimizer.global_norm",
        "optimizer.learning_rate",
        "out.weight.grad",
    ]
    assert found["optimizer.global_norm"][:2] == ["log", 2]  # from 201 to 1
    assert found["loss"][:2] == ["log", 2]
    assert found["optimizer.learning_rate"][:2] == ["linear", 2]
    assert "Rank 0" in found["loss"][2] and "Rank 1" in found["loss"][2]


@pytest.mark.slow
@needs_browser
def test_nan_and_alarms_are_seen_in_a_curve_and_read_below_it(browser, rows):
    browser.size(*SIZES["wide"])
    browser.open(rows, "#v=steps&c=out.weight.grad")
    browser.wait("document.querySelector('.lines').dataset.scale")
    said = browser.js("document.querySelector('figure').innerText")
    assert "✕ NaN/Inf, Rank 1: step 50, 51, 52 ... 59" in said
    assert "a rule holds in step 50" in said
    marked = "getComputedStyle(document.documentElement).getPropertyValue('--bad')"
    assert browser.js(marked).strip() == "#9b1c12"
    # the dashed line of the alarm is drawn in the colour of faults
    assert (
        browser.js("""(() => {
        const canvas = document.querySelector(".lines canvas");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let found = 0;
        for (let i = 0; i < data.length; i += 4) found += data[i] === 155 && data[i + 1] === 28 && data[i + 2] === 18;
        return found;
    })()""")
        > 50
    )
    browser.js("document.querySelector('figure details').open = true")
    browser.wait("document.querySelector('figure td')")
    cells = browser.js(
        "[...document.querySelectorAll('figure td')].map((item) => item.textContent)"
    )
    assert cells.count("NaN") == 10


@pytest.mark.slow
@needs_browser
def test_an_alarm_leads_to_its_curve(browser, rows):
    browser.open(rows)
    lines = browser.js("[...document.querySelectorAll('#alarms li')].map((item) => item.innerText)")
    assert len(lines) == 1 + int(browser.js(f"{HEADLINE}.dataset.others"))
    assert any(line.startswith("Step 45, Rank 0: loss: spike: 3.425e+04") for line in lines)
    browser.js("document.querySelector('#alarms a').click()")
    browser.wait("document.getElementById('view').className === 'view-steps'")
    assert browser.js("document.querySelector('figcaption').textContent") == "loss"
    assert browser.js("document.getElementById('curve').value") == "loss"


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("view", ["overview", "steps"])
@pytest.mark.parametrize("theme", COLOURS)
def test_axe_finds_no_violation_in_the_page_of_rows(browser, rows, view, theme):
    if not os.path.exists(AXE):
        pytest.skip(f"{AXE} is not there; `make browser` gets axe-core")
    browser.dark(theme == "dark")
    browser.open(rows, f"#v={view}")
    browser.js(Path(AXE).read_text() + "; 0")
    found = browser.js("""axe.run().then((result) => result.violations.map((item) =>
        [item.id, item.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + node.failureSummary)]))""")
    browser.dark(False)
    assert found == []


def wait_through_reloads(browser, condition):
    """Wait until an expression is true in a page that reads itself again, which ends a question to it."""
    while True:
        with contextlib.suppress(AssertionError):
            browser.wait(condition)
            return


@pytest.mark.slow
@needs_browser
def test_a_page_that_follows_keeps_theme_language_and_view(browser, tmp_path):
    from probe.reading.report.report import make_content, save

    run, page = write_rows(tmp_path / "run", steps=20), tmp_path / "report.html"
    save(page, make_content(str(run)), "", 1)
    browser.open(page, "#v=steps&c=fc.weight.grad")
    in_language(browser, "zh")
    browser.js("document.documentElement.dataset.theme = 'dark'")
    write_rows(run, steps=1, first=20)
    save(page, make_content(str(run)), "", 0)
    wait_through_reloads(
        browser,
        "document.documentElement.dataset.ready && document.querySelector('header') &&"
        " !document.body.innerText.includes('每 1 秒更新一次')",
    )
    assert browser.js("document.documentElement.lang") == "zh"
    assert browser.js("document.documentElement.dataset.theme") == "dark"
    assert browser.js("document.querySelector('figcaption').textContent") == "fc.weight.grad"
    assert browser.js("document.querySelector('.lines').getAttribute('aria-label')")
    assert browser.errors == []
    browser.js("sessionStorage.clear()")


@pytest.fixture(scope="module")
def fault(tmp_path_factory):
    """Return the page of two runs of which one has another scale, and further differences."""
    folder = tmp_path_factory.mktemp("fault")
    golden, mine = faulty(folder, 3, 2)
    assert (
        main(["report", str(golden), str(mine), "-o", str(folder / "report.html"), "--jobs", "1"])
        == 1
    )
    return folder / "report.html"


@pytest.mark.slow
@needs_browser
def test_a_call_shows_its_outputs_first_and_folds_arguments_that_agree(browser, tmp_path):
    from tests.reading.builders import forward, tensor, value, write

    for side, norm in (("a", 2.0), ("b", 3.0)):
        given = [tensor(norm=norm), value(4), value(0.5 if side == "a" else 0.25)]
        entry = forward(given, [tensor(norm=norm * 2)], axis=value(-1))
        write(tmp_path / side / "step0" / "rank", {"Functional.f.0.forward": entry})
    page = tmp_path / "report.html"
    main(["report", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(page), "--jobs", "1"])
    browser.size(*SIZES["wide"])
    browser.open(page, "#v=call&c=Functional.f.0.forward")
    tables = browser.js("""[...document.querySelectorAll("table.values")].map((table) =>
        [...table.querySelectorAll("tbody th")].map((item) => item.firstChild.textContent))""")
    assert tables == [["output.0"], ["input.0", "input.2"], ["input.1", "kwargs.axis"]]
    assert browser.js("document.getElementById('agreed').open") is False
    assert (
        browser.js("document.querySelector('#agreed summary').textContent")
        == "2 arguments that agree in A and B"
    )
    titles = browser.js(
        "[...document.querySelectorAll('#view > h3')].map((item) => item.textContent)"
    )
    assert titles[:2] == ["Outputs", "Inputs and arguments"]


@pytest.mark.slow
@needs_browser
def test_the_word_origin_stands_at_the_first_difference_alone(browser, fault):
    browser.size(*SIZES["wide"])
    description = columns(fault)["description"]
    assert description["later"]
    browser.open(fault)
    browser.js("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    badges = browser.js(
        "[...document.querySelectorAll('section.origin .badge')].map((item) => item.textContent.trim())"
    )
    assert badges[0] == "★ origin"
    assert set(badges[1:]) <= {"☆ independent difference", "↳ consequence"}
    assert badges.count("↳ consequence") == len(description["later"])
    browser.open(fault, "#v=calls&all=1&f=origin")
    rows = browser.js("[...document.querySelectorAll('.rows .row')].map((row) => row.textContent)")
    assert len(rows) == 2  # the first difference, on both ranks
    assert all(FAULT in row for row in rows)


def test_states_of_calls_have_a_sign_and_a_word():
    from probe.reading.report.html_page import read
    from probe.reading.report.part import STATES

    texts, signs = read("page/texts.json"), read("page/elements.js")
    for state in (*STATES, "consequence"):
        assert f'"{state}": [' in texts
        assert f"{state}: " in signs
