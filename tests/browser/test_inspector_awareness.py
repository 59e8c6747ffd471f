"""The inspector's pages about where an agent stood, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kits.aware_runs import aware_run, begun, goal, item, kept, state_of
from kits.browsing import SIZES, Axe, PageAt, Scheme, Shot, fits, harmed, opened
from kits.gallery import in_a_loop
from kits.hostile import FORBIDDEN, HARM
from kits.tracked import written_run
from playwright.sync_api import expect

from coag.awareness import (
    Attention,
    Entity,
    GoalGraph,
    Resource,
    SelfModel,
    Trajectory,
    Transition,
    TransitionType,
    WorldModel,
)
from coag.inspector import Inspector, write_report
from coag.schema import TraceRecord
from coag.tracing import RunFolder

pytestmark = [pytest.mark.browser, pytest.mark.broken_trace("the hostile run is made up")]


@dataclass(frozen=True, slots=True)
class Site:
    """A served inspector over a run with awareness and one whose every name means harm."""

    url: str
    release: RunFolder
    hostile: RunFolder

    def at(self, run: RunFolder, path: str = "/awareness") -> str:
        """The address of a page of a run."""
        return f"{self.url}/runs/{run.path.name}{path}"


def _hostile(logs: Path) -> RunFolder:
    """Two cycles of a module whose name and texts mean harm."""
    records: list[TraceRecord] = []
    for cycle in (1, 2):
        happened = Transition(step=cycle, type=TransitionType.FAILURE, description=HARM)
        state = state_of(
            cycle,
            goals=GoalGraph(goals=(goal(1, HARM), goal(2, HARM, parent_id=goal(1).id))),
            attention=Attention(items=(item(cycle, HARM, source=HARM),)),
            trajectory=Trajectory(transitions=(happened,)),
            self_model=SelfModel(resources=(Resource(name=HARM, capacity=9, remaining=cycle),)),
            world=WorldModel(entities=(Entity(name=HARM, type=HARM, state={HARM: HARM}),)),
        )
        records += begun(cycle, **{HARM: kept(state, goal(1).id), "other": kept(state)})
    return written_run(logs, records, name="hostile")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    logs = tmp_path_factory.mktemp("aware") / "logs"
    release = in_a_loop(aware_run(logs))
    hostile = _hostile(logs)
    with Inspector(logs) as inspector:
        yield Site(inspector.url, release, hostile)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_opens_and_fits_and_has_no_serious_finding(
    page_at: PageAt, site: Site, axe: Axe, screenshot: Shot, size: str, scheme: Scheme
) -> None:
    page = page_at(*SIZES[size], scheme)
    for path in ("/awareness", "/cycles/4/awareness"):
        opened(page, site.at(site.release, path))
        screenshot(page, f"inspector{path.replace('/', '-')}-{size}-{scheme}")
        page.keyboard.press("o")
        assert fits(page), path
        assert axe(page) == [], path


def test_at_four_hundred_per_cent_it_does_not_scroll_sideways(page_at: PageAt, site: Site) -> None:
    page = page_at(320, 256)
    for run in (site.release, site.hostile):
        opened(page, site.at(run)).keyboard.press("o")
        assert fits(page)


def test_the_tab_leads_to_it_and_arrows_from_cycle_to_cycle(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at(site.release, ""))
    page.get_by_role("link", name="Awareness", exact=True).click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("as cycle 8 began")
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(heading).to_contain_text("as cycle 7 began")
    expect(page.get_by_role("button", name="Keys")).to_be_visible()
    page.keyboard.press("u")
    expect(heading).to_contain_text("as cycle 8 began")
    page.locator(".cell-s").nth(3).click()
    expect(heading).to_contain_text("as cycle 4 began")
    expect(page.locator(".cell-s[aria-current]")).to_contain_text("4")
    page.get_by_role("link", name="What cycle 4 did").click()
    page.get_by_role("link", name="Where it stood").click()
    expect(heading).to_contain_text("as cycle 4 began")


def test_the_numbers_of_the_drawing_lead_to_their_cycles_without_scripts(
    page_at: PageAt, site: Site
) -> None:
    page = opened(page_at(scripts=False), site.at(site.release))
    page.locator(".figure-over a", has_text="5").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("as cycle 5 began")
    expect(page.get_by_role("cell", name="Restart the build server")).to_be_visible()


def test_tab_reaches_the_drawing_which_says_what_it_shows(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at(site.release))
    name = "Goals, transitions, attention and resources over the cycles"
    drawing = page.get_by_role("group", name=name, exact=True)
    expect(drawing).to_be_visible()
    expect(drawing).to_have_accessible_description(
        "Cycles 1 to 8. Transitions: external event, progress, discovery, failure, reversal. "
        "The table below says what changed in each cycle."
    )
    figure = page.locator(".figure[tabindex='0']")
    expect(figure).to_have_count(1)
    figure.focus()
    expect(figure).to_be_focused()


def test_hostile_names_harm_neither_the_page_nor_the_report(
    page_at: PageAt, site: Site, screenshot: Shot, tmp_path: Path
) -> None:
    write_report([site.hostile, site.release], tmp_path / "run.html")
    page = page_at(1440, 900)
    for url in (site.at(site.hostile), (tmp_path / "run.html").as_uri()):
        page.goto(url)
        page.keyboard.press("o")
        assert not harmed(page), url
        assert fits(page), url
        text: str = page.evaluate("document.documentElement.textContent")
        assert not set(text) & FORBIDDEN, url
        if url.startswith("http"):
            expect(page.locator(".stand")).to_have_count(2)
            screenshot(page, "inspector-awareness-hostile")
    expect(page.locator("#run-2-awareness")).to_have_count(1)
