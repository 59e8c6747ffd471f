"""What was so when a cycle began, from the snapshots around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from coag.schema import Outcome, Percept, Snapshot, SnapshotReason, merge_patch
from coag.tracing import RecordKind, TraceIndex

from ._timeline import Span

_HeldT = TypeVar("_HeldT")
_OUTCOME: TypeAdapter[Outcome] = TypeAdapter(Outcome)
_PERCEPT = TypeAdapter(Percept)
_BACK = 2_000
"""Lines before a cycle in which its snapshot is looked for."""
_LOOKS = 32
"""Snapshots in which the state of the environment is looked for."""
_BEGINS = frozenset({RecordKind.OUTCOME, RecordKind.MODEL_CALL, RecordKind.INTENT})
"""Kinds of which the first one comes after the cycle's beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What was so when a cycle began."""

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The perceptual state."""
    goal: str = ""
    percepts: tuple[Percept, ...] = ()
    """What had arrived since the last action, where a snapshot of this cycle tells."""
    environment: Any = None
    """What the environment was in truth, where it tells."""
    inherited: tuple[Outcome, ...] = ()
    """Of the cycle that a fork begins in: what its parent had committed in it."""


def situation_at(index: TraceIndex, span: Span) -> Situation:
    """What was so when a cycle began: its snapshot, or the one before and what came since.

    Raises:
        TraceError: The trace cannot be read.
    """
    begun = _begun(index, span)
    found = _snapshot_before(index, begun)
    if found is None:
        return Situation(state=_patched({}, index, range(max(begun - _BACK, 0), begun)))
    position, snapshot = found
    memory = snapshot.working_memory
    own = position >= span.first
    return Situation(
        state=_patched(_mapping(memory.get("perceptual_state")), index, range(position, begun)),
        goal=_text(memory.get("goal")),
        percepts=_percepts(memory.get("percepts")) if own else (),
        inherited=_inherited(snapshot, span.cycle) if own else (),
        environment=_environment(index, begun),
    )


def _begun(index: TraceIndex, span: Span) -> int:
    """Position of the first line that shows the cycle at work."""
    positions = range(span.first, span.end)
    return next((at for at in positions if index.kind(at) in _BEGINS), span.end)


def _snapshot_before(index: TraceIndex, position: int) -> tuple[int, Snapshot] | None:
    for at in range(position - 1, max(position - _BACK, 0) - 1, -1):
        if index.kind(at) is RecordKind.SNAPSHOT:
            snapshot = _snapshot(index, at)
            if snapshot is not None:
                return at, snapshot
    return None


def _snapshot(index: TraceIndex, position: int) -> Snapshot | None:
    entry = index.read([position])[0].entry
    return entry.body if entry is not None and isinstance(entry.body, Snapshot) else None


def _patched(
    state: Mapping[str, Any], index: TraceIndex, positions: Sequence[int]
) -> dict[str, Any]:
    """The state after the percepts among some lines."""
    percepts = [at for at in positions if index.kind(at) is RecordKind.PERCEPT]
    changed = dict(state)
    for line in index.read(percepts):
        body = line.entry.body if line.entry else None
        if isinstance(body, Percept) and body.state_patch:
            changed = merge_patch(changed, body.state_patch)
    return changed


def _environment(index: TraceIndex, before: int) -> Any:
    for position in islice(index.environments(before), _LOOKS):
        snapshot = _snapshot(index, position)
        if snapshot is not None and snapshot.environment is not None:
            return snapshot.environment
    return None


def _inherited(snapshot: Snapshot, cycle: int) -> tuple[Outcome, ...]:
    if snapshot.reason is not SnapshotReason.FORKED:
        return ()
    held = _mapping(snapshot.working_memory.get("cognitive_state")).values()
    found = [_valid(_OUTCOME, item) for item in held if item is not None]
    return tuple(outcome for outcome in found if outcome is not None and outcome.cycle == cycle)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _percepts(value: Any) -> tuple[Percept, ...]:
    """What working memory held as just perceived; what is no percept is passed over."""
    held = cast("list[Any]", value) if isinstance(value, list) else []
    found = [_valid(_PERCEPT, item) for item in held]
    return tuple(percept for percept in found if percept is not None)


def _valid(kind: TypeAdapter[_HeldT], value: Any) -> _HeldT | None:
    """What working memory held, as a snapshot has it; None for what is none."""
    try:
        return kind.validate_json(to_json(value))
    except ValidationError:
        return None
