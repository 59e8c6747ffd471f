from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, hostile_records, hostile_run

import coag
from coag.errors import TraceError, UnknownNameError
from coag.schema import Candidate, Entry, Intent, Note, ProposalOutcome, TokenUsage, TraceRecord
from coag.tracing import MemoryTrace, RunFolder, TableName, Trace, read_run

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
broken = pytest.mark.broken_trace("the run's texts are hostile, its state is none")


def uniform(trace: Trace) -> dict[str, int]:
    """The number of rows of each table, all of which have its columns and their types."""
    counts: dict[str, int] = {}
    for name in trace.tables:
        columns = trace.columns(name)
        rows = list(trace.rows(name))
        for row in rows:
            assert list(row) == [column.name for column in columns]
            for column in columns:
                value = row[column.name]
                if value is None:
                    assert column.optional, column.name
                else:
                    assert type(value) is column.type, column.name
        counts[name] = len(rows)
    return counts


def test_every_row_has_the_columns_of_its_table_in_their_types() -> None:
    counts = uniform(Trace(hostile_records(cycles=3)))
    assert counts == {
        "cycles": 3,
        "phases": 18,
        "calls": 6,
        "candidates": 5,
        "recalled": 3,
        "percepts": 4,
        "actions": 2,
        "written": 4,
        "notes": 2,
    }


def test_columns_say_what_they_hold() -> None:
    for name in TableName:
        columns = Trace.columns(name)
        assert len({column.name for column in columns}) == len(columns)
        assert all(column.means for column in columns)
        assert Trace.types(name) == {column.name: column.type for column in columns}


def test_candidates_list_verdicts_what_rejected_them_and_which_was_chosen() -> None:
    first, second, third = Trace(hostile_records(cycles=2)).table("candidates")
    assert (first["allowed"], first["chosen"], first["decided_by"]) == (True, True, "rank")
    assert first["score"] == 0.9
    assert (second["allowed"], second["chosen"], second["score"]) == (False, False, None)
    assert second["died_of"]
    (verdict,) = json.loads(str(second["verdicts"]))
    assert verdict["allowed"] is False
    assert (third["cycle"], third["chosen"]) == (2, False)


def test_candidate_that_was_not_evaluated_is_neither_allowed_nor_chosen() -> None:
    proposal = ProposalOutcome(cycle=1, at=AT, candidates=(Candidate(id="a", action="go"),))
    (row,) = Trace([proposal]).table("candidates")
    assert (row["allowed"], row["chosen"], row["verdicts"]) == (None, False, "[]")


def test_action_without_a_receipt_has_no_status() -> None:
    intent = Intent(id="i", at=AT, cycle=1, candidate_id=None, action="go", arguments={})
    (row,) = Trace([intent]).table("actions")
    assert (row["action"], row["status"], row["seconds"]) == ("go", None, None)


def test_cycle_sums_up_its_calls_and_says_whether_it_was_an_impasse() -> None:
    first, second = Trace(hostile_records(cycles=2)).table("cycles")
    assert (first["calls"], first["prompt_tokens"], first["cached_tokens"]) == (2, 1624, 1280)
    assert (first["candidates"], first["rejected"], first["impasse"]) == (2, 1, False)
    assert (second["impasse"], second["action"], second["status"]) == (True, None, "none")


@broken
def test_trace_is_read_from_a_folder_its_path_its_file_and_from_ram(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path)
    memory = MemoryTrace()
    for entry in Trace(folder):
        memory.write(entry.body)
    tables = [
        Trace(source).table("notes")
        for source in (folder, folder.path, str(folder.trace_path), memory, memory.records)
    ]
    assert all(table == tables[0] for table in tables)
    assert Trace(folder.path).info == read_run(folder.path)
    assert Trace(memory).info is None


@broken
def test_trace_may_be_read_again_and_shows_what_has_come_since(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path)
    trace = Trace(folder)
    before = len(list(trace))
    assert len(list(trace)) == before
    lines = folder.trace_path.read_bytes().splitlines(keepends=True)
    folder.trace_path.write_bytes(b"".join(lines[:10]) + b'{"v":2')
    assert len(list(trace)) == 10
    assert trace.problems == ("line 11, the last one, is truncated",)


@broken
def test_damaged_trace_is_reported_where_it_is_shown_and_raised_where_it_is_read(
    tmp_path: Path,
) -> None:
    folder = hostile_run(tmp_path)
    folder.trace_path.write_bytes(b"nothing of ours\n")
    trace = Trace(folder)
    assert "line 1" in trace._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter's name
    with pytest.raises(TraceError, match="line 1"):
        trace.table("cycles")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("x")
    for path in (tmp_path, tmp_path / "nope", tmp_path / "other.txt"):
        with pytest.raises(TraceError):
            Trace(path)
    with pytest.raises(UnknownNameError, match="candidates"):
        Trace(()).table("nope")
    with pytest.raises(ValueError, match="at least 1"):
        Trace(()).table("notes", text=0)


def test_long_texts_are_cut_unless_they_are_asked_for() -> None:
    trace = Trace([Note(at=AT, cycle=1, about="bound", text="x" * 5_000)])
    assert trace.table("notes")[0]["text"] == "x" * 2_000 + " [… 3,000 more]"
    assert trace.table("notes", text=None)[0]["text"] == "x" * 5_000
    assert next(trace.rows("notes"))["text"] == "x" * 5_000


def widest(trace: Trace) -> int:
    """The largest integer of all tables, by its amount."""
    return max(
        abs(value)
        for name in trace.tables
        for row in trace.table(name)
        for value in row.values()
        if isinstance(value, int)
    )


@pytest.mark.parametrize("number", [2**63, 10**30, -(10**30), 10**4000])
def test_integers_of_all_tables_fit_in_64_bits(number: int) -> None:
    usage = TokenUsage(
        prompt_tokens=number, completion_tokens=number, cached_tokens=number, calls=number
    )
    records: list[TraceRecord] = []
    for record in hostile_records(cycles=2):
        changed: dict[str, object] = {"cycle": abs(number), "usage": usage, "attempt": number}
        fields = type(record).model_fields
        update = {name: value for name, value in changed.items() if name in fields}
        records.append(record.model_copy(update=update))
    trace = Trace([Entry(seq=abs(number), body=record) for record in records])
    assert all(count for name, count in uniform(trace).items() if name != "candidates")
    assert widest(trace) == 2**63 - 1
    (sent,) = {abs(int(str(row["prompt_tokens"]))) for row in trace.table("calls")}
    assert sent == 2**63 - 1
    assert "9,223,372,036,854,775,807" in trace._repr_html_().replace("-", "")  # pyright: ignore[reportPrivateUsage] - Jupyter's name


@broken
def test_hostile_run_shows_itself_small_and_harmless(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path, cycles=30, size=2_000_000)
    for source in (Trace(folder), folder, read_run(folder.path), Trace(hostile_records(cycles=5))):
        page = source._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter's name
        assert len(page) < 50_000
        assert not FORBIDDEN & set(page)
        assert "<script" not in page
        assert "<img" not in page
    assert len(repr(Trace(folder))) < 150


@broken
def test_large_file_is_not_read_to_be_shown(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path, size=9_000_000)
    page = Trace(folder)._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter's name
    assert "MB, read when a table is asked for" in page


def test_folder_without_a_run_says_so(tmp_path: Path) -> None:
    page = RunFolder(tmp_path)._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter's name
    assert "No run" in page


def test_trace_is_among_the_public_names() -> None:
    assert coag.Trace is Trace


@given(st.lists(st.sampled_from(hostile_records(cycles=2)), max_size=30))
def test_any_records_in_any_order_make_uniform_tables(records: list[TraceRecord]) -> None:
    uniform(Trace(records))
    uniform(Trace([Entry(seq=seq, body=record) for seq, record in enumerate(records)]))


def test_the_page_about_notebooks_lists_every_column() -> None:
    page = (Path(__file__).parents[3] / "docs" / "notebook.md").read_text(encoding="utf-8")
    for name in TableName:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        columns = [f"`{one.name}`" + r"\*" * one.optional for one in Trace.columns(name)]
        assert row.endswith(f"| {', '.join(columns)} |")
