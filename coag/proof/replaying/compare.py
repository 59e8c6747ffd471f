"""How two records differ, and what that means."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from coag._util.json_diff import first_difference
from coag._util.text import clip
from coag.schema import TraceRecord, well_formed
from coag.tracing import Redactor

# ---- Two records of the same place in a run, compared but for their times ----


_CUT = 300
"""Characters of a value that are shown."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """Where two records differ first."""

    field: str
    """Path of the field, as in `messages[1].content`."""
    recorded: str
    """Its recorded value as JSON, cut to what differs."""
    replayed: str
    """Its value in the replay, cut in the same way."""


def difference(recorded: TraceRecord, replayed: TraceRecord) -> RecordDifference | None:
    """The first field that differs; times, durations and the environment's state do not count.

    The trace keeps no secrets and no halves of characters, so where the replay's record differs it
    is looked at without them.
    """
    was, now = comparable(recorded), comparable(replayed)
    if was == now:
        return None
    clean = Redactor.from_environment().clean(well_formed(json.dumps(now, ensure_ascii=False)))
    found = first_difference(was, json.loads(clean))
    return None if found is None else RecordDifference(found.path, *found.shown())


def comparable(record: TraceRecord) -> JsonObject:
    """A record as JSON, without what a replay cannot have and need not have alike."""
    told = record.model_dump(mode="json")
    _TIMELESS.get(record.record, _without_at)(told)
    return told


def shown(value: Any) -> str:
    """A value as JSON, cut."""
    return clip(json.dumps(value, ensure_ascii=False, default=str), _CUT)


def _without_at(told: JsonObject) -> None:
    told.pop("at", None)


def _call(told: JsonObject) -> None:
    _without_at(told)
    told.pop("seconds", None)
    told.pop("error_type", None)  # what is raised again is no class of the client's package


def _turn_end(told: JsonObject) -> None:
    _without_at(told)
    told.pop("error_type", None)


def _execution(told: JsonObject) -> None:
    _without_at(told)
    for percept in told.get("queued", ()):
        _without_at(percept)


def _written(told: JsonObject) -> None:
    _without_at(told)
    told["content"].pop("at" if told["what"] == "procedure" else "created_at", None)


def _note(told: JsonObject) -> None:
    _without_at(told)
    if told["about"] == "approval":
        told["details"].pop("expires_at", None)


def _snapshot(told: JsonObject) -> None:
    _without_at(told)
    told.pop("environment", None)
    memory = told["working_memory"]
    for name in ("dialogue", "percepts", "queued"):
        for each in memory.get(name, ()):
            _without_at(each)
    for outcome in memory.get("cognitive_state", {}).values():
        _execution(outcome)
    memory.get("spent", {}).pop("seconds", None)
    for kept in _procedures(told):
        _without_at(kept)
    told["modules"] = _untimed(told["modules"])


def _procedures(told: JsonObject) -> list[JsonObject]:
    """Every version of a procedure and every waiting rewrite."""
    state: JsonObject = told["procedures"].get("state") or {}
    histories: Mapping[str, list[JsonObject]] = state.get("procedures", {})
    versions = [version for each in histories.values() for version in each]
    return [*versions, *state.get("pending", ())]


def _untimed(value: Any) -> Any:
    """A module's state without the times in it: a module may keep what it was told of."""
    if isinstance(value, dict):
        return {name: _untimed(each) for name, each in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [_untimed(each) for each in cast("list[Any]", value)]
    return "(a time)" if isinstance(value, str) and _TIME.fullmatch(value) else value


_TIMELESS: Mapping[str, Callable[[JsonObject], None]] = {
    "outcome": _execution,
    "model_call": _call,
    "receipt": _call,
    "written": _written,
    "note": _note,
    "turn_end": _turn_end,
    "snapshot": _snapshot,
}


# ---- What a divergence likely means ----


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
