"""Proposal: candidates, from the model or from the domain; none is run here."""

from __future__ import annotations

import json
from collections.abc import Iterable

from coag.schema import Candidate, Phase, ProposalOutcome

from .deps import AnyContext, Deps, is_ablated
from .native import propose_natively
from .output_schema import ask_phase, form_answers, proposal_form


async def propose(context: AnyContext, deps: Deps) -> ProposalOutcome:
    """Candidates for this cycle, without repetitions.

    Compact Reasoning has drafted them already; grounded ones come from the domain; otherwise
    the model is asked. An unusable answer gives none, which ends in an impasse.
    """
    memory = context.working_memory
    reasoning = memory.cognitive_state.reasoning
    is_ablated("rewriting", context, deps)
    if deps.settings.proposal == "grounded":
        grounded = context.propose_grounded()
        if grounded is not None:
            return ProposalOutcome(
                cycle=memory.cycle,
                at=deps.clock.now(),
                candidates=_scored(_distinct(grounded), reasoning.drafts if reasoning else ()),
                proposed_by="grounded",
            )
    if deps.settings.depth == "compact":
        drafts = reasoning.drafts if reasoning else ()
        return ProposalOutcome(
            cycle=memory.cycle,
            at=deps.clock.now(),
            candidates=_distinct(drafts),
            proposed_by="draft" if drafts else "nobody",
        )
    if deps.settings.proposal == "native":
        return await _offer(context, deps)
    return await _ask(context, deps)


async def _offer(context: AnyContext, deps: Deps) -> ProposalOutcome:
    proposed = await propose_natively(Phase.PROPOSAL, context, deps)
    if proposed.problem:
        deps.note(context, "fallback", proposed.problem, phase="proposal")
    return ProposalOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        usage=proposed.usage,
        candidates=_distinct(proposed.candidates),
        thought=proposed.thought,
        proposed_by="native" if proposed.candidates else "nobody",
    )


async def _ask(context: AnyContext, deps: Deps) -> ProposalOutcome:
    answer = await proposal_form(context, deps)
    reply = await ask_phase(Phase.PROPOSAL, answer, context, deps)
    if reply.value is None:
        text = f"The model proposed nothing usable. {reply.problem}"
        deps.note(context, "fallback", text, phase="proposal")
    candidates, usage = await form_answers(
        [
            drafted.as_candidate(deps.ids("candidate"))
            for drafted in (reply.value.candidates if reply.value else ())
        ],
        Phase.PROPOSAL,
        context,
        deps,
    )
    return ProposalOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        usage=reply.usage + usage,
        candidates=_distinct(candidates),
        proposed_by="model" if reply.value else "nobody",
    )


def _scored(
    candidates: tuple[Candidate, ...], drafts: Iterable[Candidate]
) -> tuple[Candidate, ...]:
    """The domain's candidates with the scores and reasons of the model's drafts of the same."""
    drafted = {(draft.action, _read(draft.raw_arguments)): draft for draft in drafts}
    result = [drafted.get((each.action, _read(each.raw_arguments))) for each in candidates]
    return tuple(
        each
        if draft is None
        else each.model_copy(update={"draft_score": draft.draft_score, "reason": draft.reason})
        for each, draft in zip(candidates, result, strict=True)
    )


def _read(arguments: str) -> str:
    """Arguments in one way of writing, or as they are where they are no JSON."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def _distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The first of each set of alternatives that ask for the same; a batch stays whole."""
    seen: dict[tuple[str, str, str], Candidate] = {}
    for candidate in candidates:
        own = candidate.id if candidate.batch is not None else ""
        seen.setdefault((candidate.action, candidate.raw_arguments, own), candidate)
    return tuple(seen.values())
