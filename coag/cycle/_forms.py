"""Which form of an answer a phase asks for, by the settings."""

from __future__ import annotations

from coag.schema import ActionSpec

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
from ._deps import Deps
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


async def proposal_form(deps: Deps) -> type[ProposalAnswer]:
    """How Proposal is asked."""
    brief = deps.settings.answers == "brief"
    return _limited(BriefProposalAnswer if brief else ProposalAnswer, await _offered(deps), deps)


async def deliberation_form(deps: Deps) -> type[DeliberationAnswer]:
    """How reasoning, candidates and scores are asked in one."""
    brief = deps.settings.answers == "brief"
    answer = BriefDeliberationAnswer if brief else DeliberationAnswer
    return _limited(answer, await _offered(deps), deps)


async def _offered(deps: Deps) -> tuple[ActionSpec, ...]:
    return tuple((await deps.actions.specs()).values())


def _limited(answer: type[FormT], offered: tuple[ActionSpec, ...], deps: Deps) -> type[FormT]:
    """The form with the actions that may be written, as the settings want them enumerated."""
    if deps.settings.enumerate_actions == "calls":
        return with_enumerated_calls(answer, calls_of(offered))
    if deps.settings.enumerate_actions:
        return with_enumerated_actions(answer, tuple(spec.name for spec in offered))
    return answer
