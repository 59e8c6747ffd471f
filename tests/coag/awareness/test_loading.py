"""A kept state is read, or refused with what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from coag.awareness import STATE_VERSION, AwarenessState, load_state
from coag.errors import AwarenessError, StateVersionError

STATE = AwarenessState(domain="d", at=datetime(2026, 3, 1, tzinfo=UTC))


def test_text_bytes_and_mapping_give_the_state() -> None:
    text = STATE.model_dump_json()
    assert load_state(text) == STATE
    assert load_state(text.encode()) == STATE
    assert load_state(STATE.model_dump()) == STATE


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


def _from_before(kept: Mapping[str, object]) -> Mapping[str, object]:
    """A layout that never was: the domain had another name."""
    return {**{name: one for name, one in kept.items() if name != "area"}, "domain": kept["area"]}


STEPS = {STATE_VERSION - 1: _from_before}
OLD = {"version": STATE_VERSION - 1, "area": "d", "at": "2026-03-01T00:00:00Z"}


def test_a_state_of_an_older_version_is_brought_up_to_date_where_a_step_leads_from_it() -> None:
    assert load_state(OLD, migrations=STEPS) == STATE
    assert load_state(json.dumps(OLD), migrations=STEPS) == STATE
    assert OLD["version"] == STATE_VERSION - 1


def test_a_damaged_state_of_an_older_version_is_no_state() -> None:
    with pytest.raises(AwarenessError, match=r"of version 0, as it says: .* raised KeyError"):
        load_state({"version": STATE_VERSION - 1}, migrations=STEPS)


def test_an_older_version_from_which_no_step_leads_all_the_way_is_refused() -> None:
    with pytest.raises(StateVersionError, match="Load it with the version of coag that wrote it"):
        load_state({**OLD, "version": STATE_VERSION - 2}, migrations=STEPS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON at all"),
        (b"\xff", "no JSON at all"),
        ("[1]", "JSON of a list"),
        ('{"domain": "d"}', "at at: Field required"),
        ('{"domain": "d", "at": "2026-03-01T00:00:00Z", "step": -1}', r"at step: .*given -1"),
        ('{"domain": "d", "at": "2026-03-01T00:00:00Z", "mood": 1}', "at mood"),
    ],
)
def test_what_is_no_state_is_refused_with_the_place(text: str | bytes, said: str) -> None:
    with pytest.raises(AwarenessError, match=f"no awareness state.*{said}"):
        load_state(text)


@pytest.mark.parametrize("given", [None, 5, ["state"]])
def test_what_is_neither_text_nor_a_mapping_is_refused(given: Any) -> None:
    with pytest.raises(AwarenessError, match="This is no awareness state, but"):
        load_state(given)
