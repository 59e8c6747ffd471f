"""The agents of sessions: made, kept for a while, and brought back from session and run folder."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, cast
from weakref import WeakValueDictionary

from agent_framework import AgentSession, Content, Message
from agent_framework.exceptions import AgentInvalidRequestException

from coag.agent import CoagAgent, RecoveredState
from coag.errors import UnknownNameError
from coag.schema import TurnEnd
from coag.tracing import RunFolder, read_trace

from .approval_desk import ApprovalDesk
from .chat_model import ChatClientModel
from .messages import Incoming, digest_of_message, key_of
from .session_state import HEARD, STATE, PastTurn, SavedSession, SessionFile, past_turns
from .tool_space import ToolSpace


@dataclass(slots=True)
class LiveSession:
    """The agent of one session, and what belongs to it."""

    agent: CoagAgent
    models: Sequence[ChatClientModel]
    tools: ToolSpace
    desk: ApprovalDesk
    saved: SavedSession = field(default_factory=SavedSession)
    kept: Any = None
    """`saved` as the session holds it."""
    used_at: float = 0.0
    stream: AsyncGenerator[Any, None] | None = None
    """The turn in progress."""
    step: asyncio.Task[Any] | None = None
    """Its step that waits for approval."""
    loop: asyncio.AbstractEventLoop | None = None

    async def leave(self) -> None:
        """Lets go of the agent; its run can be continued, also in the middle of its turn."""
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
    messages: tuple[Message, ...]
    """What it is to be told."""
    recorded: str | None = None
    """The answer, where the run has it already: it was given and not stored in the session."""
    answers: tuple[Content, ...] = ()
    """Answers to requests for approval."""


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
        saved = SavedSession.of(session, self._name)
        incoming = Incoming.of(given, self._name, saved.heard)
        live = self._live.get(session.session_id)
        if live is not None and not self._is_current(live, session):
            del self._live[session.session_id]
            await live.leave()
            live = None
        if live is not None:
            opened = Opened(live, incoming.messages)
        else:
            opened = await self._restored(session, saved, incoming)
        opened.answers = incoming.answers
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
        known = SessionFile.read(self._logs, self._name, session.session_id)
        earlier = known.runs.get(folder.path.name, {}).get(turn, []) if begun else []
        known.note(self._logs, self._name, folder.path.name, turn, [*earlier, *incoming.keys])

    async def keep(
        self, live: LiveSession, session: AgentSession, heard: Sequence[Message] = ()
    ) -> None:
        """Writes what the agent knows after a turn into the session."""
        keys = [*live.saved.heard, *map(key_of, heard)]
        live.saved = SavedSession(
            run=live.saved.run,
            turn=live.agent.turn,
            state=dict(await live.agent.save_state()),
            heard=list(dict.fromkeys(keys))[-HEARD:],
        )
        live.kept = live.saved.keep(session, self._name)

    async def keep_pending(self, live: LiveSession, session: AgentSession) -> None:
        """Writes into the session what its turn waits for."""
        live.saved.pending = await live.desk.pending()
        live.kept = live.saved.keep(session, self._name)

    async def drop(self, session: AgentSession) -> None:
        """Lets go of a session's agent."""
        live = self._live.pop(session.session_id, None)
        if live is not None:
            await live.leave()

    async def close(self) -> None:
        """Lets go of all agents; turns that wait for approval stay open in their run folders."""
        while self._live:
            await self._live.popitem(last=False)[1].leave()

    # ---- bringing an agent back ----

    def _is_current(self, live: LiveSession, session: AgentSession) -> bool:
        kept: Any = session.state.get(STATE)
        now: Any = cast("dict[str, Any]", kept).get(self._name) if kept else None
        elsewhere = live.step is not None and live.loop is not asyncio.get_running_loop()
        lost = elsewhere or live.desk.left
        return not lost and (now is live.kept or now == live.kept)

    async def _restored(
        self, session: AgentSession, saved: SavedSession, incoming: Incoming
    ) -> Opened:
        live = self._make(session)
        live.saved, live.kept = saved, saved.model_dump(mode="json")
        if self._logs is not None:
            file = SessionFile.read(self._logs, self._name, session.session_id)
            run = saved.run or next(reversed(file.runs), None)
            folder = None if run is None else RunFolder(self._logs / Path(run).name)
            if folder is not None and folder.exists:
                found = await self._of_run(
                    live, folder, file.runs.get(folder.path.name, {}), incoming
                )
                if found is not None:
                    return found
        saved.run, saved.pending = None, {}
        if saved.state is not None:
            await live.agent.load_state(saved.state)
        return Opened(live, incoming.messages)

    async def _of_run(
        self,
        live: LiveSession,
        folder: RunFolder,
        given: dict[int, list[str]],
        incoming: Incoming,
    ) -> Opened | None:
        """The agent as its run has it; None where the session is to begin a run of its own."""
        turns, at = past_turns(folder), live.saved.turn
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
            return Opened(live, incoming.messages)
        taken = keys[: past.said] if past is not None else []
        new = [one for one in incoming.messages if digest_of_message(one) not in taken]
        return Opened(live, tuple(new))

    async def _recorded(
        self, live: LiveSession, folder: RunFolder, turn: int, past: PastTurn
    ) -> Opened:
        """The answer that a run gave, and the agent as it was then; nothing is done again."""
        recovered = RecoveredState()
        for entry in read_trace(folder.trace_path, on_problem=lambda problem: None):
            recovered.take(entry.body)
            if isinstance(entry.body, TurnEnd) and entry.body.turn == turn:
                break
        await live.agent.restore(recovered)
        live.saved.run = folder.path.name
        return Opened(live, (), past.answer)

    async def _let_go(self) -> None:
        """Lets go of agents that were not used for long, and of the oldest of too many."""
        now = monotonic()
        for name, live in list(self._live.items()):
            lock = self._locks.get(name)
            old = now - live.used_at > self._idle or len(self._live) > self._most
            if old and not (lock is not None and lock.locked()):
                del self._live[name]
                await live.leave()
