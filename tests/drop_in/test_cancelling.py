"""Cancelling at any instant: prompt, whole, reusable, and nothing left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, FunctionTool, StaticStreamWorkbench, StaticWorkbench
from kits.drop_in import (
    PROMPT,
    WAYS,
    add,
    cancel_itself,
    check_reusable,
    no_strays,
    results_in,
    run,
    sleep_long,
    text_message,
    until,
    way_name,
    within,
)
from kits.planned import Planned, PlannedModel

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
LONG = 30.0


@asynccontextmanager
async def prompt() -> AsyncGenerator[None]:
    """What is within takes well under a second."""
    begun = time.perf_counter()
    yield
    assert time.perf_counter() - begun < PROMPT


async def cancelled(task: asyncio.Task[Any]) -> None:
    """The task ends as cancelled, promptly."""
    async with prompt():
        await asyncio.wait({task}, timeout=5)
    assert task.done()
    with pytest.raises(asyncio.CancelledError):
        task.result()


def how_to_stop(how: str, task: asyncio.Task[Any], token: CancellationToken) -> None:
    if how == "token":
        token.cancel()
    else:
        task.cancel()


both = pytest.mark.parametrize("how", ["token", "task"])


@both
@all_ways
async def test_a_model_that_thinks_is_cancelled(way: dict[str, Any], how: str) -> None:
    model = PlannedModel(seconds=LONG)
    agent, token = CoagAgent("agent", model, tools=[add], **way), CancellationToken()
    async with no_strays():
        task = asyncio.create_task(agent.run(task="Think.", cancellation_token=token))
        await until(lambda: model.at_work == 1)
        how_to_stop(how, task, token)
        await cancelled(task)
    assert model.at_work == 0
    await check_reusable(agent, model)


@both
@all_ways
async def test_a_later_phase_is_cancelled_too(way: dict[str, Any], how: str) -> None:
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    agent, token = CoagAgent("agent", model, tools=[add], **way), CancellationToken()
    task = asyncio.create_task(agent.run(task="Think.", cancellation_token=token))
    await until(lambda: len(model.asked) == 1)
    model.seconds = LONG
    await until(lambda: model.at_work == 1)
    how_to_stop(how, task, token)
    await cancelled(task)
    await check_reusable(agent, model)


@both
@pytest.mark.parametrize("pieces", [0, 1, 2])
async def test_a_streaming_answer_is_cancelled_between_its_pieces(how: str, pieces: int) -> None:
    model = PlannedModel("one two three four five six")
    agent = CoagAgent("agent", model, model_client_stream=True, depth="compact")
    token, seen = CancellationToken(), list[Any]()

    async def listen() -> None:
        async for item in agent.run_stream(task="Tell.", cancellation_token=token):
            if isinstance(item, ModelClientStreamingChunkEvent):
                seen.append(item)
                if len(seen) == pieces:
                    model.seconds = LONG

    async with no_strays():
        if pieces == 0:
            model.seconds = LONG
        task = asyncio.create_task(listen())
        await until(lambda: model.at_work == 1 and len(seen) >= pieces and model.seconds == LONG)
        how_to_stop(how, task, token)
        await cancelled(task)
    assert model.at_work == 0
    model.said = "FINAL"
    await check_reusable(agent, model)


def in_a_workbench(tool: BaseTool[Any, Any]) -> dict[str, Any]:
    return {"workbench": StaticWorkbench([tool])}


def in_a_streaming_workbench(tool: BaseTool[Any, Any]) -> dict[str, Any]:
    return {"workbench": StaticStreamWorkbench([tool])}


def as_a_tool(tool: BaseTool[Any, Any]) -> dict[str, Any]:
    return {"tools": [tool]}


@both
@pytest.mark.parametrize("given", [as_a_tool, in_a_workbench, in_a_streaming_workbench])
@all_ways
async def test_a_tool_at_work_is_cancelled(
    way: dict[str, Any], given: Callable[..., dict[str, Any]], how: str
) -> None:
    at_work, stopped = asyncio.Event(), asyncio.Event()

    async def dig() -> str:
        """Digs."""
        at_work.set()
        try:
            await asyncio.sleep(LONG)
        finally:
            stopped.set()
        return "dug"

    model = PlannedModel("FINAL", ("dig", {}))
    tool = FunctionTool(dig, "Digs.")
    agent, token = CoagAgent("agent", model, **given(tool), **way), CancellationToken()
    async with no_strays():
        task = asyncio.create_task(agent.run(task="Dig.", cancellation_token=token))
        await within(at_work.wait())
        how_to_stop(how, task, token)
        await cancelled(task)
    assert stopped.is_set()
    await check_reusable(agent, model)


@both
async def test_a_batch_of_tools_is_cancelled_as_a_whole(how: str) -> None:
    working = list[int]()

    async def dig(n: int) -> str:
        """Digs."""
        working.append(n)
        try:
            await asyncio.sleep(LONG)
        finally:
            working.remove(n)
        return "dug"

    model = PlannedModel("FINAL", [("dig", {"n": n}) for n in range(3)])
    agent, token = CoagAgent("agent", model, tools=[dig], depth="compact"), CancellationToken()
    async with no_strays():
        task = asyncio.create_task(agent.run(task="Dig.", cancellation_token=token))
        await until(lambda: len(working) == 3)
        how_to_stop(how, task, token)
        await cancelled(task)
    assert working == []
    await check_reusable(agent, model)


@both
async def test_a_tool_that_swallows_its_cancellation_does_not_hold_the_agent(how: str) -> None:
    at_work, let_go = asyncio.Event(), asyncio.Event()

    async def cling() -> str:
        """Does not let go."""
        at_work.set()
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    model = PlannedModel("FINAL", ("cling", {}))
    agent, token = CoagAgent("agent", model, tools=[cling], depth="compact"), CancellationToken()
    task = asyncio.create_task(agent.run(task="Hold on.", cancellation_token=token))
    await within(at_work.wait())
    how_to_stop(how, task, token)
    await cancelled(task)
    let_go.set()
    await check_reusable(agent, model)


@both
async def test_a_model_that_swallows_its_cancellation_does_not_hold_the_agent(how: str) -> None:
    let_go = asyncio.Event()

    class Clinging(PlannedModel):
        async def _work(self, token: CancellationToken | None) -> None:
            while not let_go.is_set():
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    continue

    model = Clinging()
    agent, token = CoagAgent("agent", model, depth="compact"), CancellationToken()
    task = asyncio.create_task(agent.run(task="Hold on.", cancellation_token=token))
    await until(lambda: model.at_work == 1)
    how_to_stop(how, task, token)
    try:
        await cancelled(task)
    finally:
        let_go.set()
    await check_reusable(agent, model)


@all_ways
async def test_cancelled_before_it_begins_it_asks_nobody(way: dict[str, Any]) -> None:
    model, token = PlannedModel(), CancellationToken()
    agent = CoagAgent("agent", model, **way)
    token.cancel()
    async with no_strays():
        with pytest.raises(asyncio.CancelledError):
            await within(agent.run(task="Too late.", cancellation_token=token))
    assert model.asked == []
    await check_reusable(agent, model)
    assert "Too late." not in model.heard


@all_ways
async def test_a_tool_that_raises_cancelled_error_is_a_failed_call(way: dict[str, Any]) -> None:
    model = PlannedModel("FINAL", ("cancel_itself", {}))
    agent = CoagAgent("agent", model, tools=[cancel_itself], **way)
    async with no_strays():
        result = await run(agent)
    assert [one.is_error for one in results_in(result.messages)] == [True]
    await check_reusable(agent, model)


@all_ways
@pytest.mark.parametrize("events", [1, 2, 4])
async def test_a_stream_that_is_left_leaves_nothing_behind(
    way: dict[str, Any], events: int
) -> None:
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    agent = CoagAgent("agent", model, tools=[add], model_client_stream=True, **way)
    async with no_strays():
        seen = 0
        async for _ in agent.run_stream(task="Go."):
            seen += 1
            if seen == events:
                break
    await check_reusable(agent, model)


async def test_a_stream_that_is_left_and_kept_is_ended_by_the_next_turn() -> None:
    model = PlannedModel("one two three four")
    agent = CoagAgent("agent", model, model_client_stream=True, depth="compact")
    stream = agent.on_messages_stream([text_message("Go.")], CancellationToken())
    async for item in stream:
        if isinstance(item, ModelClientStreamingChunkEvent):
            break
    async with no_strays():
        await check_reusable(agent, model)
    await stream.aclose()
    await check_reusable(agent, model, "Once more?")


async def test_a_stream_that_is_left_while_a_tool_works_stops_the_tool() -> None:
    working = list[str]()

    async def dig() -> str:
        """Digs."""
        working.append("digs")
        try:
            await asyncio.sleep(LONG)
        finally:
            working.clear()
        return "dug"

    model = PlannedModel("FINAL", ("dig", {}))
    agent = CoagAgent("agent", model, tools=[dig], depth="compact")
    async with no_strays():
        async for item in agent.run_stream(task="Go."):
            if type(item).__name__ == "ToolCallRequestEvent":
                await until(lambda: bool(working))
                break
    assert working == []
    await check_reusable(agent, model)


async def test_a_reset_ends_a_turn_that_was_left() -> None:
    model = PlannedModel("one two three four")
    agent = CoagAgent("agent", model, model_client_stream=True, depth="compact")
    stream = agent.on_messages_stream([text_message("Secret 77.")], CancellationToken())
    async for item in stream:
        if isinstance(item, ModelClientStreamingChunkEvent):
            break
    await agent.on_reset(CancellationToken())
    asked = len(model.asked)
    await check_reusable(agent, model)
    assert "Secret 77" not in "".join(one.text for one in model.asked[asked:])
    assert not agent.context.working_memory.in_cycle


async def test_it_can_be_used_after_a_time_out_of_its_caller() -> None:
    model = PlannedModel(seconds=LONG)
    agent = CoagAgent("agent", model)
    async with no_strays():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.run(task="Think."), timeout=0.05)
    await check_reusable(agent, model)


# ---- teams ----


def plan_for(where: str, tool: str) -> list[Planned]:
    """What a model calls that is to be cancelled there."""
    return [] if where == "model" else [(tool, {})]


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_a_team_is_cancelled_and_can_be_used_again(where: str) -> None:
    """By its token: what a team does when its own task is cancelled is AutoGen's."""
    model = PlannedModel("FINAL", *plan_for(where, "sleep_long"))
    model.seconds = LONG if where == "model" else 0.0
    agent = CoagAgent("agent", model, tools=[sleep_long], depth="compact")
    team, token = RoundRobinGroupChat([agent], max_turns=1), CancellationToken()
    task: asyncio.Task[Any] = asyncio.create_task(team.run(task="Go.", cancellation_token=token))
    await until(lambda: bool(model.at_work if where == "model" else model.asked))
    token.cancel()
    await cancelled(task)
    model.seconds = 0.0
    await team.reset()
    result = await within(team.run(task="Again."))
    assert result.messages[-1].to_text() == "FINAL"
    assert model.violations == []


@all_ways
@pytest.mark.parametrize("error", [RuntimeError("no such model"), TimeoutError("too slow")])
async def test_an_error_of_the_model_is_raised_and_the_next_turn_works(
    way: dict[str, Any], error: Exception
) -> None:
    model = PlannedModel().err(error)
    agent = CoagAgent("agent", model, tools=[add], **way)
    async with no_strays():
        with pytest.raises(type(error), match=str(error)):
            await within(agent.run(task="Think."))
    await check_reusable(agent, model)


@all_ways
async def test_trying_again_does_not_double_what_was_said(way: dict[str, Any]) -> None:
    model = PlannedModel().err(RuntimeError("down"), times=2)
    agent = CoagAgent("agent", model, **way)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            await agent.run(task="Count the sheep.")
    await run(agent, "Count the sheep.")
    said = [u.content for u in agent.context.working_memory.dialogue]
    assert said == ["Count the sheep.", "FINAL"]
    assert max(one.text.count("Count the sheep.") for one in model.asked) == 1
    await run(agent, "Count the sheep.")
    said = [u.content for u in agent.context.working_memory.dialogue]
    assert said == ["Count the sheep.", "FINAL"] * 2


async def test_an_error_of_the_model_ends_a_team_and_the_team_can_be_used_again() -> None:
    model = PlannedModel().err(RuntimeError("no such model"))
    team = RoundRobinGroupChat([CoagAgent("agent", model)], max_turns=1)
    with pytest.raises(RuntimeError, match="no such model"):
        await within(team.run(task="Think."))
    await team.reset()
    result = await within(team.run(task="Again."))
    assert isinstance(result.messages[-1], TextMessage)
