"""Proposal: candidates, from the model or from the domain; none is run here."""

from __future__ import annotations

from collections.abc import Iterable

from coag.schema import Candidate, Phase, ProposalOutcome

from ._answers import ProposalAnswer, form_of, with_enumerated_actions
from ._deps import AnyContext, Deps, ask_phase


async def propose(context: AnyContext, deps: Deps) -> ProposalOutcome:
    """Candidates for this cycle, without repetitions.

    Compact Reasoning has drafted them already; grounded ones come from the domain; otherwise
    the model is asked. An unusable answer gives none, which ends in an impasse.
    """
    memory = context.working_memory
    reasoning = memory.cognitive_state.reasoning
    if deps.settings.proposal == "grounded":
        grounded = context.propose_grounded()
        if grounded is not None:
            return ProposalOutcome(
                cycle=memory.cycle,
                at=deps.clock.now(),
                candidates=_distinct(grounded),
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
    return await _ask(context, deps)


async def _ask(context: AnyContext, deps: Deps) -> ProposalOutcome:
    answer: type[ProposalAnswer] = ProposalAnswer
    if deps.settings.enumerate_actions:
        answer = with_enumerated_actions(ProposalAnswer, tuple(await deps.actions.specs()))
    form = form_of(ProposalAnswer)
    asked = await ask_phase(Phase.PROPOSAL, answer, context, deps, form=form)
    if asked.value is None:
        text = f"The model proposed nothing usable. {asked.problem}"
        deps.note(context, "fallback", text, phase="proposal")
    candidates = _distinct(
        drafted.as_candidate(deps.ids("candidate"))
        for drafted in (asked.value.candidates if asked.value else ())
    )
    return ProposalOutcome(
        cycle=context.working_memory.cycle,
        at=deps.clock.now(),
        usage=asked.usage,
        candidates=candidates,
        proposed_by="model" if asked.value else "nobody",
    )


def _distinct(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The first of each set of candidates that ask for the same."""
    seen: dict[tuple[str, str], Candidate] = {}
    for candidate in candidates:
        seen.setdefault((candidate.action, candidate.raw_arguments), candidate)
    return tuple(seen.values())
