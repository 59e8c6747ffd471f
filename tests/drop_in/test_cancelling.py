"""Cancelling at any instant: prompt, whole, reusable, and nothing left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from autogen_agentchat.messages import ModelClientStreamingChunkEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool, StaticStreamWorkbench, StaticWorkbench
from kits.drop_in import (
    PROMPT,
    WAYS,
    add,
    cancel_itself,
    check_reusable,
    no_strays,
    results_in,
    run,
    text_message,
    way_name,
    within,
)
from kits.planned import PlannedModel
from kits.waiting import until

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
LONG = 30.0


async def cancelled(task: asyncio.Task[Any]) -> None:
    """The task ends as cancelled, well within a second."""
    begun = time.perf_counter()
    await asyncio.wait({task}, timeout=5)
    assert time.perf_counter() - begun < PROMPT
    assert task.done()
    with pytest.raises(asyncio.CancelledError):
        task.result()


async def stop(agent: Any, how: str, when: Callable[[], bool]) -> None:
    """Cancels a turn at that moment, by its token or as a task."""
    token = CancellationToken()
    running = agent.run(task="Go.", cancellation_token=token)
    task: asyncio.Task[Any] = asyncio.create_task(running)
    await until(when)
    token.cancel() if how == "token" else task.cancel()
    await cancelled(task)


both = pytest.mark.parametrize("how", ["token", "task"])


class Digging:
    """A tool that digs until it is cancelled."""

    def __init__(self) -> None:
        self.at_work: list[int] = []

    async def dig(self, n: int = 0) -> str:
        """Digs."""
        self.at_work.append(n)
        try:
            await asyncio.sleep(LONG)
        finally:
            self.at_work.remove(n)
        return "dug"


@both
@all_ways
async def test_a_model_that_thinks_is_cancelled_in_whatever_phase(
    way: dict[str, Any], how: str
) -> None:
    for seconds in (LONG, 0.0):
        model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}), seconds=seconds)
        agent = CoagAgent("agent", model, tools=[add], **way)

        def thinks(model: PlannedModel = model) -> bool:
            if model.asked:
                model.seconds = LONG  # the next time, where the first took none
            return model.at_work == 1

        async with no_strays():
            await stop(agent, how, thinks)
        assert model.at_work == 0
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
        token.cancel() if how == "token" else task.cancel()
        await cancelled(task)
    assert model.at_work == 0
    model.said = "FINAL"
    await check_reusable(agent, model)


GIVEN: list[Callable[[Any], dict[str, Any]]] = [
    lambda tool: {"tools": [tool]},
    lambda tool: {"workbench": StaticWorkbench([tool])},
    lambda tool: {"workbench": StaticStreamWorkbench([tool])},
]


@both
@pytest.mark.parametrize("given", GIVEN)
@all_ways
async def test_a_tool_at_work_is_cancelled(
    way: dict[str, Any], given: Callable[[Any], dict[str, Any]], how: str
) -> None:
    tool, model = Digging(), PlannedModel("FINAL", ("dig", {}))
    agent = CoagAgent("agent", model, **given(FunctionTool(tool.dig, "Digs.")), **way)
    async with no_strays():
        await stop(agent, how, lambda: len(tool.at_work) == 1)
    assert tool.at_work == []
    await check_reusable(agent, model)


@both
async def test_a_batch_of_tools_is_cancelled_as_a_whole(how: str) -> None:
    tool, model = Digging(), PlannedModel("FINAL", [("dig", {"n": n}) for n in range(3)])
    agent = CoagAgent("agent", model, tools=[tool.dig], depth="compact")
    async with no_strays():
        await stop(agent, how, lambda: len(tool.at_work) == 3)
    assert tool.at_work == []
    await check_reusable(agent, model)


async def cling(at_work: asyncio.Event, let_go: asyncio.Event) -> None:
    """Swallows its cancellation until it is let go."""
    at_work.set()
    while not let_go.is_set():
        with suppress(asyncio.CancelledError):
            await let_go.wait()


@both
@pytest.mark.parametrize("who", ["tool", "model"])
async def test_what_swallows_its_cancellation_does_not_hold_the_agent(who: str, how: str) -> None:
    at_work, let_go = asyncio.Event(), asyncio.Event()

    class Clinging(PlannedModel):
        async def _work(self, token: CancellationToken | None) -> None:
            if who == "model":
                await cling(at_work, let_go)

    async def hold() -> str:
        """Does not let go."""
        await cling(at_work, let_go)
        return "at last"

    model = Clinging("FINAL", ("hold", {}))
    agent = CoagAgent("agent", model, tools=[hold], depth="compact")
    try:
        await stop(agent, how, at_work.is_set)
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


async def test_a_stream_that_is_left_while_a_tool_works_stops_the_tool() -> None:
    tool, model = Digging(), PlannedModel("FINAL", ("dig", {}))
    agent = CoagAgent("agent", model, tools=[tool.dig], depth="compact")
    async with no_strays():
        async for item in agent.run_stream(task="Go."):
            if type(item).__name__ == "ToolCallRequestEvent":
                await until(lambda: bool(tool.at_work))
                break
    assert tool.at_work == []
    await check_reusable(agent, model)


async def test_a_reset_ends_a_turn_that_was_left() -> None:
    model = PlannedModel("one two three four")
    agent = CoagAgent("agent", model, model_client_stream=True, depth="compact")
    stream = agent.on_messages_stream([text_message("Secret 77.")], CancellationToken())
    async for item in stream:
        if isinstance(item, ModelClientStreamingChunkEvent):
            break
    await agent.on_reset(CancellationToken())
    before = len(model.asked)
    await check_reusable(agent, model)
    assert "Secret 77" not in "".join(one.text for one in model.asked[before:])
    assert not agent.context.working_memory.in_cycle


# ---- teams ----


async def test_a_team_is_cancelled_and_can_be_used_again() -> None:
    """By its token: what a team does when its own task is cancelled is AutoGen's."""
    tool, model = Digging(), PlannedModel("FINAL", ("dig", {}))
    team = RoundRobinGroupChat(
        [CoagAgent("agent", model, tools=[tool.dig], depth="compact")], max_turns=1
    )
    await stop(team, "token", lambda: bool(tool.at_work))
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
    utterances = [u.content for u in agent.context.working_memory.dialogue]
    assert utterances == ["Count the sheep.", "FINAL"]
    assert max(one.text.count("Count the sheep.") for one in model.asked) == 1
    await run(agent, "Count the sheep.")
    utterances = [u.content for u in agent.context.working_memory.dialogue]
    assert utterances == ["Count the sheep.", "FINAL"] * 2
