"""Who runs when: a scheduler takes activities one step at a time and lets the blocked ones sleep.

A blocked activity costs no task, no timer and no model call: it is a row of the store. One timer
serves all deadlines. Each change of an activity is stored before anything else happens, so that a
killed process continues where it was.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Sequence, Set
from typing import NamedTuple, Protocol

from coag._util.timeouts import is_cancelled
from coag.errors import ConfigurationError
from coag.schema import Clock, SystemClock, one_line

from .activities import Activity, ActivityEnd, ActivityState, Step, Wait
from .store import ActivityStore, Woken
from .store_file import ActivityStoreError
from .store_postgres import WorkerLeaseError
from .transitions import (
    Listeners,
    ReadyQueue,
    SchedulerStoppedError,
    Transitions,
)

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
    """Does steps of activities by a mind, and turns errors and cancellation into what they mean."""

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
        """Does one step; `CancelledError` where the task was cancelled and its activity was not."""
        longest = activity.budget.step_seconds
        limit = asyncio.timeout(longest)
        try:
            async with limit:
                step = await self._mind.step(activity)
        except asyncio.CancelledError as error:
            if (end := self.cancelled(activity.id)) is not None:
                return end
            if is_cancelled():
                raise
            return self._failed(activity.id, error)  # nobody cancelled: a fault of the mind
        except StepDelayedError:
            return self.cancelled(activity.id) or Pause(self._pause, tried=False)
        except ConfigurationError as error:  # each try would fail the same way
            return self.cancelled(activity.id) or self._given_up(activity.id, error, 1)
        except Exception as error:  # the mind and its model are foreign code
            late = TimeoutError(f"it took longer than the {longest} s of its budget")
            raised = late if limit.expired() else error
            return self.cancelled(activity.id) or self._failed(activity.id, raised)
        self._failures.pop(activity.id, None)
        end = self.cancelled(activity.id)  # it was cancelled, and continued all the same
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


async def all_of(tasks: Iterable[asyncio.Task[None] | None], seconds: float) -> None:
    """Waits until these tasks, where there are any, have ended, however they end; not longer."""
    if waited := set(filter(None, tasks)):
        await asyncio.wait(waited, timeout=seconds)


class Releases:
    """Has a mind let go of activities that have ended, beside what else is done."""

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


def taken_in(store: ActivityStore, ready: ReadyQueue, only: Set[str] | None = None) -> list[str]:
    """Queues this worker's ready activities, those named or all; gives those with full inboxes."""
    for activity, priority in store.ready():
        if only is None or activity in only:
            ready.push(activity, priority)
    return [one for one in store.with_inbox() if only is None or one in only]


_LOOK_AGAIN = 1.0
"""Seconds after which the clock is looked at at the latest: it may have been set."""


class ActivityScheduler:
    """Runs the activities of a store, one step at a time each, several at once.

    Args:
        store: Where they are; this process owns it, or is one of the workers that share it.
        mind: Does their steps.
        clock: The time of day for deadlines.
        workers: How many steps run at the same time, at most.
        tries: How many times in a row a step may raise before its activity ends as failed.
        pause: Seconds before the second try; each further pause is twice as long.
        grace: Seconds that running steps have to end when the scheduler stops, and again when
            they have been cancelled.
        claimed: Called with the activities that this worker takes from a shared store.
    """

    def __init__(
        self,
        store: ActivityStore,
        mind: ActivityMind,
        *,
        clock: Clock | None = None,
        workers: int = 4,
        tries: int = 3,
        pause: float = 1.0,
        grace: float = 10.0,
        claimed: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        if workers < 1 or tries < 1:
            raise ValueError(f"workers and tries are at least 1, not {workers} and {tries}.")
        self._store = store
        self._clock = clock or SystemClock()
        self._steps = StepRunner(mind, tries, pause)
        self._workers = workers
        self._grace = grace
        self._ready = ReadyQueue()
        self._claimed = claimed
        self._running: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, asyncio.TimerHandle] = {}  # after a step that raised
        self._releases = Releases(mind)
        self._listeners = Listeners()
        self._to = Transitions(store, self._clock, self._listeners)
        self._timer: asyncio.TimerHandle | None = None
        self._active = False
        self.failure: Exception | None = None
        """Why no steps are run any more, if the store has failed."""

    # ---- Start and stop ----

    async def start(self) -> None:
        """Continues stored activities: ready ones run, and deadlines that passed meanwhile fire."""
        self._active = True
        self.arrived(taken_in(self._store, self._ready))
        self.look()
        self._start_steps()

    async def stop(self) -> None:
        """Starts no more steps, and waits until the running ones have ended or were cancelled.

        Raises:
            ActivityStoreError: The store had failed, so that no steps were run any more; any
                other error than this is a fault of the scheduler.
        """
        self._active = False
        for timer in filter(None, (self._timer, *self._resting.values())):
            timer.cancel()
        await all_of(self._running.values(), self._grace)
        for task in self._running.values():
            task.cancel()
        await all_of(self._running.values(), self._grace)
        await self._releases.done(self._grace)
        self._listeners.close(self.failure or SchedulerStoppedError())
        if self.failure is not None:
            raise self.failure

    # ---- What others ask for ----

    def add(self, activity: Activity) -> None:
        """Takes in a new activity; a `ValueError` says that it is not ready, or its id is taken."""
        if activity.state is not ActivityState.READY:
            raise ValueError(f"A new activity is ready, not {activity.state.value!r}.")
        self._store.add(activity)
        self._listeners.changed(activity)
        if self._store.shared:
            self._take_share()  # others take the rest when they look
        else:
            self._enqueue(activity.id, activity.priority)

    def arrived(self, activity_ids: Iterable[str]) -> None:
        """Something has come into these inboxes: those whose wait it ends become ready."""
        if met := [one for one in dict.fromkeys(activity_ids) if self._to.is_met(one)]:
            self._enqueue_woken(self._to.wake(met))

    def wake(self, activity_id: str) -> None:
        """Makes a blocked activity ready without what it waits for; others stay as they are."""
        if woken := self._to.wake([activity_id]):
            self._enqueue_woken(woken)
        elif self._store.of_another(activity_id):
            self._store.request(activity_id, "wake")

    async def cancel(self, activity_id: str, reason: str) -> None:
        """Ends an activity as cancelled; a step that runs is cancelled, and waited for.

        One that has ended stays as it is. One that another worker pursues ends when that worker
        looks at what it is asked for.

        Raises:
            ValueError: There is no such activity.
        """
        activity = self._to.known(activity_id)
        if not activity.over and self._store.of_another(activity_id):
            self._store.request(activity_id, "cancel", reason)
            return
        self._cancel(activity, reason)
        await all_of([self._running.get(activity_id)], self._grace)
        await self._releases.done(self._grace, activity_id)

    async def ended(self, activity_id: str) -> Activity:
        """The activity, once it has terminated and its mind has let go of it.

        Raises:
            ValueError: There is no such activity.
            SchedulerStoppedError: The scheduler stopped before.
        """
        activity = self._to.known(activity_id)
        if not activity.over:
            activity = await self._listeners.end_of(activity_id)
        await self._releases.done(self._grace, activity_id)
        return activity

    def watch(self, callback: Callable[[Activity], None]) -> Callable[[], None]:
        """Calls back with each activity that has changed, until what is returned is called."""
        return self._listeners.watch(callback)

    def look(self) -> None:
        """Fires the deadlines that have passed, and sees to what other processes ask for.

        This happens by itself, at least every second.
        """
        self._take_share()
        self._enqueue_woken(self._to.time_out())
        for request in self._store.requests():
            activity = self._store.get(request.activity)
            if request.what == "wake":
                self._enqueue_woken(self._to.wake([request.activity]))
            elif request.what == "cancel" and activity is not None:
                self._cancel(activity, request.reason or "Cancelled by another process.")
            if request.what == "wake" or request.activity not in self._running:
                self._store.settle(request.number)  # else when its step has ended
        self._set_timer()

    def _take_share(self) -> None:
        """Takes what nobody pursues, where workers share the store, and what they delivered."""
        if not self._active:
            return
        if self._store.shared:
            free = self._workers - len(self._running) - len(self._ready)
            if claimed := self._store.claim(max(0, free)):
                self._claimed(claimed)
                self.arrived(taken_in(self._store, self._ready, set(claimed)))
            self.arrived(self._store.arrivals())
            self._listeners.look(self._store)
        self._start_steps()

    # ---- One step ----

    def _enqueue(self, activity_id: str, priority: int) -> None:
        self._end_rest(activity_id)
        if self._active:
            self._ready.push(activity_id, priority)
            self._start_steps()

    def _end_rest(self, activity_id: str) -> None:
        if (timer := self._resting.pop(activity_id, None)) is not None:
            timer.cancel()

    def _start_steps(self) -> None:
        while self._active and self._ready and len(self._running) < self._workers:
            one = self._ready.pop()
            task = asyncio.create_task(self._work(one), name=f"activity {one}")
            self._running[one] = task
            task.add_done_callback(functools.partial(self._never_began, one))

    def _never_began(self, activity_id: str, task: asyncio.Task[None]) -> None:
        """Sees to a step that was cancelled before its task had its first turn."""
        if self._running.get(activity_id) is task:
            del self._running[activity_id]
            if (end := self._steps.cancelled(activity_id)) is not None:
                self._finish(self._to.known(activity_id), ActivityEnd.CANCELLED, end.result)
            self._start_steps()

    async def _work(self, activity_id: str) -> None:
        again: Activity | None = None
        try:
            again = await self._step(self._to.known(activity_id))
        except Exception as error:  # the store, or a fault of ours: nothing can be kept any more
            self.fail(error)
        finally:
            del self._running[activity_id]
            if again is not None:
                self._enqueue(activity_id, again.priority)
            self._start_steps()

    async def _step(self, activity: Activity) -> Activity | None:
        """Does one step, and gives the activity if it is ready for its next one."""
        if spent := _spent(activity):
            return self._finish(activity, ActivityEnd.FAILED, spent)
        activity = self._to.to(ActivityState.RUNNING, activity)
        try:
            done = await self._steps.do(activity)
        except asyncio.CancelledError:
            self._to.to(ActivityState.READY, self._to.known(activity.id))
            raise
        return self._take(self._to.known(activity.id), done)

    def _take(self, activity: Activity, done: Step | Pause) -> Activity | None:
        """Stores what came of a step: an end, a wait, a pause, or the next step."""
        cycles = int(done.tried) if isinstance(done, Pause) else done.cycles
        activity = activity.model_copy(update={"steps": activity.steps + cycles})
        if isinstance(done, Pause):
            self._to.to(ActivityState.READY, activity)
            if self._active:
                self._resting[activity.id] = asyncio.get_running_loop().call_later(
                    done.seconds, self._enqueue, activity.id, activity.priority
                )
            return None
        used = {"tokens": activity.tokens + done.tokens, "run": done.run or activity.run}
        activity = activity.model_copy(update=used)
        if done.end is not None:
            return self._finish(activity, done.end, done.result)
        if spent := _spent(activity):
            return self._finish(activity, ActivityEnd.FAILED, spent)
        if done.wait is not None:
            return self._suspend(activity, done.wait)
        return self._to.to(ActivityState.READY, activity)

    def _suspend(self, activity: Activity, wait: Wait) -> Activity | None:
        """Blocks an activity, unless what it waits for is there: nothing comes in between."""
        if not self._to.block(activity, wait):
            return activity
        self._set_timer()
        return None

    # ---- Waking and ending ----

    def _enqueue_woken(self, woken: Iterable[Woken]) -> None:
        for one in woken:
            self._enqueue(one.activity, one.priority)

    def _cancel(self, activity: Activity, reason: str) -> None:
        if (task := self._running.get(activity.id)) is not None:
            self._steps.cancel(activity.id, reason, task)
        elif not activity.over:
            self._finish(activity, ActivityEnd.CANCELLED, reason)

    def _finish(self, activity: Activity, end: ActivityEnd, result: str) -> None:
        """Ends an activity, and tells its parent and those that wait for it."""
        over, woken = self._to.finish(activity, end, result)
        self._steps.forget(activity.id)
        self._ready.remove(activity.id)
        self._end_rest(activity.id)
        self._enqueue_woken(woken)
        self._listeners.ended(over)
        self._releases.begin(activity.id)

    def fail(self, error: Exception) -> None:
        """Runs no more steps, since neither their results nor deliveries can be stored.

        Callers that wait for the end of an activity get the error.
        """
        if self.failure is not None:
            return
        self._active = False
        self.failure = error
        self._listeners.close(error)
        for task in self._running.values() if isinstance(error, WorkerLeaseError) else ():
            task.cancel()  # another worker continues it
        report("what comes of steps or arrives cannot be kept; no steps are run any more", error)

    def _set_timer(self) -> None:
        """Looks at the clock again at the next deadline, and at least every second."""
        if self._timer is not None:
            self._timer.cancel()
        if self._active:
            deadline = self._store.next_deadline()
            left = _LOOK_AGAIN if deadline is None else deadline - self._clock.now().timestamp()
            pause = min(max(left, 0.0), _LOOK_AGAIN)
            self._timer = asyncio.get_running_loop().call_later(pause, self._look_again)

    def _look_again(self) -> None:
        try:
            self.look()
        except ActivityStoreError as error:
            self.fail(error)


def _spent(activity: Activity) -> str:
    """Which bound of its budget an activity has reached; empty if none."""
    budget = activity.budget
    if budget.steps is not None and activity.steps >= budget.steps:
        return f"It has used the {budget.steps:,} steps of its budget."
    if budget.tokens is not None and activity.tokens >= budget.tokens:
        return f"It has used {activity.tokens:,} tokens; its budget is {budget.tokens:,}."
    return ""
