"""Calls of a plain agent, run as `CoagAgent` runs what it selected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from coag.cycle import GuardDeps, run_selected, told
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Evaluation,
)

from ._guarded_answers import (
    NOTHING_DONE,
    GuardedResult,
    answer_of,
    broken,
    refusal,
    said,
    verdicts_text,
)
from ._guarded_run import GuardedRun
from ._tool_runner import ToolRunner

Show = Callable[[object], None]
_ELSEWHERE = (
    "Another event loop or thread is using this workbench just now. Call it again afterwards, or "
    "give each thread a workbench of its own."
)
_SHOW: ContextVar[Show] = ContextVar("coag_guarded_call_show")


def show_event(event: object) -> None:
    """Passes on what a streaming tool shows, to whoever waits for the call that it is part of."""
    _SHOW.get()(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call that an agent wants made."""

    name: str
    arguments: Mapping[str, Any] | None
    """As the agent gives them: not checked yet, and of a stock agent not always a mapping."""
    call_id: str | None = None
    """The agent's own id of the call, which the tool gets."""
    show: Show = lambda event: None
    """Is told what the tool shows while it runs."""


@dataclass(slots=True)
class _Door:
    """The tools, for one call: by the definition by which it is judged it is approved and run."""

    runner: ToolRunner
    call_id: str | None
    running: dict[str, ActionCall]
    """Calls that have begun and not ended."""
    listed: Mapping[str, ActionSpec] | None = None

    async def specs(self) -> Mapping[str, ActionSpec]:
        if self.listed is None:
            self.listed = {spec.name: spec for spec in await self.runner.specs()}
        return self.listed

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.runner.complete(spec, arguments)

    async def execute(self, call: ActionCall) -> ActionResult:
        own_id = call.id if self.call_id is None else self.call_id
        self.running[call.id] = call
        try:
            return await self.runner.execute(call.model_copy(update={"id": own_id}))
        finally:
            del self.running[call.id]


@dataclass(slots=True)
class _Room:
    """An event loop in which calls are made."""

    loop: asyncio.AbstractEventLoop
    calls: int = 0
    """How many are under way."""
    in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def occupied(self) -> bool:
        return self.calls > 0 and not self.loop.is_closed()


class GuardedCalls:
    """Makes calls under guard: judged, approved, run and recorded, and their returns perceived.

    Whatever happens is a result, except that the waiting task is cancelled or the process is to
    end.

    Args:
        run: What the guard knows.
        runner: Runs the tools; shows what they stream by `show_event`.
        parallel: Whether calls of read-only tools run beside others where rules judge them.
    """

    def __init__(self, run: GuardedRun, runner: ToolRunner, *, parallel: bool) -> None:
        self._run = run
        self._run.reconcilers = (runner.reconcile, *run.reconcilers)
        self._runner = runner
        self._parallel = parallel
        self._gate = Lock()
        self._room: _Room | None = None

    async def call(self, wanted: Wanted) -> GuardedResult:
        """Makes one call; where rules judge it, after those that came before.

        While calls are under way in another event loop, e.g. of another thread, it is refused:
        what the rules judge by belongs to one loop at a time.
        """
        room = self._enter(asyncio.get_running_loop())
        if room is None:
            return said(wanted.name, f"{wanted.name} was not run. {_ELSEWHERE} {NOTHING_DONE}")
        try:
            return await self._call(wanted, room)
        finally:
            with self._gate:
                room.calls -= 1

    def _enter(self, loop: asyncio.AbstractEventLoop) -> _Room | None:
        """The room of this loop with one more call in it; None if another loop is at work."""
        with self._gate:
            if self._room is None or (self._room.loop is not loop and not self._room.occupied):
                self._room = _Room(loop)
            if self._room.loop is not loop:
                return None
            self._room.calls += 1
            return self._room

    async def _call(self, wanted: Wanted, room: _Room) -> GuardedResult:
        _SHOW.set(wanted.show)
        begun: list[ActionCall] = []
        try:
            door = _Door(self._runner, wanted.call_id, self._run.running)
            spec = (await door.specs()).get(wanted.name) if self._parallel else None
            async with self._in_turn(room, beside=spec is not None and spec.read_only):
                await self._run.open()
                return await self._guarded(wanted, self._run.deps(door, begun.extend))
        except Exception as error:  # a hook may raise anything; a stock agent hangs where this does
            return broken(wanted.name, told(error), begun=bool(begun))

    async def _guarded(self, wanted: Wanted, deps: GuardDeps) -> GuardedResult:
        run = self._run
        run.next_cycle()
        arguments = _as_json(wanted.arguments)
        candidate = Candidate(id=deps.ids("call"), action=wanted.name, raw_arguments=arguments)
        await run.reconcile()
        forbidden = run.forbids
        if forbidden is not None:
            self._tell(candidate, Evaluation(candidate_id=candidate.id, verdicts=(forbidden,)))
            return refusal(wanted.name, forbidden)
        run.constraints.pin()
        ended = await run_selected([candidate], run.context, deps, judged=self._tell)
        await run.perceive(percept for done in ended.ran for percept in done.queued)
        if ended.broken is not None and not isinstance(ended.broken, asyncio.CancelledError):
            raise ended.broken
        answer = answer_of(ended.ran[0])
        if run.stale:
            text = f"{answer.to_text()}\n{run.stale}"
            return said(wanted.name, text, unknown=answer.may_have_happened)
        return answer

    def _tell(self, candidate: Candidate, judged: Evaluation) -> None:
        """Notes what the rules said, and what could not be offered."""
        problems = self._runner.problems
        self._run.note(
            "constraint",
            verdicts_text(candidate, judged),
            call=candidate.id,
            verdicts=[verdict.model_dump(mode="json") for verdict in judged.verdicts],
            **({"problems": list(problems)} if problems else {}),
        )

    @asynccontextmanager
    async def _in_turn(self, room: _Room, *, beside: bool) -> AsyncGenerator[None]:
        """Waits for the calls before, where what they change is judged by.

        Args:
            room: The event loop.
            beside: Whether the call may run beside them, since it changes nothing.
        """
        judged = bool(self._run.constraints.pin()) or self._run.approvals is not None
        if beside or not judged:
            yield
            return
        async with room.in_turn:
            yield


def _as_json(arguments: object) -> str:
    """The arguments as JSON; what is none becomes a text that no schema lets pass."""
    try:
        return json.dumps(arguments if arguments is not None else {}, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return f"[no JSON: {type(arguments).__name__}]"
