"""The inspector's page about a memory as it is now, in a real browser."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kits.browsing import SIZES, Axe, PageAt, Scheme, Shot, fits, harmed, opened
from kits.hostile import HARM
from kits.remembered import START
from kits.sleepers import Calendar, dynamics_of, note, sleeper
from playwright.sync_api import expect

from coag.inspector import Inspector
from coag.memory.consolidation import sleep
from coag.memory.dynamics import DYNAMICS_FILE, seconds
from coag.memory.dynamics.aging import TraitChange

pytestmark = pytest.mark.browser
CHANGE = TraitChange(
    trait="openness", before=0.5, after=0.54, confidence=0.4, reason="Much that is new."
)


async def _lived(folder: Path) -> None:
    """A memory in which a note and one that means harm faded in a year."""
    calendar = Calendar()
    memory = sleeper(settings="companion", path=folder / DYNAMICS_FILE, clock=calendar)
    for text in ("The lamp is off.", HARM.replace("\x00", "")):
        await note(memory, text)
    calendar.passes(365)
    await sleep(memory)
    calendar.passes(365)
    await sleep(memory)
    dynamics_of(memory).persona.propose([CHANGE], at=seconds(START), apply=True)
    await memory.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with ThreadPoolExecutor(1) as pool:  # the driver holds the loop of this thread
        pool.submit(lambda: asyncio.run(_lived(tmp_path))).result()
    return tmp_path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_what_faded_and_the_personality_fit_and_have_no_serious_finding(
    page_at: PageAt, folder: Path, axe: Axe, screenshot: Shot, size: str, scheme: Scheme
) -> None:
    page = page_at(*SIZES[size], scheme)
    with Inspector(folder, memory=folder) as inspector:
        opened(page, inspector.url)
        page.get_by_role("link", name="Memory as it is now").click()
        row = page.get_by_role("listitem").filter(has_text="The lamp is off.")
        expect(row).to_contain_text("faded: not used for")
        expect(row).to_contain_text("coag memory restore")
        expect(row.get_by_role("img", name="Strength since the last use")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="Much that is new.")).to_contain_text(
            "holds"
        )
        screenshot(page, f"inspector-dynamics-{size}-{scheme}")
        assert fits(page)
        assert not harmed(page)
        assert axe(page) == []
        page.goto("about:blank")
