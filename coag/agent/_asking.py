"""How the phases of this agent reach its model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from coag.cycle import Asked, Offered
from coag.errors import ModelAnswerError
from coag.models import (
    Asker,
    AskSettings,
    CallContext,
    Price,
    offer_tools,
    price_call,
    usage_of,
)
from coag.schema import (
    ActionSpec,
    Clock,
    CountingIds,
    ModelCall,
    Note,
    Phase,
    Prompt,
    PromptMessage,
    TraceSink,
)

AnswerT = TypeVar("AnswerT", bound=BaseModel)

MAX_TOKENS: Mapping[Phase, int] = {
    Phase.REASONING: 800,
    Phase.PROPOSAL: 2_000,
    Phase.EVALUATION: 800,
    Phase.SELECTION: 300,
}
"""Longest completion of each phase that asks the model for a form."""


@dataclass(slots=True, kw_only=True)
class ModelFace:
    """Asks the models for the phases; every call is written to the trace, repairs are noted."""

    asker: Asker
    trace: TraceSink
    clock: Clock
    ids: CountingIds
    max_tokens: Mapping[Phase, int]
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What calls cost, by the model's name."""
    phases: Mapping[Phase, Asker] = field(default_factory=dict[Phase, Asker])
    """Models of their own for some phases."""
    on_text: Callable[[str], None] | None = None
    """Streams answers, and is told each piece that may be shown while it is written."""
    system_role: bool = True
    """False for models that are sent no system message: their user is told everything."""

    async def __call__(
        self, prompt: Prompt, answer: type[AnswerT], /, *, phase: Phase, cycle: int
    ) -> Asked[AnswerT]:
        """The answer, or why there is none.

        Raises:
            ModelCallError: The model could not be asked at all.
        """
        calls: list[ModelCall] = []
        settings = AskSettings(max_tokens=self.max_tokens.get(phase))
        try:
            got = await self._asker(phase).ask(
                self._sent(prompt),
                answer,
                context=self._context(phase, cycle, calls),
                settings=settings,
            )
        except ModelAnswerError as error:
            return Asked(None, usage_of(calls), error.problem)
        if got.repaired:
            self._note_repair(phase, cycle, got.raw)
        return Asked(got.value, usage_of(calls))

    async def offer(
        self,
        prompt: Prompt,
        actions: Sequence[ActionSpec],
        /,
        *,
        phase: Phase,
        cycle: int,
        live: bool,
    ) -> Offered:
        """What the model calls of the actions, or what it answers in text; see `OfferActions`."""
        asker = self._asker(phase)
        knows_tools = bool(asker.client.model_info["function_calling"])
        calls: list[ModelCall] = []
        got = await offer_tools(
            asker,
            self._sent(prompt),
            actions if knows_tools else (),
            context=self._context(phase, cycle, calls),
            on_chunk=self.on_text if live else None,
            written=() if knows_tools else [action.name for action in actions],
        )
        remarks = [
            *(["The tool calls were written as text and read as calls."] if got.repaired else []),
            *([f"{got.dropped} tool calls of one answer were too many."] if got.dropped else []),
        ]
        return Offered(
            calls=tuple((call.name, call.arguments) for call in got.calls),
            ids=tuple(call.id for call in got.calls),
            text=got.text,
            thought=got.thought,
            usage=usage_of(calls),
            remarks=tuple(remarks),
        )

    def _asker(self, phase: Phase) -> Asker:
        return self.phases.get(phase, self.asker)

    def _sent(self, prompt: Prompt) -> Prompt:
        return prompt if self.system_role else _without_system(prompt)

    def _context(self, phase: Phase, cycle: int, calls: list[ModelCall]) -> CallContext:
        def write(call: ModelCall) -> None:
            priced = price_call(call, self.prices)
            calls.append(priced)
            self.trace.write(priced)

        return CallContext(clock=self.clock, ids=self.ids, cycle=cycle, phase=phase, on_call=write)

    def _note_repair(self, phase: Phase, cycle: int, raw: str) -> None:
        text = f"The answer of {phase.value} was no valid JSON and was repaired."
        details = {"raw": raw[:500]}
        note = Note(at=self.clock.now(), cycle=cycle, about="repair", text=text, details=details)
        self.trace.write(note)


def _without_system(prompt: Prompt) -> Prompt:
    """The prompt with what its system messages say at the head of the user's first one."""
    told = [message.content for message in prompt if message.role == "system"]
    rest = [message for message in prompt if message.role != "system"]
    first = next((n for n, message in enumerate(rest) if message.role == "user"), None)
    if first is None:
        return (PromptMessage(role="user", content="\n\n".join(told)), *rest)
    text = "\n\n".join([*told, rest[first].content])
    rest[first] = rest[first].model_copy(update={"content": text})
    return tuple(rest)
