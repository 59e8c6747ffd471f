"""How the phases of this agent reach its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from coag.cycle import Asked
from coag.errors import ModelAnswerError
from coag.models import Asker, AskSettings, CallContext, usage_of
from coag.schema import Clock, CountingIds, ModelCall, Note, Phase, Prompt, TraceSink

AnswerT = TypeVar("AnswerT", bound=BaseModel)

MAX_TOKENS: Mapping[Phase, int] = {
    Phase.REASONING: 800,
    Phase.PROPOSAL: 2_000,
    Phase.EVALUATION: 800,
    Phase.SELECTION: 300,
}
"""Longest completion of each phase that asks the model."""


@dataclass(slots=True)
class ModelFace:
    """Asks the model for a phase; every call is written to the trace, repairs are noted."""

    asker: Asker
    trace: TraceSink
    clock: Clock
    ids: CountingIds
    max_tokens: Mapping[Phase, int]

    async def __call__(
        self, prompt: Prompt, answer: type[AnswerT], /, *, phase: Phase, cycle: int
    ) -> Asked[AnswerT]:
        """The answer, or why there is none.

        Raises:
            ModelCallError: The model could not be asked at all.
        """
        calls: list[ModelCall] = []

        def write(call: ModelCall) -> None:
            calls.append(call)
            self.trace.write(call)

        context = CallContext(
            clock=self.clock, ids=self.ids, cycle=cycle, phase=phase, on_call=write
        )
        settings = AskSettings(max_tokens=self.max_tokens.get(phase))
        try:
            got = await self.asker.ask(prompt, answer, context=context, settings=settings)
        except ModelAnswerError as error:
            return Asked(None, usage_of(calls), error.problem)
        if got.repaired:
            self._note_repair(phase, cycle, got.raw)
        return Asked(got.value, usage_of(calls))

    def _note_repair(self, phase: Phase, cycle: int, raw: str) -> None:
        text = f"The answer of {phase.value} was no valid JSON and was repaired."
        details = {"raw": raw[:500]}
        note = Note(at=self.clock.now(), cycle=cycle, about="repair", text=text, details=details)
        self.trace.write(note)
