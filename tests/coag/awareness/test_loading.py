"""A kept state is read, or refused with what to do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from coag.awareness import STATE_VERSION, AwarenessState, load_state
from coag.errors import AwarenessError, StateVersionError

STATE = AwarenessState(domain="d", at=datetime(2026, 3, 1, tzinfo=UTC))


def test_text_bytes_and_mapping_give_the_state() -> None:
    text = STATE.model_dump_json()
    assert load_state(text) == STATE
    assert load_state(text.encode()) == STATE
    assert load_state(STATE.model_dump()) == STATE


@pytest.mark.parametrize("version", [0, STATE_VERSION + 1, "1", None, True])
def test_another_version_is_refused_with_what_to_do(version: object) -> None:
    with pytest.raises(StateVersionError, match=r"version .* start from a new state") as caught:
        load_state({**STATE.model_dump(), "version": version})
    assert caught.value.version == version


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
