"""What can be asked of the activities of an agent: to begin one, to wait, to wake, to end."""

from __future__ import annotations

from typing import Any

from coag.schema import Clock, Trust
from coag.situated import (
    OPEN_STATES,
    Activity,
    ActivityBudget,
    ActivityScheduler,
    ActivityStore,
    ToolPerception,
    activity_in,
)

from .goals import cancel_delegated


class ActivityControl:
    """The activities of a `SituatedAgent`, as its users and its tools see them."""

    clock: Clock
    budget: ActivityBudget
    """What one activity may use."""
    store: ActivityStore
    """The activities, and what they wait for."""
    scheduler: ActivityScheduler
    perception: ToolPerception

    @property
    def name(self) -> str:
        """The agent's name."""
        raise NotImplementedError

    def add_goal(
        self,
        goal: str,
        *,
        source: str = "user",
        trust: Trust = Trust.USER,
        priority: int = 0,
        parent: str | None = None,
        activity_id: str | None = None,
    ) -> Activity:
        """Begins an activity; with an id that there is already, that one is given back.

        Raises:
            ValueError: The goal is empty.
        """
        if not goal.strip():
            raise ValueError("The goal is empty: say what is to be reached.")
        now = self.clock.now()
        about: dict[str, Any] = {"source": source, "trust": trust, "priority": priority}
        about |= {"created": now, "updated": now, "budget": self.budget, "parent": parent}
        with self.store.together():  # no other worker takes the id in between
            if activity_id is not None and (known := self.store.get(activity_id)) is not None:
                return known
            activity_id = activity_id or self.store.new_id()
            activity = Activity(id=activity_id, agent=self.name, goal=goal, **about)
            self.scheduler.add(activity)
        return activity

    async def ended(self, activity_id: str) -> Activity:
        """Waits until an activity has ended.

        Raises:
            UnknownNameError: There is no such activity.
        """
        self.activity(activity_id)
        return await self.scheduler.ended(activity_id)

    def activity(self, activity_id: str) -> Activity:
        """An activity as it is now.

        Raises:
            UnknownNameError: There is no such activity.
        """
        return activity_in(self.store, activity_id)

    def open_activities(self) -> list[Activity]:
        """The activities that have not ended."""
        return self.store.find(*OPEN_STATES)

    async def cancel(
        self, activity_id: str, reason: str = "It was cancelled.", *, delegated: bool = False
    ) -> None:
        """Ends an activity, whatever it does; with `delegated` what it gave other agents, too.

        Raises:
            UnknownNameError: There is no such activity.
            ToolConnectionError: Another agent's server did not answer; the activity has ended.
        """
        self.activity(activity_id)
        await self.scheduler.cancel(activity_id, reason)
        if delegated:
            await cancel_delegated(self.perception, activity_id, reason)

    def wake(self, activity_id: str) -> None:
        """Wakes an activity that waits, before what it waits for has arrived.

        Raises:
            UnknownNameError: There is no such activity.
        """
        self.activity(activity_id)
        self.scheduler.wake(activity_id)
