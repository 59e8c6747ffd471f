"""The web application."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import httpx
import pytest
from kits.aware_runs import RELEASE, Reported, aware_run, begun, kept, state_of
from kits.hostile import hostile_run
from kits.tracked import cycles_of, written_run

from coag.awareness import Awareness, ToolAdapter
from coag.inspector import library
from coag.inspector.open_run import OpenRun
from coag.inspector.pages import MEDIA_TYPES
from coag.inspector.run_cache import RunCache
from coag.inspector.views import CheckProgress
from coag.inspector.web import create_app
from coag.tracing import RunFolder

pytestmark = [
    pytest.mark.broken_trace("some of its records are made up"),
    pytest.mark.timeout(240),  # the process that checks takes seconds to start at best
]
PAGES = ("", "/cycles/1", "/cycles/1/why", "/beliefs", "/memory", "/procedures", "/findings")


@asynccontextmanager
async def asking(cache: RunCache, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(cache), **options)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def _until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(200):
        for _ in iter(met, True):
            await asyncio.sleep(0.01)


async def _checked(cache: RunCache, key: str) -> None:
    await _until(lambda: cache.findings(key).progress is CheckProgress.DONE)


# ---- pages ----


@pytest.mark.parametrize("path", [*PAGES, "/records/2"])
async def test_a_hostile_run_is_shown_without_harm(client: httpx.AsyncClient, path: str) -> None:
    page = await client.get(f"/runs/hostile{path}")
    assert page.status_code == 200
    assert "<script>window.harmed" not in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


async def test_every_link_within_leads_somewhere(client: httpx.AsyncClient, key: str) -> None:
    waiting, ids = {"/", f"/compare?a={key}", f"/compare?a={key}&b={key}"}, dict[str, list[str]]()
    spots: set[tuple[str, str]] = set()
    while waiting:
        path = waiting.pop()
        page = await client.get(path)
        assert page.status_code == 200, path
        html = page.text if page.headers["content-type"].startswith("text/html") else ""
        ids[path] = re.findall(r' id="([^"]+)"', html)
        assert len(ids[path]) == len(set(ids[path])), path
        for link in map(unescape, re.findall(r'(?:href|src)="([^"]*)', html)):
            assert re.match("/(?!/)|#", link), link
            target, spot = urldefrag(urljoin(path, link))
            spots |= {(target, spot)} if spot and "hostile" not in target else set()
            waiting |= {target} - ids.keys() if "hostile" not in target else set()
    assert {f"/runs/{key}", f"/runs/{key}/cycles/2", "/static/inspector.css"} <= ids.keys()
    assert [(path, spot) for path, spot in spots if spot not in ids[path]] == []
    for name, media_type in MEDIA_TYPES.items():
        assert (await client.get(f"/static/{name}")).headers["content-type"] == media_type


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/runs/nobody", 404, "no run named 'nobody'"),
        ("/runs/KEY/cycles/99", 404, "no cycle named '99'"),
        ("/runs/KEY/cycles/99/why", 404, "no cycle named '99'"),
        ("/runs/KEY/records/100000", 404, "no record named"),
        ("/runs/KEY?from=ten", 400, "'from'"),
        ("/compare?a=nobody", 404, "no run named 'nobody'"),
        ("/compare?a=KEY&b=nobody", 404, "no run named 'nobody'"),
        (f"/runs/KEY/cycles/{'9' * 4400}", 404, "no page"),
        ("/runs/KEY/cycles/-1", 404, "no page"),
        ("/static/../pyproject.toml", 404, "There is no page"),
        ("/static/page.css", 404, "no file named 'page.css'"),
        ("/elsewhere", 404, "'/elsewhere'"),
    ],
)
async def test_what_is_not_there_is_reported(
    client: httpx.AsyncClient, key: str, path: str, status: int, text: str
) -> None:
    page = await client.get(path.replace("KEY", key))
    assert page.status_code == status
    assert text.lower() in unescape(page.text).lower()


async def test_a_record_is_shown_whole_and_leads_to_where_it_belongs(
    client: httpx.AsyncClient, carried: Path, key: str
) -> None:
    lines = RunFolder(carried / "hostile").trace_path.read_text(encoding="utf-8").split("\n")
    response = await client.get("/runs/hostile/records/2", params={"plain": "1"})
    assert response.headers["content-type"].startswith("text/plain")
    assert json.loads(response.text) == json.loads(lines[2])
    assert not {"\x1b", "\u202e"} & set(response.text)
    pages = [(await client.get(f"/runs/{key}/records/{number}")).text for number in range(12)]
    assert any(f'href="/runs/{key}/cycles/1#reasoning"' in page for page in pages)
    assert f'href="/runs/{key}/records/5?plain=1"' in pages[5]
    assert 'rel="prev"' not in pages[0]


@pytest.mark.parametrize("path", ["/cycles/1", "/cycles/1/why"])
async def test_a_cycle_and_its_why_keep_the_tabs_of_the_run_and_lead_on(
    client: httpx.AsyncClient, key: str, path: str
) -> None:
    page = await client.get(f"/runs/{key}{path}")
    assert f'href="/runs/{key}/beliefs"' in page.text
    assert f'rel="next" href="/runs/{key}{path.replace("1", "2")}"' in page.text
    assert 'rel="prev"' not in page.text
    assert f'</a> <code class="quiet">{key}</code>' in page.text


async def test_what_the_checks_found_is_shown_when_they_are_done(
    client: httpx.AsyncClient, cache: RunCache, key: str
) -> None:
    await _checked(cache, "hostile")
    page = await client.get("/runs/hostile/cycles/1/why")
    assert 'class="finding finding-' in page.text
    await _checked(cache, key)
    assert "No invariant is broken" in (await client.get(f"/runs/{key}/findings")).text


async def test_runs_are_found_by_how_they_ended_and_never_put_beside_themselves(
    client: httpx.AsyncClient, key: str
) -> None:
    queries = ("ended", "ended failure")
    pages = [(await client.get("/", params={"query": query})).text for query in queries]
    assert [f"/runs/{key}" in page for page in pages] == [True, False]
    choice = (await client.get("/compare", params={"a": key})).text
    assert ("b=hostile" in choice, f"b={key}" in choice) == (True, False)


async def test_the_runs_have_a_heading_and_a_width_for_every_cell(
    client: httpx.AsyncClient,
) -> None:
    head, row, *_ = (await client.get("/")).text.split('<div class="run-row"')
    cells = row.count('role="cell"')
    assert head.count('role="columnheader"') == cells
    style = (await client.get("/static/inspector.css")).text
    (widths,) = re.findall(r"^\.runs-h > div.*grid-template-columns: ([^;]+);", style, re.M)
    assert len(re.sub(r"\([^)]*\)", "", widths).split()) == cells


async def test_an_empty_folder_says_how_to_make_a_run(tmp_path: Path) -> None:
    empty = RunCache(tmp_path)
    async with asking(empty) as client:
        page = await client.get("/")
    empty.end()
    assert page.status_code == 200
    assert "logs=" in unescape(page.text)


# ---- safety ----


async def test_logs_are_read_only_and_foreign_names_are_refused(client: httpx.AsyncClient) -> None:
    page = await client.post("/")
    assert page.status_code == 405
    assert "changes nothing" in page.text
    assert (await client.get("/", headers={"Host": "evil.example"})).status_code == 400


@pytest.mark.parametrize("path", ["/", "/runs/nobody", "/static/inspector.css"])
async def test_no_page_can_load_or_run_anything_from_elsewhere(
    client: httpx.AsyncClient, path: str
) -> None:
    headers = (await client.get(path)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


async def test_a_fault_of_its_own_is_a_page_like_others(
    cache: RunCache, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(run: OpenRun, number: int) -> None:
        raise ZeroDivisionError(f"{run.key} {number}")

    monkeypatch.setattr(OpenRun, "cycle", fails)
    async with asking(cache, raise_app_exceptions=False) as client:
        page = await client.get(f"/runs/{key}/cycles/1")
        other = await client.get(f"/runs/{key}")
    assert page.status_code == 500
    assert "ZeroDivisionError" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert other.status_code == 200


# ---- what is read ahead ----


async def test_a_run_that_fails_is_left_out_of_what_is_read_ahead_and_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hostile_run(tmp_path, name="odd", ended=False)
    hostile_run(tmp_path, name="good", ended=False)

    count_on = OpenRun.count_on

    def fails(run: OpenRun) -> None:
        if run.key == "odd":
            raise RecursionError("too deep")
        count_on(run)

    monkeypatch.setattr(OpenRun, "count_on", fails)
    cache = RunCache(tmp_path)
    async with cache.at_work():
        cache.open("odd")
        await _until(lambda: cache.library.card("good").cycles is not None)
        cache.open("odd")
        hostile_run(tmp_path, name="late", ended=False)
        await _until(lambda: sum(bool(card.cycles) for card in cache.library.cards()) == 2)
    assert len([each for each in caplog.records if "'odd'" in each.getMessage()]) == 1


async def test_a_folder_of_logs_that_is_gone_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "_SHARE", 0)  # it looks again soon, however long a look took
    logs = tmp_path / "logs"
    hostile_run(logs, name="first", ended=False)
    cache = RunCache(logs)
    shutil.rmtree(logs)
    async with cache.at_work():
        await _until(lambda: "Nothing can be read ahead" in caplog.text)
        hostile_run(logs, name="second", ended=False)
        await _until(lambda: any(card.cycles for card in cache.library.listing().cards))
    assert cache.library.card("second").cycles


# ---- where an agent stood ----


@pytest.fixture(scope="module")
def aware_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs `plain`, without awareness, and `odd`, whose state is of another version."""
    logs = tmp_path_factory.mktemp("aware")
    written_run(logs, cycles_of("clean", "look"), name="plain")
    odd = {**state_of(1).model_dump(mode="json"), "version": 99}
    written_run(logs, begun(1, awareness=kept(odd)), name="odd")
    return logs


@pytest.fixture(scope="module")
def aware(aware_logs: Path) -> str:
    """The address of the run of an agent with two awareness modules."""
    modules = [Awareness(Reported(), name="plans"), Awareness(ToolAdapter(), name="tools")]
    return f"/runs/{asyncio.run(aware_run(aware_logs, modules=modules)).path.name}"


@pytest.fixture
async def aware_client(aware_logs: Path) -> AsyncIterator[httpx.AsyncClient]:
    cache = RunCache(aware_logs)
    async with asking(cache) as client:
        yield client
    cache.end()


async def test_the_last_state_of_a_run_is_shown_of_each_module(
    aware_client: httpx.AsyncClient, aware: str
) -> None:
    page = (await aware_client.get(f"{aware}/awareness")).text
    assert "as cycle 8 began" in page
    assert page.count('class="stand"') == page.count("<svg xmlns") == 2
    assert RELEASE in page


async def test_every_cycle_has_a_page_that_leads_to_those_beside_it(
    aware_client: httpx.AsyncClient, aware: str
) -> None:
    page = (await aware_client.get(f"{aware}/cycles/3/awareness")).text
    assert "as cycle 3 began" in page
    assert all(f'href="{aware}/cycles/{cycle}/awareness"' in page for cycle in (2, 4))
    assert "The upload test fails every third time" in page
    assert "The build server is up again" not in page[: page.index("Over the cycles")]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/awareness?cycle=5", 303),
        ("/cycles/99/awareness", 404),
        ("/cycles/x/awareness", 404),
        ("/awareness?cycle=x", 400),
    ],
)
async def test_the_address_may_ask_for_a_cycle(
    aware_client: httpx.AsyncClient, aware: str, path: str, status: int
) -> None:
    answer = await aware_client.get(aware + path)
    assert answer.status_code == status
    assert answer.headers.get("location") in (None, f"{aware}/cycles/5/awareness")


async def test_a_run_without_awareness_or_with_another_version_says_so(
    aware_client: httpx.AsyncClient,
) -> None:
    assert "Awareness" not in (await aware_client.get("/runs/plain")).text
    answer = await aware_client.get("/runs/plain/awareness")
    assert answer.status_code == 404
    assert "keeps no awareness state" in answer.text
    odd = await aware_client.get("/runs/odd/awareness")
    assert odd.status_code == 200
    assert "This state cannot be shown" in odd.text
