"""Observe, update, inject; an error leaves the state as it was."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    CollaborationMode,
    EngineSettings,
    InteractionProtocol,
    Observation,
    ScanPattern,
    TransitionType,
    load_state,
)
from coag.errors import AwarenessError, GoalError, ObservationError
from coag.schema import SteppingClock

PATTERN = ScanPattern(name="smoke", description="Smoke somewhere")


class PlainAdapter:
    """Takes an observation as it is, and tells of the state what was done with it."""

    domain_name = "plain"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def define_entity_types(self) -> tuple[str, ...]:
        return ("topic", "concept")

    def define_relationship_types(self) -> tuple[str, ...]:
        return ("likes",)

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        return (PATTERN,)

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        self.seen.append(f"observed at {state.step}")
        return Observation.parse(raw)

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        self.seen.append(f"rendered at {state.step} in {budget}")
        return f"{state.step}: {', '.join(one.name for one in state.world.entities)}"[: budget * 4]

    def define_protocol_defaults(self) -> InteractionProtocol:
        return InteractionProtocol(mode=CollaborationMode.ADVISORY)


def engine_of(state: AwarenessState | None = None) -> AwarenessEngine:
    return AwarenessEngine(PlainAdapter(), clock=SteppingClock(), state=state)


PYTHON = {"entities": [{"name": "Python", "type": "topic"}]}


def test_a_new_state_is_what_the_domain_starts_with() -> None:
    settings = EngineSettings(trajectory_window=2, sticky=(TransitionType.PIVOT,))
    state = AwarenessEngine(PlainAdapter(), clock=SteppingClock(), settings=settings).state
    assert state.domain == "plain"
    assert state.step == 0
    assert state.at == datetime(2026, 1, 1, tzinfo=UTC)
    assert state.attention.scan_patterns == (PATTERN,)
    assert state.protocol.mode is CollaborationMode.ADVISORY
    assert state.trajectory.window == 2
    assert state.trajectory.sticky == (TransitionType.PIVOT,)


def test_a_step_observes_where_things_stood_and_renders_where_they_stand() -> None:
    adapter = PlainAdapter()
    engine = AwarenessEngine(adapter)
    assert engine.step(PYTHON, 100) == "1: Python"
    assert adapter.seen == ["observed at 0", "rendered at 1 in 100"]
    assert engine.adapter is adapter


def test_the_three_phases_can_be_taken_one_by_one() -> None:
    engine = engine_of()
    observation = engine.observe(PYTHON)
    assert engine.state.step == 0
    assert engine.update(observation) is engine.state
    assert engine.inject() == "1: Python"
    assert engine.inject(0) == ""


def test_an_engine_goes_on_from_a_kept_state() -> None:
    engine = engine_of()
    engine.step(PYTHON)
    again = engine_of(load_state(engine.state.model_dump_json()))
    more = {"entities": [{"name": "Python programming", "type": "concept"}]}
    assert again.step(more) == engine.step(more) == "2: Python"
    assert again.state.world == engine.state.world


def test_a_state_of_another_domain_is_refused() -> None:
    state = engine_of().state.model_copy(update={"domain": "other"})
    with pytest.raises(AwarenessError, match=r"'other'.*'plain'"):
        engine_of(state)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"entities": [{"name": "a", "type": "file"}]}, "entities[0].type"),
        (
            {"relationships": [{"source": "a", "type": "eats", "target": "b"}]},
            "relationships[0].type",
        ),
        ({"entities": 4}, "entities"),
    ],
)
def test_what_breaks_the_schema_leaves_the_state_as_it_was(
    raw: dict[str, object], path: str
) -> None:
    engine = engine_of()
    engine.step(PYTHON)
    before = engine.state
    with pytest.raises(ObservationError) as caught:
        engine.step(raw)
    assert caught.value.path == path
    assert engine.state is before


def test_an_update_that_fails_half_way_leaves_nothing_behind() -> None:
    engine = engine_of()
    engine.step(PYTHON)
    before = engine.state
    half = {
        "entities": [{"name": "pasta", "type": "topic"}, {"name": "PYTHON", "type": "topic"}],
        "goals": [{"description": "a", "parent": "nobody"}],
    }
    with pytest.raises(GoalError, match="nobody"):
        engine.step(half)
    assert engine.state is before
    assert engine.step({"entities": [{"name": "pasta", "type": "topic"}]}) == "2: Python, pasta"


def test_a_negative_budget_is_refused_before_anything_changes() -> None:
    engine = engine_of()
    with pytest.raises(ValueError, match="not -1"):
        engine.step(PYTHON, -1)
    with pytest.raises(ValueError, match="not -1"):
        engine.inject(-1)
    assert engine.state.step == 0
