"""One turn at a time, and trying it again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import LLMMessage
from kits.brains import brain, respond

from coag import CoagAgent
from coag.agent.events import LiveEvents
from coag.agent.turns import TurnRunner
from coag.errors import TraceError, TurnInProgressError
from coag.models import ScriptedModel
from coag.tracing import TraceWriter


def turns() -> TurnRunner:
    return TurnRunner("agent", LiveEvents("agent"))


async def numbers(ended: list[str]) -> AsyncGenerator[int, None]:
    """A turn of three events."""
    try:
        for number in range(3):
            yield number
            await asyncio.sleep(0)
    finally:
        ended.append("ended")


async def all_of(made: TurnRunner) -> list[int]:
    return [item async for item in made.hold(numbers([]))]


def agent_that(model: ScriptedModel, **more: Any) -> CoagAgent:
    return CoagAgent("a", model, depth="compact", proposal="json", **more)


# ---- one at a time ----


async def test_a_left_stream_is_ended_by_its_readers_next_call_and_says_so() -> None:
    made, ended = turns(), list[str]()
    stream = made.hold(numbers(ended))
    assert await anext(stream) == 0
    assert await asyncio.wait_for(all_of(made), 1) == [0, 1, 2]
    assert ended == ["ended"]
    with pytest.raises(TurnInProgressError, match="was left and ended by another turn"):
        await anext(stream)


async def test_a_stream_whose_readers_task_is_over_was_left() -> None:
    made, ended = turns(), list[str]()
    stream = made.hold(numbers(ended))

    async def read_one() -> int:
        return await anext(stream)

    assert await asyncio.create_task(read_one()) == 0
    assert await all_of(made) == [0, 1, 2]
    assert ended == ["ended"]
    await stream.aclose()


async def test_a_stream_that_nobody_refers_to_any_more_was_left() -> None:
    made, ended = turns(), list[str]()
    left, stop = asyncio.Event(), asyncio.Event()

    async def leave() -> None:
        async for _ in made.hold(numbers(ended)):
            break
        left.set()
        await stop.wait()

    leaving = asyncio.create_task(leave())
    await left.wait()
    assert await all_of(made) == [0, 1, 2]
    assert ended == ["ended"]
    stop.set()
    await leaving


def test_a_turn_of_an_event_loop_that_is_closed_was_left() -> None:
    made = turns()
    stream = made.hold(numbers([]))
    loop = asyncio.new_event_loop()

    async def read_one() -> int:
        return await anext(stream)

    assert loop.run_until_complete(read_one()) == 0
    loop.close()
    assert asyncio.run(all_of(made)) == [0, 1, 2]


async def test_an_agent_that_a_reader_is_busy_with_refuses_a_second_call() -> None:
    agent = agent_that(brain(respond()))
    paused, go_on = asyncio.Event(), asyncio.Event()

    async def read() -> list[Any]:
        read: list[Any] = []
        async for item in agent.run_stream(task="one"):
            read.append(item)
            paused.set()
            await go_on.wait()
        return read

    reading = asyncio.create_task(read())
    await paused.wait()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.sleep(0)
    with pytest.raises(TurnInProgressError):
        await agent.run(task="two")
    assert isinstance((await reading)[-1], TaskResult)
    assert (await agent.run(task="two")).messages[-1].to_text() == "Done."


# ---- trying again ----


class Flaky(UnboundedChatCompletionContext):
    """Fails to take in the second message that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.given = 0

    async def add_message(self, message: LLMMessage) -> None:
        self.given += 1
        if self.given == 2:
            raise ConnectionError("away")
        await super().add_message(message)


async def test_a_task_that_its_context_could_not_take_in_is_there_when_it_is_tried_again() -> None:
    context, model = Flaky(), brain(respond())
    agent = agent_that(model, model_context=context)
    task = [TextMessage(content=text, source="user") for text in ("Hello.", "Book flight 17.")]
    with pytest.raises(ConnectionError):
        await agent.run(task=task)
    await agent.run(task=task)
    contents = [message.content for message in await context.get_messages()]
    assert contents == ["Hello.", "Book flight 17.", "Done."]
    assert model.requests[-1].text.count("Book flight 17.") >= 1
    assert [one.content for one in agent.context.working_memory.dialogue[:2]] == contents[:2]


async def test_a_task_that_could_not_be_recorded_is_there_when_it_is_tried_again(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = brain(respond())
    agent = agent_that(model, logs=tmp_path)
    await agent.run(task="Hello.")

    def full(writer: object, record: object) -> None:
        raise TraceError(tmp_path, f"no room for {record!r}")

    with monkeypatch.context() as patched:
        patched.setattr(TraceWriter, "write", full)
        with pytest.raises(TraceError):
            await agent.run(task="Pay the rent.")
    await agent.run(task="Pay the rent.")
    assert "Pay the rent." in model.requests[-1].text
    await agent.close()


async def test_an_order_is_heard_again_after_the_one_that_took_it_back() -> None:
    patient = brain(respond())
    asked = asyncio.Event()
    waits = True

    async def think(request: Any) -> Any:
        asked.set()
        if waits:
            await asyncio.Event().wait()
        return await patient.create(request.messages, extra_create_args=dict(request.extra))

    agent = agent_that(ScriptedModel(think))
    for task in ("Delete the file.", "No, stop."):
        asked.clear()
        token = CancellationToken()
        turn = asyncio.create_task(agent.run(task=task, cancellation_token=token))
        await asked.wait()
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    waits = False
    await agent.run(task="Delete the file.")
    orders = [one.content for one in agent.context.working_memory.dialogue if one.source == "user"]
    assert orders == ["Delete the file.", "No, stop.", "Delete the file."]
