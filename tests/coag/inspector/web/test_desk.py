"""What is read ahead behind the pages."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kits.hostile import hostile_run

from coag.inspector.reading import OpenRun
from coag.inspector.web import Desk

pytestmark = pytest.mark.broken_trace("its records are made up")


async def _until(met: Callable[[], bool]) -> None:
    """Lets the loop turn until something is so."""
    async with asyncio.timeout(20):
        for _ in iter(met, True):
            await asyncio.sleep(0)


async def test_a_run_that_fails_is_left_out_of_what_is_read_ahead_and_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hostile_run(tmp_path, name="odd", ended=False)
    hostile_run(tmp_path, name="good", ended=False)

    def fails(run: OpenRun, budget_seconds: float) -> bool:
        raise RecursionError("too deep")

    monkeypatch.setattr(OpenRun, "advance", fails)
    desk = Desk(tmp_path)
    async with desk.at_work():
        for key in ("odd", "good"):
            desk.open("odd")
            await _until(lambda key=key: desk.card(key).cycles is not None)

    assert len([each for each in caplog.records if "'odd'" in each.getMessage()]) == 1


async def test_a_folder_of_logs_that_is_gone_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs = tmp_path / "logs"
    hostile_run(logs, name="first", ended=False)
    desk = Desk(logs)
    shutil.rmtree(logs)
    async with desk.at_work():
        await _until(lambda: "Nothing can be read ahead" in caplog.text)
        hostile_run(logs, name="second", ended=False)
        await _until(lambda: any(card.cycles for card in desk.listing({}, 1).cards))
    assert desk.card("second").cycles
