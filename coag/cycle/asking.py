"""How a phase asks the model: for an answer in a form, or for calls of the actions it offers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from coag.context import PhaseMaterial
from coag.errors import ConfigurationError
from coag.memory import is_seed
from coag.schema import (
    ActionSpec,
    Candidate,
    Evaluation,
    Phase,
    Prompt,
    PromptMessage,
    Situation,
    TokenUsage,
)

from .actions import ARGUMENTS, RESPOND
from .checks import judge_calls
from .deps import AnyContext, Deps, ModelReply, ToolProposal
from .output_schema import (
    BriefDeliberationAnswer,
    BriefProposalAnswer,
    DeliberationAnswer,
    EnumeratedCalls,
    FormT,
    ProposalAnswer,
    ReasoningAnswer,
    calls_of,
    form_of,
    with_enumerated_actions,
    with_enumerated_calls,
    with_ranked_calls,
)

AnswerT = TypeVar("AnswerT", bound=BaseModel)
NATIVE = "native"
"""The procedure that explains to the model how to call tools."""
EMPTY = "The model neither called a tool nor answered."
FORM = "Give that answer once more, complete, in the form that is asked for."
NOT_OFFERED = "not_offered"
"""What a note on calls that are forbidden now is about."""
_NOTE_CHARACTERS = 2_000
"""Characters of a note on what is not offered."""


async def prompt_for(
    phase: Phase,
    context: AnyContext,
    deps: Deps,
    *,
    form: str,
    procedure: str | None = None,
    evaluations: tuple[Evaluation, ...] = (),
    offered: Sequence[ActionSpec] | None = None,
) -> Prompt:
    """The prompt of a phase: its pinned procedure, the form of the answer, what it needs.

    Actions that are `offered` as tools are not described once more in the text.
    """
    memory = context.working_memory
    retrieval = memory.cognitive_state.retrieval
    name = procedure or phase.value
    pinned = retrieval.procedures.get(name) if retrieval else None
    text = deps.procedures.render(name, context.procedure_values(), version=pinned)
    if offered is not None and not offered and is_seed(name, text):
        text = ""  # how to use tools says nothing to a model that is offered none
    chooses = (phase is Phase.PROPOSAL or procedure is not None) and offered is None
    specs: tuple[ActionSpec, ...] = ()
    if chooses or context.rendering == "growing":
        specs = tuple((await deps.actions.specs()).values())
    now = Situation(
        activity=memory.activity,
        goal=memory.goal,
        cycle=max(memory.cycle, 1),
        phase=phase,
        query=retrieval.query if retrieval else "",
    )
    material = PhaseMaterial(
        instructions={phase: text},
        forms={phase: form},
        system_message=deps.system_message,
        actions=specs,
        description=context.describe(),
        evaluations=evaluations,
        modules=await deps.modules.contribute(phase, now, context.budgets.module),
        offered=offered or (),
        chat=offered is not None,
    )
    return context.build_prompt(phase, material)


async def ask_phase(
    phase: Phase,
    answer: type[AnswerT],
    context: AnyContext,
    deps: Deps,
    *,
    procedure: str | None = None,
    evaluations: tuple[Evaluation, ...] = (),
) -> ModelReply[AnswerT]:
    """What the model answers to the prompt of a phase; see `prompt_for`."""
    form = form_of(answer)
    prompt = await prompt_for(
        phase, context, deps, form=form, procedure=procedure, evaluations=evaluations
    )
    return await deps.ask(prompt, answer, phase=phase, cycle=context.working_memory.cycle)


# ---- Candidates of the model: a list in JSON, its own tool calls, or its text as the answer ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """What the model proposed."""

    candidates: tuple[Candidate, ...] = ()
    usage: TokenUsage
    problem: str = ""
    """Why there is no candidate."""
    thought: str = ""
    answer: ReasoningAnswer | ProposalAnswer | None = None
    """What it wrote, where it was asked for a form and gave it."""


async def draft(phase: Phase, context: AnyContext, deps: Deps) -> Drafted:
    """Asks for candidates; in Reasoning, with `depth="compact"`, for reasoning as well."""
    if deps.settings.proposal == "native":
        return await _offer(phase, context, deps)
    procedure = "deliberation" if phase is Phase.REASONING else None
    brief = deps.settings.answers == "brief"
    answer: type[ProposalAnswer] | type[DeliberationAnswer]
    if procedure:
        answer = BriefDeliberationAnswer if brief else DeliberationAnswer
    else:
        answer = BriefProposalAnswer if brief else ProposalAnswer
    answer = await _limited(answer, context, deps)
    reply = await ask_phase(phase, answer, context, deps, procedure=procedure)
    usage, candidates = reply.usage, list[Candidate]()
    for one in reply.value.candidates if reply.value else ():
        candidate = one.as_candidate(deps.ids("candidate"))
        if candidate.action == RESPOND.name and _formed(candidate.raw_arguments, deps) is None:
            # One that cannot be brought into the form is rejected in Evaluation.
            prompt = await prompt_for(phase, context, deps, form="", procedure=procedure)
            again = await _form_text(candidate.raw_arguments, prompt, phase, context, deps)
            usage += again.usage
            arguments = again.value or candidate.raw_arguments
            candidate = candidate.model_copy(update={"raw_arguments": arguments})
        candidates.append(candidate)
    return Drafted(
        candidates=tuple(candidates), usage=usage, problem=reply.problem, answer=reply.value
    )


async def _offer(phase: Phase, context: AnyContext, deps: Deps) -> Drafted:
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
    usage, thought = offered.usage, offered.thought
    if offered.calls:
        return Drafted(candidates=_called(offered, deps), usage=usage, thought=thought)
    if not offered.text:
        return Drafted(usage=usage, thought=thought, problem=EMPTY)
    formed = await _form_text(offered.text, prompt, phase, context, deps)
    usage += formed.usage
    if formed.value is None:
        return Drafted(usage=usage, thought=thought, problem=formed.problem)
    candidate = Candidate(
        id=deps.ids("candidate"),
        action=RESPOND.name,
        raw_arguments=formed.value,
        reason="the model answered in text",
    )
    return Drafted(candidates=(candidate,), usage=usage, thought=thought)


def _live(context: AnyContext, deps: Deps) -> bool:
    """Whether a text may be shown while it is written: nothing could still reject it."""
    retrieval = context.working_memory.cognitive_state.retrieval
    return not (
        deps.constraints.pinned
        or (retrieval is not None and retrieval.constraints)
        or context.has_forward_model
        or deps.settings.minimum_score > 0
        or (deps.approvals is not None and not deps.approvals.policy.exempts(RESPOND.name))
        or deps.answer_type is not None
    )


def _called(offered: ToolProposal, deps: Deps) -> tuple[Candidate, ...]:
    batch = deps.ids("batch") if len(offered.calls) > 1 else None
    ids = dict(enumerate(offered.ids))
    return tuple(
        Candidate(
            id=deps.ids("candidate"),
            action=name,
            # Models that have no arguments to give also write nothing, blanks or null.
            raw_arguments="{}" if arguments.strip() in ("", "null") else arguments,
            batch=batch,
            # An id of two calls would have two results.
            call_id=one if offered.ids.count(one := ids.get(number, "")) == 1 else "",
        )
        for number, (name, arguments) in enumerate(offered.calls)
    )


# ---- Which calls a form lists, where the settings want them enumerated ----


async def _limited(answer: type[FormT], context: AnyContext, deps: Deps) -> type[FormT]:
    if not deps.settings.enumerate_actions:
        return answer
    specs = await deps.actions.specs()
    if deps.settings.enumerate_actions is True:
        return with_enumerated_actions(answer, tuple(specs))
    every = calls_of(tuple(specs.values()))
    # Nothing was done in the environment since, so that these would be rejected once more.
    memory = context.working_memory
    acted = max((past.cycle for past in memory.deeds if not past.internal), default=0)
    calls = every.without(
        {(gone.action, gone.raw_arguments) for gone in memory.rejections if gone.cycle > acted}
    )
    if deps.settings.enumerate_actions == "allowed":
        calls = _allowed(calls, specs, context, deps)
    if deps.settings.answers == "brief" and every.can_be_ranked:
        return with_ranked_calls(answer, calls)
    return with_enumerated_calls(answer, calls)


def _allowed(
    calls: EnumeratedCalls, specs: Mapping[str, ActionSpec], context: AnyContext, deps: Deps
) -> EnumeratedCalls:
    """The calls that nothing in force forbids now.

    A note in the trace lists the others; its details hold what a replay needs to say so again.
    """
    dead: list[dict[str, str]] = []
    for one, judged in judge_calls(calls.judged(), specs, context, deps):
        by = judged.rejected_by
        if by is not None and by.constraint != ARGUMENTS:
            why = {"constraint": by.constraint, "reason": by.reason}
            dead.append({"action": one.action, "arguments": one.raw_arguments, **why})
    remaining = calls.without({(one["action"], one["arguments"]) for one in dead})
    if dead:
        lacking = "Forbidden now, but offered, for lack of others"
        how = lacking if remaining is calls else "Not offered now"
        shown = "; ".join("{action} {arguments}: {constraint}: {reason}".format(**o) for o in dead)
        deps.note(context, NOT_OFFERED, f"{how}: {shown}"[:_NOTE_CHARACTERS], forbidden=dead)
    return remaining


# ---- Giving the answer of a turn the form that was asked for (`output_content_type`) ----


async def _form_text(
    text: str, prompt: Prompt, phase: Phase, context: AnyContext, deps: Deps
) -> ModelReply[str]:
    """A text as arguments of `respond`: as it is, or in the form of the turn's answer.

    A text that has the form already is taken; any other one the model is asked to give again.
    """
    if deps.answer_type is None:
        return ModelReply(json.dumps({"text": text}, ensure_ascii=False), TokenUsage())
    if (formed := _formed(text, deps)) is not None:
        return ModelReply(formed, TokenUsage())
    message = PromptMessage(role="assistant", content=text)
    again = (*prompt, message, PromptMessage(role="user", content=FORM))
    cycle = context.working_memory.cycle
    reply = await deps.ask(again, deps.answer_type, phase=phase, cycle=cycle)
    if reply.value is None:
        problem = f"The answer did not come in the form of {deps.answer_type.__name__}."
        return ModelReply(None, reply.usage, f"{problem} {reply.problem}")
    return ModelReply(reply.value.model_dump_json(), reply.usage)


def _formed(text: str, deps: Deps) -> str | None:
    if deps.answer_type is None:
        return text
    try:
        return deps.answer_type.model_validate_json(text).model_dump_json()
    except ValueError:
        return None
