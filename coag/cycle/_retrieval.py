"""Retrieval: what long-term memory holds on the situation; pins what holds for the cycle."""

from __future__ import annotations

from dataclasses import replace

from coag.context import fitting
from coag.memory import Recall
from coag.schema import Phase, RetrievalOutcome

from ._deps import AnyContext, Deps
from ._leaving_out import leaves_out

DIALOGUE_K = 3
"""Pieces of what was said before the dialogue that is kept, recalled beside the records."""


async def retrieve(context: AnyContext, deps: Deps) -> RetrievalOutcome:
    """Recalls records for the context's query, as far as the prompt has room for them.

    Pins procedures and constraints.

    A memory that fails costs the recall, not the turn: the trace notes it. Where the settings
    leave retrieval out, memory is not asked.
    """
    await context.refresh_dialogue()
    left_out = leaves_out("retrieval", context, deps)
    query = context.retrieval_query()
    where = context.episodic_filter()
    scope = context.memory_scope()
    recall = Recall()
    if deps.memory is not None and query and deps.settings.recall_k and not left_out:
        memory = context.memory_for_now(deps.memory)
        found = await context.retrieve_ltms(memory, k=deps.settings.recall_k)
        said = await context.recall_dialogue(k=DIALOGUE_K)
        room = context.budgets.recall_room(context.working_memory.limits)
        recall = fitting(replace(found, records=(*found.records, *said)), room)
        for problem in recall.problems:
            deps.note(context, "memory", problem, phase=Phase.RETRIEVAL.value)
    return RetrievalOutcome(
        cycle=context.working_memory.cycle + 1,
        at=deps.clock.now(),
        query=query,
        filter=where,
        memory_scope=scope,
        records=tuple(recall.records),
        left_out=recall.left_out,
        procedures=dict(deps.procedures.pin()),
        constraints=deps.constraints.pin(),
    )
