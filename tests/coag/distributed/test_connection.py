"""What happens on the way: losses, repetitions, other versions, nobody there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import AgentId, CancellationToken, SingleThreadedAgentRuntime, TopicId
from kits.remote_agents import Puppet, Yielded
from kits.remote_stage import BRISK, HASTY, Stage, to_the_end
from pydantic import ValidationError

from coag.distributed import (
    AgentPlace,
    RemoteConnection,
    RemoteLimits,
    open_connection,
    serve_agent,
)
from coag.distributed.protocol import (
    AgentDescription,
    BeginTurn,
    CoagAnswer,
    CoagRequest,
    FollowTurn,
    MessageCodec,
    Operation,
    OperationDone,
    RequestFailed,
    StillWorking,
    TurnProgress,
    body_of,
    read_answer,
)
from coag.distributed.service import AgentService
from coag.errors import ConfigurationError, RemoteAgentError

TARGET = AgentId("puppet", "default")


async def instance_of(remote: RemoteConnection) -> str:
    there = await remote.ask(TARGET, Operation(op="describe"), AgentDescription)
    return there.instance


def hello(turn: str, instance: str) -> BeginTurn:
    message = TextMessage(content="Hello.", source="user")
    dumped = {"type": "TextMessage", "message": dict(message.dump())}
    return BeginTurn(turn=turn, instance=instance, messages=(dumped,))


async def test_the_same_turn_sent_again_gives_the_same_and_does_not_run_again(
    stage: Stage, remote: RemoteConnection
) -> None:
    begin = hello("turn-1", await instance_of(remote))
    first = (await to_the_end(remote, TARGET, begin))[-1]
    again = (await to_the_end(remote, TARGET, begin))[-1]
    assert again.items[-1] == first.items[-1]
    assert stage.puppet.done == ["turn"]


async def test_a_turn_older_than_those_kept_is_refused_and_does_not_run_again(
    stage: Stage,
) -> None:
    await stage.serve(limits=BRISK.model_copy(update={"turns_kept": 2, "ids_kept": 2}))
    remote = await stage.connect()
    instance = await instance_of(remote)
    turns = [hello(f"turn-{n}", instance) for n in range(5)]
    for turn in turns:
        await to_the_end(remote, TARGET, turn)
    for number, kind in enumerate(["lost", "forgotten", "forgotten"]):
        follow = FollowTurn(turn=f"turn-{number}", epoch="", after=0)
        with pytest.raises(RemoteAgentError) as caught:
            await remote.ask(TARGET, follow, TurnProgress)
        assert caught.value.kind == kind
    with pytest.raises(RemoteAgentError, match="not run again"):
        await remote.ask(TARGET, turns[1], TurnProgress)
    await remote.ask(TARGET, Operation(op="cancel", turn="turn-1"), OperationDone)
    await to_the_end(remote, TARGET, turns[-1])
    assert stage.puppet.done == ["turn"] * 5


async def test_a_turn_that_is_cancelled_before_it_arrives_does_not_run(
    stage: Stage, remote: RemoteConnection
) -> None:
    instance = await instance_of(remote)
    await remote.ask(TARGET, Operation(op="cancel", turn="turn-1"), OperationDone)
    with pytest.raises(RemoteAgentError, match="Before it began"):
        await remote.ask(TARGET, hello("turn-1", instance), TurnProgress)
    assert stage.puppet.done == []


async def test_a_turn_that_nobody_asks_about_is_cancelled_when_its_lease_ends(
    stage: Stage,
) -> None:
    ended = asyncio.Event()

    async def sleep(
        messages: Sequence[BaseChatMessage], token: CancellationToken
    ) -> AsyncGenerator[Yielded, None]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        yield TextMessage(content=f"{messages} {token}", source="puppet")

    stage.next = lambda: Puppet(sleep)
    await stage.serve(limits=BRISK.model_copy(update={"lease": 0.3, "cancel": 0.1}))
    remote = await stage.connect()
    begin = hello("turn-1", await instance_of(remote))
    await remote.ask(TARGET, begin, TurnProgress)
    await ended.wait()
    with pytest.raises(RemoteAgentError, match=r"Nobody had asked after the turn for 0\.3 s"):
        await remote.ask(TARGET, begin, TurnProgress)


class Lossy(SingleThreadedAgentRuntime):
    """Loses the first answer to every request, and brings the others twice."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    async def publish_message(
        self,
        message: Any,
        topic_id: TopicId,
        *,
        sender: AgentId | None = None,
        cancellation_token: CancellationToken | None = None,
        message_id: str | None = None,
    ) -> None:
        times = 1
        if isinstance(message, CoagAnswer):
            times = 2 if message.id in self.seen else 0
            self.seen.add(message.id)
        for _ in range(times):
            await super().publish_message(message, topic_id, sender=sender)


async def test_answers_that_are_lost_or_come_twice_change_nothing(stage: Stage) -> None:
    runtime = Lossy()
    runtime.start()
    limits = BRISK.model_copy(update={"resend": 0.2, "poll": 0.1})
    service = await serve_agent(runtime, "puppet", stage.make, limits=limits)
    remote = await open_connection(runtime, limits=limits)
    agent = await remote.agent("puppet")
    result = await agent.run(task="Hello.")
    assert [type(m).__name__ for m in result.messages] == [
        "TextMessage",
        "ThoughtEvent",
        "TextMessage",
    ]
    await agent.on_reset(CancellationToken())
    assert stage.puppet.done == ["turn", "reset"]
    await remote.close()
    await service.close()
    await runtime.stop()


async def test_nobody_there_is_an_error_in_time(stage: Stage) -> None:
    remote = await stage.connect()
    remote.limits = HASTY
    with pytest.raises(RemoteAgentError, match=r"no sign of life for 0\.6 s.*serves 'ghost'"):
        await remote.agent("ghost")


@pytest.mark.parametrize(
    ("version", "kind", "problem"),
    [(2, "version", "speaks version 2 of the protocol, this one 1"), (1, "raised", "teleport")],
)
async def test_a_request_of_another_version_and_one_that_is_none_are_answered_with_an_error(
    remote: RemoteConnection, version: int, kind: str, problem: str
) -> None:
    mailbox = remote._mailbox  # pyright: ignore[reportPrivateUsage] - no client of ours sends this
    envelope = CoagRequest(v=version, id="1", reply_to=mailbox, body='{"op": "teleport"}')
    failed = read_answer(await remote._exchange(TARGET, envelope))  # pyright: ignore[reportPrivateUsage]
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind == kind
    assert problem in failed.failure.problem


async def test_an_answer_of_another_version_is_an_error_that_says_so(
    stage: Stage, remote: RemoteConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer(**fields: Any) -> CoagAnswer:
        return CoagAnswer(v=2, **fields)

    monkeypatch.setattr("coag.distributed.service.CoagAnswer", newer)
    with pytest.raises(RemoteAgentError, match="speaks version 2") as caught:
        await remote.agent("puppet")
    assert caught.value.kind == "version"


async def test_two_clients_that_ask_one_worker_at_once_get_each_their_own_answers(
    stage: Stage, remote: RemoteConnection
) -> None:
    other = await stage.connect()
    agents = [
        await connection.agent("puppet", key=f"{key}")
        for key, connection in enumerate([remote, other] * 5)
    ]
    results = await asyncio.gather(*(a.run(task=f"I am {n}.") for n, a in enumerate(agents)))
    assert [r.messages[-1].to_text() for r in results] == [f"I am {n}." for n in range(10)]


async def test_a_closed_connection_says_so(stage: Stage, remote: RemoteConnection) -> None:
    agent = await remote.agent("puppet")
    await remote.close()
    with pytest.raises(ConfigurationError, match="The connection is closed"):
        await agent.run(task="Hello.")


async def test_more_agents_than_the_limit_are_refused_until_one_is_closed(stage: Stage) -> None:
    await stage.serve(limits=BRISK.model_copy(update={"agents": 1}))
    remote = await stage.connect()
    first = await remote.agent("puppet", key="a")
    await first.run(task="Hello.")
    with pytest.raises(RemoteAgentError, match="serves 1 agents of this type already") as caught:
        await remote.agent("puppet", key="b")
    assert caught.value.kind == "refused"


def test_waits_that_would_take_a_busy_worker_for_a_dead_one_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"poll \(5\.0\) must be below resend"):
        RemoteLimits(poll=5.0)


async def test_a_factory_is_served_by_its_name_too() -> None:
    runtime = SingleThreadedAgentRuntime()
    runtime.start()
    service = await serve_agent(runtime, "puppet", "kits.remote_agents:puppet", limits=BRISK)
    remote = await open_connection(runtime, limits=BRISK)
    assert (await remote.agent("puppet")).name == "puppet"
    await remote.close()
    await service.close()
    await runtime.stop()


async def test_a_service_that_is_closed_while_an_agent_is_made_makes_none_and_says_why() -> None:
    begun, made = asyncio.Event(), list[Puppet]()

    async def slow(place: AgentPlace) -> Puppet:
        begun.set()
        await asyncio.Event().wait()
        made.append(Puppet(name=place.key))
        return made[0]

    limits = RemoteLimits(patience=1.0, resend=0.5, poll=0.01)
    service = AgentService(AgentPlace(type="puppet", key=""), slow, MessageCodec(), limits)
    request = CoagRequest(id="1", reply_to="", body=body_of(Operation(op="describe")))
    assert read_answer(await service.answer("a", request)) == StillWorking()
    await begun.wait()
    await service.close()
    assert made == []
    refused = read_answer(await service.answer("a", request))
    assert isinstance(refused, RequestFailed)
    assert "shutting down" in refused.failure.problem
