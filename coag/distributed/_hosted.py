"""One hosted agent: what clients may ask of it, and its turns."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable

from autogen_core import CancellationToken

from coag.agent import CoagAgent

from ._journal import JOURNAL, Begun, Ended, Journal, Opened, Unsettled
from ._limits import Limits
from ._messages import MessageCodec
from ._opening import OpenedAgent, open_agent, run_names
from ._places import AgentFactory, AgentPlace
from ._turn import HostedTurn, TurnStream, failure_of
from ._turn_book import TurnBook
from ._wire import (
    Answer,
    Begin,
    Cancel,
    Close,
    Describe,
    Described,
    Done,
    Failed,
    FailureKind,
    Follow,
    Item,
    LoadState,
    Operation,
    Pause,
    RemoteFailure,
    Request,
    Reset,
    Resume,
    Saved,
    SaveState,
    Working,
)

_OPERATIONS_KEPT = 100
_REPLACED = (
    "Another agent has taken its place and knows nothing of the dialogue so far: the worker was "
    "restarted, or the agent closed. Reset the remote agent, or load a saved state, to go on."
)


class HostedAgent:
    """An agent on this worker, with its turns.

    Args:
        opened: The agent in its place.
        place: Where that is.
        codec: Turns messages into JSON.
        limits: Bounds.
        journal: Where turns are written down; None without logs.
    """

    def __init__(
        self,
        opened: OpenedAgent,
        place: AgentPlace,
        codec: MessageCodec,
        limits: Limits,
        journal: Journal | None,
    ) -> None:
        self.closed = False
        self._agent = opened.agent
        self._instance = opened.instance
        self._place = place
        self._codec = codec.extended(opened.agent.produced_message_types)
        self._limits = limits
        self._journal = journal
        self._epoch = uuid.uuid4().hex
        self._turns = TurnBook(limits)
        self._operations: OrderedDict[str, asyncio.Task[Answer]] = OrderedDict()
        if journal is not None:
            self._take_over(opened, journal)

    @classmethod
    async def open(
        cls, factory: AgentFactory, place: AgentPlace, codec: MessageCodec, limits: Limits
    ) -> HostedAgent:
        """Makes the agent of a place, or takes it up where its worker left it.

        Raises:
            CoagError: Neither can be done.
        """
        journal = None
        if place.logs is not None:
            journal = Journal(place.logs.parent / JOURNAL, kept=limits.turns_kept)
        try:
            opened = await open_agent(factory, place, journal)
            return cls(opened, place, codec, limits, journal)
        except BaseException:
            if journal is not None:
                journal.close()
            raise

    async def answer(self, id: str, request: Request) -> Answer:
        """Answers a request within `Limits.poll`, if only that it is being worked on."""
        match request:
            case Describe():
                return self._describe()
            case Begin():
                return await self._begin(request)
            case Follow():
                return await self._follow(request)
            case _:
                return await self._operate(id, request)

    async def close(self, why: str) -> None:
        """Cancels what runs and closes the agent. Its journal stays, for a later worker."""
        self.closed = True
        if (turn := self._turns.running) is not None:
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

    async def _begin(self, request: Begin) -> Answer:
        turn = self._turns.find(request.turn)
        if turn is None:
            refused = self._why_not(request)
            if refused is not None:
                return Failed(failure=refused)
            messages = [self._codec.load_chat(message) for message in request.messages]
            if self._journal is not None:
                before = self._agent.turn if isinstance(self._agent, CoagAgent) else None
                self._journal.write(Begun(turn=request.turn, turns_before=before))
            turn = self._run(
                request.turn, lambda token: self._agent.on_messages_stream(messages, token)
            )
        return await turn.progress("", 0)

    def _why_not(self, request: Begin) -> RemoteFailure | None:
        forgotten = self._turns.why_unknown(request.turn)
        if forgotten is not None:
            return forgotten
        if request.instance != self._instance or self.closed:
            return _failure("replaced", _REPLACED)
        if self._turns.running is not None:
            return _failure("busy", "It is in a turn already; one agent takes one at a time.")
        return None

    async def _follow(self, request: Follow) -> Answer:
        turn = self._turns.find(request.turn)
        if turn is not None:
            return await turn.progress(request.epoch, request.after)
        told = "The worker does not know the turn: it was replaced, and the agent kept no logs. "
        told += "What the turn did until then is unknown; it is not repeated."
        return Failed(failure=self._turns.why_unknown(request.turn) or _failure("lost", told))

    def _run(self, id: str, stream: Callable[[CancellationToken], TurnStream]) -> HostedTurn:
        turn = HostedTurn(id, self._epoch, self._codec, self._limits, self._note_end)
        turn.begin(stream)
        self._turns.add(turn)
        return turn

    def _ended(
        self, id: str, *, response: Item | None = None, failure: RemoteFailure | None = None
    ) -> HostedTurn:
        """A turn that is over without having run here."""
        turn = HostedTurn(id, self._epoch, self._codec, self._limits, self._note_end)
        turn.end(response=response, failure=failure)
        self._turns.add(turn)
        return turn

    def _note_end(self, turn: HostedTurn) -> None:
        if self._journal is None:
            return
        response = turn.response
        if response is not None:  # its events went with the worker that brought them
            response = response.model_copy(update={"inner": None})
        self._journal.write(Ended(turn=turn.id, response=response, failure=turn.failure))

    def _take_over(self, opened: OpenedAgent, journal: Journal) -> None:
        """Knows the turns that a forerunner took, and settles the one it was in."""
        for line in journal.ended.values():
            self._ended(line.turn, response=line.response, failure=line.failure)
        if opened.turn is None:
            return
        if opened.lost is not None:
            self._note_end(self._ended(opened.turn, failure=_failure("lost", opened.lost)))
        elif opened.answer is not None:
            item = Item(message=self._codec.dump(opened.answer), response=True)
            self._note_end(self._ended(opened.turn, response=item))
        else:
            self._run(opened.turn, lambda token: self._agent.on_messages_stream([], token))

    # ---- the rest of a chat agent ----

    def _describe(self) -> Described:
        return Described(
            name=self._agent.name,
            description=self._agent.description,
            produces=tuple(kind.__name__ for kind in self._agent.produced_message_types),
            instance=self._instance,
        )

    async def _operate(self, id: str, request: Operation) -> Answer:
        """Does it once, however often it is asked for under this id."""
        task = self._operations.get(id)
        if task is None:
            task = self._operations[id] = asyncio.create_task(self._guarded(request))
            done = [old for old, other in self._operations.items() if other.done()]
            for old in done[: max(0, len(self._operations) - _OPERATIONS_KEPT)]:
                del self._operations[old]
        done_now, _ = await asyncio.wait([task], timeout=self._limits.poll)
        return task.result() if done_now and not task.cancelled() else Working()

    async def _guarded(self, request: Operation) -> Answer:
        try:
            return await self._do(request)
        except Exception as error:  # the outermost guard: the client must learn of it
            return Failed(failure=failure_of(error))

    async def _do(self, request: Operation) -> Answer:
        match request:
            case Cancel():
                await self._cancel(request.turn)
            case Reset():
                await self._reset()
            case Pause():
                await self._agent.on_pause(CancellationToken())
            case Resume():
                await self._agent.on_resume(CancellationToken())
            case SaveState():
                return await self._save_state(request)
            case LoadState():
                return await self._load_state(request)
            case Close():
                await self._close_on_request(request)
        return Done(instance=self._instance)

    async def _save_state(self, request: SaveState) -> Answer:
        if request.instance != self._instance:
            return Failed(failure=_failure("replaced", _REPLACED))
        return Saved(state=dict(await self._agent.save_state()))

    async def _load_state(self, request: LoadState) -> Answer:
        if self._turns.running is not None:
            return Failed(failure=_failure("busy", "It is in a turn. Cancel it first."))
        await self._agent.load_state(request.state)
        self._note_unsettled()
        return Done(instance=self._instance)

    async def _close_on_request(self, request: Close) -> None:
        if request.instance == self._instance and not self.closed:
            self._note_unsettled()
            await self.close("The agent was closed.")

    async def _cancel(self, id: str) -> None:
        turn = self._turns.find(id)
        if turn is not None:
            await turn.cancel("It was cancelled where it was asked for.")
        elif self._turns.why_unknown(id) is None:  # it may arrive yet
            self._note_end(self._ended(id, failure=_failure("cancelled", "Before it began.")))

    async def _reset(self) -> None:
        if (turn := self._turns.running) is not None:
            await turn.cancel("The agent was reset.")
        await self._agent.on_reset(CancellationToken())
        if self._journal is not None:
            runs = run_names(self._place.logs)
            self._journal.write(Opened(instance=self._instance, past_runs=runs))

    def _note_unsettled(self) -> None:
        if self._journal is not None:
            self._journal.write(Unsettled())


def _failure(kind: FailureKind, problem: str) -> RemoteFailure:
    return RemoteFailure(kind=kind, problem=problem)
