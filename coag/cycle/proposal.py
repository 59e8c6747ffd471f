"""Proposal: candidates, from the model or from the domain; none is run here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from coag.schema import Candidate, Phase, ProposalOutcome, TokenUsage

from .asking import draft
from .deps import AnyContext, Deps, is_ablated
from .depth import depth_now


async def propose(context: AnyContext, deps: Deps) -> ProposalOutcome:
    """Candidates for this cycle, without repetitions.

    In one call, or by reflex, Reasoning has drafted them already; grounded ones come from the
    domain; otherwise the model is asked. An unusable answer gives none, which ends in an impasse.
    """
    memory, settings = context.working_memory, deps.settings
    reasoning = memory.cognitive_state.reasoning
    drafts = reasoning.drafts if reasoning else ()
    is_ablated("rewriting", context, deps)
    depth = depth_now(context, deps)
    grounds = settings.proposal == "grounded" and depth != "reflex"
    grounded = context.propose_grounded() if grounds else None
    usage, thought = TokenUsage(), ""
    if grounded is not None:
        candidates, proposed_by = _scored(_distinct(grounded), drafts), "grounded"
    elif depth != "full":
        candidates, proposed_by = drafts, "draft" if drafts else "nobody"
    else:
        drafted = await draft(Phase.PROPOSAL, context, deps)
        candidates, usage, thought = drafted.candidates, drafted.usage, drafted.thought
        native = settings.proposal == "native"
        usable = bool(candidates) if native else drafted.answer is not None
        proposed_by = ("native" if native else "model") if usable else "nobody"
        if not usable:
            nothing = "" if native else "The model proposed nothing usable. "
            deps.note(context, "fallback", f"{nothing}{drafted.problem}", phase="proposal")
    return ProposalOutcome(
        cycle=memory.cycle,
        at=deps.clock.now(),
        usage=usage,
        candidates=tuple(_distinct(candidates)),
        thought=thought,
        proposed_by=proposed_by,
    )


def _scored(candidates: Iterable[Candidate], drafts: Iterable[Candidate]) -> Iterator[Candidate]:
    """The domain's candidates with the scores and reasons of the model's drafts of the same."""
    drafted = {(draft.action, _read(draft.raw_arguments)): draft for draft in drafts}
    for each in candidates:
        same = drafted.get((each.action, _read(each.raw_arguments)))
        update = {"draft_score": same.draft_score, "reason": same.reason} if same else {}
        yield each.model_copy(update=update)


def _read(arguments: str) -> str:
    """Arguments in one way of writing, or as they are where they are no JSON."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except ValueError:
        return arguments


def _distinct(candidates: Iterable[Candidate]) -> Iterable[Candidate]:
    """The first of each set of alternatives that ask for the same; a batch stays whole."""
    seen: dict[tuple[str, str, str], Candidate] = {}
    for candidate in candidates:
        own = candidate.id if candidate.batch is not None else ""
        seen.setdefault((candidate.action, candidate.raw_arguments, own), candidate)
    return seen.values()
