from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseChatMessage,
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    StructuredMessage,
    TextMessage,
    ThoughtEvent,
)
from autogen_core import CancellationToken
from kits.remote_agents import Acts, Puppet, Yielded
from kits.remote_stage import BRISK, Stage
from pydantic import BaseModel

from coag.distributed import AgentPlace, RemoteConnection, worker
from coag.errors import ConfigurationError, RemoteAgentError


class Count(BaseModel):
    number: int


class Signals:
    """An act that says when it is inside and when it was cancelled, and stays until let go."""

    def __init__(self) -> None:
        self.inside = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.go = asyncio.Event()

    async def __call__(
        self, messages: Sequence[BaseChatMessage], token: CancellationToken
    ) -> AsyncGenerator[Yielded, None]:
        del messages, token
        yield ThoughtEvent(content="inside", source="puppet")
        self.inside.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        yield Response(chat_message=TextMessage(content="done", source="puppet"))


def says(*items: Any) -> Acts:
    """An act that yields these items."""

    async def act(
        messages: Sequence[BaseChatMessage], token: CancellationToken
    ) -> AsyncGenerator[Yielded, None]:
        del messages, token
        for item in items:
            if isinstance(item, BaseException):
                raise item
            yield item

    return act


def playing(stage: Stage, acts: Acts) -> None:
    """Lets the next puppet play this."""
    stage.next = lambda: Puppet(acts)


def text(content: str, source: str = "puppet") -> TextMessage:
    return TextMessage(content=content, source=source)


async def test_a_remote_agent_yields_its_events_and_its_answer_as_a_local_one_does(
    stage: Stage, remote: RemoteConnection
) -> None:
    agent = await remote.agent("puppet")
    assert (agent.name, agent.description) == ("puppet", "A puppet.")
    assert agent.produced_message_types == (TextMessage,)
    stream = agent.on_messages_stream([text("Hello.", "user")], CancellationToken())
    items = [item async for item in stream]
    thought, response = items
    assert isinstance(thought, ThoughtEvent)
    assert isinstance(response, Response)
    assert response.chat_message.to_text() == "Hello."
    assert response.inner_messages == [thought]


async def test_an_agent_bears_here_the_name_that_it_is_given_here(remote: RemoteConnection) -> None:
    agent = await remote.agent("puppet", name="echo", description="Repeats.")
    result = await agent.run(task="Hello.")
    assert [message.source for message in result.messages] == ["user", "echo", "echo"]
    assert agent.description == "Repeats."


async def test_each_key_has_an_agent_and_a_folder_of_its_own(stage: Stage, tmp_path: Path) -> None:
    await stage.serve(logs=tmp_path)
    remote = await stage.connect()
    long = "key/" * 100
    for key in ("a", "b b/../c", "a", long, f"{long}x"):
        await (await remote.agent("puppet", key=key)).run(task="Hello.")
    turns = {key: len(one.done) for key, one in stage.puppets.items()}
    assert turns == {"a": 2, "b b/../c": 1, long: 1, f"{long}x": 1}
    folders = os.listdir(tmp_path / "puppet")
    assert len(folders) == 4
    assert {"a", "b b%2F%2E%2E%2Fc"} <= set(folders)


async def test_chunks_travel_and_inner_messages_that_were_never_yielded_do_too(
    stage: Stage, remote: RemoteConnection
) -> None:
    chunks = [ModelClientStreamingChunkEvent(content=c, source="puppet") for c in "abc"]
    unseen, seen = (ThoughtEvent(content=c, source="puppet") for c in ("unseen", "seen"))
    response = Response(chat_message=text("abc"), inner_messages=[unseen, seen])
    playing(stage, says(*chunks, seen, response))
    agent = await remote.agent("puppet")
    items = [item async for item in agent.on_messages_stream([], CancellationToken())]
    assert items == [*chunks, seen, response]


async def test_handoffs_and_structured_answers_travel(stage: Stage) -> None:
    kind = StructuredMessage[Count]
    stage.next = lambda: puppet
    puppet = Puppet(says(Response(chat_message=kind(content=Count(number=3), source="puppet"))))
    puppet.produces = (kind, HandoffMessage)
    await stage.serve(message_types=[kind])
    remote = await stage.connect()
    with pytest.raises(ConfigurationError, match=re.escape("'StructuredMessage[Count]'")):
        await remote.agent("puppet")
    agent = await remote.agent("puppet", message_types=[kind])
    assert agent.produced_message_types == (kind, HandoffMessage)
    answer = await agent.run(task="How many?")
    assert type(answer.messages[-1]) is kind
    assert answer.messages[-1].to_text() == '{"number":3}'
    puppet.acts = says(
        Response(chat_message=HandoffMessage(content="yours", source="puppet", target="b"))
    )
    handoff = await agent.run(task="Go on.")
    assert isinstance(handoff.messages[-1], HandoffMessage)


async def test_a_factory_that_fails_is_an_error_and_is_tried_again(
    stage: Stage, remote: RemoteConnection
) -> None:
    def fail() -> Puppet:
        raise RuntimeError("no strings")

    stage.next = fail
    with pytest.raises(RemoteAgentError, match="raised RuntimeError: no strings"):
        await remote.agent("puppet")
    stage.next = Puppet
    assert (await remote.agent("puppet")).name == "puppet"


async def test_what_takes_longer_than_patience_is_done_once_and_waited_for(stage: Stage) -> None:
    go = asyncio.Event()

    class Slow(Puppet):
        async def on_reset(self, cancellation_token: CancellationToken) -> None:
            await super().on_reset(cancellation_token)
            await go.wait()

    async def slowly(place: AgentPlace) -> Puppet:
        if place.key == "late":
            await go.wait()
        return stage.make(place)

    stage.next = Slow
    limits = BRISK.model_copy(update={"patience": 2.5})  # many times as long as a worker's `poll`
    async with worker(stage.address, {"puppet": slowly}, limits=BRISK):
        remote = await stage.connect()
        agent = await remote.agent("puppet")
        remote.limits = limits
        late = asyncio.create_task(remote.agent("puppet", key="late"))
        reset = asyncio.create_task(agent.on_reset(CancellationToken()))
        done, _ = await asyncio.wait([late, reset], timeout=1.25 * limits.patience)
        assert done == set()
        go.set()
        await asyncio.gather(late, reset)
    assert {key: one.done for key, one in stage.puppets.items()} == {
        "default": ["reset", "close"],
        "late": ["close"],
    }


async def test_close_closes_the_agent_once_and_the_next_turn_makes_another(
    stage: Stage, remote: RemoteConnection
) -> None:
    agent = await remote.agent("puppet")
    await agent.run(task="Hello.")
    closed = stage.puppet
    await agent.close()
    await agent.close()
    assert closed.done == ["turn", "close"]
    await agent.run(task="Hello.")
    assert stage.puppet is not closed


async def test_an_agent_that_was_replaced_between_turns_is_not_talked_to_unknowingly(
    stage: Stage, remote: RemoteConnection
) -> None:
    agent, other = await remote.agent("puppet"), await remote.agent("puppet")
    await agent.run(task="Hello.")
    await other.run(task="Hello.")
    await other.close()
    with pytest.raises(RemoteAgentError, match="knows nothing of the dialogue") as caught:
        await agent.run(task="Do you remember?")
    assert caught.value.kind == "replaced"
    with pytest.raises(RemoteAgentError, match="knows nothing of the dialogue"):
        await agent.save_state()
    await agent.on_reset(CancellationToken())
    assert (await agent.run(task="Anew.")).messages[-1].to_text() == "Anew."


async def test_a_second_turn_at_the_same_time_is_refused(
    stage: Stage, remote: RemoteConnection
) -> None:
    signals = Signals()
    playing(stage, signals)
    agent, other = await remote.agent("puppet"), await remote.agent("puppet")
    turn = asyncio.create_task(agent.run(task="Hello."))
    await signals.inside.wait()
    with pytest.raises(RemoteAgentError, match="one agent takes one at a time") as caught:
        await other.run(task="Me too.")
    with pytest.raises(RemoteAgentError, match="Cancel it first"):
        await other.load_state({})
    assert caught.value.kind == "busy"
    signals.go.set()
    assert (await turn).messages[-1].to_text() == "done"
    assert stage.puppet.done == ["turn"]


async def test_a_message_that_is_too_large_is_refused_on_either_side_and_breaks_nothing(
    stage: Stage, remote: RemoteConnection
) -> None:
    agent = await remote.agent("puppet")
    huge = "x" * (BRISK.max_bytes + 1)
    with pytest.raises(RemoteAgentError, match=f"may take {BRISK.max_bytes}") as sent:
        await agent.run(task=huge)
    stage.puppet.acts = says(Response(chat_message=text(huge)))
    with pytest.raises(RemoteAgentError, match="A TextMessage of the turn takes") as received:
        await agent.run(task="Tell me all.")
    assert sent.value.kind == received.value.kind == "too_large"
    stage.puppet.state["kept"] = huge
    with pytest.raises(RemoteAgentError, match="The answer takes"):
        await agent.save_state()
    stage.puppet.acts = says(Response(chat_message=text("x" * 3_000_000)))
    assert len((await agent.run(task="As much as fits.")).messages[-1].to_text()) == 3_000_000


async def test_what_is_large_together_comes_in_several_answers(
    stage: Stage, remote: RemoteConnection
) -> None:
    thoughts = [ThoughtEvent(content='"' * 700_000, source="puppet") for _ in range(5)]
    response = Response(chat_message=text("done"), inner_messages=thoughts)
    playing(stage, says(*thoughts, response))
    agent = await remote.agent("puppet")
    items = [item async for item in agent.on_messages_stream([], CancellationToken())]
    assert items == [*thoughts, response]


async def test_more_events_than_are_kept_wait_for_the_client(stage: Stage) -> None:
    limits = BRISK.model_copy(update={"items": 3})
    thoughts = [ThoughtEvent(content=str(n), source="puppet") for n in range(20)]
    playing(stage, says(*thoughts, Response(chat_message=text("done"))))
    await stage.serve(limits=limits)
    agent = await (await stage.connect()).agent("puppet")
    items = [item async for item in agent.on_messages_stream([], CancellationToken())]
    assert items[:-1] == thoughts


# ---- errors, cancellation, life ----


@pytest.mark.parametrize(
    ("items", "problem", "kind"),
    [
        ([KeyError("no such stone")], "raised KeyError: 'no such stone'", "raised"),
        ([asyncio.CancelledError("a tool said so")], "a tool said so", "cancelled"),
        ([], "ended without a response", "raised"),
        ([text("no response")], "ended without a response", "raised"),
    ],
)
async def test_what_goes_wrong_there_is_an_error_here_and_the_agent_serves_on(
    stage: Stage, remote: RemoteConnection, items: list[Any], problem: str, kind: str
) -> None:
    thought = ThoughtEvent(content="hm", source="puppet")
    playing(stage, says(thought, *items))
    agent = await remote.agent("puppet")
    stream = agent.on_messages_stream([], CancellationToken())
    assert await anext(stream) == thought
    with pytest.raises(RemoteAgentError, match=re.escape(problem)) as caught:
        [item async for item in stream]
    assert caught.value.kind == kind
    assert caught.value.worker
    assert caught.value.worker in str(caught.value)
    stage.puppet.acts = says(Response(chat_message=text("better")))
    assert (await agent.run(task="Again.")).messages[-1].to_text() == "better"


@pytest.mark.parametrize("how", ["token", "task", "stream"])
async def test_however_a_turn_is_cancelled_here_it_is_cancelled_where_it_runs(
    stage: Stage, remote: RemoteConnection, how: str
) -> None:
    signals = Signals()
    playing(stage, signals)
    agent, token = await remote.agent("puppet"), CancellationToken()
    if how == "stream":
        async with aclosing(agent.on_messages_stream([], token)) as stream:
            await anext(stream)
            await signals.inside.wait()
    else:
        turn = asyncio.create_task(agent.run(task="Hello.", cancellation_token=token))
        await signals.inside.wait()
        (token if how == "token" else turn).cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert signals.cancelled.is_set()
    stage.puppet.acts = says(Response(chat_message=text("free again")))
    assert (await agent.run(task="Again.")).messages[-1].to_text() == "free again"
    if how == "token":  # which sends nothing any more
        with pytest.raises(asyncio.CancelledError):
            await agent.run(task="Hello.", cancellation_token=token)
    assert stage.puppet.done == ["turn", "turn"]


async def test_pause_resume_and_reset_reach_an_agent_in_its_turn(
    stage: Stage, remote: RemoteConnection
) -> None:
    signals = Signals()
    playing(stage, signals)
    agent = await remote.agent("puppet")
    turn = asyncio.create_task(agent.run(task="Hello."))
    await signals.inside.wait()
    await agent.on_pause(CancellationToken())
    await agent.on_resume(CancellationToken())
    await agent.on_reset(CancellationToken())
    with pytest.raises(RemoteAgentError, match="The agent was reset"):
        await turn
    assert stage.puppet.done == ["turn", "pause", "resume", "reset"]


async def test_state_is_the_agents_own_and_loads_here_and_there(
    stage: Stage, remote: RemoteConnection
) -> None:
    class Stateless(Puppet):
        async def save_state(self) -> Mapping[str, Any]:
            raise NotImplementedError("no state")

    agent = await remote.agent("puppet")
    await agent.run(task="Hello.")
    assert await agent.save_state() == {"seen": 1}
    await agent.load_state({"seen": 7})
    assert stage.puppet.state == {"seen": 7}
    await agent.on_reset(CancellationToken())
    assert await agent.save_state() == {"seen": 0}
    stage.puppet.state["seen"] = object()
    with pytest.raises(RemoteAgentError, match="what JSON cannot"):
        await agent.save_state()
    stage.next = Stateless
    with pytest.raises(RemoteAgentError, match="raised NotImplementedError: no state"):
        await (await remote.agent("puppet", key="other")).save_state()
