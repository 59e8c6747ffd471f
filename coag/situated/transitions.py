"""What is stored when an activity goes from one state into another: one transaction each."""

from __future__ import annotations

from collections.abc import Sequence

from coag.schema import Clock

from .activities import Activity, ActivityEnd, ActivityState, OnActivity, Wait
from .listeners import Listeners
from .queues import Parked
from .store import ActivityStore
from .store_inboxes import Delivery
from .waking import end_percept, ends_wait, time_out_percept


class Transitions:
    """Stores how activities go on, with the percepts that come of it, and tells who watches."""

    def __init__(self, store: ActivityStore, clock: Clock, listeners: Listeners) -> None:
        self._store = store
        self._clock = clock
        self._listeners = listeners

    def known(self, activity_id: str) -> Activity:
        """The activity as it is stored.

        Raises:
            ValueError: There is none with this id.
        """
        if (activity := self._store.get(activity_id)) is None:
            raise ValueError(f"There is no activity {activity_id!r}.")
        return activity

    def to(
        self,
        state: ActivityState,
        activity: Activity,
        wait: Wait | None = None,
        end: ActivityEnd | None = None,
        result: str = "",
    ) -> Activity:
        """The activity in another state."""
        changes = {"state": state, "wait": wait, "end": end, "result": result}
        activity = activity.model_copy(update={**changes, "updated": self._clock.now()})
        self._store.save(activity)
        self._listeners.changed(activity)
        return activity

    def block(self, activity: Activity, wait: Wait) -> Parked | None:
        """Blocks an activity; makes it ready, and gives None, where what it waits for is there."""
        with self._store.together():  # nothing comes in between, also of other workers
            entries = self._store.inbox(activity.id)
            there = any(ends_wait(wait, entry.percept) for entry in entries)
            if there or self._is_over(activity.id, wait):
                self.to(ActivityState.READY, activity)
                return None
            self.to(ActivityState.BLOCKED, activity, wait)
        return Parked(
            activity.priority,
            wait.condition.activity if isinstance(wait.condition, OnActivity) else None,
            wait.deadline.timestamp() if wait.deadline is not None else None,
            entries[-1].number if entries else 0,
        )

    def _is_over(self, waiter: str, wait: Wait) -> bool:
        """Whether the activity that is waited for has ended or never was; then it is told so."""
        if not isinstance(wait.condition, OnActivity):
            return False
        awaited = wait.condition.activity
        activity = self._store.get(awaited)
        if activity is not None and not activity.over:
            return False
        said = end_percept(awaited, activity, self._clock.now())
        self._store.deliver(None, None, [Delivery(waiter, said)])
        return True

    def is_met(self, activity_id: str, parked: Parked) -> bool:
        """Whether something that came into its inbox ends the wait of a blocked activity."""
        entries = self._store.inbox(activity_id, after=parked.seen)
        if not entries:
            return False
        parked.seen = entries[-1].number
        wait = self._store.wait_of(activity_id)
        return wait is not None and any(ends_wait(wait, entry.percept) for entry in entries)

    def wake(self, activity_ids: Sequence[str]) -> None:
        """Makes blocked activities ready."""
        self._store.wake(activity_ids, self._clock.now())
        self._woken(activity_ids)

    def time_out(self, activity_ids: Sequence[str]) -> None:
        """Makes blocked activities ready, with a percept that says that their deadline passed."""
        now = self._clock.now()
        with self._store.together():
            for one in activity_ids:
                if (wait := self._store.wait_of(one)) is not None:
                    number = self._store.count_time_out(one)
                    late = Delivery(one, time_out_percept(one, number, wait, now))
                    self._store.deliver(None, None, [late])
            self._store.wake(activity_ids, now)
        self._woken(activity_ids)

    def finish(
        self, activity: Activity, end: ActivityEnd, result: str, waiters: Sequence[str]
    ) -> Activity:
        """Ends an activity; its parent and those that wait for it perceive that.

        Those of this worker wake at once, others when their worker looks at their inbox.
        """
        with self._store.together():
            over = self.to(ActivityState.TERMINATED, activity, end=end, result=result)
            now = self._clock.now()
            said = end_percept(activity.id, over, now)
            others = self._store.waiters(activity.id)
            told = dict.fromkeys(filter(None, [activity.parent, *others]))
            self._store.deliver(None, None, [Delivery(one, said) for one in told])
            self._store.wake(waiters, now)
        self._woken(waiters)
        return over

    def _woken(self, activity_ids: Sequence[str]) -> None:
        if self._listeners:
            for one in activity_ids:
                self._listeners.changed(self.known(one))
