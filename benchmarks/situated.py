"""What waiting activities cost, and how fast they wake.

    python benchmarks/situated.py [--counts 10000 100000] [--wakes 200] [--only WORD ...] [--json]

Each row is measured in a process of its own. What is measured, how, and the figures:
benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    event,
)

from coag.mcp import StreamableHttpServerParams
from coag.schema import Percept, PerceptKind, SystemClock, Trust
from coag.situated import (
    Activity,
    ActivityBudget,
    ActivityScheduler,
    ActivityState,
    ActivityStore,
    Delivery,
    EnhancedTool,
    InProcessConnection,
    McpToolConnection,
    OnSignal,
    SignalRecord,
    Step,
    ToolConnection,
    ToolPerception,
    Wait,
    Workspace,
    observable,
    operation,
    serve_http,
    signal,
)

MANY = 1_000
"""How many wake on one signal."""
SECONDS = 120.0
ENDLESS = ActivityBudget(steps=None)
Figures = dict[str, float]


# ---- Blocked activities: ours, on disk ----


class Waiter:
    """A mind that waits for the next signal, and notes when each step began."""

    def __init__(self, store: ActivityStore) -> None:
        self.store = store
        self.began: asyncio.Queue[float] = asyncio.Queue()

    async def step(self, activity: Activity) -> Step:
        """Perceives, and waits again."""
        self.began.put_nowait(time.perf_counter())
        inbox = self.store.inbox(activity.id)
        self.store.forget(activity.id, [entry.percept.id for entry in inbox])
        return Step(wait=_wait(activity.updated))

    async def release(self, activity_id: str) -> None:
        """Holds nothing."""


def _wait(now: datetime) -> Wait:
    condition = OnSignal(tool="pump", name="pump.ready")
    return Wait(condition=condition, since=now, deadline=now + timedelta(hours=1))


def _name(number: int) -> str:
    return f"activity-{number:06}"


def _fill(path: Path, count: int) -> None:
    now = SystemClock().now()
    store = ActivityStore(path)
    with store.together():
        for number in range(count):
            store.add(
                Activity(
                    id=_name(number),
                    agent="agent",
                    goal="watch the pump until its pressure is nominal",
                    created=now,
                    updated=now,
                    state=ActivityState.BLOCKED,
                    wait=_wait(now),
                    budget=ENDLESS,
                )
            )
    store.close()


def _signal(number: int) -> Percept:
    now = SystemClock().now()
    record = SignalRecord(
        event_id=f"pump/e1/{number}",
        name="pump.ready",
        timestamp=now,
        data={"psi": 2_500},
        cursor=f"e1:{number}",
        rev=number,
    )
    return Percept(
        id=record.event_id,
        at=now,
        kind=PerceptKind.SIGNAL,
        source="pump",
        trust=Trust.UNTRUSTED,
        content="pump.ready: psi 2500",
        data=record.model_dump(mode="json"),
    )


async def ours(count: int, wakes: int) -> Figures:
    """A store on disk, a scheduler over it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "activities.db"
        _fill(path, count)
        before, began = _memory(), time.perf_counter()
        store = ActivityStore(path)
        mind = Waiter(store)
        scheduler = ActivityScheduler(store, mind)
        await scheduler.start()
        figures: Figures = {"start_s": time.perf_counter() - began}
        figures["bytes"] = (_memory() - before) / count
        numbers = iter(range(1, 1_000_000))

        async def wake(names: list[str]) -> float:
            percept, sent = _signal(next(numbers)), time.perf_counter()
            store.deliver("pump", percept.data["cursor"], [Delivery(one, percept) for one in names])
            scheduler.arrived(names)
            figures["ready_many_ms"] = (time.perf_counter() - sent) * 1e3  # the last counts
            return max([await mind.began.get() for _ in names]) - sent

        figures |= await _woken(wake, count, wakes)
        await scheduler.stop()
        store.close()
    return figures


# ---- Blocked activities: a task and a Future each; AutoGen's agents ----


async def tasks(count: int, wakes: int) -> Figures:
    """A task for each activity, which awaits a Future."""
    loop = asyncio.get_running_loop()
    began: asyncio.Queue[float] = asyncio.Queue()
    futures: dict[str, asyncio.Future[int]] = {}

    async def activity(name: str) -> None:
        while True:
            futures[name] = loop.create_future()
            await futures[name]
            began.put_nowait(time.perf_counter())

    before = _memory()
    running = [asyncio.create_task(activity(_name(number))) for number in range(count)]
    await asyncio.sleep(0)
    figures: Figures = {"bytes": (_memory() - before) / count}

    async def wake(names: list[str]) -> float:
        sent = time.perf_counter()
        for name in names:
            futures[name].set_result(1)
        return max([await began.get() for _ in names]) - sent

    figures |= await _woken(wake, count, wakes)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return figures


async def routed(count: int, wakes: int) -> Figures:
    """AutoGen's `RoutedAgent`, an instance for each activity, over its runtime in this process."""
    began: asyncio.Queue[float] = asyncio.Queue()

    class Pursuing(RoutedAgent):
        @event
        async def on_signal(self, message: SignalRecord, ctx: MessageContext) -> None:
            began.put_nowait(time.perf_counter())

    runtime = SingleThreadedAgentRuntime()
    await Pursuing.register(runtime, "activity", lambda: Pursuing("pursues a goal"))
    await runtime.add_subscription(TypeSubscription("pump", "activity"))
    before = _memory()
    for number in range(count):
        await runtime.try_get_underlying_agent_instance(AgentId("activity", _name(number)))
    figures: Figures = {"bytes": (_memory() - before) / count}
    runtime.start()
    record = SignalRecord.model_validate(_signal(1).data)

    async def wake(names: list[str]) -> float:
        sent = time.perf_counter()
        for name in names:
            await runtime.publish_message(record, TopicId("pump", name))
        return max([await began.get() for _ in names]) - sent

    figures |= await _woken(wake, count, wakes)
    await runtime.stop()
    return figures


async def _woken(wake: Callable[[list[str]], Awaitable[float]], count: int, wakes: int) -> Figures:
    await wake([_name(0)])
    one = [await wake([_name(number * 7 % count)]) for number in range(wakes)]
    many = await wake([_name(number) for number in range(min(MANY, count))])
    return {**_spread("wake_one", one), "wake_many_ms": many * 1e3}


# ---- From a signal to the step that it wakes, and signals a second ----


class Ticker(EnhancedTool):
    """Emits signals on request."""

    protocol = "Tick."
    count = observable(int, 0)
    ticked = signal("ticker.ticked", payload={"number": int})

    @operation
    def tick(self, times: int = 1) -> None:
        """Emits so many signals."""
        for _ in range(times):
            self.count += 1
            self.ticked.emit(number=self.count)


class Reader(Waiter):
    """A mind that counts the signals that it perceives."""

    seen = 0

    async def step(self, activity: Activity) -> Step:
        """Perceives, and waits for the next."""
        inbox = [entry.percept for entry in self.store.inbox(activity.id)]
        self.store.forget(activity.id, [percept.id for percept in inbox])
        self.seen += sum(percept.kind is PerceptKind.SIGNAL for percept in inbox)
        self.began.put_nowait(time.perf_counter())
        condition = OnSignal(tool="ticker", name="ticker.ticked")
        return Step(wait=Wait(condition=condition, since=activity.updated))


async def _listening(
    workspace: Workspace, connection: ToolConnection, work: Callable[[Reader], Awaitable[Figures]]
) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        store = ActivityStore(Path(folder) / "activities.db")
        mind = Reader(store)
        scheduler = ActivityScheduler(store, mind)
        perception = ToolPerception([connection], store, arrived=scheduler.arrived)
        await perception.start()
        await scheduler.start()
        now = SystemClock().now()
        await perception.focus("a", "ticker")
        scheduler.add(
            Activity(id="a", agent="a", goal="hear", created=now, updated=now, budget=ENDLESS)
        )
        await mind.began.get()
        figures = await work(mind)
        await scheduler.stop()
        await perception.stop()
        store.close()
    await workspace.close()
    return figures


async def over_http(count: int, wakes: int) -> Figures:
    """From the signal in the server to the step, over Streamable HTTP, in one process."""
    workspace = Workspace()
    workspace.add(Ticker())

    async def work(mind: Reader) -> Figures:
        took: list[float] = []
        for number in range(wakes):
            await asyncio.sleep(0.01 + number % 7 / 500)  # the agent is at rest
            sent = time.perf_counter()
            await workspace.invoke("ticker", "tick", {})
            took.append(await mind.began.get() - sent)
        return _spread("wake_one", took)

    async with serve_http(workspace) as address:
        connection = McpToolConnection(StreamableHttpServerParams(url=address), "there")
        return await _listening(workspace, connection, work)


async def signals(count: int, wakes: int) -> Figures:
    """Signals a second into one activity: emitted, read, delivered, perceived; in process."""
    workspace = Workspace()
    workspace.add(Ticker())

    async def work(mind: Reader) -> Figures:
        began = time.perf_counter()
        for number in range(count // 50):
            await workspace.invoke("ticker", "tick", {"times": 50})
            while mind.seen < (number + 1) * 50:
                await mind.began.get()
        return {"signals_a_second": mind.seen / (time.perf_counter() - began)}

    return await _listening(workspace, InProcessConnection(workspace), work)


# ---- Rows ----

ROWS: Mapping[str, Callable[[int, int], Awaitable[Figures]]] = {
    "ours": ours,
    "tasks": tasks,
    "routed": routed,
    "over_http": over_http,
    "signals": signals,
}
BLOCKED = ("ours", "tasks", "routed")


def _memory() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4_096


def _spread(name: str, seconds: list[float]) -> Figures:
    ordered = sorted(seconds)
    return {
        f"{name}_p50_ms": ordered[len(ordered) // 2] * 1e3,
        f"{name}_p99_ms": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1e3,
    }


def _in_a_process(row: str, count: int, wakes: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--row", row, "--counts", str(count)]
    done = subprocess.run(
        [*command, "--wakes", str(wakes)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{row} of {count} failed:\n{done.stderr}")
    return {"row": row, "count": count, **json.loads(done.stdout)}


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--wakes", type=int, default=200)
    parser.add_argument("--only", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--row", choices=list(ROWS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        work = ROWS[given.row](given.counts[0], given.wakes)
        sys.stdout.write(json.dumps(asyncio.run(asyncio.wait_for(work, SECONDS))))
        return
    rows = [
        _in_a_process(row, count, given.wakes)
        for row in given.only
        for count in (given.counts if row in BLOCKED else given.counts[:1])
    ]
    if given.json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return
    for row in rows:
        figures = "  ".join(f"{name} {value:,.3f}" for name, value in list(row.items())[2:])
        sys.stdout.write(f"{row['row']:>10} {row['count']:>8,}  {figures}\n")


if __name__ == "__main__":
    main()
