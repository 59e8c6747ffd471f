"""A server on this machine, examined through the client that agents would use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest
from kits.fake_server import Behaviour, FakeServer
from kits.model_servers import sound

from coag.doctor import ProbeLimits, Report, examine
from coag.models import open_model

Examined = Callable[..., Awaitable[Report]]


@pytest.fixture
def ward() -> Iterator[FakeServer]:
    """A server that behaves well until a test says otherwise."""
    with FakeServer(sound()) as fake:
        yield fake


@pytest.fixture
def examined(ward: FakeServer) -> Examined:
    """Examines the server as it behaves then."""

    async def examination(
        behave: Behaviour, *, max_tokens: int = 256, seconds: float = 60.0
    ) -> Report:
        ward.behave = behave
        client = open_model(f"{ward.url}/v1#tiny")
        limits = ProbeLimits(context=2_500, max_tokens=max_tokens, seconds=seconds)
        try:
            return await examine(client, limits=limits)
        finally:
            await client.close()

    return examination
