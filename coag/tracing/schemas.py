"""JSON Schemas of what a run leaves."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from coag.schema import (
    ActionsListed,
    Entry,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Percept,
    ProposalOutcome,
    ReasoningOutcome,
    Receipt,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TurnEnd,
    TurnStart,
    Written,
)

from .run import RunInfo

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_FILES: dict[str, type[BaseModel]] = {
    "run": RunInfo,
    "trace-line": Entry,
    "record-turn-start": TurnStart,
    "record-percept": Percept,
    "record-outcome-retrieval": RetrievalOutcome,
    "record-outcome-reasoning": ReasoningOutcome,
    "record-outcome-proposal": ProposalOutcome,
    "record-outcome-evaluation": EvaluationOutcome,
    "record-outcome-selection": SelectionOutcome,
    "record-outcome-execution": ExecutionOutcome,
    "record-model-call": ModelCall,
    "record-intent": Intent,
    "record-receipt": Receipt,
    "record-written": Written,
    "record-snapshot": Snapshot,
    "record-actions": ActionsListed,
    "record-note": Note,
    "record-turn-end": TurnEnd,
}


def log_schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas (2020-12) of this version's `run.json`, of a trace's line, and of each record.

    They describe what is written, so that every field is required that a writer always writes.

    Returns:
        By name: `run`, `trace-line`, `record-percept`, `record-outcome-retrieval`, ...
    """
    return {
        name: {"$schema": _DIALECT, **model.model_json_schema(mode="serialization")}
        for name, model in _FILES.items()
    }
