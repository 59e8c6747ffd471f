"""The inspector's pages about situated agents, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kits.browsing import SIZES, Axe, PageAt, Scheme, Shot, fits, harmed, opened
from kits.held_steps import a_wait, an_activity
from kits.hostile import HARM
from kits.minds import NOW
from kits.situated_runs import situated_run
from playwright.sync_api import expect

from coag.inspector import Inspector
from coag.situated import STORE_NAME, ActivityState, ActivityStore

pytestmark = [pytest.mark.browser, pytest.mark.broken_trace("the run is made up")]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[ActivityStore]:
    """The store of an agent with a run, a goal that waits, and one whose texts mean harm."""
    situated_run(tmp_path / "runs")
    store = ActivityStore(tmp_path / STORE_NAME)
    blocked = {"state": ActivityState.BLOCKED, "wait": a_wait(seconds=90)}
    store.add(an_activity("flush", goal="Flush the reactor.", run="situated", **blocked))
    harm = HARM.replace("\x00", "")
    store.add(an_activity("harm", goal=harm, source=harm, result=harm))
    yield store
    store.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.usefixtures("owner")
def test_activities_and_tools_fit_and_have_no_serious_finding(
    page_at: PageAt, tmp_path: Path, axe: Axe, screenshot: Shot, size: str, scheme: Scheme
) -> None:
    page = page_at(*SIZES[size], scheme)
    with Inspector(tmp_path) as inspector:
        for path in ("/activities", "/runs/situated"):
            opened(page, f"{inspector.url}{path}")
            screenshot(page, f"inspector-situated{path.replace('/', '-')}-{size}-{scheme}")
            page.keyboard.press("o")
            assert fits(page), path
            assert not harmed(page)
            assert axe(page) == [], path
        page.goto("about:blank")


def test_an_activity_is_followed_and_leads_to_its_run(
    page_at: PageAt, tmp_path: Path, owner: ActivityStore
) -> None:
    page = page_at()
    with Inspector(tmp_path) as inspector:
        opened(page, inspector.url)
        page.get_by_role("link", name="Activities of the agent").click()
        row = page.get_by_role("row").filter(has_text="Flush the reactor.")
        expect(row).to_contain_text("blocked")
        expect(row).to_contain_text("signal 'pump.ready' of 'pump'")
        owner.wake(["flush"], NOW)
        expect(row).to_contain_text("ready")
        expect(row).not_to_contain_text("pump.ready")
        row.get_by_role("link").click()
        drawing = page.get_by_role("img", name="The tools over time")
        expect(drawing).to_be_visible()
        page.locator("#tools-list summary").click()
        expect(page.get_by_role("cell", name="The pump was restarted.")).to_be_visible()
        page.goto("about:blank")
