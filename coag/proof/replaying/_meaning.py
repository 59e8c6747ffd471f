"""What a divergence likely means."""

from __future__ import annotations

_OTHER = "The code of the agent or of coag is not what it was when the run was recorded."
_MEANINGS = (
    ("", "record", "The agent does something else now: its settings or its code have changed."),
    ("model_call", "messages", "The prompt is another one: a procedure, the domain's description, "
     "a module or the rendering has changed."),
    ("model_call", "tools", "Other tools are offered now."),
    ("model_call", "usage", "What the request cost is counted in another way."),
    ("percept", "state_patch", "The domain's hook reads the percept in another way."),
    ("percept", "hook_problem", "The domain's hook reads the percept in another way."),
    ("percept", "sets_goal", "The domain decides in another way what opens a goal."),
    ("percept", "memory_scope", "The domain tells people apart in another way."),
    ("retrieval", "memory_scope", "The domain tells people apart in another way."),
    ("snapshot", "procedures", "A procedure has another text: its seed or its history changed."),
    ("snapshot", "modules", "A module came to another state."),
    ("snapshot", "working_memory", "Working memory came to another state."),
    ("snapshot", "random", "Another seed, or random numbers were drawn at other places."),
    ("snapshot", "detector", "Failures are remembered in another way."),
    ("retrieval", "query", "The domain asks its memory for something else."),
    ("retrieval", "filter", "The domain filters its memory in another way."),
    ("retrieval", "constraints", "Other constraints are in force now."),
    ("retrieval", "procedures", "Other versions of procedures are in force now."),
    ("evaluation", "evaluations", "A schema, a projection or a constraint judges in another way."),
    ("actions", "specs", "A tool has another description or other parameters."),
    ("written", "content", "Something else is remembered now."),
)  # fmt: skip


def meaning_of(kind: str, field: str) -> str:
    """What it likely means that a field of a sort of record differs."""
    for of_kind, begins, meaning in _MEANINGS:
        if of_kind in ("", kind) and field.startswith(begins):
            return meaning
    return _OTHER
