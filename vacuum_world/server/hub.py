"""The one place where a served world changes: written to disk first, then shown, then answered."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from vacuum_world.errors import (
    NotPausedError,
    OutsideGridError,
    StateFileError,
    UnknownRobotError,
)
from vacuum_world.showing import Report
from vacuum_world.world import (
    Direction,
    Intervention,
    LoggedAction,
    Robot,
    Step,
    Value,
    WorldEvent,
    WorldState,
    clean,
    intervene,
    join,
    leave,
    move,
    tick,
    use,
)

from .gate import Gate
from .tokens import Tokens, new_token
from .views import Scene

ResultT = TypeVar("ResultT")

_WAITING = 256
_RECENT = 50


# ---- The world on disk ----


class KeptWorld(Value):
    """Everything a server needs to come back as it was."""

    version: Literal[1] = 1
    """Version of this format."""
    world: WorldState
    """The world, its log included."""
    tokens: Tokens
    """Hashes of the tokens in force."""


class StateFile:
    """Where a world is kept.

    The file is replaced, never rewritten in place: a process killed at any moment leaves either
    the old world or the new one. It is as safe as a process kill demands, not a power loss.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> KeptWorld | None:
        """The kept world, or None where nothing is kept yet.

        Raises:
            StateFileError: The file holds something else.
            OSError: It cannot be read.
        """
        try:
            return KeptWorld.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]["msg"]
            raise StateFileError(str(self._path), first) from error

    def save(self, saved: KeptWorld) -> None:
        """Replace what is kept.

        Raises:
            OSError: It cannot be written; the old content stays.
        """
        beside = self._path.with_name(f".{self._path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(beside, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(saved.model_dump_json())
        beside.replace(self._path)


# ---- Those who watch ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A world and what just happened in it."""

    number: int
    """Counts the changes since the server started."""
    scene: Scene
    """What there is to be seen afterwards."""
    events: tuple[WorldEvent, ...]
    """What happened."""


class Watchers:
    """Passes every moment on; a watcher that falls too far behind is dropped and may come back."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[Moment | None]] = set()
        self._recent: deque[WorldEvent] = deque(maxlen=_RECENT)
        self._number = 0
        self._closed = False

    def publish(self, scene: Scene, events: Iterable[WorldEvent] = ()) -> None:
        """Send to every watcher."""
        moment = Moment(number=self._number + 1, scene=scene, events=tuple(events))
        self._number = moment.number
        self._recent.extend(moment.events)
        for queue in tuple(self._queues):
            if queue.qsize() >= _WAITING:
                self._queues.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(moment)

    def open(self) -> None:
        """Let streams begin (again, after `close`)."""
        self._closed = False

    def close(self) -> None:
        """End every stream, now and later; only in the event loop that serves them."""
        self._closed = True
        for queue in self._queues:
            queue.put_nowait(None)

    async def watch(self, now: Scene) -> AsyncIterator[Moment]:
        """The present with the latest events, then every change until `close`."""
        if self._closed:
            return
        queue: asyncio.Queue[Moment | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            yield Moment(number=self._number, scene=now, events=tuple(self._recent))
            while (moment := await queue.get()) is not None:
                yield moment
        finally:
            self._queues.discard(queue)


# ---- The world that is served ----


class WorldHub:
    """A world, its tokens, its pace and its watchers.

    Every change is written to the state file (where there is one) before it counts: if that
    fails with an `OSError`, nothing has changed.
    """

    def __init__(self, saved: KeptWorld, file: StateFile | None = None) -> None:
        self._saved = saved
        self._file = file
        self.watchers = Watchers()
        """The watchers, who get every change."""
        self.gate = Gate(self._show)
        """What actions pass, and what pauses them."""
        self._reports: dict[str, Report] = {}
        if file:
            file.save(saved)

    @property
    def state(self) -> WorldState:
        """The world now."""
        return self._saved.world

    @property
    def tokens(self) -> Tokens:
        """The tokens in force."""
        return self._saved.tokens

    @property
    def scene(self) -> Scene:
        """What there is to be seen now."""
        return Scene(state=self.state, pace=self.gate.pace, reports=dict(self._reports))

    def join(self, name: str) -> tuple[Robot, str]:
        """Let a new robot in and give it a token.

        Raises:
            NameTakenError: A robot of this name is here already.
            WorldFullError: No cell is free.
        """
        step = join(self.state, name)
        token = new_token()
        tokens = self.tokens.granted(step.result.id, name, token)
        self._commit(step.state, tokens, step.events)
        return step.result, token

    def hand_over(self, name: str) -> tuple[Robot, str] | None:
        """Give the robot of this name a fresh token, the old one losing force; None: no such."""
        robot = next((robot for robot in self.state.robots if robot.name == name), None)
        if robot is None:
            return None
        token = new_token()
        event = WorldEvent(
            kind="changed",
            tick=self.state.tick,
            robot=robot.id,
            cell=robot.position,
            text=f"{name} was handed over",
        )
        self._commit(self.state, self.tokens.granted(robot.id, name, token), (event,))
        return robot, token

    def leave(self, robot_id: str) -> None:
        """Take a robot and its token out.

        Raises:
            UnknownRobotError: No robot has this id.
        """
        step = leave(self.state, robot_id)
        self._commit(step.state, self.tokens.revoked(robot_id), step.events)
        self._reports.pop(robot_id, None)
        self._show()

    def move(self, robot_id: str, direction: Direction, action_id: str | None) -> LoggedAction:
        """Move a robot; see `vacuum_world.world.move`."""
        return self._apply(move(self.state, robot_id, direction, action_id))

    def clean(self, robot_id: str, action_id: str | None) -> LoggedAction:
        """Clean with a robot; see `vacuum_world.world.clean`."""
        return self._apply(clean(self.state, robot_id, action_id))

    def use(self, robot_id: str, gadget: str, action_id: str | None) -> LoggedAction:
        """Use a gadget with a robot; see `vacuum_world.world.use`."""
        return self._apply(use(self.state, robot_id, gadget, action_id))

    def tick(self, count: int = 1) -> tuple[WorldEvent, ...]:
        """Let `count` ticks pass, as one change."""
        state, events = self.state, list[WorldEvent]()
        for _ in range(count):
            step = tick(state)
            state = step.state
            events.extend(step.events)
        self._commit(state, self.tokens, tuple(events))
        return tuple(events)

    def step(self, count: int = 1) -> None:
        """While paused, let `count` actions through; by the clock, as many ticks pass first.

        Raises:
            NotPausedError: The world is not paused.
        """
        if not self.gate.pace.paused:
            raise NotPausedError
        if self.state.ticks == "clock":
            self.tick(count)
        self.gate.step(count)

    def intervene(self, intervention: Intervention) -> tuple[WorldEvent, ...]:
        """Apply an intervention; see `vacuum_world.world.intervene`."""
        step = intervene(self.state, intervention)
        self._apply(step)
        return step.events

    def restore(self, state: WorldState) -> None:
        """Put another world in place; tokens of robots that are in both stay in force."""
        here = {(robot.id, robot.name) for robot in state.robots}
        text = f"another world was restored, at tick {state.tick}"
        event = WorldEvent(kind="changed", tick=state.tick, text=text)
        self._reports.clear()
        self._commit(state, self.tokens.limited_to(here), (event,))

    def report(self, robot_id: str, report: Report) -> None:
        """Show watchers what an agent reports of itself; the world stays as it is.

        Raises:
            UnknownRobotError: No robot has this id.
            OutsideGridError: The report names a cell that the grid does not have.
        """
        if all(robot.id != robot_id for robot in self.state.robots):
            raise UnknownRobotError(robot_id, (robot.id for robot in self.state.robots))
        outside = report.belief.outside(self.state.grid) if report.belief else None
        if outside is not None:
            raise OutsideGridError(outside, self.state.grid)
        self._reports[robot_id] = report
        self._show()

    def open(self) -> None:
        """Let streams begin and actions wait (again, after `close`)."""
        self.watchers.open()
        self.gate.open()

    def close(self) -> None:
        """End every stream and every wait; only in the event loop that serves them."""
        self.watchers.close()
        self.gate.close()

    def _show(self) -> None:
        self.watchers.publish(self.scene)

    def _apply(self, step: Step[ResultT]) -> ResultT:
        self._commit(step.state, self.tokens, step.events)
        return step.result

    def _commit(self, state: WorldState, tokens: Tokens, events: tuple[WorldEvent, ...]) -> None:
        saved = KeptWorld(world=state, tokens=tokens)
        if self._file:
            self._file.save(saved)
        self._saved = saved
        self.watchers.publish(self.scene, events)
