"""A turn: cycles until an answer or a bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coag._util.text import cut_to_tokens
from coag.errors import CoagError, TraceError, error_type
from coag.schema import (
    ActionCall,
    ActionResult,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    ProposalOutcome,
    TokenUsage,
    TurnEnd,
    TurnStart,
)

from .checks import identity, may_say, reconcile
from .cycle import close_cycle, perceive, run_cycle
from .deps import AnyContext, Deps, GuardDeps
from .execution import return_percept, selected_candidates

UNFINISHED = "The cycle that selected this was left in the middle. It may or may not have been run."
WITHHELD = "withheld"
"""What notes are about that name a rule which kept a text from being said."""
REJECTION_TOKENS = 150
"""Tokens of rejections that the answer of an impasse repeats."""
_STOPPED = {
    "cycles": "I stopped after {0} cycles without an answer.",
    "budget": "I stopped: the budget for this goal is used up.",
    "impasses": "I stopped: in {0} cycles in a row no action was possible.",
    "actions": "I stopped: the number of actions for this turn is used up.",
}
"""What is said where a bound ended the turn, by the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended."""

    reason: str
    """`respond`, `suspended`, or the bound that was reached: `cycles`, `impasses`, `actions`,
    `budget`."""
    response: str
    """The answer, or the best that can be said where a bound ended the turn."""
    cycles: int
    usage: TokenUsage
    failed_modules: tuple[str, ...] = ()
    """Modules that were left out because they raised or were late."""
    last: ExecutionOutcome | None = None
    """The last execution."""
    withheld: bool = False
    """True if a rule kept in what was known, and the response is a fixed sentence."""
    anothers: frozenset[str] = frozenset()
    """Intents of the turn that ran for somebody served before; their results are not repeated."""

    @property
    def answered(self) -> bool:
        """True if the response is the agent's answer, not what a bound left to say."""
        return self.last is not None and self.last.response is not None


async def run_turn(
    percepts: Iterable[Percept],
    context: AnyContext,
    deps: Deps,
    *,
    turn: int = 1,
    begun: Sequence[Outcome] | None = None,
    taken_in: Callable[[Percept], None] = lambda percept: None,
) -> AsyncGenerator[Outcome | TurnResult]:
    """Takes in what arrived and runs cycles; yields every outcome and, last, the result.

    However the turn ends, its cycle is closed and the trace is flushed, unless the trace fails.

    Args:
        percepts: What arrived.
        context: Whose turn it is.
        deps: What the phases may call.
        turn: The number of the turn.
        begun: The outcomes of a turn that a crash interrupted; they count towards its bounds.
        taken_in: Called with each percept that is in the trace and in working memory.
    """
    if begun is None:
        await _close_unfinished(context, deps)
        cycle = context.working_memory.cycle
        deps.trace.write(TurnStart(at=deps.clock.now(), turn=turn, cycle=cycle))
    deps.modules.failed.clear()
    arriving = _mark_first(percepts) if begun is None else iter(percepts)
    now = RunningTurn(context, deps, turn)
    for outcome in begun or ():
        now.take(outcome)
    over = begun is not None and not context.working_memory.in_cycle
    reason = now.ended_by() if over else None
    try:
        await perceive(arriving, context, deps, taken_in)
        await _settle(context, deps)
        deps.trace.flush()
        if reason is None and not context.working_memory.in_cycle:  # earlier turns have cost, too
            reason = now.spent()
        while reason is None or now.may_close(reason):
            deps.actions.closing = reason is not None
            served = context.working_memory.memory_scope
            async for outcome in run_cycle(context, deps):
                now.take(outcome)
                yield outcome
            await perceive(context.working_memory.queued, context, deps)
            await _settle(context, deps)
            if served and served != context.working_memory.memory_scope:
                now.leave()
            reason = reason or now.ended_by()
    except (asyncio.CancelledError, GeneratorExit):
        await _to_its_end(now.break_off("The turn was cancelled.", None, arriving, taken_in))
        raise
    except TraceError:  # nothing can be written down any more, the end of the turn neither
        raise
    except BaseException as error:  # whatever it was, it is raised again behind a closed cycle
        await _to_its_end(now.break_off(_broken(error), error, (), taken_in))
        raise
    finally:
        deps.actions.closing = False
    yield now.finish(reason)


@dataclass(slots=True)
class RunningTurn:
    """What a turn has used so far, and how it ends."""

    context: AnyContext
    deps: Deps
    number: int
    cycles: int = 0
    impasses: int = 0
    """Cycles in a row in which nothing was run."""
    repeated: int = 0
    """Of these the last, in which nothing was rejected that had not been before."""
    rejected: set[str] = field(default_factory=set[str])
    """Calls that were rejected in them."""
    proposed: set[str] = field(default_factory=set[str])
    """Calls that were proposed in this cycle."""
    actions: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    last: ExecutionOutcome | None = None
    intents: set[str] = field(default_factory=set[str])
    anothers: frozenset[str] = frozenset()
    """Those of the intents that ran for somebody served before."""

    def take(self, outcome: Outcome) -> None:
        """Counts an outcome. Of calls, one new one among old ones is a fresh proposal."""
        self.usage += outcome.usage
        if isinstance(outcome, ProposalOutcome):
            self.proposed = {f"{one.action} {one.raw_arguments}" for one in outcome.candidates}
        if not isinstance(outcome, ExecutionOutcome):
            return
        self.cycles += 1
        begun = {done.intent_id for done in outcome.executed if done.intent_id}
        self.intents |= begun
        if outcome.status in (ExecutionStatus.NONE, ExecutionStatus.REFUSED):
            self.impasses += 1
            self.repeated = 1 if self.proposed - self.rejected else self.repeated + 1
            self.rejected |= self.proposed
        else:
            self.impasses, self.repeated, self.rejected = 0, 0, set()
            self.actions += bool(begun)
            self.last = outcome

    def leave(self) -> None:
        """Somebody else is served: only results that arrived since then may be repeated."""
        since = {percept.caused_by for percept in self.context.working_memory.percepts}
        self.anothers = frozenset(self.intents - since)
        last = self.last
        if last is not None and last.response is None:
            retained = [one for one in last.executed if one.intent_id in since]
            self.last = None
            if retained:
                self.last = ExecutionOutcome.of(retained, cycle=last.cycle, at=last.at)

    def spent(self) -> str | None:
        """`budget` if too little of it is left for the goal."""
        budget = self.deps.settings.budget
        return "budget" if budget.softly_reached(self.context.working_memory.spent) else None

    def ended_by(self) -> str | None:
        """Why the turn ends here; None where it does not."""
        bounds = self.deps.settings.bounds
        if self.last is not None and self.last.response is not None:
            return "respond"
        if self.last is not None and self.last.suspended:
            return "suspended"
        if self.spent():
            return "budget"
        if bounds.actions is not None and self.actions >= bounds.actions:
            return "actions"
        if self.repeated >= bounds.impasses or self.impasses >= bounds.fresh_impasses:
            return "impasses"
        return "cycles" if self.cycles >= bounds.cycles else None

    def may_close(self, reason: str) -> bool:
        """Whether one more cycle is to answer from what is known; there is one at most."""
        settings = self.deps.settings
        if self.deps.actions.closing:
            return False
        if reason == "budget":
            return not settings.budget.reached(self.context.working_memory.spent)
        return reason == "actions" and settings.reflect

    def finish(self, reason: str) -> TurnResult:
        """Writes the end of the turn; nothing leaves it that a rule forbids."""
        withheld, last = False, self.last
        if last is not None and last.response is not None:
            response = last.response  # an action, judged as every other
        else:
            count = self.impasses if reason == "impasses" else self.cycles
            fixed = _STOPPED.get(reason, "I stopped.").format(count)
            response = self._known(reason, fixed)
            withheld = not sayable(response, self.context, self.deps)
            response = fixed if withheld else response
        self._write_end(reason, response)
        return TurnResult(
            reason=reason,
            response=response,
            cycles=self.cycles,
            usage=self.usage,
            failed_modules=tuple(sorted(self.deps.modules.failed)),
            last=last,
            withheld=withheld,
            anothers=self.anothers,
        )

    def _known(self, reason: str, fixed: str) -> str:
        """The best that can be said; of rejections, that a mistake in a rule is seen at once."""
        if reason in ("actions", "suspended") and self.last is not None:
            return self.last.result
        memory, why = self.context.working_memory, ""
        if reason == "impasses" and memory.rejections:
            gone = (f"{one.action}: {one.constraint}: {one.reason}" for one in memory.rejections)
            why = f" Rejected last: {cut_to_tokens('; '.join(gone), REJECTION_TOKENS)}."
        reasoning = memory.cognitive_state.reasoning
        known = f" What I know: {reasoning.situation}" if reasoning and reasoning.situation else ""
        done = f" Last result: {self.last.result}" if self.last and self.last.result else ""
        return f"{fixed}{why}{known}{done}"

    async def break_off(
        self,
        text: str,
        error: BaseException | None,
        arriving: Iterable[Percept],
        taken_in: Callable[[Percept], None],
    ) -> None:
        """Closes the cycle and keeps what was brought, so that the next turn starts whole.

        Without an error the turn was cancelled, and some percepts may be yet to arrive.
        """
        context, deps = self.context, self.deps
        await perceive(arriving, context, deps, taken_in)
        await close_cycle(context, deps, text)
        await perceive(context.working_memory.queued, context, deps)
        self._write_end("cancelled" if error is None else "error", text, error)

    def _write_end(self, reason: str, response: str, error: BaseException | None = None) -> None:
        end = TurnEnd(
            at=self.deps.clock.now(),
            turn=self.number,
            cycle=self.context.working_memory.cycle,
            reason=reason,
            response=response,
            error_type=None if error is None else error_type(error),
        )
        self.deps.trace.write(end)
        self.deps.trace.flush()


def sayable(text: str, context: AnyContext, deps: GuardDeps, about: str = WITHHELD) -> bool:
    """Whether every rule lets a text leave the turn; a note says which one does not, and why."""
    verdict = may_say(text, context, deps)
    if not verdict.allowed:
        why = f"{verdict.constraint}: {verdict.reason}"
        deps.note(context, about, f"A text was not said. {why}", constraint=verdict.constraint)
    return verdict.allowed


def _mark_first(percepts: Iterable[Percept]) -> Iterator[Percept]:
    """The percepts, of whose messages the first begins a turn."""
    started = False
    for percept in percepts:
        begins = percept.kind is PerceptKind.MESSAGE and not started
        started = started or begins
        yield percept.model_copy(update={"begins_turn": True}) if begins else percept


async def _settle(context: AnyContext, deps: Deps) -> None:
    if context.working_memory.unsettled and not context.working_memory.in_cycle:
        await perceive(await reconcile(context, deps), context, deps)


async def _close_unfinished(context: AnyContext, deps: Deps) -> None:
    """Ends a cycle that nobody continues, e.g. of a state that was saved in the middle.

    The selected actions are not run: whether they ran already is not known here.
    """
    memory = context.working_memory
    selected = selected_candidates(context) if memory.in_cycle else ()
    unknown = ActionResult(content=UNFINISHED, is_error=True, outcome_unknown=True)
    started = list(deps.actions.running.values()) if selected else []
    known = [identity(call.action, call.arguments) for call in started]
    evaluation = memory.cognitive_state.evaluation
    judged = {one.candidate_id: one for one in (evaluation.evaluations if evaluation else ())}
    for candidate in selected:
        arguments = judged[candidate.id].arguments if candidate.id in judged else None
        call = ActionCall(id="", action=candidate.action, arguments=arguments or {})
        if (own := identity(call.action, call.arguments)) in known:
            known.remove(own)  # of two that are alike, one may have run before the other began
        else:
            started.append(call)
    deps.actions.running.clear()
    percepts = [return_percept(call, unknown, deps) for call in started]
    queued = tuple(p.model_copy(update={"caused_by": p.caused_by or None}) for p in percepts)
    await close_cycle(context, deps, "The cycle was left in the middle.", queued)
    await perceive(context.working_memory.queued, context, deps)


def _broken(error: BaseException) -> str:
    named = str(error) if isinstance(error, CoagError) else f"{type(error).__name__}: {error}"
    return f"The turn broke off: {named}"


async def _to_its_end(closing: Coroutine[Any, Any, None]) -> None:
    """Runs what closes a turn, however often the turn is cancelled meanwhile.

    Its time is bounded: modules have `module_seconds` each.
    """
    task = asyncio.create_task(closing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as again:
            cancelled = again
    task.result()
    if cancelled is not None:
        raise cancelled
