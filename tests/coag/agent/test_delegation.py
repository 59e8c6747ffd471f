"""An agent gives a goal to another one, and gets the result as a signal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from kits.kettles import Decision, kitchen, minded, when
from kits.postgres_server import postgres_programs, postgres_server, url_of

from coag.agent import DelegateTool, SituatedAgent
from coag.errors import ConfigurationError
from coag.mcp import StreamableHttpServerParams
from coag.models import ScriptedModel
from coag.schema import Trust
from coag.situated import (
    ActivityBudget,
    ActivityEnd,
    CallOrigin,
    InProcessConnection,
    McpToolConnection,
    ToolConnectionError,
    Workspace,
    serve_http,
)
from coag.situated.calls import calling

QUICK: dict[str, Any] = {"depth": "compact", "proposal": "native"}


def asks(text: str, goal: str = "Count the bolts.") -> Decision:
    """Reads the manual, delegates once, waits for the end, answers with the result."""
    if "**Tool ID:** `worker`" not in text:
        return "mount_manual", {"tool": "worker"}
    if ended := re.search(r'Signal ended of worker_\w+: end="(\w+)", result="([^"]*)"', text):
        return f"{ended[1]}: {ended[2]}"
    if named := re.search(r"worker_[0-9a-f]{10}", text):
        return "wait_for_signal", {"tool": named[0], "signal": "ended"}
    return "worker__delegate", {"goal": goal}


def agent(name: str, model: ScriptedModel, *places: Workspace, **given: Any) -> SituatedAgent:
    servers = [InProcessConnection(one, f"at_{n}") for n, one in enumerate(places)]
    return SituatedAgent(name, model, servers, **{**QUICK, **given})


@asynccontextmanager
async def both(
    worker: ScriptedModel, boss: ScriptedModel, **given: Any
) -> AsyncGenerator[tuple[SituatedAgent, SituatedAgent, Workspace]]:
    """A boss beside the office of a worker."""
    office = Workspace()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(agent("worker", worker))
        stack.push_async_callback(office.close)
        office.add(DelegateTool(one, **given))
        two = await stack.enter_async_context(agent("boss", boss, office))
        yield two, one, office


async def test_a_goal_is_delegated_and_its_result_comes_as_a_signal() -> None:
    async with both(minded(lambda _: "There are 7."), minded(asks)) as (boss, worker, _):
        asked = boss.add_goal("How many bolts are there?")
        assert (await boss.ended(asked.id)).result == "done: There are 7."
        (done,) = worker.store.find()
        assert (done.goal, done.source) == ("Count the bolts.", f"agent:boss/{asked.id}")
        assert done.lineage == (f"boss/{asked.id}",)
        assert done.trust is Trust.UNTRUSTED
        assert boss.perception.focused(asked.id) == {}, "what has ended perceives nothing any more"


def twice(text: str) -> Decision:
    """Delegates two goals before it waits for the first, then for the second."""
    if "**Tool ID:** `worker`" not in text:
        return "mount_manual", {"tool": "worker"}
    named = list(dict.fromkeys(re.findall(r'"tool": "(worker_[0-9a-f]{10})"', text)))
    if len(named) < 2:
        return "worker__delegate", {"goal": f"Part {len(named) + 1}."}
    ended = set(re.findall(r"Signal ended of (worker_\w+):", text))
    for one in named:
        if one not in ended:
            return "wait_for_signal", {"tool": one, "signal": "ended"}
    return "Both are done."


async def test_two_goals_of_one_activity_are_waited_for_in_whatever_order_they_end() -> None:
    async with both(minded(lambda _: "Ready."), minded(twice)) as (boss, worker, _):
        asked = boss.add_goal("Do both parts.")
        assert (await boss.ended(asked.id)).result == "Both are done."
        assert sorted(one.goal for one in worker.store.find()) == ["Part 1.", "Part 2."]


async def test_a_failure_of_the_delegate_is_a_result() -> None:
    gives_up = minded(lambda _: ("abandon", {"reason": "The box is locked."}))
    async with both(gives_up, minded(asks)) as (boss, _, _):
        asked = boss.add_goal("How many bolts are there?")
        assert (await boss.ended(asked.id)).result == "failed: The box is locked."


async def test_what_an_activity_delegated_is_cancelled_with_it_if_asked() -> None:
    async def endless(_: str) -> None:
        await forever.wait()

    forever = asyncio.Event()
    async with both(minded(lambda _: "Never.", endless), minded(asks)) as (boss, worker, _):
        first, second = boss.add_goal("A"), boss.add_goal("B")
        await when(boss, first.id, "blocked")
        await when(boss, second.id, "blocked")
        await boss.cancel(first.id, "Not needed.", delegated=True)
        ends = {one.source: one.end for one in worker.store.find()}
        assert ends[f"agent:boss/{first.id}"] is ActivityEnd.CANCELLED
        assert ends[f"agent:boss/{second.id}"] is None
        assert boss.activity(second.id).state == "blocked", "only its own are cancelled"
        await boss.cancel(second.id)
        assert len(worker.open_activities()) == 1, "without being asked, none is"
        forever.set()


async def test_goals_do_not_go_in_circles() -> None:
    office, home = Workspace(), Workspace()
    to_worker = minded(asks)
    to_boss = minded(
        lambda text: (
            (
                "mount_manual" if "**Tool ID:** `boss`" not in text else "boss__delegate",
                {"tool": "boss"} if "**Tool ID:** `boss`" not in text else {"goal": "You do it."},
            )
            if "in a circle" not in text
            else "He would not."
        )
    )
    async with agent("worker", to_boss, home) as worker, agent("boss", to_worker, office) as boss:
        office.add(DelegateTool(worker))
        home.add(DelegateTool(boss))
        asked = boss.add_goal("How many bolts are there?")
        assert (await boss.ended(asked.id)).result == "done: He would not."
        assert [one.id for one in boss.store.find()] == [asked.id]
        await office.close()
        await home.close()


async def refused(office: Workspace, operation: str, **arguments: Any) -> str:
    answer = await office.invoke("worker", operation, arguments)
    assert not answer.accepted
    return answer.message


async def test_depth_number_and_words_of_goals_are_bounded() -> None:
    forever = asyncio.Event()

    async def endless(_: str) -> None:
        await forever.wait()

    waiting = minded(lambda _: "Never.", endless)
    async with both(waiting, minded(asks), most_open=1, depth=1) as (_, worker, office):
        assert "empty" in await refused(office, "delegate", goal=" ")
        assert "at least 1 character" in await refused(office, "delegate", goal="")
        deep = CallOrigin(lineage=("a/1", "b/2"))
        with calling(deep):
            assert "through 2 agents (a/1 > b/2)" in await refused(office, "delegate", goal="x")
        taken = await office.invoke("worker", "delegate", {"goal": "x"}, "k")
        assert taken.data["signal"] == "ended"
        again = await office.invoke("worker", "delegate", {"goal": "x"}, "k")
        assert (again.data, again.repeated) == (taken.data, True)
        assert "1 goals are open" in await refused(office, "delegate", goal="y")
        assert "under the id 'z'" in await refused(office, "outcome", delegated="z")
        assert "under the id 'z'" in await refused(office, "cancel", delegated="z")
        named = taken.data["tool"]
        with calling(CallOrigin(lineage=("thief/1",))):
            assert "nothing of yours" in await refused(office, "cancel", delegated=named)
        open_ = await office.invoke("worker", "outcome", {"delegated": named})
        assert open_.data == [{"tool": named, "goal": "x", "status": "open", "result": ""}]
        await office.invoke("worker", "cancel", {"delegated": named, "reason": "Enough."})
        assert office.properties(named).properties == {"status": "cancelled"}
        over = await office.invoke("worker", "outcome", {"delegated": named})
        assert (over.data[0]["status"], over.data[0]["result"]) == ("cancelled", "Enough.")
        mine = await office.invoke("worker", "outcome", {})
        assert mine.data == over.data, "who lost the answer finds its goals"
        with calling(CallOrigin(lineage=("other/1",))):
            assert (await office.invoke("worker", "outcome", {})).data == []
        assert [one.source for one in worker.store.find()] == ["agent:unknown"]


def test_bounds_below_one_and_names_that_are_no_ids_are_refused() -> None:
    worker = agent("worker", minded(lambda _: "Ready."))
    with pytest.raises(ConfigurationError, match=r"at least 1, not 0, 3 and 100"):
        DelegateTool(worker, most_open=0)
    with pytest.raises(ConfigurationError, match="cannot be called 'a-b'"):
        DelegateTool(worker, "a-b")
    worker.store.close()


async def test_the_oldest_goals_that_have_ended_lose_their_tools_and_not_their_outcome() -> None:
    async with both(minded(lambda _: "Ready."), minded(asks), keep=1) as (_, worker, office):
        names: list[str] = []
        for n in range(3):
            taken = await office.invoke("worker", "delegate", {"goal": f"{n}"}, f"{n}")
            names.append(taken.data["tool"])
            await worker.ended(names[-1])
        assert [one.id for one in office.catalogue()] == ["worker", names[-1]]
        known = await office.invoke("worker", "outcome", {"delegated": names[0]})
        assert (known.data[0]["status"], known.data[0]["result"]) == ("done", "Ready.")


async def test_budget_and_trust_of_goals_are_the_tools() -> None:
    budget = ActivityBudget(steps=2)
    goes_on = minded(lambda _: ("set_plan", {"plan": "More."}))
    async with both(goes_on, minded(asks), budget=budget, trust=Trust.USER) as (_, worker, office):
        taken = await office.invoke("worker", "delegate", {"goal": "x"}, "k")
        done = await worker.ended(taken.data["tool"])
        assert (done.trust, done.budget, done.end) == (Trust.USER, budget, ActivityEnd.FAILED)


async def test_after_a_restart_its_tools_say_the_same_under_the_same_ids(tmp_path: Path) -> None:
    def slow_or_quick(text: str) -> Decision:
        if "Slow." in text and "has not come" not in text:
            return "wait_for_property", {"tool": "kettle", "property": "status", "value": "HOT"}
        return "Ready."

    @asynccontextmanager
    async def life() -> AsyncGenerator[tuple[SituatedAgent, Workspace]]:
        office = Workspace()
        async with (
            kitchen() as (stove, _),
            agent("worker", minded(slow_or_quick), stove, folder=tmp_path) as worker,
        ):
            worker.add_goal("Its own.", activity_id="worker_own")
            office.add(DelegateTool(worker))
            yield worker, office
            await office.close()

    async with life() as (worker, office):
        quick = (await office.invoke("worker", "delegate", {"goal": "Quick."}, "q")).data["tool"]
        slow = (await office.invoke("worker", "delegate", {"goal": "Slow."}, "s")).data["tool"]
        await worker.ended(quick)
        await when(worker, slow, "blocked")
        said = (office.properties(quick), office.signals(quick).events[0].event_id)
        reading = office.properties(slow)
    async with life() as (worker, office):
        assert (office.properties(quick), office.signals(quick).events[0].event_id) == said
        assert office.properties(slow) == reading
        assert "worker_own" not in [one.id for one in office.catalogue()]
        assert office.became_of("worker", "s").status == "happened"
        assert office.became_of("worker", "other").status == "did_not_happen"
        again = await office.invoke("worker", "delegate", {"goal": "Slow."}, "s")
        assert again.data["tool"] == slow
        other = await office.invoke("worker", "delegate", {"goal": "Else."}, "q")
        assert "another goal" in other.message
        await worker.cancel(slow, "Too slow.")
        assert office.properties(slow).properties == {"status": "cancelled"}
        assert len(worker.store.find()) == 3, "nothing was started twice"
        await worker.close()
        assert "was closed" in await refused(office, "outcome", delegated=quick)


async def test_an_agent_in_ram_does_not_know_what_became_of_calls_before() -> None:
    async with both(minded(lambda _: "Ready."), minded(asks)) as (_, _, office):
        assert office.became_of("worker", "k").status == "unknown"


async def test_goals_are_delegated_over_mcp_and_come_in_no_circle_there_either() -> None:
    office = Workspace()
    async with (
        agent("worker", minded(lambda _: "There are 7.")) as worker,
        serve_http(office) as address,
    ):
        office.add(DelegateTool(worker))
        server = McpToolConnection(StreamableHttpServerParams(url=address), "office")
        boss = SituatedAgent("boss", minded(asks), [server], **QUICK)
        async with boss:
            asked = boss.add_goal("How many bolts are there?")
            assert (await boss.ended(asked.id)).result == "done: There are 7."
            assert worker.store.find()[0].lineage == (f"boss/{asked.id}",)
            with calling(CallOrigin(lineage=("worker/1",))):
                circle = await server.invoke("worker", "delegate", {"goal": "x"}, "c")
            assert "in a circle" in circle.message
            with (
                calling(CallOrigin(lineage=("x" * 201,))),
                pytest.raises(ToolConnectionError, match="no lineage"),
            ):
                await server.invoke("worker", "delegate", {"goal": "x"}, "d")
        await office.close()


@pytest.mark.slow
async def test_goals_that_another_worker_ends_say_so_too(tmp_path: Path) -> None:
    if (programs := postgres_programs()) is None:
        pytest.skip("no initdb and pg_ctl on this machine")
    pytest.importorskip("psycopg", reason="the extra coag[postgres] is not installed")
    office, hinted = Workspace(), asyncio.Event()
    office.subscribe(lambda _: hinted.set())
    with postgres_server(programs) as conninfo:
        place: dict[str, Any] = {"folder": tmp_path, "store": url_of(conninfo)}
        one, two = (agent("worker", minded(lambda _: "Ready."), **place) for _ in range(2))
        async with one, two:
            office.add(DelegateTool(one))
            goals = [
                office.invoke("worker", "delegate", {"goal": f"{n}"}, f"{n}") for n in range(6)
            ]
            names = [done.data["tool"] for done in await asyncio.gather(*goals)]
            assert office.became_of("worker", "other").status == "did_not_happen"
            while any(office.properties(name).properties["status"] != "done" for name in names):
                hinted.clear()
                await hinted.wait()
            assert [one.name for one in office.signals(names[0]).events] == ["ended"]
            await office.close()
