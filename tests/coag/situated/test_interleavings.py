"""Any order of signals, waits, deadlines, messages, cancelling, restarts and crashes."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kits.held_steps import HeldSteps, a_percept, a_signal, a_wait, an_activity, settled
from kits.minds import HandClock

from coag.schema import Percept, PerceptKind
from coag.situated import (
    Activity,
    ActivityEnd,
    ActivityScheduler,
    ActivityState,
    ActivityStore,
    Delivery,
    OnActivity,
    Step,
    Wait,
)
from coag.situated.activities import ends_wait

WORKERS = 2
SIGNALS = ("pump.ready", "pump.stopped")


class Interleavings(RuleBasedStateMachine):
    """Drives a scheduler over a file, and checks after each rule what must hold of it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = HandClock()
        self.files = self.signals = 0
        self.sent: dict[str, set[str]] = {}
        """What was delivered to each activity."""
        self.perceived: dict[str, Counter[str]] = {}
        self.waits: dict[str, Wait] = {}
        """What an activity waits for, until its next step begins."""
        self.called: set[str] = set()
        """Activities that were woken without what they wait for."""
        self.overdue: dict[str, int] = {}
        """How many deadlines of each have passed while it was blocked."""

    @initialize(priorities=st.lists(st.integers(0, 2), min_size=1, max_size=4))
    def begins(self, priorities: list[int]) -> None:
        self._open()
        for number, priority in enumerate(priorities):
            name = f"activity-{number}"
            parent = "activity-0" if number == 1 else None
            self.sent[name] = set()
            self._add(an_activity(name, priority=priority, parent=parent))

    # ---- What happens ----

    @rule(name=st.sampled_from([*SIGNALS, None]), repeated=st.booleans())
    def something_comes(self, name: str | None, repeated: bool) -> None:
        self.signals += 1
        message = a_percept(PerceptKind.MESSAGE, f"message-{self.signals}", "user")
        for _ in range(1 + repeated):
            if name is None:
                self._deliver(message, sorted(self.sent)[:1])
            else:
                self._deliver(a_signal(self.signals, name), sorted(self.sent))

    @rule(data=st.data())
    @precondition(lambda self: self.mind.held)
    def a_step_ends(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.mind.held)))
        others = st.sampled_from([one for one in [*sorted(self.sent), "nobody"] if one != name])
        now = self.clock.now()
        wait = data.draw(
            st.builds(
                a_wait,
                st.sampled_from(SIGNALS),
                since=st.just(now),
                seconds=st.sampled_from([None, 5, 50]),
            )
            | st.builds(Wait, condition=st.builds(OnActivity, activity=others), since=st.just(now))
            | st.none()
        )
        ends = st.sampled_from([None, None, None, ActivityEnd.DONE, OSError("no")])
        end = None if wait else data.draw(ends)
        if wait is not None:
            self.waits[name] = wait
        self.called.discard(name)
        step = end if isinstance(end, OSError) else Step(wait=wait, end=end)
        self.loop.run_until_complete(self.mind.ends(name, step))

    @rule(seconds=st.sampled_from([-100, -5, 1, 5, 50]))
    def time_passes(self, seconds: float) -> None:
        self.clock.wait(seconds)
        self._count_overdue()
        self._do(self.scheduler.look)

    @rule(data=st.data(), cancels=st.sampled_from([False, False, True]))
    def somebody_wakes_or_cancels(self, data: st.DataObject, cancels: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.sent)))
        if not cancels:
            self.called.add(name)
            self._do(lambda: self.scheduler.wake(name))
            return
        self.loop.run_until_complete(self.scheduler.cancel(name, "not needed"))
        activity = self.store.get(name)
        assert activity is not None
        assert activity.over

    @rule(seconds=st.sampled_from([0, 5, 50]), crashes=st.booleans())
    def it_is_started_again(self, seconds: float, crashes: bool) -> None:
        before, path = self.path, self.path
        if crashes:
            self.files += 1
            for ending in ("", "-wal"):  # what a killed process leaves
                file = before.with_name(before.name + ending)
                shutil.copy(file, path.with_name(self.path.name + ending))
        self.loop.run_until_complete(self.scheduler.stop())
        self.store.close()
        self.clock.wait(seconds)
        self._open()

    # ---- What must hold ----

    @invariant()
    def nobody_sleeps_who_should_be_awake(self) -> None:
        for activity in self.store.find(ActivityState.BLOCKED):
            assert activity.wait is not None
            inbox = [entry.percept for entry in self.store.inbox(activity.id)]
            assert not any(ends_wait(activity.wait, percept) for percept in inbox), activity
            deadline = activity.wait.deadline
            assert deadline is None or deadline > self.clock.now()
            if isinstance(activity.wait.condition, OnActivity):
                other = self.store.get(activity.wait.condition.activity)
                assert other is not None
                assert not other.over

    @invariant()
    def workers_are_busy_while_somebody_is_ready(self) -> None:
        assert len(self.mind.held) <= WORKERS
        running = {one.id for one in self.store.find(ActivityState.RUNNING)}
        assert running == set(self.mind.held)
        if self.store.find(ActivityState.READY):
            assert len(self.mind.held) == WORKERS

    @invariant()
    def nothing_is_lost_and_nothing_comes_twice(self) -> None:
        for name, sent in self.sent.items():
            seen = self.perceived.get(name, Counter())
            assert not seen or max(seen.values()) == 1
            activity = self.store.get(name)
            assert activity is not None
            if not activity.over:
                waiting = {entry.percept.id for entry in self.store.inbox(name)}
                assert sent <= waiting | seen.keys()
                late = [one for one in waiting | seen.keys() if "/time-out-" in one]
                assert len(late) == self.overdue.get(name, 0)

    def teardown(self) -> None:
        if hasattr(self, "scheduler"):
            self.loop.run_until_complete(self.scheduler.stop())
            self.store.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    # ---- How it is done ----

    @property
    def path(self) -> Path:
        return self.folder / f"activities-{self.files}.db"

    def _open(self) -> None:
        self.store = ActivityStore(self.path)
        self._count_overdue()
        self.mind = HeldSteps(self.store)
        self.mind.begins = self._begins
        self.scheduler = ActivityScheduler(
            self.store, self.mind, clock=self.clock, workers=WORKERS, tries=3, pause=0, grace=0
        )
        self.loop.run_until_complete(self.scheduler.start())
        self.loop.run_until_complete(settled())

    def _begins(self, activity: Activity, percepts: list[Percept]) -> None:
        """Nobody is woken without a reason."""
        self.perceived.setdefault(activity.id, Counter()).update(one.id for one in percepts)
        wait = self.waits.pop(activity.id, None)
        assert (
            wait is None
            or activity.id in self.called
            or any(ends_wait(wait, percept) for percept in percepts)
            or self._is_over(wait)
        )
        self.called.discard(activity.id)

    def _is_over(self, wait: Wait) -> bool:
        if not isinstance(wait.condition, OnActivity):
            return False
        other = self.store.get(wait.condition.activity)
        return other is None or other.over

    def _count_overdue(self) -> None:
        """Those whose deadline has passed, unless something in their inbox wakes them first."""
        for one in self.store.find(ActivityState.BLOCKED):
            assert one.wait is not None
            if one.wait.deadline is not None and one.wait.deadline <= self.clock.now():
                self.overdue[one.id] = self.overdue.get(one.id, 0) + 1

    def _add(self, activity: Activity) -> None:
        self._do(lambda: self.scheduler.add(activity))

    def _deliver(self, percept: Percept, names: list[str]) -> None:
        for name in names:
            self.sent[name].add(percept.id)
        deliveries = [Delivery(name, percept) for name in names]
        self.store.deliver("pump", f"e1:{self.signals}", deliveries)
        self._do(lambda: self.scheduler.arrived(names))

    def _do(self, call: Callable[[], object]) -> None:
        async def doing() -> None:
            call()
            await settled()

        self.loop.run_until_complete(doing())


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(stateful_step_count=40)
