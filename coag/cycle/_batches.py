"""Batches: tool calls of one answer that are all to run."""

from __future__ import annotations

from collections.abc import Sequence

from coag.schema import Candidate

from ._deps import Deps


def batched(candidates: Sequence[Candidate], deps: Deps) -> bool:
    """Whether the candidates are one batch, to be run as one, rather than alternatives."""
    batches = {candidate.batch for candidate in candidates}
    return deps.settings.parallel and len(batches) == 1 and None not in batches
