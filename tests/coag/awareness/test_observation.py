"""An observation says where it is wrong; a stored state is read, or refused with what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from coag.awareness import (
    AwarenessState,
    GoalSource,
    GoalStatus,
    Observation,
    TransitionType,
    load_state,
)
from coag.awareness.state import STATE_VERSION
from coag.errors import AwarenessError, ObservationError, StateVersionError


def test_words_become_the_types_of_the_schema_and_bad_text_is_repaired() -> None:
    seen = Observation.parse(
        {
            "entities": [{"name": "Python", "type": "concept", "state": {"level": 2}}],
            "goals": [{"description": "Learn", "source": "inferred"}],
            "goal_changes": [{"goal": "Learn", "status": "completed"}],
            "event": {"type": "external_event", "description": "rain"},
            "unknowns": ["why \ud800"],
        }
    )
    assert seen.entities[0].state == {"level": 2}
    assert seen.goals[0].source is GoalSource.INFERRED
    assert seen.goal_changes[0].status is GoalStatus.COMPLETED
    assert seen.event
    assert seen.event.type is TransitionType.EXTERNAL_EVENT
    assert seen.unknowns == ("why ?",)
    assert Observation.parse({}) == Observation()


@pytest.mark.parametrize(
    ("raw", "path", "problem"),
    [
        ({"moods": []}, "moods", "not permitted"),
        ({"entities": [{"name": "a"}]}, "entities[0].type", "required"),
        ({"entities": [{"name": " ", "type": "t"}]}, "entities[0].name", "say something"),
        ({"goals": [{"description": "a", "priority": 2}]}, "goals[0].priority", "given 2"),
        ({"goals": [{"description": "a", "source": "me"}]}, "goals[0].source", "'explicit'"),
        ({"spent": [{"resource": "a", "amount": -1}]}, "spent[0].amount", "given -1"),
        ({"unknowns": "x" * 10_000}, "unknowns", "tuple"),
        (
            {"unknowns": [1], "event": {"type": "x", "description": "y"}, "b": 1},
            "unknowns[0]",
            "Also wrong: event.type, b.",
        ),
    ],
)
def test_a_wrong_observation_is_refused_with_its_path(
    raw: dict[str, Any], path: str, problem: str
) -> None:
    with pytest.raises(ObservationError) as caught:
        Observation.parse(raw)
    assert caught.value.path == path
    assert f"at {path}: " in str(caught.value)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 300


# ---- stored states ----

STATE = AwarenessState(domain="d", at=datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("version", "do"),
    [
        (STATE_VERSION + 1, "Update coag"),
        (0, "Load it with the version of coag that wrote it"),
        (-1, "Load it with"),
        ("1", "Load it with"),
        (None, "Load it with"),
        (True, ""),
    ],
)
def test_another_version_is_refused_with_what_to_do(version: object, do: str) -> None:
    with pytest.raises(StateVersionError, match=rf"{do}.*, or start from a new state") as caught:
        load_state({**STATE.model_dump(), "version": version})
    assert caught.value.version == version


def _from_before(stored: Mapping[str, object]) -> Mapping[str, object]:
    """A layout that never existed: the domain had another name."""
    rest = {name: one for name, one in stored.items() if name != "area"}
    return {**rest, "domain": stored["area"]}


def test_a_state_of_an_older_version_is_migrated_where_steps_lead_from_it() -> None:
    steps = {STATE_VERSION - 1: _from_before}
    old = {"version": STATE_VERSION - 1, "area": "d", "at": "2026-03-01T00:00:00Z"}
    assert load_state(old, migrations=steps) == STATE
    assert load_state(json.dumps(old), migrations=steps) == STATE
    with pytest.raises(AwarenessError, match=r"of version 0, as it says: .* raised KeyError"):
        load_state({"version": STATE_VERSION - 1}, migrations=steps)
    with pytest.raises(StateVersionError, match="Load it with the version of coag that wrote it"):
        load_state({**old, "version": STATE_VERSION - 2}, migrations=steps)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "but no JSON at all"),
        (b"\xff", "but no JSON at all"),
        ("[1]", "JSON of a list"),
        ('{"domain": "d"}', "at at: Field required"),
        ('{"domain": "d", "at": "2026-03-01T00:00:00Z", "step": -1}', r"at step: .*given -1"),
        ('{"domain": "d", "at": "2026-03-01T00:00:00Z", "mood": 1}', "at mood"),
        (None, "but None of the type"),
        (5, "but 5 of the type"),
        (["state"], "but"),
    ],
)
def test_what_is_no_state_is_refused_with_the_place(text: Any, problem: str) -> None:
    with pytest.raises(AwarenessError, match=f"no awareness state.*{problem}"):
        load_state(text)
