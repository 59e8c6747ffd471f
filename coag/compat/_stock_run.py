"""A chat agent that takes the turns of its recorded run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from autogen_agentchat.base import ChatAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from coag.errors import CoagError
from coag.schema import Percept, PerceptKind, TraceRecord, TurnStart

from ._recorded_agent import RecordedAgent
from ._recorder import Recorder


class StockRun:
    """Tells an agent in each turn what the recorded one was told.

    Args:
        agent: The agent, made over doubles of its model and its tools; one that is no
            `RecordedAgent` becomes one.
        recorder: Who writes.
        records: Gives the records of the run.
    """

    def __init__(
        self,
        agent: ChatAgent,
        recorder: Recorder,
        records: Callable[[], Iterable[TraceRecord]],
    ) -> None:
        self._agent = agent if isinstance(agent, RecordedAgent) else RecordedAgent(agent, recorder)
        self._recorder = recorder
        self._records = records

    async def say(self, text: str) -> object:
        """Takes the next turn with its recorded messages, or with this text if it had none.

        What an agent raises that is no `CoagError` is not passed on: its turn's end tells of it.
        """
        turn = self._recorder.turn + 1
        heard = list(_messages(self._records(), turn)) or [TextMessage(content=text, source="user")]
        try:
            return await self._agent.on_messages(heard, CancellationToken())
        except CoagError:
            raise
        except Exception:  # an agent may raise anything; the end of its turn was compared
            if self._recorder.turn < turn:
                raise
            return None

    async def repeat(self, about: str, text: str) -> bool:
        """Resets the agent where it was reset; knows nothing else that is noted between turns."""
        del text
        if about != "reset":
            return False
        await self._agent.on_reset(CancellationToken())
        return True


def stock_run(
    made: object, recorder: Recorder, records: Callable[[], Iterable[TraceRecord]]
) -> StockRun | None:
    """A chat agent as what can be driven through its recorded turns; None for anything else."""
    return StockRun(made, recorder, records) if isinstance(made, ChatAgent) else None


def _messages(records: Iterable[TraceRecord], turn: int) -> Iterator[TextMessage]:
    """What a turn began with."""
    begun = False
    for record in records:
        if isinstance(record, TurnStart):
            begun = record.turn == turn
        elif begun and isinstance(record, Percept) and record.kind is PerceptKind.MESSAGE:
            yield TextMessage(content=record.content, source=record.source)
        elif begun:
            return
