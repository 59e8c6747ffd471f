"""Running a scenario through an engine, at one go or with a checkpoint in between."""

from __future__ import annotations

from collections.abc import Sequence

from coag.awareness.adapters import Analysis, DomainAdapter
from coag.awareness.engine import AwarenessEngine
from coag.awareness.state import AwarenessState
from coag.schema import SteppingClock


def states_of(adapter: DomainAdapter, turns: Sequence[Analysis]) -> tuple[AwarenessState, ...]:
    """The state after each turn."""
    engine = AwarenessEngine(adapter, clock=SteppingClock())
    return tuple(engine.update(engine.observe(turn.model_dump())) for turn in turns)


def checkpointed(
    adapter: DomainAdapter, turns: Sequence[Analysis], *, after: int
) -> tuple[str, AwarenessState]:
    """The JSON of the state after so many turns, and the last state of a new engine from there."""
    clock = SteppingClock()
    first = AwarenessEngine(adapter, clock=clock)
    for turn in turns[:after]:
        first.update(first.observe(turn.model_dump()))
    checkpoint = first.state.model_dump_json()
    restored = AwarenessState.model_validate_json(checkpoint)
    second = AwarenessEngine(adapter, clock=clock, state=restored)
    for turn in turns[after:]:
        second.update(second.observe(turn.model_dump()))
    return checkpoint, second.state
