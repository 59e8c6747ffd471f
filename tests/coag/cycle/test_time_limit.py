"""A call that takes longer than it may is stopped, and nothing of that stays."""

from __future__ import annotations

import random
import time

import pytest

from coag.cycle.time_limit import TooSlowError, limited


def test_calls_that_end_just_as_they_are_stopped_leave_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coag.cycle.time_limit._TICK", 0.0005)
    chance = random.Random(1)

    def busy() -> None:
        until = time.monotonic() + chance.uniform(0, 0.004)
        while time.monotonic() < until:
            pass

    late = 0
    for _ in range(300):
        try:
            limited(lambda: limited(busy, 60), 0.002)
        except TooSlowError:
            late += 1
    assert 0 < late < 300
    assert limited(lambda: "sound", 60) == "sound"
