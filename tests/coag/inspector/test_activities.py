"""The page of a situated agent's activities."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from kits.held_steps import a_wait, an_activity
from kits.hostile import FORBIDDEN, HARM, hostile_run
from kits.minds import NOW

from coag.inspector import Inspector
from coag.inspector.activities import ActivityReader
from coag.inspector.run_cache import RunCache
from coag.inspector.web import create_app
from coag.situated import (
    STORE_NAME,
    ActivityBudget,
    ActivityEnd,
    ActivityState,
    ActivityStore,
    OnActivity,
    Wait,
)

pytestmark = pytest.mark.broken_trace("the hostile run is made up")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an agent with three activities, one of which has a run."""
    hostile_run(tmp_path / "runs", name="a-run")
    store = ActivityStore(tmp_path / STORE_NAME)
    ended = {"state": ActivityState.TERMINATED, "end": ActivityEnd.DONE, "result": "It is flushed."}
    store.add(an_activity("old", run="a-run", steps=14, **ended))
    store.add(an_activity("next", priority=7, source="timer", budget=ActivityBudget(steps=None)))
    blocked = {"state": ActivityState.BLOCKED, "wait": a_wait(seconds=90)}
    store.add(an_activity("waiting", tokens=43_000, run="elsewhere", **blocked))
    store.close()
    return tmp_path


def asking(logs: Path) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(RunCache(logs)))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


@pytest.mark.parametrize("inside", ["", "runs"])
async def test_activities_are_listed_with_what_they_wait_for_and_their_runs(
    folder: Path, inside: str
) -> None:
    async with asking(folder / inside) as client:
        runs = await client.get("/")
        page = await client.get("/activities")
    assert 'href="/activities"' in runs.text
    assert "signal &#39;pump.ready&#39; of &#39;pump&#39;" in page.text
    assert "2026-01-01 12:01:30" in page.text
    places = [page.text.index(f"goal of {name}<") for name in ("next", "waiting", "old")]
    assert places == sorted(places)
    assert page.text.count('href="/runs/a-run"') == 1
    assert "/runs/elsewhere" not in page.text
    assert "It is flushed." in page.text
    assert 'set by <bdi dir="auto">timer</bdi>' in page.text


async def test_runs_of_other_agents_have_no_activities(tmp_path: Path) -> None:
    hostile_run(tmp_path / "logs", name="a-run")
    ActivityStore(tmp_path / STORE_NAME).close()  # beside a folder that is not called `runs`
    (tmp_path / "logs" / STORE_NAME).symlink_to(tmp_path / STORE_NAME)
    async with asking(tmp_path / "logs") as client:
        assert 'href="/activities"' not in (await client.get("/")).text
        for path in ("/activities", "/activities/events"):
            page = await client.get(path)
            assert page.status_code == 404
            assert "not the runs of a situated agent" in page.text


async def test_what_a_store_says_does_no_harm(tmp_path: Path) -> None:
    harm = HARM.replace("\x00", "")
    (tmp_path / "runs").mkdir()
    store = ActivityStore(tmp_path / STORE_NAME)
    wait = Wait(condition=OnActivity(activity=harm), since=NOW)
    texts = dict.fromkeys(("agent", "goal", "source", "result", "run", "parent"), harm)
    store.add(an_activity(harm, state=ActivityState.BLOCKED, wait=wait, **texts))
    store.close()
    async with asking(tmp_path) as client:
        page = await client.get("/activities")
    assert page.status_code == 200
    assert not FORBIDDEN & set(page.text)
    assert "<script>window" not in page.text
    assert "<img" not in page.text


async def test_a_store_that_cannot_be_read_is_said(folder: Path) -> None:
    (folder / STORE_NAME).write_bytes(b"no database" * 100)
    async with asking(folder) as client:
        page = await client.get("/activities")
        assert page.status_code == 422
        assert "The store of activities" in page.text
        assert (await client.get("/")).status_code == 200


def test_of_many_activities_a_page_shows_some(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    store = ActivityStore(tmp_path / STORE_NAME)
    with store.together():
        for number in range(120):
            store.add(an_activity(f"a{number}", updated=NOW + timedelta(seconds=number)))
    store.close()
    reader = ActivityReader(tmp_path)
    pages = [reader.page(number, {}) for number in (1, 2, 3, 9)]
    assert [len(one.rows) for one in pages] == [50, 50, 20, 20]
    assert pages[0].rows[0][0].id == "a119"
    assert pages[3] == pages[2]


def test_the_store_is_neither_owned_nor_changed(folder: Path) -> None:
    path = folder / STORE_NAME
    before = path.read_bytes()
    reader = ActivityReader(folder)
    assert reader.page(1, {}).total == 3
    assert path.read_bytes() == before
    owner = ActivityStore(path)
    assert reader.page(1, {}).total == 3
    owner.add(an_activity("new"))
    assert reader.page(1, {}).total == 4
    owner.close()


def test_a_page_is_sent_again_when_an_activity_has_changed(folder: Path) -> None:
    owner = ActivityStore(folder / STORE_NAME)
    with Inspector(folder) as inspector:
        address = f"{inspector.url}/activities/events?page=1"
        with httpx.stream("GET", address, timeout=20, trust_env=False) as answer:
            lines = (line for line in answer.iter_lines() if "badge" in line)
            assert "blocked" in "".join(next(lines) for _ in range(3))
            owner.wake(["waiting"], NOW)
            assert "blocked" not in "".join(next(lines) for _ in range(3))
    owner.close()
