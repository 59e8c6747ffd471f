"""Broken JSON is repaired, or given up within a bound of time."""

from __future__ import annotations

import threading
import time

import pytest

from coag.models import repaired_object


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{x: 1, y: [1, 2}", {"x": 1, "y": [1, 2]}),
        ("{'x': 'y',}", {"x": "y"}),
        ("no object", None),
        ("[1, 2", None),
        ("{" * 200, None),
        ('{"x": "' + "y" * 60_000, None),
    ],
)
def test_an_object_is_repaired_and_nothing_else(text: str, value: object) -> None:
    assert repaired_object(text) == value


@pytest.mark.parametrize("piece", [']{1"', ']{1","', ']{1"{"', '“]{1"'])
def test_a_text_that_would_take_minutes_is_given_up_and_its_thread_ends(piece: str) -> None:
    before = set(threading.enumerate())
    begun = time.monotonic()
    assert not repaired_object("{" + piece * 2_500)
    assert time.monotonic() - begun < 20  # most of json-repair's versions take half a minute
    assert set(threading.enumerate()) <= before
