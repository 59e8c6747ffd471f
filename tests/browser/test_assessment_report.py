"""The page that `case-study report` writes, in a real browser."""

from __future__ import annotations

import pytest
from kits.assessed import SCENARIOS, kept, made_up
from kits.browsing import SIZES, Axe, PageAt, Scheme, Shot, fits

from case_study.trials import report_profile
from coag.evals import write_report

pytestmark = pytest.mark.browser

PLOTS = 6
"""Success three times, parts, cost, and success against cost."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the report of a made-up assessment lies, with a scripted model and a named one."""
    made = made_up(
        tmp_path_factory.mktemp("assessment") / "made-up",
        contenders=("rules", "plain", "coag-full", "coag-without-constraints"),
        scenarios=SCENARIOS[:2],
        models=("scripted:noisy",),
        seeds=6,
        broken=0.02,
    )
    folder = kept(made)
    files = write_report(folder, title="A made-up sample", profile=report_profile("vacuum"))
    return files.page.as_uri()


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("phone", "dark")])
def test_the_report_is_readable_in_every_size_and_scheme(
    page_at: PageAt, address: str, axe: Axe, screenshot: Shot, size: str, scheme: Scheme
) -> None:
    page = page_at(*SIZES[size], scheme)
    page.goto(address)
    screenshot(page, f"assessment-report-{size}-{scheme}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert fits(page)
    assert axe(page) == []


def test_every_plot_is_drawn_in_colours_of_the_page(page_at: PageAt, address: str) -> None:
    page = page_at(scripts=True)
    page.goto(address)
    boxes = page.locator("svg.plot")
    assert boxes.count() == PLOTS
    seen = page.evaluate(
        "[...document.querySelectorAll('svg.plot')].every(one => one.getBoundingClientRect().width"
        " > 200 && one.getAttribute('aria-labelledby')"
        " && one.querySelector('path, polyline, circle, rect'))"
    )
    assert seen
    inks = page.evaluate(
        "[...document.querySelectorAll('svg.plot *')].map(one => one.getAttribute('stroke'))"
        ".filter(ink => ink && ink.startsWith('#'))"
    )
    assert inks == []


def test_the_report_prints_without_cutting_a_table(page_at: PageAt, address: str) -> None:
    page = page_at(1040, 1400)
    page.goto(address)
    page.emulate_media(media="print")
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(one => "
        "getComputedStyle(one).overflowX !== 'visible').length"
    )
    assert cut == 0


def test_the_report_needs_no_script(page_at: PageAt, address: str) -> None:
    page = page_at(scripts=False)
    page.goto(address)
    page.get_by_role("link", name="Conditions").click()
    assert page.url.endswith("#conditions")
    page.locator("details.reading summary").click()
    assert page.locator("details.reading p").first.is_visible()
