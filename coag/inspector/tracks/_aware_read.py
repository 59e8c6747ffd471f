"""The states of awareness modules as snapshots hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from coag.awareness import AwarenessState, load_state
from coag.errors import AwarenessError
from coag.inspector.reading import in_a_line
from coag.schema import Snapshot
from coag.tracing import TraceIndex

LONGEST = 1 << 24
"""Bytes of a snapshot's line above which it is passed over."""
_PARTS = ("goals", "trajectory", "attention", "domain")
"""What no state of another module has all of."""
_WHY = 300


@dataclass(frozen=True, slots=True)
class Kept:
    """What a snapshot holds of one awareness module."""

    state: AwarenessState | None
    """None where it cannot be read."""
    pursued: str = ""
    """Id of the goal that the activity serves; empty for none."""
    trouble: str = ""
    """Why it cannot be read."""


KeptByName = Mapping[str, Kept]


def snapshot_at(index: TraceIndex, position: int) -> Snapshot | None:
    """The snapshot at a position; None for what is none, or is too long.

    Raises:
        TraceError: The trace cannot be read.
    """
    if index.length(position) > LONGEST:
        return None
    (line,) = index.read([position])
    body = line.entry.body if line.entry else None
    return body if isinstance(body, Snapshot) else None


def kept_at(index: TraceIndex, position: int) -> KeptByName:
    """What the snapshot at a position holds of awareness modules, by their names.

    Raises:
        TraceError: The trace cannot be read.
    """
    found = snapshot_at(index, position)
    return kept_in(found) if found is not None else {}


def kept_in(snapshot: Snapshot) -> KeptByName:
    """What a snapshot holds of awareness modules, by their names."""
    modules = snapshot.modules.items()
    return {name: _kept(value) for name, value in modules if is_awareness(value)}


def is_awareness(value: object) -> bool:
    """Whether a module's saved state is that of an awareness module, readable or not."""
    state = _mapping(_mapping(value).get("state"))
    return all(part in state for part in _PARTS)


def _kept(value: object) -> Kept:
    saved = _mapping(value)
    pursued = _mapping(saved.get("standing")).get("goal")
    try:
        state = load_state(_mapping(saved.get("state")))
    except (AwarenessError, RecursionError) as error:
        return Kept(None, trouble=in_a_line(str(error), _WHY))
    return Kept(state, pursued if isinstance(pursued, str) else "")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
