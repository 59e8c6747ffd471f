"""Activities for tests, and a mind whose steps wait until the test gives their results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from kits.minds import NOW
from kits.waiting import until

from coag.schema import Percept, PerceptKind, Trust
from coag.situated import (
    Activity,
    ActivityStore,
    OnSignal,
    SignalRecord,
    Step,
    Wait,
)


def an_activity(name: str = "a", **changes: Any) -> Activity:
    """An activity that is ready."""
    values: dict[str, Any] = {
        "agent": "agent",
        "goal": f"goal of {name}",
        "created": NOW,
        "updated": NOW,
    }
    return Activity(id=name, **{**values, **changes})


def a_wait(
    signal: str = "pump.ready", *, since: datetime = NOW, seconds: float | None = None
) -> Wait:
    """A wait for a signal of the pump, with a deadline so many seconds later."""
    deadline = None if seconds is None else since + timedelta(seconds=seconds)
    return Wait(condition=OnSignal(tool="pump", name=signal), since=since, deadline=deadline)


def a_signal(number: int, name: str = "pump.ready", tool: str = "pump", **data: Any) -> Percept:
    """A signal of a tool, as it comes into an inbox."""
    record = SignalRecord(
        event_id=f"{tool}/e1/{number}",
        name=name,
        timestamp=NOW,
        data=data,
        cursor=f"e1:{number}",
        rev=number,
    )
    return a_percept(PerceptKind.SIGNAL, record.event_id, tool, data=record.model_dump(mode="json"))


def a_percept(kind: PerceptKind, name: str, source: str = "pump", **changes: Any) -> Percept:
    """Any percept."""
    return Percept(
        id=name, at=NOW, kind=kind, source=source, trust=Trust.UNTRUSTED, content=name, **changes
    )


class HeldSteps:
    """An `ActivityMind` that perceives its inbox, and then waits until the test ends the step."""

    def __init__(self, store: ActivityStore) -> None:
        self._store = store
        self.held: dict[str, asyncio.Future[Step]] = {}
        """The steps that run."""
        self.began: list[str] = []
        self.released: list[str] = []
        self.perceived: dict[str, list[Percept]] = {}
        self.begins: Callable[[Activity, list[Percept]], None] = lambda activity, percepts: None
        """Called with what a step perceives."""

    async def step(self, activity: Activity) -> Step:
        assert activity.id not in self.held, "two workers have one activity"
        self.began.append(activity.id)
        percepts = [entry.percept for entry in self._store.inbox(activity.id)]
        self._store.forget(activity.id, [percept.id for percept in percepts])
        self.perceived.setdefault(activity.id, []).extend(percepts)
        self.begins(activity, percepts)
        future = self.held[activity.id] = asyncio.get_running_loop().create_future()
        try:
            return await future
        finally:
            del self.held[activity.id]

    async def release(self, activity_id: str) -> None:
        self.released.append(activity_id)

    async def ends(self, activity_id: str, step: Step | BaseException | None = None) -> None:
        """Lets the step of an activity begin if need be, and end so; None: it continues."""
        await until(lambda: activity_id in self.held)
        future = self.held[activity_id]
        if isinstance(step, BaseException):
            future.set_exception(step)
        else:
            future.set_result(step or Step())
        await until(lambda: self.held.get(activity_id) is not future)
        await settled()


async def settled() -> None:
    """Lets other tasks run: all that can happen without time passing has happened then."""
    for _ in range(10):
        await asyncio.sleep(0)
