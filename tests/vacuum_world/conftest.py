from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from coag._util.sockets import reserved_port
from vacuum_world.server import WorldServer
from vacuum_world.world import (
    STILL,
    Cell,
    Dynamics,
    Gadget,
    Obstacle,
    Spawn,
    TickMode,
    WorldState,
    join,
    seeded_streams,
)

QUICK_CHARGE = Gadget(
    name="quick_charge", promise="Restores 40 battery at once.", cost=10, admits=False
)
"""A gadget that reports success and only takes charge."""

MakeWorld = Callable[..., WorldState]


@pytest.fixture
def make_world() -> MakeWorld:
    """Builds a still 5x5 world with one robot, `r1`, where it is wanted."""

    def build(
        *,
        at: Cell = (2, 2),
        battery: int = 100,
        dirty: tuple[Cell, ...] = (),
        obstacles: tuple[Obstacle, ...] = (),
        dynamics: Dynamics = STILL,
        ticks: TickMode = "action",
        seed: int = 0,
    ) -> WorldState:
        empty = WorldState(
            seed=seed,
            dynamics=dynamics,
            dirty=dirty,
            obstacles=obstacles,
            ticks=ticks,
            streams=seeded_streams(seed),
            spawn=Spawn(position=at, battery=battery),
        )
        return join(empty, "ann").state

    return build


def _still() -> WorldState:
    return WorldState(
        seed=0,
        dynamics=STILL,
        dirty=((0, 1), (1, 0)),
        obstacles=(Obstacle(cell=(2, 0)),),
        gadgets=(QUICK_CHARGE,),
        streams=seeded_streams(0),
    )


@pytest.fixture
def served() -> Iterator[WorldServer]:
    """A still world behind HTTP: dirt on (0,1) and (1,0), an obstacle on (2,0), a gadget.

    Nobody else is found at its address, also where it was stopped.
    """
    with reserved_port() as port, WorldServer(_still(), port=port) as server:
        yield server


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[WorldServer, httpx.Client]]:
    """The same with its client, for all tests of a file whose requests change nothing of it."""
    with (
        WorldServer(_still()) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        yield server, client


@pytest.fixture
def http(served: WorldServer) -> Iterator[httpx.Client]:
    """A plain HTTP client of the served world."""
    with httpx.Client(base_url=served.url, trust_env=False) as client:
        yield client
