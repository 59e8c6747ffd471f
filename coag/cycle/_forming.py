"""Giving the answer of a turn the form that was asked for (`output_content_type`)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import ValidationError

from coag.schema import Candidate, Phase, Prompt, PromptMessage, TokenUsage

from ._actions import RESPOND
from ._deps import AnyContext, Asked, Deps, prompt_for

FORM = "Give that answer once more, complete, in the form that is asked for."


async def form_text(
    text: str, prompt: Prompt, phase: Phase, context: AnyContext, deps: Deps
) -> Asked[str]:
    """A text as arguments of `respond`: as it is, or in the form of the turn's answer.

    A text that has the form already is taken; any other one the model is asked to give again.
    """
    if deps.answer_type is None:
        return Asked(json.dumps({"text": text}, ensure_ascii=False), TokenUsage())
    if (formed := _formed(text, deps)) is not None:
        return Asked(formed, TokenUsage())
    said = PromptMessage(role="assistant", content=text)
    again = (*prompt, said, PromptMessage(role="user", content=FORM))
    cycle = context.working_memory.cycle
    asked = await deps.ask(again, deps.answer_type, phase=phase, cycle=cycle)
    if asked.value is None:
        problem = f"The answer did not come in the form of {deps.answer_type.__name__}."
        return Asked(None, asked.usage, f"{problem} {asked.problem}")
    return Asked(asked.value.model_dump_json(), asked.usage)


async def form_answers(
    candidates: Sequence[Candidate],
    phase: Phase,
    context: AnyContext,
    deps: Deps,
    *,
    procedure: str | None = None,
) -> tuple[tuple[Candidate, ...], TokenUsage]:
    """The candidates, those that answer in the form of the turn's answer.

    One that cannot be brought into it stays as it is, and dies of its arguments in Evaluation.
    """
    if deps.answer_type is None:
        return tuple(candidates), TokenUsage()
    usage, ready = TokenUsage(), list[Candidate]()
    for candidate in candidates:
        if candidate.action != RESPOND.name or _formed(candidate.raw_arguments, deps):
            ready.append(candidate)
            continue
        prompt = await prompt_for(phase, context, deps, form="", procedure=procedure)
        asked = await form_text(candidate.raw_arguments, prompt, phase, context, deps)
        usage += asked.usage
        arguments = asked.value or candidate.raw_arguments
        ready.append(candidate.model_copy(update={"raw_arguments": arguments}))
    return tuple(ready), usage


def _formed(text: str, deps: Deps) -> str | None:
    """The text, if it is JSON of the answer's form."""
    if deps.answer_type is None:
        return text
    try:
        return deps.answer_type.model_validate_json(text).model_dump_json()
    except (ValidationError, ValueError):
        return None
