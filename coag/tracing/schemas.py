"""JSON Schemas of what a run leaves."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel

from coag.schema import Entry, TraceRecord

from .run import RunInfo

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def log_schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas (2020-12) of this version's `run.json`, of a trace's line, and of each record.

    They describe what is written, so that every field is required that a writer always writes.

    Returns:
        By name: `run`, `trace-line`, `record-percept`, `record-outcome-retrieval`, ...
    """
    models: dict[str, type[BaseModel]] = {"run": RunInfo, "trace-line": Entry}
    for model in _records(TraceRecord):
        fields = model.model_fields
        words = [fields["record"].default]
        words += [fields["phase"].default.value] if words == ["outcome"] else []
        models["-".join(["record", *words]).replace("_", "-")] = model
    return {
        name: {"$schema": _DIALECT, **model.model_json_schema(mode="serialization")}
        for name, model in models.items()
    }


def _records(union: Any) -> list[type[BaseModel]]:
    """The classes of a union of unions."""
    if isinstance(union, type):
        return [union] if issubclass(union, BaseModel) else []
    return [model for part in get_args(union) for model in _records(part)]
