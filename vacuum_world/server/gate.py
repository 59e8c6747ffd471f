"""The gate that every action passes: open, or shut while the world is paused.

An action that is held back has not begun. It is carried out once, when it is let through, in
the order of arrival; or it is withdrawn, and then it never is. Nothing is in between.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from starlette.requests import Request

from vacuum_world.errors import WorldError
from vacuum_world.showing import Pace, PaceChange
from vacuum_world.world import LoggedAction

MOST_STEPS = 1000
"""Steps that can be saved up."""
WAIT = 5
"""Seconds that an action is held back at most where its request names none."""
LONGEST_WAIT = 600
"""Seconds that a request may ask for."""
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,9})\"?\s*(?:$|[,;])", re.IGNORECASE)

Act = Callable[[], LoggedAction]


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    robot: str
    act: Act
    done: Future[LoggedAction] = field(default_factory=Future[LoggedAction])

    def carry_out(self) -> bool:
        """Does it, unless it was withdrawn; whether it was done."""
        if not self.done.set_running_or_notify_cancel():
            return False
        try:
            result = self.act()
        except (WorldError, OSError) as error:
            self.done.set_exception(error)
        else:
            self.done.set_result(result)
        return True


class Gate:
    """Lets actions through at the experimenter's pace; only in the thread that serves.

    Args:
        on_change: Called after every change of the pace.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self._held: deque[_Held] = deque()
        self._paused = False
        self._closed = False
        self._steps = 0
        self._turning: set[asyncio.Event] = set()
        self.interval = 1.0
        """Seconds between ticks where time passes by the clock."""

    @property
    def pace(self) -> Pace:
        """The pace now."""
        return Pace(
            paused=self._paused,
            steps=self._steps,
            interval=self.interval,
            waiting=tuple(each.robot for each in self._held),
        )

    def submit(self, robot: str, act: Act) -> Future[LoggedAction]:
        """Carry an action out, now or when it is let through.

        Returns:
            Its outcome: its result, the error it ended with, or, where it was withdrawn,
            nothing (the future is cancelled).
        """
        held = _Held(robot, act)
        if not self._paused or self._steps:
            self._steps = max(0, self._steps - 1)
            held.carry_out()
        elif self._closed:
            held.done.cancel()
        else:
            self._held.append(held)
            self._on_change()
        return held.done

    def withdraw(self, done: Future[LoggedAction]) -> bool:
        """Take an action back that has not begun; whether it never was and never will be."""
        if done.cancelled():
            return True
        if not done.cancel():
            return False
        self._held = deque(each for each in self._held if each.done is not done)
        self._on_change()
        return True

    def change(self, wish: PaceChange) -> None:
        """Pause, resume, or change the clock's speed; resuming lets all waiting actions through."""
        if wish.interval is not None:
            self.interval = wish.interval
        if wish.paused is not None and wish.paused != self._paused:
            self._paused, self._steps = wish.paused, 0
        if not self._paused:
            self._let_through(len(self._held))
        for turned in self._turning:
            turned.set()
        self._on_change()

    async def next_change(self) -> None:
        """Waits until somebody pauses, resumes, or changes the clock's speed."""
        turned = asyncio.Event()
        self._turning.add(turned)
        try:
            await turned.wait()
        finally:
            self._turning.discard(turned)

    def step(self, count: int) -> None:
        """Let so many actions through while paused: those that wait, then those that come."""
        if not self._paused:
            return
        left = count - self._let_through(count)
        self._steps = min(MOST_STEPS, self._steps + left)
        self._on_change()

    def close(self) -> None:
        """Withdraw what waits, and hold nothing from now on: the server stops."""
        self._closed = True
        while self._held:
            self._held.popleft().done.cancel()

    def open(self) -> None:
        """Hold actions again, after `close`."""
        self._closed = False

    def _let_through(self, count: int) -> int:
        done = 0
        while self._held and done < count:
            done += self._held.popleft().carry_out()
        return done

    async def wait_for(self, request: Request, robot: str, act: Act) -> LoggedAction | None:
        """Carries out a request's action, at once or when the pause lets it through.

        Returns:
            The result; None where the world stayed paused for as long as the caller waits (the
            header `Prefer: wait=SECONDS`, RFC 7240), or the caller has gone: the action was not
            carried out and will not be.
        """
        done = self.submit(robot, act)
        if not done.done():
            try:
                await _settled(request, done)
            finally:
                self.withdraw(done)
        return None if done.cancelled() else done.result()


def wait_of(request: Request) -> int:
    """Seconds that the caller is ready to wait, from `Prefer: wait=SECONDS`."""
    preference = _WAIT.search(request.headers.get("prefer", ""))
    return min(int(preference[1]), LONGEST_WAIT) if preference else WAIT


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
