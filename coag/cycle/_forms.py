"""Which form of an answer a phase asks for, by the settings."""

from __future__ import annotations

from collections.abc import Mapping

from coag.schema import ActionSpec, Candidate, Verdict

from ._answers import (
    BriefDeliberationAnswer,
    BriefEvaluationAnswer,
    BriefProposalAnswer,
    BriefReasoningAnswer,
    BriefSelectionAnswer,
    DeliberationAnswer,
    EvaluationAnswer,
    FormT,
    ProposalAnswer,
    ReasoningAnswer,
    SelectionAnswer,
)
from ._arguments import ARGUMENTS
from ._checking import check
from ._deps import AnyContext, Deps
from ._enumerating import Calls, calls_of, with_enumerated_actions, with_enumerated_calls
from ._ranking import can_be_ranked, with_numbered_scores, with_ranked_calls

_TOLD = 2_000
"""Characters of a note on what is not offered."""
OFFER = "offer"
"""Id of a candidate that nobody proposed: a call that is judged before it is offered."""
NOT_OFFERED = "not_offered"
"""What a note on calls that are forbidden now is about."""


def reasoning_form(deps: Deps) -> type[ReasoningAnswer]:
    """How Reasoning is asked."""
    return BriefReasoningAnswer if deps.settings.answers == "brief" else ReasoningAnswer


def evaluation_form(deps: Deps, count: int) -> type[EvaluationAnswer]:
    """How Evaluation is asked about so many candidates."""
    if deps.settings.answers == "brief":
        return with_numbered_scores(BriefEvaluationAnswer, count)
    return EvaluationAnswer


def selection_form(deps: Deps) -> type[SelectionAnswer]:
    """How Selection is asked."""
    return BriefSelectionAnswer if deps.settings.answers == "brief" else SelectionAnswer


async def proposal_form(context: AnyContext, deps: Deps) -> type[ProposalAnswer]:
    """How Proposal is asked."""
    brief = deps.settings.answers == "brief"
    return await _limited(BriefProposalAnswer if brief else ProposalAnswer, context, deps)


async def deliberation_form(context: AnyContext, deps: Deps) -> type[DeliberationAnswer]:
    """How reasoning, candidates and scores are asked in one."""
    brief = deps.settings.answers == "brief"
    return await _limited(BriefDeliberationAnswer if brief else DeliberationAnswer, context, deps)


async def _limited(answer: type[FormT], context: AnyContext, deps: Deps) -> type[FormT]:
    """The form with the actions that may be written, as the settings want them enumerated."""
    if not deps.settings.enumerate_actions:
        return answer
    specs = await deps.actions.specs()
    if deps.settings.enumerate_actions is True:
        return with_enumerated_actions(answer, tuple(specs))
    every = calls_of(tuple(specs.values()))
    calls = every.without(_rejected(context))
    if deps.settings.enumerate_actions == "allowed":
        calls = _allowed(calls, specs, context, deps)
    if deps.settings.answers == "brief" and can_be_ranked(every):
        return with_ranked_calls(answer, calls)
    return with_enumerated_calls(answer, calls)


def _allowed(
    calls: Calls, specs: Mapping[str, ActionSpec], context: AnyContext, deps: Deps
) -> Calls:
    """The calls that nothing in force forbids now; the trace is told of the others."""
    dead: dict[tuple[str, str], Verdict] = {}
    for action, arguments in calls.judged():
        candidate = Candidate(id=OFFER, action=action, raw_arguments=arguments)
        died_of = check(candidate, specs, context, deps).died_of
        if died_of is not None and died_of.constraint != ARGUMENTS:
            dead[action, arguments] = died_of
    left = calls.without(dead.keys())
    if dead:
        _tell(dead, context, deps, offered=left is calls)
    return left


def _tell(
    dead: Mapping[tuple[str, str], Verdict], context: AnyContext, deps: Deps, *, offered: bool
) -> None:
    """Notes which calls are forbidden now; the details hold what a replay needs to say so again."""
    told = [
        f"{action} {arguments}: {verdict.constraint}: {verdict.reason}"
        for (action, arguments), verdict in dead.items()
    ]
    found = [
        {
            "action": action,
            "arguments": arguments,
            "constraint": verdict.constraint,
            "reason": verdict.reason,
        }
        for (action, arguments), verdict in dead.items()
    ]
    how = "Forbidden now, but offered, for lack of others" if offered else "Not offered now"
    deps.note(context, NOT_OFFERED, f"{how}: {'; '.join(told)}"[:_TOLD], forbidden=found)


def _rejected(context: AnyContext) -> set[tuple[str, str]]:
    """Calls that were rejected since the last action in the environment.

    Nothing has been done since, so that they would be rejected once more.
    """
    memory = context.working_memory
    acted = max((deed.cycle for deed in memory.deeds if not deed.internal), default=0)
    return {(gone.action, gone.raw_arguments) for gone in memory.rejections if gone.cycle > acted}
