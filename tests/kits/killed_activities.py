"""Agents and the server of their tool, started and killed at any moment, and what they leave.

`python -m kits.killed_activities FOLDER PORT [DATABASE]` reads commands from its input and answers
each with a line: `start server`, `start agent OPEN`, `kill server`, `kill agent`, `wait agent`. All
are forked off it, so that a start takes no imports. With a database there may be several agents,
workers of one store: `agent-1`, `agent-2`.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import select
import signal as signals
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from coag._util.files import AtomicFile
from coag._util.locks import try_lock
from coag.mcp import StreamableHttpServerParams, sdk
from coag.schema import SystemClock
from coag.situated import (
    OPEN_STATES,
    Activity,
    ActivityEnd,
    ActivityMind,
    ActivityScheduler,
    ActivityState,
    ActivityStore,
    EnhancedTool,
    McpToolConnection,
    OnSignal,
    Step,
    ToolConnection,
    ToolConnectionError,
    ToolPerception,
    Wait,
    Workspace,
    internal_operation,
    observable,
    operation,
    serve_http,
    signal,
)

ORDERS = 3
"""How many pieces an activity has made, one after the other."""
LEDGER = "made.txt"
STORE = "activities.db"
LEASE = 3.0
"""Seconds; long enough that a machine with much to do is not taken for dead."""
BEGUN = "begun.txt"
"""There once a step was begun."""
TWICE = "twice.txt"
"""Activities that two workers had in a step at the same time."""


def made(folder: Path) -> list[str]:
    """The orders for which the press has run, as often as it did."""
    ledger = folder / LEDGER
    return ledger.read_text(encoding="utf-8").split() if ledger.exists() else []


class Press(EnhancedTool):
    """Makes one piece for each order.

    What it has made survives its server: it lies in a file that only grows.
    """

    protocol = "Order a piece, and wait for `press.made`."
    made: observable[dict[str, int]] = observable(
        dict[str, int], {}, description="Pieces for each activity, the last 100 that had any."
    )
    done = signal("press.made", "A piece is made.", payload={"order": str})

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.made = {}
        for order in made(folder):
            self._count(order)

    def _count(self, order: str) -> None:
        """Notes a piece; what is observed of a tool is bounded, as long as the ledger may get."""
        activity = order.partition("/")[0]
        others = {name: count for name, count in self.made.items() if name != activity}
        newest = list(others.items())[-99:]
        self.made = dict([*newest, (activity, self.made.get(activity, 0) + 1)])

    @operation(latency=1.0, completed_by="press.made")
    def make(self, order: str) -> str:
        """Makes a piece.

        Args:
            order: For which order.
        """
        with (self.folder / LEDGER).open("a", encoding="utf-8") as ledger:
            ledger.write(f"{order}\n")
        self._count(order)
        self.cool(order)
        return "It is being made."

    @internal_operation
    async def cool(self, order: str) -> None:
        await self.sleep(0.02)
        self.done.emit(order=order)


async def serve(folder: Path, port: int) -> None:
    """Serves the press until the process ends."""
    workspace = Workspace()
    workspace.add(Press(folder))
    async with serve_http(workspace, port=port):
        await asyncio.Event().wait()


class Orderer:
    """A scripted `ActivityMind`: it orders piece after piece, and writes down before it acts."""

    def __init__(self, folder: Path, perception: ToolPerception, store: ActivityStore) -> None:
        self.folder = folder
        self.perception = perception
        self.store = store

    async def step(self, activity: Activity) -> Step:
        """One step, which no other process may do at the same time."""
        with self._alone(activity.id):
            return await self._step(activity)

    @contextmanager
    def _alone(self, activity_id: str) -> Generator[None]:
        with (self.folder / f"{activity_id}.lock").open("a+b") as file:
            if not try_lock(file):  # a lock ends with its process
                with (self.folder / TWICE).open("a", encoding="utf-8") as found:
                    found.write(f"{activity_id}\n")
            file.write(f"{os.getpid()}\n".encode())
            yield

    async def _step(self, activity: Activity) -> Step:
        """Looks at what is made; then orders a piece, or waits for it."""
        inbox = [entry.percept for entry in self.store.inbox(activity.id)]
        self.store.forget(activity.id, [percept.id for percept in inbox])
        now = SystemClock().now()
        try:
            number = await self._made(activity.id)
            if number == ORDERS:
                return Step(end=ActivityEnd.DONE)
            order = f"{activity.id}/{number}"
            if self._intended(activity.id) != order:
                self._intend(activity.id, order)
            elif await self.perception.became_of("press", order) == "happened":
                return self._wait(order, 1.0)
            elif await self._made(activity.id) > number:
                return Step()  # it was made after the first look
            await self.perception.invoke(activity.id, "press", "make", {"order": order}, order)
        except ToolConnectionError:  # the server was killed, and comes back
            return Step(
                wait=Wait(
                    condition=OnSignal(tool="press", name="press.made"),
                    since=now,
                    deadline=now + timedelta(seconds=0.2),
                )
            )
        return self._wait(order, 1.0)

    async def release(self, activity_id: str) -> None:
        """Releases the press."""
        await self.perception.release(activity_id)

    async def _made(self, activity_id: str) -> int:
        """How many pieces are made; to focus again reads the press again."""
        reading = await self.perception.focus(activity_id, "press")
        return reading.properties["made"].get(activity_id, 0)

    def _wait(self, order: str, seconds: float) -> Step:
        now = SystemClock().now()
        condition = OnSignal(tool="press", name="press.made", where={"order": order})
        return Step(
            wait=Wait(condition=condition, since=now, deadline=now + timedelta(seconds=seconds))
        )

    def _intended(self, activity_id: str) -> str | None:
        file = self.folder / f"{activity_id}.json"
        return json.loads(file.read_bytes()) if file.exists() else None

    def _intend(self, activity_id: str, order: str) -> None:
        with AtomicFile(self.folder / f"{activity_id}.json", durable=False) as file:
            file.draft.write(json.dumps(order).encode())


async def act(folder: Path, port: int, opens: int) -> None:
    """Pursues the activities of a store until all have ended; keeps so many open if not 0."""
    server = StreamableHttpServerParams(url=f"http://127.0.0.1:{port}/mcp")
    await pursue(folder, McpToolConnection(server, "plant"), Orderer, opens)


async def pursue(
    folder: Path,
    plant: ToolConnection,
    make: Callable[[Path, ToolPerception, ActivityStore], ActivityMind],
    opens: int,
) -> None:
    """Pursues the activities of a store until all have ended; keeps so many open if not 0."""
    store = ActivityStore(sys.argv[3] if sys.argv[3:] else folder / STORE, lease=LEASE)
    perception = ToolPerception([plant], store, arrived=lambda ids: scheduler.arrived(ids))  # noqa: PLW0108 - made below
    scheduler = ActivityScheduler(store, make(folder, perception, store), claimed=perception.adopt)
    await perception.start()
    await scheduler.start()
    ended = asyncio.Event()

    def look(activity: Activity) -> None:
        if activity.over:
            ended.set()
        elif activity.state is ActivityState.RUNNING:
            (folder / BEGUN).touch()

    scheduler.watch(look)
    while scheduler.failure is None and (opens or store.find(*OPEN_STATES)):
        with store.together():
            for _ in range(opens - len(store.find(*OPEN_STATES))):
                now = SystemClock().now()
                goal = f"{ORDERS} pieces"
                scheduler.add(
                    Activity(id=store.new_id(), agent="a", goal=goal, created=now, updated=now)
                )
        with suppress(TimeoutError):  # another worker's ends are not watched here
            async with asyncio.timeout(0.5):
                await ended.wait()
        ended.clear()
    await scheduler.stop()
    await perception.stop()
    store.close()


def _end_with_the_test() -> None:
    """Ends this process when nobody can send commands any more."""
    commands = select.poll()
    commands.register(0, 0)  # that the other end is gone is reported in any case
    commands.poll()
    os._exit(1)


def _fork(work: Callable[[], None]) -> int:
    if (child := os.fork()) == 0:
        try:
            threading.Thread(target=_end_with_the_test, daemon=True).start()
            work()
        finally:
            sys.stderr.flush()
            os._exit(0)
    return child


def obey(
    serve: Callable[[Path, int], Coroutine[None, None, None]],
    act: Callable[[Path, int, int], Coroutine[None, None, None]],
) -> None:
    """Does what its input says: server and agent are given."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    sdk()  # imported once
    if sys.argv[3:]:
        importlib.import_module("psycopg")
    running: dict[str, int] = {}
    for line in sys.stdin:
        what, who, *rest = line.split()
        if what == "start" and who == "server":
            running[who] = _fork(lambda: asyncio.run(serve(folder, port)))
        elif what == "start":
            opens = int(rest[0])
            running[who] = _fork(lambda opens=opens: asyncio.run(act(folder, port, opens)))
        else:
            if what == "kill":
                os.kill(running[who], signals.SIGKILL)
            os.waitpid(running.pop(who), 0)
        sys.stdout.write(f"{line.strip()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    obey(serve, act)
