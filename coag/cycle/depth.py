"""How deeply a cycle deliberates with `depth="auto"`: no model call, one, or one per phase.

There are six outcomes either way and no way back: Reasoning chooses by what code knows before the
model is asked, and Evaluation may ask it once more about candidates that are too close to rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from coag.context import READ_MORE, AssistantState
from coag.memory import MEMORY_ACTIONS
from coag.schema import (
    ActionSpec,
    Candidate,
    DepthChoice,
    DepthEvidence,
    Evaluation,
    PerceptKind,
    content_id,
    one_line,
    parsed_arguments,
)

from .actions import RESPOND
from .checks import OFFER, judge_calls
from .deps import AnyContext, Deps
from .output_schema import calls_of

ASIDE = MEMORY_ACTIONS | {READ_MORE}
"""Actions that bring no goal nearer by themselves: they are not counted among what may be done."""
_READ_BY_CODE = frozenset(
    {PerceptKind.MESSAGE, PerceptKind.TOOL_RETURN, PerceptKind.PROPERTY_CHANGE}
)
"""Percepts that are in the state, or are looked at as messages."""
MOST_UNASKED = 8
"""Cycles in a row without a model after which what code foresees is not relied on once."""
OPEN = "nothing asks for more"
"""The reason where the evidence leaves the depth open: then a module may advise."""
MOST_STAKES = 4
"""Calls that the evidence names for what depends on them."""


def choose_depth(evidence: DepthEvidence) -> DepthChoice:
    """The depth of a cycle; the first of these reasons that holds.

    Nothing but an answer is left: one call. One call alone is allowed: reflex. An impasse, or a
    prediction that failed: full. Much depends on what may be done now: full. A compiled procedure
    fits, or the domain foresees that one call alone brings the goal nearer, and there is no news:
    reflex. Else what a module advises that has learned it, or one call.
    """
    depth: Literal["reflex", "one_call", "full"]
    if evidence.answers_only:
        depth, reason = "one_call", "only an answer is left to give"
    elif evidence.only_call:
        depth, reason = "reflex", f"only {evidence.only_call} is allowed"
    elif evidence.impasse:
        depth, reason = "full", "no candidate survived in the last cycle"
    elif evidence.disagreed:
        fields = ", ".join(evidence.disagreed)
        depth, reason = "full", f"the last action did not lead to what was predicted: {fields}"
    elif evidence.stakes:
        depth, reason = "full", f"much depends on it: {'; '.join(evidence.stakes)}"
    elif evidence.procedure:
        depth, reason = "reflex", f"a compiled procedure fits: {evidence.procedure}"
    elif evidence.foreseen and not evidence.news:
        depth, reason = "reflex", f"it alone brings the goal nearer: {evidence.foreseen}"
    elif evidence.foreseen:
        depth, reason = "one_call", f"there is news: {', '.join(evidence.news)}"
    elif evidence.advice is not None:
        one = evidence.advice
        depth = one.depth
        reason = f"{one.source} advises it (probability {one.probability:.2f}): {one.why}"
    else:
        depth, reason = "one_call", OPEN
    return DepthChoice(depth=depth, reason=one_line(reason, 300), evidence=evidence)


def depth_now(context: AnyContext, deps: Deps) -> Literal["reflex", "one_call", "full"]:
    """The depth of the open cycle, once its Reasoning is committed."""
    if deps.settings.depth != "auto":
        return "full" if deps.settings.depth == "full" else "one_call"
    reasoning = context.working_memory.cognitive_state.reasoning
    chosen = None if reasoning is None else reasoning.depth
    return "one_call" if chosen is None else chosen.depth


# ---- What a depth is chosen by ----


@dataclass(frozen=True, slots=True)
class Outlook:
    """What may be done now, as far as code alone can tell."""

    evidence: DepthEvidence
    call: Candidate | None = None
    """What a reflex would do."""


@dataclass(frozen=True, slots=True)
class _Allowed:
    """The calls that nothing in force forbids."""

    calls: tuple[tuple[Candidate, float | None], ...]
    """Those that can be counted, each with its gain, where the domain foresees one."""
    uncounted: tuple[str, ...]
    """The actions whose calls cannot be counted; an answer, which needs a text, is one."""

    @property
    def only(self) -> Candidate | None:
        """The one call that is left."""
        return self.calls[0][0] if len(self.calls) == 1 and not self.uncounted else None

    def best(self, margin: float | None) -> tuple[Candidate | None, str]:
        """The one call that brings the goal nearer, and by how much; the others do clearly less.

        An answer leaves everything as it is: its gain is 0.
        """
        gains = [gain for _, gain in self.calls if gain is not None]
        known = len(gains) == len(self.calls) and {*self.uncounted} <= {RESPOND.name}
        if margin is None or not gains or not known:
            return None, ""
        first, second = sorted((*gains, 0.0), reverse=True)[:2]
        if first < margin or first - second < margin:
            return None, ""
        best = self.calls[gains.index(first)][0]
        return best, f"{_shown(best)} (gain {first:+.2f}, of the others at most {second:+.2f})"


async def look_ahead(context: AnyContext, deps: Deps) -> Outlook:
    """The evidence for the depth of this cycle. No model is asked, and nothing is run."""
    situation = situation_of(context, deps)
    if deps.actions.closing:
        return Outlook(DepthEvidence(situation=situation, answers_only=True))
    specs = await deps.actions.specs()
    allowed = _allowed_calls(specs, context, deps)
    only, (best, foreseen) = allowed.only, allowed.best(deps.settings.reflex_gain)
    known = deps.compiled.find(situation) if deps.compiled else None
    procedure = known if known is not None and known.action in specs else None
    compiled = None
    if procedure is not None:
        compiled = Candidate(
            id=OFFER,
            action=procedure.action,
            raw_arguments=procedure.raw_arguments,
            reason="a compiled procedure",
        )
    # What the last action was to change by its projection, where it changed nothing.
    predicted = deps.compiled.unfulfilled(situation) if deps.compiled else None
    evidence = DepthEvidence(
        situation=situation,
        only_call="" if only is None else _shown(only),
        procedure="" if procedure is None else procedure.line,
        foreseen=foreseen,
        news=_news(context, deps) if foreseen else (),
        impasse=any(one.kind is PerceptKind.IMPASSE for one in context.working_memory.percepts),
        disagreed=() if predicted is None else context.differs_from(predicted),
        stakes=tuple(_stakes(allowed, specs, deps))[:MOST_STAKES],
    )
    return Outlook(evidence, only or compiled or best)


def _news(context: AnyContext, deps: Deps) -> tuple[str, ...]:
    """What has happened that no forward model and no value of the domain takes into account."""
    memory = context.working_memory
    said = [one for one in memory.dialogue if not one.own]
    spoken = sum(one.kind is PerceptKind.MESSAGE for one in memory.percepts)
    before = {(one.source, one.content) for one in said[: -spoken or None][-1:]}
    reasons = {
        "somebody said something new": any(
            one.sets_goal or (one.source, one.content) not in before
            for one in memory.percepts
            if one.kind is PerceptKind.MESSAGE
        ),
        "the last action failed": any(one.is_error for one in memory.percepts),
        "it is not known what became of an action": bool(memory.unsettled),
        "something else arrived": any(one.kind not in _READ_BY_CODE for one in memory.percepts),
        f"no model was asked for {MOST_UNASKED} cycles": (
            deps.compiled is not None and deps.compiled.unasked >= MOST_UNASKED
        ),
        "there are rules in words that were learned": not deps.procedures.as_given,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def situation_of(context: AnyContext, deps: Deps) -> str:
    """Digests of goal and state and, behind the dash, of what was said since the last action.

    Of the state counts what the domain's progress key is made from. Where the domain keeps no
    state, what was said and done since the goal was set takes its place.
    """
    memory = context.working_memory
    arrived = [one.content for one in memory.percepts if one.kind is PerceptKind.MESSAGE]
    parts = [memory.goal, memory.memory_scope]
    if isinstance(context.state, AssistantState):
        own = [said.content for said in memory.dialogue if said.own]
        parts += [*own[-1:], deps.compiled.trail if deps.compiled else ""]
    else:
        parts.append(context.progress_key())
    return f"{content_id(*parts)}-{content_id(*arrived)[:8]}"


def _allowed_calls(specs: Mapping[str, ActionSpec], context: AnyContext, deps: Deps) -> _Allowed:
    calls = calls_of([spec for name, spec in specs.items() if name not in ASIDE])
    written = {action for _, action, _ in calls.written}
    counted: list[tuple[Candidate, float | None]] = []
    uncounted = [one for one in calls.names if one in specs and one not in {*written, RESPOND.name}]
    for candidate, judged in judge_calls(calls.judged(), specs, context, deps):
        if judged.survived and candidate.action in written:
            counted.append((candidate, judged.gain))
        elif judged.survived:
            uncounted.append(candidate.action)
    return _Allowed(tuple(counted), tuple(uncounted))


def _stakes(allowed: _Allowed, specs: Mapping[str, ActionSpec], deps: Deps) -> Iterator[str]:
    """What may be done now and much depends on, with the reason.

    Of actions whose calls cannot be counted no argument is known yet; what a rule of the approval
    policy says of arguments is left to Evaluation, which sees them.
    """
    for one, _ in allowed.calls:
        stakes = stakes_of(one.action, parsed_arguments(one.raw_arguments), specs, deps)
        if stakes:
            yield f"{_shown(one)} {stakes}"
    for name in allowed.uncounted:
        stakes = stakes_of(name, None, specs, deps)
        if stakes:
            yield f"{name} {stakes}"


def stakes_of(
    action: str,
    arguments: Mapping[str, Any] | None,
    specs: Mapping[str, ActionSpec],
    deps: Deps,
) -> str:
    """Why much depends on a call; empty where it does not. None for arguments not known yet."""
    if action not in specs or specs[action].read_only:
        return ""
    if specs[action].critical:
        return "cannot be undone, or costs money"
    if deps.approvals is None:
        return ""
    policy = deps.approvals.policy
    if arguments is None:
        need = policy.model_copy(update={"when": ()}).need(action, {})
    else:
        need = policy.need(action, arguments)
    return "" if need is None else "needs approval"


def why_escalate(
    judged: Sequence[Evaluation],
    candidates: Sequence[Candidate],
    specs: Mapping[str, ActionSpec],
    deps: Deps,
) -> str:
    """Why the model is to be asked once more after the one call; empty where the ranking decides.

    It is where the two that rank highest are close, and it matters which is taken: much depends on
    one of them, or the domain foresees different gains.
    """
    ranked = sorted((one for one in judged if one.survived), key=lambda one: -one.rank())[:2]
    if len(ranked) < 2 or not is_close(ranked, deps):
        return ""
    first, second = ranked
    gap = f"the two best differ by {first.rank() - second.rank():.2f}"
    actions = {one.id: one.action for one in candidates}
    for one in ranked:
        stakes = stakes_of(actions[one.candidate_id], one.arguments or {}, specs, deps)
        if stakes:
            return f"{gap}, and {actions[one.candidate_id]} {stakes}"
    if (first.gain or 0.0) != (second.gain or 0.0):
        return f"{gap}, and their gains are {first.gain or 0.0:+.2f} and {second.gain or 0.0:+.2f}"
    return ""


def is_close(survivors: Sequence[Evaluation], deps: Deps) -> bool:
    """Whether the two best of the survivors rank too closely for the ranking to decide."""
    ranks = sorted((one.rank() for one in survivors), reverse=True)
    return len(ranks) > 1 and ranks[0] - ranks[1] < deps.settings.close_scores


def _shown(candidate: Candidate) -> str:
    return one_line(f"{candidate.action} {candidate.raw_arguments}", 120)
