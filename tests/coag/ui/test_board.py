"""Following runs, and the state of each."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, HARM, hostile_cycle, hostile_records, hostile_run
from kits.tracked import plain_turn

from coag import CoagAgent
from coag.schema import Intent, Note, Percept, PerceptKind, Redactor, Trust, TurnEnd, TurnStart
from coag.tracing import RunFolder, RunInfo, TraceWriter, list_runs, open_trace
from coag.ui import Board, snapshot
from coag.ui.board import amount, detail, duration, held_files, money
from coag.ui.watch import RunState, RunStatus, RunView

pytestmark = pytest.mark.broken_trace("their records are made up")
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
STARTED = TurnStart(at=AT, turn=1, cycle=0)
Make = Callable[..., CoagAgent]


class Watcher:
    """A board over a folder of logs, with a clock that only the test moves."""

    def __init__(self, logs: Path) -> None:
        self.time = AT
        self.elapsed = 0.0
        self.held: frozenset[int] | None = frozenset()
        self.board = Board(
            lambda: list(list_runs(logs)) if logs.is_dir() else [],
            clock=self,
            held=lambda: self.held,
        )

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        self.elapsed += 1.0
        return self.elapsed

    def views(self) -> list[RunView]:
        while self.board.advance(0.0):
            pass
        return self.board.views()

    def only(self) -> RunView:
        (view,) = self.views()
        return view

    def printed(self, logs: Path, width: int = 80) -> list[str]:
        return list(snapshot(self.board, logs, width=width))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def watcher(logs: Path) -> Watcher:
    return Watcher(logs)


def start_run(logs: Path, name: str = "run-1") -> RunFolder:
    info = RunInfo(id=name, kind="coag", agent="robot", model="scripted:sound", started_at=AT)
    return RunFolder.create(logs, info, redactor=Redactor())


def inode(folder: RunFolder) -> frozenset[int]:
    return frozenset({folder.trace_path.stat().st_ino})


@contextmanager
def open_run(logs: Path, watcher: Watcher) -> Generator[tuple[RunFolder, TraceWriter]]:
    folder = start_run(logs)
    with open_trace(folder, redactor=Redactor()) as trace:
        watcher.held = inode(folder)
        yield folder, trace


# ---- the state of a run ----


async def test_a_run_shows_its_decisions_and_costs_and_is_printed_in_detail(
    scout: Make, logs: Path, watcher: Watcher
) -> None:
    agent = scout(logs=str(logs))
    await agent.run(task="Look around.")
    await agent.close()
    view = watcher.only()
    status = view.status
    assert (view.state, view.agent, status.ended_by) == (RunState.ENDED, "scout", "respond")
    assert (status.cycle, status.impasses, status.response) == (4, 1, "All is seen.")
    assert status.vetoes == {"keeps_away": 2}
    assert (status.decision, status.decided_by) == ("respond", "only_survivor")
    assert status.calls == status.usage.calls > 4
    assert status.goal == "Look around."
    assert [one.chosen for one in status.considered.candidates] == [True]
    lines = watcher.printed(logs)
    assert lines[1] == ("state      agent       phase         for  cyc tokens vet imp decision")
    assert "vetoes      2 keeps_away" in lines
    assert 'candidates  chosen  respond {"text": "All is seen."}' in " ".join(lines)


def test_the_current_phase_follows_the_last_outcome() -> None:
    status = RunStatus().with_record(STARTED)
    phases = [status.phase]
    for record in hostile_cycle(1):
        status = status.with_record(record)
        phases += [status.phase] if record.record == "outcome" else []
    expected = "retrieval reasoning proposal evaluation selection execution retrieval"
    assert phases == expected.split()


def test_a_plain_agents_status_holds_its_calls_and_actions() -> None:
    start, _, call, *_ = plain_turn(1, "I shall move.")
    call = call.model_copy(update={"tool_calls": ({"id": "t", "name": "move", "arguments": ""},)})
    status = RunStatus().with_record(start).with_record(call)
    assert (status.cycle, status.phase, status.situation) == (1, "action", "I shall move.")
    assert status.decision == "move"
    intent = Intent(id="i", at=AT, cycle=1, candidate_id=None, action="move", arguments={"to": 1})
    assert status.with_record(intent).acting == 'move {"to": 1}'


def test_only_the_last_notes_are_kept_and_unknown_outcomes_are_among_them() -> None:
    status = RunStatus()
    for number in range(9):
        status = status.with_record(Note(at=AT, cycle=1, about="n", text=str(number)))
    lost = Percept(
        id="p",
        at=AT,
        kind=PerceptKind.UNKNOWN_OUTCOME,
        source="move",
        trust=Trust.UNTRUSTED,
        content="the line broke",
    )
    notes = status.with_record(lost).notes
    assert notes == ("n: 5", "n: 6", "n: 7", "n: 8", "unknown outcome: the line broke")


# ---- following ----


def test_a_run_is_followed_while_it_is_written(logs: Path, watcher: Watcher) -> None:
    assert watcher.views() == []
    with open_run(logs, watcher) as (folder, trace):
        assert watcher.only().state is RunState.RUNNING
        trace.write(STARTED)
        phases: list[str] = []
        for record in hostile_cycle(1):
            trace.write(record)
            trace.flush()
            phases.append(watcher.only().status.phase)
        trace.write(TurnEnd(at=AT, turn=1, cycle=1, reason="respond", response="Done."))
        assert watcher.only().state is RunState.IDLE
    folder.finish(at=AT, redactor=Redactor())
    assert watcher.only().state is RunState.ENDED
    assert list(dict.fromkeys(phases))[1:4] == ["proposal", "evaluation", "selection"]


def test_a_status_says_what_a_run_waits_for(logs: Path, watcher: Watcher) -> None:
    with open_run(logs, watcher) as (_, trace):
        trace.write(STARTED)
        trace.write(hostile_cycle(1)[0])
        assert (watcher.only().state, watcher.only().seconds) == (RunState.RUNNING, 0.0)
        watcher.time += timedelta(seconds=4)
        assert (watcher.only().state, watcher.only().seconds) == (RunState.WAITING, 4.0)
        trace.write(next(one for one in hostile_cycle(1) if one.record == "intent"))
        assert watcher.only().state is RunState.ACTING


def test_a_run_whose_process_is_gone_broke_off(logs: Path, watcher: Watcher) -> None:
    with open_run(logs, watcher) as (folder, trace):
        trace.write(STARTED)
    with folder.trace_path.open("ab") as file:
        file.write(b'{"v":2,"se')
    states: list[RunState] = []
    for held, seconds in ((frozenset[int](), 1), (frozenset[int](), 10), (None, 0), (None, 3_600)):
        watcher.held = held
        watcher.time += timedelta(seconds=seconds)
        states.append(watcher.only().state)
    assert states == [RunState.RUNNING, RunState.BROKE_OFF] * 2
    assert watcher.only().problem == "The last line of the trace is truncated."


def test_locks_of_this_machine_show_who_still_writes(logs: Path, watcher: Watcher) -> None:
    with open_run(logs, watcher) as (folder, _):
        held = held_files()
        if held is None:
            pytest.skip("this system does not list its locks")
        assert inode(folder) <= held
    assert not inode(folder) & (held_files() or frozenset())


def test_a_long_trace_is_read_in_slices(logs: Path, watcher: Watcher) -> None:
    with open_run(logs, watcher) as (_, trace):
        for number in range(1_000):
            trace.write(Note(at=AT, cycle=1, about="n", text=str(number)))
    assert watcher.board.advance(0.0)
    (view,) = watcher.board.views()
    assert view.state is RunState.READING
    assert 0 < view.status.records < 1_000
    assert watcher.only().status.records == 1_000


def test_only_the_newest_runs_are_watched(logs: Path, watcher: Watcher) -> None:
    for number in range(53):
        start_run(logs, f"run-{number:02}")
    assert (len(watcher.views()), watcher.board.older) == (50, 3)


# ---- what is wrong with a log ----


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"v":3,"seq":0,"body":{}}\n', "version 3 of the format"),
        (b"PK\x03\x04\x1b[2J\n", "is not JSON"),
        (b'{"v":2,"seq":0,"body":{"record":"\\u001b[31m"}}\n', "is no valid record"),
    ],
)
def test_a_trace_that_cannot_be_read_is_reported_in_place(
    logs: Path, watcher: Watcher, line: bytes, sentence: str
) -> None:
    start_run(logs).trace_path.write_bytes(line)
    view = watcher.only()
    assert (view.state, view.over) == (RunState.UNREADABLE, True)
    assert sentence in view.problem
    assert not FORBIDDEN & set(view.problem)


def test_a_foreign_run_json_is_reported_and_hinders_no_other(logs: Path, watcher: Watcher) -> None:
    start_run(logs)
    (logs / "other").mkdir()
    (logs / "other" / "run.json").write_text('{"name": "not ours"}')
    states = {view.name: view.state for view in watcher.views()}
    assert states == {"run-1": RunState.RUNNING, "other": RunState.UNREADABLE}


def test_a_trace_that_was_changed_or_cut_is_reported(logs: Path, watcher: Watcher) -> None:
    folder = hostile_run(logs)
    text = folder.trace_path.read_bytes()
    folder.trace_path.write_bytes(text.replace(b"812", b"813", 1))
    view = watcher.only()
    assert view.state is RunState.ENDED
    assert view.problem.startswith("The trace was changed: line ")
    folder.trace_path.write_bytes(b"")
    assert "was cut while it was read" in watcher.only().problem


# ---- as text ----


def test_a_folder_without_runs_says_how_one_is_made(logs: Path, watcher: Watcher) -> None:
    lines = watcher.printed(logs)
    assert lines[0].endswith(": 0 runs, 0 open")
    assert any("coag chat --model SPEC --logs" in line for line in lines)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_its_terminal(logs: Path, watcher: Watcher, width: int) -> None:
    hostile_run(logs, name="one")
    hostile_run(logs, name="two", ended=False)
    lines = watcher.printed(logs, width)
    assert max(map(len, lines[1:])) <= width
    assert len(lines) == 4


@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(0, 100_000))
def test_the_details_of_a_hostile_run_are_short_and_harmless(cycles: int, size: int) -> None:
    status = RunStatus()
    for record in hostile_records(cycles=cycles, size=size):
        status = status.with_record(record)
    view = RunView(folder=RunFolder(Path("run")), state=RunState.ENDED, status=status, at=AT)
    text = "\n".join(text.plain for _, text in detail(view))
    assert len(text) < 20_000
    assert not FORBIDDEN & set(text.replace("\n", ""))
    assert "rejected by [/x]<b onclick=x>" in text


def test_a_snapshot_of_a_hostile_run_is_harmless(logs: Path, watcher: Watcher) -> None:
    hostile_run(logs, size=2_000_000)
    text = "\n".join(watcher.printed(logs))
    assert not FORBIDDEN & set(text)
    assert "[/x]<b onclick=x>" in text
    assert len(text) < 20_000
    assert HARM not in text


# ---- numbers in narrow columns ----


@pytest.mark.parametrize(
    ("show", "number", "shown"),
    [
        *[(amount, 0, "0"), (amount, 9_120, "9,120"), (amount, 12_345, "12.3k")],
        *[(amount, 123_456, "123k"), (amount, 1_400_000, "1.4M")],
        *[(duration, 0.4, "0 s"), (duration, 61, "1 m"), (duration, 5_400, "1.5 h")],
        *[(duration, 200_000, "2 d"), (money, 0, "-"), (money, 0.0123, "0.0123")],
        (money, 1_234.5, "1,234.50"),
    ],
)
def test_numbers_times_and_costs_are_short(show: Any, number: float, shown: str) -> None:
    assert show(number) == shown


@given(st.integers(0, 999_999_999), st.floats(0, 8_000_000))
def test_no_number_is_wider_than_its_column(number: int, seconds: float) -> None:
    assert max(len(amount(number)), len(duration(seconds))) <= 6
