"""The replay of a stock agent's run: turn by turn, with the messages it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, cast

from coag.agent import build_again
from coag.compat import Recorder, ReplayingClient, ReplayingWorkbench, stock_run
from coag.errors import CoagError, ResumeError, TraceError
from coag.schema import (
    ActionsListed,
    Intent,
    ModelCall,
    Note,
    Percept,
    Receipt,
    ReceiptStatus,
    TraceRecord,
    TurnEnd,
    TurnStart,
)
from coag.tracing import Rebuild, RunFolder, RunInfo

from .tape import CheckingSink, ReplayStopped, leave_if_cancelled


class DrivenAgent(Protocol):
    """A plain agent that can be driven turn by turn, as a recipe's factory gives it."""

    async def say(self, text: str) -> object:
        """Takes a turn."""
        ...

    async def repeat(self, about: str, text: str) -> bool:
        """Repeats what a note between turns says; False if it cannot."""
        ...


_PATIENCE = 50
"""Rounds of the event loop in which what a cancellation interrupted may begin."""
PlainBuilder = Callable[[ReplayingClient, ReplayingWorkbench, Recorder], object]
"""What a recipe's factory gives for the replay of a plain run: it builds the agent over doubles
of its model and its tools, and over a recorder to which it writes. The agent is a `DrivenAgent`, or
any chat agent of AutoGen."""


class PlainSink(CheckingSink):
    """Compares the records of a plain agent.

    A recorded error is raised again as a `ModelCallError` with its text, and counts as the same.
    A tool that was cancelled comes again as an error, and is cancelled then.
    """

    _begun: frozenset[str] = frozenset()
    """Ids of the intents of the open turn."""

    def settle(self) -> None:
        """Skips what did not come from the agent, and tools that ended after their turn."""
        super().settle()
        while isinstance(head := self.tape.head, Receipt) and self._is_late(head):
            self.skip(f"A tool that had been left alone ended after its turn: {head.intent_id}")

    def _is_late(self, receipt: Receipt) -> bool:
        return receipt.intent_id not in self._begun

    def accept(self) -> TraceRecord:
        """Takes the tape's next record, which is as it should be."""
        head = self.tape.head
        if isinstance(head, Intent):
            self._begun |= {head.id}
        elif isinstance(head, TurnStart | TurnEnd):
            self._begun = frozenset()
        return super().accept()

    def write(self, record: TraceRecord) -> None:
        """Compares a record with the tape's next one."""
        self.settle()
        head = self.tape.head
        match record, head:
            case Receipt(), _ if self._is_late(record):
                return
            case ModelCall(error=str(now)), ModelCall(error=str(was)) if (
                f"Model {record.model!r} could not be asked: {was}" in now
            ):
                record = record.model_copy(update={"error": was})
            case TurnEnd(), TurnEnd(response=was) if record.response.endswith(
                was.partition("could not be asked: ")[2] or was  # what it says after the name
            ):
                record = record.model_copy(update={"response": was})
            case Receipt(intent_id=name), Receipt(
                intent_id=its_name, status=ReceiptStatus.CANCELLED
            ) if name == its_name and record.status is not ReceiptStatus.CANCELLED:
                super().write(head)
                raise asyncio.CancelledError
            case _ if self.cancels and type(record) is not type(head):
                raise asyncio.CancelledError
            case _:
                pass
        super().write(record)


async def replay_plain(
    run: RunFolder,
    info: RunInfo,
    sink: PlainSink,
    records: Callable[[], Iterator[TraceRecord]],
    trust: Iterable[str],
) -> None:
    """Replays a plain run as far as the tape goes, or to where the replay differs."""
    build = await build_again(run, Rebuild(purpose="replay"), trust)
    if not callable(build):
        made = f"The recipe of {run.path} makes a {type(build).__name__}"
        raise ResumeError(f"{made}, not a function of a client, a workbench and a recorder.")
    first = next((record for record in records() if isinstance(record, ModelCall)), None)
    if first is None:
        sink.remark("No model was asked, so there is nothing to replay.")
        return
    recorder = Recorder(
        agent=info.agent,
        model=info.model or first.model,
        seed=info.seed,
        clock=sink,
        trace=sink,
    )
    listed = (r for r in records() if isinstance(r, ActionsListed) and r.specs)
    tools = ReplayingWorkbench(run, tools=() if next(listed, None) is None else None)
    made = cast("PlainBuilder", build)(ReplayingClient(run), tools, recorder)
    agent = _driven(made, run, recorder, records)
    while not sink.stopped:
        sink.settle()
        head = sink.tape.head
        if head is None:
            break
        if isinstance(head, TurnStart) and _message(sink) is None:
            sink.skip("A turn that broke off before its model was asked.")
            recorder.turn = head.turn
        else:
            await _step(agent, head, sink)
    _check_written(sink, run, records)


async def _step(agent: DrivenAgent, head: TraceRecord, sink: PlainSink) -> None:
    """Does what comes next on the tape; what stopped it is in the sink, or on the tape."""
    before = sink.tape.position
    try:
        match head:
            case TurnStart():
                await _say(agent, _message(sink) or "", sink)
            case Note() if await agent.repeat(head.about, head.text):
                pass
            case Note() | Percept() | TurnEnd():
                sink.skip(f"Not of a turn: {_brief(head)}")
            case _:
                sink.diverge("record", head.record, "nothing: no turn is open")
    except (ReplayStopped, asyncio.CancelledError):
        leave_if_cancelled()  # whatever the agent made of that
    except TraceError:
        if not sink.stopped:
            raise
    except CoagError:
        if sink.tape.position == before:
            raise


async def _say(agent: DrivenAgent, text: str, sink: PlainSink) -> None:
    async def turn() -> None:
        await agent.say(text)

    await sink.run(turn(), _cancelled_before(tuple(sink.tape.in_turn())), patience=_PATIENCE)


def _cancelled_before(records: Sequence[TraceRecord]) -> int | None:
    """Which of the records of a turn is the first after it was cancelled; None if it was not.

    Also None where the cancellation interrupted a request to the model, which comes again.
    """
    left = list(records)
    if left and isinstance(left[-1], TurnEnd) and left[-1].reason == "cancelled":
        left.pop()
    while left and isinstance(end := left[-1], Receipt) and end.status is ReceiptStatus.CANCELLED:
        left.pop()
    if len(left) == len(records):
        return None
    broke_off = left and isinstance(left[-1], ModelCall) and left[-1].error == "cancelled"
    return None if broke_off else len(left)


def _message(sink: CheckingSink) -> str | None:
    percept = next(islice(sink.tape.in_turn(), 1, 2), None)
    if isinstance(percept, Percept):
        return percept.content
    first = next((one for one in sink.tape.in_turn() if isinstance(one, ModelCall)), None)
    if first is None:
        return None
    texts: list[Any] = [m["content"] for m in first.messages if m["role"] == "user"]
    return str(texts[-1]) if texts else ""


def _brief(head: Note | Percept | TurnEnd) -> str:
    if isinstance(head, TurnEnd):
        return f"the end of turn {head.turn}: {head.reason}"
    return head.text if isinstance(head, Note) else head.content


# ---- What a plain run's recipe makes ----


_WRITTEN_BY_DOUBLES = ("model_call", "actions")
"""Records that are written by what is put around a model client and around tools."""


def _driven(
    made: object,
    run: RunFolder,
    recorder: Recorder,
    records: Callable[[], Iterable[TraceRecord]],
) -> Any:
    """What the recipe's function made, as a `DrivenAgent`, which any chat agent becomes."""
    if callable(getattr(made, "say", None)) and callable(getattr(made, "repeat", None)):
        return made
    agent = stock_run(made, recorder, records)
    if agent is None:
        raise ResumeError(
            f"The recipe of {run.path} makes a {type(made).__name__}: it must make a chat agent "
            "of AutoGen, or something with the methods say(text) and repeat(about, text)."
        )
    if not any(isinstance(record, TurnStart) for record in records()):
        raise ResumeError(
            f"{run.path} was written down without turns: record a RecordedAgent, or drive your "
            "program yourself with ReplayingClient(run) and ReplayingWorkbench(run)."
        )
    return agent


def _check_written(
    sink: CheckingSink, run: RunFolder, records: Callable[[], Iterable[TraceRecord]]
) -> None:
    """Refuses an agent that does not record everything, with which nothing can be compared."""
    divergence = sink.divergence
    if divergence is None or divergence.field != "record":
        return
    first = next((n for n, one in enumerate(records()) if isinstance(one, ModelCall)), -1)
    if divergence.seq <= first and divergence.record in _WRITTEN_BY_DOUBLES:
        raise ResumeError(
            f"The agent of {run.path} records neither what it asks its model nor its tools: the "
            "recipe must make it over RecordingClient(client, recorder) and RecordingWorkbench."
        )
