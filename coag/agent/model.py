"""How the agent's models are asked, and how large their windows are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from autogen_agentchat.messages import BaseChatMessage
from pydantic import BaseModel

from coag.context import CoagContext
from coag.cycle import Deps, ModelReply, ToolProposal
from coag.errors import ModelAnswerError, WindowTooSmallError
from coag.models import (
    AskSettings,
    CallContext,
    Price,
    StructuredModel,
    asked_window,
    can_be_asked,
    offer_tools,
    price_call,
    usage_of,
    window_of,
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
    estimate_tokens,
)

INSTRUCTIONS = 100
"""Tokens that procedures and rules take at least."""


def known_window(askers: Sequence[StructuredModel]) -> int | None:
    """The smallest window of the models that is known; None if none is."""
    sizes = [window_of(asker.client) for asker in askers]
    return min((size for size in sizes if size is not None), default=None)


async def check_fits(
    messages: Sequence[BaseChatMessage], context: CoagContext[Any], deps: Deps
) -> None:
    """Refuses a task that the model's window cannot hold, before anything of it is taken in.

    Where the window is only assumed, the task is sent whole, with a warning.
    """
    limits = context.working_memory.limits
    task = next((text for one in messages if (text := one.to_model_text())), "")
    if context.working_memory.goal_open or len(task) < limits.prompt:  # a quarter, at most
        return
    specs = (await deps.actions.specs()).values()
    parts = {
        "system message and instructions": estimate_tokens(deps.system_message) + INSTRUCTIONS,
        "tools": sum(estimate_tokens(spec.model_dump_json()) for spec in specs),
        "goal": estimate_tokens(task),
    }
    if sum(parts.values()) <= limits.prompt:
        return
    if limits.known:
        raise WindowTooSmallError(parts, limits.prompt, limits.window)
    warnings.warn(
        f"The task has about {parts['goal']:,} tokens. It is sent whole, and the model's window is "
        f"not known; it is taken to be {limits.window:,} tokens. Set it: "
        "model_context=CoagContext(budgets=Budgets(window=...)).",
        stacklevel=2,
    )


# ---- How the phases of this agent reach its model ----


AnswerT = TypeVar("AnswerT", bound=BaseModel)

MODEL_PHASES = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION, Phase.SELECTION)
"""Phases that ask a model."""
MAX_TOKENS: Mapping[Phase, int] = {
    Phase.REASONING: 800,
    Phase.PROPOSAL: 2_000,
    Phase.EVALUATION: 800,
    Phase.SELECTION: 300,
}
"""Longest completion of each phase that asks the model for a form."""


@dataclass(slots=True, kw_only=True)
class ModelGateway:
    """Asks the models for the phases; every call is written to the trace, repairs are noted."""

    asker: StructuredModel
    trace: TraceSink
    clock: Clock
    ids: CountingIds
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What calls cost, by the model's name."""
    phases: Mapping[Phase, StructuredModel] = field(default_factory=dict[Phase, StructuredModel])
    """Models of their own for some phases."""
    begin_text: Callable[[], Callable[[str], None]] | None = None
    """Gives what gets each piece of one answer that may be shown while it is written."""
    system_role: bool = True
    """False for models that are sent no system message: their user gets everything."""
    window_asked: bool = False

    @property
    def askers(self) -> tuple[StructuredModel, ...]:
        """All models of the agent."""
        return (self.asker, *self.phases.values())

    async def learn_window(self, context: CoagContext[Any]) -> str:
        """Fits the context to what servers report, unless its limits are known or in use.

        They are asked once. Working memory that has been through a cycle keeps its limits: its
        trace holds them.
        """
        known = context.working_memory.cycle or context.budgets.window is not None
        if self.window_asked or known:
            return ""
        self.window_asked = True
        unknown = [one.client for one in self.askers if window_of(one.client) is None]
        reported = [await asked_window(one) for one in unknown if can_be_asked(one)]
        sizes = [size for size in (known_window(self.askers), *reported) if size is not None]
        if reported and sizes:
            context.fit(min(sizes))
        if None not in reported:
            return ""
        window = context.working_memory.limits.window
        return f"The server did not tell the model's window; it is taken to be {window:,} tokens."

    async def __call__(
        self, prompt: Prompt, answer: type[AnswerT], /, *, phase: Phase, cycle: int
    ) -> ModelReply[AnswerT]:
        """The answer, or why there is none."""
        calls: list[ModelCall] = []
        context = self._context(phase, cycle, calls)
        settings = AskSettings(max_tokens=MAX_TOKENS.get(phase))
        sent = self._sent(prompt)
        try:
            got = await self._asker(phase).ask(sent, answer, context=context, settings=settings)
        except ModelAnswerError as error:
            return ModelReply(None, usage_of(calls), error.problem)
        if got.repaired:
            text = f"The answer of {phase.value} was no valid JSON and was repaired."
            self.trace.write(
                Note(
                    at=self.clock.now(),
                    cycle=cycle,
                    about="repair",
                    text=text,
                    details={"raw": got.raw[:500]},
                )
            )
        return ModelReply(got.value, usage_of(calls))

    async def offer(
        self,
        prompt: Prompt,
        actions: Sequence[ActionSpec],
        /,
        *,
        phase: Phase,
        cycle: int,
        live: bool,
    ) -> ToolProposal:
        """What the model calls of the actions, or what it answers in text; see `OfferActions`."""
        asker = self._asker(phase)
        knows_tools = bool(asker.client.model_info["function_calling"])
        calls: list[ModelCall] = []
        answer = await offer_tools(
            asker,
            self._sent(prompt),
            actions if knows_tools else (),
            context=self._context(phase, cycle, calls),
            on_chunk=self.begin_text() if live and self.begin_text else None,
            written=() if knows_tools else [action.name for action in actions],
        )
        remarks = {
            "The tool calls were written as text and read as calls.": answer.repaired,
            f"{answer.dropped} tool calls of one answer were too many.": answer.dropped,
        }
        return ToolProposal(
            calls=tuple((call.name, call.arguments) for call in answer.calls),
            ids=tuple(call.id for call in answer.calls),
            text=answer.text,
            thought=answer.thought,
            usage=usage_of(calls),
            remarks=tuple(text for text, holds in remarks.items() if holds),
        )

    def _asker(self, phase: Phase) -> StructuredModel:
        return self.phases.get(phase, self.asker)

    def _sent(self, prompt: Prompt) -> Prompt:
        return prompt if self.system_role else _without_system(prompt)

    def _context(self, phase: Phase, cycle: int, calls: list[ModelCall]) -> CallContext:
        def write(call: ModelCall) -> None:
            priced = price_call(call, self.prices)
            calls.append(priced)
            self.trace.write(priced)

        return CallContext(clock=self.clock, ids=self.ids, cycle=cycle, phase=phase, on_call=write)


def _without_system(prompt: Prompt) -> Prompt:
    """The prompt with what its system messages say at the head of the user's first one."""
    instructions = [message.content for message in prompt if message.role == "system"]
    rest = [message for message in prompt if message.role != "system"]
    first = next((n for n, message in enumerate(rest) if message.role == "user"), None)
    if first is None:
        return (PromptMessage(role="user", content="\n\n".join(instructions)), *rest)
    text = "\n\n".join([*instructions, rest[first].content])
    rest[first] = rest[first].model_copy(update={"content": text})
    return tuple(rest)
