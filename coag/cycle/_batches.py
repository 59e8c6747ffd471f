"""Batches: tool calls of one answer that may run together."""

from __future__ import annotations

from collections.abc import Sequence

from coag.schema import Candidate, Evaluation, Verdict

from ._deps import Deps

PARALLEL = "parallel"
STALE = (
    "an earlier call of the same answer will change the state by which this one was judged; "
    "propose it again afterwards"
)


def batched(candidates: Sequence[Candidate], deps: Deps) -> bool:
    """Whether the candidates are one batch that may run together, rather than alternatives."""
    batches = {candidate.batch for candidate in candidates}
    return deps.settings.parallel and len(batches) == 1 and None not in batches


def one_prediction(judged: Sequence[Evaluation]) -> tuple[Evaluation, ...]:
    """The evaluations, with at most one survivor whose effect on the state is predicted.

    Each member of a batch is judged by the state before it. A second one with a predicted effect
    would run in another state than the one its constraints saw.
    """
    kept: list[Evaluation] = []
    predicted = False
    for evaluation in judged:
        if not evaluation.survived or evaluation.projection is None or not predicted:
            predicted = predicted or (evaluation.survived and evaluation.projection is not None)
            kept.append(evaluation)
            continue
        stale = Verdict(allowed=False, constraint=PARALLEL, reason=STALE)
        verdicts = (*evaluation.verdicts, stale)
        kept.append(evaluation.model_copy(update={"verdicts": verdicts}))
    return tuple(kept)
