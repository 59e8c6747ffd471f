"""Running a plain agent's run again: turn by turn, with what it was told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

from coag.agent import build_again
from coag.compat import Recorder, ReplayingClient, ReplayingWorkbench
from coag.errors import CoagError, ResumeError, TraceError
from coag.schema import ModelCall, Note, Percept, TraceRecord, TurnEnd, TurnStart
from coag.tracing import Rebuild, RunFolder, RunInfo

from ._sink import CheckingSink, ReplayStopped
from ._tape import TapeClock


class PlainRun(Protocol):
    """A plain agent that can be driven turn by turn, as a recipe's factory gives it."""

    async def say(self, text: str) -> object:
        """Takes a turn."""
        ...

    async def repeat(self, about: str, text: str) -> bool:
        """Does once more what a note between turns tells; False if it cannot."""
        ...


PlainBuilder = Callable[[ReplayingClient, ReplayingWorkbench, Recorder], PlainRun]
"""What a recipe's factory gives for the replay of a plain run: it builds the agent over doubles
of its model and its tools, and over a recorder to which it writes."""


class PlainSink(CheckingSink):
    """Compares the records of a plain agent.

    A recorded error comes again as a `ModelCallError` that tells of it, and counts as the same.
    """

    def write(self, record: TraceRecord) -> None:
        """Compares a record with the tape's next one."""
        head = self.tape.head
        match record, head:
            case ModelCall(), ModelCall(error=str(was)) if _tells(record.error, was, record.model):
                record = record.model_copy(update={"error": was})
            case TurnEnd(), TurnEnd(response=was) if record.response.endswith(_reason(was)):
                record = record.model_copy(update={"response": was})
            case _:
                pass
        super().write(record)


async def replay_plain(
    run: RunFolder,
    info: RunInfo,
    sink: CheckingSink,
    records: Callable[[], Iterator[TraceRecord]],
) -> None:
    """Replays a plain run as far as the tape goes, or to where the replay differs.

    Raises:
        ResumeError: Its recipe makes no `PlainBuilder`.
    """
    build = await build_again(run, Rebuild(purpose="replay"))
    if not callable(build):
        raise ResumeError(
            f"The recipe of {run.path} makes a {type(build).__name__}. For the replay of a plain "
            "run it must give a function of a client, a workbench and a recorder."
        )
    if not any(isinstance(record, ModelCall) for record in records()):
        sink.remark("No model was asked, so there is nothing to replay.")
        return
    recorder = Recorder(
        agent=info.agent,
        model=info.model,
        seed=info.seed,
        clock=TapeClock(sink.tape, sink.settle),
        trace=sink,
    )
    tools = ReplayingWorkbench(run)
    agent = cast("PlainBuilder", build)(ReplayingClient(run), tools, recorder)
    while not sink.stopped and (head := sink.tape.head) is not None:
        await _step(agent, head, sink)


async def _step(agent: PlainRun, head: TraceRecord, sink: CheckingSink) -> None:
    """What comes next on the tape: a turn, or something that was noted between turns."""
    before = sink.tape.position
    try:
        match head:
            case TurnStart():
                text = _said(sink)
                if text is None:
                    sink.pass_by("A turn that broke off before its model was asked.")
                else:
                    await agent.say(text)
            case Note() if await agent.repeat(head.about, head.text):
                pass
            case Note() | Percept():
                sink.pass_by(f"Not of a turn: {_told(head)}")
            case _:
                sink.part("record", head.record, "nothing: no turn goes on")
    except ReplayStopped:
        return
    except TraceError:
        if not sink.stopped:
            raise
    except CoagError:
        if sink.tape.position == before:
            raise


def _said(sink: CheckingSink) -> str | None:
    """What the agent was told in the turn that begins: the last word of its first request."""
    calls = (record for record in sink.tape.in_turn() if isinstance(record, ModelCall))
    first = next(calls, None)
    if first is None:
        return None
    said: list[Any] = [m["content"] for m in first.messages if m["role"] == "user"]
    return str(said[-1]) if said else ""


def _told(head: Note | Percept) -> str:
    return head.text if isinstance(head, Note) else head.content


def _tells(now: str | None, was: str, model: str) -> bool:
    """Whether an error in a replay tells of the recorded one."""
    return now is not None and f"Model {model!r} could not be asked: {was}" in now


def _reason(response: str) -> str:
    """What an error's sentence says, after the model's name."""
    return response.partition("could not be asked: ")[2] or response
