"""Workers and clients within one process, over real gRPC on the loopback."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from autogen_core import AgentId
from kits.remote_agents import Puppet

from coag.distributed import AgentPlace, RemoteConnection, RemoteLimits, connect, worker
from coag.distributed.protocol import BeginTurn, FollowTurn, TurnProgress

BRISK = RemoteLimits(patience=50.0, resend=0.5, poll=0.1, cancel=0.6)
"""A worker's: short where something is waited for in vain, long where it comes."""
TRUSTING = BRISK.model_copy(update={"cancel": 50.0})
"""A client's, whose worker is never gone."""
HASTY = RemoteLimits(patience=0.6, resend=0.2, poll=0.1)
"""Of a client that is connected already, and that nobody will answer."""


class Stage:
    """A host, and workers and clients that come as a test wants them; all end with it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.address = ""
        self.stack = stack
        self.puppets: dict[str, Puppet] = {}
        """Every puppet made so far, by its key; the last one where a key had several."""
        self.next: Callable[[], Puppet] = Puppet
        """What makes the next puppet."""

    def make(self, place: AgentPlace) -> Puppet:
        """A factory for workers."""
        made = self.puppets[place.key] = self.next()
        return made

    @property
    def puppet(self) -> Puppet:
        """The puppet of the default key."""
        return self.puppets["default"]

    async def serve(
        self, *types: str, limits: RemoteLimits = BRISK, **given: Any
    ) -> AsyncExitStack:
        """Starts a worker for puppets; what is returned ends it early."""
        own = await self.stack.enter_async_context(AsyncExitStack())
        agents = dict.fromkeys(types or ("puppet",), self.make)
        await own.enter_async_context(worker(self.address, agents, limits=limits, **given))
        return own

    async def connect(self, limits: RemoteLimits = TRUSTING) -> RemoteConnection:
        """Connects a client."""
        return await self.stack.enter_async_context(connect(self.address, limits=limits))


async def to_the_end(
    remote: RemoteConnection, target: AgentId, request: BeginTurn | FollowTurn
) -> list[TurnProgress]:
    """Follows a turn until its response; gives every answer."""
    answers: list[TurnProgress] = []
    turn = request.turn
    while not (answers and answers[-1].items and answers[-1].items[-1].response):
        answer = await remote.ask(target, request, TurnProgress)
        answers.append(answer)
        after = answer.first + len(answer.items)
        request = FollowTurn(turn=turn, epoch=answer.epoch, after=after)
    return answers
