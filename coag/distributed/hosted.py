"""An agent on a worker: its turns, begun once and followed from afar."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from autogen_agentchat.base import Response
from autogen_core import CancellationToken

from coag._util.locks import LockHeldError
from coag.agent import CoagAgent
from coag.errors import CoagError, ConfigurationError

from .journal import JOURNAL, Line, PlaceOpened, StateUnknown, TurnBegun, TurnEnded, TurnJournal
from .places import AgentFactory, AgentPlace, OpenedAgent, open_agent, run_names
from .protocol import (
    AgentDescription,
    Answer,
    BeginTurn,
    FollowTurn,
    Message,
    MessageCodec,
    Operation,
    OperationDone,
    RemoteFailure,
    RemoteLimits,
    RemoteRefusal,
    RemoteState,
    Request,
    RequestFailed,
    StillWorking,
    TurnItem,
    TurnProgress,
    failure_of,
)

TurnStream = AsyncGenerator[Message | Response, None]
"""What `ChatAgent.on_messages_stream` gives."""

_ENVELOPE = 1_024
"""Bytes of an answer around its items."""


class HostedTurn:
    """Runs a turn and keeps what it brings until the client has it."""

    def __init__(
        self,
        id: str,
        codec: MessageCodec,
        limits: RemoteLimits,
        on_end: Callable[[HostedTurn], None],
    ) -> None:
        self.id = id
        self.ended = False
        self.failure: RemoteFailure | None = None
        self.response: TurnItem | None = None
        self._epoch = uuid.uuid4().hex
        self._codec = codec
        self._limits = limits
        self._on_end = on_end
        self._items: list[tuple[TurnItem, int]] = []
        """What the client may lack, with its size."""
        self._first = 0
        self._numbers: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._token = CancellationToken()
        self._task: asyncio.Task[None] | None = None
        self._lease: asyncio.TimerHandle | None = None
        self._why = ""

    @property
    def running(self) -> bool:
        """True from its beginning to its end."""
        return self._task is not None and not self.ended

    def begin(self, stream: Callable[[CancellationToken], TurnStream]) -> None:
        """Lets the turn run; what it brings is had from `progress`."""
        self._renew_lease()
        self._task = asyncio.create_task(self._run(stream))

    def end(
        self, *, response: TurnItem | None = None, failure: RemoteFailure | None = None
    ) -> None:
        """Ends a turn that did not run here, with what is known of it."""
        self.response, self.failure, self.ended = response, failure, True
        if response is not None:
            self._items.append((response, _size(response)))

    async def progress(self, epoch: str, after: int) -> TurnProgress | RequestFailed:
        """What it brought after that many items; waits a moment where there is nothing new.

        A failure is reported after everything else.
        """
        self._renew_lease()
        if epoch == self._epoch:
            self._drop_until(after)
        if not self.ended and not self._items:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.poll):
                    await self._changed.wait()
        if self.failure is not None and not self._items:
            return RequestFailed(failure=self.failure)
        totals = accumulate(size for _, size in self._items)
        most = self._limits.max_bytes - _ENVELOPE
        fitting = sum(total <= most for total in totals)
        items = tuple(item for item, _ in self._items[: max(1, fitting)])
        return TurnProgress(epoch=self._epoch, first=self._first, items=items)

    async def cancel(self, why: str) -> None:
        """Cancels the turn and returns when it has ended.

        The agent is asked by its token; one that does not listen is cancelled as a task.
        """
        task = self._task
        if task is None or self.ended:
            return
        self._why = self._why or why
        self._token.cancel()
        _, still = await asyncio.wait([task], timeout=self._limits.cancel / 2)
        if still:
            task.cancel()
            await asyncio.wait([task], timeout=self._limits.cancel / 2)

    async def _run(self, stream: Callable[[CancellationToken], TurnStream]) -> None:
        try:
            async with aclosing(stream(self._token)) as produced:
                async for one in produced:
                    await self._take(one)
                    if self.response is not None:
                        break
                else:
                    raise TypeError("The agent's stream ended without a response.")
        except (Exception, asyncio.CancelledError) as error:  # the client must learn of it
            ours = self._why and isinstance(error, asyncio.CancelledError)
            self.failure = failure_of(RemoteRefusal("cancelled", self._why) if ours else error)
        finally:
            self._end_running()

    async def _take(self, produced: Message | Response) -> None:
        """Keeps what the turn brought; waits while the client has enough to take."""
        item = self._item(produced)
        size, most = _size(item), self._limits.max_bytes
        if size > most - _ENVELOPE:
            raise RemoteRefusal(
                "too_large",
                f"A {item.message['type']} of the turn takes {size} bytes; a message may take "
                f"{most}. Let the agent answer with less or with a reference, "
                "or give host, workers and clients RemoteLimits(max_bytes=...).",
            )
        self._items.append((item, size))
        self._changed.set()
        if item.response:
            self.response = item
            return
        while len(self._items) >= self._limits.items:
            self._room.clear()
            await self._room.wait()

    def _item(self, produced: Message | Response) -> TurnItem:
        if not isinstance(produced, Response):
            self._numbers[produced.id] = self._first + len(self._items)
            return TurnItem(message=self._codec.dump(produced))
        inner: tuple[int | dict[str, Any], ...] | None = None
        if produced.inner_messages is not None:
            inner = tuple(
                self._numbers[one.id] if one.id in self._numbers else self._codec.dump(one)
                for one in produced.inner_messages
            )
        return TurnItem(message=self._codec.dump(produced.chat_message), response=True, inner=inner)

    def _drop_until(self, number: int) -> None:
        """Forgets items that the client has, but not the response: it may be asked for again."""
        while self._items and self._first < number and self._items[0][0] is not self.response:
            del self._items[0]
            self._first += 1
        if len(self._items) < self._limits.items:
            self._room.set()

    def _renew_lease(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
        if not self.ended:
            loop = asyncio.get_running_loop()
            self._lease = loop.call_later(self._limits.lease, self._abandon)

    def _abandon(self) -> None:
        self._why = f"Nobody had asked after the turn for {self._limits.lease:g} s."
        self._token.cancel()
        if self._task is not None:  # it is asked first, and ended where it does not listen
            loop = asyncio.get_running_loop()
            self._lease = loop.call_later(self._limits.cancel, self._task.cancel)

    def _end_running(self) -> None:
        if self._lease is not None:
            self._lease.cancel()
        self._numbers.clear()
        self.ended = True
        try:
            self._on_end(self)
        except CoagError as error:  # an answer that could not be kept is not given
            self.failure = failure_of(error)
            self._items.clear()
        self._changed.set()


def _size(item: TurnItem) -> int:
    """Bytes that an item takes within an envelope: JSON within JSON, so quotes count double."""
    text = json.dumps(item.model_dump())
    return len(text) + text.count('"') + text.count("\\") + 1


# ---- One hosted agent: what clients may ask of it, and its turns ----


_OPERATIONS_KEPT = 100
_REPLACED = (
    "Another agent has taken its place and knows nothing of the dialogue so far: the worker was "
    "restarted, or the agent closed. Reset the remote agent, or load a saved state, to continue."
)
_LOST = (
    "The worker does not know the turn: it was replaced, and the agent kept no logs. What the turn "
    "did until then is unknown; it is not repeated."
)


async def _journal_in(folder: Path, limits: RemoteLimits) -> TurnJournal:
    """The journal of a place; waits a while for another process that is closing it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limits.cancel
    while True:
        try:
            return TurnJournal(folder / JOURNAL, kept=limits.turns_kept)
        except LockHeldError as error:
            if loop.time() > deadline:
                raise ConfigurationError(
                    f"Another worker serves the agent of {str(folder)!r}. Stop that one, or give "
                    "this one logs of its own."
                ) from error
        await asyncio.sleep(limits.poll / 10)


class HostedAgent:
    """An agent on this worker, with its turns; a turn that is sent again is not run again."""

    def __init__(
        self,
        opened: OpenedAgent,
        place: AgentPlace,
        codec: MessageCodec,
        limits: RemoteLimits,
        journal: TurnJournal | None,
    ) -> None:
        self.closed = False
        self._agent = opened.agent
        self._instance = opened.instance
        self._place = place
        self._codec = codec.extended(opened.agent.produced_message_types)
        self._limits = limits
        self._journal = journal
        self._turns: dict[str, HostedTurn] = {}
        self._forgotten: dict[str, None] = {}
        """Ids of turns that are over and not kept; the oldest first."""
        self._operations: dict[str, asyncio.Task[Answer]] = {}
        if journal is not None:
            self._take_over(opened, journal)

    @classmethod
    async def open(
        cls, factory: AgentFactory, place: AgentPlace, codec: MessageCodec, limits: RemoteLimits
    ) -> HostedAgent:
        """Makes the agent of a place, or takes it up where its worker left it."""
        journal = None
        if place.logs is not None:
            journal = await _journal_in(place.logs.parent, limits)
        try:
            opened = await open_agent(factory, place, journal)
            return cls(opened, place, codec, limits, journal)
        except BaseException:
            if journal is not None:
                journal.close()
            raise

    async def answer(self, id: str, request: Request) -> Answer:
        """Answers a request within `RemoteLimits.poll`, if only that it is being worked on."""
        match request:
            case BeginTurn():
                return await (self._find(request.turn) or self._begin(request)).progress("", 0)
            case FollowTurn():
                turn = self._find(request.turn)
                if turn is None:
                    raise RemoteRefusal("lost", _LOST)
                return await turn.progress(request.epoch, request.after)
            case Operation(op="describe"):
                return AgentDescription(
                    name=self._agent.name,
                    description=self._agent.description,
                    produces=tuple(kind.__name__ for kind in self._agent.produced_message_types),
                    instance=self._instance,
                )
            case _:
                return await self._operate(id, request)

    async def close(self, why: str) -> None:
        """Cancels what runs and closes the agent. Its journal stays, for a later worker."""
        self.closed = True
        if (turn := self._running) is not None:
            await turn.cancel(why)
        running = [task for task in self._operations.values() if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._agent.close()
        if self._journal is not None:
            self._journal.close()

    # ---- turns ----

    @property
    def _running(self) -> HostedTurn | None:
        return next((turn for turn in self._turns.values() if turn.running), None)

    def _find(self, id: str) -> HostedTurn | None:
        """The turn, where its result is kept; None for one never heard of."""
        if id in self._forgotten:
            raise RemoteRefusal(
                "forgotten",
                f"The turn is over; the results of the last {self._limits.turns_kept} turns are "
                "kept, and it is an older one. It is not run again.",
            )
        return self._turns.get(id)

    def _new(self, id: str) -> HostedTurn:
        """A new turn; of the oldest ones that have ended only the ids stay."""
        over = [one for one, turn in self._turns.items() if not turn.running]
        self._turns[id] = HostedTurn(id, self._codec, self._limits, self._note_end)
        for old in over[: max(0, len(self._turns) - self._limits.turns_kept)]:
            del self._turns[old]
            self._forgotten[old] = None
        while len(self._forgotten) > self._limits.ids_kept:
            del self._forgotten[next(iter(self._forgotten))]
        return self._turns[id]

    def _begin(self, request: BeginTurn) -> HostedTurn:
        if request.instance != self._instance or self.closed:
            raise RemoteRefusal("replaced", _REPLACED)
        if self._running is not None:
            raise RemoteRefusal("busy", "It is in a turn already; one agent takes one at a time.")
        messages = [self._codec.load_chat(message) for message in request.messages]
        before = self._agent.turn if isinstance(self._agent, CoagAgent) else None
        self._write(TurnBegun(turn=request.turn, turns_before=before))
        turn = self._new(request.turn)
        turn.begin(lambda token: self._agent.on_messages_stream(messages, token))
        return turn

    def _note_end(self, turn: HostedTurn) -> None:
        response = turn.response
        if response is not None:  # its events went with the worker that brought them
            response = response.model_copy(update={"inner": None})
        self._write(TurnEnded(turn=turn.id, response=response, failure=turn.failure))

    def _take_over(self, opened: OpenedAgent, journal: TurnJournal) -> None:
        """Takes over the turns of the agent's predecessor, and settles the one it was in."""
        for line in journal.ended.values():
            self._new(line.turn).end(response=line.response, failure=line.failure)
        if opened.turn is None:
            return
        turn = self._new(opened.turn)
        if opened.lost is not None:
            turn.end(failure=RemoteFailure(kind="lost", problem=opened.lost))
        elif opened.answer is not None:
            turn.end(response=TurnItem(message=self._codec.dump(opened.answer), response=True))
        else:
            turn.begin(lambda token: self._agent.on_messages_stream([], token))
            return
        self._note_end(turn)

    # ---- the rest of a chat agent ----

    async def _operate(self, id: str, request: Operation) -> Answer:
        """Does it once, however often it is asked for under this id."""
        task = self._operations.get(id)
        if task is None:
            task = self._operations[id] = asyncio.create_task(self._guarded(request))
            done = [old for old, other in self._operations.items() if other.done()]
            for old in done[: max(0, len(self._operations) - _OPERATIONS_KEPT)]:
                del self._operations[old]
        done_now, _ = await asyncio.wait([task], timeout=self._limits.poll)
        return task.result() if done_now and not task.cancelled() else StillWorking()

    async def _guarded(self, request: Operation) -> Answer:
        try:
            return await self._do(request)
        except Exception as error:  # the outermost guard: the client must learn of it
            return RequestFailed(failure=failure_of(error))

    async def _do(self, request: Operation) -> Answer:
        agent, token = self._agent, CancellationToken()
        match request.op:
            case "cancel":
                await self._cancel(request.turn or "")
            case "reset":
                await self._reset(token)
            case "pause":
                await agent.on_pause(token)
            case "resume":
                await agent.on_resume(token)
            case "save_state" if request.instance != self._instance:
                raise RemoteRefusal("replaced", _REPLACED)
            case "save_state":
                return RemoteState(state=dict(await agent.save_state()))
            case "load_state" if self._running is not None:
                raise RemoteRefusal("busy", "It is in a turn. Cancel it first.")
            case "load_state":
                await agent.load_state(request.state or {})
                self._write(StateUnknown())
            case "close" if request.instance == self._instance and not self.closed:
                self._write(StateUnknown())
                await self.close("The agent was closed.")
            case _:
                pass
        return OperationDone(instance=self._instance)

    async def _cancel(self, id: str) -> None:
        if id in self._forgotten:
            return
        if (turn := self._turns.get(id)) is not None:
            await turn.cancel("It was cancelled where it was asked for.")
            return
        turn = self._new(id)  # it may arrive yet
        turn.end(failure=RemoteFailure(kind="cancelled", problem="Before it began."))
        self._note_end(turn)

    async def _reset(self, token: CancellationToken) -> None:
        if (turn := self._running) is not None:
            await turn.cancel("The agent was reset.")
        await self._agent.on_reset(token)
        runs = run_names(self._place.logs)
        self._write(PlaceOpened(instance=self._instance, past_runs=runs))

    def _write(self, line: Line) -> None:
        if self._journal is not None:
            self._journal.write(line)
