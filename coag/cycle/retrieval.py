"""Retrieval: what long-term memory holds on the situation; pins what holds for the cycle."""

from __future__ import annotations

from dataclasses import replace

from coag.context import DATA_RULE, fitting, render_section
from coag.memory import Recall
from coag.schema import PerceptKind, Phase, PromptMessage, RetrievalOutcome, TokenUsage

from .deps import AnyContext, Deps, is_ablated
from .output_schema import SummaryAnswer, form_of

DIALOGUE_K = 3
"""Pieces of what was said before the dialogue that is kept, recalled beside the records."""


async def retrieve(context: AnyContext, deps: Deps) -> RetrievalOutcome:
    """Recalls records for the context's query, as far as the prompt has room for them.

    Pins procedures and constraints.

    A memory that fails costs the recall, not the turn: the trace notes it. Where the settings
    leave retrieval out, memory is not asked.
    """
    await context.refresh_dialogue()
    left_out = is_ablated("retrieval", context, deps)
    query = context.retrieval_query()
    usage, summary, summarized = await _summarized(context, deps)
    where = context.episodic_filter()
    scope = context.memory_scope()
    recall = Recall()
    if deps.memory is not None and query and deps.settings.recall_k and not left_out:
        memory = context.memory_for_now(deps.memory)
        result = await context.retrieve_ltms(memory, k=deps.settings.recall_k)
        found = (*result.records, *result.unasked)
        known = {*(one.record.id for one in found), *result.left_out}
        said = await context.archive.search(query, DIALOGUE_K)
        said = [one for one in said if one.record.id not in known]  # a replay's memory returns all
        prompt = context.working_memory.limits.prompt
        room = context.budgets.recalled or max(1, prompt // 8)
        recall = fitting(replace(result, records=(*found, *said)), room)
        for problem in recall.problems:
            deps.note(context, "memory", problem, phase=Phase.RETRIEVAL.value)
    return RetrievalOutcome(
        cycle=context.working_memory.cycle + 1,
        at=deps.clock.now(),
        usage=usage,
        summary=summary,
        summarized=summarized,
        query=query,
        filter=where,
        memory_scope=scope,
        records=tuple(recall.records),
        left_out=recall.left_out,
        felt=recall.felt,
        doubted=recall.doubted,
        procedures=dict(deps.procedures.pin()),
        constraints=deps.constraints.pin(),
        counted=deps.constraints.counted(),
    )


async def _summarized(context: AnyContext, deps: Deps) -> tuple[TokenUsage, str, int]:
    """The model's summary of what has left the dialogue, and of how many messages it is.

    Asked for once a turn at most. An answer that cannot be used leaves what the rules kept.
    """
    memory = context.working_memory
    arrived = any(one.kind is PerceptKind.MESSAGE for one in memory.percepts)
    due = context.archive.to_summarize(memory) if deps.settings.summarize and arrived else None
    if due is None:
        return TokenUsage(), "", 0
    section, covered = due
    instruction = deps.procedures.render("summary", context.procedure_values())
    system = f"{instruction}\n\n{form_of(SummaryAnswer)}\n\n{DATA_RULE}"
    prompt = (
        PromptMessage(role="system", content=system),
        PromptMessage(role="user", content=render_section(section), sections=(section,)),
    )
    reply = await deps.ask(prompt, SummaryAnswer, phase=Phase.RETRIEVAL, cycle=memory.cycle + 1)
    if reply.value is None or not reply.value.summary.strip():
        problem = reply.problem or "The summary was empty."
        deps.note(context, "fallback", problem, phase=Phase.RETRIEVAL.value)
        return reply.usage, "", 0
    return reply.usage, reply.value.summary.strip(), covered
