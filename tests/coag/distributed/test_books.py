"""What a worker keeps of turns, places, processes and requests, within bounds."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from autogen_agentchat.base import ChatAgent
from kits.remote_agents import Puppet

from coag.distributed import AgentPlace, RemoteLimits
from coag.distributed.hosted import HostedTurn, TurnBook, TurnStream
from coag.distributed.places import _file_name  # pyright: ignore[reportPrivateUsage] - one rule
from coag.distributed.processes import (
    Processes,
    _environment,  # pyright: ignore[reportPrivateUsage] - what every process is given
)
from coag.distributed.protocol import (
    MessageCodec,
    Operation,
    RemoteFailure,
    RequestFailed,
    StillWorking,
)
from coag.distributed.service import AgentService
from coag.errors import ConfigurationError

LATE = RemoteFailure(kind="cancelled", problem="It was late.")


def turn(name: str, limits: RemoteLimits, *, over: bool = True) -> HostedTurn:
    made = HostedTurn(name, "epoch", MessageCodec(), limits, lambda turn: None)
    if over:
        made.end(failure=LATE)
    return made


def test_of_very_many_turns_not_even_the_ids_are_kept() -> None:
    limits = RemoteLimits(turns_kept=2, ids_kept=3)
    book = TurnBook(limits)
    for number in range(7):
        book.add(turn(f"turn-{number}", limits))
    known = {n: book.why_unknown(f"turn-{n}") is not None for n in range(7)}
    assert [n for n, forgotten in known.items() if forgotten] == [2, 3, 4]
    assert [n for n in range(7) if book.find(f"turn-{n}")] == [5, 6]


def test_the_turn_that_was_added_last_is_kept_even_where_others_run() -> None:
    limits = RemoteLimits(turns_kept=1, cancel=0.05)
    book = TurnBook(limits)

    async def for_ever() -> TurnStream:
        await asyncio.Event().wait()
        raise AssertionError
        yield

    async def run() -> None:
        running = turn("running", limits, over=False)
        running.begin(lambda token: for_ever())
        book.add(running)
        book.add(turn("last", limits))
        assert book.find("running") is running
        assert book.find("last") is not None
        await running.cancel("The test is over.")

    asyncio.run(run())


async def test_a_turn_that_is_over_is_not_cancelled_any_more() -> None:
    over = turn("over", RemoteLimits())
    await over.cancel("Too late.")
    assert over.failure == LATE


def test_a_long_key_is_a_short_name_that_no_other_key_has() -> None:
    long = "key/" * 100
    name = _file_name(long)
    assert len(name) < 200
    assert "/" not in name
    assert name != _file_name(long + "x")
    assert _file_name("../short") == "%2E%2E%2Fshort"


def test_processes_find_modules_where_this_one_does_and_in_further_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    assert _environment([tmp_path])["PYTHONPATH"] == os.pathsep.join([str(tmp_path), "mine"])
    monkeypatch.delenv("PYTHONPATH")
    assert "PYTHONPATH" not in _environment([])


async def test_two_workers_of_one_type_are_refused(tmp_path: Path) -> None:
    running = Processes(tmp_path, dict(os.environ), {})
    try:
        await running._spawn("a", ["true"])  # pyright: ignore[reportPrivateUsage] - no host is needed
        with pytest.raises(ConfigurationError, match="'a' runs already"):
            await running._spawn("a", ["true"])  # pyright: ignore[reportPrivateUsage] - as above
    finally:
        await running.end()


async def test_a_service_that_is_closed_while_an_agent_is_made_makes_none_and_says_why() -> None:
    begun, made = asyncio.Event(), list[ChatAgent]()

    async def slow(place: AgentPlace) -> ChatAgent:
        del place
        begun.set()
        await asyncio.Event().wait()
        made.append(Puppet())
        return made[0]

    brisk = RemoteLimits(patience=1.0, resend=0.5, poll=0.01)
    service = AgentService(AgentPlace(type="puppet", key=""), slow, MessageCodec(), brisk, "w")
    assert isinstance(await service._answer("a", "1", Operation(op="describe")), StillWorking)  # pyright: ignore[reportPrivateUsage] - without a wire
    await begun.wait()
    await service.close()
    assert made == []
    refused = await service._answer("a", "2", Operation(op="describe"))  # pyright: ignore[reportPrivateUsage] - without a wire
    assert isinstance(refused, RequestFailed)
    assert "shutting down" in refused.failure.problem
