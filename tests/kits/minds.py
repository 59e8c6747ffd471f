"""Minds for tests: real parts, a scripted way of asking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from coag.compat import Tool, ToolRunner
from coag.context import CoagContext
from coag.cycle import (
    ConstraintSet,
    CycleSettings,
    Deps,
    GuardedActions,
    ModelReply,
    ModuleHost,
    TurnResult,
    perceive,
    run_turn,
)
from coag.cycle.cycle import run_cycle
from coag.memory import LongTermMemory, ProceduralMemory, Procedure, seed_procedures
from coag.schema import (
    CognitiveModule,
    Constraint,
    CountingIds,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    SteppingClock,
    TokenUsage,
    TraceRecord,
    Trust,
)
from coag.tracing import MemoryTrace

AnswerT = TypeVar("AnswerT", bound=BaseModel)
Reply = Mapping[str, Any] | None
Replies = Mapping[Phase, Reply | Callable[[Prompt], Reply]]


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HandClock:
    """A clock that only moves when a test moves it."""

    def __init__(self) -> None:
        self.time = NOW

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def wait(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def arrived(content: str, **changes: Any) -> Percept:
    """A message of the user, with changes."""
    values: dict[str, Any] = {
        "id": "percept-1",
        "at": NOW,
        "kind": PerceptKind.MESSAGE,
        "source": "user",
        "trust": Trust.USER,
        **changes,
    }
    return Percept(content=content, **values)


@dataclass
class ScriptedAsking:
    """Answers each phase from a script and keeps what was asked."""

    replies: Replies
    asked: list[tuple[Phase, Prompt]] = field(default_factory=list[tuple[Phase, Prompt]])
    forms: list[type[BaseModel]] = field(default_factory=list[type[BaseModel]])
    """The form of each answer that was asked for."""

    async def __call__(
        self, prompt: Prompt, answer: type[AnswerT], /, *, phase: Phase, cycle: int
    ) -> ModelReply[AnswerT]:
        self.asked.append((phase, prompt))
        self.forms.append(answer)
        reply = self.replies[phase]
        value = reply(prompt) if callable(reply) else reply
        usage = TokenUsage(prompt_tokens=10, completion_tokens=2, calls=1)
        if value is None:
            return ModelReply(None, usage, "prose instead of JSON")
        return ModelReply(answer.model_validate(value), usage)


@dataclass
class TestMind:
    """A context and its deps, and short ways to use them."""

    __test__ = False

    context: CoagContext[Any]
    deps: Deps
    asking: ScriptedAsking
    trace: MemoryTrace
    problems: list[str]

    def message(self, text: str) -> Percept:
        return arrived(text, id=self.deps.ids("percept"), at=self.deps.clock.now())

    async def hear(self, text: str) -> None:
        await perceive([self.message(text)], self.context, self.deps)

    async def live(self, text: str = "Go on.") -> dict[Phase, Any]:
        """The outcomes of one cycle upon a message."""
        await self.hear(text)
        return {outcome.phase: outcome async for outcome in run_cycle(self.context, self.deps)}

    async def turn(self, text: str = "Go on.") -> tuple[list[Outcome], TurnResult]:
        outcomes: list[Outcome] = []
        result: TurnResult | None = None
        async for item in run_turn([self.message(text)], self.context, self.deps):
            if isinstance(item, TurnResult):
                result = item
            else:
                outcomes.append(item)
        assert result is not None
        return outcomes, result

    def records(self, tag: str) -> list[TraceRecord]:
        return [record for record in self.trace.records if record.record == tag]

    def notes(self, about: str) -> list[str]:
        return [r.text for r in self.trace.records if r.record == "note" and r.about == about]


def make_mind(
    replies: Replies | None = None,
    *,
    tools: Sequence[Tool] = (),
    constraints: Sequence[Constraint] = (),
    modules: Sequence[CognitiveModule] = (),
    context: CoagContext[Any] | None = None,
    memory: LongTermMemory | None = None,
    procedures: Mapping[str, Procedure] | None = None,
    tool_timeout: float = 5.0,
    module_seconds: float = 0.2,
    action_seconds: float = 5.0,
    **settings: Any,
) -> TestMind:
    """A mind of real parts whose model is a script: one reply per phase."""
    trace = MemoryTrace()
    context = context or CoagContext[Any](clock=SteppingClock(), ids=CountingIds())
    asking = ScriptedAsking(replies or {})
    problems: list[str] = []
    seam = ModuleHost(
        modules,
        seconds=module_seconds,
        action_seconds=action_seconds,
        on_problem=lambda name, text: problems.append(f"{name} {text}"),
    )
    deps = Deps(
        ask=asking,
        actions=GuardedActions(ToolRunner(tools, timeout=tool_timeout), [seam]),
        procedures=ProceduralMemory(
            {**seed_procedures(), **(procedures or {})}, clock=context.clock
        ),
        trace=trace,
        clock=context.clock,
        ids=context.ids,
        memory=memory,
        constraints=ConstraintSet(constraints, [context, seam]),
        modules=seam,
        settings=CycleSettings.model_validate(settings),
    )
    return TestMind(context, deps, asking, trace, problems)


def reasoning(situation: str = "All is calm.") -> dict[str, Any]:
    return {"situation": situation, "risks": [], "goal_status": "open"}


def proposal(*candidates: tuple[str, str]) -> dict[str, Any]:
    return {"candidates": [{"action": name, "arguments": raw} for name, raw in candidates]}


def scores(*values: float) -> dict[str, Any]:
    return {
        "evaluations": [
            {"candidate": number, "score": value} for number, value in enumerate(values, 1)
        ]
    }
