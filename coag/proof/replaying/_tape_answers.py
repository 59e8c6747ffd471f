"""The double of all models: recorded requests answer those of the replay, in their order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from coag.agent import Answered
from coag.schema import ModelCall, Note, ProposalOutcome, ReasoningOutcome

from ._stage import Stage

_DROPPED = re.compile(r"(\d+) tool calls of one answer were too many")


class TapeAnswers:
    """Tells what came of each request.

    Args:
        stage: What doubles share.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def answer(self) -> Answered:
        """What came of the request that is next on the tape."""
        await self._stage.pause()
        head = self._stage.tape.head
        if head is None:
            self._stage.sink.end()
        if not isinstance(head, ModelCall):
            self._stage.sink.part("record", head.record, "a request to a model")
        return Answered(
            call=head, refused=self._refused(head), thought=self._thought(), dropped=self._dropped()
        )

    def upcoming(self) -> Sequence[ModelCall]:
        """The requests up to the phase's outcome that ask for the same form."""
        calls: list[ModelCall] = []
        for record in self._stage.tape.in_cycle():
            if record.record == "outcome":
                break
            if isinstance(record, ModelCall) and (
                not calls or record.expected == calls[0].expected
            ):
                calls.append(record)
        return calls

    def _refused(self, call: ModelCall) -> bool:
        """Whether the same question was asked once more on a looser rung."""
        following = self.upcoming()[1:2]
        return any(
            (again.attempt, again.expected) == (call.attempt, call.expected)
            and again.rung is not call.rung
            for again in following
        )

    def _thought(self) -> str:
        for record in self._stage.tape.in_cycle():
            if isinstance(record, ReasoningOutcome | ProposalOutcome):
                return record.thought
        return ""

    def _dropped(self) -> int:
        for record in self._stage.tape.in_cycle():
            if record.record == "outcome":
                break
            if isinstance(record, Note) and (found := _DROPPED.match(record.text)):
                return int(found[1])
        return 0
