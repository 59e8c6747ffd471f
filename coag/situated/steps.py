"""One step of an activity: what it comes to, also when it raises or is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from coag.errors import ConfigurationError
from coag.schema import one_line

from .activities import Activity, ActivityEnd, Step

_SHOWN = 2_000
"""Characters of an error that are kept."""


class ActivityMind(Protocol):
    """What pursues activities: it does one step of one when it is asked to."""

    async def step(self, activity: Activity) -> Step:
        """Does one step: at most one external action. What it perceives leaves the inbox."""
        ...

    async def release(self, activity_id: str) -> None:
        """Lets go of an activity that has ended."""
        ...


class StepDelayedError(Exception):
    """A step cannot begin yet, through nobody's fault: it counts neither as a try nor as a step."""


class Pause(NamedTuple):
    """A step raised, and is tried again."""

    seconds: float
    tried: bool = True
    """False if the step has not begun."""


class StepRunner:
    """Does steps of activities by a mind, and turns errors and cancellation into what they mean.

    Args:
        mind: Does the steps.
        tries: How many times in a row a step of an activity may raise before the activity fails.
        pause: Seconds before the second try; each further pause is twice as long.
    """

    def __init__(self, mind: ActivityMind, tries: int, pause: float) -> None:
        self._mind = mind
        self._tries = tries
        self._pause = pause
        self._failures: dict[str, int] = {}
        self._cancelled: dict[str, str] = {}

    def cancel(self, activity_id: str, reason: str, task: asyncio.Task[None]) -> None:
        """Cancels the step that a task does, once; the activity ends with the reason."""
        if activity_id not in self._cancelled:
            self._cancelled[activity_id] = reason
            task.cancel()

    def cancelled(self, activity_id: str) -> Step | None:
        """The end of an activity whose step was cancelled for good; given once."""
        reason = self._cancelled.pop(activity_id, None)
        return None if reason is None else Step(end=ActivityEnd.CANCELLED, result=reason)

    async def do(self, activity: Activity) -> Step | Pause:
        """Does one step.

        Raises:
            asyncio.CancelledError: The task was cancelled, and the activity was not.
        """
        longest = activity.budget.step_seconds
        limit = asyncio.timeout(longest)
        try:
            async with limit:
                step = await self._mind.step(activity)
        except asyncio.CancelledError as error:
            if (end := self.cancelled(activity.id)) is not None:
                return end
            if _is_cancelled():
                raise
            return self._failed(activity.id, error)  # nobody cancelled: a fault of the mind
        except StepDelayedError:
            return self.cancelled(activity.id) or Pause(self._pause, tried=False)
        except ConfigurationError as error:  # no try would come to anything else
            return self.cancelled(activity.id) or self._given_up(activity.id, error, 1)
        except Exception as error:  # the mind and its model are foreign code
            late = TimeoutError(f"it took longer than the {longest} s of its budget")
            raised = late if limit.expired() else error
            return self.cancelled(activity.id) or self._failed(activity.id, raised)
        self._failures.pop(activity.id, None)
        end = self.cancelled(activity.id)  # it was cancelled, and went on all the same
        return end if end is not None and step.end is None else step

    def forget(self, activity_id: str) -> None:
        """An activity is over."""
        self._failures.pop(activity_id, None)

    def _failed(self, activity_id: str, error: BaseException) -> Step | Pause:
        count = self._failures[activity_id] = self._failures.get(activity_id, 0) + 1
        if count < self._tries:
            return Pause(self._pause * 2 ** (count - 1))
        return self._given_up(activity_id, error, count)

    def _given_up(self, activity_id: str, error: BaseException, count: int) -> Step:
        self.forget(activity_id)
        said = one_line(f"{type(error).__name__}: {error}", _SHOWN)
        times = "once" if count == 1 else f"{count} times in a row"
        return Step(end=ActivityEnd.FAILED, result=f"A step failed {times}: {said}")


def _is_cancelled() -> bool:
    """Whether somebody cancelled the task that runs."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def all_of(tasks: Iterable[asyncio.Task[None] | None], seconds: float) -> None:
    """Waits until these tasks, where there are any, have ended, however they end; not longer."""
    if waited := set(filter(None, tasks)):
        await asyncio.wait(waited, timeout=seconds)


class Releases:
    """Has a mind let go of activities that have ended, beside what else goes on.

    Args:
        mind: Lets go of them.
    """

    def __init__(self, mind: ActivityMind) -> None:
        self._mind = mind
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, activity_id: str) -> None:
        """Lets go of an activity."""
        task = asyncio.create_task(self._release(activity_id), name=f"release {activity_id}")
        self._tasks[activity_id] = task

    async def done(self, seconds: float, *activity_ids: str) -> None:
        """Waits until the mind has let go of these activities, of all if none is given."""
        await all_of(map(self._tasks.get, activity_ids or list(self._tasks)), seconds)

    async def _release(self, activity_id: str) -> None:
        try:
            await self._mind.release(activity_id)
        except Exception as error:  # the mind is foreign code, and the activity is over
            report(f"{activity_id!r} could not be released", error)
        finally:
            del self._tasks[activity_id]


def report(message: str, error: Exception) -> None:
    """Says what went wrong where nobody awaits it."""
    context = {"message": f"Activities: {message}", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)
