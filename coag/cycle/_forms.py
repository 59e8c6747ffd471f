"""Which form of an answer a phase asks for, by the settings."""

from __future__ import annotations

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
from ._deps import AnyContext, Deps
from ._enumerating import calls_of, with_enumerated_actions, with_enumerated_calls


def reasoning_form(deps: Deps) -> type[ReasoningAnswer]:
    """How Reasoning is asked."""
    return BriefReasoningAnswer if deps.settings.answers == "brief" else ReasoningAnswer


def evaluation_form(deps: Deps) -> type[EvaluationAnswer]:
    """How Evaluation is asked."""
    return BriefEvaluationAnswer if deps.settings.answers == "brief" else EvaluationAnswer


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
    offered = tuple((await deps.actions.specs()).values())
    if deps.settings.enumerate_actions == "calls":
        return with_enumerated_calls(answer, calls_of(offered).without(_rejected(context)))
    return with_enumerated_actions(answer, tuple(spec.name for spec in offered))


def _rejected(context: AnyContext) -> set[tuple[str, str]]:
    """Calls that were rejected since the last action in the environment.

    Nothing has been done since, so that they would be rejected once more.
    """
    memory = context.working_memory
    acted = max((deed.cycle for deed in memory.deeds if not deed.internal), default=0)
    return {(gone.action, gone.raw_arguments) for gone in memory.rejections if gone.cycle > acted}
