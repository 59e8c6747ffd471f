"""How deeply a cycle deliberates with `depth="auto"`: no model call, one, or one per phase.

There are six outcomes either way and no way back: Reasoning chooses by what code knows before the
model is asked, and Evaluation may ask it once more about candidates that are too close to rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .checks import check
from .compiled import CompiledProcedure
from .deps import AnyContext, Deps
from .output_schema import calls_of

OFFER = "offer"
"""Id of a candidate that nobody proposed: a call that is judged before it is offered."""
ASIDE = MEMORY_ACTIONS | {READ_MORE}
"""Actions that bring no goal nearer by themselves: they are not counted among what may be done."""
MOST_STAKES = 4
"""Calls that the evidence names for what depends on them."""


def choose_depth(evidence: DepthEvidence) -> DepthChoice:
    """The depth of a cycle; the first of these reasons that holds.

    Nothing but an answer is left: one call. One call alone is allowed: reflex. An impasse, or a
    prediction that failed: full. Much depends on what may be done now: full. A compiled procedure
    fits: reflex. Else one call.
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
    else:
        depth, reason = "one_call", "nothing asks for more"
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
    only_call: Candidate | None = None
    procedure: CompiledProcedure | None = None

    def reflex(self, candidate_id: str) -> Candidate:
        """The candidate that needs no model."""
        if self.only_call is not None:
            return self.only_call.model_copy(update={"id": candidate_id})
        assert self.procedure is not None, "a reflex has an only call or a procedure"
        return Candidate(
            id=candidate_id,
            action=self.procedure.action,
            raw_arguments=self.procedure.raw_arguments,
            reason="a compiled procedure",
        )


async def look_ahead(context: AnyContext, deps: Deps) -> Outlook:
    """The evidence for the depth of this cycle. No model is asked, and nothing is run."""
    situation = situation_of(context, deps)
    if deps.actions.closing:
        return Outlook(DepthEvidence(situation=situation, answers_only=True))
    specs = await deps.actions.specs()
    allowed, uncounted = _allowed_calls(specs, context, deps)
    procedure = deps.compiled.find(situation) if deps.compiled else None
    if procedure is not None and procedure.action not in specs:
        procedure = None
    only = allowed[0] if len(allowed) == 1 and not uncounted else None
    percepts = context.working_memory.percepts
    evidence = DepthEvidence(
        situation=situation,
        only_call="" if only is None else _shown(only),
        procedure="" if procedure is None else procedure.line,
        impasse=any(one.kind is PerceptKind.IMPASSE for one in percepts),
        disagreed=_disagreed(situation, context, deps),
        stakes=tuple(_stakes(allowed, uncounted, specs, deps))[:MOST_STAKES],
    )
    return Outlook(evidence, only, procedure)


def _disagreed(situation: str, context: AnyContext, deps: Deps) -> tuple[str, ...]:
    """Fields that the last action was to change by its projection, where it changed nothing."""
    predicted = None if deps.compiled is None else deps.compiled.unfulfilled(situation)
    return () if predicted is None else context.differs_from(predicted)


def situation_of(context: AnyContext, deps: Deps) -> str:
    """Digest of the goal and of what the domain says must change for something to be new.

    Where the domain keeps no state, what was said and done since counts in its place.
    """
    memory = context.working_memory
    others = [said.content for said in memory.dialogue if not said.own]
    parts = [memory.goal, memory.memory_scope, *others[-1:]]
    if isinstance(context.state, AssistantState):
        own = [said.content for said in memory.dialogue if said.own]
        parts += [*own[-1:], deps.compiled.trail if deps.compiled else ""]
    else:
        parts.append(context.progress_key())
    return content_id(*parts)


def _allowed_calls(
    specs: Mapping[str, ActionSpec], context: AnyContext, deps: Deps
) -> tuple[list[Candidate], list[str]]:
    """The calls that nothing in force forbids, and the actions whose calls cannot be counted.

    An answer needs a text, so that it is one of those that cannot be counted.
    """
    calls = calls_of([spec for name, spec in specs.items() if name not in ASIDE])
    allowed = [
        candidate
        for action, arguments in calls.judged()
        if (candidate := Candidate(id=OFFER, action=action, raw_arguments=arguments))
        and check(candidate, specs, context, deps).survived
    ]
    written = {action for _, action, _ in calls.written}
    counted = [one for one in allowed if one.action in written]
    spoken = [RESPOND.name] if len(counted) < len(allowed) else []
    others = [name for name in calls.names if name in specs and name not in written]
    return counted, [*spoken, *(name for name in others if name != RESPOND.name)]


def _stakes(
    allowed: Sequence[Candidate],
    uncounted: Sequence[str],
    specs: Mapping[str, ActionSpec],
    deps: Deps,
) -> list[str]:
    """What may be done now and much depends on, with the reason.

    Of actions whose calls cannot be counted no argument is known yet; what a rule of the approval
    policy says of arguments is left to Evaluation, which sees them.
    """
    found: list[str] = []
    for one in allowed:
        stakes = stakes_of(one.action, parsed_arguments(one.raw_arguments), specs, deps)
        found += [f"{_shown(one)} {stakes}"] if stakes else []
    for name in uncounted:
        stakes = stakes_of(name, None, specs, deps)
        found += [f"{name} {stakes}"] if stakes else []
    return found


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
