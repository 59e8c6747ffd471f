"""Candidates from the model's own tool calls, or from its text as the answer of the turn."""

from __future__ import annotations

from dataclasses import dataclass

from coag.errors import ConfigurationError
from coag.schema import Candidate, Phase, TokenUsage

from .actions import RESPOND
from .deps import AnyContext, Deps, ToolProposal, prompt_for
from .output_schema import form_text

NATIVE = "native"
"""The procedure that tells the model how to call tools."""
EMPTY = "The model neither called a tool nor answered."


@dataclass(frozen=True, slots=True)
class NativeProposal:
    """What the model proposed by calling tools or by answering."""

    candidates: tuple[Candidate, ...]
    usage: TokenUsage
    thought: str
    problem: str = ""
    """Why there is no candidate."""


async def propose_natively(phase: Phase, context: AnyContext, deps: Deps) -> NativeProposal:
    """Offers the model every action as a tool and takes what it calls as candidates.

    Calls of one answer are one batch. A text is a candidate for `respond`.
    """
    if deps.offer is None:
        raise ConfigurationError('proposal="native" needs Deps.offer.')
    specs = await deps.actions.specs()
    tools = tuple(spec for spec in specs.values() if spec.name != RESPOND.name)
    prompt = await prompt_for(phase, context, deps, form="", procedure=NATIVE, offered=tools)
    cycle = context.working_memory.cycle
    offered = await deps.offer(prompt, tools, phase=phase, cycle=cycle, live=_live(context, deps))
    for remark in offered.remarks:
        deps.note(context, "repair", remark, phase=phase.value)
    if offered.calls:
        return NativeProposal(_called(offered, deps), offered.usage, offered.thought)
    if not offered.text:
        return NativeProposal((), offered.usage, offered.thought, EMPTY)
    formed = await form_text(offered.text, prompt, phase, context, deps)
    usage = offered.usage + formed.usage
    if formed.value is None:
        return NativeProposal((), usage, offered.thought, formed.problem)
    candidate = Candidate(
        id=deps.ids("candidate"),
        action=RESPOND.name,
        raw_arguments=formed.value,
        reason="the model answered in text",
    )
    return NativeProposal((candidate,), usage, offered.thought)


def _live(context: AnyContext, deps: Deps) -> bool:
    """Whether a text may be shown while it is written: nothing could still reject it."""
    retrieval = context.working_memory.cognitive_state.retrieval
    return not (
        deps.constraints.pinned
        or (retrieval is not None and retrieval.constraints)
        or context.has_forward_model
        or deps.settings.minimum_score > 0
        or (deps.approvals is not None and deps.approvals.may_ask_about(RESPOND.name))
        or deps.answer_type is not None
    )


def _called(offered: ToolProposal, deps: Deps) -> tuple[Candidate, ...]:
    batch = deps.ids("batch") if len(offered.calls) > 1 else None
    ids = dict(enumerate(offered.ids))
    return tuple(
        Candidate(
            id=deps.ids("candidate"),
            action=name,
            raw_arguments=_without_nothing(arguments),
            batch=batch,
            # An id of two calls would have two results.
            call_id=one if offered.ids.count(one := ids.get(number, "")) == 1 else "",
        )
        for number, (name, arguments) in enumerate(offered.calls)
    )


def _without_nothing(arguments: str) -> str:
    """The arguments; models that have none to give also write nothing, blanks or null."""
    return "{}" if arguments.strip() in ("", "null") else arguments
