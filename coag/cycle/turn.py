"""A turn: cycles until an answer or a bound."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from coag.errors import CoagError, TraceError, error_type
from coag.schema import (
    ActionCall,
    ActionResult,
    Candidate,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    ProposalOutcome,
    TokenUsage,
    TurnEnd,
    TurnStart,
    cut_to_tokens,
)

from .checks import identity, may_say, reconcile
from .cycle import close_cycle, perceive, run_cycle
from .deps import AnyContext, Deps
from .execution import return_percept, selected_candidates

UNFINISHED = "The cycle that selected this was left in the middle. It may or may not have been run."

WITHHELD = "withheld"
"""What notes are about that name a rule which kept a text from being said."""
REJECTION_TOKENS = 150
"""Tokens of rejections that the answer of an impasse repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended."""

    reason: str
    """`respond`, or the bound that was reached: `cycles`, `impasses`, `actions`, `budget`."""
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


@dataclass(slots=True)
class TurnTally:
    """What a turn has used so far."""

    cycles: int = 0
    impasses: int = 0
    """Cycles in a row in which nothing was run."""
    repeated: int = 0
    """Of these the last, in which nothing was rejected that had not been before."""
    rejected: set[str] = field(default_factory=set[str])
    """Calls that were rejected in them."""
    actions: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    last: ExecutionOutcome | None = None
    intents: set[str] = field(default_factory=set[str])
    anothers: frozenset[str] = frozenset()
    """Those of the intents that ran for somebody served before."""

    _proposed: dict[str, str] = field(default_factory=dict[str, str])
    """The calls of the current cycle by candidate."""

    def take(self, outcome: Outcome) -> None:
        """Counts an outcome."""
        self.usage += outcome.usage
        if isinstance(outcome, ProposalOutcome):
            calls = {one.id: f"{one.action} {one.raw_arguments}" for one in outcome.candidates}
            self._proposed = calls
        if not isinstance(outcome, ExecutionOutcome):
            return
        self.cycles += 1
        self.intents |= {done.intent_id for done in outcome.executed if done.intent_id}
        idle = outcome.status in (ExecutionStatus.NONE, ExecutionStatus.REFUSED)
        self._count_impasse(idle)
        if not idle:
            self.actions += any(done.intent_id is not None for done in outcome.executed)
            self.last = outcome

    def _count_impasse(self, idle: bool) -> None:
        """Each call is counted by itself: one new call among old ones is a fresh proposal."""
        if not idle:
            self.impasses, self.repeated, self.rejected = 0, 0, set()
            return
        calls = set(self._proposed.values())
        fresh = bool(calls - self.rejected)
        self.impasses += 1
        self.repeated = 1 if fresh else self.repeated + 1
        self.rejected |= calls

    def leave(self, context: AnyContext) -> None:
        """Somebody else is served: only results that arrived since then may be repeated."""
        since = {percept.caused_by for percept in context.working_memory.percepts}
        self.anothers = frozenset(self.intents - since)
        if self.last is not None and self.last.response is None:
            retained = [one for one in self.last.executed if one.intent_id in since]
            last = self.last
            self.last = (
                ExecutionOutcome.of(retained, cycle=last.cycle, at=last.at) if retained else None
            )

    def ended_by(self, context: AnyContext, deps: Deps) -> str | None:
        """Why the turn ends here; None where it does not."""
        bounds = deps.settings.bounds
        if self.last is not None and self.last.response is not None:
            return "respond"
        if deps.settings.budget.softly_reached(context.working_memory.spent):
            return "budget"
        if bounds.actions is not None and self.actions >= bounds.actions:
            return "actions"
        if self.repeated >= bounds.impasses or self.impasses >= bounds.fresh_impasses:
            return "impasses"
        return "cycles" if self.cycles >= bounds.cycles else None


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
        start = TurnStart(at=deps.clock.now(), turn=turn, cycle=context.working_memory.cycle)
        deps.trace.write(start)
    deps.modules.failed.clear()
    arriving = _mark_first(percepts) if begun is None else iter(percepts)
    tally = TurnTally()
    for outcome in begun or ():
        tally.take(outcome)
    goes_on = begun is None or context.working_memory.in_cycle
    reason = None if goes_on else tally.ended_by(context, deps)
    try:
        await perceive(arriving, context, deps, taken_in)
        await _settle(context, deps)
        deps.trace.flush()
        reason = reason or _spent_before(context, deps)
        while reason is None or _may_close(reason, context, deps):
            deps.actions.closing = reason is not None
            served = context.working_memory.memory_scope
            async for outcome in run_cycle(context, deps):
                tally.take(outcome)
                yield outcome
            await perceive(context.working_memory.queued, context, deps)
            await _settle(context, deps)
            if served and served != context.working_memory.memory_scope:
                tally.leave(context)
            reason = reason or tally.ended_by(context, deps)
    except (asyncio.CancelledError, GeneratorExit):
        text = "The turn was cancelled."
        await _to_its_end(_break_off(None, text, arriving, context, deps, turn, taken_in))
        raise
    except TraceError:  # nothing can be written down any more, the end of the turn neither
        raise
    except BaseException as error:  # whatever it was, it is raised again behind a closed cycle
        await _to_its_end(_break_off(error, _broken(error), (), context, deps, turn))
        raise
    finally:
        deps.actions.closing = False
    yield _finish(reason, tally, context, deps, turn)


def _mark_first(percepts: Iterable[Percept]) -> Iterator[Percept]:
    """The percepts, of whose messages the first begins a turn."""
    started = False
    for percept in percepts:
        begins = percept.kind is PerceptKind.MESSAGE and not started
        started = started or begins
        yield percept.model_copy(update={"begins_turn": True}) if begins else percept


async def _settle(context: AnyContext, deps: Deps) -> None:
    """Asks what became of actions of unknown outcome, before the model is asked anything."""
    if context.working_memory.unsettled and not context.working_memory.in_cycle:
        await perceive(await reconcile(context, deps), context, deps)


def _may_close(reason: str, context: AnyContext, deps: Deps) -> bool:
    """Whether one more cycle is to answer from what is known; there is one at most."""
    if deps.actions.closing:
        return False
    if reason == "budget":
        return not deps.settings.budget.reached(context.working_memory.spent)
    return reason == "actions" and deps.settings.reflect


def _spent_before(context: AnyContext, deps: Deps) -> str | None:
    """`budget` if earlier turns have left too little of it for the goal."""
    spent = deps.settings.budget.softly_reached(context.working_memory.spent)
    return "budget" if spent and not context.working_memory.in_cycle else None


async def _close_unfinished(context: AnyContext, deps: Deps) -> None:
    """Ends a cycle that nobody continues, e.g. of a state that was saved in the middle.

    The selected actions are not run: whether they ran already is not known here.
    """
    selected = selected_candidates(context) if context.working_memory.in_cycle else ()
    unknown = ActionResult(content=UNFINISHED, is_error=True, outcome_unknown=True)
    started = list(deps.actions.running.values()) if selected else []
    known = {identity(call.action, call.arguments) for call in started}
    started += [
        ActionCall(id="", action=candidate.action, arguments=arguments)
        for candidate in selected
        if identity(candidate.action, arguments := _judged(candidate, context)) not in known
    ]
    deps.actions.running.clear()
    percepts = [return_percept(call, unknown, deps) for call in started]
    queued = tuple(p.model_copy(update={"caused_by": p.caused_by or None}) for p in percepts)
    await close_cycle(context, deps, "The cycle was left in the middle.", queued)
    await perceive(context.working_memory.queued, context, deps)


def _judged(candidate: Candidate, context: AnyContext) -> dict[str, Any]:
    """The arguments with which a candidate was evaluated."""
    evaluation = context.working_memory.cognitive_state.evaluation
    judged = evaluation.evaluations if evaluation else ()
    mine = (one.arguments for one in judged if one.candidate_id == candidate.id)
    return next(mine, None) or {}


def _broken(error: BaseException) -> str:
    named = str(error) if isinstance(error, CoagError) else f"{type(error).__name__}: {error}"
    return f"The turn broke off: {named}"


def _finish(
    reason: str, tally: TurnTally, context: AnyContext, deps: Deps, turn: int
) -> TurnResult:
    response, withheld = _response(reason, tally, context, deps)
    _write_end(reason, response, context, deps, turn)
    return TurnResult(
        reason=reason,
        response=response,
        cycles=tally.cycles,
        usage=tally.usage,
        failed_modules=tuple(sorted(deps.modules.failed)),
        last=tally.last,
        withheld=withheld,
        anothers=tally.anothers,
    )


def _response(reason: str, tally: TurnTally, context: AnyContext, deps: Deps) -> tuple[str, bool]:
    """The answer, or the best that can be said; nothing leaves a turn that a rule forbids."""
    if tally.last is not None and tally.last.response is not None:
        return tally.last.response, False  # an action, judged as every other
    fixed = {
        "cycles": f"I stopped after {tally.cycles} cycles without an answer.",
        "budget": "I stopped: the budget for this goal is used up.",
        "impasses": f"I stopped: in {tally.impasses} cycles in a row no action was possible.",
        "actions": "I stopped: the number of actions for this turn is used up.",
    }.get(reason, "I stopped.")
    whole = _known(reason, fixed, tally, context)
    return (whole, False) if sayable(whole, context, deps) else (fixed, True)


def sayable(text: str, context: AnyContext, deps: Deps, about: str = WITHHELD) -> bool:
    """Whether every rule lets a text leave the turn; a note says which one does not, and why."""
    verdict = may_say(text, context, deps)
    if not verdict.allowed:
        why = f"{verdict.constraint}: {verdict.reason}"
        deps.note(context, about, f"A text was not said. {why}", constraint=verdict.constraint)
    return verdict.allowed


def _known(reason: str, fixed: str, tally: TurnTally, context: AnyContext) -> str:
    if reason == "actions" and tally.last is not None:
        return tally.last.result
    reasoning = context.working_memory.cognitive_state.reasoning
    known = f" What I know: {reasoning.situation}" if reasoning and reasoning.situation else ""
    done = f" Last result: {tally.last.result}" if tally.last and tally.last.result else ""
    why = _rejections(context) if reason == "impasses" else ""
    return f"{fixed}{why}{known}{done}"


def _rejections(context: AnyContext) -> str:
    """What the last candidates died of, so that a mistake in a rule is seen at once."""
    gone = context.working_memory.rejections
    shown = "; ".join(f"{one.action}: {one.constraint}: {one.reason}" for one in gone)
    return f" Rejected last: {cut_to_tokens(shown, REJECTION_TOKENS)}." if shown else ""


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


async def _break_off(
    error: BaseException | None,
    text: str,
    arriving: Iterable[Percept],
    context: AnyContext,
    deps: Deps,
    turn: int,
    taken_in: Callable[[Percept], None] = lambda percept: None,
) -> None:
    """Closes the cycle and keeps what was brought, so that the next turn starts whole.

    Args:
        error: What broke the turn off; None if it was cancelled.
        text: The same in words.
        arriving: What is not perceived yet.
        context: Whose turn.
        deps: What is written to.
        turn: Its number.
        taken_in: See `run_turn`.
    """
    await perceive(arriving, context, deps, taken_in)
    await close_cycle(context, deps, text)
    await perceive(context.working_memory.queued, context, deps)
    reason = "cancelled" if error is None else "error"
    _write_end(reason, text, context, deps, turn, error)


def _write_end(
    reason: str,
    response: str,
    context: AnyContext,
    deps: Deps,
    turn: int,
    error: BaseException | None = None,
) -> None:
    deps.trace.write(
        TurnEnd(
            at=deps.clock.now(),
            turn=turn,
            cycle=context.working_memory.cycle,
            reason=reason,
            response=response,
            error_type=None if error is None else error_type(error),
        )
    )
    deps.trace.flush()
