"""A run's trace as tables, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import cast

from coag._util.html_cards import HtmlTable, html_card
from coag._util.text import clip
from coag.errors import TraceError, UnknownNameError
from coag.schema import Entry, TraceRecord, one_line

from .folder import RunFolder, read_run
from .hash_chain import TraceProblem
from .reader import read_trace
from .run import RunInfo, run_facts
from .tables import COLUMNS, Column, Row, TableName, rows_of
from .writer import MemoryTrace

_GLANCED_BYTES = 8_000_000
"""A file up to this size is read to be shown; of a larger one only its size is shown."""
_GLANCED_RECORDS = 20_000
_SHOWN_CYCLES = 10
_PROBLEMS = 20
"""Problems of a file that are remembered."""
_SHOWN_COLUMNS = ("cycle", "action", "arguments", "decided_by", "rejected", "status", "seconds")


class Trace:
    """The records of one run, to be read as tables; nothing of a file is kept in RAM.

    A trace is an iterable of its entries, and may be read as often as one likes: each time a file
    is read from the start, record by record, as far as it got.

    Args:
        run: A run's folder, the path of one or of its `trace.jsonl`, or records in RAM
            (`agent.trace`, a `MemoryTrace`, entries).

    Raises:
        TraceError: There is no trace at that path, or `run.json` is damaged.
    """

    def __init__(
        self,
        run: RunFolder | Path | str | MemoryTrace | Iterable[Entry] | Iterable[TraceRecord],
    ) -> None:
        self._folder: RunFolder | None = None
        self._records: Sequence[Entry | TraceRecord] = ()
        self._info: RunInfo | None = None
        self._problems: dict[str, None] = {}
        if isinstance(run, RunFolder | Path | str):
            self._folder = _folder_of(run)
            self._info = read_run(self._folder.path) if self._folder.exists else None
        elif isinstance(run, MemoryTrace):
            self._records = run.entries
        else:
            self._records = tuple(cast("Iterable[Entry | TraceRecord]", run))

    @property
    def folder(self) -> RunFolder | None:
        """The run's folder; None for records in RAM."""
        return self._folder

    @property
    def info(self) -> RunInfo | None:
        """What `run.json` held when this was made; None where there is none."""
        return self._info

    @property
    def problems(self) -> tuple[str, ...]:
        """What was wrong with the file when it was last read, as sentences; the first of many."""
        return tuple(self._problems)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables there are."""
        return tuple(name.value for name in TableName)

    @staticmethod
    def columns(name: TableName | str) -> tuple[Column, ...]:
        """The columns of a table, with their types, units and meanings.

        Raises:
            UnknownNameError: There is no such table.
        """
        return COLUMNS[_named(name)]

    @staticmethod
    def types(name: TableName | str) -> dict[str, type[str | int | float | bool | datetime]]:
        """The type of each column, as polars takes them for a schema.

        Raises:
            UnknownNameError: There is no such table.
        """
        return {column.name: column.type for column in COLUMNS[_named(name)]}

    def rows(self, name: TableName | str) -> Iterator[Row]:
        """The rows of a table one by one, with whole texts, in memory that does not grow.

        Raises:
            UnknownNameError: There is no such table.
            TraceError: The file cannot be read, or a line in it is no record.
        """
        return rows_of(_named(name), self)

    def table(self, name: TableName | str, *, text: int | None = 2_000) -> list[Row]:
        """A table as plain records: `pandas.DataFrame(trace.table("candidates"))`.

        Every record has the same keys in the same order; a column holds one type, or None where
        `columns` says that it may.

        Args:
            name: One of `tables`.
            text: Characters that are kept of a text; None for all of them.

        Raises:
            UnknownNameError: There is no such table.
            TraceError: The file cannot be read, or a line in it is no record.
        """
        if text is not None and text < 1:
            raise ValueError(f"text must be at least 1 or None, not {text!r}")
        return [row if text is None else _cut(row, text) for row in self.rows(name)]

    def __iter__(self) -> Iterator[Entry]:
        if self._folder is not None:
            self._problems = {}
            yield from read_trace(self._folder.trace_path, self._note)
            return
        for seq, one in enumerate(self._records):
            yield one if isinstance(one, Entry) else Entry(seq=seq, body=one)

    def _note(self, problem: TraceProblem) -> None:
        if len(self._problems) < _PROBLEMS:
            self._problems[problem.text] = None

    def __repr__(self) -> str:
        if self._folder is not None:
            return f"Trace({one_line(str(self._folder.path), 100)!r})"
        return f"Trace({len(self._records):,} records in RAM)"

    def _repr_html_(self) -> str:
        """A small box of HTML; a large file is not read for it."""
        title = "Records in RAM" if self._folder is None else f"Run {self._folder.path.name}"
        facts = [] if self._info is None else run_facts(self._info)
        tables = f"Tables: {', '.join(self.tables)}."
        size = 0
        if self._folder is not None and self._folder.trace_path.is_file():
            size = self._folder.trace_path.stat().st_size
        if size > _GLANCED_BYTES:
            facts.append(("trace", f"{size / 1_000_000:,.0f} MB, read when a table is asked for"))
            return html_card(title, facts=facts, lines=[tables])
        try:
            rows = list(rows_of(TableName.CYCLES, islice(self, _GLANCED_RECORDS)))
        except TraceError as error:
            return html_card(title, facts=facts, lines=[str(error), tables])
        lines = [*self.problems, tables]
        if len(rows) > _SHOWN_CYCLES:
            lines.append(f"The last {_SHOWN_CYCLES} of {len(rows):,} cycles:")
        cells = [[row[name] for name in _SHOWN_COLUMNS] for row in rows[-_SHOWN_CYCLES:]]
        last = HtmlTable(columns=_SHOWN_COLUMNS, rows=cells)
        return html_card(title, facts=[*facts, *_totals(rows)], lines=lines, table=last)


def _named(name: TableName | str) -> TableName:
    if name not in tuple(TableName):
        raise UnknownNameError("table", name, list(TableName))
    return TableName(name)


def _folder_of(run: RunFolder | Path | str) -> RunFolder:
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    if folder.path.is_file():
        folder = RunFolder(folder.path.parent)
        if folder.trace_path.name != Path(str(run)).name:
            raise TraceError(Path(str(run)), "is no trace: give a run's folder or its trace.jsonl")
    if not folder.exists and not folder.trace_path.is_file():
        raise TraceError(folder.path, "is no run's folder: it holds no trace")
    return folder


def _cut(row: Row, limit: int) -> Row:
    return {n: clip(value, limit) if isinstance(value, str) else value for n, value in row.items()}


def _totals(rows: Sequence[Row]) -> list[tuple[str, object]]:
    def total(name: str) -> str:
        return f"{sum(cast('int', row[name]) for row in rows):,}"

    return [
        ("cycles", f"{len(rows):,}"),
        ("model calls", total("calls")),
        ("tokens", f"{total('prompt_tokens')} sent, {total('completion_tokens')} answered"),
        ("rejected", f"{total('rejected')} of {total('candidates')} candidates"),
    ]
