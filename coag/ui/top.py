"""`coag top`: a live view of runs in the terminal. The one module that knows textual.

It follows the traces of a folder of logs: one row a run, and below it the selected run's latest
situation, candidates and result. It only reads logs: any run of any process of this machine can be
watched without disturbing it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar, cast

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coag.errors import ConfigurationError

try:
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.containers import VerticalScroll
    from textual.events import Resize
    from textual.widgets import DataTable, Footer, Static
except ImportError as error:
    raise ConfigurationError(
        "`coag top` needs textual, which is not installed. Install it with: "
        "pip install 'coag[ui]'. Without it: coag top --once"
    ) from error

from .board import LABEL, Board, columns, detail, head, nothing_yet, place_of, summary
from .watch import RunView

__all__ = ["TopApp"]

_SLICE = 0.1
"""Seconds of reading between two looks at the screen."""
_FRAME = 3
"""Columns beside the table: its margins and the bar that shows where in it one is."""
_KEYS = """\
Each row is a run: an agent, or one agent of a team. It is read from the run's log.

  up, down      choose the run that is shown below
  tab           go to the lower pane; up, down, page keys move in it
  a             show all runs, or only the open ones
  d             give the lower pane the whole screen, and back
  h             show this help, and go back
  q             quit

state       what the run is doing: running; waiting (for the model); acting (an action
            has begun); idle (between turns); ended; broke off (its process is gone)
phase, for  the current phase, and for how long; of an ended run, why it ended
cyc         cycles
vet, imp    candidates that a constraint or a check rejected; cycles in which none survived"""


class TopApp(App[None]):
    """The live view."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: $background; }
    #place { height: 1; padding: 0 1; background: $primary 30%; }
    #runs { height: auto; max-height: 50%; padding: 0 1; background: $background;
            overflow-x: hidden; scrollbar-size-vertical: 1; background-tint: $background 0%; }
    #runs > .datatable--header { background: $background; color: $text-muted; }
    #runs > .datatable--cursor { background: $primary 45%; color: $text; }
    #detail { height: 1fr; padding: 0 1; border-top: solid $primary 60%;
              scrollbar-size-vertical: 1; }
    #detail:focus { border-top: heavy $accent; }
    .whole #runs, .nothing #runs { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("a", "only_open", "All or only open runs"),
        Binding("d", "whole_detail", "Details"),
        Binding("h,question_mark", "explain", "Help"),
    ]

    def __init__(self, board: Board, place: Path, *, interval: float = 0.5) -> None:
        super().__init__()
        self._board = board
        self._place = place
        self._interval = interval
        self._views: list[RunView] = []
        self._row_keys: list[str] = []
        self._only_open = False
        self._explains = False

    def compose(self) -> ComposeResult:
        """Place, table, details, keys."""
        yield Static(Text("coag top"), id="place")
        yield DataTable[Text](
            id="runs", cursor_type="row", cell_padding=0, cursor_foreground_priority="css"
        )
        with VerticalScroll(id="detail", can_focus=True):
            yield Static(Text("Reading …", style="dim"), id="text")
        yield Footer()

    def on_mount(self) -> None:
        """Begins to follow the runs."""
        self._make_columns()
        self._table.focus()
        self.run_worker(self._follow(), exclusive=True)

    def on_resize(self, event: Resize) -> None:
        """Makes the table fit."""
        if self._row_keys or self._table.columns:
            self._make_columns(event.size.width)
            self._show()

    def on_data_table_row_highlighted(self) -> None:
        """Shows the run that the cursor is at."""
        self._show_detail()

    def action_only_open(self) -> None:
        """Leaves out the runs that are over, or shows them again."""
        self._only_open = not self._only_open
        self._show()

    def action_whole_detail(self) -> None:
        """Gives the lower pane the whole screen, or takes it back."""
        self._make_whole(not self.screen.has_class("whole"))

    def action_explain(self) -> None:
        """Shows what the keys and columns mean, or goes back."""
        self._explains = not self._explains
        self._make_whole(self._explains)
        self._show_detail()

    def _make_whole(self, whole: bool) -> None:
        self.screen.set_class(whole, "whole")
        (self.query_one("#detail") if whole else self._table).focus()

    async def _follow(self) -> None:
        """Reads in a thread and shows in between, so that a long trace freezes nothing."""
        while True:
            more = await asyncio.to_thread(self._board.advance, _SLICE)
            self._views = await asyncio.to_thread(self._board.views)
            if not self.query("#place"):  # the user has quit meanwhile
                return
            self._show()
            await asyncio.sleep(0 if more else self._interval)

    @property
    def _table(self) -> DataTable[Text]:
        return cast("DataTable[Text]", self.query_one("#runs", DataTable))

    def _make_columns(self, width: int | None = None) -> None:
        self._table.clear(columns=True)
        self._row_keys = []
        self._columns = columns((width or self.size.width) - _FRAME)
        for column in self._columns:
            self._table.add_column(column.text(None), width=column.width + 1, key=column.title)

    def _show(self) -> None:
        views = [view for view in self._views if not (self._only_open and view.over)]
        line = Text("coag top  ", style="bold")
        line.append(place_of(self._place), style="not bold")
        line.append(f"  {summary(self._views, self._board.older)}", style="not bold dim")
        if self._only_open:
            line.append("  (only open ones)", style="not bold dim")
        self.query_one("#place", Static).update(line)
        self.screen.set_class(not self._views, "nothing")
        self._fill(views)
        self._show_detail()

    def _fill(self, views: list[RunView]) -> None:
        """Puts the runs into the table; the cursor stays at its run."""
        table = self._table
        keys = [str(view.folder.path) for view in views]
        if keys != self._row_keys:
            chosen = self._chosen()
            table.clear()
            for key, view in zip(keys, views, strict=True):
                table.add_row(*(column.text(view) for column in self._columns), key=key)
            self._row_keys = keys
            if chosen is not None and str(chosen.folder.path) in keys:
                table.move_cursor(row=keys.index(str(chosen.folder.path)))
            return
        for key, view in zip(keys, views, strict=True):
            for column in self._columns:
                text = column.text(view)
                if table.get_cell(key, column.title) != text:
                    table.update_cell(key, column.title, text)

    def _chosen(self) -> RunView | None:
        """The run that the cursor is at."""
        at = self._row_keys[max(self._table.cursor_row, 0) :][:1]
        return next((view for view in self._views if str(view.folder.path) in at), None)

    def _show_detail(self) -> None:
        chosen = self._chosen()
        content: RenderableType = Text(_KEYS)
        if chosen is not None and not self._explains:
            grid = Table.grid(padding=0)
            grid.add_column(width=LABEL, style="dim")
            grid.add_column(overflow="fold")
            for label, text in detail(chosen):
                grid.add_row(Text(label), text)
            content = Group(head(chosen), grid)
        elif not self._explains:
            none = ["No run is open. Press a to see all runs."]
            content = Text("\n".join(none if self._views else nothing_yet(self._place)))
        self.query_one("#text", Static).update(content)
