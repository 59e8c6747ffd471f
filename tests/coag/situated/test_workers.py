"""Workers that share a store in Postgres: shares, leases, fencing, reading for each other."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from autogen_ext.models.replay import ReplayChatCompletionClient
from kits.held_steps import HeldSteps, a_percept, a_signal, a_wait, an_activity, settled
from kits.minds import NOW, HandClock
from kits.processes import python
from kits.waiting import until

from coag.agent import SituatedAgent
from coag.cli import main
from coag.errors import ConfigurationError
from coag.mcp import StdioServerParams
from coag.schema import PerceptKind
from coag.situated import (
    ActivityEnd,
    ActivityScheduler,
    ActivityState,
    ActivityStore,
    ActivityStoreError,
    Delivery,
    EnhancedTool,
    InProcessConnection,
    McpToolConnection,
    OnActivity,
    Step,
    ToolPerception,
    Wait,
    WorkerLeaseError,
    Workspace,
    observable,
    operation,
    signal,
)

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def sql(database: str, statement: str) -> None:
    """What happens in the database without a worker."""
    import psycopg

    with psycopg.connect(database, autocommit=True) as db:
        db.execute(f"SET search_path = coag_activities; {statement}".encode())


def leases_end(database: str) -> None:
    sql(database, "UPDATE workers SET expires = clock_timestamp() - interval '1 second'")


class Worker:
    """A worker with its own connection, whose steps are held."""

    def __init__(self, database: str, workers: int = 4) -> None:
        self.store = ActivityStore(database)
        self.clock = HandClock()
        self.mind = HeldSteps(self.store)
        self.claimed: list[str] = []
        self.scheduler = ActivityScheduler(
            self.store,
            self.mind,
            clock=self.clock,
            workers=workers,
            pause=0.0,
            grace=0.0,
            claimed=self.claimed.extend,
        )

    def state(self, name: str) -> ActivityState:
        activity = self.store.get(name)
        assert activity is not None
        return activity.state

    async def looks(self) -> None:
        self.scheduler.look()
        await settled()


@asynccontextmanager
async def workers(database: str, count: int = 2) -> AsyncGenerator[list[Worker]]:
    found = [Worker(database) for _ in range(count)]
    for one in found:
        await one.scheduler.start()
    yield found
    for one in found:
        if one.scheduler.failure is None:
            await one.scheduler.stop()
            one.store.close()


# ---- The store ----


def test_an_activity_is_stored_as_it_is_and_texts_lose_the_character_0_only(database: str) -> None:
    activity = an_activity(
        state=ActivityState.BLOCKED, wait=a_wait(seconds=1.5), priority=-3, goal="Grüße \x00 '"
    )
    store = ActivityStore(database)
    store.add(activity)
    store.add(an_activity("b"))
    with pytest.raises(ValueError, match="'b' already"):
        store.add(an_activity("b"))
    assert store.claim(1) == ["b", "a"]
    assert store.find() == [activity, an_activity("b")]
    assert [one for one, _ in store.due(NOW + timedelta(seconds=2))] == ["a"]
    store.name_run("b", "run-1")
    percept = a_percept(PerceptKind.MESSAGE, "message-\x00", "user")
    for _ in range(2):
        store.deliver("pump", "e1:2", [Delivery("b", a_signal(1)), Delivery("b", percept)])
    assert [one.percept for one in store.inbox("b")] == [a_signal(1), percept]
    store.focus("b", "pump", frozenset({"x"}))
    store.pin("plant", "pump", "digest")
    assert store.count_time_out("a") == 1
    store.close()
    again = ActivityStore(database, owner=False)
    found = again.get("b")
    assert found is not None
    assert found.run == "run-1"
    assert again.focuses() == {"pump": {"b": frozenset({"x"})}}
    assert again.pins("plant") == {"pump": "digest"}
    with pytest.raises(ActivityStoreError, match="may only leave requests"):
        again.forget("b", [])
    again.close()


def test_each_worker_takes_a_share_and_no_activity_is_taken_twice(database: str) -> None:
    one, two = ActivityStore(database), ActivityStore(database)
    for number in range(5):
        one.add(an_activity(f"a{number}", priority=number))
    assert one.claim(1) == ["a4"], "as many as have a place"
    assert set(one.claim(9)) == {"a3", "a2"}, "not more than its share"
    assert set(two.claim(9)) == {"a1", "a0"}
    assert (list(one.claim(9)), list(two.claim(9))) == ([], [])
    assert two.of_another("a4")
    with pytest.raises(ActivityStoreError, match="'a4' is not pursued by this worker"):
        two.save(an_activity("a4"))
    one.close()
    assert set(two.claim(9)) == {"a4", "a3", "a2"}, "who ends in order gives them up at once"
    two.close()


WRITES: list[Callable[[ActivityStore], object]] = [
    lambda store: store.save(an_activity(state=ActivityState.BLOCKED, wait=a_wait())),
    lambda store: store.deliver("pump", "e1:1", [Delivery("a", a_signal(1))]),
    lambda store: store.advance("pump", None, "e1:7"),
    lambda store: store.add(an_activity("b")),
    lambda store: store.hold(),
    lambda store: store.claim(1),
]


@pytest.mark.parametrize("write", WRITES)
def test_who_was_taken_for_dead_writes_nothing(
    database: str, write: Callable[[ActivityStore], object]
) -> None:
    dead, other = ActivityStore(database), ActivityStore(database)
    dead.add(an_activity())
    dead.claim(1)
    dead.save(an_activity(state=ActivityState.RUNNING))
    leases_end(database)
    dead.hold()  # nobody has taken over yet: it continues
    leases_end(database)
    other.hold()
    assert other.claim(1) == ["a"]
    with pytest.raises(WorkerLeaseError, match="Nothing was written"):
        write(dead)
    assert other.find() == [an_activity()]
    assert (other.cursor("pump"), other.inbox("a")) == (None, ())
    dead.close()
    other.close()


def test_who_reads_on_is_one_at_a_time(database: str) -> None:
    one, two = ActivityStore(database), ActivityStore(database)
    assert one.advance("pump", None, "e1:1")
    assert not two.advance("pump", None, "e1:5")
    assert two.advance("pump", "e1:1", "e1:5")
    assert one.cursor("pump") == "e1:5"
    one.focus("a", "pump")
    assert two.cursor("pump") is None, "for the first who perceives a tool, signals count from now"
    one.close()
    two.close()


def test_a_store_that_cannot_be_used_says_why(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ActivityStoreError, match="no store of activities in this database"):
        ActivityStore(database, owner=False)
    with pytest.raises(ValueError, match="more than 0, not 0"):
        ActivityStore(database, lease=0)
    with pytest.raises(ActivityStoreError, match=r"failed: .*check the server") as caught:
        ActivityStore("postgresql://ann:hush@127.0.0.1:1/x")
    assert "hush" not in str(caught.value)
    store = ActivityStore(database)
    store.add(an_activity())
    sql(database, "UPDATE form SET number = 99")
    with pytest.raises(ActivityStoreError, match=r"newer coag \(version 99"):
        ActivityStore(database)
    sql(database, "DROP TABLE inbox")
    with pytest.raises(ActivityStoreError, match="inbox"):
        store.inbox("a")
    store.close()
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[postgres\]'"):
        ActivityStore(database)


# ---- Schedulers ----


async def test_the_activities_of_a_dead_worker_are_continued_by_another(database: str) -> None:
    async with workers(database) as (one, two):
        one.scheduler.add(an_activity("x"))
        await until(lambda: "x" in one.mind.held)
        one.scheduler.add(an_activity("y"))
        await two.looks()
        one.scheduler.add(an_activity("z"))
        await until(lambda: "z" in one.mind.held)
        assert two.mind.began == ["y"]
        leases_end(database)
        two.store.hold()
        await two.looks()
        assert two.claimed == ["y", "x", "z"]
        await one.mind.ends("x", Step(end=ActivityEnd.DONE, result="Too late."))
        assert isinstance(one.scheduler.failure, WorkerLeaseError)
        await until(lambda: not one.mind.held)
        await two.mind.ends("x", Step(end=ActivityEnd.DONE, result="There."))
        activity = two.store.get("x")
        assert activity is not None
        assert (activity.end, activity.result) == (ActivityEnd.DONE, "There.")
        with pytest.raises(WorkerLeaseError):
            await one.scheduler.stop()
        one.store.close()


async def test_an_end_wakes_who_waits_for_it_at_another_worker(database: str) -> None:
    async with workers(database) as (one, two):
        one.scheduler.add(an_activity("waits"))
        two.scheduler.add(an_activity("ends"))
        wait = Wait(condition=OnActivity(activity="ends"), since=NOW)
        await one.mind.ends("waits", Step(wait=wait))
        assert one.state("waits") is ActivityState.BLOCKED
        ended = asyncio.ensure_future(one.scheduler.ended("ends"))
        await two.mind.ends("ends", Step(end=ActivityEnd.DONE))
        await one.looks()
        assert (await ended).end is ActivityEnd.DONE
        assert one.mind.began == ["waits", "waits"]


async def test_what_another_worker_delivers_wakes_and_its_requests_are_seen_to(
    database: str,
) -> None:
    async with workers(database) as (one, two):
        for name in ("a", "b", "c"):
            one.scheduler.add(an_activity(name))
            await two.looks()
        mine = [name for name in "abc" if name in one.mind.held]
        assert len(mine) == 2
        for name in mine:
            await one.mind.ends(name, Step(wait=a_wait()))
        two.store.deliver("pump", "e1:1", [Delivery(mine[0], a_signal(1))])
        two.scheduler.wake(mine[1])
        await one.looks()
        assert set(one.mind.held) == set(mine)
        await two.scheduler.cancel(mine[0], "Enough.")
        await one.looks()
        await until(lambda: one.state(mine[0]) is ActivityState.TERMINATED)
        await one.looks()
        assert one.store.requests() == []


# ---- Perception ----


class Bell(EnhancedTool):
    """Rings."""

    protocol = "Ring it."
    rings = observable(int, 0)
    rang = signal("bell.rang", "It rang.", payload={"number": int})

    @operation
    def ring(self) -> str:
        """Rings it."""
        self.rings += 1
        self.rang.emit(number=self.rings)
        return "It rang."


async def test_what_one_worker_reads_reaches_the_activities_of_all_once(database: str) -> None:
    workspace = Workspace()
    workspace.add(Bell())
    stores = [ActivityStore(database) for _ in range(2)]
    for store, name in zip(stores, "ab", strict=True):
        store.add(an_activity(name))
        assert store.claim(1) == [name]
    connections = [InProcessConnection(workspace, name="tower") for _ in stores]
    perceptions = [
        ToolPerception([connection], store, arrived=lambda _: None)
        for connection, store in zip(connections, stores, strict=True)
    ]
    for perception, name in zip(perceptions, "ab", strict=True):
        await perception.start()
        await perception.focus(name, "bell")
    for _ in range(20):
        await workspace.invoke("bell", "ring", {})
        await asyncio.sleep(0)

    def signals(name: str) -> list[int]:
        inbox = [one.percept for one in stores[0].inbox(name)]
        return [one.data["data"]["number"] for one in inbox if one.kind is PerceptKind.SIGNAL]

    async with asyncio.timeout(10):
        while len(signals("a")) < 20 or len(signals("b")) < 20:  # noqa: ASYNC110 - two readers
            await asyncio.sleep(0.01)
    assert signals("a") == signals("b") == list(range(1, 21))
    await perceptions[0].stop()
    stores[0].close()
    assert stores[1].claim(1) == ["a"]
    perceptions[1].adopt(["a"])
    assert set(perceptions[1].focused("a")) == {"bell"}
    await perceptions[1].stop()
    stores[1].close()
    await workspace.close()


# ---- The whole ----


async def test_a_worker_is_a_component_without_password_and_seen_from_the_terminal(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = McpToolConnection(StdioServerParams(command="plant"), "plant")

    def made(store: str) -> SituatedAgent:
        model = ReplayChatCompletionClient(["Yes."])
        return SituatedAgent("cook", model, [server], folder=tmp_path, store=store)

    agent, other = made(database), made(f"{database}&password=hush")
    activity = agent.add_goal("Boil the water.", activity_id="tea")
    assert other.add_goal("Boil the water.", activity_id="tea") == activity
    assert agent.dump_component().config["store"] == database
    with pytest.raises(ConfigurationError, match="PGPASSWORD") as caught:
        other.dump_component()
    assert "hush" not in str(caught.value)
    for words, shown in (("ls",), "tea"), (("show", "tea"), "Boil the water."):
        with pytest.raises(SystemExit):
            main(["activities", words[0], database, *words[1:]])
        assert shown in capsys.readouterr().out
    await agent.close()
    await other.close()


@pytest.mark.long
@pytest.mark.timeout(120)
def test_the_example_of_two_workers_shows_that_a_killed_one_is_replaced(database: str) -> None:
    said = python(ROOT / "examples" / "several_workers.py", database, seconds=100)
    assert said.endswith("The build passed, and the users have it.\n")
