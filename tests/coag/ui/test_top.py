"""The live view, with textual's own pilot."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from kits.hostile import FORBIDDEN, HARM, hostile_cycle, hostile_run
from rich.console import Console
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from coag.errors import ConfigurationError
from coag.schema import Redactor, SystemClock, TurnStart
from coag.tracing import RunFolder, RunInfo, list_runs, open_trace
from coag.ui import Board
from coag.ui.top import TopApp

pytestmark = pytest.mark.broken_trace("their records are made up")
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
When = Callable[[], bool]


def runs_in(logs: Path) -> Sequence[RunFolder]:
    return list(list_runs(logs)) if logs.is_dir() else []


class Hasty(SystemClock):
    """Tells the time, and that a second has passed at each look: new runs are seen at once."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def monotonic(self) -> float:
        self._seconds += 1.0
        return self._seconds


def view_of(logs: Path) -> TopApp:
    board = Board(lambda: runs_in(logs), clock=Hasty())
    return TopApp(board, logs, interval=0.1)


async def until(pilot: Pilot[None], holds: When) -> None:
    """Lets the view go on until something holds; the test's own time limit ends it otherwise."""
    while not holds():
        await pilot.pause()


def table_of(app: TopApp) -> DataTable[Any]:
    return cast("DataTable[Any]", app.query_one("#runs", DataTable))


def rows(app: TopApp) -> list[str]:
    table = table_of(app)
    return ["".join(str(cell) for cell in table.get_row_at(n)) for n in range(table.row_count)]


def below(app: TopApp) -> str:
    pane: Any = app.query_one("#text", Static)
    shown = getattr(pane, "content", None) or pane.renderable  # so it was called by textual 1
    console = Console(width=400, color_system=None, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(shown)
    return captured.get()


def start_run(logs: Path, name: str) -> RunFolder:
    info = RunInfo(id=name, kind="coag", agent=name, model="scripted:sound", started_at=AT)
    return RunFolder.create(logs, info, redactor=Redactor())


@pytest.mark.parametrize("size", [(80, 24), (140, 40), (200, 50), (40, 10)])
async def test_a_hostile_run_is_shown_harmlessly(tmp_path: Path, size: tuple[int, int]) -> None:
    hostile_run(tmp_path, size=100_000)
    app = view_of(tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: bool(rows(app)) and "vetoes" in below(app))
        shown = "\n".join((*rows(app), below(app)))
        assert not FORBIDDEN & set(shown)
        assert "ended" in rows(app)[0]
        assert "[/done] [bold]bold[/bold] [link=x]l[/link]" in shown
        picture = app.export_screenshot()
    assert "<script>" not in picture
    assert 'href="https://example.org/harm"' not in picture


async def test_a_folder_without_runs_says_how_one_is_made_and_shows_it_when_it_comes(
    tmp_path: Path,
) -> None:
    logs = tmp_path / "logs"
    app = view_of(logs)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "There are no runs" in below(app))
        assert "coag chat --model SPEC" in below(app)
        start_run(logs, "first")
        await until(pilot, lambda: len(rows(app)) == 1)
        await until(pilot, lambda: "There are no runs" not in below(app))


async def test_a_run_is_followed_while_it_is_written(tmp_path: Path) -> None:
    folder = start_run(tmp_path, "live")
    app = view_of(tmp_path)
    with open_trace(folder, redactor=Redactor()) as trace:
        trace.write(TurnStart(at=datetime.now(UTC), turn=1, cycle=0))
        trace.flush()
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: "retrieval" in "".join(rows(app)))
            for record in hostile_cycle(1):
                trace.write(record)
                trace.flush()
            await until(pilot, lambda: " by rank" in below(app) or ", by rank" in below(app))
            assert "chosen 0.90" in below(app)
            assert "rejected by [/x]" in below(app)


async def test_keys_choose_hide_explain_and_quit(tmp_path: Path) -> None:
    for name in ("one", "two"):
        hostile_run(tmp_path, name=name)
    going_on = start_run(tmp_path, "three")
    app = view_of(tmp_path)
    with open_trace(going_on, redactor=Redactor()) as trace:
        trace.write(TurnStart(at=datetime.now(UTC), turn=1, cycle=0))
        trace.flush()
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: sum("ended" in row for row in rows(app)) == 2)
            first = below(app)
            await pilot.press("down")
            await until(pilot, lambda: below(app) != first)
            await pilot.press("a")
            await until(pilot, lambda: len(rows(app)) == 1)
            await pilot.press("h")
            assert "choose the run that is shown below" in below(app)
            await pilot.press("h", "d")
            assert app.screen.has_class("whole")
            await pilot.press("d")
            assert not app.screen.has_class("whole")
            await pilot.press("q")
    assert app.return_code == 0


async def test_the_chosen_run_stays_chosen_when_others_come(tmp_path: Path) -> None:
    start_run(tmp_path, "b")
    app = view_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "b" in below(app).split())
        start_run(tmp_path, "c")
        await until(pilot, lambda: len(rows(app)) == 2)
        assert below(app).split()[0] == "b"


async def test_a_terminal_that_is_resized_gets_the_table_that_fits(tmp_path: Path) -> None:
    hostile_run(tmp_path)
    app = view_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(rows(app)) == 1)
        table = table_of(app)
        narrow = len(table.columns)
        await pilot.resize_terminal(180, 40)
        await until(pilot, lambda: len(table.columns) > narrow and len(rows(app)) == 1)
        assert len(rows(app)[0]) <= 180


async def test_a_log_that_cannot_be_read_is_reported_in_place(tmp_path: Path) -> None:
    folder = start_run(tmp_path, "newer")
    folder.trace_path.write_bytes(b'{"v":3,"seq":0,"body":{}}\n')
    app = view_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "version 3 of the format" in below(app))
        assert rows(app)[0].startswith("unreadable")
        assert HARM not in below(app)


def test_without_textual_the_live_view_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.delitem(sys.modules, "coag.ui.top", raising=False)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[ui\]'"):
        importlib.import_module("coag.ui.top")
