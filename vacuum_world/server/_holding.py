"""An action's request while the world is paused: how long it waits, and what it is told."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import Future

from starlette.requests import Request

from vacuum_world.world import LoggedAction

from ._gate import Act
from ._problems import Problem
from ._requests import hub_of

WAIT = 5
"""Seconds that an action is held back at most where its request names none."""
LONGEST_WAIT = 600
"""Seconds that a request may ask for."""

_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,9})\"?\s*(?:$|[,;])", re.IGNORECASE)


def wait_of(request: Request) -> int:
    """Seconds that the caller is ready to wait, from `Prefer: wait=SECONDS` (RFC 7240)."""
    found = _WAIT.search(request.headers.get("prefer", ""))
    return min(int(found[1]), LONGEST_WAIT) if found else WAIT


async def pass_gate(request: Request, robot: str, act: Act) -> LoggedAction:
    """Carry an action out, at once or when the pause lets it through.

    Raises:
        Problem: 503, the world stayed paused for as long as the caller waits, or the caller has
            gone; the action was not carried out and will not be.
    """
    gate = hub_of(request).gate
    done = gate.submit(robot, act)
    if not done.done():
        try:
            await _settled(request, done)
        finally:
            gate.withdraw(done)
    if done.cancelled():
        raise Problem(
            503,
            "paused",
            f"the world is paused, and stayed so for the {wait_of(request)} s that the request "
            "waits; nothing was done and nothing will be: ask again",
        )
    return done.result()


async def _settled(request: Request, done: Future[LoggedAction]) -> None:
    """Waits until it is done, the caller's patience is at its end, or the caller has gone."""
    woken = asyncio.Event()
    done.add_done_callback(lambda _: woken.set())
    waits = {asyncio.ensure_future(woken.wait()), asyncio.ensure_future(_gone(request))}
    try:
        await asyncio.wait(waits, timeout=wait_of(request), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.wait(waits)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
