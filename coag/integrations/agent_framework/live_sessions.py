"""The agents of sessions: made, kept for a while, and brought back from session and run folder."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Self, cast
from weakref import WeakValueDictionary

from agent_framework import AgentResponseUpdate, AgentSession, Message
from agent_framework.exceptions import AgentInvalidRequestException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag._util.files import replace_file
from coag._util.validation import first_error
from coag.agent import CoagAgent, RecoveredState, TurnLease
from coag.errors import StateError, TraceError, UnknownNameError
from coag.schema import Percept, PerceptKind, TurnEnd, TurnStart
from coag.tracing import RunFolder, read_trace

from .approval_desk import ApprovalDesk, PendingCall
from .chat_model import ChatClientModel
from .guarded_tools import ToolSpace
from .messages import Incoming, digest_of_message

# ---- What a session keeps of its agent, and what a folder of logs knows of the session ----


_STATE = "coag"
"""Where a session keeps what its agents of ours know, by their names."""
_FORMAT = 1
_HEARD = 1_000
"""Messages of which a session remembers that they were taken in."""
_RUNS, _TURNS = 8, 1_000
"""Runs of a session, and turns of each, of which it is remembered what they were given."""
_BROKEN = ("cancelled", "error")


class _SavedSession(BaseModel):
    """An agent's part of a session, as JSON."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = _FORMAT
    run: str | None = None
    """Name of the run's folder; None where there are no logs."""
    turn: int = Field(default=0, ge=0)
    """The last turn that `state` knows of."""
    state: dict[str, Any] | None = None
    """What `CoagAgent.save_state` gave after it; None before the first."""
    heard: list[str] = []
    """Messages that were taken in, the last ones."""
    pending: dict[str, PendingCall] = {}
    """Requests for approval that the turn after `turn` waits for."""
    waiting: list[str] = []
    """Messages that the waiting turn was given."""

    @property
    def known(self) -> list[str]:
        """Messages that are not to be heard again."""
        return [*self.heard, *self.waiting]

    @classmethod
    def of(cls, session: AgentSession, agent: str) -> Self:
        """What a session keeps of an agent; a new one where it keeps nothing.

        Raises:
            StateError: It is no such state, or one of another version.
        """
        kept: object = session.state.get(_STATE)
        entry = cast("Mapping[str, Any]", kept).get(agent) if isinstance(kept, Mapping) else kept
        if entry is None:
            return cls()
        where = f"session.state[{_STATE!r}][{agent!r}] of session {session.session_id!r}"
        found = cast("Any", entry).get("format") if isinstance(entry, Mapping) else None
        if isinstance(found, int) and found != _FORMAT:
            raise StateError(
                f"{where} is of format {found}; this coag reads format {_FORMAT}. Use the coag "
                "that wrote it, or begin a new session. Nothing was run."
            )
        try:
            return cls.model_validate(entry)
        except ValidationError as error:
            raise StateError(
                f"{where} is no state of an agent: {first_error(error, 'the whole')}. Restore it, "
                "or begin a new session. Nothing was run."
            ) from error

    def keep(self, session: AgentSession, agent: str) -> dict[str, Any]:
        """Puts it into the session, and returns it as it is there."""
        kept = self.model_dump(mode="json", exclude={"state"}) | {"state": self.state}
        others = cast("Mapping[str, Any]", session.state.get(_STATE) or {})
        session.state[_STATE] = {**others, agent: kept}
        return kept


class _SessionFile(BaseModel):
    """Which runs a session has, and what each of their turns was given.

    It is written before a turn begins, so that after a crash the turn is found, also where the
    session was stored before it.
    """

    session: str
    runs: dict[str, dict[int, list[str]]] = {}
    """By run and turn, hashes of messages and answers; the latest run is the last one."""

    @classmethod
    def read(cls, logs: Path, agent: str, session: str) -> Self:
        """What is known of a session; nothing where it is new.

        Raises:
            TraceError: The file cannot be read.
        """
        path = _path(logs, agent, session)
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return cls(session=session)
        except (OSError, ValidationError) as error:
            raise TraceError(path, f"cannot be read: {error}") from error

    def note(self, logs: Path, agent: str, run: str, turn: int, keys: Sequence[str]) -> None:
        """Writes what a turn is given, before it begins.

        Raises:
            TraceError: The file cannot be written.
        """
        turns = self.runs.pop(run, {})
        turns[turn] = list(keys)
        self.runs[run] = dict(list(turns.items())[-_TURNS:])
        self.runs = dict(list(self.runs.items())[-_RUNS:])
        path = _path(logs, agent, self.session)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, self.model_dump_json(), durable=False)
        except OSError as error:
            raise TraceError(path, f"cannot be written: {error}") from error


def _path(logs: Path, agent: str, session: str) -> Path:
    named = hashlib.sha256(f"{agent}\n{session}".encode()).hexdigest()[:32]
    return logs / "sessions" / f"{named}.json"


class _PastTurn(BaseModel):
    """A turn of a run."""

    said: int = 0
    """Messages that it has taken in."""
    answer: str = ""
    state: Literal["open", "broken", "ended"] = "open"
    """`broken`: it was cancelled or failed, so that it may be tried again."""


def _past_turns(folder: RunFolder) -> dict[int, _PastTurn]:
    """The turns of a run, by their numbers; none where it has no trace yet.

    Raises:
        TraceError: The trace cannot be read.
    """
    turns: dict[int, _PastTurn] = {}
    if not folder.trace_path.exists():
        return turns
    for entry in read_trace(folder.trace_path, on_problem=lambda problem: None):
        match entry.body:
            case TurnStart(turn=number):
                turns[number] = _PastTurn()
            case TurnEnd(turn=number, reason=reason, response=response):
                past = turns.setdefault(number, _PastTurn())
                past.state = "broken" if reason in _BROKEN else "ended"
                past.answer = response
            case Percept(kind=PerceptKind.MESSAGE) if turns:
                turns[max(turns)].said += 1
            case _:
                pass
    return turns


# ---- The agents of sessions ----


@dataclass(slots=True)
class LiveSession:
    """The agent of one session, and what belongs to it."""

    agent: CoagAgent
    models: Sequence[ChatClientModel]
    tools: ToolSpace
    desk: ApprovalDesk
    saved: _SavedSession = field(default_factory=_SavedSession)
    kept: Any = None
    """`saved` as the session holds it."""
    used_at: float = 0.0
    stream: AsyncGenerator[Any, None] | None = None
    """The turn in progress."""
    step: asyncio.Task[Any] | None = None
    """Its step that waits for approval."""
    loop: asyncio.AbstractEventLoop | None = None

    async def leave(self) -> None:
        """Releases the agent; its run can be continued, also in the middle of its turn."""
        waiting = self.step is not None
        await self.agent.leave_run(in_turn=waiting)
        if waiting and self.loop is not asyncio.get_running_loop():
            return  # the loop in which it waits is gone, and with it all that could be ended
        await self.end_turn()
        await self.agent.close()

    async def end_turn(self) -> None:
        """Cancels the turn in progress and waits for its end."""
        step, self.step = self.step, None
        stream, self.stream = self.stream, None
        if step is not None:
            step.cancel()
            with suppress(asyncio.CancelledError, Exception):  # what it raised was its turn's
                await step
        if stream is not None:
            await stream.aclose()


@dataclass(slots=True)
class Opened:
    """An agent that is ready for a run."""

    live: LiveSession
    incoming: Incoming
    """What it was given that is new to it."""
    recorded: str | None = None
    """The answer, where the run has it already: it was given and not stored in the session."""


class LiveSessions:
    """Finds the agent of a session: in RAM, by its run folder, or by the session's state.

    Args:
        name: The agents' name.
        make: Makes an agent for a session.
        logs: Where their runs are.
        most: Agents that are kept in RAM; the others are made again of session and run folder.
        idle: Seconds after which an unused one is let go.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[AgentSession], LiveSession],
        *,
        logs: Path | None,
        most: int,
        idle: float,
    ) -> None:
        self._name = name
        self._make = make
        self._logs = logs
        self._most = most
        self._idle = idle
        self._live: OrderedDict[str, LiveSession] = OrderedDict()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._leases: WeakValueDictionary[str, TurnLease] = WeakValueDictionary()

    async def read(
        self, session: AgentSession, run: AsyncGenerator[AgentResponseUpdate, None]
    ) -> AsyncGenerator[AgentResponseUpdate]:
        """What a run gives. One of the same session that its reader has left is ended first.

        Raises:
            TurnInProgressError: This one was left, and another run has ended it meanwhile.
        """
        earlier = self._leases.get(session.session_id)
        if earlier is not None and earlier.abandoned:
            await earlier.end()
        lease = TurnLease(self._name, run)
        try:
            async for update in run:
                self._leases[session.session_id] = lease
                lease.paused = True
                yield update
                lease.resume()
        finally:
            await lease.end()

    @asynccontextmanager
    async def held(self, session: AgentSession) -> AsyncGenerator[None]:
        """One run of a session at a time; a second one waits. Behind it others may be let go."""
        lock = self._locks.setdefault(session.session_id, asyncio.Lock())
        async with lock:
            yield
        await self._let_go()

    def live(self, session: AgentSession) -> LiveSession:
        """The agent of a session, which is in RAM.

        Raises:
            UnknownNameError: It is not.
        """
        if session.session_id not in self._live:
            raise UnknownNameError("session with an agent in RAM", session.session_id, self._live)
        return self._live[session.session_id]

    async def open(self, session: AgentSession, given: Sequence[Message]) -> Opened:
        """The agent of a session, brought to where the session and its run are.

        Raises:
            StateError: The session's state is none of ours, or of another version.
            AgentInvalidRequestException: What is answered was answered otherwise before.
            TraceError: The run cannot be read, or another process has it.
        """
        live = self._live.get(session.session_id)
        if live is not None and self._is_current(live, session):
            opened = Opened(live, Incoming.of(given, self._name, live.saved.known))
        else:
            saved = _SavedSession.of(session, self._name)
            if live is not None:
                del self._live[session.session_id]
                await live.leave()
            opened = await self._restored(session, saved, given)
        if opened.recorded is None:
            opened.live.used_at = monotonic()
            self._live[session.session_id] = opened.live
            self._live.move_to_end(session.session_id)
        return opened

    def begin(self, live: LiveSession, session: AgentSession, incoming: Incoming) -> None:
        """Notes what the turn is given, in the run and beside it, before it begins."""
        folder = live.agent.begin_run()
        if self._logs is None or folder is None:
            return
        live.saved.run = folder.path.name
        begun = live.agent.in_turn or live.step is not None
        turn = live.agent.turn + (not begun)
        known = _SessionFile.read(self._logs, self._name, session.session_id)
        earlier = known.runs.get(folder.path.name, {}).get(turn, []) if begun else []
        known.note(self._logs, self._name, folder.path.name, turn, [*earlier, *incoming.keys])

    async def keep(
        self, live: LiveSession, session: AgentSession, heard: Sequence[str] = ()
    ) -> None:
        """Writes what the agent knows after a turn into the session.

        `heard` has the keys of what the turn was given and gave; none where it was interrupted.
        """
        keys = [*live.saved.heard, *(live.saved.waiting if heard else ()), *heard]
        live.saved = _SavedSession(
            run=live.saved.run,
            turn=live.agent.turn,
            state=dict(await live.agent.save_state()),
            heard=list(dict.fromkeys(keys))[-_HEARD:],
        )
        live.kept = live.saved.keep(session, self._name)

    async def keep_pending(
        self, live: LiveSession, session: AgentSession, heard: Sequence[str]
    ) -> None:
        """Writes into the session what its turn waits for, and what it was given."""
        live.saved.pending = await live.desk.pending()
        live.saved.waiting = [*live.saved.waiting, *heard]
        live.kept = live.saved.keep(session, self._name)

    async def drop(self, session: AgentSession) -> None:
        """Releases a session's agent."""
        live = self._live.pop(session.session_id, None)
        if live is not None:
            await live.leave()

    async def close(self) -> None:
        """Releases all agents; turns that wait for approval stay open in their run folders."""
        while self._live:
            await self._live.popitem(last=False)[1].leave()

    # ---- bringing an agent back ----

    def _is_current(self, live: LiveSession, session: AgentSession) -> bool:
        kept: Any = session.state.get(_STATE)
        now: Any = cast("dict[str, Any]", kept).get(self._name) if kept else None
        elsewhere = live.step is not None and live.loop is not asyncio.get_running_loop()
        lost = elsewhere or live.desk.left
        return not lost and (now is live.kept or now == live.kept)

    async def _restored(
        self, session: AgentSession, saved: _SavedSession, given: Sequence[Message]
    ) -> Opened:
        live = self._make(session)
        live.saved, live.kept = saved, saved.model_dump(mode="json")
        if self._logs is not None:
            file = _SessionFile.read(self._logs, self._name, session.session_id)
            run = saved.run or next(reversed(file.runs), None)
            folder = None if run is None else RunFolder(self._logs / Path(run).name)
            if folder is not None and folder.exists:
                incoming = Incoming.of(given, self._name, saved.known)
                found = await self._of_run(
                    live, folder, file.runs.get(folder.path.name, {}), incoming
                )
                if found is not None:
                    return found
        # A turn that waited is lost, and with it what it was given.
        saved.run, saved.pending, saved.waiting = None, {}, []
        if saved.state is not None:
            await live.agent.load_state(saved.state)
        return Opened(live, Incoming.of(given, self._name, saved.known))

    async def _of_run(
        self,
        live: LiveSession,
        folder: RunFolder,
        given: dict[int, list[str]],
        incoming: Incoming,
    ) -> Opened | None:
        """The agent as its run has it; None where the session is to begin a run of its own."""
        turns, at = _past_turns(folder), live.saved.turn
        next_turn, last = at + 1, max(turns, default=0)
        past, keys = turns.get(next_turn), given.get(next_turn, [])
        if past is not None and past.state == "ended":
            if set(incoming.keys) <= set(keys) and (incoming.keys or not keys):
                return await self._recorded(live, folder, next_turn, past)
            if incoming.answers:
                raise AgentInvalidRequestException(
                    f"What waited for approval in turn {next_turn} of {folder.path.name} was "
                    "answered otherwise before, and that turn has ended. Nothing was run."
                )
            return None
        if last > next_turn or last < at:
            return None
        await live.agent.continue_run(folder)
        live.saved.run = folder.path.name
        if not live.agent.in_turn:
            live.saved.pending = {}
        if live.agent.turn < next_turn:  # it had not begun
            return Opened(live, incoming)
        taken = keys[: past.said] if past is not None else []
        new = [one for one in incoming.messages if digest_of_message(one) not in taken]
        return Opened(live, Incoming(tuple(new), incoming.answers))

    async def _recorded(
        self, live: LiveSession, folder: RunFolder, turn: int, past: _PastTurn
    ) -> Opened:
        """The answer that a run gave, and the agent as it was then; nothing is done again."""
        recovered = RecoveredState()
        for entry in read_trace(folder.trace_path, on_problem=lambda problem: None):
            recovered.take(entry.body)
            if isinstance(entry.body, TurnEnd) and entry.body.turn == turn:
                break
        await live.agent.restore(recovered)
        live.saved.run = folder.path.name
        return Opened(live, Incoming((), ()), past.answer)

    async def _let_go(self) -> None:
        """Releases agents that were not used for long, and the oldest of too many."""
        now = monotonic()
        for name, live in list(self._live.items()):
            lock = self._locks.get(name)
            old = now - live.used_at > self._idle or len(self._live) > self._most
            if old and not (lock is not None and lock.locked()):
                del self._live[name]
                await live.leave()
