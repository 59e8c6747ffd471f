from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from case_study.measures import belief_error_of, stated_batteries
from coag.schema import ModelCall, OutputMode, Receipt, ReceiptStatus, TokenUsage, TraceRecord
from vacuum_world.world import Spawn, WorldState, join, move, seeded_streams

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("My battery is 35. I move on.", [35]),
        ("Battery: 100, so all is well.", [100]),
        ("battery = 80", [80]),
        ("I have 40% battery left.", [40]),
        ("The battery level is now 15 of 100.", [15]),
        ("After cleaning the battery will be 25.", []),
        ("If I pick it up, battery is 100.", []),
        ("A move costs 5 battery.", []),
        ("It restores the battery to 100.", []),
        ("Nothing about it.", []),
    ],
)
def test_present_charges_are_found_and_predictions_left_out(text: str, stated: list[int]) -> None:
    assert stated_batteries(text) == stated


def test_in_json_only_what_tells_how_things_are_counts() -> None:
    answer = {
        "situation": "My battery is 30.",
        "risks": ["The battery is 30."],
        "expected_effect": "Battery is 100.",
    }
    assert stated_batteries(json.dumps(answer)) == [30, 30]


def _said(text: str) -> ModelCall:
    return ModelCall(
        id="call",
        at=AT,
        model="m",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=(),
        raw=text,
        usage=TokenUsage(),
    )


def test_belief_is_held_against_the_charge_at_that_time() -> None:
    world = WorldState(seed=0, streams=seeded_streams(0), spawn=Spawn(position=(2, 2), battery=50))
    world = move(join(world, "robot").state, "r1", "east", "intent-000001").state
    records: list[TraceRecord] = [
        _said("My battery is 50."),
        Receipt(intent_id="intent-000001", at=AT, cycle=1, status=ReceiptStatus.DONE, content=""),
        _said("My battery is 50."),
        _said("Nothing to say."),
    ]
    assert belief_error_of(records, world, 50) == 5
    assert belief_error_of(records[:1], world, 50) == 0
    assert belief_error_of(records[3:], world, 50) is None
