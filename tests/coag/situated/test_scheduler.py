"""Who runs when: order, waits, deadlines, budgets, failures, cancelling, starting again."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.held_steps import (
    HeldSteps,
    a_percept,
    a_signal,
    a_wait,
    an_activity,
    settled,
)
from kits.minds import NOW, HandClock
from kits.waiting import until

from coag.errors import ConfigurationError
from coag.schema import Percept, PerceptKind
from coag.situated import (
    Activity,
    ActivityBudget,
    ActivityEnd,
    ActivityScheduler,
    ActivityState,
    ActivityStore,
    ActivityStoreError,
    Delivery,
    OnActivity,
    OnProperty,
    SchedulerStoppedError,
    Step,
    StepDelayedError,
    Wait,
)
from coag.situated.records import FLOOD
from coag.situated.transitions import ReadyQueue


class Stage:
    """A scheduler that runs, with its store, its clock and a mind whose steps are held."""

    def __init__(self, store: ActivityStore | None = None, **settings: Any) -> None:
        self.store = store or ActivityStore()
        self.clock = HandClock()
        self.mind = HeldSteps(self.store)
        settings = {"pause": 0.0, "grace": 0.0, **settings}
        self.scheduler = ActivityScheduler(self.store, self.mind, clock=self.clock, **settings)

    def add(self, *names: str, **changes: Any) -> None:
        for name in names:
            self.scheduler.add(an_activity(name, **changes))

    async def arrives(self, *percepts: Percept, to: str = "a") -> None:
        self.store.deliver(None, None, [Delivery(to, percept) for percept in percepts])
        self.scheduler.arrived([to, "nobody"])
        await settled()

    async def passes(self, seconds: float) -> None:
        self.clock.wait(seconds)
        self.scheduler.look()
        await settled()

    def perceived(self, name: str = "a") -> list[str]:
        return [percept.id for percept in self.mind.perceived[name]]

    def state(self, name: str = "a") -> ActivityState:
        return self.activity(name).state

    def activity(self, name: str = "a") -> Activity:
        activity = self.store.get(name)
        assert activity is not None
        return activity


@asynccontextmanager
async def running(store: ActivityStore | None = None, **settings: Any) -> AsyncGenerator[Stage]:
    stage = Stage(store, **settings)
    await stage.scheduler.start()
    yield stage
    await stage.scheduler.stop()


# ---- Order ----


async def test_the_highest_priority_runs_first_then_who_came_first() -> None:
    async with running(workers=1) as stage:
        stage.add("first")
        stage.add("low", "later")
        stage.add("high", priority=3)
        for name in ("first", "high", "low", "later"):
            await stage.mind.ends(name, Step(end=ActivityEnd.DONE))
        assert stage.mind.began == ["first", "high", "low", "later"]


async def test_activities_take_turns_step_by_step_and_no_more_run_than_there_are_workers() -> None:
    async with running(workers=2) as stage:
        stage.add(*"abc")
        await until(lambda: len(stage.mind.held) == 2)
        for name in "abcabc":
            assert len(stage.mind.held) == 2
            await stage.mind.ends(name)
        assert stage.mind.began == list("abcabcab")


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_no_activity_starves(priorities: list[int]) -> None:
    queue = ReadyQueue()
    for number, priority in enumerate(priorities):
        queue.push(str(number), priority)
    passed_over = dict.fromkeys(map(str, range(len(priorities))), 0)
    for _ in range(400):
        chosen = queue.pop()
        for other in passed_over:
            passed_over[other] += 1
        passed_over[chosen] = 0
        queue.push(chosen, priorities[int(chosen)])
        assert max(passed_over.values()) <= 50 * 5 + len(priorities)


# ---- Waiting ----


def reading(level: int, tool: str = "pump") -> Percept:
    data = {"tool": tool, "epoch": "e1", "rev": level, "properties": {"level": level}}
    name = f"{tool}/e1/rev-{level}"
    return a_percept(
        PerceptKind.PROPERTY_CHANGE, name, tool, data={**data, "cursor": f"e1:{level}"}
    )


HIGH = OnProperty(tool="pump", name="level", comparison=">", value=5)
ENDING: list[tuple[Wait, Percept]] = [
    (a_wait(), a_signal(1)),
    (a_wait(), a_percept(PerceptKind.GAP, "pump/e1/gap-1")),
    (a_wait(), a_percept(PerceptKind.MESSAGE, "message-1", "user")),
    (a_wait(), a_percept(PerceptKind.SIGNAL, "pump/e1/1", data={"broken": True})),
    (Wait(condition=HIGH, since=NOW), reading(6)),
    (Wait(condition=HIGH, since=NOW), a_percept(PerceptKind.GAP, "pump/e1/gap-1")),
]
NOT_ENDING: list[tuple[Wait, Percept]] = [
    (a_wait(), a_signal(1, "pump.stopped")),
    (a_wait(), a_signal(1, tool="valve")),
    (a_wait(), reading(6)),
    (a_wait(), a_percept(PerceptKind.GAP, "valve/e1/gap-1", "valve")),
    (a_wait(), a_percept(PerceptKind.GAP, "pump/e1/gap-1", data={"reason": FLOOD})),
    (a_wait(), a_signal(1).model_copy(update={"is_error": True})),
    (Wait(condition=HIGH, since=NOW), a_signal(1)),
    (Wait(condition=HIGH, since=NOW), reading(5)),
    (Wait(condition=HIGH, since=NOW), reading(6, "valve")),
    (Wait(condition=OnActivity(activity="other"), since=NOW), a_signal(1)),
]


@pytest.mark.parametrize("before", [True, False], ids=["before the wait", "after it"])
@pytest.mark.parametrize(("wait", "percept"), ENDING)
async def test_what_is_waited_for_wakes_whether_it_comes_before_the_wait_or_after(
    wait: Wait, percept: Percept, before: bool
) -> None:
    async with running() as stage:
        stage.add("a")
        await settled()
        if before:
            await stage.arrives(percept)
        await stage.mind.ends("a", Step(wait=wait))
        if not before:
            assert stage.state() is ActivityState.BLOCKED
            await stage.arrives(percept)
        assert stage.perceived() == [percept.id]


@pytest.mark.parametrize(("wait", "percept"), NOT_ENDING)
async def test_all_else_stays_in_the_inbox_for_later(wait: Wait, percept: Percept) -> None:
    async with running() as stage:
        stage.add("a", "other")
        await stage.mind.ends("a", Step(wait=wait))
        await stage.arrives(percept)
        assert stage.state() is ActivityState.BLOCKED
        assert stage.mind.began == ["a", "other"]
        stage.scheduler.wake("a")
        stage.scheduler.wake("a")
        await settled()
        assert stage.perceived() == [percept.id]
        assert stage.activity().wait is None


async def test_the_end_of_an_activity_is_a_signal_for_its_parent_and_for_who_waits_for_it() -> None:
    async with running() as stage:
        stage.add("parent", "waiting")
        stage.add("child", parent="parent")
        wait = Wait(condition=OnActivity(activity="child"), since=NOW)
        await stage.mind.ends("waiting", Step(wait=wait))
        await stage.mind.ends("child", Step(end=ActivityEnd.DONE, result="42"))
        assert stage.perceived("waiting") == ["child/end/1"]
        await stage.mind.ends("parent", Step(wait=wait))
        (said,) = stage.mind.perceived["parent"]
        assert said.content == "Activity 'child' ended (done): 42"
        assert said.data["data"] == {"end": "done", "result": "42"}
        assert stage.state("parent") is ActivityState.RUNNING, "it had ended already"


async def test_a_wait_for_an_activity_that_never_was_ends_with_a_percept() -> None:
    async with running() as stage:
        stage.add("a")
        await stage.mind.ends("a", Step(wait=Wait(condition=OnActivity(activity="z"), since=NOW)))
        assert [one.content for one in stage.mind.perceived["a"]] == ["There is no activity 'z'."]


# ---- Deadlines ----


async def test_a_deadline_that_passes_wakes_once_and_says_what_was_waited_for() -> None:
    async with running() as stage:
        stage.add("a")
        await stage.mind.ends("a", Step(wait=a_wait(seconds=60)))
        await stage.passes(59)
        assert stage.state() is ActivityState.BLOCKED
        await stage.passes(-3_600)
        await stage.passes(3_600 + 1)
        await stage.passes(-3_600)
        await stage.passes(7_200)
        (late,) = stage.mind.perceived["a"]
        assert (late.kind, late.id) == (PerceptKind.TIME_OUT, "a/time-out-1")
        assert late.content == (
            "What was waited for since 2026-01-01 12:00:00 has not come until 2026-01-01 "
            "12:01:00: signal 'pump.ready' of 'pump'."
        )
        await stage.mind.ends("a", Step(wait=a_wait(seconds=1)))
        await stage.passes(0)
        assert stage.perceived() == ["a/time-out-1", "a/time-out-2"]


async def test_a_deadline_fires_by_itself() -> None:
    store = ActivityStore()
    mind = HeldSteps(store)
    scheduler = ActivityScheduler(store, mind, grace=0)  # the machine's clock
    await scheduler.start()
    scheduler.add(an_activity())
    woken = asyncio.Event()
    mind.begins = lambda activity, percepts: woken.set() if percepts else None
    await mind.ends("a", Step(wait=a_wait(seconds=1)))  # long ago
    async with asyncio.timeout(5):
        await woken.wait()
    await scheduler.stop()


async def test_deadlines_and_signals_of_the_time_without_a_process_are_found_at_the_start(
    tmp_path: Path,
) -> None:
    store = ActivityStore(tmp_path / "activities.db")
    async with running(store) as stage:
        stage.add("late", "signalled", "blocked")
        await stage.mind.ends("late", Step(wait=a_wait(seconds=60)))
        for name in ("signalled", "blocked"):
            await stage.mind.ends(name, Step(wait=a_wait(seconds=600)))
    store.deliver("pump", "e1:1", [Delivery("signalled", a_signal(1))])
    store.close()
    stage = Stage(ActivityStore(tmp_path / "activities.db"))
    stage.clock.wait(61)
    await stage.scheduler.start()
    await settled()
    assert sorted(stage.mind.began) == ["late", "signalled"]
    assert stage.perceived("late") == ["late/time-out-1"]
    assert stage.perceived("signalled") == ["pump/e1/1"]
    await stage.scheduler.stop()
    stage.store.close()


# ---- Bounds and failures ----


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (ActivityBudget(steps=2), "It has used the 2 steps of its budget."),
        (ActivityBudget(tokens=100), "It has used 140 tokens; its budget is 100."),
    ],
)
async def test_an_activity_that_has_used_its_budget_fails(
    budget: ActivityBudget, said: str
) -> None:
    async with running() as stage:
        stage.add("a", budget=budget)
        await stage.mind.ends("a", Step(tokens=70))
        await stage.mind.ends("a", Step(tokens=70, wait=a_wait()))
        over = await stage.scheduler.ended("a")
        assert (over.end, over.result) == (ActivityEnd.FAILED, said)
        assert (over.steps, over.tokens) == (2, 140)
        assert stage.mind.released == ["a"]


async def test_a_step_that_raises_is_tried_again_and_then_ends_its_activity() -> None:
    async with running(tries=3) as stage:
        stage.add("a", "b")
        await stage.mind.ends("b", OSError("once"))
        await stage.mind.ends("b")
        for number in range(3):
            await stage.mind.ends("a", OSError(f"no {number}"))
            await stage.mind.ends("b")
        over = await stage.scheduler.ended("a")
        assert over.end is ActivityEnd.FAILED
        assert over.result == "A step failed 3 times in a row: OSError: no 2"
        assert stage.state("b") is ActivityState.RUNNING


async def test_a_step_that_no_try_can_mend_ends_its_activity_at_once() -> None:
    async with running(tries=3) as stage:
        stage.add("a")
        await stage.mind.ends("a", ConfigurationError("There is no such model."))
        over = await stage.scheduler.ended("a")
        said = "A step failed once: ConfigurationError: There is no such model."
        assert (over.end, over.result, over.steps) == (ActivityEnd.FAILED, said, 1)


async def test_a_step_that_takes_too_long_is_cancelled_and_has_failed() -> None:
    async with running(tries=1) as stage:
        budget = ActivityBudget(step_seconds=0.01)
        stage.scheduler.add(an_activity("a", budget=budget))
        over = await stage.scheduler.ended("a")
        said = "A step failed once: TimeoutError: it took longer than the 0.01 s of its budget"
        assert (over.end, over.result) == (ActivityEnd.FAILED, said)
        assert stage.mind.held == {}, "the step was cancelled"


async def test_pauses_between_tries_grow_and_hold_no_worker() -> None:
    async with running(tries=9, pause=1_000.0, workers=1) as stage:
        stage.add("a", "b")
        await stage.mind.ends("a", OSError("no"))
        await stage.mind.ends("b", Step(end=ActivityEnd.DONE))
        assert stage.state("a") is ActivityState.READY
        await stage.scheduler.cancel("a", "not needed")
        assert (await stage.scheduler.ended("a")).result == "not needed"


async def test_a_mind_that_raises_cancelled_error_by_itself_has_failed() -> None:
    async with running(tries=1) as stage:
        stage.add("a")
        await stage.mind.ends("a", asyncio.CancelledError())
        assert "failed once: CancelledError" in (await stage.scheduler.ended("a")).result


async def test_a_store_that_fails_is_reported_to_all_waiters() -> None:
    loop = asyncio.get_running_loop()
    reported: list[str] = []
    loop.set_exception_handler(lambda _, context: reported.append(context["message"]))
    stage = Stage()
    await stage.scheduler.start()
    stage.add("a", "b")
    ending = asyncio.ensure_future(stage.scheduler.ended("b"))
    await settled()
    stage.store.close()
    stage.mind.held["a"].set_result(Step())
    with pytest.raises(ActivityStoreError, match="closed"):
        await ending
    with pytest.raises(ActivityStoreError):
        await stage.scheduler.stop()
    assert any("no steps are run any more" in message for message in reported)


# ---- Cancelling, stopping, watching ----


@pytest.mark.parametrize("state", ["running", "about to run", "ready", "blocked"])
async def test_an_activity_is_cancelled_in_any_state(state: str) -> None:
    async with running(workers=1) as stage:
        if state == "ready":
            stage.add("busy")
            await settled()
        stage.add("a")
        if state == "running":
            await settled()
        elif state == "blocked":
            await stage.mind.ends("a", Step(wait=a_wait()))
        ending = asyncio.ensure_future(stage.scheduler.ended("a"))
        await stage.scheduler.cancel("a", "not needed")
        await stage.scheduler.cancel("a", "once more")
        over = await ending
        assert (over.end, over.result) == (ActivityEnd.CANCELLED, "not needed")
        assert stage.mind.released == ["a"]
        assert "a" not in stage.mind.held
        await stage.arrives(a_signal(1))
        assert stage.state() is ActivityState.TERMINATED
        stage.add("next")
        if state != "ready":
            await until(lambda: "next" in stage.mind.held)


async def test_another_process_cancels_and_wakes_by_requests(tmp_path: Path) -> None:
    path = tmp_path / "activities.db"
    store = ActivityStore(path)
    async with running(store) as stage:
        stage.add("a", "b", "c")
        for name in "ab":
            await stage.mind.ends(name, Step(wait=a_wait()))
        beside = ActivityStore(path, owner=False)
        beside.request("a", "wake")
        beside.request("b", "cancel", "by hand")
        beside.request("c", "cancel")
        beside.request("nobody", "cancel")
        beside.close()
        await stage.passes(0)
        assert [one.activity for one in store.requests()] == ["c"], "until its step has ended"
        await stage.passes(0)
        assert store.requests() == []
        assert stage.state("a") is ActivityState.RUNNING
        assert stage.activity("b").result == "by hand"
        assert stage.activity("c").result == "Cancelled by another process."
    store.close()


async def test_a_scheduler_that_stops_lets_steps_end_and_begins_no_others() -> None:
    stage = Stage(grace=60.0, workers=1)
    await stage.scheduler.start()
    stage.add("ends", "ready")
    ending = asyncio.ensure_future(stage.scheduler.ended("ready"))
    await settled()
    stopping = asyncio.ensure_future(stage.scheduler.stop())
    await settled()
    await stage.mind.ends("ends", Step(end=ActivityEnd.DONE))
    await stopping
    assert stage.state("ends") is ActivityState.TERMINATED
    assert stage.state("ready") is ActivityState.READY
    assert stage.mind.began == ["ends"]
    with pytest.raises(SchedulerStoppedError):
        await ending
    with pytest.raises(SchedulerStoppedError):
        await stage.scheduler.ended("ready")
    assert (await stage.scheduler.ended("ends")).over


async def test_a_step_that_does_not_end_when_its_scheduler_stops_is_cancelled() -> None:
    stage = Stage(grace=0.05)
    await stage.scheduler.start()
    stage.add("hangs")
    await settled()
    await stage.scheduler.stop()
    assert stage.state("hangs") is ActivityState.READY
    assert stage.mind.held == {}


async def test_who_watches_sees_each_change_and_may_call_the_scheduler() -> None:
    async with running() as stage:
        seen: list[str] = []

        def look(activity: Activity) -> None:
            seen.append(activity.state.value)
            if activity.state is ActivityState.BLOCKED:
                stage.scheduler.wake(activity.id)

        stop: Callable[[], None] = stage.scheduler.watch(look)
        stage.add("a")
        await stage.mind.ends("a", Step(wait=a_wait()))
        await settled()
        stop()
        await stage.mind.ends("a")
        assert seen == ["ready", "running", "blocked", "ready", "running"]


async def test_what_is_no_activity_is_named() -> None:
    async with running() as stage:
        for call in (stage.scheduler.ended("a"), stage.scheduler.cancel("a", "")):
            with pytest.raises(ValueError, match="There is no activity 'a'"):
                await call
        with pytest.raises(ValueError, match="A new activity is ready, not 'running'"):
            stage.add("a", state=ActivityState.RUNNING)
        with pytest.raises(ValueError, match="at least 1, not 0 and 3"):
            Stage(workers=0)


async def test_a_step_that_cannot_begin_yet_counts_neither_as_a_try_nor_as_a_step() -> None:
    async with running(tries=1) as stage:
        stage.add("a", budget=ActivityBudget(steps=1))
        for _ in range(3):
            await stage.mind.ends("a", StepDelayedError("held"))
        await stage.mind.ends("a", Step(end=ActivityEnd.DONE))
        assert stage.activity().end is ActivityEnd.DONE
        assert stage.activity().steps == 1
