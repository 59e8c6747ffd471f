"""The pages about where an agent stood, as they are served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from kits.aware_runs import RELEASE, Reported, aware_run, begun, kept, state_of
from kits.tracked import cycles_of, written_run

from coag.awareness import Awareness, ToolAdapter
from coag.inspector.web import Desk, create_app

pytestmark = pytest.mark.broken_trace("some of its records are made up")


async def _made(logs: Path) -> str:
    modules = [Awareness(Reported(), name="plans"), Awareness(ToolAdapter(), name="tools")]
    return (await aware_run(logs, modules=modules)).path.name


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs `plain`, without awareness, and `odd`, whose state is of another version."""
    logs = tmp_path_factory.mktemp("aware")
    written_run(logs, cycles_of("clean", "look"), name="plain")
    odd = {**state_of(1).model_dump(mode="json"), "version": 99}
    written_run(logs, begun(1, awareness=kept(odd)), name="odd")
    return logs


@pytest.fixture(scope="module")
def key(logs: Path) -> str:
    """Key of the run of an agent with two awareness modules."""
    return asyncio.run(_made(logs))


@pytest.fixture
async def client(logs: Path, key: str) -> AsyncIterator[httpx.AsyncClient]:
    desk = Desk(logs)
    transport = httpx.ASGITransport(create_app(desk))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        yield asking
    desk.end()


async def test_the_last_state_of_a_run_is_shown_of_each_module(
    client: httpx.AsyncClient, key: str
) -> None:
    page = (await client.get(f"/runs/{key}/awareness")).text
    assert "as cycle 8 began" in page
    assert page.count('class="stand"') == 2
    assert page.count("Graph of the goals") == 2
    assert page.count("<svg xmlns") == 4
    assert RELEASE in page


async def test_every_cycle_has_a_page_that_leads_to_those_beside_it(
    client: httpx.AsyncClient, key: str
) -> None:
    page = (await client.get(f"/runs/{key}/cycles/3/awareness")).text
    assert "as cycle 3 began" in page
    for cycle in (2, 4):
        assert f'href="/runs/{key}/cycles/{cycle}/awareness"' in page
    assert "The upload test fails every third time" in page
    assert "The build server is up again" not in page[: page.index("Over the cycles")]


async def test_the_address_may_ask_for_a_cycle(client: httpx.AsyncClient, key: str) -> None:
    answer = await client.get(f"/runs/{key}/awareness?cycle=5")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"/runs/{key}/cycles/5/awareness",
    )


@pytest.mark.parametrize("path", ["", "/cycles/3", "/beliefs", "/memory", "/cycles/3/why"])
async def test_every_page_of_the_run_leads_to_its_awareness(
    client: httpx.AsyncClient, key: str, path: str
) -> None:
    assert f'href="/runs/{key}/awareness"' in (await client.get(f"/runs/{key}{path}")).text


async def test_a_run_without_awareness_has_no_such_view(client: httpx.AsyncClient) -> None:
    assert "Awareness" not in (await client.get("/runs/plain")).text
    answer = await client.get("/runs/plain/awareness")
    assert answer.status_code == 404
    assert "keeps no awareness state" in answer.text


async def test_a_cycle_that_is_not_there_and_a_number_that_is_none(
    client: httpx.AsyncClient, key: str
) -> None:
    asked = (f"/runs/{key}/cycles/99/awareness", f"/runs/{key}/cycles/x/awareness")
    assert [(await client.get(path)).status_code for path in asked] == [404, 404]
    assert (await client.get(f"/runs/{key}/awareness?cycle=x")).status_code == 400


async def test_a_state_of_another_version_is_said_to_be_one(client: httpx.AsyncClient) -> None:
    answer = await client.get("/runs/odd/awareness")
    assert answer.status_code == 200
    assert "This state cannot be shown" in answer.text
