"""What a cycle did, so that the same cycle of another run can be compared with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

from coag.schema import (
    Intent,
    ModelCall,
    Percept,
    Phase,
    ProposalOutcome,
    Receipt,
    TokenUsage,
    TraceRecord,
    TurnEnd,
)

PERCEPTS = "percepts"
"""The part of a cycle that tells what had arrived before its first phase."""
PARTS = (PERCEPTS, *(phase.value for phase in Phase))
"""The parts of a cycle, in order."""
PLAIN_PARTS = (PERCEPTS, "answers", "actions", "response")
"""The parts of a plain agent's turn, in order."""

_IGNORED = frozenset(
    {"record", "id", "at", "cycle", "created_at", "usage", "run", "caused_by", "intent_id"}
    | {"supersedes", "superseded_by", "scope", "queued", "phase"}
)
"""What two runs that do the same need not have alike."""
_CUT = 300
_AROUND = 60
_DEEP = 100
_ABSENT = object()


@dataclass(slots=True)
class Deeds:
    """What was done in one cycle, or in one turn of a plain agent."""

    parts: dict[str, Any] = field(default_factory=dict[str, Any])
    """What is compared, as JSON, by part."""
    usage: TokenUsage = field(default_factory=TokenUsage)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two parts differ first."""

    path: str
    """Dotted, with numbers for places in lists."""
    left: str
    """The value there as JSON, cut to what differs; empty for none."""
    right: str


def deeds_of(records: Iterable[TraceRecord], *, plain: bool) -> Deeds:
    """What the records of one cycle tell, or those of one turn of a plain agent."""
    return _of_turn(records) if plain else _of_cycle(records)


def first_difference(left: Any, right: Any, path: str = "") -> Difference | None:
    """The first place at which two JSON values differ, in the order of the left one."""
    if left == right:
        return None
    if path.count(".") < _DEEP:
        if isinstance(left, dict) and isinstance(right, dict):
            return _of_objects(cast("dict[str, Any]", left), cast("dict[str, Any]", right), path)
        if isinstance(left, list) and isinstance(right, list):
            ones, others = cast("list[Any]", left), cast("list[Any]", right)
            pairs = enumerate(zip_longest(ones, others, fillvalue=_ABSENT))
            found = (first_difference(a, b, f"{path}.{number}") for number, (a, b) in pairs)
            return next((each for each in found if each is not None), None)
    if isinstance(left, str) and isinstance(right, str):
        return Difference(path, *_around(left, right))
    return Difference(path, _shown(left), _shown(right))


# ---- what is compared ----


def _of_cycle(records: Iterable[TraceRecord]) -> Deeds:
    """Percepts after the execution are what it brought about, so they are its."""
    deeds = Deeds()
    names: dict[str, str] = {}
    brought: list[Any] = []
    for record in records:
        if isinstance(record, Percept):
            before = brought if names or Phase.RETRIEVAL in deeds.parts else None
            arrived = deeds.parts.setdefault(PERCEPTS, []) if before is None else before
            arrived.append(_perceived(record))
        elif record.record == "outcome":
            deeds.usage += record.usage
            if isinstance(record, ProposalOutcome):
                places = enumerate(record.candidates, 1)
                names |= {one.id: f"candidate {place}" for place, one in places}
            deeds.parts[record.phase.value] = _essence(record.model_dump(mode="json"), names)
    if Phase.EXECUTION in deeds.parts:
        deeds.parts[Phase.EXECUTION] |= {"brought": brought}
    return deeds


def _of_turn(records: Iterable[TraceRecord]) -> Deeds:
    deeds = Deeds()
    for record in records:
        match record:
            case Percept():
                told = (PERCEPTS, _perceived(record))
            case ModelCall():
                deeds.usage += record.usage
                calls = [_essence(call, {}) for call in record.tool_calls]
                told = ("answers", {"raw": record.raw, "calls": calls, "error": record.error})
            case Intent():
                told = ("actions", {"action": record.action, "arguments": record.arguments})
            case Receipt():
                told = ("actions", {"status": record.status.value, "content": record.content})
            case TurnEnd():
                told = ("response", {"reason": record.reason, "response": record.response})
            case _:
                continue
        deeds.parts.setdefault(told[0], []).append(told[1])
    return deeds


def _perceived(percept: Percept) -> dict[str, Any]:
    kind, source = percept.kind.value, percept.source
    return {"kind": kind, "source": source, "content": percept.content, "data": percept.data}


def _essence(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value without what need not be alike, its candidates named by their places."""
    if isinstance(value, dict):
        told = cast("dict[str, Any]", value).items()
        return {name: _essence(each, names) for name, each in told if name not in _IGNORED}
    if isinstance(value, list):
        return [_essence(each, names) for each in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


# ---- where it differs ----


def _of_objects(left: dict[str, Any], right: dict[str, Any], path: str) -> Difference | None:
    for name in (*left, *(name for name in right if name not in left)):
        one, other = left.get(name, _ABSENT), right.get(name, _ABSENT)
        found = first_difference(one, other, f"{path}.{name}" if path else name)
        if found is not None:
            return found
    return None


def _around(left: str, right: str) -> tuple[str, str]:
    """Two texts; long ones from a little before the character that differs."""
    if max(len(left), len(right)) <= _CUT:
        return left, right
    pairs = zip_longest(left, right)
    place = next(number for number, (one, other) in enumerate(pairs) if one != other)
    start = max(0, place - _AROUND)
    parts = [text[start : start + _CUT] for text in (left, right)]
    return _marked(parts[0], left, start), _marked(parts[1], right, start)


def _marked(part: str, text: str, start: int) -> str:
    end = "…" if start + len(part) < len(text) else ""
    return f"{'…' if start else ''}{part}{end}"


def _shown(value: Any) -> str:
    if value is _ABSENT or value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _CUT else text[: _CUT - 1] + "…"
