"""Which action writes what to memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coag.context import WorkingMemory
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION
from coag.schema import MemoryKind, Written, cleaned

from ._book import same

_RECORDS = {
    EPISODIC_ACTION: (MemoryKind.EPISODIC, "summary"),
    SEMANTIC_ACTION: (MemoryKind.SEMANTIC, "fact"),
}
"""The kind of record that an action writes, and which argument is its text."""


def selected_in(memory: WorkingMemory) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The actions that were selected in the cycle that goes on, with their arguments."""
    cognitive = memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None or cognitive.evaluation is None:
        return
    names = {candidate.id: candidate.action for candidate in cognitive.proposal.candidates}
    given = {judged.candidate_id: judged.arguments for judged in cognitive.evaluation.evaluations}
    for chosen in cognitive.selection.chosen:
        yield names.get(chosen, ""), given.get(chosen) or {}


def writes(action: str, arguments: Mapping[str, Any], written: Written) -> bool:
    """Whether this is what the action writes, as far as can be told: redacted texts may be."""
    content = written.content
    if written.what == "procedure":
        name = written.id.rpartition("@")[0]
        return (
            action == PROCEDURAL_ACTION
            and same(name, arguments.get("procedure"))
            and _alike(content.get("reason"), arguments.get("reason"))
        )
    if action not in _RECORDS:
        return False
    kind, argument = _RECORDS[action]
    return content.get("kind") == kind and _alike(content.get("text"), arguments.get(argument))


def _alike(one: object, other: object) -> bool:
    """Whether two texts say the same; white space does not count, as in a record's id.

    Nor do control characters, which memory does not keep.
    """
    return same(*(" ".join(cleaned(str(text)).split()) for text in (one, other)))
